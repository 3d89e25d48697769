"""Noise that is known: ratings are changed on purpose, and detectors are asked which.

The changes are put on top of whatever noise the ratings have, so that no detector can be perfect; a feature that carries the
true rating shows how far one can come (``positive``), the observed rating alone how far one comes without reading a dialogue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.cmade.neighbours import (
    DEFAULT_K,
    Features,
    Numbers,
    Report,
    distance_blocks,
    knn_smooth,
    standardise,
)
from dialometer.learned.cmade.shapley import knn_shapley
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    SUBSTITUTE_GAP,
    DialoguePair,
    NumberedPairs,
    numbered_gap_pairs,
    to_numbers,
)
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import DataSplit, groups_of
from dialometer.learned.experiments.rating_values import fold_numbers

Floats = NDArray[np.float64]
Kind = Literal["uniform", "J-shaped"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SHAPLEY, DISTANCE, LOSS, TOGETHER = "Shapley value", "distance to the smoothed rating", "loss", "combination"
OBSERVED, POSITIVE = "observed rating alone", "distance, with the true quality as a feature"
DETECTORS = (SHAPLEY, DISTANCE, LOSS, TOGETHER, OBSERVED, POSITIVE)
J_LOWEST, J_HIGHEST = 0.2, 0.5
TRUE_QUALITY_DEVIATION = 0.4
"""How far the feature of the positive control strays from the true rating, in points."""


@dataclass(frozen=True)
class Detection:
    """How well one detector found the changed ratings in one repetition."""

    kind: Kind
    detector: str
    overall: float
    within: float
    """Mean over the observed ratings, by how many pairs of a changed and an unchanged rating each has."""


def check_share(share: float) -> None:
    """Refuses a share that is none, before any work is done."""
    if not 0 < share < 1:
        raise DialometerError(f"a share of {share:g} cannot be changed", remedy="take one between 0 and 1")


def flip(ratings: Floats, share: float, kind: Kind, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """Ratings of which a share was changed to another: any other alike, or drawn from a J.

    The J has half of its mass at the highest rating, as the paper found, and a fifth at the lowest.
    """
    check_share(share)
    levels, place = np.unique(ratings, return_inverse=True)
    if len(levels) < 2:
        raise NotEnoughData("all ratings are equal, so that none can be changed", remedy="give different ratings")
    is_flipped = np.zeros(len(ratings), dtype=np.bool_)
    is_flipped[rng.choice(len(ratings), max(1, round(share * len(ratings))), replace=False)] = True
    chances = np.ones(len(levels))
    if kind == "J-shaped":
        chances *= (1 - J_HIGHEST - J_LOWEST) / max(1, len(levels) - 2)
        chances[0], chances[-1] = J_LOWEST, J_HIGHEST
    table = np.tile(chances, (len(levels), 1))
    np.fill_diagonal(table, 0.0)
    cumulated = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    drawn = (rng.random(len(ratings))[:, None] > cumulated[place]).sum(axis=1)
    return np.where(is_flipped, levels[np.minimum(drawn, len(levels) - 1)], ratings), is_flipped


def auc(scores: Floats, is_positive: NDArray[np.bool_]) -> float:
    """Chance that a changed rating is more suspicious than an unchanged one; ``sklearn.metrics.roc_auc_score``."""
    n_positive = int(is_positive.sum())
    n_negative = len(is_positive) - n_positive
    if not n_positive or not n_negative:
        return math.nan
    ranks = rankdata(scores)
    return float((ranks[is_positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def auc_within(scores: Floats, is_positive: NDArray[np.bool_], observed: Floats) -> float:
    """The same among dialogues of one observed rating, so that the rating itself can give nothing away."""
    total = weights = 0.0
    for level in np.unique(observed):
        own = observed == level
        n = int(is_positive[own].sum()) * int((~is_positive[own]).sum())
        if n:
            total += n * auc(scores[own], is_positive[own])
            weights += n
    return total / weights if weights else math.nan


def out_of_fold_loss(features: Features, observed: Floats, folds: Numbers) -> Floats:
    """Minus the logarithm of the chance that a model of the other folds gives to the observed rating.

    Linear discriminants with Ledoit and Wolf's shrinkage: they need no iteration and no setting.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: PLC0415 (an extra)

    loss = np.empty(len(observed))
    for fold in np.unique(folds):
        inside = folds == fold
        levels, place = np.unique(observed[~inside], return_inverse=True)
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(features[~inside], place)
        chances = model.predict_proba(features[inside])
        column = np.searchsorted(levels, observed[inside])
        column = np.minimum(column, len(levels) - 1)
        known = levels[column] == observed[inside]
        chance = np.where(known, chances[np.arange(len(column)), column], 0.0)
        loss[inside] = -np.log(np.maximum(chance, 1e-12))
    return loss


def suspicions(
    features: Features,
    observed: Floats,
    development: tuple[Features, Numbers],
    folds: Numbers,
    k: int = DEFAULT_K,
) -> dict[str, Floats]:
    """How suspicious every rating looks to each detector; higher is more."""
    scores = {
        SHAPLEY: -knn_shapley(features, observed, development[0], development[1], k),
        DISTANCE: np.abs(observed - knn_smooth(features, observed, k)),
        LOSS: out_of_fold_loss(features, observed, folds),
    }
    scores[TOGETHER] = np.mean([rankdata(score) for score in scores.values()], axis=0)
    return scores


def noise_experiment(
    rated: Sequence[RatedDialogue],
    features: Features,
    *,
    share: float = 0.2,
    n_repetitions: int = 10,
    k: int = DEFAULT_K,
    seed: int = 0,
    report: Report | None = None,
) -> list[Detection]:
    """Every detector on every kind of noise, repeatedly.

    Each time one fold of the dialogues keeps its ratings: pairs of it that lie far apart stand for the experts' pairs by which
    ratings are valued. The other ratings are changed and looked for.
    """
    ratings = np.array([rating.rating for rating in rated], dtype=np.float64)
    groups = groups_of(rated)
    points = standardise(features)
    detections: list[Detection] = []
    for repetition in range(n_repetitions):
        rng = np.random.default_rng([seed, repetition])
        folds = fold_numbers(groups, 5, rng)
        held, rest = np.flatnonzero(folds == 0), np.flatnonzero(folds != 0)
        if len(rest) <= k:
            raise NotEnoughData(f"{len(rest)} dialogues are too few for {k} neighbours", remedy="use a smaller K")
        pairs = numbered_gap_pairs([rated[row] for row in held.tolist()], SUBSTITUTE_GAP, max_pairs=MOST_PAIRS, rng=rng)
        if len(pairs) < FEWEST_PAIRS:
            raise NotEnoughData("too few ratings lie 3 points apart", remedy="give more dialogues")
        development = (points[held], np.column_stack([pairs.better, pairs.worse]))
        for kind in KINDS:
            observed, is_flipped = flip(ratings[rest], share, kind, rng)
            scores = suspicions(points[rest], observed, development, folds[rest], k)
            scores |= controls(ratings[rest], observed, is_flipped, k, rng)
            detections += [
                Detection(kind, name, auc(score, is_flipped), auc_within(score, is_flipped, observed))
                for name, score in scores.items()
            ]
        if report is not None:
            report(repetition + 1, n_repetitions)
    return detections


def controls(
    true: Floats, observed: Floats, is_flipped: NDArray[np.bool_], k: int, rng: np.random.Generator
) -> Mapping[str, Floats]:
    """The observed rating alone, told how often each was changed; and the distance where a feature knows the true rating."""
    _, place = np.unique(observed, return_inverse=True)
    share = np.bincount(place, weights=is_flipped) / np.bincount(place)
    quality = (true + TRUE_QUALITY_DEVIATION * rng.normal(size=len(true)))[:, None]
    smoothed = knn_smooth(quality.astype(np.float32), observed, k)
    return {OBSERVED: share[place], POSITIVE: np.abs(observed - smoothed)}


# What removing ratings does to a nearest-neighbour evaluator (Liang et al. 2020, figure 2): least valuable first, or at random.
#
# The paper removes one rating after the other; here steps of a share are taken, which draws the same curve. One sort of the
# training dialogues per test dialogue serves all steps and all K.


KS = (1, 5, 25, 50, 100)
SHARES = tuple(round(0.05 * step, 2) for step in range(19))
LOWEST, RANDOM, HIGHEST = "lowest value first", "at random", "highest value first"
RETRAINED = 0
"""Stands for K where a linear model is trained anew on the ratings that are left."""
RIDGES = (1.0, 10.0, 100.0, 1000.0)
_LENGTH_DIFFERENCE = 2


@dataclass(frozen=True, slots=True)
class RemovalStep:
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


def ridge_scores(points: Features, ratings: Floats, queries: Features, ridge: float) -> Floats:
    """Ratings that a linear model predicts; ``sklearn.linear_model.Ridge(alpha=ridge)``."""
    centre, mean = points.mean(axis=0), float(ratings.mean())
    x = (points - centre).astype(np.float64)
    if x.shape[0] < x.shape[1]:  # fewer dialogues than features: the dual has the smaller matrix
        weights = x.T @ np.linalg.solve(x @ x.T + ridge * np.eye(len(x)), ratings - mean)
    else:
        weights = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ (ratings - mean))
    return np.asarray((queries - centre) @ weights + mean)


def removal_steps(
    rated: Sequence[RatedDialogue],
    features: Features | Callable[[DataSplit], Features],
    splits: Sequence[DataSplit],
    *,
    experts: Sequence[DialoguePair] = (),
    ks: Sequence[int] = KS,
    shares: Sequence[float] = SHARES,
    k_shapley: int = 50,
    n_random: int = 5,
    is_length_matched: bool = True,
    seed: int = 0,
    report: Report | None = None,
) -> list[RemovalStep]:
    """The curve on every split: ratings valued by the pairs of its development part, tested on the pairs of its test part.

    Pairs are the experts' where they are given (then those of the stopping part value too, as nothing is stopped by them), else
    such as lie far apart in their ratings. ``features`` may depend on the split, where they were trained on it.
    """
    place = {row.id: number for number, row in enumerate(rated)}
    ratings = np.array([row.rating for row in rated], dtype=np.float64)
    steps: list[RemovalStep] = []
    for number, split in enumerate(splits):
        valued_by = (*split.development, *split.stopping) if experts else split.development
        train, development, test = (
            np.array([place[name] for name in part], dtype=np.int64) for part in (split.train, valued_by, split.test)
        )
        described = features(split) if callable(features) else features
        points = standardise(described, described[train])
        if experts:
            valuing, testing = (_expert_pairs(rated, rows, experts) for rows in (development, test))
        else:
            valuing = _pairs(rated, development, None, seed)
            testing = _pairs(rated, test, _LENGTH_DIFFERENCE if is_length_matched else None, seed)
        numbers = np.column_stack([valuing.better, valuing.worse])
        values = knn_shapley(points[train], ratings[train], points[development], numbers, k_shapley)
        order = neighbour_order(points[test], points[train])
        rng = np.random.default_rng([seed, number])
        ways = {LOWEST: [np.argsort(values, kind="stable")], HIGHEST: [np.argsort(-values, kind="stable")]}
        ways[RANDOM] = [rng.permutation(len(train)) for _ in range(n_random)]
        ridge = max(
            RIDGES,
            key=lambda strength: accuracy(
                ridge_scores(points[train], ratings[train], points[development], strength), valuing
            ),
        )
        for way, sequences in ways.items():
            steps += _of_way(split.name, way, sequences, order, ratings[train], testing, ks, shares)
            steps += _retrained(split.name, way, sequences, points[train], ratings[train], points[test], testing, ridge)
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
) -> list[RemovalStep]:
    steps = []
    for share in shares:
        accuracies: dict[int, list[float]] = {}
        for sequence in sequences:
            is_kept = np.ones(len(ratings), dtype=np.bool_)
            is_kept[sequence[: round(share * len(ratings))]] = False
            for k, predicted in knn_ratings(order, ratings, is_kept, ks).items():
                accuracies.setdefault(k, []).append(accuracy(predicted, pairs))
        steps += [RemovalStep(split, way, k, share, float(np.mean(values))) for k, values in accuracies.items()]
    return steps


def _retrained(
    split: str,
    way: str,
    sequences: Sequence[Numbers],
    points: Features,
    ratings: Floats,
    queries: Features,
    pairs: NumberedPairs,
    ridge: float,
) -> list[RemovalStep]:
    """The same with a linear model trained on what is left, at every tenth."""
    steps = []
    for share in SHARES[::2]:
        right = []
        for sequence in sequences:
            kept = np.sort(sequence[round(share * len(ratings)) :])
            right.append(accuracy(ridge_scores(points[kept], ratings[kept], queries, ridge), pairs))
        steps.append(RemovalStep(split, way, RETRAINED, share, float(np.mean(right))))
    return steps


def _expert_pairs(rated: Sequence[RatedDialogue], rows: Numbers, experts: Sequence[DialoguePair]) -> NumberedPairs:
    ids = [rated[row].id for row in rows]
    inside = set(ids)
    return to_numbers([pair for pair in experts if pair.first in inside and pair.second in inside], ids)


def _pairs(rated: Sequence[RatedDialogue], rows: Numbers, max_difference: int | None, seed: int) -> NumberedPairs:
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
