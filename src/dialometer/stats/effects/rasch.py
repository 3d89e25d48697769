"""Many-facet Rasch model: how severe each rater is, on one scale with what was rated.

Adjacent categories of a rating scale with thresholds t_k (Andrich 1978; Linacre 1989):

log P(rating = k) / P(rating = k - 1) = level of the system + level of the item - severity of the rater - t_k

All are estimated together by maximum likelihood ("joint" or "unconditional" estimation, as Facets does). The severities
average zero, and so do the items and the thresholds. Joint estimates are too far apart by a factor of about L / (L - 1) where
L is the number of ratings of a rater (for 20 ratings 5 %); the standard errors are those of the full information. A rater
who gave only the highest or the lowest rating has no finite severity: 0.3 of a point is taken from the end, as Facets does,
and the rater is marked. Infit and outfit are the weighted and the plain mean of squared standardised residuals: near 1 as
the model expects, above about 1.5 erratic, below about 0.5 too regular (Wright and Linacre 1994).

Checked in the tests against a general optimiser on the likelihood written out, against logistic regression for two categories,
and against simulated truth.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, special

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.observations import Floats, Ints, as_judgments, check_confidence, missing_note

SHIFT = 0.3
MOST_LEVELS = 1500
MOST_CATEGORIES = 25


@dataclass(frozen=True)
class RaterSeverity:
    """One rater: severity in logits (positive: lower ratings than others give), fit, and what it means in points."""

    rater: Any
    severity: Estimate
    infit: float
    outfit: float
    fair_mean: float
    """The rating that the model expects from this rater on an average item of an average system."""
    is_extreme: bool = False


@dataclass(frozen=True, repr=False)
class Rasch:
    """A fitted many-facet Rasch model."""

    raters: tuple[RaterSeverity, ...]
    systems: dict[Any, float]
    """Level of each system in logits."""
    items: dict[Any, float]
    thresholds: Floats
    log_likelihood: float
    separation_reliability: float
    """Share of the variance of severities that is no error of estimation; 0: raters are equally severe."""
    homogeneity: Estimate
    """Chi-square test that all raters are equally severe."""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ordered = sorted(self.raters, key=lambda row: -row.severity.value)
        severities = ", ".join(f"{row.rater} {row.severity.value:.2f}" for row in ordered)
        return f"Rasch(severity in logits: {severities}; equally severe: p = {self.homogeneity.p_value:.3g})"


class _Facets:
    """Which column of the parameters each rating uses, and the likelihood with its derivatives."""

    def __init__(self, score: Ints, n_scores: int, facets: Sequence[Ints], signs: Sequence[float]) -> None:
        self.score, self.n_scores, self.facets, self.signs = score, n_scores, facets, signs
        self.sizes = [int(facet.max()) + 1 for facet in facets]
        self.starts = np.cumsum([0, *self.sizes])
        self.n_levels = int(self.starts[-1])
        self.n = self.n_levels + n_scores - 1
        self.constraints = self._constraints()

    def _constraints(self) -> Floats:
        """One row for each sum that is zero: of every facet but the first, and of the thresholds."""
        blocks = [*((start, size) for start, size in zip(self.starts[1:-1], self.sizes[1:], strict=True))]
        rows = np.zeros((len(blocks) + 1, self.n))
        for row, (start, size) in enumerate(blocks):
            rows[row, start : start + size] = 1.0
        rows[-1, self.n_levels :] = 1.0
        return rows

    def shares(self, parameters: Floats) -> Floats:
        """The probability of each score for each rating."""
        level = np.zeros(len(self.score))
        for facet, start, sign in zip(self.facets, self.starts[:-1], self.signs, strict=True):
            level += sign * parameters[start + facet]
        heights = np.append(0.0, -np.cumsum(parameters[self.n_levels :]))
        return np.asarray(special.softmax(level[:, None] * np.arange(self.n_scores) + heights, axis=1))

    def derivatives(self, parameters: Floats, observed: Floats) -> tuple[Floats, Floats, Floats]:
        """The score vector, the information, and the probabilities. ``observed`` may be shifted from the ends."""
        shares = self.shares(parameters)
        k = np.arange(self.n_scores)
        mean = shares @ k
        variance = shares @ k**2 - mean**2
        steps = np.arange(1, self.n_scores)
        beyond = shares[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]  # P(score >= step)
        spans = np.stack([(shares[:, s:] @ k[s:]) - beyond[:, s - 1] * mean for s in steps], axis=1)
        gradient = np.zeros(self.n)
        information = np.zeros((self.n, self.n))
        for facet, start, size, sign in zip(self.facets, self.starts[:-1], self.sizes, self.signs, strict=True):
            own = slice(start, start + size)
            gradient[own] = sign * np.bincount(facet, weights=observed - mean, minlength=size)
            for s in range(len(steps)):
                moved = -sign * np.bincount(facet, weights=spans[:, s], minlength=size)
                information[own, self.n_levels + s] = information[self.n_levels + s, own] = moved
            for other, begin, width, sign_other in zip(
                self.facets, self.starts[:-1], self.sizes, self.signs, strict=True
            ):
                cells = np.bincount(facet * width + other, weights=variance, minlength=size * width)
                information[own, begin : begin + width] = sign * sign_other * cells.reshape(size, width)
        reached = np.minimum(np.maximum(observed[:, None] - steps + 1, 0.0), 1.0)
        gradient[self.n_levels :] = -(reached - beyond).sum(axis=0)
        joint = np.maximum(steps[:, None], steps[None, :])
        total = beyond.sum(axis=0)
        information[self.n_levels :, self.n_levels :] = total[joint - 1] - beyond.T @ beyond
        return gradient, information, shares


def many_facet_rasch(
    ratings: ArrayLike, systems: ArrayLike, items: ArrayLike, raters: ArrayLike, *, confidence: float = 0.95
) -> Rasch:
    """Severity of raters beside the levels of systems and items, from ratings on a scale of points.

    One item, or items that show one system each, are allowed: then items are left out as a facet.
    """
    level = check_confidence(confidence)
    y, (system, item, rater), (system_names, item_names, rater_names) = as_judgments(ratings, systems, items, raters)
    points = np.unique(y)
    n_ratings = np.bincount(rater, minlength=len(rater_names))
    if not 2 <= len(points) <= MOST_CATEGORIES or len(rater_names) < 2:
        raise NotEnoughData(
            "all ratings are equal"
            if len(points) == 1
            else f"{len(points)} different ratings, {len(rater_names)} raters",
            remedy=f"severity needs two raters and a scale of 2 to {MOST_CATEGORIES} points in use",
        )
    if len(system_names) + len(item_names) + len(rater_names) > MOST_LEVELS:
        raise NotEnoughData("too many raters and items for a Rasch model", remedy="look at the raters' mean ratings")
    score = np.searchsorted(points, y).astype(np.int64)
    has_items = len(item_names) > 1 and _connected(system, item, len(system_names), len(item_names))
    facets = _Facets(
        score, len(points), [system, *([item] if has_items else []), rater], [1.0, *([1.0] if has_items else []), -1.0]
    )
    observed, is_extreme = _without_extremes(score, facets, len(points))
    parameters, information = _fit(facets, observed)
    return _described(
        facets, parameters, information, y, points, rater_names.tolist(), system_names.tolist(),
        item_names.tolist() if has_items else [], is_extreme, level,
        missing_note(len(np.ravel(ratings)) - len(y)), n_ratings,
    )  # fmt: skip


def _connected(first: Ints, second: Ints, n_first: int, n_second: int) -> bool:
    """Whether both facets can be compared across all their levels."""
    rows = np.zeros((len(first), n_first + n_second - 1))
    rows[np.arange(len(first)), first] = 1.0
    is_later = second > 0
    rows[np.flatnonzero(is_later), n_first + second[is_later] - 1] = 1.0
    return bool(np.linalg.matrix_rank(rows.T @ rows, hermitian=True) == rows.shape[1])


def _without_extremes(score: Ints, facets: _Facets, n_scores: int) -> tuple[Floats, np.ndarray]:
    """Scores with 0.3 of a point taken from the end for levels of a facet that have no other; which raters these are."""
    observed = score.astype(np.float64)
    is_extreme = np.zeros(facets.sizes[-1], dtype=bool)
    for place, (facet, size) in enumerate(zip(facets.facets, facets.sizes, strict=True)):
        sums, counts = np.bincount(facet, weights=score, minlength=size), np.bincount(facet, minlength=size)
        for is_end, sign in ((sums == 0, 1.0), (sums == counts * (n_scores - 1), -1.0)):
            ends = is_end[facet]
            observed[ends] += sign * SHIFT / counts[facet][ends]
            if place == len(facets.sizes) - 1:
                is_extreme |= is_end
    return np.clip(observed, 0.0, n_scores - 1.0), is_extreme


def _fit(facets: _Facets, observed: Floats) -> tuple[Floats, Floats]:
    """Newton's method with the sums held at zero; steps longer than one logit are cut."""
    parameters = np.zeros(facets.n)
    fixed = facets.constraints
    weight = float(len(observed))
    for _ in range(100):
        gradient, information, _ = facets.derivatives(parameters, observed)
        bounded = information + weight * fixed.T @ fixed  # the sums are zero: any weight gives the same step
        step = _solved(bounded, gradient - weight * fixed.T @ (fixed @ parameters))
        longest = float(np.abs(step).max())
        parameters = parameters + step * min(1.0, 1.0 / longest if longest > 0 else 1.0)
        if longest < 1e-9:
            break
    else:
        raise NotEnoughData("the Rasch model has no maximum on these ratings", remedy="collect more ratings")
    return parameters, bounded


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution; a matrix without one means that some levels never meet, directly or through others."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(matrix, right, assume_a="pos"))
    except (linalg.LinAlgError, linalg.LinAlgWarning) as error:
        raise NotEnoughData(
            "raters, systems and items cannot be compared with each other", remedy="let raters share items"
        ) from error


def _described(
    facets: _Facets,
    parameters: Floats,
    information: Floats,
    y: Floats,
    points: Floats,
    rater_names: list[Any],
    system_names: list[Any],
    item_names: list[Any],
    is_extreme: np.ndarray,
    confidence: float,
    notes: tuple[str, ...],
    n_ratings: Ints,
) -> Rasch:
    # Within the subspace of zero sums the inverse of the bounded information is the covariance; the rest is removed.
    covariance = linalg.inv(information)
    fixed = facets.constraints
    pulled = covariance @ fixed.T
    covariance = covariance - pulled @ np.linalg.solve(fixed @ pulled, pulled.T)
    own = slice(int(facets.starts[-2]), int(facets.starts[-1]))
    severity, errors = parameters[own], np.sqrt(np.maximum(np.diag(covariance)[own], 0.0))
    shares = facets.shares(parameters)
    k = np.arange(facets.n_scores)
    mean = shares @ k
    variance = shares @ k**2 - mean**2
    off = (facets.score - mean) ** 2
    rater = facets.facets[-1]
    infit = np.bincount(rater, weights=off) / np.bincount(rater, weights=variance)
    outfit = np.bincount(rater, weights=off / variance) / n_ratings
    fair = _fair_means(facets, parameters, points)
    reach = float(special.ndtri((1 + confidence) / 2))
    rows = tuple(
        RaterSeverity(
            name,
            Estimate(
                float(severity[j]), int(n_ratings[j]), "severity, many-facet Rasch model (joint maximum likelihood)",
                low=float(severity[j] - reach * errors[j]), high=float(severity[j] + reach * errors[j]),
                confidence=confidence, interval_method="Wald", label=str(name), unit="logits",
                notes=("only the highest or the lowest rating: 0.3 points taken from the end",) if is_extreme[j] else (),
                details={"standard_error": float(errors[j])},
            ),
            float(infit[j]), float(outfit[j]), float(fair[j]), bool(is_extreme[j]),
        )
        for j, name in enumerate(rater_names)
    )  # fmt: skip
    systems = dict(zip(system_names, parameters[: facets.sizes[0]].tolist(), strict=True))
    items = parameters[facets.starts[1] : facets.starts[1] + len(item_names)].tolist() if item_names else []
    log_shares = np.log(np.maximum(shares[np.arange(len(y)), facets.score], 1e-300))
    return Rasch(
        raters=rows,
        systems=systems,
        items=dict(zip(item_names, items, strict=True)),
        thresholds=parameters[facets.n_levels :],
        log_likelihood=float(log_shares.sum()),
        separation_reliability=_reliability(severity, errors),
        homogeneity=_homogeneity(severity, covariance[own, own]),
        notes=notes,
    )


def _fair_means(facets: _Facets, parameters: Floats, points: Floats) -> Floats:
    """What each rater would give an average item of an average system."""
    own = slice(int(facets.starts[-2]), int(facets.starts[-1]))
    level = float(parameters[: facets.sizes[0]].mean()) - parameters[own]
    heights = np.append(0.0, -np.cumsum(parameters[facets.n_levels :]))
    shares = special.softmax(level[:, None] * np.arange(facets.n_scores) + heights, axis=1)
    return np.asarray(shares @ points)


def _reliability(severity: Floats, errors: Floats) -> float:
    spread = float(np.var(severity, ddof=1))
    return max(0.0, 1 - float(np.mean(errors**2)) / spread) if spread > 0 else 0.0


def _homogeneity(severity: Floats, covariance: Floats) -> Estimate:
    """Wald's chi-square of all severities, which sum to zero."""
    df = len(severity) - 1
    statistic = float(severity @ linalg.pinvh(covariance) @ severity)
    return Estimate(
        statistic,
        len(severity),
        "Wald chi-square test that all raters are equally severe",
        statistic=statistic,
        df=(float(df),),
        p_value=float(special.chdtrc(df, statistic)),
        notes=() if math.isfinite(statistic) else ("not enough data",),
    )
