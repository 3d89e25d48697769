"""Declared tests with a margin: the estimates that a family makes anyway, tested for equivalence or non-inferiority.

One place for all families. A family gives its contrasts with their standard errors and names (``comparisons.between``);
:func:`decided` turns them into the tests that the comparison declares and corrects them as one family of tests. What comes
out is what the report shows, what decides the headline, and what power analysis repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import within
from dialometer.analysis.base.wording import (
    as_ratio,
    confidence_words,
    interval_only,
    listed,
    n_of,
    number,
    p_words,
    percent,
)
from dialometer.analysis.shared.comparisons import corrected_by_name, is_significant, p_adjusted
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.stats.effects.equivalence import equivalence

WORDS = {"equivalence": "equivalence", "non_inferiority": "non-inferiority"}


def has_margin(comparison: Comparison) -> bool:
    """Whether the comparison is to show that a difference is small, and not that there is one."""
    return comparison.test != "difference" and comparison.margin is not None


def differences_of(study: Study) -> list[Comparison]:
    """The declared comparisons that are to show a difference; those with a margin have a section of their own."""
    return [comparison for comparison in study.spec.analysis.comparisons if not has_margin(comparison)]


def decided(tests: Mapping[str, Estimate], comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """The tests that the comparison declares, corrected as one family.

    For non-inferiority only pairs with the reference count.
    """
    if not has_margin(comparison):
        return corrected_by_name(tests, options)
    kept = {
        label: _with_margin(estimate, comparison, options)
        for label, estimate in tests.items()
        if comparison.reference is None
        or comparison.reference in (estimate.details.get("first"), estimate.details.get("second"))
    }
    return corrected_by_name(kept, options)


def _with_margin(estimate: Estimate, comparison: Comparison, options: Options) -> Estimate:
    low, high = bounds(estimate, comparison)
    tested = equivalence(estimate, low, high, confidence=options.confidence)
    alpha = 1 - options.confidence
    return replace(tested, details={**estimate.details, **tested.details, "alpha": alpha}, unit=estimate.unit)


def bounds(estimate: Estimate, comparison: Comparison) -> tuple[float, float]:
    """Between which values the true difference must lie, in the unit of the estimate; infinite where any will do."""
    margin = comparison.margin or math.nan
    null = float(estimate.details.get("null", 0.0))
    size = math.log(margin) if estimate.details.get("is_log") else margin
    low, high = null - size, null + size
    if comparison.test == "non_inferiority":
        return (low, math.inf) if estimate.details.get("second") == comparison.reference else (-math.inf, high)
    return low, high


def margin_words(comparison: Comparison, estimates: Iterable[Estimate]) -> str:
    """The margin in the unit of the estimates: "0.3 points", "a ratio of 1.25", "5 percentage points"."""
    margin = comparison.margin or math.nan
    given = list(estimates)
    if any(estimate.details.get("is_log") for estimate in given):
        return f"a ratio of {number(margin)}"
    if any(float(estimate.details.get("null", 0.0)) == 0.5 for estimate in given):
        return f"{number(100 * margin, 1)} percentage points"
    return f"{number(margin)} {given[0].unit if given and given[0].unit else 'points'}"


def shown_with_margin(estimate: Estimate) -> tuple[Estimate, bool]:
    """The estimate as a reader wants it, and whether it is a percentage: ratios instead of logarithms."""
    if estimate.details.get("is_log") and estimate.is_known:
        return as_ratio(estimate), False
    is_share = float(estimate.details.get("null", 0.0)) == 0.5
    return (within(estimate, 0.0, 1.0) if is_share else estimate), is_share


def is_outside(estimate: Estimate) -> bool:
    """Whether the difference is larger than the margin (the system inferior): a test of its own, by Bonferroni."""
    beyond = 1 - estimate.p_value
    n_tests = int(estimate.details.get("n_tests", 1))
    sides = 2 if all(math.isfinite(estimate.details.get(f"{end}_bound", math.inf)) for end in ("lower", "upper")) else 1
    return beyond * sides * n_tests <= float(estimate.details.get("alpha", 0.0))


def verdict(estimate: Estimate, comparison: Comparison) -> str:
    """What came of one test: "equivalent", "not shown to be equivalent" and their like."""
    if math.isnan(p_adjusted(estimate)):
        return "no test"
    if comparison.test == "equivalence":
        if is_significant(estimate):
            return "equivalent"
        return "different by more than the margin" if is_outside(estimate) else "not shown to be equivalent"
    if is_significant(estimate):
        return "not inferior"
    return "inferior" if is_outside(estimate) else "not shown to be non-inferior"


def test_sentence(label: str, estimate: Estimate, comparison: Comparison) -> str:
    """One test in a sentence with its interval and p-value."""
    if math.isnan(p_adjusted(estimate)):
        why = f": {estimate.notes[-1]}" if estimate.notes else ""
        return f"{label}: no test{why}."
    shown, is_percent = shown_with_margin(estimate)
    value = percent(shown.value) if is_percent else number(shown.value)
    return (
        f"{label}: {verdict(estimate, comparison)} ({value}, {interval_only(shown, is_percent=is_percent)}, "
        f"corrected {p_words(p_adjusted(estimate))})."
    )


AGAINST = " against "
"""What stands between the two of a pair in the labels of tests."""


def answer_words(tests: Mapping[str, Estimate], comparison: Comparison) -> str:
    """The answer of a comparison with a margin, first of all in a report."""
    within = f"within {margin_words(comparison, tests.values())}"
    shown = [label for label, test in tests.items() if is_significant(test)]
    outside = [label for label, test in tests.items() if is_outside(test) and not is_significant(test)]
    is_equivalence = comparison.test == "equivalence"
    if not tests or all(math.isnan(p_adjusted(test)) for test in tests.values()):
        return f"{WORDS[comparison.test].capitalize()} cannot be tested with these data."
    if len(shown) == len(tests):
        return _all_shown(tests, comparison, within)
    rest = f"; it is shown for {listed(shown)}" if shown else ""
    beyond = f" {listed(outside)} {'differs' if len(outside) == 1 else 'differ'} by more." if outside else ""
    left = [label for label in tests if label not in shown]
    if is_equivalence:
        return f"Equivalence {within} is not shown for {listed(left)}{rest}.{beyond}"
    worse = f" {listed(outside)}: inferior." if outside else ""
    return f"Non-inferiority {within} is not shown for {listed(left)}{rest}.{worse}"


def _all_shown(tests: Mapping[str, Estimate], comparison: Comparison, within: str) -> str:
    """What every test shows; a single pair is named."""
    label = next(iter(tests)) if len(tests) == 1 else ""
    first, _, second = label.rpartition(AGAINST)
    if label and not first:
        return f"{label}: {verdict(tests[label], comparison)} {within}."
    if comparison.test == "equivalence":
        pairs = f"{first} and {second} are" if label else f"All {n_of(len(tests), 'pair')} are"
        return f"{pairs} equivalent {within}."
    pairs = (
        f"{first} is not inferior to {second}"
        if label
        else f"In all {n_of(len(tests), 'pair')} the first is not inferior"
    )
    return f"{pairs}, with a margin of {within.removeprefix('within ')}."


def plan_words(comparison: Comparison, confidence: float) -> str:
    """The declared test in a sentence, for preregistrations and reports; empty for a test of a difference."""
    if not has_margin(comparison):
        return ""
    inner = confidence_words(1 - 2 * (1 - confidence))
    if comparison.test == "equivalence":
        return (
            f"Test of equivalence with a margin of {comparison.margin:g}: two one-sided tests, each at "
            f"{1 - confidence:.2g}. Two systems are called equivalent where the {inner} confidence interval of their "
            "difference lies within the margin; a difference that is not significant is not called equivalence."
        )
    return (
        f"Test of non-inferiority to {comparison.reference} with a margin of {comparison.margin:g}: one-sided at "
        f"{1 - confidence:.2g}. A system is called not inferior where the {inner} confidence interval excludes that it is "
        "worse by the margin or more."
    )
