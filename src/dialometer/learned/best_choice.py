"""How the best recipe chooses its settings: the error on groups of dialogues that the model has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.best_kernel import Aspect, Likeness, Settings, effect_kernel, fit_describer, likeness
from dialometer.learned.features import FeatureTable
from dialometer.learned.gaussian_process import fit_process
from dialometer.learned.rated import Rated
from dialometer.learned.splits import groups_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N_FOLDS = 5
NEAR_WEIGHTS = (2.0, 4.0, 8.0)
SHARPNESSES = (1.0, 2.0, 4.0)
NOISES = (1.5, 3.0, 6.0)
EFFECTS = (0.0, 0.3, 1.0)
STRONG_EFFECTS = (3.0, 9.0)
"""Tried where users are known: people differ more in how they rate than blocks of neighbours do."""


class Problem:
    """Training ratings with their folds; the likeness of each fold is computed once and weighed by every setting."""

    def __init__(
        self,
        rated: Sequence[Rated],
        table: FeatureTable,
        aspects: Sequence[Aspect],
        weights: Floats,
        rng: np.random.Generator,
    ) -> None:
        self.ratings = np.array([one.rating for one in rated], dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        if not (self.weights > 0).all():
            raise NotEnoughData("a rating's weight must be above 0", remedy="leave ratings that should not count out")
        self.groups = groups_of(rated)
        # Of an item that several raters judged, the group is the item; what is explained away is the rater.
        self.raters = [
            group if one.user is None else f"user {one.user}" for one, group in zip(rated, self.groups, strict=True)
        ]
        self.has_users = any(one.user is not None for one in rated)
        self.effects = effect_kernel(self.raters)
        fold = folds_of(self.groups, rng)
        self.folds: list[tuple[Ints, Ints, Likeness, Likeness]] = []
        for number in np.unique(fold):
            inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            describer = fit_describer(table.rows(inside), aspects)
            own, other = describer(table.rows(inside)), describer(table.rows(outside))
            self.folds.append((inside, outside, likeness(own, own), likeness(other, own)))

    def held_out(self, settings: Settings) -> Floats:
        """The rating expected of each dialogue by a model that has not seen its group."""
        expected = np.empty(len(self.ratings))
        for inside, outside, own, other in self.folds:
            posterior = fit_process(
                own.kernel(settings),
                self.ratings[inside],
                settings.noise / self.weights[inside],
                settings.effect * self.effects[np.ix_(inside, inside)],
            )
            expected[outside] = posterior.predict(other.kernel(settings))
        return expected


def folds_of(groups: Sequence[str], rng: np.random.Generator) -> Ints:
    """A fold for each dialogue, groups kept together; single dialogues where there are too few groups."""
    names = sorted(set(groups))
    if len(names) < 2 * N_FOLDS:
        return np.asarray(rng.permutation(len(groups)) % N_FOLDS, dtype=np.int64)
    fold = dict(zip(names, rng.permutation(len(names)) % N_FOLDS, strict=True))
    return np.array([fold[group] for group in groups], dtype=np.int64)


def choose_settings(problem: Problem) -> tuple[Settings, Floats]:
    """The settings with the smallest squared error on held-out groups, one after the other, and what they predict."""
    best, expected = Settings(), problem.held_out(Settings())
    least = squared_error(problem, expected)
    has_near = problem.folds[0][2].distances is not None
    rounds: list[list[dict[str, float]]] = [
        [{"sharpness": value} for value in SHARPNESSES] if has_near else [],
        [{"near_weight": value} for value in NEAR_WEIGHTS] if has_near else [],
        [{"noise": value} for value in NOISES],
        [{"effect": value} for value in (*EFFECTS, *(STRONG_EFFECTS if problem.has_users else ()))],
    ]
    for changes in rounds:
        start = best
        for change in changes:
            tried = replace(start, **change)
            if tried == best:
                continue
            found = problem.held_out(tried)
            error = squared_error(problem, found)
            if error < least:
                best, expected, least = tried, found, error
    return best, expected


def squared_error(problem: Problem, expected: Floats) -> float:
    """Mean squared error of expected ratings, each counted by its weight."""
    return float(np.average((problem.ratings - expected) ** 2, weights=problem.weights))
