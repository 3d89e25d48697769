"""Means and differences whose intervals speak for other raters and other items.

Raters and items are both samples. Up to some hundred levels the linear mixed model with both as random effects is used;
beyond that its matrices grow too large and the two-way cluster-robust variance of Cameron, Gelbach and Miller (2011) takes
its place, which needs many levels and then has them.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, RaterRows, means_by_group, numeric_measures, rater_rows
from dialometer.analysis.base.wording import as_geometric_mean, system_label
from dialometer.analysis.shared.comparisons import corrected
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.mixed import CrossedFit, fit_crossed
from dialometer.stats.observations import Floats, Ints

T = TypeVar("T")
MOST_LEVELS = 250
"""Levels of the smaller of the two random factors up to which the mixed model is fitted."""
MIXED = "linear mixed model, REML, crossed random raters and items"
MIXED_INTERVAL = "Student's t with Satterthwaite's degrees of freedom"
ROBUST = "mean, two-way cluster-robust by rater and item (Cameron, Gelbach and Miller 2011)"


@dataclass(frozen=True, slots=True)
class _Combination:
    """A linear combination of means with its standard error and degrees of freedom."""

    value: float
    error: float
    df: float
    method: str
    interval_method: str
    notes: tuple[str, ...] = ()


def fitted(fit: Callable[[], T]) -> T:
    """The result of fitting a model; data on which its likelihood has no maximum are refused in words.

    Very few or very regular judgments leave no residual variance; the optimiser then fails in one of several ways.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return fit()
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, Warning) as error:
        raise NotEnoughData(
            "the judgments are too few or too regular for a mixed model", remedy="collect more"
        ) from error


def crossed_mean(
    values: Floats, raters: Ints, items: Ints, *, confidence: float, label: str = "", is_test: bool = False
) -> Estimate:
    """The mean over raters and items, and the test that it is zero if ``is_test`` (for differences)."""
    n_raters, n_items = _n_levels(raters), _n_levels(items)
    problem = _problem(values, n_raters)
    if problem:
        return _without_interval(values, problem, confidence, label)
    balanced = _balanced(values, raters, items, n_raters, n_items)
    if balanced is not None:
        combination = balanced
    elif min(n_raters, n_items) > MOST_LEVELS:
        mean = float(values.mean())
        combination = _robust(mean, (values - mean) / len(values), raters, items)
    else:
        try:
            fit = fitted(lambda: fit_crossed(values, np.ones((len(values), 1)), raters, items))
        except NotEnoughData as error:
            return _without_interval(values, str(error), confidence, label)
        combination = _Combination(*fit.contrast([1.0]), MIXED, MIXED_INTERVAL, _remarks(fit))
    return _estimate(combination, len(values), n_raters, n_items, confidence, label, is_test=is_test)


def crossed_differences(
    values: Floats,
    groups: Ints,
    raters: Ints,
    items: Ints,
    pairs: Sequence[tuple[int, int]],
    *,
    confidence: float,
) -> dict[tuple[int, int], Estimate]:
    """Differences of group means (first minus second) where each item belongs to one group and cannot be paired."""
    present, group = np.unique(groups, return_inverse=True)
    place = {int(code): index for index, code in enumerate(present)}
    usable = [pair for pair in pairs if pair[0] in place and pair[1] in place]
    why = "one of the two has no judgments; collect some for both"
    differences = {pair: unknown(MIXED, why) for pair in pairs if pair not in usable}
    n_raters, n_items = _n_levels(raters), _n_levels(items)
    problem = _problem(values, n_raters) or ("" if n_items > len(present) else "one item each: rate more items")
    if problem or not usable:
        return differences | {pair: unknown(MIXED, problem, n=len(values)) for pair in usable}
    if min(n_raters, n_items) > MOST_LEVELS:
        for pair in usable:
            parts = _robust_difference(values, group, raters, items, place[pair[0]], place[pair[1]])
            differences[pair] = _estimate(parts, len(values), n_raters, n_items, confidence, "", is_test=True)
        return differences
    design = np.zeros((len(values), len(present)))
    design[np.arange(len(values)), group] = 1.0
    try:
        fit = fitted(lambda: fit_crossed(values, design, raters, items))
    except NotEnoughData as error:
        return differences | {pair: unknown(MIXED, str(error), n=len(values)) for pair in usable}
    for pair in usable:
        weights = np.zeros(len(present))
        weights[place[pair[0]]], weights[place[pair[1]]] = 1.0, -1.0
        parts = _Combination(*fit.contrast(weights), MIXED, MIXED_INTERVAL, _remarks(fit))
        differences[pair] = _estimate(parts, len(values), n_raters, n_items, confidence, "", is_test=True)
    return differences


def _remarks(fit: CrossedFit) -> tuple[str, ...]:
    """Notes for readers; that a variance was estimated as zero is no news for a difference, and common."""
    return tuple(note for note in fit.notes if "estimated as zero" not in note)


def _n_levels(codes: Ints) -> int:
    return int(np.count_nonzero(np.bincount(codes))) if len(codes) else 0


def _problem(values: Floats, n_raters: int) -> str:
    if not len(values):
        return "no judgments: collect some"
    if n_raters < 2:
        return "one rater: no interval speaks for others; recruit more"
    if len(values) < 3:
        return f"{len(values)} judgments: at least 3 are needed for an interval; collect more"
    return "all values are equal: no interval" if np.ptp(values) == 0 else ""


def _without_interval(values: Floats, why: str, confidence: float, label: str) -> Estimate:
    if not len(values):
        return unknown(MIXED, why, label=label)
    return Estimate(float(values.mean()), len(values), "mean", confidence=confidence, label=label, notes=(why,))


def _estimate(
    combination: _Combination, n: int, n_raters: int, n_items: int, confidence: float, label: str, *, is_test: bool
) -> Estimate:
    details = {"standard_error": combination.error, "n_raters": n_raters, "n_items": n_items}
    notes = combination.notes
    if n_items < 2:
        notes = (*notes, "one item: the interval says nothing about other items")
    if not combination.error > 0:
        why = "no variation between raters and items: no interval"
        return Estimate(
            combination.value, n, combination.method, confidence=confidence, label=label, notes=(*notes, why)
        )
    half = float(stats.t.isf((1 - confidence) / 2, combination.df)) * combination.error
    t = combination.value / combination.error
    return Estimate(
        value=combination.value,
        n=n,
        method=f"{combination.method}{', t-test' if is_test else ''}",
        low=combination.value - half,
        high=combination.value + half,
        confidence=confidence,
        interval_method=combination.interval_method,
        statistic=t if is_test else math.nan,
        df=(combination.df,),
        p_value=float(2 * stats.t.sf(abs(t), combination.df)) if is_test else math.nan,
        label=label,
        notes=notes,
        details=details,
    )


def _balanced(values: Floats, raters: Ints, items: Ints, n_raters: int, n_items: int) -> _Combination | None:
    """Every rater judged every item once: REML is the analysis of variance, as long as no component is negative."""
    if len(values) != n_raters * n_items or n_items < 2:
        return None
    _, row = np.unique(raters, return_inverse=True)
    _, column = np.unique(items, return_inverse=True)
    table = np.full((n_raters, n_items), np.nan)
    table[row, column] = values
    if np.isnan(table).any():
        return None
    mean = float(table.mean())
    by_rater, by_item = table.mean(axis=1) - mean, table.mean(axis=0) - mean
    df_rater, df_item = n_raters - 1, n_items - 1
    of_rater = n_items * float(by_rater @ by_rater) / df_rater
    of_item = n_raters * float(by_item @ by_item) / df_item
    table -= mean + by_rater[:, None] + by_item[None, :]
    rest = float(np.sum(table**2)) / (df_rater * df_item)
    if min(of_rater, of_item) < rest or rest <= 0:
        return None
    spread = of_rater + of_item - rest
    df = spread**2 / (of_rater**2 / df_rater + of_item**2 / df_item + rest**2 / (df_rater * df_item))
    return _Combination(mean, math.sqrt(spread / len(values)), df, MIXED, MIXED_INTERVAL)


def _robust(value: float, influence: Floats, raters: Ints, items: Ints) -> _Combination:
    """Squared sums over raters, plus over items, minus over their meetings; each scaled for its number of clusters."""
    meeting = raters * (int(items.max()) + 1) + items
    _, meeting = np.unique(meeting, return_inverse=True)
    variance, fewest = 0.0, math.inf
    for codes, sign in ((raters, 1.0), (items, 1.0), (meeting, -1.0)):
        n = _n_levels(codes)
        sums = np.bincount(codes, weights=influence)
        variance += sign * n / (n - 1) * float(sums @ sums)
        fewest = min(fewest, n)
    return _Combination(
        value, math.sqrt(max(variance, 0.0)), fewest - 1, ROBUST, "Student's t, levels of the smaller factor"
    )


def _robust_difference(values: Floats, group: Ints, raters: Ints, items: Ints, first: int, second: int) -> _Combination:
    influence = np.zeros(len(values))
    means = []
    for code, sign in ((first, 1.0), (second, -1.0)):
        inside = group == code
        means.append(float(values[inside].mean()))
        influence[inside] = sign * (values[inside] - means[-1]) / inside.sum()
    return _robust(means[0] - means[1], influence, raters, items)


# A rater who saw several systems on the same item gives a difference in which the rater's level and the item's difficulty
# cancel. These differences get their own random effects of raters and items, so that a few items or raters that favour a
# system do not pass for a general lead. Where items show one system each, the means are compared.


FEWEST_PAIRS = 3
"""Shared screens of two systems below which their means are compared instead of their differences."""


@dataclass(frozen=True)
class SystemPair:
    """Two systems: the difference (first minus second, in the analysed unit) and the share of raters for the first."""

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
        means = {}
        for system in self.systems:
            y = self.table.y[:, system]
            given = ~np.isnan(y)
            mean = crossed_mean(
                y[given],
                self.table.rater[given],
                self.table.item[given],
                confidence=self.options.confidence,
                label=self.label(system),
            )
            means[system] = as_geometric_mean(mean) if self.measure.is_log else mean
        return means

    @cached_property
    def table(self) -> _Table:
        """Judgments side by side."""
        measure = self.measure
        key = measure.rater * len(measure.book.items) + measure.item
        keys, row = np.unique(key, return_inverse=True)
        n_systems = len(measure.book.systems)
        place = row * n_systems + measure.system
        y = means_by_group(measure.y, place, len(keys) * n_systems).reshape(len(keys), n_systems)
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
        differences: dict[tuple[int, int], Estimate] = {}
        unpaired = []
        for pair in chosen:
            gap, rater, item = self.differences(*pair)
            if self.is_paired and len(gap) >= FEWEST_PAIRS:
                difference = crossed_mean(gap, rater, item, confidence=self.options.confidence, is_test=True)
                differences[pair] = replace(difference, method=f"{difference.method} on paired differences")
            else:
                unpaired.append(pair)
        if unpaired:
            differences |= self._unpaired(unpaired)
        adjusted = corrected([differences[pair] for pair in chosen], self.options)
        return [
            SystemPair(*pair, difference, self._raters_for(*pair))
            for pair, difference in zip(chosen, adjusted, strict=True)
        ]

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
        return proportion(ahead, len(gaps), confidence=self.options.confidence)


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
        return [SystemRatings(self.study, measure, self.options) for measure in self.measures.all]
