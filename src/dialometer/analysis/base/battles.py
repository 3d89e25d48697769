"""The conversations of an arena as data: for each side of each vote how long and how it was written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from dialometer.stats.ranking.style import STYLE, style_counts

BATTLE_COLUMNS = {
    "rater": pl.String,
    "item": pl.String,
    "system": pl.String,
    "n_messages": pl.Int64,
    "n_replies": pl.Int64,
    "latency_s": pl.Float64,
    "is_named": pl.Boolean,
    **dict.fromkeys(STYLE, pl.Int64),
}
Said = tuple[str, str, str, Mapping[str, Any]]
"""Item, role, text and details of a turn."""


def battles_table(said: Iterable[tuple[str, Said]]) -> pl.DataFrame:
    """One row for each system that a rater talked to, from the rater and the turns in order."""
    turns = [(rater, *turn) for rater, turn in said if turn[3].get("system")]
    turns.sort(key=lambda turn: (turn[0], turn[1], str(turn[4]["system"])))
    rows = []
    for (rater, item_id, system), group in itertools.groupby(turns, lambda t: (t[0], t[1], str(t[4]["system"]))):
        side = list(group)
        replies = [(text, details) for _, _, role, text, details in side if role == "agent"]
        latencies = [float(d["latency_s"]) for _, d in replies if isinstance(d.get("latency_s"), int | float)]
        rows.append(
            (
                rater,
                item_id,
                system,
                len(side) - len(replies),
                len(replies),
                sum(latencies) / len(latencies) if latencies else None,
                any(details.get("names_systems") for _, details in replies),
                *style_counts(text for text, _ in replies),
            )
        )
    return pl.DataFrame(rows, schema=BATTLE_COLUMNS, orient="row")
