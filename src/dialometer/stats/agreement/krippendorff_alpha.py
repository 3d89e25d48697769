"""Krippendorff's alpha: agreement of any number of raters, with holes, at four levels of measurement.

Values are those of ``krippendorff.alpha(reliability_data, level_of_measurement)`` 0.9.0 (Krippendorff 2011). For the interval,
units are drawn; per unit only label counts enter, so all resamples are a few matrix products. Ordinal distances are squared
differences of mid-ranks, which change with every resample; they too come out of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import UnknownName
from dialometer.model.estimate import Estimate, unknown
from dialometer.registry import did_you_mean
from dialometer.stats.bootstrap.bootstrap import (
    WeightedStatistic,
    batch_sizes,
    bootstrap,
    draw_counts,
    estimate_from,
    weighted_sums,
)
from dialometer.stats.observations import Floats, as_matrix, numbers, positions

MeasurementLevel = Literal["nominal", "ordinal", "interval", "ratio"]


def krippendorff_alpha(
    ratings: ArrayLike,
    level: MeasurementLevel,
    *,
    labels: Sequence[Any] | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Alpha of ratings laid out as items by raters (``nan`` = missing), with a percentile interval over items.

    ``labels`` gives the order of values that are words; numbers need none, as labels nobody chose do not enter alpha.
    ``n_resamples=0`` leaves the interval out.
    """
    if level not in get_args(MeasurementLevel):
        raise UnknownName(f"unknown level '{level}'", remedy=did_you_mean(level, list(get_args(MeasurementLevel))))
    matrix = as_matrix(ratings if labels is None else positions(ratings, labels))
    method = f"Krippendorff's alpha, {level}"
    if labels is not None and level in ("interval", "ratio"):
        points = np.array([float(value) for value in labels])
        matrix = np.where(np.isnan(matrix), np.nan, points[np.nan_to_num(matrix).astype(np.int64)])
    is_rated = ~np.isnan(matrix)
    is_pairable = is_rated.sum(axis=1) >= 2
    n = int(is_pairable.sum())
    notes = []
    if n < len(matrix):
        notes.append(f"{len(matrix) - n} of {len(matrix)} items excluded, they have fewer than two ratings")
    if n == 0:
        return unknown(method, "no item has two ratings; have items judged by more raters", label=label)
    values, counts = _value_counts(matrix[is_pairable])
    if len(values) == 1:
        why = f"every rating is {values[0]:g}, so there is nothing to disagree about; report percent agreement"
        return unknown(method, why, n=n, label=label)
    statistic = _statistic(values, counts, level)
    value = float(statistic(np.ones((1, n)))[0])
    details = {"n_ratings": int(counts.sum()), "n_values": len(values)}
    if n < 2 or n_resamples == 0:
        if n < 2:
            notes.append("no confidence interval: there is one item only")
        return Estimate(
            value=value, n=n, method=method, confidence=confidence, label=label, notes=tuple(notes), details=details
        )
    rng = np.random.default_rng(seed)
    width = max(n, len(values))
    replicates = np.concatenate([statistic(draw_counts(rng, n, size)) for size in batch_sizes(width, n_resamples)])
    return estimate_from(
        value,
        replicates,
        n=n,
        method=method,
        resampled="items",
        seed=seed,
        confidence=confidence,
        label=label,
        notes=notes,
        details=details,
    )


def interval_alpha(
    values: ArrayLike,
    items: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    resampled: str = "items",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Interval alpha from one value and item per judgment; distinct values may be as many as judgments.

    Where several items belong together (the systems on one screen), ``clusters`` says which: they are drawn together.
    """
    y = numbers(values)
    method = "Krippendorff's alpha, interval"
    _, item = np.unique(np.asarray(items), return_inverse=True)
    size = np.bincount(item).astype(np.float64)
    x = y - y.mean()
    total, square = (np.bincount(item, weights=part).astype(np.float64) for part in (x, x**2))
    is_pairable = size >= 2
    n = int(is_pairable.sum())
    parts = _parts(size[is_pairable], total[is_pairable], square[is_pairable])
    if clusters is not None:
        of_item = np.zeros(len(size), dtype=np.int64)
        of_item[item] = np.unique(np.asarray(clusters), return_inverse=True)[1].ravel()
        _, cluster = np.unique(of_item[is_pairable], return_inverse=True)
        n = int(cluster.max(initial=-1)) + 1
        parts = np.stack([np.bincount(cluster, weights=part, minlength=n) for part in parts.T], axis=1)
    if n < 2:
        return unknown(method, "fewer than two things with two ratings; have items judged by more raters", label=label)
    return bootstrap(
        _squared_differences(parts),
        n,
        method=method,
        resampled=resampled,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )


def _value_counts(matrix: Floats) -> tuple[Floats, Floats]:
    """The distinct values and how often each item got each (items by values)."""
    is_rated = ~np.isnan(matrix)
    values, code = np.unique(matrix[is_rated], return_inverse=True)
    item = np.nonzero(is_rated)[0]
    cells = np.bincount(item * len(values) + code.ravel(), minlength=len(matrix) * len(values))
    return values, cells.reshape(len(matrix), len(values)).astype(np.float64)


def _statistic(values: Floats, counts: Floats, level: MeasurementLevel) -> WeightedStatistic:
    if level == "ordinal":
        return _ordinal(counts)
    if level == "interval":
        return _interval(values, counts)
    if level == "nominal":
        distance = 1.0 - np.eye(len(values))
    else:
        total = np.add.outer(values, values)
        gap = np.subtract.outer(values, values)
        distance = np.divide(gap, total, out=np.zeros_like(gap), where=total != 0) ** 2
    return _fixed_distance(counts, distance)


def _alpha(observed: Floats, expected: Floats, n_ratings: Floats) -> Floats:
    """1 - observed / expected disagreement, both as sums over ordered pairs; ``nan`` where a resample holds one value only."""
    ratio = np.divide(observed, expected, out=np.full(len(observed), np.nan), where=expected > 0)
    return np.asarray(1 - (n_ratings - 1) * ratio)


def _fixed_distance(counts: Floats, distance: Floats) -> WeightedStatistic:
    """Distances that do not depend on the sample: disagreement inside an item is one number per item."""
    per_item = np.einsum("uv,uv->u", counts @ distance, counts) / (counts.sum(axis=1) - 1)
    columns = np.column_stack([counts, per_item])

    def statistic(weights: Floats) -> Floats:
        sums = weighted_sums(weights, columns)
        marginal = sums[:, :-1]
        expected = np.einsum("bv,bv->b", marginal @ distance, marginal)
        return _alpha(sums[:, -1], expected, marginal.sum(axis=1))

    return statistic


def _interval(values: Floats, counts: Floats) -> WeightedStatistic:
    x = values - (counts.sum(axis=0) @ values) / counts.sum()
    return _squared_differences(_parts(counts.sum(axis=1), counts @ x, counts @ x**2))


def _parts(size: Floats, total: Floats, square: Floats) -> Floats:
    """What an item adds to interval alpha, from the number, sum and sum of squares of its ratings; sums of it add up too."""
    return np.stack([(size * square - total**2) / (size - 1), size, total, square], axis=1)


def _squared_differences(parts: Floats) -> WeightedStatistic:
    """Interval alpha from the parts of each item, however many values are distinct."""

    def statistic(weights: Floats) -> Floats:
        within, n, sums, squares = weighted_sums(weights, parts).T
        expected = n * squares - sums**2
        is_rounding = expected <= 1e-12 * n * np.maximum(squares, 0.0)
        return _alpha(within, np.where(is_rounding, 0.0, expected), n)

    return statistic


def _ordinal(counts: Floats) -> WeightedStatistic:
    """The distance of two labels is the squared number of ratings between their middles, that is, between mid-ranks."""
    size = counts.sum(axis=1)
    n_values = counts.shape[1]
    sums_and_squares = np.hstack([counts, counts * (size / (size - 1))[:, None]])
    scaled = (counts / np.sqrt(size - 1)[:, None]).T

    def statistic(weights: Floats) -> Floats:
        both = weighted_sums(weights, sums_and_squares)
        marginal = both[:, :n_values]
        n = marginal.sum(axis=1)
        rank = np.cumsum(marginal, axis=1) - marginal / 2 - n[:, None] / 2  # centred mid-ranks, resamples x labels
        inside = weighted_sums(rank, scaled)  # sums of mid-ranks, resamples x items
        observed = np.einsum("bv,bv->b", both[:, n_values:], rank**2) - np.einsum(
            "bu,bu,bu->b", weights, inside, inside
        )
        expected = n * np.einsum("bv,bv->b", marginal, rank**2) - np.einsum("bv,bv->b", marginal, rank) ** 2
        has_two = (marginal > 0).sum(axis=1) > 1
        return _alpha(observed, np.where(has_two, expected, 0.0), n)

    return statistic
