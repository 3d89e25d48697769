"""Whether a judge looks at places: the same pair asked in both orders, and how often the first place is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.families.judges.compared import UNDECIDED
from dialometer.analysis.shared.drawn_items import drawn_items
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.clustered.proportion import proportion


@dataclass(frozen=True)
class PositionBias:
    """One judge on one criterion."""

    judge: str
    criterion: str
    consistent: Estimate
    """Share of the pairs asked in both orders on which both answers are the same."""
    first: Estimate
    """Share of choices for the first place, over items."""
    flips_to_first: Estimate
    """Of the answers that changed with the order, those that took the first place both times."""

    @property
    def is_biased(self) -> bool:
        """Whether the share for the first place differs significantly from a half."""
        return self.first.has_interval and not self.first.low <= 0.5 <= self.first.high


def position_bias(data: StudyData, options: Options) -> list[PositionBias]:
    """A row for each judge and criterion on which it chose between responses."""
    types = compared_types(data.study, "one")
    calls = data.calls.filter(pl.col("scale").is_in(types) & pl.col("choice").is_not_null())
    rows = []
    for (judge, criterion), own in calls.group_by("rater", "criterion", maintain_order=True):
        decided = own.filter(~pl.col("choice").is_in(UNDECIDED))
        first = unknown("share of first places", "no choice takes a side")
        if len(decided):
            chosen = (decided["side"] == 1).cast(pl.Float64).to_numpy()
            items = drawn_items(data.study, decided["item"]).to_numpy()
            first = bootstrap_mean(chosen, items=items, **options.resampling)
        consistent, to_first = _exchanged(own, options)
        rows.append(PositionBias(str(judge), str(criterion), consistent, first, to_first))
    return rows


def _exchanged(own: pl.DataFrame, options: Options) -> tuple[Estimate, Estimate]:
    """How often the two orders agree, and where answers that do not agree went."""
    pair = pl.col("order").str.split("|").list.sort().list.join("|").alias("pair")
    by_order = (
        own.with_columns(pair)
        .group_by("item", "block", "pair", "order", maintain_order=True)
        .agg(pl.col("choice").mode().sort().first(), (pl.col("side") == 1).mean().alias("first"))
    )
    both = by_order.filter(pl.len().over("item", "block", "pair") == 2)
    if both.is_empty():
        nothing = unknown("both orders", "no pair was asked in both orders")
        return nothing, nothing
    pairs = both.group_by("item", "block", "pair", maintain_order=True).agg(
        (pl.col("choice").n_unique() == 1).alias("same"), pl.col("first").mean()
    )
    same = proportion(int(pairs["same"].sum()), len(pairs), confidence=options.confidence)
    sided = pairs.filter(~pl.col("same") & pl.col("first").is_in([0.0, 1.0]))
    if sided.is_empty():
        return same, unknown("changed answers", "no answer changed its side with the order")
    return same, proportion(int((sided["first"] == 1).sum()), len(sided), confidence=options.confidence)
