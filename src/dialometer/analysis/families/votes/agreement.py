"""How far raters agree on the same two systems of the same item: a leaderboard cannot be surer than its raters are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, listed, with_interval
from dialometer.analysis.families.votes.system_votes import read_choices
from dialometer.analysis.shared.comparisons import compared_criteria, compared_systems, known_cell
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.quality.gold import gold_items
from dialometer.stats.agreement.fleiss import share_of_agreeing_pairs
from dialometer.stats.agreement.side_agreement import side_alpha
from dialometer.stats.observations import Floats

AGREEMENT_TITLE = "Inter-rater agreement"
_LABELS = ("low", "high", TIE, BOTH_BAD, CANNOT_TELL)


def agreement_section(data: StudyData, options: Options) -> Section:
    """Krippendorff's alpha of every question, with and without undecided answers, and the share of agreeing raters."""
    rows: list[tuple[Cell, ...]] = []
    sentences = []
    questions = [criterion.name for criterion in compared_criteria(data.study, "one")]
    tables = {name: choice_counts(data, name) for name in questions}
    has_undecided = any(counts[:, 2:].any() for counts in tables.values())
    for name, counts in tables.items():
        label = criterion_label(data.study, name)
        every = side_alpha(counts, label=label, **options.resampling)
        decided = side_alpha(counts[:, :2], label=label, **options.resampling)
        share = share_of_agreeing_pairs(counts, label=label, **options.resampling)
        shown = [every, *([decided] if has_undecided else [])]
        rows.append((label, every.n, known_cell(share), *map(known_cell, shown)))
        if every.is_known:
            sentences.append(f"{label} {with_interval(every)}")
    if not any((counts.sum(axis=1) >= 2).any() for counts in tables.values()):
        raise NotEnoughData(
            "no two raters judged the same two systems of the same item",
            remedy="have items judged by more raters to see whether they agree",
        )
    columns = (
        Column("question", "Question"),
        Column("pairs", "Pairs judged by two or more", "count"),
        Column("agreeing", "Raters who agree", "percent_estimate"),
        Column("alpha", "Krippendorff's alpha", "estimate"),
        *((Column("alpha_decided", "Alpha without undecided answers", "estimate"),) if has_undecided else ()),
    )
    notes = [
        "“Raters who agree” is the share of two raters of one pair who gave the same answer; alpha is 0 for agreement by "
        "chance and 1 for full agreement. Confidence intervals are about other pairs.",
    ]
    if has_undecided:
        notes.append(f"{_undecided_words(tables.values())} in the first column of alpha.")
    table = Table(
        "agreement", "Agreement on the same two systems of the same item", columns, tuple(rows), notes=tuple(notes)
    )
    text = f"Agreement of raters (Krippendorff's alpha, nominal): {'; '.join(sentences)}."
    if not sentences:
        text = "Agreement beyond chance (Krippendorff's alpha) is not known: answers are all the same, or too few."
    if data.study.spec.items.kind == "arena":
        text += (
            " Each rater voted on conversations of their own: raters can disagree because their conversations differed, so low "
            "values do not show that the question is unclear."
        )
    return Section("agreement", AGREEMENT_TITLE, (text,), (table,))


def _undecided_words(counts: Iterable[Floats]) -> str:
    """Which answers other than a system were given: each is a label of its own."""
    given = sum(table.sum(axis=0) for table in counts)
    names = [name for name, n in zip(("ties", "“both are bad”", "“cannot tell”"), given[2:], strict=True) if n]
    own = "is an answer of its own" if len(names) == 1 and names != ["ties"] else "are answers of their own"
    words = f"{listed(names)} {own}"
    start = 1 + words.startswith("“")
    return words[:start].upper() + words[start:]


def choice_counts(data: StudyData, criterion: str) -> Floats:
    """For each pair of systems of an item, how many raters preferred either, found them tied or could not tell."""
    study = data.study
    systems = compared_systems(study)
    frame = data.judgments.filter(
        (pl.col("criterion") == criterion)
        & ~pl.col("item").is_in(gold_items(study))
        & pl.col("scale").is_in(compared_types(study, "one"))
    )
    read = read_choices(frame).filter(pl.col("first").is_in(systems) & pl.col("second").is_in(systems))
    low, high = pl.min_horizontal("first", "second"), pl.max_horizontal("first", "second")
    winner = pl.col("winner")
    label = pl.when(winner == low).then(pl.lit("low")).when(winner == high).then(pl.lit("high")).otherwise(winner)
    last = read.unique(["rater", "item", "first", "second"], keep="last", maintain_order=True)
    table = last.group_by("item", low=low, high=high).agg(
        *((label == name).sum().cast(pl.Float64).alias(f"n_{k}") for k, name in enumerate(_LABELS))
    )
    return table.sort("item", "low", "high").select(f"n_{k}" for k in range(len(_LABELS))).to_numpy().astype(np.float64)
