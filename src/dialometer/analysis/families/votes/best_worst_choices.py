"""Best-worst choices as arrays, without gold items, and the ranking of systems that they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import gold_items
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, n_of, system_label
from dialometer.analysis.shared.comparisons import compared_criteria, compared_systems
from dialometer.analysis.shared.ranking import (
    EXPANDED,
    MOST_RESAMPLED,
    Lead,
    adjusted_pairs,
    expanded_confidence,
    lead,
    random_groups,
)
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.clustered.homogeneity import homogeneity_clustered
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.best_worst import BestWorstChoices, BestWorstScores, best_worst_counts
from dialometer.stats.ranking.maxdiff import Maxdiff, maxdiff
from dialometer.stats.ranking.rank_intervals import RankIntervals


@dataclass(frozen=True, eq=False)
class BestWorstData:
    """All choices with the number of their criterion, and the place on the screen of the best (0: not known)."""

    criteria: tuple[str, ...]
    criterion_labels: tuple[str, ...]
    names: tuple[str, ...]
    choices: BestWorstChoices
    criterion: Ints
    place: Ints
    notes: tuple[str, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems."""
        return self.choices.systems

    def on(self, criteria: tuple[str, ...]) -> BestWorstChoices:
        """The choices on some criteria."""
        wanted = [self.criteria.index(name) for name in criteria]
        return choices_where(self.choices, np.isin(self.criterion, wanted))


def choices_where(choices: BestWorstChoices, kept: NDArray[np.bool_]) -> BestWorstChoices:
    """Some of the choices; raters without any left are no longer counted."""
    used, rater = np.unique(choices.rater[kept], return_inverse=True)
    return BestWorstChoices(
        systems=choices.systems,
        shown=choices.shown[kept],
        best=choices.best[kept],
        worst=choices.worst[kept],
        raters=tuple(choices.raters[k] for k in used.tolist()),
        rater=rater.astype(np.intp),
    )


def scores(choices: BestWorstChoices) -> Floats:
    """Choices by systems: 1 where the system was picked best, -1 where worst, 0 where neither, nan where not shown."""
    table = np.full((choices.n, len(choices.systems)), np.nan)
    row, place = np.nonzero(choices.shown >= 0)
    table[row, choices.shown[row, place]] = 0.0
    every = np.arange(choices.n)
    table[every, choices.best] = 1.0
    table[every, choices.worst] = -1.0
    return table


def best_worst_data(data: StudyData) -> BestWorstData:
    """The choices of a study; sets that cannot be read are excluded, with a note."""
    study = data.study
    names = tuple(criterion.name for criterion in compared_criteria(study, "ends"))
    systems = compared_systems(study)
    frame = data.judgments.filter(
        pl.col("scale").is_in(compared_types(study, "ends"))
        & pl.col("criterion").is_in(names)
        & ~pl.col("item").is_in(gold_items(study))
    )
    is_placed = (frame["order"].fill_null("") != "").to_numpy()
    frame = frame.with_columns(pl.col("order").fill_null("")).with_columns(
        pl.when(pl.col("order") == "").then(_order_of_items(study)).otherwise(pl.col("order")).alias("order")
    )
    orders = frame["order"].unique().sort()
    sets = _sets(orders.to_list(), systems)
    number = {name: k for k, name in enumerate(systems)}
    which = _codes(frame["order"], orders.to_list())
    best, worst = (
        frame[name].replace_strict(number, default=-1, return_dtype=pl.Int64).to_numpy() for name in ("choice", "worst")
    )
    shown = sets[which]
    is_read = (
        (best >= 0) & (worst >= 0) & (best != worst)
        & (shown == best[:, None]).any(axis=1) & (shown == worst[:, None]).any(axis=1)
    )  # fmt: skip
    if not is_read.any():
        raise NotEnoughData("there are no choices of a best and a worst yet", remedy="collect judgments first")
    raters = frame["rater"].unique().sort().to_list()
    labels = tuple(system_label(study, name) for name in systems)
    every = BestWorstChoices(
        systems=labels if len(set(labels)) == len(labels) else systems,
        shown=shown,
        best=best.astype(np.intp),
        worst=worst.astype(np.intp),
        raters=tuple(raters),
        rater=_codes(frame["rater"], raters).astype(np.intp),
    )
    n_out = int((~is_read).sum())
    place = np.where(is_placed, (shown == best[:, None]).argmax(axis=1) + 1, 0)
    return BestWorstData(
        criteria=names,
        criterion_labels=tuple(criterion_label(study, name) for name in names),
        names=systems,
        choices=choices_where(every, is_read),
        criterion=_codes(frame["criterion"], list(names))[is_read],
        place=place[is_read],
        notes=(f"{n_of(n_out, 'choice')} named systems that were not shown and were left out.",) if n_out else (),
    )


def _order_of_items(study: Study) -> pl.Expr:
    """The systems of each item in file order, for data that do not say how they stood on the screen."""
    known = {item.id: "|".join(item.systems) for item in study.items}
    return pl.col("item").replace_strict(known, default="", return_dtype=pl.String)


def _sets(orders: list[str], systems: tuple[str, ...]) -> NDArray[np.intp]:
    """One row per distinct screen, filled up with -1; systems outside the comparison are not in it."""
    number = {name: k for k, name in enumerate(systems)}
    rows = [[number[name] for name in order.split("|") if name in number] for order in orders]
    sets = np.full((len(rows), max((len(row) for row in rows), default=0)), -1, dtype=np.intp)
    for k, row in enumerate(rows):
        sets[k, : len(row)] = row
    return sets


def _codes(column: pl.Series, names: list[str]) -> Ints:
    return column.replace_strict(names, list(range(len(names))), return_dtype=pl.Int64).to_numpy()


@dataclass(frozen=True, eq=False)
class BestWorstRanking:
    """Everything about one ranking; systems stand in it by their score, -1 (always worst) to 1 (always best)."""

    label: str
    choices: BestWorstChoices
    scores: dict[str, Estimate]
    utilities: dict[str, Estimate]
    model: Maxdiff
    ranks: RankIntervals
    pairs: dict[tuple[str, str], Estimate]
    differ: Estimate

    @property
    def ranked(self) -> tuple[str, ...]:
        """Systems that were shown, the best first."""
        known = [name for name, score in self.scores.items() if score.is_known]
        return tuple(sorted(known, key=lambda name: -self.scores[name].value))

    @property
    def has_ranks(self) -> bool:
        """Whether raters could be resampled."""
        return len(self.choices.raters) > 1

    def leader(self) -> Lead:
        """Who is first, and of whom that can be said after correction."""
        leader = lead(self.scores, self.pairs, confidence=self.differ.confidence)
        return leader or Lead(self.ranked[0], (), self.ranked[1:])

    def rivals(self) -> tuple[str, ...]:
        """Systems that do not differ significantly from the first, the best first."""
        leader = self.leader()
        return tuple(name for name in self.ranked if name in (*leader.level, *leader.untested))


def rank_by_best_worst(choices: BestWorstChoices, label: str, options: Options) -> BestWorstRanking:
    """The ranking that a set of choices makes."""
    n_raters = len(choices.raters)
    wide = expanded_confidence(options.confidence, n_raters) if n_raters > 1 else options.confidence
    drawn = choices
    if n_raters > MOST_RESAMPLED:
        groups = random_groups(n_raters, options.seed)
        names = tuple(f"group {k + 1}" for k in range(MOST_RESAMPLED))
        drawn = replace(choices, raters=names, rater=groups[choices.rater])
    counted = best_worst_counts(drawn, n_resamples=options.n_resamples, confidence=wide, seed=options.seed)
    model = maxdiff(drawn, n_resamples=options.n_resamples, confidence=wide, seed=options.seed)
    table = scores(choices)
    return BestWorstRanking(
        label=label,
        choices=choices,
        scores={name: _named(estimate, options) for name, estimate in counted.scores.items()},
        utilities={name: _named(estimate, options) for name, estimate in model.utilities.items()},
        model=model,
        ranks=_named_ranks(counted, options),
        pairs=score_differences(choices, table, options),
        differ=systems_differ(choices, table),
    )


def _named(estimate: Estimate, options: Options) -> Estimate:
    if not estimate.has_interval or "bootstrap" not in estimate.interval_method:
        return replace(estimate, confidence=options.confidence)
    return replace(estimate, confidence=options.confidence, interval_method=EXPANDED)


def _named_ranks(counted: BestWorstScores, options: Options) -> RankIntervals:
    return replace(
        counted.ranks, ranks={name: _named(estimate, options) for name, estimate in counted.ranks.ranks.items()}
    )


def score_differences(
    choices: BestWorstChoices, table: NDArray[np.float64], options: Options, systems: list[int] | None = None
) -> dict[tuple[str, str], Estimate]:
    """Every two systems: mean difference of their scores where both were shown, each rater as one cluster; one family."""
    chosen = list(range(len(choices.systems))) if systems is None else systems
    differences = {}
    for a, b in combinations(chosen, 2):
        gap = table[:, a] - table[:, b]
        label = f"{choices.systems[a]} - {choices.systems[b]}"
        if np.isnan(gap).all():
            differences[choices.systems[a], choices.systems[b]] = unknown(
                "difference of scores", "never shown together", label=label
            )
            continue
        differences[choices.systems[a], choices.systems[b]] = clustered_mean(
            gap, choices.rater, null=0.0, confidence=options.confidence, label=label
        )
    return adjusted_pairs(differences, options.correction)


def systems_differ(choices: BestWorstChoices, table: NDArray[np.float64]) -> Estimate:
    """Whether scores differ between systems at all, each rater as one cluster."""
    row, system = np.nonzero(~np.isnan(table))
    return homogeneity_clustered(table[row, system], system, choices.rater[row], label="systems")
