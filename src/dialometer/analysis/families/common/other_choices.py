"""Choices that might have been made otherwise, and the primary tests under each of them.

Which raters are excluded, how ratings are normalised, what happens to zeros, which model is used and whether items are a
sample: each choice is changed alone, all others stay as declared. The tests come from the deciding family itself, so the
declared ones are the report's own result.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ALTERNATIVES, Options, OtherChoice
from dialometer.analysis.base.scale_units import log_types
from dialometer.analysis.shared.comparisons import deciding_family, is_significant, p_adjusted
from dialometer.analysis.shared.effect_words import flipped
from dialometer.analysis.shared.equivalence import is_outside
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate

DECLARED, REPORTED = "Confirmatory analysis", "Analysis of this report"
"""What the other choices are held against: where nothing was declared it is not confirmatory."""
NO_TEST = "no test"
EXCLUSIONS, ZEROS, ITEMS = "Exclusions", "Zeros", "Items"


@dataclass(frozen=True)
class ChoiceOutcome:
    """The primary tests under one choice; ``problem`` says why there are none."""

    kind: str
    label: str
    tests: Mapping[str, Estimate]
    problem: str = ""
    claim: str = ""

    @property
    def name(self) -> str:
        """How the choice is called in the figure."""
        about = f" ({self.claim})" if self.claim else ""
        return f"{self.kind}: {self.label}{about}" if self.label else self.kind

    def only(self, labels: Collection[str]) -> ChoiceOutcome:
        """With some of the tests."""
        return replace(self, tests={label: test for label, test in self.tests.items() if label in labels})

    def turned(self, labels: Mapping[str, str]) -> ChoiceOutcome:
        """With some tests the other way round, under their new labels."""
        tests = {
            labels.get(label, label): flipped(test) if label in labels else test for label, test in self.tests.items()
        }
        return replace(self, tests=tests)


def all_outcomes(
    data: StudyData, comparison: Comparison, options: Options
) -> tuple[ChoiceOutcome, list[ChoiceOutcome]]:
    """The declared tests, and those under every other choice; exclusions that leave the data as they are do not appear."""
    family = deciding_family(data.study, comparison)
    tests = family.primary_tests(data, comparison, options)
    declared = ChoiceOutcome(DECLARED if data.study.spec.analysis.comparisons else REPORTED, "", _with_intervals(tests))
    choices = [*exclusion_choices(data, comparison, options)]
    for name in ALTERNATIVES:
        choices += ALTERNATIVES.get(name)(data, comparison, options)
    choices += family.alternatives(data, comparison, options)
    return declared, [_outcome(choice) for choice in choices]


def is_same(declared: ChoiceOutcome, other: ChoiceOutcome) -> bool:
    """Whether all numbers are equal, as where nothing is a sample of items, or where raters do not differ at all."""
    return declared.tests.keys() == other.tests.keys() and all(
        _is_close(test.value, other.tests[label].value) and _is_close(test.p_value, other.tests[label].p_value)
        for label, test in declared.tests.items()
    )


def _is_close(first: float, second: float) -> bool:
    """Equal up to rounding: two ways to the same number differ in the last digits."""
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-9) or (math.isnan(first) and math.isnan(second))


def _with_intervals(tests: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Tests that power analysis repeats come without intervals; here Student's are added."""
    return {label: _with_interval(test) for label, test in tests.items()}


def _with_interval(test: Estimate) -> Estimate:
    error = float(test.details.get("standard_error", math.nan))
    if not test.is_known or test.has_interval or not test.df or not error > 0:
        return test
    half = float(stats.t.isf((1 - test.confidence) / 2, max(test.df[0], 0.5))) * error
    return replace(test, low=test.value - half, high=test.value + half, interval_method="Student's t")


def _outcome(choice: OtherChoice) -> ChoiceOutcome:
    try:
        tests = _with_intervals(choice.tests())
    except DialometerError as error:
        return ChoiceOutcome(choice.kind, choice.label, {}, str(error), choice.claim)
    known = [test for test in tests.values() if not math.isnan(p_adjusted(test))]
    problem = "" if known else next((note for test in tests.values() for note in test.notes), "no test")
    return ChoiceOutcome(choice.kind, choice.label, tests if known else {}, problem, choice.claim)


def answer_of(test: Estimate | None) -> str:
    """What a test says: nothing, or in which direction; two choices agree where they say the same."""
    if test is None or math.isnan(p_adjusted(test)):
        return NO_TEST
    if "lower_bound" in test.details:
        return "shown" if is_significant(test) else "beyond the margin" if is_outside(test) else "not shown"
    if not is_significant(test):
        return "not significant"
    return "higher" if test.value > float(test.details.get("null", 0.0)) else "lower"


def changed(declared: ChoiceOutcome, other: ChoiceOutcome) -> list[str]:
    """The tests on which another choice gives another answer; what it cannot test is no other answer."""
    now = {label: answer_of(other.tests.get(label)) for label in declared.tests}
    return [label for label, test in declared.tests.items() if now[label] not in (NO_TEST, answer_of(test))]


def untested(declared: ChoiceOutcome, other: ChoiceOutcome) -> list[str]:
    """The tests that another choice cannot make although the declared analysis can."""
    return [
        label
        for label, test in declared.tests.items()
        if answer_of(test) != NO_TEST == answer_of(other.tests.get(label))
    ]


def bearing(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome]) -> dict[str, int]:
    """How many choices give each test other numbers: a model of the size of ratings has no bearing on their consistency."""
    return {
        label: sum(not is_same(declared.only([label]), outcome.only([label])) for outcome in outcomes if outcome.tests)
        for label in declared.tests
    }


def contested(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome]) -> str:
    """The test that the figure shows: the one that most choices change, those of the same claim first.

    Where none changes any, it is the clearest of those that most choices have a bearing on.
    """
    n_changes = dict.fromkeys(declared.tests, 0)
    for outcome in outcomes:
        for label in changed(declared, outcome) if outcome.tests else ():
            n_changes[label] += 1 if outcome.claim else len(outcomes)
    sure = {label: p for label, test in declared.tests.items() if not math.isnan(p := p_adjusted(test))}
    plain = {label: declared.tests[label].p_value for label in sure}
    reach = bearing(declared, outcomes)
    return max(
        n_changes, key=lambda label: (n_changes[label], reach[label], -sure.get(label, 2.0), -plain.get(label, 2.0))
    )


# What applies to data of every kind.


def exclusion_choices(data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
    """Nobody excluded, each rule alone, all that rules flag excluded, and only raters who finished; without repetitions."""
    everyone = pl.concat([data.judgments, data.set_aside], how="diagonal") if len(data.set_aside) else data.judgments
    raters = set(everyone["rater"].unique())
    declared = frozenset(data.judgments["rater"].unique())
    flags = {
        action: {
            rule: set(own["rater"]) & raters
            for (rule,), own in data.findings.filter(pl.col("action") == action).group_by("rule", maintain_order=True)
        }
        for action in ("exclude", "flag")
    }
    kept = {"nobody excluded": frozenset(raters)}
    kept |= {
        f"only by the rule {rule.replace('_', ' ')}": frozenset(raters - own) for rule, own in flags["exclude"].items()
    }
    kept |= {
        f"raters flagged by the rule {rule.replace('_', ' ')} excluded too": declared - own
        for rule, own in flags["flag"].items()
    }
    if len(flags["flag"]) > 1:
        kept["all flagged raters excluded too"] = declared - set().union(*flags["flag"].values())
    finished = data.sessions.filter(pl.col("state") == "completed")["rater"]
    kept["only raters who finished"] = declared & set(finished)
    seen = {declared, frozenset[str]()}
    choices = []
    for label, chosen in kept.items():
        if chosen not in seen:
            seen.add(chosen)
            rows = everyone.filter(pl.col("rater").is_in(list(chosen)))
            choices.append(_again(EXCLUSIONS, label, _with_raters(data, rows, chosen), comparison, options))
    return choices


def _with_raters(data: StudyData, judgments: pl.DataFrame, raters: frozenset[str]) -> StudyData:
    inside = pl.col("rater").is_in(list(raters))
    return replace(data, judgments=judgments, sessions=data.sessions.with_columns((~inside).alias("is_excluded")))


def _again(kind: str, label: str, data: StudyData, comparison: Comparison, options: Options) -> OtherChoice:
    """The deciding family's own tests on other data or with other settings."""
    family = deciding_family(data.study, comparison)
    return OtherChoice(kind, label, partial(family.primary_tests, data, comparison, options))


@ALTERNATIVES.register("zeros")
def zero_choices(data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
    """The other rule for magnitudes of zero, where there are any."""
    types = log_types(data.study)
    if not types or not len(data.judgments.filter(pl.col("scale").is_in(types) & (pl.col("value") <= 0))):
        return []
    words = {"exclude": "excluded", "half_minimum": "half of the rater's smallest number"}
    analysis = data.study.spec.analysis
    made = []
    for rule, label in words.items():
        if rule == analysis.zeros:
            continue
        spec = data.study.spec.model_copy(update={"analysis": analysis.model_copy(update={"zeros": rule})})
        study = replace(data.study, spec=spec)
        made.append(_again(ZEROS, label, replace(data, study=study), comparison, options))
    return made


@ALTERNATIVES.register("items")
def item_choices(data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
    """Items as all that the claim is about, or as a sample of others: whichever was not declared."""
    if comparison.between == "factor":  # raters of all levels judge the same items, which cancel
        return []
    label, claim = ("a sample", "other items too") if options.has_fixed_items else ("fixed", "these items only")
    other = replace(options, has_fixed_items=not options.has_fixed_items)
    return [replace(_again(ITEMS, label, data, comparison, other), claim=claim)]
