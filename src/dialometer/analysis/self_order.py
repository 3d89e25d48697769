"""Do self-ratings change with time: from a rater's first conversation to the last, and over the days of the study?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dialometer.analysis.clustered_spearman import clustered_spearman
from dialometer.analysis.conversations import SelfRatings
from dialometer.analysis.family import Options
from dialometer.analysis.leader import CORRECTIONS, p_adjusted
from dialometer.analysis.words import listed, number, with_interval
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.clustered import clustered_mean
from dialometer.stats.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats

MOST_POSITIONS = 10


def order_section(name: str, ratings: Sequence[SelfRatings], options: Options) -> Section:
    """Whether ratings change from a rater's first conversation to the last, and over the days of the study."""
    rows: list[tuple[Cell, ...]] = []
    dots: list[Dot] = []
    levels = [adjusted_for_system(one) for one in ratings]
    changes = adjust_estimates(
        [first_to_last(one, level, options) for one, level in zip(ratings, levels, strict=True)],
        options.correction,  # type: ignore[arg-type]  # declared by the study
    )
    drift: list[tuple[Cell, ...]] = []
    told: list[str] = []
    n_most = 0
    for one, level, change in zip(ratings, levels, changes, strict=True):
        places = [int(place) for place in np.unique(one.position) if place > 0][:MOST_POSITIONS]
        n_most = max(n_most, len(places))
        for place in places:
            here = one.position == place
            mean = clustered_mean(level[here], one.rater[here], confidence=options.confidence)
            rows.append((one.label, place, mean, mean.n))
            dots.append(Dot(f"conversation {place}", mean, facet=one.label if len(ratings) > 1 else ""))
        over_time = clustered_spearman(one.answered_s, level, one.rater, options, resampled="raters")
        p = p_adjusted(change)
        drift.append((one.label, change, None if np.isnan(p) else p, change.n, over_time, over_time.n))
        if p <= 1 - options.confidence:
            told.append(f"{one.label} {'rises' if change.value > 0 else 'falls'} by {with_interval(change)} points")
    if n_most < 2:
        words = "Every rater held one conversation, so there is no order within a session to look at."
    elif told:
        words = f"From a rater's first conversation to the last, {listed(told)}, with the mix of systems taken into account."
    else:
        words = "From a rater's first conversation to the last, no change of the ratings is established."
    tables: list[Table | Figure] = [_order_table(name, rows), _drift_table(name, drift, options)]
    if n_most > 1:
        tables.insert(0, _order_figure(name, dots))
    return Section(name, "Ratings over time", (words,), tuple(tables))


def adjusted_for_system(ratings: SelfRatings) -> Floats:
    """Ratings with their system's mean replaced by the mean of all, so that an uneven mix of systems does not show as time."""
    level = ratings.value.copy()
    for system in ratings.systems:
        own = ratings.of(system)
        level[own] += ratings.value.mean() - ratings.value[own].mean()
    return level


def first_to_last(ratings: SelfRatings, level: Floats, options: Options) -> Estimate:
    """Mean change from each rater's first conversation to the last, over raters who held at least two."""
    table = pl.DataFrame({"rater": ratings.rater, "position": ratings.position, "level": level}).sort("position")
    ends = (
        table.group_by("rater", maintain_order=True)
        .agg(
            (pl.col("level").last() - pl.col("level").first()).alias("change"),
            pl.col("position").n_unique().alias("n"),
        )
        .filter(pl.col("n") > 1)
    )
    if not len(ends):
        return unknown("change from first to last", "no rater held two conversations")
    return clustered_mean(ends["change"].to_numpy(), ends["rater"].to_numpy(), null=0.0, confidence=options.confidence)


def _order_table(name: str, rows: list[tuple[Cell, ...]]) -> Table:
    return Table(
        name,
        "Average rating by place in the session",
        (
            Column("criterion", "Criterion"),
            Column("position", "Conversation", "count"),
            Column("mean", "Average rating", "estimate"),
            Column("n", "Conversations", "count"),
        ),
        tuple(rows),
        caption="Adjusted for systems: each system's mean is set to the mean of all.",
    )


def _drift_table(name: str, rows: list[tuple[Cell, ...]], options: Options) -> Table:
    is_corrected = options.correction in CORRECTIONS
    heading = f"p ({CORRECTIONS[options.correction]})" if is_corrected else "p"
    return Table(
        f"{name}_change",
        "Change within raters, and over the days of the study",
        (
            Column("criterion", "Criterion"),
            Column("change", "First to last conversation", "estimate"),
            Column("p_adjusted", heading, "p_value"),
            Column("n", "Raters", "count"),
            Column("rho", "Spearman's rho with the time of rating", "estimate"),
            Column("n_rated", "Conversations", "count"),
        ),
        tuple(rows),
        caption="The change is tested within raters, corrected over the criteria. The correlation shows a drift over the days in "
        "which the study ran, for example when a system was changed meanwhile.",
    )


def _order_figure(name: str, dots: list[Dot]) -> Figure:
    told = "; ".join(f"{dot.facet} {dot.label}: {number(dot.estimate.value)}".strip() for dot in dots)
    return Figure(
        f"{name}_figure",
        "Average rating by place in the session",
        dot_interval(dots, value_title="average rating"),
        alt=f"Average ratings by place in the session. {told}.",
    )
