"""Bootstrap intervals: percentile and BCa, over cases or over clusters (raters, items, or both crossed).

A resample is a row of counts that says how often each case was drawn. Statistics that are functions of weighted sums then
cost one matrix product for all resamples together (:func:`bootstrap`); any other statistic is called once for each resample
(:func:`bootstrap_clusters`). Intervals equal those of ``scipy.stats.bootstrap(..., method="percentile" | "BCa")`` on the same
replicates (Efron & Tibshirani 1993, ch. 13 and 14).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, Ints

Interval = Literal["percentile", "bca"]
WeightedStatistic = Callable[[Floats], Floats]
"""Takes counts (resamples by cases), gives one value per resample; ``nan`` where a resample has none."""

_BATCH_CELLS = 250_000  # counts held at a time: few enough to stay in the cache
_UNTHREADED = 262_144  # multiplications up to which OpenBLAS stays on one core
_MAX_FAILED_SHARE = 0.5
_EQUAL = 1e-12
NO_SPREAD = "no confidence interval: every resample gave the same value; collect more data"
_TOO_FEW = "{n} {what}: at least 2 are needed to resample; collect more"


def draw_counts(rng: np.random.Generator, n: int, n_resamples: int) -> Floats:
    """How often each of ``n`` cases is drawn in each resample (resamples by cases); every row sums to ``n``."""
    drawn = rng.integers(0, n, size=(n_resamples, n), dtype=np.int64)
    drawn += np.arange(n_resamples, dtype=np.int64)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=n_resamples * n).reshape(n_resamples, n).astype(np.float64)


def batch_sizes(n: int, n_resamples: int) -> Iterator[int]:
    """Split the resamples so that ``n`` counts for each of them fit in memory."""
    size = max(1, _BATCH_CELLS // max(n, 1))
    for start in range(0, n_resamples, size):
        yield min(size, n_resamples - start)


def weighted_sums(counts: Floats, columns: Floats) -> Floats:
    """``counts @ columns`` in slices too small for the linear-algebra library to start threads.

    These products are thin; waking threads for them gains little on an idle machine and costs ten times as much on a busy one.
    """
    n_rows = max(1, _UNTHREADED // max(columns.size, 1))
    sums = np.empty((len(counts), columns.shape[1]))
    for start in range(0, len(counts), n_rows):
        np.matmul(counts[start : start + n_rows], columns, out=sums[start : start + n_rows])
    return sums


def replicate(statistic: WeightedStatistic, n: int, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """The statistic on every resample of ``n`` cases."""
    parts = [statistic(draw_counts(rng, n, size)) for size in batch_sizes(n, n_resamples)]
    return np.concatenate(parts) if parts else np.empty(0)


def jackknife(statistic: WeightedStatistic, n: int) -> Floats:
    """The statistic with each case left out in turn."""
    parts = []
    start = 0
    for size in batch_sizes(n, n):
        counts = np.ones((size, n))
        counts[np.arange(size), np.arange(start, start + size)] = 0.0
        parts.append(statistic(counts))
        start += size
    return np.concatenate(parts) if parts else np.empty(0)


def percentile_interval(replicates: Floats, confidence: float) -> tuple[float, float]:
    """The middle ``confidence`` of the replicates."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


def bca_interval(value: float, replicates: Floats, left_out: Floats, confidence: float) -> tuple[float, float]:
    """Percentiles moved for bias and for skewness (Efron 1987); ``nan`` where every replicate lies on one side of the value.

    ``left_out`` are the jackknife values. Checked against ``scipy.stats.bootstrap(method="BCa")``.
    """
    below = float(np.mean(replicates < value) + np.mean(replicates <= value)) / 2
    if not 0 < below < 1:
        return math.nan, math.nan
    bias = special.ndtri(below)
    influence = left_out.mean() - left_out
    spread = float(np.sum(influence**2))
    acceleration = float(np.sum(influence**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    tail = special.ndtri((1 - confidence) / 2)
    shifted = bias + np.array([tail, -tail])
    low, high = np.quantile(replicates, special.ndtr(bias + shifted / (1 - acceleration * shifted)))
    return float(low), float(high)


def estimate_from(
    value: float,
    replicates: Floats,
    *,
    n: int,
    method: str,
    resampled: str,
    seed: int,
    confidence: float = 0.95,
    left_out: Floats | None = None,
    label: str = "",
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> Estimate:
    """An estimate with the interval of its replicates; BCa when jackknife values are given, else percentile.

    Replicates that could not be computed are counted in a note; where they are more than half, or all are equal, no interval is given:
    one without width would say that the value is known for certain.
    """
    usable = replicates[np.isfinite(replicates)]
    n_failed = len(replicates) - len(usable)
    remarks = list(notes)
    low = high = math.nan
    kind = "percentile" if left_out is None else "BCa"
    if len(replicates) and n_failed > _MAX_FAILED_SHARE * len(replicates):
        remarks.append(
            f"no confidence interval: {n_failed} of {len(replicates)} resamples gave no value; collect more data"
        )
    elif len(usable) > 1 and float(np.ptp(usable)) <= _EQUAL * max(1.0, abs(value)):
        remarks.append(NO_SPREAD)
    elif len(usable):
        if n_failed:
            verb = "was" if n_failed == 1 else "were"
            remarks.append(f"{n_failed:,} of {len(replicates):,} resamples gave no value and {verb} excluded")
        if left_out is None:
            low, high = percentile_interval(usable, confidence)
        else:
            low, high = bca_interval(value, usable, left_out[np.isfinite(left_out)], confidence)
            if math.isnan(low):
                remarks.append("no BCa interval: every resample lies on one side of the value; use percentile")
    return Estimate(
        value=value,
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=f"{kind} bootstrap over {resampled}",
        seed=seed,
        n_resamples=len(replicates),
        label=label,
        notes=tuple(remarks),
        details={**(details or {}), "bootstrap_bias": float(usable.mean() - value) if len(usable) else math.nan},
    )


def bootstrap(
    statistic: WeightedStatistic,
    n: int,
    *,
    method: str,
    resampled: str = "cases",
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """The interval of a statistic that works on counts: the fast road (see the module's head)."""
    if n < 2:
        return unknown(method, _TOO_FEW.format(n=n, what=f"of {resampled}"), n=n, label=label)
    value = float(statistic(np.ones((1, n)))[0])
    if math.isnan(value):
        return unknown(method, f"not defined on these {n} {resampled}", n=n, label=label)
    replicates = replicate(statistic, n, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    left_out = jackknife(statistic, n) if interval == "bca" else None
    return estimate_from(
        value,
        replicates,
        n=n,
        method=method,
        resampled=resampled,
        seed=seed,
        confidence=confidence,
        left_out=left_out,
        label=label,
    )


def bootstrap_clusters(
    statistic: Callable[[Ints], float],
    clusters: ArrayLike,
    crossed_with: ArrayLike | None = None,
    *,
    method: str,
    resampled: str = "clusters",
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """The interval of any statistic of rows, one call of ``statistic`` per resample.

    ``statistic`` takes row numbers; a row drawn twice stands there twice. With ``crossed_with`` both groupings are drawn
    independently and a row comes as often as the product of its two counts (the pigeonhole bootstrap of Owen 2007, a
    little wide for a mean, not narrow). BCa leaves out one cluster at a time and is not defined for two groupings.
    """
    groups = _groups(clusters, crossed_with)
    if interval == "bca" and len(groups) > 1:
        raise NotEnoughData("BCa is not defined when two groupings are drawn", remedy="use interval='percentile'")
    sizes = [int(group.max(initial=-1)) + 1 for group in groups]
    rows = np.arange(len(groups[0]))
    if min(sizes) < 2:
        return unknown(method, _TOO_FEW.format(n=min(sizes), what=resampled), n=len(rows), label=label)
    value = float(statistic(rows))
    if math.isnan(value):
        return unknown(method, f"not defined on these {len(rows)} rows", n=len(rows), label=label)
    rng = np.random.default_rng(seed)
    replicates = np.empty(n_resamples)
    for index in range(n_resamples):
        times = np.ones(len(rows), dtype=np.int64)
        for group, size in zip(groups, sizes, strict=True):
            times *= np.bincount(rng.integers(0, size, size=size), minlength=size)[group]
        drawn = np.repeat(rows, times)
        replicates[index] = statistic(drawn) if len(drawn) else math.nan
    left_out = None
    if interval == "bca":
        left_out = np.array([statistic(rows[groups[0] != cluster]) for cluster in range(sizes[0])])
    return estimate_from(
        value,
        replicates,
        n=len(rows),
        method=method,
        resampled=resampled,
        seed=seed,
        confidence=confidence,
        left_out=left_out,
        label=label,
        details={"n_clusters": tuple(sizes)},
    )


def _groups(clusters: ArrayLike, crossed_with: ArrayLike | None) -> list[Ints]:
    factors = [clusters] if crossed_with is None else [clusters, crossed_with]
    groups = [np.unique(np.asarray(ids).ravel(), return_inverse=True)[1].ravel() for ids in factors]
    if len({len(group) for group in groups}) != 1:
        raise NotEnoughData("the two groupings have different lengths", remedy="give one cluster per row in both")
    return groups
