"""Which system is rated higher: means that speak for other raters and items, and differences paired wherever possible.

A rater who saw several systems on the same item gives a difference in which the rater's level and the item's difficulty
cancel. These differences get their own random effects of raters and items, so that neither a few items on which a system
shines nor a few raters who like it can pass for a general lead. Where items show one system each, the means are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, numeric_measures
from dialometer.analysis.base.wording import as_geometric_mean, system_label
from dialometer.analysis.families.ratings.random_effects import crossed_differences, crossed_mean
from dialometer.analysis.families.ratings.rater_rows import RaterRows, rater_rows
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.multiplicity import Correction, adjust_estimates
from dialometer.stats.observations import Floats, Ints

FEWEST_PAIRS = 3
"""Shared screens of two systems below which their means are compared instead of their differences."""


@dataclass(frozen=True)
class SystemPair:
    """Two systems: the difference (first minus second, on the analysed footing) and the share of raters for the first."""

    first: int
    second: int
    difference: Estimate
    raters_for_first: Estimate

    @property
    def p_adjusted(self) -> float:
        """The p value corrected for the number of pairs."""
        return float(self.difference.details.get("p_adjusted", self.difference.p_value))


@dataclass(frozen=True)
class _Table:
    """One row per rater and item, one column per system (mean over criteria and turns, ``nan`` where not seen)."""

    y: Floats
    rater: Ints
    item: Ints


@dataclass(frozen=True)
class SystemRatings:
    """The systems of a study on one measure."""

    study: Study
    measure: Measure
    options: Options

    @cached_property
    def systems(self) -> list[int]:
        """Systems that have judgments, in the order of the study file."""
        present = set(np.unique(self.measure.system).tolist())
        order = [system.name for system in self.study.spec.systems]
        names = self.measure.book.systems
        known = [names.index(name) for name in order if name in names]
        return [code for code in known if code in present]

    def label(self, system: int) -> str:
        """What the system is called."""
        return system_label(self.study, self.measure.book.systems[system])

    @cached_property
    def means(self) -> dict[int, Estimate]:
        """The mean of every system; geometric for magnitudes."""
        found = {}
        for system in self.systems:
            y = self.table.y[:, system]
            given = ~np.isnan(y)
            one = crossed_mean(
                y[given],
                self.table.rater[given],
                self.table.item[given],
                confidence=self.options.confidence,
                label=self.label(system),
            )
            found[system] = as_geometric_mean(one) if self.measure.is_log else one
        return found

    @cached_property
    def table(self) -> _Table:
        """Judgments side by side."""
        measure = self.measure
        key = measure.rater * len(measure.book.items) + measure.item
        keys, row = np.unique(key, return_inverse=True)
        n_systems = len(measure.book.systems)
        place = row * n_systems + measure.system
        count = np.bincount(place, minlength=len(keys) * n_systems)
        sums = np.bincount(place, weights=measure.y, minlength=len(keys) * n_systems)
        y = np.divide(sums, count, out=np.full(len(sums), np.nan), where=count > 0).reshape(len(keys), n_systems)
        return _Table(y, keys // len(measure.book.items), keys % len(measure.book.items))

    @cached_property
    def is_paired(self) -> bool:
        """Whether raters mostly saw several systems on the same item."""
        seen = np.sum(~np.isnan(self.table.y), axis=1)
        return bool(np.mean(seen >= 2) > 0.5)

    def differences(self, first: int, second: int) -> tuple[Floats, Ints, Ints]:
        """Paired differences with their raters and items."""
        gap = self.table.y[:, first] - self.table.y[:, second]
        given = ~np.isnan(gap)
        return gap[given], self.table.rater[given], self.table.item[given]

    @cached_property
    def pairs(self) -> list[SystemPair]:
        """Every pair, the higher mean first, p values corrected over the pairs of the measure."""
        order = sorted(self.systems, key=lambda system: -self.means[system].value)
        return self.compare(list(itertools.combinations(order, 2)))

    def compare(self, chosen: Sequence[tuple[int, int]]) -> list[SystemPair]:
        """These pairs as one family of tests."""
        found: dict[tuple[int, int], Estimate] = {}
        unpaired = []
        for pair in chosen:
            gap, rater, item = self.differences(*pair)
            if self.is_paired and len(gap) >= FEWEST_PAIRS:
                one = crossed_mean(gap, rater, item, confidence=self.options.confidence, is_test=True)
                found[pair] = replace(one, method=f"{one.method} on paired differences")
            else:
                unpaired.append(pair)
        if unpaired:
            found |= self._unpaired(unpaired)
        correction: Correction = self.options.correction  # type: ignore[assignment]
        adjusted = adjust_estimates([found[pair] for pair in chosen], correction)
        return [SystemPair(*pair, one, self._raters_for(*pair)) for pair, one in zip(chosen, adjusted, strict=True)]

    def _unpaired(self, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], Estimate]:
        # What a system shows on an item is the random item here; its turns and criteria are no samples of their own.
        row, system = np.nonzero(~np.isnan(self.table.y))
        shown = self.table.item[row] * self.table.y.shape[1] + system
        return crossed_differences(
            self.table.y[row, system], system, self.table.rater[row], shown, pairs, confidence=self.options.confidence
        )

    def rater_gaps(self, first: int, second: int) -> Floats:
        """Each rater's mean difference, in the order of the raters; ``nan`` for raters who did not see both."""
        n = len(self.measure.book.raters)
        if self.is_paired:
            gap, rater, _ = self.differences(first, second)
            count = np.bincount(rater, minlength=n)
            sums = np.bincount(rater, weights=gap, minlength=n)
            return np.asarray(np.divide(sums, count, out=np.full(n, np.nan), where=count > 0))
        parts = []
        for system in (first, second):
            inside = self.measure.system == system
            count = np.bincount(self.measure.rater[inside], minlength=n)
            sums = np.bincount(self.measure.rater[inside], weights=self.measure.y[inside], minlength=n)
            parts.append(np.divide(sums, count, out=np.full(n, np.nan), where=count > 0))
        return np.asarray(parts[0] - parts[1])

    def _raters_for(self, first: int, second: int) -> Estimate:
        gaps = self.rater_gaps(first, second)
        gaps = gaps[~np.isnan(gaps)]
        if not len(gaps):
            return unknown("share of raters", "no rater saw both systems; let raters judge several")
        ahead = float(np.sum(gaps > 0) + np.sum(gaps == 0) / 2)
        return proportion(ahead, len(gaps), confidence=self.options.confidence)


# What every analysis of ratings starts from, computed once and only when a section asks for it.


@dataclass(frozen=True)
class RatingWork:
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
        return [SystemRatings(self.study, measure, self.options) for measure in self.measures.all]
