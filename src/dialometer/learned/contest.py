"""An evaluator beside what it has to beat, on conversations of users that neither has learned from.

Every fold of users (or of blocks of neighbours) is held out once; whoever scores it has learned from all the others and chosen
its settings on them alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.behaviour import behaviour
from dialometer.learned.best import MIN_DIALOGUES, fit_best
from dialometer.learned.best_kernel import Aspect
from dialometer.learned.features import FeatureTable, describe
from dialometer.learned.measures import accuracy_difference, accuracy_estimate
from dialometer.learned.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.plain_rows import plain_rows
from dialometer.learned.rated import Rated, check_rated
from dialometer.learned.row import Row
from dialometer.learned.splits import grouped_splits, groups_of
from dialometer.model.estimate import Estimate
from dialometer.retrieval.work import QUIET, Work

Floats = NDArray[np.float64]
EVALUATOR = "evaluator"
N_FOLDS = 5
MAX_LENGTH_DIFFERENCE = 2
_LABELS = {
    EVALUATOR: "the evaluator",
    "tfidf-ridge": "words alone (TF-IDF + ridge)",
    "approval": "praise minus complaints",
    "utterances": "the longer one",
}


@dataclass(frozen=True)
class Contest:
    """Scores of all contestants on every held-out part, the evaluator first."""

    rows: tuple[Row, ...]
    tests: tuple[tuple[Rated, ...], ...]
    scores: Mapping[str, tuple[Floats, ...]]
    """For each row, one array for each held-out part."""

    def pairs(self, choose: Callable[[Sequence[Rated]], NumberedPairs]) -> list[NumberedPairs]:
        """Pairs within each held-out part."""
        return [choose(test) for test in self.tests]

    def accuracy(self, row: Row, pairs: Sequence[NumberedPairs], *, seed: int = 0) -> Estimate:
        """Share of pairs ordered right, with an interval over users (or blocks of neighbours)."""
        scores = self.scores[row.name]
        return accuracy_estimate(list(scores), pairs, groups=self._groups, seed=seed, label=row.label)

    def lead(self, other: Row, pairs: Sequence[NumberedPairs], *, seed: int = 0) -> Estimate:
        """By how much the evaluator orders more of the same pairs right than another row, with an interval over users."""
        own, theirs = self.scores[EVALUATOR], self.scores[other.name]
        return accuracy_difference(own, theirs, pairs, groups=self._groups, seed=seed, label=other.label)

    @cached_property
    def _groups(self) -> list[str]:
        """Nobody is in two held-out parts."""
        return [group for number, test in enumerate(self.tests) for group in _named(number, groups_of(test))]

    def chances(self) -> tuple[Floats, Floats]:
        """For every held-out pair of different ratings: the chance given to the better one's lead, and its score gap."""
        gaps = [
            scores[part.better] - scores[part.worse]
            for scores, part in zip(self.scores[EVALUATOR], self.pairs(any_gap), strict=True)
        ]
        joined = np.concatenate(gaps)
        return 1 / (1 + np.exp(-np.abs(joined))), joined


def far_apart(rated: Sequence[Rated]) -> NumberedPairs:
    """Pairs whose ratings lie three points or more apart: there, ratings are mostly to be believed."""
    return numbered_gap_pairs(rated, 3.0)


def of_one_length(rated: Sequence[Rated]) -> NumberedPairs:
    """The same among conversations of about the same length, so that length gives nothing away."""
    return numbered_gap_pairs(rated, 3.0, MAX_LENGTH_DIFFERENCE)


def any_gap(rated: Sequence[Rated]) -> NumberedPairs:
    """All pairs of different ratings, noise and all."""
    return numbered_gap_pairs(rated, 1.0)


def hold_contest(
    rated: Sequence[Rated], aspects: Sequence[Aspect], *, n_folds: int = N_FOLDS, seed: int = 0, work: Work = QUIET
) -> tuple[Contest, FeatureTable]:
    """Scores every conversation by everybody, held out; the features are given back, since computing them costs most."""
    check_rated(rated, at_least=math.ceil(MIN_DIALOGUES * n_folds / (n_folds - 1)))
    table = describe([one.dialogue for one in rated], work, has_meaning="meaning" in aspects)
    place = {one.id: number for number, one in enumerate(rated)}

    def evaluator(train: Sequence[Rated], test: Sequence[Rated]) -> Floats:
        own, other = (table.rows([place[one.id] for one in part]) for part in (train, test))
        return fit_best(train, seed=seed, aspects=aspects, table=own).evaluator.score_table(other).values

    contestants: dict[str, Callable[[Sequence[Rated], Sequence[Rated]], Floats]] = {EVALUATOR: evaluator}
    plain = {one.row.name: one.score for one in plain_rows(rated, work)}
    contestants["tfidf-ridge"] = plain["tfidf-ridge"]
    contestants |= {"approval": _approval, "utterances": plain["utterances"]}
    scores: dict[str, list[Floats]] = {name: [] for name in contestants}
    tests = []
    splits = grouped_splits(rated, n_folds, n_folds=n_folds, seed=seed)
    for number, split in enumerate(splits):
        held = set(split.test)
        train, test = [one for one in rated if one.id not in held], [one for one in rated if one.id in held]
        tests.append(tuple(test))
        for name, score in contestants.items():
            scores[name].append(score(train, test))
        work.report("Holding out", number + 1, len(splits))
    rows = tuple(Row(name, _LABELS[name]) for name in contestants)
    return Contest(rows, tuple(tests), {name: tuple(found) for name, found in scores.items()}), table


def _approval(_: Sequence[Rated], test: Sequence[Rated]) -> Floats:
    """A rule of thumb: how often users praise, less how often they complain."""
    found = [behaviour(one.dialogue) for one in test]
    return np.array([one["user_approval_turns"] - one["user_complaint_turns"] for one in found])


def _named(number: int, groups: Sequence[str]) -> list[str]:
    """Blocks of neighbours are counted anew in every part, so their names need the part's number."""
    return [f"{number} {group}" for group in groups]
