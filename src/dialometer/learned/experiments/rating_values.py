"""What every rating is worth: Shapley values from expert pairs, or cross-fitted from the ratings themselves.

Without expert pairs, dialogues of one fold whose ratings lie far apart judge the ratings of the other folds, fold by fold, so
that every rating is valued by dialogues of other users than its own. What all raters have in common counts as truth then; see
:mod:`dialometer.learned.cmade.materials` for the risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.cmade.neighbours import DEFAULT_K, Features, Numbers, Report, nearest
from dialometer.learned.cmade.shapley import knn_shapley
from dialometer.learned.data.pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    SUBSTITUTE_GAP,
    DialoguePair,
    numbered_gap_pairs,
    to_numbers,
)
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import groups_of
from dialometer.neural.engines import LOCAL, Engine

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Valued:
    """For every rated dialogue: the value of its rating, the mean rating of its neighbours, and who those are.

    ``values`` are nan for development dialogues of experts, which value others and not themselves.
    """

    values: Floats
    smoothed: Floats
    neighbours: Numbers
    is_expert: bool


def value_ratings(
    rated: Sequence[RatedDialogue],
    features: Features,
    pairs: Sequence[DialoguePair] = (),
    *,
    k: int = DEFAULT_K,
    n_folds: int = 5,
    seed: int = 0,
    engine: Engine = LOCAL,
    report: Report | None = None,
) -> Valued:
    """Values by ``pairs`` of experts where there are any, else cross-fitted."""
    ratings = np.array([one.rating for one in rated], dtype=np.float64)
    neighbours, _ = nearest(features, k)
    if pairs:
        values = _by_experts(rated, features, ratings, pairs, k, engine, report)
    else:
        groups = groups_of(rated)
        n_usable = max(2, min(n_folds, len(set(groups))))
        folds = fold_numbers(groups, n_usable, np.random.default_rng(seed))
        values = _cross_fitted(rated, features, ratings, folds, k, engine, report)
    return Valued(values, ratings[neighbours].mean(axis=1), neighbours, bool(pairs))


def fold_numbers(groups: Sequence[str], n_folds: int, rng: np.random.Generator) -> Numbers:
    """A fold for each dialogue; whole groups at a time, the largest first, each into the emptiest fold."""
    names, group, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if len(names) < n_folds:
        raise NotEnoughData(
            f"{len(names)} groups of dialogues (users, or blocks of neighbours) are too few for {n_folds} folds",
            remedy="give expert pairs, or dialogues of more users",
        )
    filled = np.zeros(n_folds)
    fold = np.empty(len(names), dtype=np.int64)
    shuffled = rng.permutation(len(names))
    for name in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold[name] = int(np.argmin(filled))
        filled[fold[name]] += sizes[name]
    return np.asarray(fold[group], dtype=np.int64)


def _cross_fitted(
    rated: Sequence[RatedDialogue],
    features: Features,
    ratings: Floats,
    folds: Numbers,
    k: int,
    engine: Engine,
    report: Report | None,
) -> Floats:
    values, n_times = np.zeros(len(rated)), np.zeros(len(rated))
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        pairs = numbered_gap_pairs(
            [rated[row] for row in inside.tolist()],
            SUBSTITUTE_GAP,
            max_pairs=MOST_PAIRS,
            rng=np.random.default_rng(fold),
        )
        if len(pairs) >= FEWEST_PAIRS:
            numbers = np.column_stack([pairs.better, pairs.worse])
            values[outside] += knn_shapley(
                features[outside], ratings[outside], features[inside], numbers, k, engine=engine
            )
            n_times[outside] += 1
        if report is not None:
            report(fold + 1, n_folds)
    if not n_times.all():
        raise NotEnoughData(
            f"too few pairs of ratings lie {SUBSTITUTE_GAP:g} points apart to value the others by",
            remedy="give expert pairs, or more dialogues",
        )
    return np.asarray(values / n_times)


def _by_experts(
    rated: Sequence[RatedDialogue],
    features: Features,
    ratings: Floats,
    pairs: Sequence[DialoguePair],
    k: int,
    engine: Engine,
    report: Report | None,
) -> Floats:
    numbered = to_numbers(pairs, [one.id for one in rated])
    named = np.unique(np.concatenate([numbered.better, numbered.worse]))
    others = np.setdiff1d(np.arange(len(rated)), named)
    place = np.searchsorted(named, np.column_stack([numbered.better, numbered.worse]))
    values = np.full(len(rated), np.nan)
    values[others] = knn_shapley(
        features[others], ratings[others], features[named], place, k, engine=engine, report=report
    )
    return values
