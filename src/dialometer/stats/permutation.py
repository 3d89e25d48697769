"""Permutation tests on rater means: what a mixed model claims, checked without its assumptions.

Raters, not judgments, are exchangeable, so each rater enters with one mean. Permutations are drawn with a seed and their
p-value counts the observed arrangement among them, (1 + hits) / (1 + permutations), which keeps the test valid (Phipson
and Smyth 2010); where all arrangements are few they are enumerated instead.

Checked against ``scipy.stats.permutation_test`` with ``permutation_type="independent" | "samples"``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, codes, missing_note, numbers, same_length

__all__ = ["batches", "permutation_paired", "permutation_two_groups", "rater_means"]

BATCH_CELLS = 4_000_000
MOST_DRAWS = 40_000_000
TOLERANCE = 1e-9


def rater_means(
    values: ArrayLike, raters: ArrayLike, items: ArrayLike | None = None
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.generic]]]:
    """One mean per rater, with the raters in sorted order; with ``items`` each judgment is first taken relative to its
    item's mean (plus the overall mean), so raters who happened to get better items are not taken for generous ones.
    """
    y, ids = numbers(values), np.asarray(raters)
    same_length(values=y, raters=ids)
    is_given = ~np.isnan(y)
    y = y[is_given]
    if items is not None and len(y):
        item, levels = codes(np.asarray(items)[is_given])
        means = np.bincount(item, weights=y, minlength=len(levels)) / np.bincount(item, minlength=len(levels))
        y = y - means[item] + y.mean()
    rater, known = codes(ids[is_given])
    return np.bincount(rater, weights=y, minlength=len(known)) / np.bincount(rater, minlength=len(known)), known


def permutation_two_groups(
    first: ArrayLike, second: ArrayLike, *, n_permutations: int = 10_000, seed: int = 0, label: str = ""
) -> Estimate:
    """Difference of two groups' means (first minus second), each entry one rater, tested by moving raters across."""
    one, two = _given(first), _given(second)
    n_one, n = len(one), len(one) + len(two)
    method = "two-sided permutation test of the difference of means"
    if not n_one or n_one == n:
        return unknown(method, "one of the two groups is empty: recruit raters for both", n=n, label=label)
    pooled = np.concatenate([one, two])
    if np.ptp(pooled) == 0:
        return unknown(method, "all values are equal: no arrangement differs from another", n=n, label=label)
    observed = float(one.mean() - two.mean())
    centred = pooled - pooled.mean()
    bound = abs(observed) * n_one * (n - n_one) / n * (1 - TOLERANCE)
    n_all = math.comb(n, n_one)
    if n_all <= n_permutations:
        chosen = np.array(list(itertools.combinations(range(n), n_one)))
        p_value = float(np.mean(np.abs(centred[chosen].sum(axis=1)) >= bound))
        return _permuted(observed, n, f"{method}, all {n_all} arrangements", p_value, n_all, None, label)
    rng = np.random.default_rng(seed)
    hits = 0
    for size in batches(n, n_permutations):
        drawn = rng.permuted(np.broadcast_to(centred, (size, n)), axis=1)
        hits += int(np.sum(np.abs(drawn[:, :n_one].sum(axis=1)) >= bound))
    return _permuted(observed, n, method, (1 + hits) / (1 + n_permutations), n_permutations, seed, label)


def permutation_paired(
    first: ArrayLike, second: ArrayLike, *, n_permutations: int = 10_000, seed: int = 0, label: str = ""
) -> Estimate:
    """Mean of paired differences (first minus second) tested by flipping signs, as for two systems on one question set.

    Equal absolute differences are drawn together by their binomial count, so measures with few distinct values stay
    cheap over many thousands of questions. Where thousands of distinct values would take too many draws, the permutation
    distribution, a sum of that many independent terms, is replaced by its normal limit.
    """
    one, two = numbers(first), numbers(second)
    same_length(first=one, second=two)
    difference = one - two
    is_given = ~np.isnan(difference)
    difference = difference[is_given]
    n = len(difference)
    notes = missing_note(int(np.sum(~is_given)))
    method = "two-sided paired permutation test of the mean difference"
    if n == 0:
        return unknown(method, "no pairs: both sides are needed for at least one entry", label=label)
    sizes, counts = np.unique(np.abs(difference), return_counts=True)
    is_moving = sizes > 0
    sizes, counts = sizes[is_moving], counts[is_moving]
    if len(sizes) == 0:
        return unknown(method, "no pair differs: the test needs at least one that does", n=n, label=label)
    total = float(difference.sum())
    bound = abs(total) * (1 - TOLERANCE)
    n_moving = int(counts.sum())
    if 2**n_moving <= n_permutations:
        each = np.repeat(sizes, counts)
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n_moving)))
        p_value = float(np.mean(np.abs(signs @ each) >= bound))
        return _permuted(total / n, n, f"{method}, all sign flips", p_value, len(signs), None, label, notes)
    if len(sizes) * n_permutations > MOST_DRAWS:
        p_value = math.erfc(abs(total) / math.sqrt(2 * float(np.sum(counts * sizes**2))))
        return _permuted(total / n, n, f"{method}, normal limit", p_value, 0, None, label, notes)
    rng = np.random.default_rng(seed)
    hits = 0
    for size in batches(len(sizes), n_permutations):
        ups = rng.binomial(counts, 0.5, size=(size, len(counts)))
        hits += int(np.sum(np.abs((2 * ups - counts) @ sizes) >= bound))
    p_value = (1 + hits) / (1 + n_permutations)
    return _permuted(total / n, n, method, p_value, n_permutations, seed, label, notes)


def _given(values: ArrayLike) -> Floats:
    array = numbers(values)
    return array[~np.isnan(array)]


def batches(width: int, n_permutations: int) -> Iterator[int]:
    """Sizes of batches of permutations that fit in memory, ``width`` numbers each."""
    size = max(1, BATCH_CELLS // max(width, 1))
    for start in range(0, n_permutations, size):
        yield min(size, n_permutations - start)


def _permuted(
    value: float,
    n: int,
    method: str,
    p_value: float,
    n_resamples: int,
    seed: int | None,
    label: str,
    notes: tuple[str, ...] = (),
) -> Estimate:
    return Estimate(
        value, n, method, statistic=value, p_value=p_value, seed=seed, n_resamples=n_resamples, label=label, notes=notes
    )
