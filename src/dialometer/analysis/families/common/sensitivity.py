"""Would a critic's choice change the answer? The primary tests under every other choice that could have been made.

Which raters are excluded, how ratings are normalised, what happens to zeros, which model is used and whether items are a
sample are decided before the data, but others might have decided otherwise. Each row of the figure changes one of these
choices and leaves all others as declared (Steegen, Tuerlinckx, Gelman and Vanpaemel 2016 vary them all at once; one at a
time can be read). The tests come from the deciding family itself, so the declared row is the report's own result.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ALTERNATIVES,
    ANALYSES,
    Family,
    Findings,
    Options,
    OtherChoice,
    in_appendix,
    section_or_problem,
)
from dialometer.analysis.base.scale_units import log_types
from dialometer.analysis.base.wording import correction_name, listed, n_of, p_words, system_label
from dialometer.analysis.shared.comparisons import (
    compared_systems,
    comparison_title,
    deciding_family,
    is_significant,
    p_adjusted,
    p_cell,
    primary_comparison,
)
from dialometer.analysis.shared.effect_words import flipped, is_share
from dialometer.analysis.shared.equivalence import has_margin, is_outside, shown_with_margin
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval
from dialometer.report.numbers import shared_digits, write_estimate

NAME, TITLE = "sensitivity", "Would a critic's choice change the answer?"
DECLARED, REPORTED = "Confirmatory analysis", "Analysis of this report"
"""What the other choices are held against: where nothing was declared it is not confirmatory."""
SAME, OTHER = "Same answer", "Other answer"
NO_TEST = "no test"
EXCLUSIONS, ZEROS, ITEMS = "Exclusions", "Zeros", "Items"
NO_CHOICES = (
    "No other choice applies to the comparison “{}”: no rater is excluded or flagged, and no other test of it here gives "
    "other numbers."
)


class Sensitivity(Family):
    """The family of every study whose primary comparison some family decides; it gives no answer of its own."""

    rank = 880

    def fits(self, study: Study) -> bool:
        """Where a comparison of systems or levels can be tested."""
        return is_decided(study)

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section with one figure."""
        section = section_or_problem(NAME, TITLE, lambda: sensitivity_section(data, options))
        return Findings(
            "There is no analysis for this design yet.", "", sections=in_appendix((section,)), methods=METHODS
        )


ANALYSES.register("sensitivity")(Sensitivity())

METHODS = (
    Method(
        "whether other choices change the answer",
        "the primary tests again under one other choice at a time: exclusions, normalisation, zeros, model, items",
        "a result that depends on such a choice must say so",
        "Steegen, Tuerlinckx, Gelman & Vanpaemel 2016; Simonsohn, Simmons & Nelson 2020",
    ),
)


def is_decided(study: Study) -> bool:
    """Whether some family tests the primary comparison."""
    comparison = primary_comparison(study)
    if comparison.between == "items" or (
        comparison.between == "systems" and len(compared_systems(study, comparison)) < 2
    ):
        return False
    able = (family for name in ANALYSES if type(family := ANALYSES.get(name)).decides is not Family.decides)
    return any(family.fits(study) and family.decides(study, comparison) for family in able)


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


def _asked(comparison: Comparison, declared: ChoiceOutcome) -> list[str]:
    """The tests that decide on the hypothesis: with an expected direction those of its pairs, else all."""
    pairs = {frozenset(pair) for pair in comparison.expected_pairs}
    labels = [
        label
        for label, test in declared.tests.items()
        if frozenset((test.details.get("first"), test.details.get("second"))) in pairs
    ]
    return labels if labels and not has_margin(comparison) else list(declared.tests)


def _turned_labels(study: Study, comparison: Comparison, declared: ChoiceOutcome) -> dict[str, str]:
    """New labels of tests that the summary has the other way round: as expected, or else the higher first."""
    if has_margin(comparison):
        return {}
    made = {}
    for label, test in declared.tests.items():
        first, second = (str(test.details.get(key, "")) for key in ("first", "second"))
        is_lower = test.is_known and test.value < float(test.details.get("null", 0.0))
        if comparison.expected:
            is_wrong = (second, first) in comparison.expected_pairs
        else:
            is_wrong = comparison.between == "systems" and is_lower and not is_share(test)
        names = [system_label(study, name) for name in (first, second)]
        old = " against ".join(names)
        if is_wrong and old in label:
            made[label] = label.replace(old, " against ".join(reversed(names)))
    return made


def sensitivity_section(data: StudyData, options: Options) -> Section:
    """The figure, the table behind it and a sentence that says whether all choices agree."""
    comparison = primary_comparison(data.study)
    declared, outcomes = all_outcomes(data, comparison, options)
    if not declared.tests:
        raise NotEnoughData("the primary comparison has no test yet", remedy="collect judgments first")
    asked = _asked(comparison, declared)
    declared, outcomes = declared.only(asked), [outcome.only(asked) for outcome in outcomes]
    turned = _turned_labels(data.study, comparison, declared)
    declared, outcomes = declared.turned(turned), [outcome.turned(turned) for outcome in outcomes]
    shown = contested(declared, outcomes)
    if not outcomes:
        return Section(NAME, TITLE, (NO_CHOICES.format(comparison_title(comparison)),))
    return Section(
        NAME,
        TITLE,
        _paragraphs(comparison, declared, outcomes, shown),
        (_figure(comparison, declared, outcomes, shown), _table(declared, outcomes, shown, options.correction)),
    )


def all_outcomes(
    data: StudyData, comparison: Comparison, options: Options
) -> tuple[ChoiceOutcome, list[ChoiceOutcome]]:
    """The declared tests, and those under every other choice; choices that leave the data as they are do not appear."""
    family = deciding_family(data.study, comparison)
    tests = family.primary_tests(data, comparison, options)
    declared = ChoiceOutcome(DECLARED if data.study.spec.analysis.comparisons else REPORTED, "", _with_intervals(tests))
    choices = [*exclusion_choices(data, comparison, options)]
    for name in ALTERNATIVES:
        choices += ALTERNATIVES.get(name)(data, comparison, options)
    choices += family.alternatives(data, comparison, options)
    made = [_outcome(choice) for choice in choices]
    return declared, [outcome for outcome in made if not (outcome.claim and _is_same(declared, outcome))]


def _is_same(declared: ChoiceOutcome, other: ChoiceOutcome) -> bool:
    """Whether all numbers are equal: the declared analysis makes this claim already, as where nothing is a sample of items."""
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


def contested(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome]) -> str:
    """The test that the figure shows: the one that most choices change, those of the same claim first; else the clearest."""
    n_changes = dict.fromkeys(declared.tests, 0)
    for outcome in outcomes:
        for label in changed(declared, outcome) if outcome.tests else ():
            n_changes[label] += 1 if outcome.claim else len(outcomes)
    sure = {label: p for label, test in declared.tests.items() if not math.isnan(p := p_adjusted(test))}
    plain = {label: declared.tests[label].p_value for label in sure}
    return max(n_changes, key=lambda label: (n_changes[label], -sure.get(label, 2.0), -plain.get(label, 2.0)))


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
        f"also those whom the rule {rule.replace('_', ' ')} flags": declared - own
        for rule, own in flags["flag"].items()
    }
    if len(flags["flag"]) > 1:
        kept["also all who are flagged"] = declared - set().union(*flags["flag"].values())
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


# Words, table and figure.


def _paragraphs(
    comparison: Comparison, declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], shown: str
) -> tuple[str, ...]:
    made = [outcome for outcome in outcomes if outcome.tests]
    same = [outcome for outcome in made if not outcome.claim]
    different = [outcome for outcome in same if changed(declared, outcome)]
    apart = [outcome for outcome in made if outcome.claim and changed(declared, outcome)]
    n_tests = len(declared.tests)
    held_against = f"the {declared.kind[0].lower()}{declared.kind[1:]}"
    is_tested = not any(untested(declared, outcome) for outcome in same)
    every = (
        f" in all of its {n_tests} tests"
        if is_tested
        else f" in every test that {'it has' if len(same) == 1 else 'they have'}"
    )
    every = "" if n_tests == 1 else every
    paragraphs = [
        f"Each row changes one choice of {held_against} and keeps all others; the comparison is "
        f"“{comparison_title(comparison)}”. Two choices agree where the same tests are significant, after correction, in the same "
        "direction."
    ]
    if not same:
        paragraphs.append("No other choice makes the same claim; the rows below make another one, named in brackets.")
    elif not different:
        who = (
            "The one other choice that makes the same claim agrees"
            if len(same) == 1
            else f"{'Both' if len(same) == 2 else f'All {len(same)}'} other choices that make the same claim agree"
        )
        paragraphs.append(f"{who} with {held_against}{every}.")
    else:
        n_agree = len(same) - len(different)
        changes = "; ".join(_changes(declared, outcome) for outcome in different)
        counted = f"{n_agree or 'None'} of {len(same)} other choices that make the same claim {'agree' if n_agree > 1 else 'agrees'}"
        who = "The one other choice that makes the same claim does not agree" if len(same) == 1 else counted
        paragraphs.append(f"{who} with {held_against}. The answer changes under: {changes}.")
    if apart:
        changes = "; ".join(_changes(declared, outcome) for outcome in apart)
        rows = "One row that makes" if len(apart) == 1 else "Rows that make"
        verb = "gives" if len(apart) == 1 else "give"
        paragraphs.append(f"{rows} another claim (named in brackets) {verb} another answer: {changes}.")
    if n_tests > 1:
        why = "the clearest one"
        if different or apart:
            why = f"the one that most choices that make {'the same' if different else 'another'} claim change"
        paragraphs.append(f"Shown is one of the tests, {why}: “{shown}”.")
    failed = [f"{outcome.name} ({outcome.problem.rstrip('.')})" for outcome in outcomes if not outcome.tests]
    failed += [
        f"{outcome.name}, for {listed(f'“{label}”' for label in missing)}"
        for outcome in made
        if (missing := untested(declared, outcome))
    ]
    if failed:
        paragraphs.append(f"Without a test: {'; '.join(failed)}.")
    return tuple(paragraphs)


def _named(outcomes: Sequence[ChoiceOutcome], name: str) -> ChoiceOutcome:
    return next(outcome for outcome in outcomes if outcome.name == name)


def _changes(declared: ChoiceOutcome, other: ChoiceOutcome) -> str:
    """One choice and what it says otherwise."""
    labels = changed(declared, other)
    words = {"higher": "significantly higher", "lower": "significantly lower"}
    turned: dict[tuple[str, str], list[str]] = {}
    for label in labels[:3]:
        before, now = answer_of(declared.tests[label]), answer_of(other.tests.get(label))
        turned.setdefault((words.get(before, before), words.get(now, now)), []).append(label)
    parts = [
        f"{listed(f'“{label}”' for label in own)} {'turns' if len(own) == 1 else 'turn'} from {before} to {now}"
        for (before, now), own in turned.items()
    ]
    more = [n_of(len(labels) - 3, "more test")] if len(labels) > 3 else []
    return f"{other.name}, where {listed([*parts, *more])}"


def _table(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], shown: str, correction: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    is_percent = False
    for outcome in (declared, *outcomes):
        test = outcome.tests.get(shown)
        made, is_share = shown_with_margin(test) if test is not None else (None, False)
        is_percent = is_percent or is_share
        labels = changed(declared, outcome) if outcome.tests else []
        is_untested = not outcome.tests or (not labels and bool(untested(declared, outcome)))
        own = "declared" if declared.kind == DECLARED else "as reported"
        verdict = own if outcome is declared else NO_TEST if is_untested else "no" if labels else "yes"
        rows.append(
            (
                outcome.name,
                made if made is not None and made.is_known else None,
                None if test is None else p_cell(p_adjusted(test)),
                verdict,
                "" if is_untested else len(labels),
            )
        )
    return Table(
        NAME,
        "The primary comparison under other choices",
        (
            Column("choice", "Choice"),
            Column("estimate", "Estimate", "percent_estimate" if is_percent else "estimate"),
            Column("p", f"p ({correction_name(correction)})", "p_value"),
            Column("agrees", "Same answer"),
            Column("n_changed", f"Tests changed, of {len(declared.tests)}", "count"),
        ),
        tuple(rows),
        caption=f"Estimates of “{shown}”. Those of other units are rescaled to that of the first row by the standard "
        "deviations of the judgments. Confidence intervals are not corrected for the number of tests, p-values are.",
    )


def _figure(comparison: Comparison, declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], shown: str) -> Figure:
    dots, is_percent, null, is_ratio = [], False, 0.0, False
    for outcome in (declared, *outcomes):
        test = outcome.tests.get(shown)
        if test is None or not test.is_known:
            continue
        made, is_share = shown_with_margin(test)
        is_percent, is_ratio = is_percent or is_share, is_ratio or bool(test.details.get("is_log"))
        null = 1.0 if is_ratio else float(test.details.get("null", 0.0))
        is_same = answer_of(test) == answer_of(declared.tests[shown])
        group = declared.kind if outcome is declared else SAME if is_same else OTHER
        dots.append(Dot(outcome.name, made, group))
    unit = "share of choices" if is_percent else "ratio" if is_ratio else "difference"
    unit += f", {declared.tests[shown].unit}" if declared.tests[shown].unit == "log odds" else ""
    bounds = _bounds(declared.tests[shown], is_ratio) if has_margin(comparison) else ()
    spec = dot_interval(
        sorted(dots, key=lambda dot: dot.group != declared.kind),
        value_title=unit,
        reference=null,
        bounds=bounds,
        is_percent=is_percent,
        group_order=[group for group in (declared.kind, OTHER, SAME) if any(dot.group == group for dot in dots)],
    )
    digits = shared_digits((dot.estimate for dot in dots), 1 if is_percent else 2, is_percent=is_percent)
    words = "; ".join(
        f"{dot.label}: {write_estimate(dot.estimate, n_digits=digits, is_percent=is_percent).text}, "
        f"{_p(declared, outcomes, dot.label, shown)}"
        for dot in dots
    )
    return Figure(
        NAME,
        f"{shown}, under every choice",
        spec,
        f"The primary result and what it becomes under other choices, with confidence intervals. {words}.",
        caption="Whether a row gives the same answer follows from its corrected test; the confidence intervals are not corrected.",
    )


def _p(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], name: str, shown: str) -> str:
    return p_words(p_adjusted(_named([declared, *outcomes], name).tests[shown]))


def _bounds(test: Estimate, is_ratio: bool) -> list[float]:
    ends = [float(test.details.get(f"{end}_bound", math.inf)) for end in ("lower", "upper")]
    return [math.exp(end) if is_ratio else end for end in ends if math.isfinite(end)]
