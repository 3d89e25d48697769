"""Uncertainty over raters and items at once, for any model that is fitted by an estimating equation.

Which raters took part and which items they saw are both samples, and a claim about systems must hold for others of both.
For each factor the clusters are left out one after the other (the jackknife CV3 of MacKinnon, Nielsen and Webb 2023, by one
Newton step, which is exact for linear models); the variance of a contrast is that over raters, plus that over items, minus
that over single meetings of the two (Cameron, Gelbach and Miller 2011), and never below the larger of the first two.

Where each judgment is on two things of which several judgments have one in common, as pairs of transcripts do, ``items`` has two
columns: judgments are dependent if they share a thing (dyadic clustering: Fafchamps and Gubert 2007; Aronow, Samii and Assenova
2015). Things are left out one after the other, and what judgments on the same two things share is counted once; the variance is
never below that of separate pairs.

Tests use Student's t. Its degrees of freedom come from how much each cluster weighs in the contrast, not from the estimated
variances: with few items these are near zero now and then by chance, and Satterthwaite's formula would then trust them.
The smaller of the two factors counts, so two items leave one degree of freedom, and a single one leaves no test.

Checked in tests/stats/test_two_way.py against leave-one-out refits, against ``scipy.stats.ttest_1samp`` where one
factor is all there is, and by simulation: the share of false rejections in designs of 2 to 40 items.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.clustered.proportion import clopper_pearson_interval, wilson_interval
from dialometer.stats.observations import (
    Floats,
    Ints,
    check_confidence,
    codes,
    missing_note,
    n_distinct,
    numbers,
    same_length,
)

LARGEST_LEAVING_OUT = 2e7
"""Numbers in the matrices of all clusters above which clusters are no longer left out one by one (then they are many)."""
FEWEST_ITEMS = 2
ONE_ITEM = "one item only: nothing can be said about other items; use more items for a claim beyond these"


@dataclass(frozen=True, eq=False)
class _Factor:
    """One way of clustering: the change of the estimate when each cluster is left out, and each cluster's information."""

    changes: Floats  # clusters × parameters
    information: Floats  # clusters × parameters × parameters, or empty
    scale: float
    pairs: _Factor | None = None
    """Pairs of clusters, where each judgment is in two clusters: what is within a pair would count twice."""

    @property
    def n(self) -> int:
        """How many clusters there are; or pairs of them that have none in common."""
        return len(self.changes) if self.pairs is None else min(self.pairs.n, len(self.changes) // 2)

    def variance(self, contrast: Floats) -> float:
        moved = self.changes @ contrast
        variance = self.scale * float(moved @ moved)
        if self.pairs is None:
            return variance
        within = self.pairs.variance(contrast)
        return max(variance - within, within)

    def effective(self, contrast: Floats, inverse: Floats) -> float:
        """How many equally weighty clusters would weigh as much in this contrast (Satterthwaite's count of clusters)."""
        if not len(self.information):
            return float(self.n)
        if self.pairs is not None:
            return min(replace(self, pairs=None).effective(contrast, inverse), self.pairs.effective(contrast, inverse))
        weight = self.weights(contrast, inverse)
        total = float(weight.sum())
        return total**2 / float(weight @ weight) if total > 0 else 0.0

    def weights(self, contrast: Floats, inverse: Floats) -> Floats:
        """How much each cluster weighs in this contrast."""
        direction = inverse @ contrast
        return np.asarray(np.einsum("p,gpq,q->g", direction, self.information, direction))


@dataclass(frozen=True, eq=False)
class TwoWayVariance:
    """Uncertainty of fitted parameters over raters and, unless the items are fixed, over items."""

    inverse: Floats
    raters: _Factor
    items: _Factor | None
    meetings: _Factor | None

    def contrast(self, weights: ArrayLike, strata: ArrayLike | None = None) -> tuple[float, float]:
        """Standard error and degrees of freedom of a linear combination of the parameters.

        ``strata`` says for each item (in the order of :func:`codes`) to which group it belongs, where groups have items of
        their own and the contrast compares groups: then each group's mean takes one of its items, as in Welch's test.
        """
        c = np.asarray(weights, dtype=np.float64)
        of_raters = self.raters.variance(c)
        df = self.raters.effective(c, self.inverse) - 1
        if self.items is None or self.meetings is None:
            return math.sqrt(of_raters), df
        of_items = self.items.variance(c)
        together = of_raters + of_items - self.meetings.variance(c)
        of_design = self.items.effective(c, self.inverse) - 1 if strata is None else self._within(c, strata)
        return math.sqrt(max(together, of_raters, of_items)), min(df, of_design)

    def _within(self, contrast: Floats, strata: ArrayLike) -> float:
        """Welch's degrees of freedom as the design alone gives them: 0 where a group that counts has a single item."""
        if self.items is None or not len(self.items.information):
            return math.inf
        group, levels = codes(strata)
        weight = self.items.weights(contrast, self.inverse)
        total = np.bincount(group, weights=weight, minlength=len(levels))
        squares = np.bincount(group, weights=weight**2, minlength=len(levels))
        counts = total > 1e-9 * max(float(total.sum()), 1e-300)
        spare = total[counts] ** 2 / squares[counts] - 1
        if not counts.any() or np.any(spare < 1e-9):
            return 0.0
        return float(total.sum() ** 2 / np.sum(total[counts] ** 2 / spare))

    @cached_property
    def n_raters(self) -> int:
        """Raters that the variance was made from."""
        return self.raters.n

    @cached_property
    def n_items(self) -> int:
        """Items that it was made from; 0 where they are fixed."""
        return 0 if self.items is None else self.items.n


def two_way_variance(
    scores: Floats,
    rows: Floats,
    weights: Floats,
    raters: ArrayLike,
    items: ArrayLike | None,
    *,
    penalty: Floats | None = None,
) -> TwoWayVariance:
    """The variance of parameters that solve ``sum(scores) = penalty``.

    ``scores`` (judgments × parameters) are the derivatives of each judgment's log likelihood at the estimate, and the
    information of a judgment is ``weights[n] * outer(rows[n], rows[n])``: for least squares the weights are 1 and the rows
    the design, for a logistic model p(1-p). ``items=None`` takes the items as fixed; two columns are two things a judgment.
    ``penalty`` is added to the information.
    """
    rater, _ = codes(raters)
    total = (rows * weights[:, None]).T @ rows
    if penalty is not None:
        total = total + penalty
    inverse = linalg.pinvh(total)
    of_raters = _factor(scores, rows, weights, rater, total, inverse)
    if items is None:
        return TwoWayVariance(inverse, of_raters, None, None)
    if np.ndim(items) == 2:
        of_things, of_meetings = _of_pairs(scores, rows, weights, rater, items, total, inverse)
        return TwoWayVariance(inverse, of_raters, of_things, of_meetings)
    item, levels = codes(items)
    meeting, _ = codes(rater * len(levels) + item)
    return TwoWayVariance(
        inverse,
        of_raters,
        _factor(scores, rows, weights, item, total, inverse),
        _factor(scores, rows, weights, meeting, total, inverse, is_leaving_out=False),
    )


def text_and_pair(things: ArrayLike) -> tuple[Ints, Ints]:
    """For judgments on two things each (judgments × 2): the numbers of all first and then all second things, and of the pairs."""
    ids = np.asarray(things)
    thing, levels = codes(ids.T.ravel())
    first, second = np.split(thing, 2)
    pair, _ = codes(np.minimum(first, second) * len(levels) + np.maximum(first, second))
    return thing, pair


def _of_pairs(
    scores: Floats, rows: Floats, weights: Floats, rater: Ints, things: ArrayLike, total: Floats, inverse: Floats
) -> tuple[_Factor, _Factor]:
    """Over things, two of which are in each judgment, and over meetings of a rater with a thing."""
    thing, pair = text_and_pair(things)
    meeting, _ = codes(np.tile(rater, 2) * (int(thing.max()) + 1) + thing)
    on_pair, _ = codes(rater * (int(pair.max()) + 1) + pair)

    def twice(cluster: Ints, *, is_leaving_out: bool) -> _Factor:
        score, row, weight = (np.concatenate([part, part]) for part in (scores, rows, weights))
        return _factor(score, row, weight, cluster, total, inverse, is_leaving_out=is_leaving_out)

    of_pairs = _factor(scores, rows, weights, pair, total, inverse)
    of_meetings = _factor(scores, rows, weights, on_pair, total, inverse, is_leaving_out=False)
    return (
        replace(twice(thing, is_leaving_out=True), pairs=of_pairs),
        replace(twice(meeting, is_leaving_out=False), pairs=of_meetings),
    )


def weighted_variance(
    residual: Floats, weighted: Floats, rows: Floats, raters: ArrayLike, items: ArrayLike | None
) -> TwoWayVariance:
    """The variance of ``(weighted' rows)^-1 weighted' y``, such as the estimates of a mixed model with its weights held.

    ``weighted`` is the design times the inverse of the model's covariance, ``rows`` the design. With equal weights it is
    :func:`two_way_variance` of least squares. Of a million rows no more is held than these, and one column.
    """
    rater, _ = codes(raters)
    of_raters, total = _weighted_factor(residual, weighted, rows, rater)
    inverse = linalg.pinvh(total)
    if items is None:
        return TwoWayVariance(inverse, of_raters, None, None)
    item, levels = codes(items)
    of_meetings = _meetings(residual, weighted, inverse, rater * len(levels) + item)
    return TwoWayVariance(inverse, of_raters, _weighted_factor(residual, weighted, rows, item)[0], of_meetings)


def _weighted_factor(residual: Floats, weighted: Floats, rows: Floats, cluster: Ints) -> tuple[_Factor, Floats]:
    """How far leaving out each cluster moves the estimates, and ``weighted' rows``."""
    n, p = int(cluster.max(initial=-1)) + 1, rows.shape[1]
    sums, taken, spread = np.empty((n, p)), np.empty((n, p, p)), np.empty((n, p, p))
    for j in range(p):
        sums[:, j] = np.bincount(cluster, weights=weighted[:, j] * residual, minlength=n)
        for k in range(p):
            taken[:, j, k] = np.bincount(cluster, weights=weighted[:, j] * rows[:, k], minlength=n)
            spread[:, j, k] = np.bincount(cluster, weights=weighted[:, j] * weighted[:, k], minlength=n)
    total = taken.sum(axis=0)
    return _Factor(_solved(total - taken, sums), spread, (n - 1) / n if n > 1 else 1.0), total


def _meetings(residual: Floats, weighted: Floats, inverse: Floats, meeting: Ints) -> _Factor:
    """Over meetings of a rater with an item. Mostly each has one row; then nothing needs to be added up."""
    n, p = n_distinct(meeting), weighted.shape[1]
    if n == len(meeting):
        return _of_meetings(n, lambda part: weighted[part] * residual[part, None], inverse)
    cluster, _ = codes(meeting)
    sums = np.empty((n, p))
    for k in range(p):
        sums[:, k] = np.bincount(cluster, weights=weighted[:, k] * residual, minlength=n)
    return _of_meetings(n, sums.__getitem__, inverse)


def _of_meetings(n: int, sums: Callable[[slice], Floats], inverse: Floats) -> _Factor:
    """Only the variance of contrasts is asked of meetings, and there may be a million: a square root of it says the same."""
    p = len(inverse)
    changes = _root(n, sums, inverse) if n > p else sums(slice(None)) @ inverse
    return _Factor(changes, np.empty((0, p, p)), n / max(n - 1, 1))


def _solved(matrices: Floats, right: Floats) -> Floats:
    """Each system of equations solved, all at once; one that leaves a parameter open gets its shortest solution."""
    sizes = np.linalg.svd(matrices, compute_uv=False)
    is_open = ~(sizes[:, -1] > 1e-9 * sizes[:, 0])
    changes = np.empty_like(right)
    if not is_open.all():
        changes[~is_open] = np.linalg.solve(matrices[~is_open], right[~is_open][..., None])[..., 0]
    for g in np.flatnonzero(is_open):
        changes[g] = np.linalg.lstsq(matrices[g], right[g], rcond=1e-9)[0]
    return changes


def _factor(
    scores: Floats,
    rows: Floats,
    weights: Floats,
    cluster: Ints,
    total: Floats,
    inverse: Floats,
    *,
    is_leaving_out: bool = True,
) -> _Factor:
    n, p = int(cluster.max(initial=-1)) + 1, rows.shape[1]
    sums = np.empty((n, p))
    for k in range(p):
        sums[:, k] = np.bincount(cluster, weights=scores[:, k], minlength=n)
    if not is_leaving_out:
        return _of_meetings(n, sums.__getitem__, inverse)
    if n * p * p > LARGEST_LEAVING_OUT:
        return _Factor(sums @ inverse, np.empty((0, p, p)), n / max(n - 1, 1))
    information = np.empty((n, p, p))
    for j in range(p):
        for k in range(j, p):
            product = weights * rows[:, j] * rows[:, k]
            information[:, j, k] = information[:, k, j] = np.bincount(cluster, weights=product, minlength=n)
    scale = (n - 1) / n if n > 1 else 1.0
    if p == 1:  # a share or a mean: a division
        rest = total - information[:, :, 0]
        return _Factor(np.divide(sums, rest, out=np.zeros_like(sums), where=rest > 0), information, scale)
    return _Factor(_solved(total - information, sums), information, scale)


N_AT_ONCE = 100_000
"""Rows of which a square root is made at once."""


def _root(n: int, sums: Callable[[slice], Floats], inverse: Floats) -> Floats:
    """R with ``R'R`` the cross product of ``sums @ inverse``; a million rows are gone through in parts."""
    starts = range(0, n, N_AT_ONCE)
    roots = [np.linalg.qr(sums(slice(start, start + N_AT_ONCE)) @ inverse, mode="r") for start in starts]
    return np.asarray(roots[0] if len(roots) == 1 else np.linalg.qr(np.vstack(roots), mode="r"), dtype=np.float64)


def two_way_linear(
    values: ArrayLike, design: Floats, raters: ArrayLike, items: ArrayLike | None
) -> tuple[Floats, TwoWayVariance]:
    """Least-squares coefficients and their uncertainty over raters and items."""
    y = numbers(values)
    same_length(values=y, design=design)
    gram = design.T @ design
    coefficients = linalg.pinvh(gram) @ (design.T @ y)
    residual = y - design @ coefficients
    return coefficients, two_way_variance(design * residual[:, None], design, np.ones(len(y)), raters, items)


def two_way_share(
    answers: ArrayLike,
    raters: ArrayLike,
    items: ArrayLike | None,
    *,
    null: float = 0.5,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Share of "yes" (0 to 1; a tie may be 0.5) with an interval and a test that hold for other raters and other items.

    ``items=None`` takes the items as fixed: then it is :func:`clustered_proportion`, a claim about these items only. One
    item gives no interval and no test. Where all answers are equal, each item (or rater, whichever are fewer) counts once: a few
    items of which each decides by itself agree so often that no smaller p-value would hold its level (25 % of studies of three).
    """
    if items is None:
        return clustered_proportion(answers, raters, null=null, confidence=confidence, label=label)
    y, given_raters, given_items = numbers(answers), np.asarray(raters), np.asarray(items)
    same_length(answers=y, raters=given_raters, items=given_items)
    if np.any((y < 0) | (y > 1)):
        raise DialometerError("an answer lies outside 0 to 1", remedy="give 1 for, 0 against, 0.5 for a tie")
    is_given = ~np.isnan(y)
    y, rater, item = y[is_given], given_raters[is_given], given_items[is_given]
    method = "share, two-way jackknife over raters and items"
    if not len(y):
        return unknown(method, "no answers: collect at least one judgment", label=label)
    mean, notes = float(y.mean()), missing_note(int(np.sum(~is_given)))
    _, variance = two_way_linear(y, np.ones((len(y), 1)), rater, item)
    error, df = variance.contrast([1.0])
    details: dict[str, float | int] = {"n_raters": variance.n_raters, "n_items": variance.n_items}
    fewest = min(variance.n_raters, variance.n_items)
    if fewest < FEWEST_ITEMS:
        why = ONE_ITEM if variance.n_items < FEWEST_ITEMS else "one rater only: recruit more for an interval and a test"
        return Estimate(mean, len(y), method, confidence=confidence, label=label, notes=(*notes, why), details=details)
    level = check_confidence(confidence)
    if mean in (0.0, 1.0):
        plain = Estimate(mean, len(y), method, confidence=level, label=label, notes=notes, details=details)
        return _unanimous(plain, "item" if variance.n_items <= variance.n_raters else "rater", fewest, null)
    # Answers are never more certain than if each came from another rater on another item.
    n_effective = min(mean * (1 - mean) / error**2 if error > 0 else math.inf, float(len(y)))
    low, high = wilson_interval(
        mean * n_effective, n_effective, quantile=float(stats.t.isf((1 - level) / 2, max(df, 0.5)))
    )
    statistic = (mean - null) / math.sqrt(null * (1 - null) / n_effective)
    return Estimate(
        value=mean,
        n=len(y),
        method=f"{method}, score t-test of {null:g}",
        low=low,
        high=high,
        confidence=level,
        interval_method="Wilson with effective number of answers and Student's t",
        statistic=statistic,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(statistic), max(df, 0.5))),
        label=label,
        notes=notes,
        details={**details, "standard_error": error, "n_effective": n_effective, "design_effect": len(y) / n_effective},
    )


def _unanimous(plain: Estimate, unit: str, n: int, null: float) -> Estimate:
    """A share of all or none, where each of ``n`` items (or raters) counts as one answer."""
    low, high = clopper_pearson_interval(plain.value * n, n, confidence=plain.confidence)
    p_value = float(stats.binomtest(round(plain.value * n), n, null).pvalue)
    note = f"all answers are equal: each {unit} counts as one answer in the interval and the test"
    bound = f"; with {n} {unit}s p cannot fall below {p_value:.3f}".replace("0.", ".") if p_value > 0.001 else ""
    return replace(
        plain, low=low, high=high, interval_method=f"Clopper-Pearson over {unit}s", p_value=p_value,
        notes=(*plain.notes, note + bound),
    )  # fmt: skip
