"""Means of ratings by condition with bootstrap intervals that resample raters, and geometric means for magnitudes.

Checked against ``scipy.stats.bootstrap(..., method="percentile")`` and, for clusters, resampling raters one by one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import batch_sizes, bootstrap, estimate_from
from dialometer.stats.observations import Floats, Ints, codes, missing_note, numbers, same_length

__all__ = ["Zeros", "bootstrap_mean", "geometric_mean", "log_magnitudes", "means_by"]

Zeros = Literal["exclude", "half_minimum", "error"]

MOST_DRAWS = 10_000_000


def bootstrap_mean(
    values: ArrayLike,
    raters: ArrayLike | None = None,
    *,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Mean with a percentile interval; with ``raters`` whole raters are resampled, since their judgments go together.

    Without raters, equal values are drawn together by their multinomial count: the same distribution, and cheap for many
    thousands of answers on a scale with few values. Where many thousands of values differ, the interval is Student's t,
    which the bootstrap of a mean has then long reached.
    """
    y = numbers(values)
    is_given = ~np.isnan(y)
    notes = missing_note(int(np.sum(~is_given)))
    method = "mean" if raters is None else "mean over judgments, raters resampled"
    if not is_given.any():
        return unknown(method, "no ratings: collect at least one judgment", label=label)
    kept = y[is_given]
    if raters is None:
        found = _mean_of_values(kept, n_resamples, seed, confidence)
    else:
        ids = np.asarray(raters)
        same_length(values=y, raters=ids)
        found = _mean_of_raters(kept, ids[is_given], n_resamples, seed, confidence)
    return replace(found, method=method, label=label, notes=(*notes, *found.notes))


def _mean_of_values(values: Floats, n_resamples: int, seed: int, confidence: float) -> Estimate:
    value, n = float(values.mean()), len(values)
    if n < 2:
        return Estimate(value, n, "mean", confidence=confidence, notes=("one value: no interval",))
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) * n_resamples > MOST_DRAWS:
        half = float(stats.t.isf((1 - confidence) / 2, n - 1)) * float(stats.sem(values))
        return Estimate(value, n, "mean", value - half, value + half, confidence, "Student's t")
    replicates = _mean_replicates(distinct, counts, n_resamples, np.random.default_rng(seed))
    return estimate_from(value, replicates, n=n, method="mean", resampled="values", seed=seed, confidence=confidence)


def _mean_of_raters(values: Floats, raters: NDArray[Any], n_resamples: int, seed: int, confidence: float) -> Estimate:
    value, n = float(values.mean()), len(values)
    rater, levels = codes(raters)
    if len(levels) < 2:
        why = "one rater: no interval speaks for others; recruit more"
        return Estimate(value, n, "mean", confidence=confidence, notes=(why,))
    sizes = np.bincount(rater, minlength=len(levels)).astype(np.float64)
    sums = np.bincount(rater, weights=values - value, minlength=len(levels))
    found = bootstrap(
        lambda counts: value + (counts @ sums) / (counts @ sizes),
        len(levels),
        method="mean",
        resampled="raters",
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
    )
    return replace(found, n=n, details={**found.details, "n_raters": len(levels)})


def _mean_replicates(distinct: Floats, counts: Ints, n_resamples: int, rng: np.random.Generator) -> Floats:
    n = int(counts.sum())
    shares = counts / n
    batches = batch_sizes(len(distinct), n_resamples)
    return np.concatenate([rng.multinomial(n, shares, size=size) @ distinct / n for size in batches])


def log_magnitudes(values: ArrayLike, *, zeros: Zeros = "half_minimum") -> tuple[Floats, tuple[str, ...]]:
    """Natural logarithms of magnitude estimates, zeros treated by the declared rule, with a remark on what was done.

    ``exclude`` turns zeros into missing values, ``half_minimum`` sets them to half the smallest positive value given,
    ``error`` refuses them. A negative magnitude is always refused.
    """
    y = numbers(values)
    if np.any(y < 0):
        raise DialometerError(
            "a magnitude estimate is negative", remedy="magnitudes are zero or more; check the import"
        )
    is_zero = y == 0
    n_zero = int(is_zero.sum())
    notes: tuple[str, ...] = ()
    positive = y[y > 0]
    if n_zero:
        if zeros == "error":
            raise DialometerError(f"{n_zero} magnitude estimates are zero", remedy="choose exclude or half_minimum")
        if zeros == "exclude" or not len(positive):
            y = np.where(is_zero, np.nan, y)
            notes = (f"{n_zero} zero magnitudes left out",)
        else:
            half = float(positive.min()) / 2
            y = np.where(is_zero, half, y)
            notes = (f"{n_zero} zero magnitudes set to {half:g}, half the smallest positive one",)
    return np.log(y), notes


def geometric_mean(
    values: ArrayLike,
    raters: ArrayLike | None = None,
    *,
    zeros: Zeros = "half_minimum",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Geometric mean of magnitudes, the mean of their logarithms turned back, with its bootstrap interval."""
    logs, notes = log_magnitudes(values, zeros=zeros)
    found = bootstrap_mean(logs, raters, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)
    method = f"geometric mean{'' if raters is None else ', raters resampled'}"
    if not found.is_known:
        return unknown(method, "no positive magnitude: collect at least one judgment", label=label)
    said = tuple(note for note in found.notes if not (notes and "missing" in note))
    return replace(
        found,
        value=math.exp(found.value),
        low=math.exp(found.low),
        high=math.exp(found.high),
        method=method,
        notes=(*notes, *said),
        details={**found.details, "log_mean": found.value},
    )


def means_by(
    values: ArrayLike,
    groups: ArrayLike,
    raters: ArrayLike | None = None,
    *,
    is_geometric: bool = False,
    zeros: Zeros = "half_minimum",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """One mean per group (a condition, a system), each with its own interval from the same seed.

    The rule for zeros is applied to all values together, so that every group's zeros become the same magnitude.
    """
    y, names = numbers(values), np.asarray(groups)
    same_length(values=y, groups=names)
    notes: tuple[str, ...] = ()
    if is_geometric:
        logs, notes = log_magnitudes(y, zeros=zeros)
        y = np.exp(logs)
    ids = None if raters is None else np.asarray(raters)
    code, levels = codes(names)
    result = {}
    for index, level in enumerate(levels):
        inside = code == index
        own = None if ids is None else ids[inside]
        name = str(level)
        if is_geometric:
            found = geometric_mean(
                y[inside], own, n_resamples=n_resamples, seed=seed, confidence=confidence, label=name
            )
            result[name] = replace(found, notes=(*(f"over all groups: {note}" for note in notes), *found.notes))
        else:
            result[name] = bootstrap_mean(
                y[inside], own, n_resamples=n_resamples, seed=seed, confidence=confidence, label=name
            )
    return result
