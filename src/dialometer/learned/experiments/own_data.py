"""What a trained evaluator is worth on dialogues that are not its own: measured on ratings of them, before anything is promised.

Accuracy stands beside what the evaluator itself expects (the mean probability that it gives to its choices), beside the rule
that the longer dialogue is the better one, and beside its accuracy on the half of the pairs that it is surest of: where the
probabilities are calibrated, abstaining on the others is worth that much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.data.calibration import reliability, sigmoid
from dialometer.learned.data.evaluator import DialogueScores, Evaluator
from dialometer.learned.data.measures import accuracy_difference, accuracy_estimate, mean_over_pairs
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue, check_rated
from dialometer.learned.data.splits import groups_of
from dialometer.model.estimate import Estimate
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float64]
MAX_PAIRS = 100_000
MIN_RATED = 10
N_DRAWN = 20_000
"""Pairs of dialogues without ratings over which the expected accuracy is taken."""


@dataclass(frozen=True)
class OwnDataCheck:
    """How often the evaluator is right on pairs of different ratings, with intervals over users (or blocks of neighbours)."""

    n_rated: int
    n_pairs: int
    measured: Estimate
    expected: Estimate
    """By the evaluator's own probabilities."""
    longer: Estimate
    """The longer dialogue taken for the better one."""
    lead: Estimate
    """Over the longer dialogue, on the same pairs."""
    surest: Estimate
    """On the half of the pairs that it is surest of."""
    calibration_error: float
    share_unlike: float
    """Of dialogues that are unlike those it was trained on."""

    @property
    def is_useful(self) -> bool:
        """Whether it is significantly better than taking the longer dialogue, and than chance."""
        return bool(self.lead.low > 0 and self.measured.low > 0.5)


def check_on_own_data(
    evaluator: Evaluator, rated: Sequence[RatedDialogue], *, seed: int = 0, work: Work = QUIET
) -> OwnDataCheck:
    """Scores rated dialogues that the evaluator was not trained on and compares the scores with the ratings."""
    check_rated(rated, at_least=MIN_RATED)
    scores = evaluator.score([row.dialogue for row in rated], lambda n, total: work.report("Scoring", n, total))
    pairs = numbered_gap_pairs(rated, 0.0, max_pairs=MAX_PAIRS, rng=np.random.default_rng(seed))
    gaps = scores.values[pairs.better] - scores.values[pairs.worse]
    lengths = np.array([row.n_utterances for row in rated], dtype=np.float64)
    groups = groups_of(rated)
    is_sure = np.abs(gaps) >= np.median(np.abs(gaps))
    surest = NumberedPairs(pairs.better[is_sure], pairs.worse[is_sure])
    return OwnDataCheck(
        len(rated),
        len(pairs),
        accuracy_estimate(scores.values, pairs, groups=groups, seed=seed),
        _expected(scores.values, pairs, groups, seed),
        accuracy_estimate(lengths, pairs, groups=groups, seed=seed),
        accuracy_difference([scores.values], [lengths], [pairs], groups=groups, seed=seed),
        accuracy_estimate(scores.values, surest, groups=groups, seed=seed),
        reliability(gaps, 1.0).calibration_error,
        float(evaluator.is_unlike_training(scores).mean()),
    )


def expected_accuracy(scores: DialogueScores, *, seed: int = 0) -> Estimate:
    """How often the evaluator expects to be right on pairs of these dialogues; no ratings are needed."""
    n = len(scores.values)
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=min(N_DRAWN, n * (n - 1) // 2))
    second = (first + rng.integers(1, max(2, n), size=len(first))) % n
    return _expected(scores.values, NumberedPairs(first, second), None, seed)


def _expected(values: Floats, pairs: NumberedPairs, groups: Sequence[str] | None, seed: int) -> Estimate:
    chances = sigmoid(np.abs(values[pairs.better] - values[pairs.worse]))
    method = "mean probability given to the choice"
    return mean_over_pairs(
        [chances], [pairs], [len(values)], groups, n_resamples=1000, seed=seed, label="", method=method
    )
