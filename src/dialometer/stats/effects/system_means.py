"""Means of several systems and all their differences from one fit, with raters and items as samples.

What a rater likes about a system (rater × system) and what a system does well (item × system) vary as well, and a test
that leaves this out claims differences that are not there (Barr, Levy, Scheepers and Tily 2013). There are two cases.

*Complete screens*: each rater judged all systems on the same item. In differences within a screen the rater's level and
the item's difficulty cancel; what is left of raters and items is rater × system and item × system variation. Each difference
gets a mixed model of its own (random raters and items, REML), so variances may differ between systems. All systems share one
set of weights for the screens, so the difference of two means is the mean of their differences.

*Everything else* (raters saw one system of an item, items show one system each, or ratings are missing): the means are those
of the linear mixed model ``y ~ 0 + system + (1|rater) + (1|item)``, a weighted sum of the ratings, and its uncertainty is the
two-way jackknife over raters and items (:mod:`dialometer.stats.clustered.two_way`). This needs no model of the interactions
and no equal variances. With more than 250 raters and 250 items no mixed model is fitted: ratings weigh alike.

Checked in tests/stats/test_system_means.py against ``lme4::lmer`` (estimates; for two systems on complete screens the
standard error too), ``scipy.stats.ttest_rel`` and ``ttest_ind(equal_var=False)`` where only raters vary, leave-one-out refits,
and by simulation of studies without a difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import NotEnoughData
from dialometer.stats.clustered.two_way import TwoWayVariance, weighted_variance
from dialometer.stats.effects.mixed import CrossedFit, fit_crossed, weighted_by_model
from dialometer.stats.observations import Floats, Ints, codes

MOST_LEVELS = 250
"""Levels of the smaller of the two random factors up to which a mixed model is fitted; beyond it ratings weigh alike."""
FEWEST_LEVELS = 8
"""Raters and items from which on a mixed model is trusted with their variance. With fewer its estimate is often near zero by
chance, and Satterthwaite's formula then counts the degrees of freedom of the other. In balanced studies of 30 to 150 raters without
a difference (``python -m bench.calibrate.few_levels``), with 4 items 4 to 6% of single tests and 5 to 9% of three corrected
ones were significant, with 8 items 4 to 5% and 4 to 6%; by the jackknife at most 5%. With 2 and 3 items it was 6 to 9%."""
MIXED = "linear mixed model of differences within screens, REML, random raters and items"
MIXED_INTERVAL = "Student's t with Satterthwaite's degrees of freedom"
ROBUST = "linear mixed model of ratings, two-way jackknife over raters and items"
ROBUST_FIXED = "linear mixed model of ratings, jackknife over raters, items as they are"
PLAIN = "means of ratings, two-way jackknife over raters and items"
PLAIN_FIXED = "means of ratings, jackknife over raters, items as they are"
ROBUST_INTERVAL = "Student's t, effective number of the fewer of raters and items"


def system_means(
    table: Floats, raters: Ints, items: Ints, *, has_fixed_items: bool = False, weights: Floats | None = None
) -> PairedMeans | OpenMeans:
    """The means of the columns of a table with one row per rater and item (a screen) and one column per system.

    ``nan`` where the rater did not see the system on the item. Every column needs a rating. ``has_fixed_items`` makes the
    uncertainty one over raters only, for claims about these items. ``weights`` say what each screen weighs, where the systems
    that it shows were drawn with unequal probabilities: the ratings of a screen count as if they were so many.
    """
    rater, _ = codes(raters)
    item, _ = codes(items)
    fewest = min(int(rater.max()), int(item.max())) + 1
    is_small = fewest <= MOST_LEVELS
    if FEWEST_LEVELS <= fewest <= MOST_LEVELS and not has_fixed_items and weights is None and not np.isnan(table).any():
        return PairedMeans(table, rater, item)
    return _open_means(table, rater, item, is_weighted=is_small, has_fixed_items=has_fixed_items, weights=weights)


@dataclass(frozen=True, eq=False)
class PairedMeans:
    """Means over complete screens. The weights of screens are those of one mixed model of all differences together."""

    table: Floats
    rater: Ints
    item: Ints
    method = MIXED
    interval_method = MIXED_INTERVAL

    @property
    def n_raters(self) -> int:
        """How many raters there are."""
        return int(self.rater.max()) + 1

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return int(self.item.max()) + 1

    @cached_property
    def is_balanced(self) -> bool:
        """Whether every rater judged every item."""
        return len(self.table) == self.n_raters * self.n_items

    @cached_property
    def weights(self) -> Floats:
        """How much each screen weighs; they add up to one."""
        n, k = self.table.shape
        if self.is_balanced:
            return np.full(n, 1 / n)
        # Orthonormal contrasts of the systems (or the ratings of a single one), each with its own raters and items.
        basis = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, 1:]]))[0][:, 1:] if k > 1 else np.ones((1, 1))
        gaps = (self.table @ basis).T.ravel()
        width = basis.shape[1]
        part = np.repeat(np.arange(width), n)
        rater, item = np.tile(self.rater, width), np.tile(self.item, width)
        try:
            fit = fit_crossed(gaps, np.eye(width)[part], rater * width + part, item * width + part)
        except NotEnoughData:
            return np.full(n, 1 / n)
        weight = weighted_by_model(np.ones((n, 1)), self.rater, self.item, fit.ratios)[:, 0]
        return np.asarray(weight / weight.sum())

    @cached_property
    def means(self) -> Floats:
        """The weighted mean of each system."""
        return np.asarray(self.weights @ self.table)

    def contrast(self, weights: ArrayLike) -> tuple[float, float, float]:
        """A weighted sum of the means, with the variances of raters and items that this sum of ratings has."""
        c = np.asarray(weights, dtype=np.float64)
        y = self.table @ c
        value = float(c @ self.means)
        if np.ptp(y) < 1e-12 * max(1.0, float(np.abs(y).max())):
            return value, 0.0, math.nan
        closed = _balanced(y, self.rater, self.item, self.n_raters, self.n_items) if self.is_balanced else None
        if closed is not None:
            return value, *closed
        fit = fit_crossed(y, np.ones((len(y), 1)), self.rater, self.item)
        return value, *_of_sum(fit, self.weights, self.rater, self.item)


def _of_sum(fit: CrossedFit, weights: Floats, rater: Ints, item: Ints) -> tuple[float, float]:
    """Standard error and Satterthwaite's degrees of freedom of a weighted sum of judgments under a fitted model."""
    shares = [float(np.sum(np.bincount(codes, weights=weights) ** 2)) for codes in (rater, item)]
    parts = np.array([fit.variances["rater"] * shares[0], fit.variances["item"] * shares[1]])
    variance = float(parts.sum() + fit.variances["residual"] * (weights @ weights))
    # By the logarithms of the free ratios, and of the residual variance, which scales everything.
    slope = np.array([*(2 * part for part in parts if part > 0), variance])
    uncertainty = float(slope @ fit.parameter_covariance @ slope)
    return math.sqrt(variance), 2 * variance**2 / uncertainty if uncertainty > 0 else math.inf


def _balanced(values: Floats, rater: Ints, item: Ints, n_raters: int, n_items: int) -> tuple[float, float] | None:
    """Every rater judged every item once: REML is the analysis of variance, as long as no component is negative."""
    table = np.full((n_raters, n_items), np.nan)
    table[rater, item] = values
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
    return math.sqrt(spread / len(values)), df


@dataclass(frozen=True, eq=False)
class OpenMeans:
    """Means of ratings that are not side by side, with their uncertainty by leaving out raters and items."""

    means: Floats
    variance: TwoWayVariance
    n_raters: int
    n_items: int
    method: str
    system_of_rater: Ints | None
    """The system that each rater saw, where none saw several; then groups of raters are compared."""
    system_of_item: Ints | None
    interval_method = ROBUST_INTERVAL

    def contrast(self, weights: ArrayLike) -> tuple[float, float, float]:
        """A weighted sum of the means; where systems have raters or items of their own, with Welch's degrees of freedom."""
        c = np.asarray(weights, dtype=np.float64)
        error, df = self.variance.contrast(c)
        if self.system_of_rater is not None:
            df = min(df, _welch(self.variance.raters.changes @ c, self.system_of_rater, c))
        if self.system_of_item is not None and self.variance.items is not None:
            df = min(df, _welch(self.variance.items.changes @ c, self.system_of_item, c))
        return float(c @ self.means), error, df


def _welch(moved: Floats, system: Ints, contrast: Floats) -> float:
    """Welch's degrees of freedom of groups of raters (or items), from how far leaving each out moves the contrast."""
    parts = [moved[system == k] for k in np.flatnonzero(contrast)]
    squares = np.array([float(part @ part) for part in parts])
    sizes = np.array([len(part) for part in parts])
    if squares.sum() <= 0 or sizes.min() < 2:
        return math.inf
    return float(squares.sum() ** 2 / np.sum(squares**2 / (sizes - 1)))


def _own_system(cluster: Ints, system: Ints) -> Ints | None:
    """The system of each rater (or item); None where one has several."""
    first = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    first[cluster] = system
    return first if bool(np.all(first[cluster] == system)) else None


def _open_means(
    table: Floats, rater: Ints, item: Ints, *, is_weighted: bool, has_fixed_items: bool, weights: Floats | None
) -> OpenMeans:
    row, system = np.nonzero(~np.isnan(table))
    y, of_rater, of_item = table[row, system], rater[row], item[row]
    weight = None if weights is None else weights[row]
    own = (_own_system(of_rater, system), _own_system(of_item, system)) if table.shape[1] > 1 else (None, None)
    design = np.eye(table.shape[1], dtype=bool)[system]
    del row  # of a million judgments each such column takes 8 MB
    weighted = design if weight is None else design * weight[:, None]
    if is_weighted:
        fit = fit_crossed(y, design, of_rater, of_item)
        weighted = weighted_by_model(design, of_rater, of_item, fit.ratios, weight)
    columns = range(table.shape[1])
    total = np.array([np.bincount(system, weights=weighted[:, k], minlength=len(columns)) for k in columns])
    means = np.asarray(np.linalg.solve(total, [weighted[:, k] @ y for k in columns]), dtype=np.float64)
    residual = y - means[system]
    del system
    variance = weighted_variance(residual, weighted, design, of_rater, None if has_fixed_items else of_item)
    of_both, of_raters = (ROBUST, ROBUST_FIXED) if is_weighted else (PLAIN, PLAIN_FIXED)
    method = of_raters if has_fixed_items else of_both
    return OpenMeans(means, variance, int(rater.max()) + 1, int(item.max()) + 1, method, *own)


SystemMeans = PairedMeans | OpenMeans
"""Means of systems from one fit; their differences are its contrasts."""
