"""Cumulative link mixed model for ratings in ordered categories: the ordinal counterpart of the linear mixed model.

logit P(rating <= k) = threshold_k - x'b - the random effects of the rater, the item and any further factor, so that a
positive coefficient means higher ratings and exp(b) is the ratio of the odds of a higher rating. No distance between the
points of a scale is assumed. The integral over the random effects is Laplace's approximation, exact derivatives included:

log L = max over u of [sum log p(y | u) - u'u / 2] - log|I + A'WA| / 2,   W the curvature of -log p by the predictor.

For the logistic link log p(a, c) = log F(a) + log(1 - F(c)) + log(1 - exp(c - a)) with the thresholds a above and c below the
rating, which makes all derivatives short. Standard errors come from the observed information of all parameters, the
standard deviations of the random effects included, as in R's ``ordinal``.

Checked against ``ordinal::clmm`` 2022.11-16 (thresholds, coefficients, standard errors, standard deviations and likelihood to
1e-4, one to four crossed random effects) and, for one factor, against numerical integration. Source: Agresti (2010), Analysis of
Ordinal Categorical Data, ch. 10; Christensen (2019), the ``ordinal`` package; Liddell and Kruschke (2018) on why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dialometer.errors import NotEnoughData
from dialometer.stats.effects.random_blocks import Effects, RandomBlocks
from dialometer.stats.observations import Floats, Ints, codes, numbers, same_length

MOST_CATEGORIES = 25
SMALLEST_DEVIATION = 0.05
"""Standard deviations below it are compared with zero."""
FARTHEST = 12.0
"""Coefficients beyond it (log odds) have no finite maximum: one group gave only the highest or lowest rating."""


@dataclass(frozen=True)
class OrdinalFit:
    """A fitted cumulative link mixed model. Coefficients are log odds ratios of a higher rating."""

    categories: tuple[float, ...]
    thresholds: Floats
    coefficients: Floats
    deviations: dict[str, float]
    """Standard deviation of each random factor; 0 where its variance is estimated as zero."""
    covariance: Floats
    """Of thresholds, coefficients and the logarithms of the deviations that are not zero, in this order."""
    log_likelihood: float
    n: int
    n_levels: dict[str, int]
    notes: tuple[str, ...] = ()

    @property
    def threshold_errors(self) -> Floats:
        """Standard errors of the thresholds."""
        return np.sqrt(np.diag(self.covariance)[: len(self.thresholds)])

    @property
    def errors(self) -> Floats:
        """Standard errors of the coefficients."""
        start = len(self.thresholds)
        return np.sqrt(np.diag(self.covariance)[start : start + len(self.coefficients)])

    def contrast(self, weights: ArrayLike) -> tuple[float, float]:
        """A linear combination of the coefficients (a log odds ratio) and its standard error."""
        c = numbers(weights)
        start = len(self.thresholds)
        own = self.covariance[start : start + len(c), start : start + len(c)]
        return float(c @ self.coefficients), math.sqrt(max(float(c @ own @ c), 0.0))

    def expected_rating(self, level: float) -> float:
        """The mean rating over all raters and items where the fixed effects sum to this log odds."""
        spread = math.sqrt(sum(value**2 for value in self.deviations.values()))
        return _expected(self.thresholds - level, spread, self.categories)

    def mean_rating(self, row: ArrayLike) -> tuple[float, float]:
        """The mean rating that the model expects over all raters and items, and its standard error (delta method)."""
        x = numbers(row)
        free = [name for name, value in self.deviations.items() if value > 0]
        start = np.concatenate([self.thresholds, self.coefficients, [math.log(self.deviations[f]) for f in free]])
        n_thresholds = len(self.thresholds)

        def expected(parameters: Floats) -> float:
            cuts = parameters[:n_thresholds] - x @ parameters[n_thresholds : n_thresholds + len(x)]
            spread = math.sqrt(float(np.sum(np.exp(2 * parameters[n_thresholds + len(x) :]))))
            return _expected(cuts, spread, self.categories)

        step = 1e-5
        slope = np.array([(expected(start + d) - expected(start - d)) / (2 * step) for d in step * np.eye(len(start))])
        return expected(start), math.sqrt(max(float(slope @ self.covariance @ slope), 0.0))


def _expected(cuts: Floats, spread: float, categories: tuple[float, ...]) -> float:
    """The mean rating where thresholds lie at ``cuts`` and all random effects together have this standard deviation."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    above = special.expit(spread * nodes[:, None] - cuts)  # chance of a rating above each threshold
    return categories[0] + float((weights / weights.sum()) @ above @ np.diff(categories))


def fit_ordinal(ratings: ArrayLike, design: ArrayLike, factors: Mapping[str, ArrayLike]) -> OrdinalFit:
    """Fit ratings ~ design + (1 | each factor) by Laplace's approximation.

    ``design`` holds the fixed columns without an intercept (the thresholds are one); it may have no column. ``factors`` are the
    random ones, such as ``{"rater": ..., "item": ...}``, crossed or nested in any way. A factor that cannot be told from
    another or that has a single level, or one level for each rating, is left out, and a note says so.
    """
    values = numbers(ratings)
    fixed = np.asarray(design, dtype=np.float64).reshape(len(values), -1)
    same_length(ratings=values, design=fixed, **{name: np.asarray(factor) for name, factor in factors.items()})
    if not (np.isfinite(values).all() and np.isfinite(fixed).all()):
        raise NotEnoughData("the model holds a missing or infinite number", remedy="leave such judgments out")
    categories, rating = np.unique(values, return_inverse=True)
    if not 2 <= len(categories) <= MOST_CATEGORIES:
        raise NotEnoughData(
            "all ratings are equal" if len(categories) == 1 else f"{len(categories)} different ratings",
            remedy=f"an ordinal model needs 2 to {MOST_CATEGORIES} categories",
        )
    if np.linalg.matrix_rank(np.column_stack([np.ones(len(values)), fixed])) <= fixed.shape[1]:
        raise NotEnoughData("the fixed effects cannot be separated", remedy="fill every condition with raters")
    used, notes = distinguishable(factors, len(values))
    model = _Model(rating.ravel(), len(categories), fixed, [used[name] for name in used])
    parameters, deviations = _maximise(model)
    return _described(model, parameters, deviations, tuple(used), tuple(factors), tuple(map(float, categories)), notes)


def distinguishable(factors: Mapping[str, ArrayLike], n: int) -> tuple[dict[str, Ints], tuple[str, ...]]:
    """The factors as codes, without those that say nothing of their own, and a remark for each of these."""
    used: dict[str, Ints] = {}
    notes = []
    for name, labels in factors.items():
        code, levels = codes(labels)
        same = next((other for other, known in used.items() if _same_partition(code, len(levels), known)), None)
        if len(levels) < 2:
            notes.append(f"no effect of {name}: a single level")
        elif len(levels) == n:
            notes.append(f"no effect of {name}: one rating each")
        elif same is not None:
            notes.append(f"no effect of {name}: it cannot be separated from {same}")
        else:
            used[name] = code
    return used, tuple(notes)


def _same_partition(code: Ints, n_levels: int, other: Ints) -> bool:
    n_other = int(other.max()) + 1
    return n_levels == n_other and len(np.unique(code * n_other + other)) == n_levels


class _Model:
    """The likelihood of one data set; parameters are thresholds, coefficients and log standard deviations, in one vector."""

    def __init__(self, rating: Ints, n_categories: int, fixed: Floats, factors: list[Ints]) -> None:
        self.rating, self.fixed = rating, fixed
        self.n, self.n_fixed, self.n_thresholds = len(rating), fixed.shape[1], n_categories - 1
        self.n_plain = self.n_thresholds + self.n_fixed
        self.factors = factors
        self.is_lowest, self.is_highest = rating == 0, rating == n_categories - 1
        self.use(list(range(len(factors))))

    def use(self, kept: list[int]) -> None:
        """Keep only these random factors; the others have variance zero."""
        self.kept = kept
        self.blocks = RandomBlocks([self.factors[j] for j in kept]) if kept else None
        self.effects = self.blocks.zeros() if self.blocks is not None else Effects(np.zeros((0, 0)), np.zeros(0))

    def start(self) -> Floats:
        """Thresholds from the shares of the ratings, no fixed effects, standard deviations of a half."""
        shares = np.cumsum(np.bincount(self.rating, minlength=self.n_thresholds + 1))[:-1] / self.n
        return np.concatenate([special.logit(shares), np.zeros(self.n_fixed), np.full(len(self.kept), math.log(0.5))])

    def _cuts(self, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        thresholds = parameters[: self.n_thresholds]
        upper = np.append(thresholds, np.inf)[self.rating]
        lower = np.append(-np.inf, thresholds)[self.rating]
        return upper, lower, self.fixed @ parameters[self.n_thresholds : self.n_plain]

    def _mode(self, upper: Floats, lower: Floats, offset: Floats, deviations: Floats) -> tuple[float, Floats, Any]:
        """Newton's steps to the most likely effects, from where the last call ended; each step must gain."""
        blocks = self.blocks
        if blocks is None:
            return _log_shares(upper, lower, offset), offset, None
        predictor = offset + blocks.spread(self.effects, deviations)
        value = _log_shares(upper, lower, predictor) - self.effects.dot(self.effects) / 2
        for _ in range(60):
            above, below = special.expit(upper - predictor), special.expit(lower - predictor)
            factorised = blocks.factorise(blocks.sums(above * (1 - above) + below * (1 - below)), deviations)
            pull = blocks.gather(below - (1 - above), deviations).plus(self.effects, -1.0)
            step = factorised.solve(pull)
            gain = pull.dot(step)
            if gain < 1e-10:
                break
            size = 1.0
            while size > 1e-6:
                moved = self.effects.plus(step, size)
                new_predictor = offset + blocks.spread(moved, deviations)
                new = _log_shares(upper, lower, new_predictor) - moved.dot(moved) / 2
                if new >= value:
                    break
                size /= 2
            self.effects, predictor, value = moved, new_predictor, new
        return value, predictor, factorised

    def evaluate(self, parameters: Floats) -> tuple[float, Floats]:
        """Laplace's log likelihood and its gradient; minus infinity where thresholds are out of order."""
        thresholds = parameters[: self.n_thresholds]
        if np.any(np.diff(thresholds) <= 1e-8) or np.any(np.abs(parameters) > 60) or not np.isfinite(parameters).all():
            return -math.inf, np.zeros(len(parameters))
        deviations = np.exp(parameters[self.n_plain :])
        upper, lower, offset = self._cuts(parameters)
        value, predictor, factorised = self._mode(upper, lower, offset, deviations)
        above, below = special.expit(upper - predictor), special.expit(lower - predictor)
        w_above, w_below = above * (1 - above), below * (1 - below)
        bent_above, bent_below = w_above * (1 - 2 * above), w_below * (1 - 2 * below)
        first = below - (1 - above)
        if self.blocks is None or factorised is None:
            leverage, pulled = np.zeros(self.n), np.zeros(self.n)
        else:
            leverage, traces = factorised.leverages()
            value -= factorised.logdet / 2
            slope = leverage * (bent_above + bent_below) / 2  # how the determinant changes with the predictor
            answer = factorised.solve(self.blocks.gather(slope, deviations))
            pulled = self.blocks.spread(answer, deviations)
        weight = first + leverage * (bent_above + bent_below) / 2 - (w_above + w_below) * pulled
        gradient = np.empty(len(parameters))
        gradient[: self.n_thresholds] = self._by_threshold(
            upper, lower, (1 - above) - leverage * bent_above / 2 + pulled * w_above,
            -below - leverage * bent_below / 2 + pulled * w_below,
        )  # fmt: skip
        gradient[self.n_thresholds : self.n_plain] = self.fixed.T @ weight
        if self.blocks is not None and factorised is not None:
            for j in range(len(self.kept)):
                own = deviations[j] * self.blocks.of_factor(self.effects, j)
                towards = deviations[j] * self.blocks.of_factor(answer, j)
                lost = self.blocks.sizes[j] - traces[j]
                gradient[self.n_plain + j] = float(weight @ own + first @ towards) - lost
        return value, gradient

    def _by_threshold(self, upper: Floats, lower: Floats, of_upper: Floats, of_lower: Floats) -> Floats:
        """Derivatives by the threshold above and the one below each rating, summed per threshold."""
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.where(self.is_lowest | self.is_highest, 0.0, 1 / np.expm1(upper - lower))
        size = self.n_thresholds + 2
        above = np.bincount(self.rating, weights=np.where(self.is_highest, 0.0, of_upper + near), minlength=size)
        below = np.bincount(self.rating, weights=np.where(self.is_lowest, 0.0, of_lower - near), minlength=size)
        return np.asarray(above[: self.n_thresholds] + below[1 : self.n_thresholds + 1])

    def curvature(self, parameters: Floats) -> Floats:
        """Roughly minus the second derivatives: exact for given effects, the effects profiled out, and their deviations
        apart. It gives the first steps of the search their direction and length.
        """
        deviations = np.exp(parameters[self.n_plain :])
        upper, lower, offset = self._cuts(parameters)
        predictor = offset if self.blocks is None else offset + self.blocks.spread(self.effects, deviations)
        above, below = special.expit(upper - predictor), special.expit(lower - predictor)
        w_above, w_below = above * (1 - above), below * (1 - below)
        rows_above, rows_below = np.zeros((2, self.n, self.n_plain))
        rows_above[:, self.n_thresholds :] = rows_below[:, self.n_thresholds :] = -self.fixed
        inner, outer = np.flatnonzero(~self.is_highest), np.flatnonzero(~self.is_lowest)
        rows_above[inner, self.rating[inner]] = 1.0
        rows_below[outer, self.rating[outer] - 1] = 1.0
        weighted_above, weighted_below = w_above[:, None] * rows_above, w_below[:, None] * rows_below
        hessian = np.zeros((len(parameters), len(parameters)))
        plain = weighted_above.T @ rows_above + weighted_below.T @ rows_below
        middle = np.flatnonzero(~(self.is_lowest | self.is_highest))
        apart = rows_above[middle] - rows_below[middle]
        bend = 1 / (4 * np.sinh(np.minimum(upper[middle] - lower[middle], 50.0) / 2) ** 2)
        plain += (apart * bend[:, None]).T @ apart
        if self.blocks is not None:
            factorised = self.blocks.factorise(self.blocks.sums(w_above + w_below), deviations)
            meeting = (weighted_above + weighted_below).T
            right = [self.blocks.gather(column, deviations) for column in meeting]
            solved = [factorised.solve(column) for column in right]
            plain -= np.array([[left.dot(other) for other in solved] for left in right])
            known = np.array(self.blocks.sizes) - factorised.traces()
            hessian[range(self.n_plain, len(hessian)), range(self.n_plain, len(hessian))] = np.maximum(
                2 * known**2 / np.array(self.blocks.sizes), 0.5
            )
        hessian[: self.n_plain, : self.n_plain] = plain
        return np.asarray(hessian + 1e-6 * float(np.trace(plain)) / self.n_plain * np.eye(len(hessian)))

    def settled(self, parameters: Floats) -> Floats:
        """Deviations that agree with the effects found with them (a step of the EM algorithm, taken half as far again)."""
        if self.blocks is None:
            return parameters
        deviations = np.exp(parameters[self.n_plain :])
        upper, lower, offset = self._cuts(parameters)
        factorised = self._mode(upper, lower, offset, deviations)[2]
        moved = parameters.copy()
        traces = factorised.traces()
        for j, size in enumerate(self.blocks.sizes):
            own = np.zeros(size)
            own[self.factors[self.kept[j]]] = self.blocks.of_factor(self.effects, j)
            step = 0.75 * math.log((float(own @ own) + traces[j]) / size)
            moved[self.n_plain + j] += float(np.clip(step, -1.0, 1.0))
        return moved


def _log_shares(upper: Floats, lower: Floats, predictor: Floats) -> float:
    """The log probability of all ratings."""
    with np.errstate(over="ignore"):
        between = np.log(-np.expm1(lower - upper))
    return float(np.sum(special.log_expit(upper - predictor) + special.log_expit(predictor - lower) + between))


def _maximise(model: _Model) -> tuple[Floats, list[int]]:
    """The parameters with the highest likelihood; deviations that gain nothing over zero are dropped one by one."""
    parameters = model.start()
    for _ in range(4):
        gradient = model.evaluate(parameters)[1]
        step = np.linalg.solve(model.curvature(parameters), gradient)
        step[model.n_plain :] = 0.0
        moved = parameters + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        parameters = model.settled(moved if np.all(np.diff(moved[: model.n_thresholds]) > 0.01) else parameters)
    parameters, value = _climb(model, parameters)
    while model.kept:
        deviations = np.exp(parameters[model.n_plain :])
        smallest = int(np.argmin(deviations))
        if deviations[smallest] > SMALLEST_DEVIATION:
            break
        kept = list(model.kept)
        reduced, lower = _without(model, parameters, smallest)
        if lower < value - 1e-6:
            model.use(kept)
            model.evaluate(parameters)
            break
        parameters, value = reduced, lower
    return parameters, list(model.kept)


def _without(model: _Model, parameters: Floats, place: int) -> tuple[Floats, float]:
    """The maximum with one more standard deviation held at zero."""
    model.use([j for number, j in enumerate(model.kept) if number != place])
    return _climb(model, np.delete(parameters, model.n_plain + place))


def _climb(model: _Model, start: Floats) -> tuple[Floats, float]:
    """Quasi-Newton (BFGS) with halved steps: every step gains, thresholds stay in order."""
    x = start
    value, gradient = model.evaluate(x)
    inverse = np.linalg.inv(model.curvature(x))
    for _ in range(200):
        step = inverse @ gradient
        gain = float(gradient @ step)
        if gain < 1e-10:
            break
        size = min(1.0, 2.0 / float(np.abs(step).max()))
        while size > 1e-7:
            new, new_gradient = model.evaluate(x + size * step)
            if new >= value + 1e-4 * size * gain:
                break
            size /= 2
        else:
            break
        moved, change = size * step, gradient - new_gradient
        x, value, gradient = x + moved, new, new_gradient
        if np.any(np.abs(x[model.n_thresholds : model.n_plain]) > FARTHEST):
            raise NotEnoughData(
                "one group got almost only the highest or lowest rating, so that its odds have no limit",
                remedy="collect more judgments or use the linear model",
            )
        if np.any(x[model.n_plain :] < math.log(SMALLEST_DEVIATION) - 3):
            break  # on its way to zero: the caller drops it
        curve = float(moved @ change)
        if curve > 1e-12:
            matrix = np.eye(len(x)) - np.outer(moved, change) / curve
            inverse = matrix @ inverse @ matrix.T + np.outer(moved, moved) / curve
    return x, value


def _described(
    model: _Model,
    parameters: Floats,
    kept: list[int],
    names: tuple[str, ...],
    random_terms: tuple[str, ...],
    categories: tuple[float, ...],
    notes: tuple[str, ...],
) -> OrdinalFit:
    """One or two Newton steps with the observed information, which also gives the covariance."""
    information = _information(lambda x: model.evaluate(x)[1], parameters)
    while np.linalg.eigvalsh(information)[0] <= 0:
        if not kept:
            raise NotEnoughData("the ordinal model has no clear maximum", remedy="collect more judgments")
        parameters, _ = _without(
            model, parameters, int(np.argmin(parameters[model.n_plain :]))
        )  # flat at its lower end: call it zero
        kept = list(model.kept)
        information = _information(lambda x: model.evaluate(x)[1], parameters)
    for _ in range(3):
        value, gradient = model.evaluate(parameters)
        step = np.linalg.solve(information, gradient)
        if np.abs(step).max() < 1e-8 or model.evaluate(parameters + step)[0] < value - 1e-10:
            break
        parameters = parameters + step
    value, _ = model.evaluate(parameters)
    p = model.n_thresholds
    zero = [name for place, name in enumerate(names) if place not in kept]
    sizes = {name: int(model.factors[place].max()) + 1 for place, name in enumerate(names)}
    by_name = dict(zip([names[j] for j in kept], np.exp(parameters[model.n_plain :]).tolist(), strict=True))
    return OrdinalFit(
        categories=categories,
        thresholds=parameters[:p],
        coefficients=parameters[p : model.n_plain],
        deviations={name: by_name.get(name, 0.0) for name in random_terms if name in names},
        covariance=np.asarray(np.linalg.inv(information), dtype=np.float64),
        log_likelihood=value,
        n=model.n,
        n_levels=sizes,
        notes=(*notes, *(f"the variance of {name} is estimated as zero" for name in zero)),
    )


def _information(gradient: Callable[[Floats], Floats], x: Floats, step: float = 1e-4) -> Floats:
    """Minus the symmetrised central differences of the gradient."""
    rows = np.array([(gradient(x - step * unit) - gradient(x + step * unit)) / (2 * step) for unit in np.eye(len(x))])
    return np.asarray((rows + rows.T) / 2)
