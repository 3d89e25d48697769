"""Best-worst choices as arrays, without gold items, and the ranking of systems that they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, n_of, system_label
from dialometer.analysis.shared.comparisons import compared_criteria, compared_systems
from dialometer.analysis.shared.ranking import Lead, adjusted_pairs, lead, possible_ranks
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items
from dialometer.stats.observations import Ints, from_the_highest
from dialometer.stats.ranking.best_worst import BestWorstChoices, BestWorstScores
from dialometer.stats.ranking.maxdiff import Maxdiff, maxdiff


@dataclass(frozen=True, eq=False)
class BestWorstData:
    """All choices with the number of their criterion, and the position on the screen of the best (0: not known)."""

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

    def questions(self, comparison: Comparison) -> tuple[str, ...]:
        """The criteria that a comparison is about."""
        return tuple(name for name in self.criteria if not comparison.criteria or name in comparison.criteria)

    def labels(self, comparison: Comparison | None) -> tuple[str, ...]:
        """Labels of the systems that a comparison is about; of all without one."""
        levels = comparison.levels if comparison is not None else ()
        return tuple(
            label for name, label in zip(self.names, self.systems, strict=True) if not levels or name in levels
        )

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
        item=None if choices.item is None else choices.item[kept],
    )


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
        item=_codes(frame["item"], frame["item"].unique().sort().to_list()).astype(np.intp),
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
        notes=(f"{n_of(n_out, 'choice')} named systems that were not shown and were excluded.",) if n_out else (),
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
    """One ranking: scores from -1 (always worst) to 1 (always best), and all that is said of them from one fit.

    ``pairs`` are the tests behind every claim, corrected as one family; they hold for other raters and, unless the study
    declares its items as fixed, for other items. ``pairs_on_items`` hold for other raters on the items shown.
    """

    label: str
    choices: BestWorstChoices
    compared: tuple[str, ...]
    scores: dict[str, Estimate]
    pairs: dict[tuple[str, str], Estimate]
    pairs_on_items: dict[tuple[str, str], Estimate]
    model: Maxdiff
    options: Options

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """Compared systems that were shown, the best first."""
        return tuple(
            from_the_highest({name: self.scores[name].value for name in self.compared if self.scores[name].is_known})
        )

    @property
    def n_items(self) -> int:
        """Items that were judged."""
        return 0 if self.choices.item is None else len(np.unique(self.choices.item))

    @property
    def has_ranks(self) -> bool:
        """Whether any two systems could be tested."""
        return any(not math.isnan(gap.p_value) for gap in self.pairs.values())

    @cached_property
    def leader(self) -> Lead:
        """Who is first, and of whom that can be said after correction."""
        return self._lead(self.pairs)

    @cached_property
    def leader_on_items(self) -> Lead:
        """The same for the items shown only."""
        return self._lead(self.pairs_on_items)

    def _lead(self, pairs: dict[tuple[str, str], Estimate]) -> Lead:
        among = {name: self.scores[name] for name in self.compared}
        return lead(among, pairs, confidence=self.options.confidence) or Lead(self.ranked[0], (), self.ranked[1:])

    def rivals(self) -> tuple[str, ...]:
        """Systems that do not differ significantly from the first, the best first."""
        return tuple(name for name in self.ranked if name in (*self.leader.level, *self.leader.untested))

    def ranks(self, name: str) -> tuple[int, int] | None:
        """The ranks that the tests leave open; None where there are none."""
        return possible_ranks(self.ranked, self.pairs, name) if self.has_ranks and name in self.ranked else None


def rank_by_best_worst(
    choices: BestWorstChoices, label: str, options: Options, names: Sequence[str] = ()
) -> BestWorstRanking:
    """The ranking that a set of choices makes, of the systems with these labels or else of all."""
    fixed = BestWorstScores(choices, has_fixed_items=True, confidence=options.confidence)
    fit = fixed if options.has_fixed_items else BestWorstScores(choices, confidence=options.confidence)
    compared = tuple(name for name in choices.systems if not names or name in names)
    pairs = score_differences(fit, compared, options)
    return BestWorstRanking(
        label=label,
        choices=choices,
        compared=compared,
        scores=fit.scores,
        pairs=pairs,
        pairs_on_items=pairs if fit is fixed else score_differences(fixed, compared, options),
        model=maxdiff(choices, n_resamples=0, confidence=options.confidence, seed=options.seed),
        options=options,
    )


def score_differences(
    fit: BestWorstScores, compared: Sequence[str], options: Options
) -> dict[tuple[str, str], Estimate]:
    """Every two of the compared systems that were shown; one family of tests."""
    systems = fit.choices.systems
    known = [k for k, name in enumerate(systems) if name in compared and fit.scores[name].is_known]
    gaps = {(systems[a], systems[b]): fit.difference(a, b) for a, b in combinations(known, 2)}
    return adjusted_pairs(gaps, options.correction)


def declared_differences(
    given: BestWorstData, comparison: Comparison, options: Options
) -> dict[tuple[str, str], Estimate]:
    """The tests of a declared comparison, by the systems' labels; none where its systems were not chosen from yet."""
    choices = given.on(given.questions(comparison))
    if not choices.n:
        return {}
    fit = BestWorstScores(choices, has_fixed_items=options.has_fixed_items, confidence=options.confidence)
    return score_differences(fit, given.labels(comparison), options)
