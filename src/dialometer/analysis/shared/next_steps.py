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

from dialometer.analysis.base.wording import listed, n_of, percent, value_only
from dialometer.analysis.shared.comparisons import p_adjusted
from dialometer.analysis.shared.effect_words import is_tie
from dialometer.analysis.shared.equivalence import has_margin
from dialometer.analysis.shared.verdicts import DeclaredHypothesis
from dialometer.model.estimate import Estimate
from dialometer.model.report import Section, Table
from dialometer.quality.gold import gold_items

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
    if not left and n_raters == 1:
        return "Collect judgments of more raters: one rater says nothing about others."
    if not left:
        return "Collect judgments on what could not be tested yet."
    against = [test for test in left if main.comparison.expected and _is_below(test) and not is_tie(test)]
    if against:
        return _reconsider(main, against)
    needs = sorted(((growth(test, main.options.confidence), test) for test in left), key=lambda need: need[0])
    deciding = needs if main.comparison.expected else _easiest(needs)
    factor = deciding[-1][0]
    if factor > MOST_TIMES:
        return _too_small(main, needs, deciding)
    if len(left) == 1:
        size, shows, rest = "the difference is", "it", ""
    elif len(deciding) == len(left):
        size, shows, rest = "the undecided differences are", "each of them", ""
    else:
        names = listed(main.named(test) for _, test in deciding)
        clearest = "one" if len(deciding) == 1 else "ones"
        size, shows = "the undecided differences are", f"the clearest {clearest} ({names})"
        rest = ", which is enough for this hypothesis; the others need more"
    return (
        f"If {size} as large as estimated here, about {_design(main, factor, left, n_raters, n_items)} would show {shows} with "
        f"{percent(POWER)} power{rest}. Check this with dialometer power before collecting."
    )


def _reconsider(main: DeclaredHypothesis, against: Sequence[Estimate]) -> str:
    """What to do where estimates point against the hypothesis; quoted is the one that does so most, in standard errors."""
    n = len([test for test in main.relevant if test.is_known])
    worst = min(against, key=lambda test: (test.value - float(test.details.get("null", 0.0))) / standard_error(test))
    example = main.in_short(worst)
    if n == 1:
        sentence = f"The estimate points against the expected direction ({example})"
    elif len(against) == n:
        sentence = f"None of the {n} estimates points in the expected direction (furthest from it: {example})"
    elif len(against) == 1:
        sentence = f"1 of {n} estimates does not point in the expected direction ({example})"
    else:
        sentence = (
            f"{len(against)} of {n} estimates do not point in the expected direction (furthest from it: {example})"
        )
    return (
        f"{sentence}: more data can support the hypothesis only if the direction reverses. Keep the hypothesis as declared; put a "
        "changed one to the test in a new study."
    )


def _easiest(needs: Sequence[tuple[float, Estimate]]) -> list[tuple[float, Estimate]]:
    """Of sorted tests with what they need, the easiest of each criterion: without a direction one difference is enough."""
    by_group: dict[object, tuple[float, Estimate]] = {}
    for factor, test in needs:
        by_group.setdefault((test.details.get("about"), test.details.get("quantity")), (factor, test))
    return list(by_group.values())


def _too_small(
    main: DeclaredHypothesis, needs: Sequence[tuple[float, Estimate]], deciding: Sequence[tuple[float, Estimate]]
) -> str:
    """What to do where a difference that has to be shown is hopelessly small, and how large the others are."""
    least, largest = needs[0]
    smallest = main.in_short(deciding[-1][1])
    times = f"would take more than {MOST_TIMES} times the data"
    if least > MOST_TIMES:
        found = (
            f"The undecided difference is estimated to be so small ({smallest}) that showing it {times}"
            if len(needs) == 1
            else f"The {len(needs)} undecided differences are estimated to be so small (the largest: {main.in_short(largest)}) that "
            f"showing any of them {times}"
        )
        return (
            f"{found}. To show that there is no difference that matters, declare 'test: equivalence' with a margin in the next "
            "study."
        )
    which = "the smallest" if len(deciding) == len(needs) else "one that the hypothesis needs"
    return (
        f"Of the {len(needs)} undecided differences, {which} is estimated to be so small ({smallest}) that showing it {times}; the "
        f"largest ({main.in_short(largest)}) would take about {least:.2g} times. A new study can hardly show all of them: declare the "
        "ones that matter."
    )


def _design(main: DeclaredHypothesis, factor: float, left: Sequence[Estimate], n_raters: int, n_items: int) -> str:
    """The design grown by a factor, beside the present one: "24 raters and 48 items (now 10 and 20)"."""
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
    if main.comparison.between != "systems" or main.options.has_fixed_items or n_items <= 1:
        return f"{grown} ({now})"
    n_scored = len({item.id for item in main.study.rated_items} - set(gold_items(main.study)))
    if main.study.spec.analysis.judges is not None and n_scored > n_items:
        scored = f"{n_of(math.ceil(items * n_scored / n_items), 'item')} scored by judges (now {n_scored:,})"
        return f"{grown} ({now}), {n_of(items, 'item')} rated by them (now {n_items:,}) and {scored}"
    noun = "task" if is_talk else "question" if any("n_questions" in test.details for test in left) else "item"
    return f"{grown} and {n_of(items, noun)} ({now} and {n_items:,})"


def _is_below(test: Estimate) -> bool:
    return test.value <= float(test.details.get("null", 0.0))
