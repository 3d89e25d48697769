"""The comparison of systems by self-ratings, in words, tables and a figure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dialometer.analysis.family import Options
from dialometer.analysis.leader import CORRECTIONS, difference, p_adjusted, standing_words
from dialometer.analysis.self_comparison import SystemRatings
from dialometer.analysis.words import listed, number, p_words, with_interval
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval


def comparison_section(name: str, compared: list[SystemRatings], options: Options) -> Section:
    """Means and differences for every criterion, declared ones marked."""
    paragraphs = [_words(one, options) for one in compared]
    first = compared[0].ratings
    n_both = max((one.n for pair in compared for one in pair.flipped.values()), default=0)
    if len(first.systems) > 1:
        paragraphs.append(
            f"Ratings of one rater go together, so raters are clusters in all intervals and tests; {n_both:,} of "
            f"{first.n_raters:,} raters talked with more than one system, and their differences count as pairs."
        )
    parts: list[Table | Figure] = [_figure(name, compared), _means_table(name, compared)]
    for is_declared in (True, False):
        table = _pairs_table(name, compared, options, is_declared=is_declared)
        if table.rows:
            parts.append(table)
    return Section(
        name,
        "Which system is rated higher",
        tuple(paragraphs),
        tuple(parts),
        is_confirmatory=any(one.declared for one in compared),
    )


def _words(one: SystemRatings, options: Options) -> str:
    if one.lead is None:
        return f"{one.ratings.label}: no ratings yet."
    means = listed(f"{system} {number(mean.value)}" for system, mean in one.means.items() if mean.is_known)
    text = f"{one.ratings.label}: {means} on average."
    if len(one.means) < 2:
        return f"{text} There is one system only, so nothing to compare it with."
    if len(one.means) == 2:
        return f"{text} {_two_words(one)}"
    if one.overall is not None and not math.isnan(one.overall.p_value):
        text += f" All systems together: {p_words(one.overall.p_value)}."
    return f"{text} {standing_words(one.lead, one.pairs, options.correction)}"


def _two_words(one: SystemRatings) -> str:
    """The difference of two systems in a sentence, as large as it is certain."""
    assert one.lead is not None
    best = one.lead.best
    other = next(system for system in one.means if system != best)
    gap = difference(one.pairs, best, other)
    if gap is None or not gap.is_known:
        return f"The difference cannot be tested: {'; '.join(gap.notes) if gap else 'a system has no ratings'}."
    verb = "is rated higher than" if one.lead.behind else "cannot be told from"
    p = p_adjusted(gap)
    n_tests = int(gap.details.get("n_tests", 1))
    counted = f" (corrected for {n_tests} tests)" if n_tests > 1 and p != gap.p_value else ""
    text = f"{best} {verb} {other}: difference {with_interval(gap)}, {p_words(p)}{counted}"
    pair = (best, other) if (best, other) in one.higher else (other, best)
    share = one.higher[pair]
    if share.is_known:
        value = share.value if pair[0] == best else 1 - share.value
        text += (
            f"; {number(100 * value, 0)}% of raters who talked with both rate {best} higher (equal ratings count half)"
        )
    check, alpha = one.flipped[pair].p_value, 1 - gap.confidence
    if not math.isnan(check) and (gap.p_value <= alpha) != (check <= alpha):
        text += f". A test without assumptions gives {p_words(check)} before correction, so take it with care"
    return f"{text}."


def _means_table(name: str, compared: list[SystemRatings]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in compared:
        for system, mean in one.means.items():
            values = one.ratings.value[one.ratings.of(system)]
            spread = float(values.std(ddof=1)) if len(values) > 1 else None
            rows.append((one.ratings.label, system, mean, spread, float(np.median(values)), len(values)))
    return Table(
        name,
        "Average rating by system",
        (
            Column("criterion", "Criterion"),
            Column("system", "System"),
            Column("mean", "Average rating", "estimate"),
            Column("sd", "SD", "number"),
            Column("median", "Median", "number", 1),
            Column("n", "Conversations", "count"),
        ),
        tuple(rows),
    )


def _pairs_table(name: str, compared: list[SystemRatings], options: Options, *, is_declared: bool) -> Table:
    has_correction = options.correction in CORRECTIONS
    columns = [
        Column("criterion", "Criterion"),
        Column("first", "System"),
        Column("second", "compared with"),
        Column("difference", "Difference in rating", "estimate"),
        Column("p", "p", "p_value"),
        *([Column("p_adjusted", f"p ({CORRECTIONS[options.correction]})", "p_value")] if has_correction else []),
        Column("higher", "Raters who rate it higher", "percent_estimate"),
        Column("flipped", "p, signs flipped", "p_value"),
        Column("n_both", "Raters with both", "count"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for one in compared:
        for (first, second), gap in one.pairs.items():
            if ((first, second) in one.declared) is not is_declared:
                continue
            is_turned = gap.is_known and gap.value < 0
            shown = difference(one.pairs, second, first) if is_turned else gap
            share, flipped = one.higher[first, second], one.flipped[first, second]
            if is_turned and share.is_known:
                share = replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)
            names = (second, first) if is_turned else (first, second)
            corrected = (_p(p_adjusted(gap)),) if has_correction else ()
            rows.append(
                (
                    one.ratings.label,
                    *names,
                    shown,
                    _p(gap.p_value),
                    *corrected,
                    share,
                    _p(flipped.p_value),
                    share.n,
                )
            )
    return Table(
        f"{name}_declared" if is_declared else f"{name}_exploratory",
        "Systems compared" if is_declared else "Systems compared (not declared)",
        tuple(columns),
        tuple(rows),
        caption="Differences of means with raters as clusters (CR2). Beside them, for raters who talked with both: the share who "
        "rate the first higher (equal ratings count half), and the p value of a test that flips the sign of each rater's "
        "difference and assumes nothing else. P values are corrected over the tests of the primary comparison, over those of "
        "all other declared ones, and over those that were not declared.",
        is_confirmatory=is_declared,
    )


def _p(value: float) -> float | None:
    return None if math.isnan(value) else value


def _figure(name: str, compared: list[SystemRatings]) -> Figure:
    several = len(compared) > 1
    dots = [
        Dot(system, mean, facet=one.ratings.label if several else "")
        for one in compared
        for system, mean in one.means.items()
    ]
    told = "; ".join(
        f"{one.ratings.label}: {listed(f'{s} {number(m.value)}' for s, m in one.means.items() if m.is_known)}"
        for one in compared
    )
    low, high = compared[0].ratings.ends
    is_shared = len({one.ratings.ends for one in compared}) == 1
    return Figure(
        f"{name}_figure",
        "Average rating by system",
        dot_interval(
            dots,
            value_title=f"average rating ({low:g} to {high:g})" if is_shared else "average rating",
            domain=(low, high) if is_shared else None,
        ),
        alt=f"Average ratings with intervals. {told}.",
    )
