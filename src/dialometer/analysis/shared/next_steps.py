"""What to do next, derived from the verdict on the primary hypothesis: write it up, or collect so much more.

How much more comes from the variance that was observed: the standard error falls with the square root of the data, and the
degrees of freedom grow with it, so the factor by which raters and items must grow for a power of 80 % solves
``effect / (se / sqrt(factor)) = t(1 - alpha/2) + t(0.8)`` at the corrected level (Cohen 1988, ch. 2). Where raters and items
both are samples, both grow by the factor: the variance of a crossed design falls at least as fast. For one sample of raters
this is statsmodels' ``TTestPower.solve_power`` but for its noncentral t (tests/analysis/test_verdicts.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats

from dialometer.analysis.base.wording import listed, n_of, value_only
from dialometer.analysis.shared.comparisons import p_adjusted
from dialometer.analysis.shared.equivalence import has_margin
from dialometer.analysis.shared.verdicts import DeclaredHypothesis
from dialometer.model.estimate import Estimate
from dialometer.model.report import Section, Table

POWER = 0.8
MOST_TIMES = 20
"""A design that would have to grow more than this is not worth growing."""

WRITE_UP = (
    "Write it up: report the estimate, its confidence interval and the corrected p-value of the confirmatory test. The tables "
    "are beside this report as CSV and LaTeX."
)
NEW_STUDY = (
    "Plan this as a new study: adding raters to this one until the result is significant inflates false positives."
)
CONTRADICTED = "The hypothesis is contradicted: report it as declared, and do not replace it by a new one."
DECLARE = (
    "Treat these results as exploratory. Declare the comparison that matters under 'analysis:' in study.yaml, freeze the study "
    "and test it with new raters."
)
FOR_REAL_DATA = (WRITE_UP, CONTRADICTED, NEW_STUDY)
"""Steps that make no sense after a simulation."""


def growth(test: Estimate, confidence: float) -> float:
    """The factor by which the data must grow for 80% power at the estimated effect; infinite without an effect."""
    effect = abs(test.value - float(test.details.get("null", 0.0)))
    df = float(test.df[-1]) if test.df and math.isfinite(test.df[-1]) else math.inf
    error = standard_error(test, df)
    if not (effect > 0 and error > 0 and math.isfinite(error)):
        return math.inf
    alpha = float(test.details.get("level_this_look", 1 - confidence))
    if p_adjusted(test) > 0 and test.p_value > 0:
        alpha *= min(1.0, test.p_value / p_adjusted(test))
    factor = 1.0
    for _ in range(200):
        grown = (df + 1) * factor - 1 if math.isfinite(df) else math.inf
        wanted = float(stats.t.ppf(1 - alpha / 2, grown) + stats.t.ppf(POWER, grown)) ** 2 * (error / effect) ** 2
        if abs(wanted - factor) < 1e-6 * factor:
            break
        factor = (factor + min(max(wanted, 1.0), 1e6)) / 2
    return factor


def standard_error(test: Estimate, df: float = math.inf) -> float:
    """The standard error behind a test: from its statistic, or else from its confidence interval."""
    effect = test.value - float(test.details.get("null", 0.0))
    if math.isfinite(test.statistic) and test.statistic and effect:
        return abs(effect / test.statistic)
    if test.has_interval:
        return (test.high - test.low) / (2 * float(stats.t.ppf((1 + test.confidence) / 2, df)))
    return math.nan


def next_steps(tested: Sequence[DeclaredHypothesis], n_raters: int, n_items: int) -> tuple[str, ...]:
    """The steps that follow from the primary hypothesis, or from the first where none is primary."""
    if not tested:
        return (DECLARE,)
    main = next((one for one in tested if one.is_primary), tested[0])
    if main.problem or not main.relevant:
        return ()
    if main.result == "supported":
        return (WRITE_UP,)
    if main.result == "contradicted":
        return (WRITE_UP, CONTRADICTED)
    if has_margin(main.comparison):
        return ("Collect more judgments, or accept a larger margin in the next study: dialometer power says how many.",)
    return (_collect(main, n_raters, n_items), NEW_STUDY)


SLIGHT = 0.2
"""Below it Landis and Koch (1977) call agreement slight."""


def alpha_steps(section: Section) -> tuple[str, ...]:
    """What to do where raters hardly agree in their choices: ask another question, or show them differently."""
    low = []
    for table in (part for part in section.parts if isinstance(part, Table)):
        names = [column.name for column in table.columns]
        if "alpha" not in names:
            continue
        for row in table.rows:
            alpha = row[names.index("alpha")]
            if isinstance(alpha, Estimate) and alpha.is_known and round(alpha.value, 2) < SLIGHT:
                low.append(f"“{row[0]}” (Krippendorff's alpha {value_only(alpha)})")
    if not low:
        return ()
    return (
        f"Raters hardly agree on {listed(low)}: if single items matter, ask a more concrete question, explain it with examples, "
        "or collect more raters per item.",
    )


def _collect(main: DeclaredHypothesis, n_raters: int, n_items: int) -> str:
    known = [test for test in main.open_tests if test.is_known]
    left = [
        test for test in known if not math.isnan(standard_error(test))
    ]  # an estimate alone says nothing about more data
    against = [test for test in left if main.comparison.expected and _is_below(test)]
    if not left and n_raters == 1:
        return "Collect judgments of more raters: one rater says nothing about others."
    if not left:
        return "Collect judgments on what could not be tested yet."
    if against:
        return (
            f"Not every estimate points in the expected direction ({main.in_short(against[0])}): more data support the "
            "hypothesis only if that turns round. Reconsider it before collecting more."
        )
    factor = _needed(main, left)
    if factor > MOST_TIMES:
        return (
            f"The undecided difference is estimated to be so small ({main.in_short(_smallest(left))}) that showing it would take more "
            f"than {MOST_TIMES} times the data. To show that there is no difference that matters, declare "
            "'test: equivalence' with a margin in the next study."
        )
    n_raters, n_items = (
        max((int(test.details.get(key, n)) for test in left), default=n)
        for key, n in (("n_raters", n_raters), ("n_questions", n_items))
    )
    is_talk = main.study.spec.items.kind == "chat"  # there the tests know whether tasks are a sample
    if is_talk:
        n_items = max((int(test.details.get("n_items", 1)) for test in left), default=1)
    raters, items = (math.ceil(factor * n) for n in (n_raters, n_items))
    grown, now = n_of(raters, "rater"), f"now {n_raters:,}"
    # Between conditions raters differ, not items: every condition has the same items.
    if main.comparison.between == "systems" and not main.options.has_fixed_items and n_items > 1:
        noun = "task" if is_talk else "question" if any("n_questions" in test.details for test in left) else "item"
        grown += f" and {n_of(items, noun)}"
        now += f" and {n_items:,}"
    return (
        f"If {'the difference is' if len(left) == 1 else 'the undecided differences are'} as large as estimated here, about "
        f"{grown} ({now}) would show {'it' if len(left) == 1 else 'them'} with {POWER:.0%} power. "
        "Check this with dialometer power before collecting."
    )


def _needed(main: DeclaredHypothesis, left: Sequence[Estimate]) -> float:
    """For an expected direction the test that needs most; else the easiest test of each criterion."""
    needs = [(test, growth(test, main.options.confidence)) for test in left]
    if main.comparison.expected:
        return max(factor for _, factor in needs)
    by_group: dict[object, list[float]] = {}
    for test, factor in needs:
        by_group.setdefault((test.details.get("about"), test.details.get("quantity")), []).append(factor)
    return max(min(factors) for factors in by_group.values())


def _smallest(tests: Sequence[Estimate]) -> Estimate:
    return max(tests, key=lambda test: test.p_value if not math.isnan(test.p_value) else 0.0)


def _is_below(test: Estimate) -> bool:
    return test.value <= float(test.details.get("null", 0.0))
