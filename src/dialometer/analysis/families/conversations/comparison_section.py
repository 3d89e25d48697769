"""What a report says and shows of systems compared by those who talked with them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, number, p_words, percent, with_interval
from dialometer.analysis.families.conversations.comparison import OTHER_TASKS, Pair, SystemComparison
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    comparison_title,
    p_adjusted,
    p_cell,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.ranking import difference, lead_words
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval


def comparison_section(name: str, compared: list[SystemComparison], options: Options) -> Section:
    """The declared tests and the means; where nothing was declared, every difference in words and numbers."""
    has_declared = any(comparison.declared for comparison in compared)
    paragraphs = [] if has_declared else [_words(comparison, options) for comparison in compared]
    first = compared[0].ratings
    met = pl.DataFrame({"rater": first.rater, "system": first.system.astype(str)}).unique()
    n_both = met.filter(pl.col("rater").is_duplicated())["rater"].n_unique()
    if len(first.systems) > 1:
        who = f"all {n_both:,}" if n_both == first.n_raters else f"{n_both:,} of {first.n_raters:,}"
        paragraphs.append(
            f"Ratings of one rater are correlated, so raters are clusters in all confidence intervals and tests; {who} "
            f"raters talked with more than one system, and their differences count as pairs."
        )
    if any(OTHER_TASKS in gap.notes for comparison in compared for gap in comparison.pairs.values()):
        paragraphs.append(
            "Systems that had no task in common are not compared with each other: a difference could come from the task."
        )
    tables = [_declared_table(name, compared, options) if has_declared else _open_table(name, compared, options)]
    parts: list[Table | Figure] = [table for table in tables if table.rows]
    parts += [_figure(name, compared), _means_table(name, compared)]
    return Section(name, "Which system is rated higher", tuple(paragraphs), tuple(parts), is_confirmatory=has_declared)


def other_pairs_section(name: str, compared: list[SystemComparison], options: Options) -> Section | None:
    """Differences that nobody declared, beside those that were; None where there are none to test."""
    tested = [c.pairs[pair] for c in compared for pair in c.others if OTHER_TASKS not in c.pairs[pair].notes]
    if not any(comparison.declared for comparison in compared) or not tested:
        return None
    paragraphs = [_words(comparison, options) for comparison in compared if comparison.others]
    table = _open_table(name.removesuffix("_others"), compared, options)
    return Section(name, "Other comparisons of systems", tuple(paragraphs), (table,))


def _words(comparison: SystemComparison, options: Options) -> str:
    if comparison.lead is None:
        return f"{comparison.ratings.label}: no ratings yet."
    means = listed(f"{system} {number(mean.value)}" for system, mean in comparison.means.items() if mean.is_known)
    text = f"{comparison.ratings.label}: {means} on average."
    if len(comparison.means) < 2:
        return f"{text} There is one system only, so nothing to compare it with."
    if len(comparison.means) == 2:
        return f"{text} {_two_words(comparison)}"
    if comparison.overall is not None and not math.isnan(comparison.overall.p_value):
        text += f" All systems together: {p_words(comparison.overall.p_value)}."
    text += f" {lead_words(comparison.lead, comparison.pairs, 'none')}{_correction_words(comparison, options)}"
    if comparison.in_part:
        text += " Systems that did not have the same tasks are compared on those that both had, not by these averages."
    return text


def _correction_words(comparison: SystemComparison, options: Options) -> str:
    """For how many tests the p-values of a sentence are corrected; those of declared comparisons have a family of their own."""
    n_tests = max((int(gap.details.get("n_tests", 1)) for gap in comparison.pairs.values()), default=1)
    if options.correction not in CORRECTIONS or n_tests < 2:
        return ""
    name = CORRECTIONS[options.correction]
    if comparison.declared:
        return f" p-values are corrected ({name}), those of confirmatory comparisons among their own tests."
    return f" p-values are corrected for {n_tests} tests ({name})."


def _two_words(comparison: SystemComparison) -> str:
    """The difference of two systems in a sentence, as large as it is certain."""
    assert comparison.lead is not None
    best = comparison.lead.best
    other = next(system for system in comparison.means if system != best)
    gap = difference(comparison.pairs, best, other)
    if gap is None or not gap.is_known:
        return f"The difference cannot be tested: {'; '.join(gap.notes) if gap else 'a system has no ratings'}."
    verb = "is rated higher than" if comparison.lead.behind else "does not differ significantly from"
    p = p_adjusted(gap)
    n_tests = int(gap.details.get("n_tests", 1))
    counted = f" (corrected for {n_tests} tests)" if n_tests > 1 and p != gap.p_value else ""
    text = f"{best} {verb} {other}: difference {with_interval(gap)}, {p_words(p)}{counted}"
    pair = (best, other) if (best, other) in comparison.higher else (other, best)
    share = comparison.higher[pair]
    if share.is_known:
        value = share.value if pair[0] == best else 1 - share.value
        text += f"; {percent(value)} of raters who talked with both rate {best} higher (equal ratings count half)"
    check, alpha = comparison.flipped[pair].p_value, 1 - gap.confidence
    if not math.isnan(check) and (gap.p_value <= alpha) != (check <= alpha):
        text += f". A permutation test gives {p_words(check)} before correction, so take it with care"
    return f"{text}."


def _means_table(name: str, compared: list[SystemComparison]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for comparison in compared:
        for system, mean in comparison.means.items():
            values = comparison.ratings.value[comparison.ratings.of(system)]
            spread = float(values.std(ddof=1)) if len(values) > 1 else None
            rows.append((comparison.ratings.label, system, mean, spread, float(np.median(values)), len(values)))
    return Table(
        name,
        "Average rating by system",
        (
            Column("criterion", "Criterion"),
            Column("system", "System"),
            Column("mean", "Average rating", "estimate"),
            Column("sd", "SD", "number"),
            Column("median", "Median", "number", 1),
            Column("n", "Dialogues", "count"),
        ),
        tuple(rows),
    )


_CHECKS = (
    "Beside them, for raters who talked with both: the share who rate the first higher (equal ratings count half), and the "
    "p-value of a test that flips the sign of each rater's difference and assumes nothing else."
)


def _pair_columns(options: Options) -> tuple[Column, ...]:
    return (
        Column("criterion", "Criterion"),
        Column("first", "System"),
        Column("second", "Compared with"),
        Column("difference", "Difference in rating", "estimate"),
        *p_columns(options.correction),
        Column("higher", "Raters who rate it higher", "percent_estimate"),
        Column("flipped", "p, signs flipped", "p_value"),
        Column("n_both", "Raters with both", "count"),
    )


def _pair_row(
    label: str, test: tuple[Pair, Estimate, Estimate, Estimate], options: Options, wanted: Pair | None = None
) -> tuple[Cell, ...]:
    """One difference: the way round that is wanted, else the higher system first."""
    pair, gap, share, flipped = test
    is_turned = pair[::-1] == wanted if wanted else gap.is_known and gap.value < 0
    names = pair[::-1] if is_turned else pair
    if is_turned and share.is_known:
        share = replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)
    return (
        label,
        *names,
        difference({pair: gap}, *names),
        *p_cells(gap, options.correction),
        share,
        p_cell(flipped.p_value),
        share.n,
    )


def _declared_table(name: str, compared: list[SystemComparison], options: Options) -> Table:
    """The declared tests; with an expected direction, the system that is expected to be higher comes first."""
    tests = [(comparison.ratings.label, test) for comparison in compared for test in comparison.declared]
    order = list(dict.fromkeys(test.comparison.name for _, test in tests))
    rows = [
        (
            comparison_title(test.comparison),
            *_pair_row(label, (test.pair, test.gap, test.higher, test.flipped), options, test.expected),
        )
        for label, test in sorted(tests, key=lambda row: order.index(row[1].comparison.name))
    ]
    return Table(
        f"{name}_declared",
        "Systems compared",
        (Column("comparison", "Comparison"), *_pair_columns(options)),
        tuple(rows),
        caption=f"{_sample_words(compared)} {_CHECKS}{_block_words(compared)} p-values are corrected over the tests of "
        "each comparison.",
        is_confirmatory=True,
    )


def _open_table(name: str, compared: list[SystemComparison], options: Options) -> Table:
    rows = [
        _pair_row(c.ratings.label, (pair, c.pairs[pair], c.higher[pair], c.flipped[pair]), options)
        for c in compared
        for pair in c.others
    ]
    return Table(
        f"{name}_exploratory",
        "Systems compared",
        _pair_columns(options),
        tuple(rows),
        caption=f"{_sample_words(compared)} {_CHECKS} p-values are corrected over all tests of this table.",
    )


def _block_words(compared: list[SystemComparison]) -> str:
    """Why a difference need not be that of the averages below, where comparisons are limited to blocks."""
    is_limited = any(one.comparison.blocks for comparison in compared for one in comparison.declared)
    return (
        " A comparison uses the dialogues of its own blocks, the averages below those of all blocks."
        if is_limited
        else ""
    )


def _sample_words(compared: list[SystemComparison]) -> str:
    """What intervals and tests take as samples."""
    if any("two-way" in gap.method for comparison in compared for gap in comparison.pairs.values()):
        return "Differences of means with raters and tasks as samples (two-way jackknife)."
    return "Differences of means with raters as clusters (CR2); the tasks are those of this study."


def _figure(name: str, compared: list[SystemComparison]) -> Figure:
    several = len(compared) > 1
    dots = [
        Dot(system, mean, facet=comparison.ratings.label if several else "")
        for comparison in compared
        for system, mean in comparison.means.items()
    ]
    details = "; ".join(
        f"{comparison.ratings.label}: {listed(f'{s} {number(m.value)}' for s, m in comparison.means.items() if m.is_known)}"
        for comparison in compared
    )
    low, high = compared[0].ratings.ends
    is_shared = len({comparison.ratings.ends for comparison in compared}) == 1
    return Figure(
        f"{name}_figure",
        "Average rating by system",
        dot_interval(
            dots,
            value_title=f"average rating ({low:g} to {high:g})" if is_shared else "average rating",
            domain=(low, high) if is_shared else None,
        ),
        alt=f"Average ratings with confidence intervals. {details}.",
    )
