"""A paired permutation test with the confidence interval that belongs to it.

Differences of two systems on the same questions are symmetric about their mean if the mean is the only difference: then each
may as well have had the other sign (Fisher 1935). The interval holds the values that this test does not reject, from the same
flips, so that the two never contradict each other, as a bootstrap interval does where few questions differ. A flip is as far off
as the data where the mean of the questions with one of the signs lies beyond the value, so that the ends are order statistics of
means of random parts of the questions (the typical values of Hartigan 1969; Maritz 1979).

Checked in ``tests/stats/test_sign_flips.py`` against ``scipy.stats.permutation_test`` of the differences less each value, and by
simulation of coverage.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dialometer.stats.effects.permutation import MOST_DRAWS, TOLERANCE, batches
from dialometer.stats.observations import Floats, Ints


@dataclass(frozen=True, slots=True)
class SignFlips:
    """The p-value of a mean of 0 and the values that are not rejected; ``nan`` for both ends where no value is."""

    p_value: float
    low: float
    high: float
    how: str
    n_drawn: int
    """Flips that the test drew; 0 where it has all of them."""


def sign_flips(
    differences: Floats, groups: Ints, *, n_permutations: int = 10_000, seed: int = 0, confidence: float = 0.95
) -> SignFlips:
    """Test and interval of a mean difference whose signs are flipped by whole groups, such as questions or dialogues."""
    sums, sizes = np.bincount(groups, weights=differences).round(12), np.bincount(groups)
    pairs, counts = np.unique(np.stack([sums, sizes], axis=1)[sizes > 0], axis=0, return_counts=True)
    each: Floats = pairs.astype(np.float64)
    if len(each) * n_permutations > MOST_DRAWS:
        return _normal_limit(each, counts, confidence)
    is_moving = each[:, 0] != 0
    rng = np.random.default_rng(seed)
    is_complete = 2 ** int(counts[is_moving].sum()) <= n_permutations
    if is_complete:
        flipped = _all_flips(each, counts, is_moving, n_permutations, rng)
    else:
        drawn = (
            (2 * rng.binomial(counts, 0.5, size=(size, len(counts))) - counts) @ each
            for size in batches(len(each), n_permutations)
        )
        flipped = np.concatenate(list(drawn)).astype(np.float64)
    total, n = (float(part) for part in counts @ each)
    hits = np.abs(flipped[:, 0]) >= abs(total) - TOLERANCE * float(counts @ np.abs(each[:, 0]))
    low, high = _ends(flipped, total, n)
    # The first value that more than this share of the flips reach is not rejected.
    alpha = 1 - confidence
    place = math.floor(alpha * len(hits) + TOLERANCE) + 1 if is_complete else math.floor(alpha * (1 + len(hits)))
    lower = float(np.sort(low)[place - 1]) if place else -math.inf
    upper = float(np.sort(high)[-place]) if place else math.inf
    if math.isinf(lower) and math.isinf(upper):
        lower = upper = math.nan
    p_value = float(hits.mean()) if is_complete else float(1 + hits.sum()) / (1 + len(hits))
    how = "all sign flips" if is_complete else ""
    return SignFlips(p_value, lower, upper, how, 0 if is_complete else len(hits))


def _all_flips(
    each: Floats, counts: Ints, is_moving: np.ndarray, n_permutations: int, rng: np.random.Generator
) -> Floats:
    """Every flip of the groups that differ, with drawn flips of those that do not: they matter for means other than 0 only."""
    moving, still = np.repeat(each[is_moving], counts[is_moving], axis=0), counts[~is_moving]
    flips: Floats = np.array(list(itertools.product((-1.0, 1.0), repeat=len(moving)))) @ moving
    if not len(still):
        return flips
    flips = np.tile(flips, (-(-n_permutations // len(flips)), 1))
    drawn = 2 * rng.binomial(still, 0.5, size=(len(flips), len(still))) - still
    together: Floats = flips + drawn @ each[~is_moving]
    return together


def _ends(flipped: Floats, total: float, n: float) -> tuple[Floats, Floats]:
    """Of each flip the smaller and the larger mean of the two parts; a flip that leaves one empty reaches every value."""
    parts = []
    for sign in (1, -1):
        size = n + sign * flipped[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(size > 0.5, (total + sign * flipped[:, 0]) / size, math.nan)
        parts.append(np.where(np.abs(mean) < TOLERANCE, 0.0, mean))
    is_whole = np.isnan(parts[0]) | np.isnan(parts[1])
    low, high = np.minimum(*parts), np.maximum(*parts)
    return np.where(is_whole, -math.inf, low), np.where(is_whole, math.inf, high)


def _normal_limit(each: Floats, counts: Ints, confidence: float) -> SignFlips:
    """A sum of thousands of independent signs is normal: the values that lie within its quantile."""
    (total, n), ((ss, sn), (_, nn)) = counts @ each, (each * counts[:, None]).T @ each
    z2 = float(stats.norm.isf((1 - confidence) / 2)) ** 2
    square, middle, rest = n**2 - z2 * nn, n * total - z2 * sn, total**2 - z2 * ss
    half = math.sqrt(max(middle**2 - square * rest, 0.0))
    low, high = ((middle - half) / square, (middle + half) / square) if square > 0 else (math.nan, math.nan)
    return SignFlips(math.erfc(abs(total) / math.sqrt(2 * ss)), low, high, "normal limit", 0)
