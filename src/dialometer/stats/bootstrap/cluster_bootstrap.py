"""Bootstrap where judgments come in clusters: all judgments of a rater, or of an item, are drawn together.

Judgments of one rater resemble each other, so drawing single judgments gives intervals that are too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import (
    Interval,
    WeightedStatistic,
    batch_sizes,
    draw_counts,
    estimate_from,
    jackknife,
    replicate,
    weighted_sums,
)
from dialometer.stats.ratings import Floats, Integers, as_judgments

_TOO_FEW = "{n} {what}: at least 2 are needed to resample; collect more"


def bootstrap_clusters(
    statistic: Callable[[Integers], float],
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


def _groups(clusters: ArrayLike, crossed_with: ArrayLike | None) -> list[Integers]:
    given = [clusters] if crossed_with is None else [clusters, crossed_with]
    groups = [np.unique(np.asarray(ids).ravel(), return_inverse=True)[1].ravel() for ids in given]
    if len({len(group) for group in groups}) != 1:
        raise NotEnoughData("the two groupings have different lengths", remedy="give one cluster per row in both")
    return groups


def bootstrap_mean(
    values: ArrayLike,
    *,
    raters: ArrayLike | None = None,
    items: ArrayLike | None = None,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """A mean of judgments, drawing raters, items, both crossed, or single judgments where neither is given."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    names = [name for name, ids in (("raters", raters), ("items", items)) if ids is not None]
    given = [ids for ids in (raters, items) if ids is not None] or [np.arange(len(numbers))]
    kept, codes, distinct = as_judgments(numbers, *given)
    resampled = " and ".join(names) or "judgments"
    sizes = [len(ids) for ids in distinct]
    if min(sizes) < 2:
        return unknown("mean", _TOO_FEW.format(n=min(sizes), what=resampled), n=len(kept), label=label)
    rng = np.random.default_rng(seed)
    left_out = None
    if len(codes) == 2:
        if interval == "bca":
            raise NotEnoughData("BCa is not defined when two groupings are drawn", remedy="use interval='percentile'")
        replicates = _crossed_means(kept, codes[0], codes[1], sizes[0], sizes[1], n_resamples, rng)
    else:
        statistic = _clustered_mean(kept, codes[0], sizes[0])
        replicates = replicate(statistic, sizes[0], n_resamples=n_resamples, rng=rng)
        left_out = jackknife(statistic, sizes[0]) if interval == "bca" else None
    n_missing = len(numbers) - len(kept)
    return estimate_from(
        float(kept.mean()),
        replicates,
        n=len(kept),
        method="mean",
        resampled=resampled,
        seed=seed,
        confidence=confidence,
        left_out=left_out,
        label=label,
        notes=(f"{n_missing} missing judgments left out",) if n_missing else (),
        details={"n_clusters": tuple(sizes)},
    )


def _clustered_mean(values: Floats, cluster: Integers, n_clusters: int) -> WeightedStatistic:
    """Sum over count, both linear in the counts of clusters."""
    sums_and_sizes = [
        np.bincount(cluster, weights=weights, minlength=n_clusters) for weights in (values, np.ones(len(values)))
    ]
    parts = np.stack(sums_and_sizes, axis=1).astype(np.float64)

    def statistic(counts: Floats) -> Floats:
        sums = weighted_sums(counts, parts)
        return np.asarray(sums[:, 0] / sums[:, 1])

    return statistic


def _crossed_means(
    values: Floats,
    rater: Integers,
    item: Integers,
    n_raters: int,
    n_items: int,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Means under independent draws of raters and items; a draw that leaves no judgment gives ``nan``."""
    shape = (n_items, n_raters)
    sums = sparse.coo_array((values, (item, rater)), shape=shape).tocsr()
    n_cells = sparse.coo_array((np.ones(len(values)), (item, rater)), shape=shape).tocsr()
    means = []
    for size in batch_sizes(n_raters + n_items, n_resamples):
        by_rater = draw_counts(rng, n_raters, size).T
        by_item = draw_counts(rng, n_items, size).T
        total = np.einsum("ib,ib->b", sums @ by_rater, by_item)
        count = np.einsum("ib,ib->b", n_cells @ by_rater, by_item)
        means.append(np.divide(total, count, out=np.full(size, np.nan), where=count > 0))
    return np.concatenate(means)
