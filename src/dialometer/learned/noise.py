"""Noise that is known: ratings are changed on purpose, and detectors are asked which.

The changes are put on top of whatever noise the ratings have, so that no detector can be perfect; a feature that carries the
true rating shows how far one can come (``positive``), the observed rating alone how far one comes without reading a dialogue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.neighbours import Features, Numbers, Report, standardise
from dialometer.learned.pairs import FEWEST_PAIRS, MOST_PAIRS, SUBSTITUTE_GAP, numbered_gap_pairs
from dialometer.learned.rated import Rated
from dialometer.learned.rating_values import fold_numbers
from dialometer.learned.shapley import knn_shapley
from dialometer.learned.smooth import DEFAULT_K, knn_smooth
from dialometer.learned.splits import groups_of

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
class Found:
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
    found = {
        SHAPLEY: -knn_shapley(features, observed, development[0], development[1], k),
        DISTANCE: np.abs(observed - knn_smooth(features, observed, k)),
        LOSS: out_of_fold_loss(features, observed, folds),
    }
    found[TOGETHER] = np.mean([rankdata(score) for score in found.values()], axis=0)
    return found


def noise_experiment(
    rated: Sequence[Rated],
    features: Features,
    *,
    kinds: Sequence[Kind] = KINDS,
    share: float = 0.2,
    n_repetitions: int = 10,
    k: int = DEFAULT_K,
    seed: int = 0,
    report: Report | None = None,
) -> list[Found]:
    """Every detector on every kind of noise, repeatedly.

    Each time one fold of the dialogues keeps its ratings: pairs of it that lie far apart stand for the experts' pairs by which
    ratings are valued. The other ratings are changed and looked for.
    """
    ratings = np.array([one.rating for one in rated], dtype=np.float64)
    groups = groups_of(rated)
    points = standardise(features)
    found: list[Found] = []
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
        for kind in kinds:
            observed, is_flipped = flip(ratings[rest], share, kind, rng)
            scores = suspicions(points[rest], observed, development, folds[rest], k)
            scores |= controls(ratings[rest], observed, is_flipped, k, rng)
            found += [
                Found(kind, name, auc(score, is_flipped), auc_within(score, is_flipped, observed))
                for name, score in scores.items()
            ]
        if report is not None:
            report(repetition + 1, n_repetitions)
    return found


def controls(
    true: Floats, observed: Floats, is_flipped: NDArray[np.bool_], k: int, rng: np.random.Generator
) -> Mapping[str, Floats]:
    """The observed rating alone, told how often each was changed; and the distance where a feature knows the true rating."""
    _, place = np.unique(observed, return_inverse=True)
    share = np.bincount(place, weights=is_flipped) / np.bincount(place)
    quality = (true + TRUE_QUALITY_DEVIATION * rng.normal(size=len(true)))[:, None]
    smoothed = knn_smooth(quality.astype(np.float32), observed, k)
    return {OBSERVED: share[place], POSITIVE: np.abs(observed - smoothed)}
