"""What only an arena has: how every pair of votes fell, ties and both bad apart, and how the conversations went."""

from __future__ import annotations

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, listed, n_of, system_label
from dialometer.analysis.families.votes.system_votes import read_choices
from dialometer.analysis.shared.comparisons import compared_criteria
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.quality.gold import gold_items


def outcomes_section(data: StudyData, criteria: tuple[str, ...]) -> Section:
    """Wins, ties and "both bad" of each pair of systems, which the ranking counts as ties."""
    study = data.study
    frame = data.judgments.filter(
        pl.col("criterion").is_in(criteria)
        & ~pl.col("item").is_in(gold_items(study))
        & pl.col("scale").is_in(compared_types(study, "one"))
    )
    low, high = pl.min_horizontal("first", "second"), pl.max_horizontal("first", "second")
    table = (
        read_choices(frame)
        .with_columns(low=low, high=high)
        .group_by("low", "high")
        .agg(
            won=(pl.col("winner") == pl.col("low")).sum(),
            lost=(pl.col("winner") == pl.col("high")).sum(),
            tied=(pl.col("winner") == TIE).sum(),
            bad=(pl.col("winner") == BOTH_BAD).sum(),
            open=(pl.col("winner") == CANNOT_TELL).sum(),
        )
        .sort("low", "high")
    )
    has_undecided = bool((table["open"] > 0).any())
    rows: list[tuple[Cell, ...]] = []
    points: dict[str, float] = {}
    for low_name, high_name, n_low, n_high, tied, bad, undecided in table.iter_rows():
        won, lost = n_low, n_high
        n = won + lost + tied + bad
        names = (system_label(study, low_name), system_label(study, high_name))
        share = (won + (tied + bad) / 2) / n if n else None
        if share is not None and share < 0.5:  # the one that won more often comes first, as in the other tables
            names, won, lost, share = names[::-1], lost, won, 1 - share
        for name, own in zip(names, (share or 0.0, 1 - (share or 0.0)), strict=True):
            points[name] = points.get(name, 0.0) + own * n
        rows.append((*names, n, won, lost, tied, bad, share, *((undecided,) if has_undecided else ())))
    rows.sort(key=lambda row: (-points[str(row[0])], -points[str(row[1])]))
    columns = (
        Column("first", "System"),
        Column("second", "Against"),
        Column("n", "Votes", "count"),
        Column("won", "Won", "count"),
        Column("lost", "Lost", "count"),
        Column("tied", "Tied", "count"),
        Column("both_bad", "Both bad", "count"),
        Column("share", "Win rate", "percent", 0),
        *((Column("cannot_tell", "Cannot tell", "count"),) if has_undecided else ()),
    )
    n_bad, n_all = int(table["bad"].sum()), int(sum(row[2] for row in rows if isinstance(row[2], int)))
    labels = listed([criterion_label(study, name) for name in criteria])
    asked = f"{labels}: " if len(compared_criteria(study, "one")) > 1 else ""  # other counts are of all questions
    text = (
        f"{asked}{n_of(n_all, 'vote')}, of which {n_of(int(table['tied'].sum()), 'tie')} and {n_bad:,} “both are bad”. The win "
        "rate counts both as half a win for either side."
    )
    return Section(
        "outcomes", "Outcomes of each pair of systems", (text,), (Table("outcomes", "Outcomes", columns, tuple(rows)),)
    )


WRITTEN = {"headings": "Headings", "lists": "List items", "bold": "Bold passages", "code": "Code"}
"""How responses are written; what no system uses has no column."""
COUNTED = "“Conversations”, “Without response” and “Names a system” are counts, the other columns are means."


def conversations_section(data: StudyData) -> Section:
    """How long the conversations were, how they were written, and what went wrong in them."""
    voted = data.judgments.select("rater", "item").unique()
    held = data.battles.join(voted, on=["rater", "item"], how="semi")
    written = {name: label for name, label in WRITTEN.items() if int(held[name].sum())}
    rows: list[tuple[Cell, ...]] = []
    for system in (s.name for s in data.study.spec.systems):
        own = held.filter(pl.col("system") == system)
        if own.is_empty():
            continue
        n_replies = int(own["n_replies"].sum())
        latency = own["latency_s"].drop_nulls()
        rows.append(
            (
                system_label(data.study, system),
                len(own),
                float(own["n_messages"].cast(pl.Float64).to_numpy().mean()),
                int(own["words"].sum()) / n_replies if n_replies else None,
                *(int(own[name].sum()) / n_replies if n_replies else None for name in written),
                float(latency.to_numpy().mean()) if len(latency) else None,
                int(own["n_messages"].sum()) - n_replies,
                int(own["is_named"].sum()),
            )
        )
    columns = (
        Column("system", "System"),
        Column("n", "Conversations", "count"),
        Column("messages", "Messages per conversation", "number", 1),
        Column("words", "Words per response", "number", 1),
        *(Column(name, f"{label} per response", "number") for name, label in written.items()),
        Column("latency", "Seconds per response", "number"),
        Column("missing", "Without response", "count"),
        Column("named", "Names a system", "count"),
    )
    n_named = int(held["is_named"].sum())
    n_missing = int(held["n_messages"].sum()) - int(held["n_replies"].sum())
    text = f"{n_of(len(held) // 2, 'pair')} of conversations ended with a vote."
    if n_missing:
        text += f" {n_of(n_missing, 'message')} got no response, since a system failed; raters may have voted on that."
    if n_named:
        text += (
            f" In {n_of(n_named, 'conversation')} a response named one of the systems: those votes may not be blind. Exclude "
            "the sessions, or change the systems' prompts, if names could matter."
        )
    table = Table("conversations", "Conversations by system", columns, tuple(rows), notes=(COUNTED,))
    return Section("conversations", "The conversations", (text,), (table,))
