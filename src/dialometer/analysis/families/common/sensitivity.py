"""Would a critic's choice change the answer? The primary tests under every other choice that could have been made.

Exclusions, normalisation and models are decided before the data, but others might have decided otherwise. Each row of the
figure changes one of these choices (``other_choices``) and leaves all others as declared (Steegen, Tuerlinckx, Gelman and
Vanpaemel 2016 vary them all at once; one at a time can be read).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.wording import correction_name, listed, n_of, p_words, system_label
from dialometer.analysis.families.common.other_choices import (
    DECLARED,
    NO_TEST,
    ChoiceOutcome,
    all_outcomes,
    answer_of,
    bearing,
    changed,
    contested,
    is_same,
    untested,
)
from dialometer.analysis.shared.comparisons import (
    compared_systems,
    comparison_title,
    p_adjusted,
    p_cell,
    primary_comparison,
)
from dialometer.analysis.shared.effect_words import is_share
from dialometer.analysis.shared.equivalence import has_margin, shown_with_margin
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval
from dialometer.report.numbers import PERCENTAGE_POINTS, shared_digits, write_estimate

NAME, TITLE = "sensitivity", "Would a critic's choice change the answer?"
SAME, OTHER = "Same answer", "Other answer"
DIRECT_VOTES = "Direct votes"
TIES = "Ties"
MOST_NAMED = 3
"""Of more tests that change alike the rest is counted."""
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
        tables = [part for part in section.parts if isinstance(part, Table)]
        kinds = dict.fromkeys(str(row[0]).split(":")[0].lower() for table in tables for row in table.rows[1:])
        methods = (_method(list(kinds)),) if kinds else ()
        return Findings(
            "There is no analysis for this design yet.", "", sections=in_appendix((section,)), methods=methods
        )


ANALYSES.register("sensitivity")(Sensitivity())


def _method(kinds: Sequence[str]) -> Method:
    """What was done, with the kinds of choices that there were."""
    return Method(
        "whether other choices change the answer",
        f"the primary tests again under one other choice at a time: {', '.join(kinds)}",
        "a result that depends on such a choice must say so",
        "Steegen, Tuerlinckx, Gelman & Vanpaemel 2016; Simonsohn, Simmons & Nelson 2020",
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


def _deciding_labels(comparison: Comparison, declared: ChoiceOutcome) -> list[str]:
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
    declared, made = all_outcomes(data, comparison, options)
    asked = [label for label in _deciding_labels(comparison, declared) if answer_of(declared.tests[label]) != NO_TEST]
    if not asked:
        raise NotEnoughData("the primary comparison has no test yet", remedy="collect more judgments")
    equal = [outcome.name for outcome in made if _is_equal(declared, outcome)]
    outcomes = [outcome for outcome in made if not _is_equal(declared, outcome)]
    declared, outcomes = declared.only(asked), [outcome.only(asked) for outcome in outcomes]
    turned = _turned_labels(data.study, comparison, declared)
    declared, outcomes = declared.turned(turned), [outcome.turned(turned) for outcome in outcomes]
    shown = contested(declared, outcomes)
    rest = (
        (f"Without a row, because all numbers are those of {_called(declared)}: {'; '.join(equal)}.",) if equal else ()
    )
    if not outcomes:
        return Section(NAME, TITLE, (NO_CHOICES.format(comparison_title(comparison)), *rest))
    return Section(
        NAME,
        TITLE,
        (*_paragraphs(comparison, declared, outcomes, shown), *rest),
        (_figure(comparison, declared, outcomes, shown), _table(declared, outcomes, shown, options.correction)),
    )


def _is_equal(declared: ChoiceOutcome, outcome: ChoiceOutcome) -> bool:
    """Whether a choice that makes another claim changes no number: the declared analysis makes that claim already."""
    return bool(outcome.claim) and is_same(declared, outcome)


# Words, table and figure.


def _paragraphs(
    comparison: Comparison, declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], shown: str
) -> tuple[str, ...]:
    made = [outcome for outcome in outcomes if outcome.tests]
    same = [outcome for outcome in made if not outcome.claim]
    different = [outcome for outcome in same if changed(declared, outcome)]
    apart = [outcome for outcome in made if outcome.claim and changed(declared, outcome)]
    n_tests = len(declared.tests)
    held_against = _called(declared)
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
        changes = _changes(declared, different)
        counted = f"{n_agree or ('Neither' if len(same) == 2 else 'None')} of the {len(same)} other choices that make the same claim "
        counted += "agree" if n_agree > 1 else "agrees"
        who = "The one other choice that makes the same claim does not agree" if len(same) == 1 else counted
        paragraphs.append(f"{who} with {held_against}. The answer changes under: {changes}.")
    if apart:
        changes = _changes(declared, apart)
        rows = "One row that makes" if len(apart) == 1 else "Rows that make"
        verb = "gives" if len(apart) == 1 else "give"
        paragraphs.append(f"{rows} another claim (named in brackets) {verb} another answer: {changes}.")
    if n_tests > 1:
        is_alike = len(set(bearing(declared, outcomes).values())) == 1
        which = f"the clearest of the tests{'' if is_alike else ' that most choices have a bearing on'}"
        if different or apart:
            claim = "the same" if different else "another"
            which = f"a test whose answer changes under the largest number of the choices that make {claim} claim"
        paragraphs.append(f"Shown is {which}: “{shown}”.")
    failed = [f"{outcome.name} ({outcome.problem.rstrip('.')})" for outcome in outcomes if not outcome.tests]
    failed += [
        f"{outcome.name}, for {listed(f'“{label}”' for label in missing)}"
        for outcome in made
        if (missing := untested(declared, outcome))
    ]
    if failed:
        paragraphs.append(f"Without a test: {'; '.join(failed)}.")
    return tuple(paragraphs)


def _called(declared: ChoiceOutcome) -> str:
    return f"the {declared.kind[0].lower()}{declared.kind[1:]}"


def _named(outcomes: Sequence[ChoiceOutcome], name: str) -> ChoiceOutcome:
    return next(outcome for outcome in outcomes if outcome.name == name)


def _changes(declared: ChoiceOutcome, others: Sequence[ChoiceOutcome]) -> str:
    """What choices say otherwise; those that change the same tests in the same way are named together."""
    names: dict[str, list[str]] = {}
    for other in others:
        names.setdefault(_turned_tests(declared, other), []).append(other.name)
    return "; ".join(f"{listed(own)}, where {turned}" for turned, own in names.items())


def _turned_tests(declared: ChoiceOutcome, other: ChoiceOutcome) -> str:
    """The tests on which a choice says something else, and what."""
    labels = changed(declared, other)
    words = {"higher": "significantly higher", "lower": "significantly lower"}
    turned: dict[tuple[str, str], list[str]] = {}
    for label in labels:
        before, now = answer_of(declared.tests[label]), answer_of(other.tests.get(label))
        turned.setdefault((words.get(before, before), words.get(now, now)), []).append(label)
    parts = []
    for (before, now), own in turned.items():
        named = [f"“{label}”" for label in own[:MOST_NAMED]]
        more = [n_of(len(own) - MOST_NAMED, "other test")] if len(own) > MOST_NAMED else []
        parts.append(f"{listed([*named, *more])} {'turns' if len(own) == 1 else 'turn'} from {before} to {now}")
    return listed(parts)


def _table(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], shown: str, correction: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    is_percent = False
    has_several = len(declared.tests) > 1
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
                *(["" if is_untested else len(labels)] if has_several else []),
            )
        )
    return Table(
        NAME,
        "The primary comparison under other choices",
        (
            Column("choice", "Choice"),
            Column("estimate", "Estimate", "percent_estimate" if is_percent else "estimate"),
            Column("p", f"p ({correction_name(correction)})" if has_several else "p", "p_value"),
            Column("agrees", f"{SAME} in all {len(declared.tests)} tests" if has_several else SAME),
            *([Column("n_changed", f"Tests changed, of {len(declared.tests)}", "count")] if has_several else []),
        ),
        tuple(rows),
        caption=_units_caption(outcomes, shown, has_several=has_several),
    )


def _units_caption(outcomes: Sequence[ChoiceOutcome], shown: str, *, has_several: bool) -> str:
    """What the estimates are of, and how those in other units became comparable."""
    tests = [(outcome.kind, outcome.tests[shown]) for outcome in outcomes if shown in outcome.tests]
    words = [f"Estimates of “{shown}”."]
    if any("rescaled_by" in test.details for _, test in tests):
        words.append(
            "Those in other units are rescaled to the unit of the first row by the standard deviations of the judgments."
        )
    if any(kind == DIRECT_VOTES and test.unit == "log odds" for kind, test in tests):
        has_ties = any(outcome.kind == TIES for outcome in outcomes)
        ties = " (a tie counts half), which is not the model's strength" if has_ties else ""
        words.append(f"Direct votes are given as the log odds of the share of points{ties}.")
    if has_several:
        words.append("Confidence intervals are not corrected for the number of tests, p-values are.")
    return " ".join(words)


def _figure(comparison: Comparison, declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], shown: str) -> Figure:
    dots, is_percent, null, is_ratio = [], False, 0.0, False
    this = "This test: " if len(declared.tests) > 1 else ""
    same, other = (f"{this}{words.lower()}" if this else words for words in (SAME, OTHER))
    for outcome in (declared, *outcomes):
        test = outcome.tests.get(shown)
        if test is None or not test.is_known:
            continue
        made, is_share = shown_with_margin(test)
        is_percent, is_ratio = is_percent or is_share, is_ratio or bool(test.details.get("is_log"))
        null = 1.0 if is_ratio else float(test.details.get("null", 0.0))
        agrees = answer_of(test) == answer_of(declared.tests[shown])
        group = declared.kind if outcome is declared else same if agrees else other
        dots.append(Dot(outcome.name, made, group))
    bounds = _bounds(declared.tests[shown], is_ratio) if has_margin(comparison) else ()
    spec = dot_interval(
        sorted(dots, key=lambda dot: dot.group != declared.kind),
        value_title="share of choices" if is_percent else "ratio" if is_ratio else _difference(declared.tests[shown]),
        reference=null,
        bounds=bounds,
        is_percent=is_percent,
        group_order=(declared.kind, other, same),  # all three, so that a colour means the same in every report
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
        caption="Whether a row gives the same answer follows from its corrected test; the confidence intervals are not corrected."
        if len(declared.tests) > 1
        else "",
    )


def _difference(test: Estimate) -> str:
    """The title of an axis of differences, with what they are counted in."""
    counted = test.unit if test.unit == "log odds" else str(test.details.get("quantity", ""))
    return (
        "difference of shares"
        if counted == PERCENTAGE_POINTS
        else f"difference, {counted}"
        if counted
        else "difference"
    )


def _p(declared: ChoiceOutcome, outcomes: Sequence[ChoiceOutcome], name: str, shown: str) -> str:
    return p_words(p_adjusted(_named([declared, *outcomes], name).tests[shown]))


def _bounds(test: Estimate, is_ratio: bool) -> list[float]:
    ends = [float(test.details.get(f"{end}_bound", math.inf)) for end in ("lower", "upper")]
    return [math.exp(end) if is_ratio else end for end in ends if math.isfinite(end)]
