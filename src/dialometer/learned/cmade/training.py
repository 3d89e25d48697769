"""The training loop: warm-up and decay, early stopping, checkpoints that lead to the identical result.

Every random choice comes from the seed and the number of the step, never from what was drawn before, so a run that was
interrupted at any step goes on exactly as if it had not been (bit by bit on a CPU; a GPU adds up in varying order).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dialometer.errors import DialometerError
from dialometer.learned.cmade.encoder import Precision, moved, training_precision
from dialometer.learned.cmade.ranknet import Loss, RankNet, backward, pairwise_loss
from dialometer.learned.cmade.tokens import Tokens
from dialometer.model.part import Part
from dialometer.neural.processes import ALONE, Processes
from dialometer.neural.work import Report, silent

# What a model is trained on: groups of dialogues, each with the loss of its outputs. One group is one step.


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
        self.tokens = [one for lesson in lessons for one in lesson.tokens]

    def groups(self, rng: np.random.Generator) -> list[Group]:
        """All groups of all lessons in random order."""
        found, start = [], 0
        for lesson in self.lessons:
            found += [Group(group.rows + start, group.loss) for group in lesson.groups(rng)]
            start += len(lesson.tokens)
        return [found[place] for place in rng.permutation(len(found))]


def shuffled(n: int, size: int, rng: np.random.Generator) -> list[Ints]:
    """The numbers below ``n`` in random groups of almost equal size, at most ``size`` each (0: one group)."""
    order = rng.permutation(n)
    return list(np.array_split(order, -(-n // size) if size else 1))


LARGEST_STEP = 1.0
KEEP_EVERY_S = 30.0
"""Seconds between checkpoints: writing one costs time too."""


class TrainingOptions(Part):
    """How long, how fast and how finely. ``group_size`` counts the dialogues of a step, 0 takes them all."""

    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    head_learning_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warm_up: float = Field(default=0.1, ge=0, le=1)
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


@dataclass
class History:
    """How a training went."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    best_epoch: int = -1
    n_steps: int = 0


def share_right(scores: Floats, pairs: Ints) -> float:
    """Share of pairs whose better dialogue has the higher score; a tie is half right."""
    gaps = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return float(np.mean((gaps > 0) + 0.5 * (gaps == 0)))


def train(
    model: RankNet,
    lesson: Lesson,
    options: TrainingOptions,
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
    run = _Run(model, options, History())
    if checkpoint is not None and checkpoint.is_file():
        run.restore(checkpoint, fingerprint)
    device = model.encoder.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        _run_epochs(run, lesson, stop, processes, report, what, checkpoint, fingerprint, keep_every_s)
    if run.best:
        model.load_state_dict(run.best)
    model.eval()
    if checkpoint is not None and processes.is_first:
        run.is_finished = True
        run.keep(checkpoint, fingerprint)
    return run.history


def _run_epochs(
    run: _Run,
    lesson: Lesson,
    stop: StopPairs | None,
    processes: Processes,
    report: Report,
    what: str,
    checkpoint: Path | None,
    fingerprint: str,
    keep_every_s: float,
) -> None:
    options, history = run.options, run.history
    kept_at = time.monotonic()
    while not run.is_finished and len(history.losses) < options.n_epochs:
        epoch = len(history.losses)
        groups = lesson.groups(np.random.default_rng([options.seed, epoch]))
        n_steps = len(groups) * options.n_epochs
        run.model.train()
        for group in groups[history.n_steps - epoch * len(groups) :]:
            report(what, history.n_steps, n_steps)
            run.step(lesson.tokens, group.rows, group.loss, n_steps, processes)
            if checkpoint is not None and processes.is_first and time.monotonic() - kept_at >= keep_every_s:
                run.keep(checkpoint, fingerprint)
                kept_at = time.monotonic()
        report(what, history.n_steps, n_steps)
        history.losses.append(float(run.loss) / len(groups))
        run.loss = 0.0
        if stop is not None and len(stop.pairs):
            precision = training_precision(run.model.encoder.device.type, options.precision)
            scores = run.model.scores(stop.tokens, precision=precision)
            run.judge(share_right(processes.agree(scores), stop.pairs))
        if options.patience and epoch - history.best_epoch >= options.patience and stop is not None:
            return


class _Run:
    """All that a training is at one moment: what a checkpoint holds."""

    def __init__(self, model: RankNet, options: TrainingOptions, history: History) -> None:
        self.model, self.options, self.history = model, options, history
        body = [value for name, value in model.named_parameters() if not name.startswith("head.")]
        rates = (options.learning_rate, options.head_learning_rate)
        groups = [
            {"params": part, "rate": rate} for part, rate in zip((body, model.head.parameters()), rates, strict=True)
        ]
        device = model.encoder.device.type
        self.optimiser = torch.optim.AdamW(
            groups, lr=options.learning_rate, weight_decay=options.weight_decay, fused=device in ("cuda", "cpu")
        )
        self.scaler = torch.amp.GradScaler(device, enabled=options.precision == "float16" and device == "cuda")
        self.loss: Any = 0.0
        self.best: dict[str, Any] = {}
        self.is_finished = False

    def step(
        self,
        tokens: Sequence[Tokens],
        rows: Ints,
        loss: Callable[[Any], Any],
        n_steps: int,
        processes: Processes,
    ) -> None:
        """One step of the optimiser over one group."""
        options, number = self.options, self.history.n_steps
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * _share(number, n_steps, options.warm_up)
        self.optimiser.zero_grad(set_to_none=True)
        one = torch.ones((), device=self.model.encoder.device)
        self.loss = self.loss + backward(
            self.model,
            tokens,
            rows,
            loss,
            seed=_mixed(options.seed, number),
            tokens_per_batch=options.tokens_per_batch,
            tokens_kept=options.tokens_kept,
            precision=options.precision,
            scale=float(self.scaler.scale(one)) if self.scaler.is_enabled() else 1.0,
            share=(processes.number, processes.count),
            add_up=processes.add_up if processes.count > 1 else None,
        )
        processes.add_up_gradients(self.model)
        self.scaler.unscale_(self.optimiser)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_STEP)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.history.n_steps += 1

    def judge(self, accuracy: float) -> None:
        """Remembers the model if this epoch is the best so far."""
        history = self.history
        history.accuracies.append(accuracy)
        if history.best_epoch < 0 or accuracy > history.accuracies[history.best_epoch]:
            history.best_epoch = len(history.accuracies) - 1
            self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def keep(self, checkpoint: Path, fingerprint: str) -> None:
        """Writes a checkpoint, whole or not at all."""
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        partial = checkpoint.with_suffix(".part")
        state = {
            "fingerprint": fingerprint,
            "model": self.model.state_dict(),
            "history": vars(self.history),
            "loss": float(self.loss),
            "is_finished": self.is_finished,
        }
        if not self.is_finished:
            state |= {
                "optimiser": self.optimiser.state_dict(),
                "scaler": self.scaler.state_dict(),
                "best": self.best,
            }
        torch.save(state, partial)
        partial.replace(checkpoint)

    def restore(self, checkpoint: Path, fingerprint: str) -> None:
        """Goes back to a checkpoint of the same training."""
        held = torch.load(checkpoint, map_location=self.model.encoder.device, weights_only=True)
        if held["fingerprint"] != fingerprint:
            raise DialometerError(
                "the checkpoint belongs to another training",
                where=str(checkpoint),
                remedy="resume with the same data and options, or start again in another folder",
            )
        self.model.load_state_dict(held["model"])
        self.history = History(**held["history"])
        self.loss, self.is_finished = held["loss"], held["is_finished"]
        if not self.is_finished:
            self.optimiser.load_state_dict(held["optimiser"])
            self.scaler.load_state_dict(held["scaler"])
            self.best = held["best"]


def _share(step: int, n_steps: int, warm_up: float) -> float:
    """Share of the learning rate: up to all of it in the warm-up, then down to nothing."""
    warm = max(1.0, warm_up * n_steps)
    return min(1.0, (step + 1) / warm) * max(0.0, 1 - step / max(n_steps, 1))


def _mixed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint32)[0])
