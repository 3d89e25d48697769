"""The rows of the ablation: the paper's eleven, the two controls, and baselines that need no training of an encoder.

Rows share what they can: a model after stage 1, or after stages 1 and 2, is trained once for each split and seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.cmade.encoder import load_encoder
from dialometer.learned.cmade.fit import FitOptions
from dialometer.learned.cmade.materials import Materials, TrainingData
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.stages import (
    Drop,
    Outcome,
    StageOptions,
    StageRun,
    check_neighbours,
    on_ratings,
    stage_1,
    stage_2,
    stage_3,
)
from dialometer.learned.cmade.training import AllPairs, Classes, Interleaved, Lesson, Pairs, Regression
from dialometer.learned.experiments.plain_rows import AblationRow
from dialometer.model.dialogue import Dialogue

Floats = NDArray[np.float64]
N_DEV_PAIRS = 200
"""Development pairs that the row with them is trained on beside the ratings, as many as in the paper."""


TRAINED = (
    AblationRow("classification", "classification, expected value", 0.581),
    AblationRow("regression", "regression", 0.640),
    AblationRow("pairwise", "pairwise", 0.730),
    AblationRow("pairwise-dev", "pairwise + development pairs", 0.749),
    AblationRow("2", "stage 2", 0.755),
    AblationRow("2-3", "stages 2 + 3", 0.764),
    AblationRow("3", "stage 3", 0.714),
    AblationRow("1", "stage 1", 0.620),
    AblationRow("1-3", "stages 1 + 3", 0.788),
    AblationRow("1-2", "stages 1 + 2", 0.837),
    AblationRow("1-2-3", "stages 1 + 2 + 3 (CMADE)", 0.892),
    AblationRow("1-2-nothing", "stages 1 + 2, then nothing dropped"),
    AblationRow("1-2-random", "stages 1 + 2, then as many dropped at random"),
    AblationRow("1-2-lowest", "stages 1 + 2, then the lowest tenth dropped"),
)
_DROPS: dict[str, Drop] = {"3": "negative", "nothing": "nothing", "random": "random", "lowest": "lowest"}


@dataclass(frozen=True)
class RowScores:
    """What one row made of the test dialogues of one split; ``dropped`` is the share of ratings stage 3 left out."""

    scores: Floats
    dropped: float | None = None


class TrainedRows:
    """The rows of one split and seed, computed when they are asked for."""

    def __init__(self, data: TrainingData, options: FitOptions, setting: StageRun, device: str, seed: int) -> None:
        training = options.stages.training.model_copy(update={"seed": seed})
        self.options = options.stages.model_copy(update={"training": training})
        check_neighbours(len(data.train), self.options)
        self.make: Callable[[], Any] = lambda: load_encoder(
            options.encoder, device=device, window=options.window, pooling=options.pooling
        )
        self.setting, self.seed = setting, seed
        encoder = self.make()
        self.materials = Materials.of(data, encoder)
        self.model = RankNet(encoder, seed=seed)
        self._states: dict[str, tuple[dict[str, Any], Outcome]] = {"": (_copy(self.model), Outcome())}

    def score(self, row: AblationRow, dialogues: Sequence[Dialogue]) -> RowScores:
        """Scores of test dialogues by one row's model."""
        if row.name == "classification":
            model = RankNet(self.make(), levels=tuple(sorted(set(self.materials.ratings))), seed=self.seed)
            self._train(model, row)
            return RowScores(model.scores(model.encoder.tokens(dialogues)))
        if row.name in ("regression", "pairwise", "pairwise-dev"):
            self._restore("")
            self._train(self.model, row)
            return RowScores(self._scores(dialogues))
        outcome = self._reach(row.name)
        dropped = None if outcome.is_kept is None else float(1 - outcome.is_kept.mean())
        return RowScores(self._scores(dialogues), dropped)

    def _scores(self, dialogues: Sequence[Dialogue]) -> Floats:
        return self.model.scores(self.model.encoder.tokens(dialogues))

    def _train(self, model: RankNet, row: AblationRow) -> None:
        if row.name == "pairwise":
            on_ratings(model, self.materials, self.options, self.setting, row.name, None)
            return
        training = self.options.training.model_copy(update={"n_epochs": self.options.n_epochs[2]})
        self.setting.run(row.name, model, self._lesson(row, training.group_size), training, self.materials.stopping)

    def _lesson(self, row: AblationRow, group_size: int) -> Lesson:
        tokens, ratings = self.materials.tokens, self.materials.ratings
        if row.name == "classification":
            return Classes(tokens, ratings, tuple(sorted(set(ratings))), group_size)
        if row.name == "regression":
            return Regression(tokens, ratings, group_size)
        development = self.materials.development
        pairs = np.random.default_rng([self.seed, 4]).permutation(development.pairs)[:N_DEV_PAIRS]
        return Interleaved(AllPairs(tokens, ratings, group_size), Pairs(development.tokens, pairs, group_size))

    def _reach(self, name: str) -> Outcome:
        """Brings the model to the end of a chain of stages, from the longest part of it that was reached before."""
        if name in self._states:
            return self._restore(name)
        before, _, last = name.rpartition("-")
        known = self._reach(before)
        outcome = Outcome(dict(known.histories), known.smoothed, known.values, known.is_kept)
        if last == "1":
            outcome.histories["stage-1"] = stage_1(self.model, self.materials, self.options, self.setting)
        elif last == "2":
            stage_2(self.model, self.materials, self.options, self.setting, outcome, "stage-2")
        else:
            options: StageOptions = self.options.model_copy(update={"drop": _DROPS[last]})
            stage_3(self.model, self.materials, options, self.setting, outcome, "stage-3")
        if last in ("1", "2"):
            self._states[name] = (_copy(self.model), outcome)
        return outcome

    def _restore(self, name: str) -> Outcome:
        state, outcome = self._states[name]
        self.model.load_state_dict(state)
        return outcome


def _copy(model: RankNet) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
