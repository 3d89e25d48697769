"""Stage 3: what each rating is worth, by the closed form of data Shapley for nearest neighbours.

Liang et al. 2020, Theorem 1, after Jia et al. 2019. The utility of a set of rated dialogues is, for each expert pair, the
difference of the two dialogues' K-nearest-neighbour ratings in the expert's direction. It is linear in the two, so the value
of a rating is a sum over development *dialogues*, each weighted by how often the experts preferred it minus how often not:
one sort per dialogue instead of two per pair.

Two remarks on the paper: its Equation 3 has a misprint (the case z = 0 reads y_q - y_q, meant is y_q - y_p), and its first
line of the recursion, y/N, holds when N is at least K; here it is y min(K, N) / (K N), which covers both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.cmade.neighbours import (
    DEFAULT_BLOCK_BYTES,
    Features,
    Report,
    as_points,
    is_compiled,
    product_blocks,
    squared_norms,
)
from dialometer.neural.engines import LOCAL, THREADS, Engine, n_threads_allowed

Floats = NDArray[np.float64]
_FEWEST_ROWS, _MOST_ROWS, _FEWEST_PARTS, _PART_NUMBERS = 16, 128, 4, 2**26
"""Development dialogues whose values are summed together: enough to make the matrix product worth it, and so few that a part
of very large data is done, and told, within seconds."""
Pair = tuple[int, int]
"""Numbers of two development dialogues, the better one first."""


def pair_weights(pairs: Sequence[Pair] | NDArray[np.int64], n_development: int) -> Floats:
    """For each development dialogue, preferred minus not preferred, over the number of pairs."""
    if not len(pairs):
        raise NotEnoughData("there are no expert pairs", remedy="give pairs, or use the documented substitute")
    numbers = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    is_wrong = (numbers < 0).any(axis=1) | (numbers >= n_development).any(axis=1) | (numbers[:, 0] == numbers[:, 1])
    if is_wrong.any():
        better, worse = numbers[np.argmax(is_wrong)].tolist()
        raise DialometerError(
            f"the pair ({better}, {worse}) does not name two development dialogues", remedy="check the pairs"
        )
    preferred, other = (np.bincount(side, minlength=n_development) for side in numbers.T)
    return np.asarray((preferred - other) / len(numbers), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class RatedSpace:
    """What every part of the work needs: the rated dialogues' features and ratings."""

    features: Features
    norms: Features
    ratings: Floats
    shares: Floats
    block_bytes: int


@dataclass(frozen=True, slots=True)
class DevelopmentPart:
    """Some development dialogues: their features and how much each weighs."""

    features: Features
    weights: Floats


def knn_shapley(
    features: NDArray[np.floating],
    ratings: Floats,
    development: NDArray[np.floating],
    pairs: Sequence[Pair] | NDArray[np.int64],
    k: int = 50,
    *,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    report: Report | None = None,
    engine: Engine = LOCAL,
) -> Floats:
    """The Shapley value of every rating for ranking the development pairs right; negative ones do harm.

    O(N log N) per development dialogue; memory is bounded by ``block_bytes`` however many ratings there are, and ``features``
    may be a memory-mapped file. Dialogues that the experts preferred as often as not weigh nothing and are passed over.
    Here and on every engine the same sums are added in the same order. Blocks of another size may round products otherwise,
    by which two dialogues at the same distance can change places.
    """
    weights = pair_weights(pairs, len(development))
    used = np.flatnonzero(weights)
    points = as_points(features)
    ratings = np.asarray(ratings, dtype=np.float64)
    if len(ratings) != len(points):
        raise DialometerError(f"{len(points)} dialogues have {len(ratings)} ratings", remedy="give one rating for each")
    own_bytes = block_bytes // n_threads_allowed()
    space = RatedSpace(points, squared_norms(points), ratings, neighbour_shares(len(ratings), k), own_bytes)
    most = min(_MOST_ROWS, -(-len(used) // _FEWEST_PARTS), _PART_NUMBERS // max(1, len(ratings)))
    part_rows = max(_FEWEST_ROWS, most)
    parts = [
        DevelopmentPart(as_points(development[rows]), weights[rows])
        for rows in np.array_split(used, max(1, -(-len(used) // part_rows)))
        if len(rows)
    ]
    # In this process the parts go to threads, since they are compiled loops that hold no lock.
    chosen = THREADS if engine is LOCAL else engine
    values = np.zeros(len(ratings))
    n_done = 0
    for part, part_values in zip(parts, chosen.run(part_shapley, space, parts), strict=True):
        values += part_values
        n_done += len(part.weights)
        if report is not None:
            report(n_done, len(used))
    return values


def part_shapley(space: RatedSpace, part: DevelopmentPart) -> Floats:
    """What some development dialogues contribute to the values, added one after the other."""
    values = np.zeros(len(space.ratings))
    for start, products in product_blocks(part.features, space.features, space.block_bytes):
        weights = part.weights[start : start + len(products)]
        if is_compiled():
            from dialometer.learned.cmade.sorted_rows import add_row_values  # noqa: PLC0415 (an extra)

            add_row_values(products, space.norms, weights, space.ratings, space.shares, values)
            continue
        for weight, product in zip(weights, products, strict=True):
            order = np.argsort(space.norms - 2 * product, kind="stable")
            # Each number occurs once in ``order``, so plain addition is safe.
            values[order] += weight * point_shapley(space.ratings[order], space.shares)
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
