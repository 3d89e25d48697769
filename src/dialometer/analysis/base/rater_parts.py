"""Work on some raters at a time: of a million judgments only a part is sorted and coded at once."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

N_AT_ONCE = 200_000
"""Judgments that are sorted by raters at once."""


def n_by_rater(judgments: pl.DataFrame) -> pl.DataFrame:
    """How many judgments each rater has, in the order of the raters' names; counted by numbers, as texts take more room."""
    counts = judgments["rater"].cast(pl.Categorical).value_counts(name="n")
    return counts.with_columns(pl.col("rater").cast(pl.String)).sort("rater")


def by_raters(judgments: pl.DataFrame, work: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Rows about raters, made for some raters at a time: of a million judgments only a part is sorted and coded at once."""
    counts = n_by_rater(judgments)
    n_parts = -(-len(judgments) // N_AT_ONCE)
    if n_parts <= 1:
        return work(judgments)
    of_part = (counts["n"].cum_sum() - 1) * n_parts // len(judgments)
    parts = counts.with_columns(of_part.alias("part")).partition_by("part", maintain_order=True)
    return pl.concat([work(judgments.filter(pl.col("rater").is_in(part["rater"].implode()))) for part in parts])
