"""What removing ratings does to a nearest-neighbour evaluator (Liang et al. 2020, figure 2): least valuable first, or at random.

The paper removes one rating after the other; here steps of a share are taken, which draws the same curve. One sort of the
training dialogues per test dialogue serves all steps and all K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.measures import accuracy
from dialometer.learned.neighbours import Features, Numbers, Report, distance_blocks, standardise
from dialometer.learned.pairs import FEWEST_PAIRS, MOST_PAIRS, SUBSTITUTE_GAP, NumberedPairs, numbered_gap_pairs
from dialometer.learned.rated import Rated
from dialometer.learned.shapley import knn_shapley
from dialometer.learned.splits import Split

Floats = NDArray[np.float64]
KS = (1, 5, 25, 50, 100)
SHARES = tuple(round(0.05 * step, 2) for step in range(19))
LOWEST, RANDOM = "lowest value first", "at random"
_LENGTH_DIFFERENCE = 2


@dataclass(frozen=True, slots=True)
class Step:
    """Accuracy of one way of removing on one split, with a share of the ratings removed."""

    split: str
    way: str
    k: int
    share: float
    accuracy: float


def neighbour_order(queries: Features, points: Features) -> Numbers:
    """Numbers of the points in order of distance, a row for each query."""
    return np.concatenate([np.argsort(block, axis=1, kind="stable") for _, block in distance_blocks(queries, points)])


def knn_ratings(order: Numbers, ratings: Floats, is_kept: NDArray[np.bool_], ks: Sequence[int]) -> dict[int, Floats]:
    """Mean rating of each query's K nearest points that are kept, for every K that there are enough for."""
    kept = is_kept[order]
    usable = [k for k in ks if k <= int(is_kept.sum())]
    if not usable:
        return {}
    most = max(usable)
    # Places of the kept points in each row, nearest first: a stable sort of "is not kept" would do the same, more slowly.
    rank = np.cumsum(kept, axis=1)
    wanted = kept & (rank <= most)
    near = ratings[order[wanted].reshape(len(order), most)]
    sums = np.cumsum(near, axis=1)
    return {k: sums[:, k - 1] / k for k in usable}


def removal_steps(
    rated: Sequence[Rated],
    features: Features,
    splits: Sequence[Split],
    *,
    ks: Sequence[int] = KS,
    shares: Sequence[float] = SHARES,
    k_shapley: int = 50,
    n_random: int = 5,
    is_length_matched: bool = True,
    seed: int = 0,
    report: Report | None = None,
) -> list[Step]:
    """The curve on every split: ratings valued by the pairs of its development part, tested on the pairs of its test part."""
    place = {one.id: number for number, one in enumerate(rated)}
    ratings = np.array([one.rating for one in rated], dtype=np.float64)
    steps: list[Step] = []
    for number, split in enumerate(splits):
        train, development, test = (
            np.array([place[name] for name in part], dtype=np.int64)
            for part in (split.train, split.development, split.test)
        )
        points = standardise(features, features[train])
        valuing = _pairs(rated, development, None, seed)
        testing = _pairs(rated, test, _LENGTH_DIFFERENCE if is_length_matched else None, seed)
        numbers = np.column_stack([valuing.better, valuing.worse])
        values = knn_shapley(points[train], ratings[train], points[development], numbers, k_shapley)
        order = neighbour_order(points[test], points[train])
        rng = np.random.default_rng([seed, number])
        ways = {LOWEST: [np.argsort(values, kind="stable")]}
        ways[RANDOM] = [rng.permutation(len(train)) for _ in range(n_random)]
        for way, sequences in ways.items():
            steps += _of_way(split.name, way, sequences, order, ratings[train], testing, ks, shares)
        if report is not None:
            report(number + 1, len(splits))
    return steps


def _of_way(
    split: str,
    way: str,
    sequences: Sequence[Numbers],
    order: Numbers,
    ratings: Floats,
    pairs: NumberedPairs,
    ks: Sequence[int],
    shares: Sequence[float],
) -> list[Step]:
    steps = []
    for share in shares:
        found: dict[int, list[float]] = {}
        for sequence in sequences:
            is_kept = np.ones(len(ratings), dtype=np.bool_)
            is_kept[sequence[: round(share * len(ratings))]] = False
            for k, predicted in knn_ratings(order, ratings, is_kept, ks).items():
                found.setdefault(k, []).append(accuracy(predicted, pairs))
        steps += [Step(split, way, k, share, float(np.mean(values))) for k, values in found.items()]
    return steps


def _pairs(rated: Sequence[Rated], rows: Numbers, max_difference: int | None, seed: int) -> NumberedPairs:
    pairs = numbered_gap_pairs(
        [rated[row] for row in rows],
        SUBSTITUTE_GAP,
        max_difference,
        max_pairs=MOST_PAIRS,
        rng=np.random.default_rng(seed),
    )
    if len(pairs) < FEWEST_PAIRS:
        raise NotEnoughData(
            f"a part of a split has {len(pairs)} pairs whose ratings lie {SUBSTITUTE_GAP:g} points apart",
            remedy="give more dialogues, or fewer splits",
        )
    return pairs
