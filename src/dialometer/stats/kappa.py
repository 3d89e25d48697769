"""Cohen's kappa for two raters: unweighted, linear and quadratic.

Labels come from the scale, not from the data: a label that nobody chose still sets the distance between its neighbours.
Values are those of ``sklearn.metrics.cohen_kappa_score(a, b, labels=..., weights=...)``; the standard errors of Fleiss, Cohen &
Everitt (1969) those of ``statsmodels.stats.inter_rater.cohens_kappa``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.model.estimate import Estimate, unknown
from dialometer.registry import did_you_mean
from dialometer.stats.bootstrap import batch_sizes, estimate_from
from dialometer.stats.ratings import Floats, Integers, positions

Weights = Literal["none", "linear", "quadratic"]


def disagreement_weights(n_labels: int, weights: Weights) -> Floats:
    """How much each pair of labels counts as disagreement, by their distance in the order of the scale."""
    if weights not in get_args(Weights):
        raise UnknownName(f"unknown weights '{weights}'", remedy=did_you_mean(weights, list(get_args(Weights))))
    gap = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels))).astype(np.float64)
    return {"none": (gap > 0).astype(np.float64), "linear": gap, "quadratic": gap**2}[weights]


def confusion(first: Integers, second: Integers, n_labels: int) -> Floats:
    """Counts of pairs of label positions, first rater in rows."""
    cells = np.bincount(first * n_labels + second, minlength=n_labels**2)
    return cells.reshape(n_labels, n_labels).astype(np.float64)


def kappa_of_tables(tables: Floats, disagreement: Floats) -> Floats:
    """Kappa of many confusion tables (tables by labels by labels); ``nan`` where chance leaves no disagreement."""
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    observed = np.einsum("bij,ij->b", tables, disagreement) * tables.sum(axis=(1, 2))
    expected = np.einsum("bi,bi->b", rows @ disagreement, columns)
    return np.asarray(1 - np.divide(observed, expected, out=np.full(len(tables), np.nan), where=expected > 0))


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    labels: Sequence[Any],
    *,
    weights: Weights = "none",
    interval: Literal["analytic", "percentile"] = "analytic",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Agreement of two raters beyond chance. Pairs with a missing rating are left out and counted in a note.

    The analytic interval is value +- z * standard error, cut at -1 and 1; ``statistic`` and p-value test kappa = 0 with the
    standard error under independence. The bootstrap draws pairs, as a multinomial over the confusion table.
    """
    a, b = positions(first, labels).ravel(), positions(second, labels).ravel()
    if len(a) != len(b):
        raise NotEnoughData(f"{len(a)} and {len(b)} ratings", remedy="give the two ratings of the same items")
    given = ~(np.isnan(a) | np.isnan(b))
    n_missing = int((~given).sum())
    notes = (f"{n_missing} of {len(a)} pairs left out, a rating is missing",) if n_missing else ()
    table = confusion(a[given].astype(np.int64), b[given].astype(np.int64), len(labels))
    return kappa_from_table(
        table,
        weights=weights,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
        notes=notes,
    )


def kappa_from_table(
    table: ArrayLike,
    *,
    weights: Weights = "none",
    interval: Literal["analytic", "percentile"] = "analytic",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The same from the confusion table of the two raters, labels in the order of the scale."""
    counts = np.asarray(table, dtype=np.float64)
    disagreement = disagreement_weights(len(counts), weights)
    method = "Cohen's kappa" + ("" if weights == "none" else f", {weights} weights")
    n = int(counts.sum())
    if n < 2:
        return unknown(
            method, f"{n} pairs of ratings: at least 2 are needed; have items judged twice", n=n, label=label
        )
    value = float(kappa_of_tables(counts[None], disagreement)[0])
    if math.isnan(value):
        why = "both raters always chose the same one label, so chance agreement is complete and kappa is not defined"
        return unknown(method, f"{why}; report percent agreement", n=n, label=label)
    error, null_error = standard_errors(counts, disagreement)
    agreement = float(np.trace(counts)) / n
    details = {"standard_error": error, "percent_agreement": agreement, "confusion": counts.astype(int).tolist()}
    z = value / null_error if null_error > 0 else math.nan
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    result = Estimate(
        value=value,
        n=n,
        method=method,
        low=max(value - reach, -1.0),
        high=min(value + reach, 1.0),
        confidence=confidence,
        interval_method="analytic (Fleiss, Cohen & Everitt 1969)",
        statistic=z,
        p_value=2 * float(special.ndtr(-abs(z))),
        label=label,
        notes=notes,
        details=details,
    )
    if interval == "analytic":
        return result
    replicates = _replicates(counts, disagreement, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    drawn = estimate_from(
        value,
        replicates,
        n=n,
        method=method,
        resampled="pairs",
        seed=seed,
        confidence=confidence,
        notes=notes,
        details=details,
    )
    return replace(drawn, statistic=result.statistic, p_value=result.p_value, label=label)


def standard_errors(counts: Floats, disagreement: Floats) -> tuple[float, float]:
    """Large-sample standard errors of kappa: at its value, and under independence (for the test of zero)."""
    n = counts.sum()
    share = counts / n
    row, column = share.sum(axis=1), share.sum(axis=0)
    weight = 1 - disagreement / disagreement.max()
    chance = float(row @ weight @ column)
    kappa = (float((share * weight).sum()) - chance) / (1 - chance)
    marginal = (weight @ column)[:, None] + (row @ weight)[None, :]
    at_value = float((share * (weight - marginal * (1 - kappa)) ** 2).sum()) - (kappa - chance * (1 - kappa)) ** 2
    at_zero = float((np.outer(row, column) * (weight - marginal) ** 2).sum()) - chance**2
    scale = (1 - chance) * math.sqrt(n)
    return math.sqrt(max(at_value, 0.0)) / scale, math.sqrt(max(at_zero, 0.0)) / scale


def _replicates(counts: Floats, disagreement: Floats, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Pairs drawn with replacement are a multinomial over the cells that hold any."""
    cells = np.flatnonzero(counts)
    share = counts.ravel()[cells] / counts.sum()
    parts = []
    for size in batch_sizes(counts.size, n_resamples):
        tables = np.zeros((size, counts.size))
        tables[:, cells] = rng.multinomial(int(counts.sum()), share, size=size)
        parts.append(kappa_of_tables(tables.reshape(size, *counts.shape), disagreement))
    return np.concatenate(parts) if parts else np.empty(0)
