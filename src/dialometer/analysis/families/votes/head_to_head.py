"""Who beat whom in direct votes: shares that describe, beside what the model of all votes expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import percent
from dialometer.analysis.families.votes.rankings import SystemRanking, direct_votes
from dialometer.analysis.families.votes.sections import MOST_IN_MATRIX, MOST_IN_TEST_TABLE, half_ties
from dialometer.analysis.shared.comparisons import known_cell, p_adjusted
from dialometer.analysis.shared.ranking import by_rank
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import HeatCell, heatmap


def head_to_head_section(main: SystemRanking, others: Sequence[SystemRanking], options: Options) -> Section:
    """Who beat whom in direct votes: a matrix in colours and the shares, as description."""
    parts: list[Table | Figure] = []
    if len(main.ranked) <= MOST_IN_MATRIX:
        parts.append(_matrix_figure(main))
    parts.append(pairs_table("head-to-head", f"Head to head: {main.label}", [main]))
    if others and len(main.ranked) <= MOST_IN_TEST_TABLE:
        parts.append(pairs_table("head-to-head-questions", "Head to head on the other questions", others))
    n_pairs = len(main.ranked) * (len(main.ranked) - 1) // 2
    if n_pairs == 1:
        paragraphs = ["These shares count decisive votes only and describe; the test is that of the model."]
    else:
        met = f"All {n_pairs} pairs" if len(main.pairs) == n_pairs else f"{len(main.pairs)} of {n_pairs} pairs"
        paragraphs = [
            f"{met} of systems met. These shares count direct votes only and describe; the tests are those of the model, which "
            "also uses votes against third systems."
        ]
    cycle = circles(main, replace(options, has_fixed_items=True))
    if cycle:
        circle = " over ".join((*cycle, cycle[0]))
        paragraphs.append(
            f"On the items shown, the wins run in a circle ({circle}), which no single order of strengths can show."
        )
    return Section("head-to-head", "Head to head", tuple(paragraphs), tuple(parts))


def circles(ranking: SystemRanking, options: Options) -> tuple[str, ...]:
    """Three systems that beat each other in a circle on the items shown, each significantly; empty where there are none."""
    beats = set()
    for (a, b), share in direct_votes(ranking.votes, ranking.matrix, options).items():
        if p_adjusted(share) <= 1 - share.confidence:
            beats.add((a, b) if share.value > 0.5 else (b, a))
    for a, b in sorted(beats):
        for c in ranking.ranked:
            if (b, c) in beats and (c, a) in beats:
                return (a, b, c)
    return ()


def _matrix_figure(ranking: SystemRanking) -> Figure:
    cells = []
    for row in ranking.ranked:
        for column in ranking.ranked:
            share = None if row == column else _share(ranking, row, column)
            cells.append(HeatCell(row, column, share))
    spec = heatmap(
        cells,
        value_title="share of decisive votes that the row won against the column",
        midpoint=0.5,
        domain=(0.0, 1.0),
        is_percent=True,
    )
    details = "; ".join(f"{c.row} over {c.column} {percent(c.value)}" for c in cells if c.value is not None)
    return Figure(
        "win-matrix", f"Who beat whom: {ranking.label}", spec, f"Shares of decisive votes: {details or 'none'}."
    )


def _share(ranking: SystemRanking, row: str, column: str) -> float | None:
    direct = ranking.pairs.get((row, column))
    turned = ranking.pairs.get((column, row))
    if direct is not None and direct.is_known:
        return direct.value
    return 1 - turned.value if turned is not None and turned.is_known else None


def pairs_table(name: str, title: str, rankings: Sequence[SystemRanking]) -> Table:
    """Every pair that met: counts, the share of decisive votes, and what the model expects."""
    has_ties = any(share.details["ties"] for ranking in rankings for share in ranking.pairs.values())
    has_question = len(rankings) > 1 or name.endswith("questions")
    rows: list[tuple[Cell, ...]] = []
    for ranking in rankings:
        for (a, b), share in by_rank(ranking.pairs, ranking.ranked).items():
            is_turned = share.is_known and share.value < 0.5
            first, second = (b, a) if is_turned else (a, b)
            counts = share.details
            won, lost = (counts["losses"], counts["wins"]) if is_turned else (counts["wins"], counts["losses"])
            shown = _turned(share) if is_turned else share
            expected = ranking.fit.win_probability(first, second)
            row: list[Cell] = [first, second, won, lost, *([counts["ties"]] if has_ties else [])]
            row += [known_cell(shown), expected.value if expected.is_known else None]
            rows.append((ranking.label, *row) if has_question else tuple(row))
    columns = [Column("question", "Question")] if has_question else []
    columns += [
        Column("system", "System"),
        Column("against", "Against"),
        Column("won", "Won", "count"),
        Column("lost", "Lost", "count"),
        *([Column("tied", "Tied", "count")] if has_ties else []),
        Column("share", "Share of decisive votes", "percent_estimate"),
        Column("expected", "Model", "percent", 0),
    ]
    third = ", also those against third systems" if any(len(ranking.ranked) > 2 for ranking in rankings) else ""
    notes = (f"“Model” is what Bradley-Terry expects from all votes{third}{half_ties(*rankings)}.",)
    return Table(name, title, tuple(columns), tuple(rows), notes=notes)


def _turned(share: Estimate) -> Estimate:
    return replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)
