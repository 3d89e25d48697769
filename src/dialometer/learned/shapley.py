"""Stage 3: what each rating is worth, by the closed form of data Shapley for nearest neighbours.

Liang et al. 2020, Theorem 1, after Jia et al. 2019. The utility of a set of rated dialogues is, for each expert pair, the
difference of the two dialogues' K-nearest-neighbour ratings in the expert's direction. It is linear in the two, so the value
of a rating is a sum over development *dialogues*, each weighted by how often the experts preferred it minus how often not:
one sort per dialogue instead of two per pair.

Two remarks on the paper: its Equation 3 has a misprint (the case z = 0 reads y_q - y_q, meant is y_q - y_p), and its first
line of the recursion, y/N, holds when N is at least K; here it is y min(K, N) / (K N), which covers both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.neighbours import DEFAULT_BLOCK_BYTES, distance_blocks

Floats = NDArray[np.float64]
Pair = tuple[int, int]
"""Numbers of two development dialogues, the better one first."""


def pair_weights(pairs: Sequence[Pair], n_development: int) -> Floats:
    """For each development dialogue, preferred minus not preferred, over the number of pairs."""
    weights = np.zeros(n_development)
    for better, worse in pairs:
        if not (0 <= better < n_development and 0 <= worse < n_development) or better == worse:
            raise DialometerError(
                f"the pair ({better}, {worse}) names no two development dialogues", remedy="check the pairs"
            )
        weights[better] += 1
        weights[worse] -= 1
    if not pairs:
        raise NotEnoughData("there are no expert pairs", remedy="give pairs, or use the documented substitute")
    return weights / len(pairs)


def knn_shapley(
    features: NDArray[np.floating],
    ratings: Floats,
    development: NDArray[np.floating],
    pairs: Sequence[Pair],
    k: int = 50,
    *,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    report: Callable[[int, int], None] | None = None,
) -> Floats:
    """The Shapley value of every rating for ranking the development pairs right; negative ones do harm.

    O(N log N) per development dialogue; memory is bounded by ``block_bytes`` however many ratings there are. Dialogues that
    the experts preferred as often as not weigh nothing and are passed over.
    """
    weights = pair_weights(pairs, len(development))
    used = np.flatnonzero(weights)
    ratings = np.asarray(ratings, dtype=np.float64)
    shares = neighbour_shares(len(ratings), k)
    values = np.zeros(len(ratings))
    for start, block in distance_blocks(development[used], features, block_bytes):
        for row, distances in enumerate(block):
            order = np.argsort(distances, kind="stable" if len(ratings) < 50_000 else None)
            sorted_values = point_shapley(ratings[order], shares)
            sorted_values *= weights[used[start + row]]
            # Each number occurs once in ``order``, so plain addition is safe.
            values[order] += sorted_values
        if report is not None:
            report(start + len(block), len(used))
    return values


def neighbour_shares(n: int, k: int) -> Floats:
    """min(K, m) / (K m) for m = 1 … n: how much the m-th neighbour counts over all coalitions."""
    m = np.arange(1, n + 1, dtype=np.float64)
    return np.minimum(k, m) / (k * m)


def point_shapley(sorted_ratings: Floats, shares: Floats) -> Floats:
    """Shapley values for the K-nearest-neighbour rating of one dialogue; ratings in order of distance.

    The recursion s_m = s_{m+1} + (y_m - y_{m+1}) min(K, m) / (K m), summed from the far end.
    """
    steps = np.empty_like(sorted_ratings)
    np.subtract(sorted_ratings[:-1], sorted_ratings[1:], out=steps[:-1])
    steps[-1] = sorted_ratings[-1]
    steps *= shares
    return np.asarray(np.cumsum(steps[::-1])[::-1])
