"""What every report opens with: exclusions and why, balance of the conditions, and whether the study is finished."""

from __future__ import annotations

import polars as pl

from dialometer.analysis.data import APART, StudyData
from dialometer.analysis.labels import cell_names
from dialometer.design.protocol import protocol
from dialometer.model.report import Column, Table

SOURCE_WORDS = {
    "simulated": "These raters are simulated: the numbers test the design, they say nothing about real systems.",
    "model": "These raters are programs, not people.",
}


def exclusions_table(data: StudyData) -> Table:
    """How many raters and judgments were left out, by reason."""
    rows: list[tuple[str, int | None, int | None]] = []
    sessions = data.sessions.filter(pl.col("source").is_in(data.sources))
    for state, label in (
        ("screened_out", "screened out"),
        ("declined", "declined to take part"),
        ("withdrawn", "withdrew"),
    ):
        n = len(sessions.filter(pl.col("state") == state))
        if n:
            rows.append((label, n, None))
    reasons = (
        data.findings.filter(pl.col("action") == "exclude")
        .group_by("rule")
        .agg(pl.col("rater").n_unique())
        .sort("rule")
    )
    rows += [(f"excluded by the rule {rule}", n, None) for rule, n in reasons.iter_rows()]
    rows += [
        (f"judgments of {reason}" if "raters" in reason else f"judgments on {reason}", None, n)
        for reason, n in data.n_left_out.items()
    ]
    flagged = (
        data.findings.filter(pl.col("action") == "flag").group_by("rule").agg(pl.col("rater").n_unique()).sort("rule")
    )
    rows += [(f"only flagged by the rule {rule}, kept", n, None) for rule, n in flagged.iter_rows()]
    return Table(
        "exclusions",
        "What was left out",
        (Column("reason", "Reason"), Column("raters", "Raters", "count"), Column("judgments", "Judgments", "count")),
        tuple((reason, "" if n is None else n, "" if m is None else m) for reason, n, m in rows),
        notes=() if rows else ("Nothing was left out.",),
    )


def balance_table(data: StudyData) -> Table:
    """Raters in each condition: finished, under way, left."""
    used = data.used_sessions()
    rows = []
    for cell, name in enumerate(cell_names(data.study)):
        here = used.filter(pl.col("cell") == cell)
        counts = {state: len(here.filter(pl.col("state") == state)) for state in ("completed", "active", "stale")}
        n = len(data.judgments.filter(pl.col("session").is_in(here["session"].implode())))
        rows.append((name, counts["completed"], counts["active"], counts["stale"], n))
    columns = (
        Column("condition", "Condition"),
        Column("completed", "Finished", "count"),
        Column("active", "Under way", "count"),
        Column("stale", "Left", "count"),
        Column("judgments", "Judgments", "count"),
    )
    return Table("balance", "Balance of the conditions", columns, tuple(rows))


def unfinished(data: StudyData) -> str:
    """A sentence when the study still lacks raters or judgments, else empty."""
    numbers = protocol(data.study)
    n_completed = len(data.completed_sessions())
    if numbers.n_raters is not None and n_completed < numbers.n_raters:
        return f"The study is not finished: {n_completed} of {numbers.n_raters} raters have completed it."
    wanted = data.study.spec.design.judgments_per_item
    if wanted is not None and len(data.judgments):
        per_item = data.judgments.group_by("item").agg(pl.col("rater").n_unique())
        n_short = len(data.study.rated_items) - len(per_item.filter(pl.col("rater") >= wanted))
        if n_short > 0:
            return f"The study is not finished: {n_short} items have fewer than {wanted} raters."
    return ""


def warnings(data: StudyData) -> tuple[str, ...]:
    """What a reader must know before the first number."""
    said = [SOURCE_WORDS[source] for source in data.sources if source in SOURCE_WORDS]
    others = set(data.sessions["source"].unique()) - set(data.sources)
    if others:
        said.append(f"Judgments from other sources ({', '.join(sorted(others))}) are not in this report.")
    n_apart = data.judgments.filter(pl.col("rater").str.contains(APART, literal=True))["rater"].n_unique()
    if n_apart:
        said.append(
            f"Some raters were imported in more than one condition; each condition counts them as another rater "
            f"({n_apart} more in all), although the same person gives more similar answers than two would."
        )
    note = unfinished(data)
    if note:
        said.append(
            f"{note} Looking before the end is not a test: intervals and p values assume that the number of raters was fixed."
        )
    return tuple(said)
