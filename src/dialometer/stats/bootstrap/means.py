"""Means with bootstrap intervals: over single values, or over the raters, the items or both that the values belong to.

Judgments of one rater resemble each other, so drawing single judgments gives intervals that are too narrow. Checked against
``scipy.stats.bootstrap(..., method="percentile")`` and, for clusters, against drawing raters and items one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import Interval, batch_sizes, bootstrap, draw_counts, estimate_from
from dialometer.stats.observations import Floats, Ints, codes, missing_note, numbers, same_length

MOST_DRAWS = 10_000_000


def bootstrap_mean(
    values: ArrayLike,
    raters: ArrayLike | None = None,
    items: ArrayLike | None = None,
    *,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """A mean; with ``raters`` or ``items`` all judgments of a rater or item are drawn together, with both they are crossed.

    Without them, equal values are drawn together by their multinomial count: the same distribution, and cheap for many
    thousands of answers on a scale with few values. Where many thousands of values differ, the interval is Student's t,
    which the bootstrap of a mean has then long reached. Crossed draws are the pigeonhole bootstrap of Owen (2007).
    """
    y = numbers(values)
    groups = {name: np.asarray(ids) for name, ids in (("raters", raters), ("items", items)) if ids is not None}
    same_length(values=y, **groups)
    is_given = ~np.isnan(y)
    notes = missing_note(int(np.sum(~is_given)))
    method = f"mean over judgments, {' and '.join(groups)} resampled" if groups else "mean"
    if not is_given.any():
        return unknown(method, "no ratings: collect at least one judgment", label=label)
    kept = y[is_given]
    chosen = {name: codes(ids[is_given]) for name, ids in groups.items()}
    if interval == "bca" and len(groups) == 2:
        raise NotEnoughData("BCa is not defined when two groupings are drawn", remedy="use interval='percentile'")
    if groups:
        estimate = _mean_of_groups(kept, chosen, interval, n_resamples, seed, confidence)
    else:
        estimate = _mean_of_values(kept, interval, n_resamples, seed, confidence)
    return replace(estimate, method=method, label=label, notes=(*notes, *estimate.notes))


def _mean_of_values(values: Floats, interval: Interval, n_resamples: int, seed: int, confidence: float) -> Estimate:
    value, n = float(values.mean()), len(values)
    if n < 2:
        return Estimate(value, n, "mean", confidence=confidence, notes=("one value: no confidence interval",))
    if interval == "bca":
        each = np.arange(n), np.arange(n)
        return _mean_of_groups(values, {"values": each}, interval, n_resamples, seed, confidence)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) * n_resamples > MOST_DRAWS:
        half = float(stats.t.isf((1 - confidence) / 2, n - 1)) * float(stats.sem(values))
        return Estimate(value, n, "mean", value - half, value + half, confidence, "Student's t")
    rng, batches = np.random.default_rng(seed), batch_sizes(len(distinct), n_resamples)
    means = [rng.multinomial(n, counts / n, size=size) @ distinct / n for size in batches]
    replicates = np.concatenate(means)
    return estimate_from(value, replicates, n=n, method="mean", resampled="values", seed=seed, confidence=confidence)


def _mean_of_groups(
    values: Floats,
    groups: dict[str, tuple[Ints, NDArray[Any]]],
    interval: Interval,
    n_resamples: int,
    seed: int,
    confidence: float,
) -> Estimate:
    value, n = float(values.mean()), len(values)
    sizes = {name: len(levels) for name, (_, levels) in groups.items()}
    for name, size in sizes.items():
        if size < 2:
            remedy = "recruit more" if name == "raters" else "have more of them judged"
            why = f"one {name.removesuffix('s')}: no confidence interval speaks for others; {remedy}"
            return Estimate(value, n, "mean", confidence=confidence, notes=(why,))
    details = {f"n_{name}": size for name, size in sizes.items()}
    if len(groups) == 2:
        rater, item = groups["raters"][0], groups["items"][0]
        _, drawn = crossed_means(values, rater, item, [np.ones(n)], n_resamples=n_resamples, seed=seed)
        return estimate_from(
            value, drawn[:, 0], n=n, method="mean", resampled=" and ".join(groups), seed=seed, confidence=confidence,
            details=details,
        )  # fmt: skip
    [(name, (group, levels))] = groups.items()
    counts = np.bincount(group, minlength=len(levels)).astype(np.float64)
    sums = np.bincount(group, weights=values - value, minlength=len(levels))
    estimate = bootstrap(
        lambda times: value + (times @ sums) / (times @ counts),
        len(levels),
        method="mean",
        resampled=name,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
    )
    return replace(estimate, n=n, details={**estimate.details, **details})


def crossed_means(
    values: Floats,
    rater: Ints,
    item: Ints,
    weights: Sequence[Floats],
    *,
    n_resamples: int,
    seed: int,
    has_fixed_items: bool = False,
) -> tuple[Floats, Floats]:
    """Weighted means of several groups, and the same under independent draws of raters and items (resamples by groups).

    The pigeonhole bootstrap (Owen 2007), a little wide for a mean and not narrow. ``weights`` holds one array per group: how
    much each value counts in it, 0 for those outside. A draw that leaves nothing of a group gives ``nan``. With
    ``has_fixed_items`` only raters are drawn.
    """
    shape = (int(item.max(initial=-1)) + 1, int(rater.max(initial=-1)) + 1)
    sums, totals = [], []
    for weight in weights:
        inside = np.flatnonzero(weight)
        cells = (item[inside], rater[inside])
        sums.append(sparse.coo_array((weight[inside] * values[inside], cells), shape=shape).tocsr())
        totals.append(sparse.coo_array((weight[inside], cells), shape=shape).tocsr())
    means = _ratio(np.array([table.sum() for table in sums]), np.array([table.sum() for table in totals]))
    rng, replicates = np.random.default_rng(seed), [np.empty((0, len(weights)))]
    for size in batch_sizes(sum(shape), n_resamples):
        by_rater = draw_counts(rng, shape[1], size).T
        by_item = np.ones((shape[0], size)) if has_fixed_items else draw_counts(rng, shape[0], size).T
        columns = [
            _ratio(*(np.einsum("ib,ib->b", table @ by_rater, by_item) for table in pair))
            for pair in zip(sums, totals, strict=True)
        ]
        replicates.append(np.stack(columns, axis=1))
    return means, np.concatenate(replicates)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0))
