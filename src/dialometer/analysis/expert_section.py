"""The section that sets self-ratings beside experts' pairwise verdicts, where the study has any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dialometer.analysis.conversations import SelfRatings
from dialometer.analysis.expert_pairs import (
    PAIRS_FILE,
    ExpertPair,
    GapTable,
    disagreement_by_gap,
    expert_agreement,
    read_expert_pairs,
)
from dialometer.analysis.family import Options
from dialometer.analysis.words import n_of, p_words, percent, sentence, with_interval
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval

TITLE = "Self-ratings beside experts"


def expert_section(name: str, ratings: Sequence[SelfRatings], path: Path | None, options: Options) -> Section:
    """Disagreement by the gap between two self-ratings; without a file of verdicts, how to give one."""
    if path is None:
        return Section(
            name,
            TITLE,
            (
                "There are no experts' verdicts on pairs of conversations, so nothing is said here about how far self-ratings "
                f"can be trusted. To add them, write {PAIRS_FILE} beside study.yaml with the columns first, second (a "
                "conversation is named by rater and item, such as R0001/item-1), better (first, second or cannot_tell) and, "
                "if several experts judge, expert.",
            ),
        )
    pairs = read_expert_pairs(path)
    tables = {one.label: _by_gap(one, pairs, options) for one in ratings}
    main = tables[ratings[0].label]
    parts: list[Table | Figure] = [_table(name, tables), _trend_table(name, tables)]
    if main.gaps:
        parts.insert(0, _figure(name, ratings[0].label, main))
    return Section(name, TITLE, tuple(_words(ratings[0].label, main, pairs, options)), tuple(parts))


def _by_gap(ratings: SelfRatings, pairs: list[ExpertPair], options: Options) -> GapTable:
    low, high = ratings.ends
    width = 1.0 if ratings.scale.categories() else (high - low) / 4 or 1.0
    return disagreement_by_gap(
        dict(zip(ratings.conversation, ratings.value.tolist(), strict=True)),
        pairs,
        width=width,
        n_resamples=options.n_resamples,
        seed=options.seed,
        confidence=options.confidence,
    )


def _words(label: str, found: GapTable, pairs: list[ExpertPair], options: Options) -> list[str]:
    agreement = expert_agreement(pairs, seed=options.seed, confidence=options.confidence)
    words = [
        "Experts compared pairs of conversations. Where they prefer the one that its own rater gave the lower rating, the two "
        "kinds of judgment disagree."
    ]
    if agreement is not None and agreement.is_known:
        words[0] += f" Experts among themselves: {agreement.method} {with_interval(agreement)}."
    if not found.overall.is_known:
        words.append(f"{label}: no pair has two different ratings and a verdict, so nothing can be compared.")
    else:
        text = f"{label}: experts and self-ratings disagree on {with_interval(found.overall, is_percent=True)} of "
        text += f"{n_of(found.overall.n, 'pair')} with different ratings."
        if found.trend.is_known:
            falls = found.trend.value < 0 and found.trend.p_value <= 1 - options.confidence
            text += (
                f" Disagreement falls by {percent(-found.trend.value)} for each further point of gap"
                if falls
                else " That it falls as the gap grows is not established"
            ) + f" ({p_words(found.trend.p_value)})."
        words.append(f"{text} In the published study it was 45% at a gap of one point and 16% at a gap of four.")
    left = [
        f"{n_of(n, 'pair')} {why}"
        for n, why in (
            (found.n_equal, "with equal ratings"),
            (found.n_undecided, "on which experts could not tell or were divided"),
            (found.n_unrated, "with a conversation that has no rating here"),
        )
        if n
    ]
    if left:
        words.append(sentence(f"left out: {'; '.join(left)}"))
    return words


def _table(name: str, tables: dict[str, GapTable]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for label, found in tables.items():
        rows += [(label, f"{one.gap:g}", one.share, one.n_disagree, one.share.n) for one in found.gaps]
        total = sum(one.n_disagree for one in found.gaps)
        rows.append((label, "all", found.overall, total, found.overall.n))
    return Table(
        name,
        "Disagreement of experts with self-ratings, by the gap between two ratings",
        (
            Column("criterion", "Criterion"),
            Column("gap", "Gap"),
            Column("share", "Disagree", "percent_estimate"),
            Column("n_disagree", "Pairs that disagree", "count"),
            Column("n", "Pairs", "count"),
        ),
        tuple(rows),
        caption="Pairs are taken as independent; where one conversation stands in many pairs, intervals are too narrow.",
    )


def _trend_table(name: str, tables: dict[str, GapTable]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for label, found in tables.items():
        p = found.trend.p_value
        rows.append(
            (label, found.trend, None if math.isnan(p) else p, found.n_equal, found.n_undecided, found.n_unrated)
        )
    return Table(
        f"{name}_trend",
        "Trend over the gap, and pairs that could not be used",
        (
            Column("criterion", "Criterion"),
            Column("trend", "Change per point of gap", "percent_estimate"),
            Column("p", "p", "p_value"),
            Column("n_equal", "Equal ratings", "count"),
            Column("n_undecided", "Experts undecided", "count"),
            Column("n_unrated", "Without a rating", "count"),
        ),
        tuple(rows),
    )


def _figure(name: str, label: str, found: GapTable) -> Figure:
    told = "; ".join(f"gap {one.gap:g}: {percent(one.share.value)}" for one in found.gaps)
    return Figure(
        f"{name}_figure",
        f"{label}: disagreement by gap",
        dot_interval(
            [Dot(f"gap {one.gap:g}", one.share) for one in found.gaps],
            value_title="pairs on which experts prefer the lower rating",
            reference=0.5,
            domain=(0, 1),
            is_percent=True,
        ),
        alt=f"Share of pairs on which experts prefer the conversation with the lower rating. {told}.",
        caption="The dashed line is what chance would give.",
    )
