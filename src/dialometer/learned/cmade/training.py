"""Training a RankNet: what it is shown (lessons of groups of dialogues), and how its steps are computed.

The loop itself is :mod:`dialometer.neural.training`. Every random choice of a step comes from the seed and the number of the
step, never from what was drawn before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dialometer.learned.cmade.encoder import moved
from dialometer.learned.cmade.ranknet import Loss, RankNet, backward, pairwise_loss
from dialometer.learned.cmade.tokens import Tokens
from dialometer.model.part import Part
from dialometer.neural.device import Precision, training_precision
from dialometer.neural.processes import ALONE, Processes
from dialometer.neural.training import (
    KEEP_EVERY_S,
    WARM_UP,
    Checkpoint,
    History,
    TrainingTask,
    linear_decay,
    run_training,
)
from dialometer.neural.work import Report, silent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Dialogues of one step, by their place in the lesson, and the loss of their outputs in that order."""

    rows: Ints
    loss: Loss


class Lesson(Protocol):
    """Dialogues and, for each epoch, groups of them; every epoch has equally many."""

    @property
    def tokens(self) -> Sequence[Tokens]: ...

    def groups(self, rng: np.random.Generator) -> list[Group]:
        """The steps of one epoch."""


@dataclass(frozen=True)
class AllPairs:
    """Every pair of differently rated dialogues of a group; equal ratings make no pair.

    The paper samples pairs of single dialogues. A group of 64 random dialogues costs as much as 32 such pairs and compares
    up to 2,016. ``group_size`` 0 makes the whole training set one group: the exact gradient over all pairs.
    """

    tokens: Sequence[Tokens]
    ratings: Floats
    group_size: int = 64

    def groups(self, rng: np.random.Generator) -> list[Group]:
        def group(rows: Ints) -> Group:
            ratings = self.ratings[rows]
            return Group(rows, lambda outputs: pairwise_loss(outputs[:, 0], ratings))

        return [group(rows) for rows in shuffled(len(self.tokens), self.group_size, rng)]


@dataclass(frozen=True)
class Pairs:
    """Pairs that are given one by one, the better dialogue first, as (better, worse) rows.

    ``together`` consecutive pairs stay in one group: the two fakes of a dialogue share its output.
    """

    tokens: Sequence[Tokens]
    pairs: Ints
    group_size: int = 64
    together: int = 1

    def groups(self, rng: np.random.Generator) -> list[Group]:
        blocks = self.pairs.reshape(-1, self.together, 2)
        n_blocks = max(1, self.group_size // (self.together + 1)) if self.group_size else 0

        def group(chosen: Ints) -> Group:
            rows, places = np.unique(blocks[chosen].reshape(-1, 2), return_inverse=True)
            places = places.reshape(-1, 2)

            def loss(outputs: Tensor) -> Tensor:
                better, worse = (moved(places[:, side], outputs.device) for side in (0, 1))
                return functional.softplus(outputs[worse, 0] - outputs[better, 0]).mean()

            return Group(rows, loss)

        return [group(chosen) for chosen in shuffled(len(blocks), n_blocks, rng)]


@dataclass(frozen=True)
class Regression:
    """The rating itself, in standard deviations from the mean, with squared error: the paper's second baseline."""

    tokens: Sequence[Tokens]
    ratings: Floats
    group_size: int = 64

    def groups(self, rng: np.random.Generator) -> list[Group]:
        wanted = (self.ratings - self.ratings.mean()) / max(float(self.ratings.std()), 1e-12)

        def group(rows: Ints) -> Group:
            target = wanted[rows].astype(np.float32)
            return Group(rows, lambda outputs: functional.mse_loss(outputs[:, 0], moved(target, outputs.device)))

        return [group(rows) for rows in shuffled(len(self.tokens), self.group_size, rng)]


@dataclass(frozen=True)
class Classes:
    """The rating as one of a few classes: the paper's first baseline. The model needs one output per level."""

    tokens: Sequence[Tokens]
    ratings: Floats
    levels: tuple[float, ...]
    group_size: int = 64

    def groups(self, rng: np.random.Generator) -> list[Group]:
        number = np.searchsorted(np.array(self.levels), self.ratings)

        def group(rows: Ints) -> Group:
            target = number[rows]
            return Group(rows, lambda outputs: functional.cross_entropy(outputs, moved(target, outputs.device)))

        return [group(rows) for rows in shuffled(len(self.tokens), self.group_size, rng)]


class Interleaved:
    """Several lessons in one epoch, their steps mixed: ratings and expert pairs in the paper's fourth row."""

    def __init__(self, *lessons: Lesson) -> None:
        self.lessons = lessons
        self.tokens = [tokens for lesson in lessons for tokens in lesson.tokens]

    def groups(self, rng: np.random.Generator) -> list[Group]:
        """All groups of all lessons in random order."""
        groups, start = [], 0
        for lesson in self.lessons:
            groups += [Group(group.rows + start, group.loss) for group in lesson.groups(rng)]
            start += len(lesson.tokens)
        return [groups[place] for place in rng.permutation(len(groups))]


def shuffled(n: int, size: int, rng: np.random.Generator) -> list[Ints]:
    """The numbers below ``n`` in random groups of almost equal size, at most ``size`` each (0: one group)."""
    order = rng.permutation(n)
    return list(np.array_split(order, -(-n // size) if size else 1))


class CmadeTrainingOptions(Part):
    """How long, how fast and how finely. ``group_size`` counts the dialogues of a step, 0 takes them all."""

    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    head_learning_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warm_up: float = Field(default=WARM_UP, ge=0, le=1)
    group_size: int = Field(default=64, ge=0)
    tokens_per_batch: int = Field(default=0, ge=0)
    """Tokens computed at once; 0 takes what suits the device."""
    tokens_kept: int = Field(default=262_144, ge=0)
    """Tokens of a step whose activations are kept; of larger groups they are computed twice."""
    precision: Precision = "auto"
    patience: int = Field(default=0, ge=0)
    """Epochs without improvement after which training ends; 0 runs them all. The best epoch is kept in any case."""
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class StopPairs:
    """Pairs of development dialogues that decide which epoch is kept; never those that value the ratings."""

    tokens: Sequence[Tokens]
    pairs: Ints
    """Rows of the better and the worse dialogue."""


def share_right(scores: Floats, pairs: Ints) -> float:
    """Share of pairs whose better dialogue has the higher score; a tie is half right."""
    gaps = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return float(np.mean((gaps > 0) + 0.5 * (gaps == 0)))


def train_ranknet(
    model: RankNet,
    lesson: Lesson,
    options: CmadeTrainingOptions,
    *,
    stop: StopPairs | None = None,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    processes: Processes = ALONE,
    report: Report = silent,
    what: str = "Training",
    keep_every_s: float = KEEP_EVERY_S,
) -> History:
    """Trains in place; the model ends as it was after its best epoch, the last one where no pairs decide."""
    kept = Checkpoint(checkpoint, {"fingerprint": fingerprint}, keep_every_s, keeps_result=True) if checkpoint else None
    device = model.encoder.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        return run_training(
            _RankNetTask(model, lesson, options, stop, processes),
            options.n_epochs,
            patience=options.patience,
            checkpoint=kept,
            processes=processes,
            report=report,
            what=what,
        )


class _RankNetTask(TrainingTask[Group]):
    def __init__(
        self,
        model: RankNet,
        lesson: Lesson,
        options: CmadeTrainingOptions,
        stop: StopPairs | None,
        processes: Processes,
    ) -> None:
        self.network, self.lesson, self.options, self.stop, self.processes = model, lesson, options, stop, processes
        self.model = model
        body = [value for name, value in model.named_parameters() if not name.startswith("head.")]
        groups = [
            {"params": body, "rate": options.learning_rate},
            {"params": model.head.parameters(), "rate": options.head_learning_rate},
        ]
        device = model.encoder.device.type
        self.optimiser = torch.optim.AdamW(
            groups, lr=options.learning_rate, weight_decay=options.weight_decay, fused=device in ("cuda", "cpu")
        )
        self.scaler = torch.amp.GradScaler(device, enabled=options.precision == "float16" and device == "cuda")

    def batches(self, epoch: int) -> list[Group]:
        return self.lesson.groups(np.random.default_rng([self.options.seed, epoch]))

    def rate(self, n_done: int, n_total: int) -> float:
        return linear_decay(n_done, n_total, self.options.warm_up)

    def add_gradients(self, batch: Group, n_done: int, scale: float) -> Tensor:
        options, processes = self.options, self.processes
        loss = backward(
            self.model,
            self.lesson.tokens,
            batch.rows,
            batch.loss,
            seed=int(np.random.SeedSequence([options.seed, n_done]).generate_state(1, np.uint32)[0]),
            tokens_per_batch=options.tokens_per_batch,
            tokens_kept=options.tokens_kept,
            precision=options.precision,
            scale=scale,
            share=(processes.number, processes.count),
            add_up=processes.add_up if processes.count > 1 else None,
        )
        processes.add_up_gradients(self.model)
        return loss

    def measure(self, epoch: int, loss: float) -> float | None:
        """Accuracy on the pairs that decide when to stop."""
        if self.stop is None or not len(self.stop.pairs):
            return None
        precision = training_precision(self.model.encoder.device.type, self.options.precision)
        scores = self.model.scores(self.stop.tokens, precision=precision)
        return share_right(self.processes.agree(scores), self.stop.pairs)
