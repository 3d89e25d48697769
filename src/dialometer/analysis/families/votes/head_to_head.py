"""Who beat whom: votes between every two systems, without a model of their strengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, percent
from dialometer.analysis.families.votes.sections import MOST_IN_MATRIX, known_cell, p_cell
from dialometer.analysis.families.votes.standings import Standing
from dialometer.analysis.shared.ranking import CORRECTIONS, p_adjusted
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import HeatCell, heatmap
from dialometer.stats.ranking.bradley_terry import BradleyTerry

MOST_IN_TEST_TABLE = 12


def head_to_head_section(
    main: Standing, others: Sequence[Standing], options: Options, *, is_declared: bool = False
) -> Section:
    """Who beat whom: a matrix in colours and the tests behind it, unless they already stand under what was declared."""
    parts: list[Table | Figure] = []
    if len(main.ranked) <= MOST_IN_MATRIX:
        parts.append(_matrix_figure(main))
    if not is_declared:
        parts.append(pairs_table("head-to-head", f"Head to head: {main.label}", [_met(main)], options))
    if others and len(main.ranked) <= MOST_IN_TEST_TABLE:
        parts.append(
            pairs_table(
                "head-to-head-questions", "Head to head on the other questions", [_met(one) for one in others], options
            )
        )
    n_pairs = len(main.ranked) * (len(main.ranked) - 1) // 2
    tested = [one for one in main.pairs.values() if not math.isnan(p_adjusted(one))]
    clear = [one for one in tested if p_adjusted(one) <= 1 - options.confidence]
    said = (
        f"Of {n_of(n_pairs, 'pair')} of systems, {len(main.pairs)} met, {len(tested)} can be tested and {len(clear)} "
    )
    said += "differ after correction" if options.correction in CORRECTIONS else "differ"
    paragraphs = [f"{said}." + (" The tests stand under “Declared comparisons”." if is_declared else "")]
    cycle = circles(main)
    if cycle:
        told = " over ".join((*cycle, cycle[0]))
        paragraphs.append(f"The wins run in a circle ({told}), which no single order of strengths can show.")
    return Section("head-to-head", "Head to head", tuple(paragraphs), tuple(parts))


def _met(one: Standing) -> Met:
    return Met(one.label, one.pairs, one.fit)


def circles(one: Standing) -> tuple[str, ...]:
    """Three systems that beat each other in a circle, each by a tested difference; empty where there are none."""
    beats = set()
    for (a, b), share in one.pairs.items():
        if p_adjusted(share) <= 1 - share.confidence:
            beats.add((a, b) if share.value > 0.5 else (b, a))
    for a, b in sorted(beats):
        for c in one.ranked:
            if (b, c) in beats and (c, a) in beats:
                return (a, b, c)
    return ()


def _matrix_figure(one: Standing) -> Figure:
    cells = []
    for row in one.ranked:
        for column in one.ranked:
            share = None if row == column else _share(one, row, column)
            cells.append(HeatCell(row, column, share))
    spec = heatmap(
        cells,
        value_title="share of decisive votes that the row won against the column",
        midpoint=0.5,
        domain=(0.0, 1.0),
        is_percent=True,
    )
    told = "; ".join(f"{c.row} over {c.column} {percent(c.value)}" for c in cells if c.value is not None)
    return Figure("win-matrix", f"Who beat whom: {one.label}", spec, f"Shares of decisive votes: {told or 'none'}.")


def _share(one: Standing, row: str, column: str) -> float | None:
    direct = one.pairs.get((row, column))
    turned = one.pairs.get((column, row))
    if direct is not None and direct.is_known:
        return direct.value
    return 1 - turned.value if turned is not None and turned.is_known else None


@dataclass(frozen=True, eq=False)
class Met:
    """Systems that met on some questions: every pair with its share, and the model that expects them."""

    label: str
    pairs: dict[tuple[str, str], Estimate]
    fit: BradleyTerry


def pairs_table(
    name: str,
    title: str,
    meetings: Sequence[Met],
    options: Options,
    *,
    is_confirmatory: bool = False,
    caption: str = "",
) -> Table:
    """Every pair that met: counts, the share of decisive votes, tests, and what the model expects."""
    has_ties = any(share.details["ties"] for one in meetings for share in one.pairs.values())
    has_question = len(meetings) > 1 or name.endswith("questions")
    rows: list[tuple[Cell, ...]] = []
    methods: dict[str, None] = {}
    for one in meetings:
        for (a, b), share in one.pairs.items():
            methods["by rater" if "cluster" in share.method else "exact"] = None
            is_turned = share.is_known and share.value < 0.5
            first, second = (b, a) if is_turned else (a, b)
            counts = share.details
            won, lost = (counts["losses"], counts["wins"]) if is_turned else (counts["wins"], counts["losses"])
            shown = _turned(share) if is_turned else share
            expected = one.fit.win_probability(first, second)
            row: list[Cell] = [first, second, won, lost, *([counts["ties"]] if has_ties else [])]
            row += [known_cell(shown), p_cell(share.p_value)]
            row += [p_cell(p_adjusted(share))] if options.correction in CORRECTIONS else []
            row.append(expected.value if expected.is_known else None)
            rows.append((one.label, *row) if has_question else tuple(row))
    columns = [Column("question", "Question")] if has_question else []
    columns += [
        Column("system", "System"),
        Column("against", "against"),
        Column("won", "Won", "count"),
        Column("lost", "Lost", "count"),
        *([Column("tied", "Tied", "count")] if has_ties else []),
        Column("share", "Share of decisive votes", "percent_estimate"),
        Column("p", "p", "p_value"),
    ]
    if options.correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[options.correction]})", "p_value"))
    columns.append(Column("expected", "Model", "percent", 0))
    notes = []
    if "exact" in methods:
        notes.append("Where each rater voted once on a pair, the test is the exact binomial test with its interval.")
    if "by rater" in methods:
        notes.append(
            "Where raters voted several times on a pair, interval and test take each rater as one cluster (CR2)."
        )
    notes.append(
        "“Model” is what Bradley-Terry expects from all votes, also those against third systems, a tie counting half."
    )
    return Table(
        name, title, tuple(columns), tuple(rows), caption=caption, notes=tuple(notes), is_confirmatory=is_confirmatory
    )


def _turned(share: Estimate) -> Estimate:
    return replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)
