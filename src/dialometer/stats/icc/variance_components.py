"""Where the variance of ratings comes from: items, raters and the rest, for designs with holes.

Restricted maximum likelihood for ``y ~ 1 + (1 | item) + (1 | rater)``. The larger of the two factors is eliminated by hand
(its block is diagonal), the smaller one by a Cholesky factor of its own size, so that 1,000 items by 1,000 raters with few
judgments each take a second. Validated against R ``lme4::lmer(y ~ 1 + (1|item) + (1|rater), REML=TRUE)`` 1.1.31 on the RankME
ratings, against ``statsmodels`` MixedLM, and against the ANOVA on complete designs, where REML equals it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize, sparse

from dialometer.stats.observations import Floats, Ints, as_judgments

_DENSE_SHARE = 0.05  # fuller tables of item by rater are kept as plain arrays
_MOST_GRAM_CELLS = 4_000_000
_SMALL = 150
_LARGEST_RATIO = 1e8  # variance of an effect over that of the residual: beyond, the residual is called zero


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of items, raters and residual; ``nan`` with a note in ``notes`` where the design cannot tell them."""

    item: float
    rater: float
    residual: float
    mean: float
    n_judgments: int
    n_items: int
    n_raters: int
    judgments_per_item: float
    """Harmonic mean."""
    is_rater_separable: bool = True
    """False when every rater gave one judgment: then ``residual`` holds the raters too."""
    deviance: float = math.nan
    has_converged: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """False when the design or the data did not allow an estimate."""
        return not math.isnan(self.item)


class CrossedLikelihood:
    """The restricted likelihood of one data set as a function of two ratios of variances (effect over residual).

    Works with sums per item, per rater and the table of counts only; the judgments themselves are not kept.
    """

    def __init__(self, values: Floats, item: Ints, rater: Ints) -> None:
        self.n = len(values)
        self.mean = float(values.mean())
        y = values - self.mean
        self.is_swapped = item.max() < rater.max()  # the factor with more levels is the one eliminated
        big, small = (rater, item) if self.is_swapped else (item, rater)
        self.n_big, self.n_small = np.bincount(big).astype(np.float64), np.bincount(small).astype(np.float64)
        self.sum_big, self.sum_small = np.bincount(big, weights=y), np.bincount(small, weights=y)
        self.square = float(y @ y)
        shape = (len(self.n_big), len(self.n_small))
        table = sparse.coo_array((np.ones(self.n), (big, small)), shape=shape).tocsr()
        is_dense = table.nnz > _DENSE_SHARE * shape[0] * shape[1] or shape[0] * shape[1] < 10_000
        self.table = table.toarray() if is_dense else table
        self._group_levels()

    def moment_ratios(self) -> tuple[float, float]:
        """A rough guess at both ratios from one-way analyses of variance: where the search starts."""
        variances, within = [], []
        for count, total in ((self.n_big, self.sum_big), (self.n_small, self.sum_small)):
            explained, levels = float((total**2 / count).sum()), len(count)
            inside = (self.square - explained) / max(self.n - levels, 1)
            k0 = (self.n - float(count @ count) / self.n) / (levels - 1)
            variances.append((explained / (levels - 1) - inside) / k0)
            within.append(inside)
        residual = max(within[0] - max(variances[1], 0.0), 0.02 * self.square / self.n)
        big, small = (max(variance / residual, 0.01) for variance in variances)
        return (small, big) if self.is_swapped else (big, small)

    def _group_levels(self) -> None:
        """Levels of the large factor with equally many judgments have equal weights: sum their part of the table once."""
        sizes, self.first, group = np.unique(self.n_big, return_index=True, return_inverse=True)
        self.grams: Floats | None = None
        if len(sizes) * len(self.n_small) ** 2 <= _MOST_GRAM_CELLS:
            parts = [self.table[np.flatnonzero(group.ravel() == index)] for index in range(len(sizes))]
            products = [part.T @ part for part in parts]
            self.grams = np.stack([np.ravel(p.toarray() if sparse.issparse(p) else p) for p in products])

    def _gram(self, weights: Floats) -> Floats:
        """Table' diag(weights) table; the weights of levels with equal counts are equal."""
        if self.grams is not None:
            return np.asarray(weights[self.first] @ self.grams).reshape(len(self.n_small), len(self.n_small))
        if sparse.issparse(self.table):
            scaled = self.table.multiply(np.sqrt(weights)[:, None]).tocsr()
            return np.asarray((scaled.T @ scaled).toarray())
        scaled = self.table * np.sqrt(weights)[:, None]
        return np.asarray(scaled.T @ scaled)

    def _traces(self, inverse: Floats, *weights: Floats) -> list[float]:
        """Trace of inverse times the gram of each of the weights."""
        if self.grams is not None:
            per_group = self.grams @ inverse.ravel()
            return [float(weight[self.first] @ per_group) for weight in weights]
        product = self.table @ inverse
        if sparse.issparse(self.table):
            leverage = np.asarray(self.table.multiply(product).sum(axis=1)).ravel()
        else:
            leverage = np.einsum("ij,ij->i", product, self.table)
        return [float(weight @ leverage) for weight in weights]

    def deviance(self, item_ratio: float, rater_ratio: float) -> float:
        """Minus twice the restricted log-likelihood, the residual variance profiled out (lme4's REML criterion)."""
        return self.evaluate(item_ratio, rater_ratio, with_gradient=False)[0]

    def evaluate(
        self, item_ratio: float, rater_ratio: float, *, with_gradient: bool = True
    ) -> tuple[float, Floats, float, float]:
        """Deviance, its gradient in the two ratios, the residual variance and the mean.

        With tau the ratios, the scaled covariance is V = I + tau_b Z_b Z_b' + tau_s Z_s Z_s'. A below is the inverse
        without the small factor; S = I + tau_s Z_s' A Z_s carries the rest (Woodbury).
        """
        tau_b, tau_s = (rater_ratio, item_ratio) if self.is_swapped else (item_ratio, rater_ratio)
        shrink = 1 / (1 + tau_b * self.n_big)
        pull = tau_b * shrink
        outer = -tau_s * self._gram(pull)
        outer.flat[:: len(outer) + 1] += 1 + tau_s * self.n_small  # S
        lower, _ = linalg.lapack.dpotrf(outer.T, lower=1, overwrite_a=1)
        one_s = self.n_small - self.table.T @ (pull * self.n_big)  # Z_s' A 1
        y_s = self.sum_small - self.table.T @ (pull * self.sum_big)  # Z_s' A y
        both = np.stack([one_s, y_s], axis=1)
        left, _ = linalg.lapack.dpotrs(lower, both, lower=1)  # S^-1 Z_s' A [1, y] = Z_s' V^-1 [1, y]
        cross = tau_s * both.T @ left
        one_one = self.n - float(pull @ self.n_big**2) - cross[0, 0]
        one_y = self.sum_big.sum() - float(pull @ (self.n_big * self.sum_big)) - cross[0, 1]
        y_y = self.square - float(pull @ self.sum_big**2) - cross[1, 1]
        mean = one_y / one_one
        rest = max(y_y - one_y * mean, np.finfo(np.float64).tiny)
        free = self.n - 1
        log_det = -float(np.log(shrink).sum()) + 2 * float(np.log(np.diag(lower)).sum())
        deviance = log_det + math.log(one_one) + free * (1 + math.log(2 * math.pi * rest / free))
        gradient = np.zeros(2)
        if with_gradient:
            weights = (tau_s, shrink, pull, one_one, mean, free / rest)
            slopes = self._slopes(lower, left, weights)
            gradient = np.array(slopes[::-1] if self.is_swapped else slopes)
        return float(deviance), gradient, float(rest / free), float(mean + self.mean)

    def _slopes(
        self, lower: Floats, small: Floats, weights: tuple[float, Floats, Floats, float, float, float]
    ) -> tuple[float, float]:
        """Derivatives of the deviance in the ratios: trace(P Z Z') - (N - 1) / rest * |Z' P y|^2 for each factor."""
        tau_s, shrink, pull, one_one, mean, scale = weights
        inverse = _inverse(lower)  # S^-1
        of_pull, of_shrink = self._traces(inverse, pull, shrink**2)
        trace_s = float(np.diag(inverse) @ self.n_small) - of_pull
        trace_b = float(shrink @ self.n_big) - tau_s * of_shrink
        big = shrink[:, None] * (np.stack([self.n_big, self.sum_big], axis=1) - tau_s * (self.table @ small))
        slope = []
        for trace, projected in ((trace_b, big), (trace_s, small)):
            residual = projected[:, 1] - mean * projected[:, 0]
            slope.append(
                trace - float(projected[:, 0] @ projected[:, 0]) / one_one - scale * float(residual @ residual)
            )
        return slope[0], slope[1]


def _inverse(lower: Floats) -> Floats:
    """The inverse from a Cholesky factor. LAPACK's own routine wakes threads even for tiny matrices; small ones avoid it."""
    if len(lower) <= _SMALL:
        return np.asarray(linalg.lapack.dpotrs(lower, np.eye(len(lower)), lower=1)[0])
    half, _ = linalg.lapack.dpotri(lower, lower=1)
    return np.asarray(np.tril(half) + np.tril(half, -1).T)


def variance_components(values: ArrayLike, items: ArrayLike, raters: ArrayLike) -> VarianceComponents:
    """Fit the crossed model to judgments in rows; every judgment counts, missing values are left out."""
    numbers, (item, rater), (item_ids, rater_ids) = as_judgments(values, items, raters)
    n_items, n_raters = len(item_ids), len(rater_ids)
    per_item = np.bincount(item, minlength=n_items)
    typical = n_items / float(np.sum(1 / per_item)) if n_items else math.nan
    sizes = (len(numbers), n_items, n_raters, typical)
    mean = float(numbers.mean()) if len(numbers) else math.nan
    why = _not_computable(numbers, per_item, n_raters)
    if why:
        return VarianceComponents(math.nan, math.nan, math.nan, mean, *sizes, notes=(why,))
    likelihood = CrossedLikelihood(numbers, item, rater)
    is_nested = int(np.bincount(rater).max()) == 1
    (by_item, by_rater), has_converged = fit(likelihood, is_rater_zero=is_nested)
    deviance, _, residual, fitted_mean = likelihood.evaluate(by_item, by_rater, with_gradient=False)
    notes = []
    if is_nested:
        notes.append("every rater gave one judgment, so raters cannot be separated from the residual; it holds both")
    if max(by_item, by_rater) >= 0.9 * _LARGEST_RATIO:
        notes.append("items and raters explain the ratings completely: the residual variance is practically zero")
    if not has_converged:
        notes.append("the optimiser stopped early; treat the components with care")
    return VarianceComponents(
        residual * by_item,
        residual * by_rater,
        residual,
        fitted_mean,
        *sizes,
        is_rater_separable=not is_nested,
        deviance=deviance,
        has_converged=has_converged,
        notes=tuple(notes),
    )


def fit(
    likelihood: CrossedLikelihood, *, is_item_zero: bool = False, is_rater_zero: bool = False
) -> tuple[tuple[float, float], bool]:
    """The two ratios of variances at the smallest deviance, and whether the optimiser was content.

    The search runs in log(1 + ratio), where a variance of zero is an ordinary end of the range with a slope of its own. In
    standard deviations, as is common, zero is a stationary point on which a search can stop although it is no minimum.
    From the border a second start is tried all the same, because two variances can have two minima.
    """
    is_zero = (is_item_zero, is_rater_zero)
    bounds = [(0.0, 0.0 if zero else math.log1p(_LARGEST_RATIO)) for zero in is_zero]

    def objective(logs: Floats) -> tuple[float, Floats]:
        deviance, gradient, _, _ = likelihood.evaluate(*np.expm1(logs).tolist())
        return deviance, gradient * np.exp(logs)

    def search(start: tuple[float, float]) -> optimize.OptimizeResult:
        first = [0.0 if zero else math.log1p(ratio) for zero, ratio in zip(is_zero, start, strict=True)]
        options = {"ftol": 1e-12, "gtol": 1e-5, "maxiter": 200}
        return optimize.minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    best = search(likelihood.moment_ratios())
    if any(log == 0 and not zero for log, zero in zip(best.x, is_zero, strict=True)):
        again = search((1.0, 1.0))
        best = again if again.fun < best.fun - 1e-9 else best
    item, rater = np.expm1(best.x).tolist()
    return (item, rater), bool(best.success)


def _not_computable(numbers: Floats, per_item: Ints, n_raters: int) -> str:
    if len(per_item) < 2:
        return f"{len(per_item)} items with judgments: at least 2 are needed; rate more items"
    if n_raters < 2:
        return f"{n_raters} raters: at least 2 are needed; have items judged by more raters"
    if per_item.max() < 2:
        return "no item has two judgments; have items judged by more raters"
    if np.ptp(numbers) == 0:
        return f"every rating is {numbers[0]:g}: there is no variance to divide"
    return ""
