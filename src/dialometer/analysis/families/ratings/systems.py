"""Systems compared on one measure: every mean and every difference comes from one fit.

Raters and items are both samples, and so are the likings of raters for systems and the strengths of systems on items;
:mod:`dialometer.stats.effects.system_means` takes all of them into account, whatever the design shows side by side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import (
    Measure,
    Measures,
    RaterRows,
    Screens,
    means_by_group,
    numeric_measures,
    rater_rows,
)
from dialometer.analysis.base.scale_units import difference_within, within
from dialometer.analysis.base.wording import as_geometric_mean, n_of, system_label
from dialometer.analysis.families.ratings.ordinal_model import has_order, ordinal_of
from dialometer.analysis.shared.comparisons import corrected
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.report.numbers import SCALE_PERCENT
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.ordinal_systems import METHOD as ORDINAL
from dialometer.stats.effects.ordinal_systems import OrdinalSystems
from dialometer.stats.effects.system_means import MOST_LEVELS, SystemMeans, system_means
from dialometer.stats.observations import Floats, Ints, codes, from_the_highest, n_distinct

FEWEST = 2
"""Raters and items that a system needs for an interval and a test."""
FEW_MISSING = 0.05
"""Share of screens without some of the systems up to which these screens are left out of the comparison."""
Layout = Literal["screens", "items", "apart"]
"""What puts systems side by side: the same rater on the same item, the same item for other raters, or nothing."""

__all__ = ["FEWEST", "MOST_LEVELS", "Layout", "RatingRun", "SystemPair", "SystemRatings"]


@dataclass(frozen=True)
class SystemPair:
    """Two systems: the difference (first minus second, in the analysed unit) and the share of raters for the first."""

    first: int
    second: int
    difference: Estimate
    raters_for_first: Estimate

    @property
    def p_adjusted(self) -> float:
        """The p-value corrected for the number of pairs."""
        return float(self.difference.details.get("p_adjusted", self.difference.p_value))


@dataclass(frozen=True)
class SystemRatings:
    """The systems of a study on one measure."""

    study: Study
    measure: Measure
    options: Options

    @cached_property
    def systems(self) -> list[int]:
        """Systems that have judgments, in the order of the study file."""
        present = set(codes(self.measure.system)[1].tolist())
        order = [system.name for system in self.study.spec.systems]
        names = self.measure.book.systems
        known = [names.index(name) for name in order if name in names]
        return [code for code in known if code in present]

    def label(self, system: int) -> str:
        """What the system is called."""
        return system_label(self.study, self.measure.book.systems[system])

    @property
    def table(self) -> Screens:
        """Judgments side by side."""
        return self.measure.screens

    @cached_property
    def _is_compared(self) -> NDArray[np.bool_] | None:
        """The screens with every system, where nearly all have them; None where all screens are compared."""
        is_whole = np.asarray(~np.isnan(self.table.y[:, self.systems]).any(axis=1))
        return is_whole if not is_whole.all() and np.mean(~is_whole) <= FEW_MISSING else None

    @property
    def compared(self) -> Screens:
        """The screens of the comparison; where nearly all show every system, the few others are left out.

        Made anew each time: of a million judgments the copy that is in use is enough.
        """
        is_all = self.systems == list(range(self.table.y.shape[1]))
        y = self.table.y if is_all else self.table.y[:, self.systems]
        kept = self._is_compared
        if kept is not None:
            weight = None if self.table.weight is None else self.table.weight[kept]
            return Screens(y[kept], self.table.rater[kept], self.table.item[kept], weight)
        return replace(self.table, y=y)

    @cached_property
    def layout(self) -> Layout:
        """What puts systems side by side in most of the data."""
        if self.is_paired:
            return "screens"
        given = ~np.isnan(self.table.y)
        shown = np.zeros((len(self.measure.book.items), given.shape[1]), dtype=bool)
        np.logical_or.at(shown, self.table.item, given)
        n_systems = shown.sum(axis=1)[np.unique(self.table.item)]
        return "items" if np.mean(n_systems >= 2) > 0.5 else "apart"

    @cached_property
    def is_paired(self) -> bool:
        """Whether raters mostly saw several systems on the same item."""
        seen = np.sum(~np.isnan(self.table.y), axis=1)
        return bool(np.mean(seen >= 2) > 0.5)

    @property
    def n_items(self) -> int:
        """How many items are compared."""
        return n_distinct(self.compared.item)

    @property
    def n_raters(self) -> int:
        """How many raters are compared."""
        return n_distinct(self.compared.rater)

    @property
    def is_about_these_items(self) -> bool:
        """Whether claims are about the items shown only: declared so, or there is a single one."""
        return self.options.has_fixed_items or self.n_items == 1

    @cached_property
    def fit(self) -> SystemMeans | str:
        """The one fit behind all means and differences, or why there is none."""
        table = self.compared
        given = table.y[~np.isnan(table.y)]
        if self.n_raters < FEWEST:
            return "one rater says nothing about others; recruit more"
        if len(given) < 3:
            return f"{len(given)} judgments: at least 3 are needed for an interval; collect more"
        if np.ptp(given) == 0:
            return "all values are equal: no confidence interval"
        try:
            return system_means(
                table.y, table.rater, table.item, has_fixed_items=self.is_about_these_items, weights=table.weight
            )
        except NotEnoughData as error:
            return str(error)

    @property
    def is_by_order(self) -> bool:
        """Whether the study declares the ordinal model and the criterion is rated on an ordered scale."""
        return self.options.model == "ordinal" and len(self.systems) > 1 and has_order(self.measure)

    @cached_property
    def ordinal(self) -> OrdinalSystems | str:
        """The ordinal model, or why there is none; it stands behind all means and differences where it is declared."""
        try:
            return ordinal_of(self.measure, replace(self.options, has_fixed_items=self.is_about_these_items))
        except NotEnoughData as error:
            return str(error)

    @cached_property
    def method(self) -> str:
        """The name of the model that was fitted; empty where none was."""
        if self.is_by_order:
            return "" if isinstance(self.ordinal, str) else ORDINAL
        return "" if isinstance(self.fit, str) else self.fit.method

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the comparison must know."""
        n = 0 if self._is_compared is None else int(np.sum(~self._is_compared))
        notes = []
        if n:
            notes.append(f"{n_of(n, 'screen')} without a rating of every system excluded from the comparison")
        if self.is_about_these_items and not self.options.has_fixed_items:
            notes.append("one item: nothing is said about other items")
        return tuple(notes)

    @cached_property
    def means(self) -> dict[int, Estimate]:
        """The mean of every system; geometric for magnitudes."""
        if self.is_by_order:
            return {system: self._mean_by_order(system) for system in self.systems}
        means = {}
        for place, system in enumerate(self.systems):
            mean = self._combination({place: 1.0}, label=self.label(system))
            means[system] = as_geometric_mean(mean) if self.measure.is_log else within(mean, *self.measure.bounds)
            if self.measure.unit == "percent":
                means[system] = replace(means[system], unit=SCALE_PERCENT)
        return means

    def _mean_by_order(self, system: int) -> Estimate:
        if isinstance(self.ordinal, str):
            own = self.measure.y[self.measure.system == system]
            return Estimate(float(own.mean()), len(own), "mean", label=self.label(system), notes=(self.ordinal,))
        return replace(self.ordinal.mean(system), label=self.label(system))

    def _combination(self, weights: dict[int, float], *, label: str = "", is_test: bool = False) -> Estimate:
        """A weighted sum of the systems' means (by their places among ``systems``), with a test that it is zero."""
        fit, table, options = self.fit, self.compared, self.options
        given = ~np.isnan(table.y[:, list(weights)])
        n = int(given.sum())
        if isinstance(fit, str):
            value = sum(w * float(np.nanmean(table.y[:, place])) for place, w in weights.items())
            return Estimate(value, n, "mean", confidence=options.confidence, label=label, notes=(fit,))
        c = np.zeros(len(self.systems))
        c[list(weights)] = list(weights.values())
        counts = [
            (n_distinct(table.rater[g]), n_distinct(table.item[g]))
            for g in (given[:, k] for k in range(given.shape[1]))
        ]
        n_raters, n_items = (min(column) for column in zip(*counts, strict=True))
        details = {"n_raters": fit.n_raters, "n_items": fit.n_items}
        problem = ""
        if n_raters < FEWEST:
            problem = "a system was rated by one rater only: recruit more for an interval and a test"
        elif n_items < FEWEST and not self.is_about_these_items:
            problem = "a system was rated on one item only: nothing can be said about others; use more items"
        value, error, df = float(c @ fit.means), math.nan, math.nan
        if not problem:
            try:
                value, error, df = fit.contrast(c)
            except NotEnoughData as failed:
                problem = str(failed)
            if not problem and not (error > 1e-12 * max(1.0, abs(value)) and df > 0):
                problem = "no variation between raters and items: no confidence interval"
        if problem:
            notes = (*self.notes, problem)
            return Estimate(
                value, n, fit.method, confidence=options.confidence, label=label, notes=notes, details=details
            )
        half = float(stats.t.isf((1 - options.confidence) / 2, df)) * error
        t = value / error
        return Estimate(
            value=value,
            n=n,
            method=f"{fit.method}{', t-test' if is_test else ''}",
            low=value - half,
            high=value + half,
            confidence=options.confidence,
            interval_method=fit.interval_method,
            statistic=t if is_test else math.nan,
            df=(df,),
            p_value=float(2 * stats.t.sf(abs(t), df)) if is_test else math.nan,
            label=label,
            notes=self.notes,
            details={**details, "standard_error": error},
        )

    @cached_property
    def _known(self) -> dict[tuple[int, int], Estimate]:
        """Differences computed so far: several sections ask for the same ones."""
        return {}

    def _difference(self, first: int, second: int) -> Estimate:
        if not {first, second} <= set(self.systems):
            return unknown("difference of means", "one of the two has no judgments; collect some for both")
        if (first, second) not in self._known:
            place = {system: index for index, system in enumerate(self.systems)}
            weights = {place[first]: 1.0, place[second]: -1.0}
            gap = (
                self._difference_by_order(first, second)
                if self.is_by_order
                else self._combination(weights, is_test=True)
            )
            self._known[first, second] = gap if self.measure.is_log else difference_within(gap, *self.measure.bounds)
        return self._known[first, second]

    def _difference_by_order(self, first: int, second: int) -> Estimate:
        if isinstance(self.ordinal, str):
            return unknown(ORDINAL, self.ordinal, n=len(self.measure.y))
        return self.ordinal.difference(first, second)

    def differences(self, first: int, second: int) -> tuple[Floats, Ints, Ints]:
        """Paired differences with their raters and items."""
        gap = self.table.y[:, first] - self.table.y[:, second]
        given = ~np.isnan(gap)
        return gap[given], self.table.rater[given], self.table.item[given]

    @cached_property
    def order(self) -> list[int]:
        """Systems from the highest mean to the lowest."""
        fit = self.fit
        if isinstance(fit, str) or self.is_by_order:
            return from_the_highest({system: self.means[system].value for system in self.systems})
        return from_the_highest(dict(zip(self.systems, fit.means.tolist(), strict=True)))

    @cached_property
    def pairs(self) -> list[SystemPair]:
        """Every pair, the higher mean first, p-values corrected over the pairs of the measure."""
        return self.compare(list(itertools.combinations(self.order, 2)))

    def compare(self, chosen: Sequence[tuple[int, int]]) -> list[SystemPair]:
        """These pairs as one family of tests."""
        differences = [self._difference(*pair) for pair in chosen]
        return [
            SystemPair(*pair, difference, self._raters_for(*pair))
            for pair, difference in zip(chosen, corrected(differences, self.options), strict=True)
        ]

    def rater_gaps(self, first: int, second: int) -> Floats:
        """Each rater's mean difference, in the order of the raters; ``nan`` for raters who did not see both."""
        n = len(self.measure.book.raters)
        if self.is_paired:
            gap, rater, _ = self.differences(first, second)
            return means_by_group(gap, rater, n)
        own, other = (
            means_by_group(self.measure.y[inside], self.measure.rater[inside], n)
            for inside in (self.measure.system == first, self.measure.system == second)
        )
        return np.asarray(own - other)

    def _raters_for(self, first: int, second: int) -> Estimate:
        gaps = self.rater_gaps(first, second)
        gaps = gaps[~np.isnan(gaps)]
        if not len(gaps):
            return unknown("share of raters", "no rater saw both systems; let raters judge several")
        ahead = float(np.sum(gaps > 0) + np.sum(gaps == 0) / 2)
        share = proportion(ahead, len(gaps), confidence=self.options.confidence)
        return replace(share, method="share of raters who rate the first higher, ties half")


def ratings_of(data: StudyData, measure: Measure, options: Options) -> SystemRatings:
    """The systems on a measure of these data. Who asks again gets the same, so that a model is fitted once."""
    key = ("systems", id(measure), options)
    if key not in data.shared:
        data.shared[key] = SystemRatings(data.study, measure, options)
    ratings: SystemRatings = data.shared[key]
    return ratings


@dataclass(frozen=True)
class RatingRun:
    """One run of an analysis of ratings."""

    data: StudyData
    options: Options

    @property
    def study(self) -> Study:
        """The study that the judgments belong to."""
        return self.data.study

    @cached_property
    def measures(self) -> Measures:
        """Every criterion as numbers, and all of them together."""
        return numeric_measures(self.data)

    @cached_property
    def rows(self) -> RaterRows:
        """One row for each rater."""
        return rater_rows(self.data, self.measures)

    @cached_property
    def systems(self) -> list[SystemRatings]:
        """The systems' ratings by each measure, in the order of the measures."""
        return [ratings_of(self.data, measure, self.options) for measure in self.measures.all]
