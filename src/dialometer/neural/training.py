"""The one training loop: retrieval's encoder and ranker, the learned evaluator and the generators are trained by it.

A training differs from another in its batches, in its loss and in what it measures after an epoch: that is a
:class:`TrainingTask`. Learning rates, clipping, 16-bit scaling, early stopping, progress and checkpoints are here.

An interrupted training ends with the same weights as one that ran through (bit by bit on a CPU; a GPU adds up in varying
order): a checkpoint holds weights, optimiser, random state and the place in the epoch.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from pydantic import Field

from dialometer.errors import DialometerError
from dialometer.model.part import Part
from dialometer.neural.device import autocast, is_half_quicker
from dialometer.neural.processes import ALONE, Processes
from dialometer.neural.work import Report, Work, silent

Batch = TypeVar("Batch")
WARM_UP = 0.1
MAX_GRADIENT = 1.0
KEEP_EVERY_S = 30.0
"""Seconds between checkpoints: writing one costs seconds itself."""
_LONGEST_SHOWN = 60


class TrainingTask(ABC, Generic[Batch]):
    """What one training brings to the loop. ``network`` is trained in place.

    Each parameter group of the optimiser names its full learning rate as ``rate``.
    """

    network: torch.nn.Module
    optimiser: torch.optim.Optimizer
    max_gradient: float = MAX_GRADIENT
    scaler: torch.amp.GradScaler | None = None
    """Only 16-bit floats of small range (float16) need one."""

    @abstractmethod
    def batches(self, epoch: int) -> Sequence[Batch]:
        """The steps of one epoch; the same for the same epoch, whatever was drawn before."""

    @abstractmethod
    def add_gradients(self, batch: Any, n_done: int, scale: float) -> Any:
        """Adds ``scale`` times the gradient of a batch's loss to the network and returns the loss, detached."""

    def loaded(self, batches: Sequence[Batch]) -> Iterable[Any]:
        """The batches as :meth:`add_gradients` takes them; may prepare them ahead of time."""
        return batches

    def rate(self, n_done: int, n_total: int) -> float:
        """Share of the learning rates at a step."""
        return linear_decay(n_done, n_total)

    def after_step(self, epoch: int, n_done: int, n_batches: int, loss: Any) -> bool:
        """Called with the steps of this epoch and their summed loss; True ends the training with this epoch."""
        return False

    def measure(self, epoch: int, loss: float) -> float | None:
        """Called after each epoch with its mean loss. The score decides which epoch is kept; higher is better."""
        return None

    def state(self) -> dict[str, Any]:
        """What else a checkpoint must hold."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what :meth:`state` gave."""


def linear_decay(n_done: int, n_total: int, warm_up: float = WARM_UP) -> float:
    """Share of the learning rate: up to all of it in the warm-up, then down to nothing."""
    n_warm = max(1.0, warm_up * n_total)
    return min(1.0, (n_done + 1) / n_warm) * max(0.0, 1 - n_done / max(n_total, 1))


def cosine_decay(n_done: int, n_warmup: int, along: float) -> float:
    """Share of the learning rate: up in a line over the first steps, then along half a cosine down to a twentieth.

    ``along`` is how much of the training is over, from 0 to 1.
    """
    rise = min(1.0, (n_done + 1) / max(1, n_warmup))
    return rise * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, along))))


@dataclass
class History:
    """How a training went. ``best_epoch`` is -1 where nothing was measured."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = -1
    n_steps: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """Where and when the state of a training is written. ``identity`` is all that must be equal to go on from it."""

    path: Path
    identity: Mapping[str, Any] = field(default_factory=dict)
    every_s: float = KEEP_EVERY_S
    at_epoch_ends: bool = False
    keeps_result: bool = False
    """Whether the trained weights stay in it, so that the same training is not run a second time."""

    def write(self, state: Mapping[str, Any]) -> None:
        """Replaces an older checkpoint only by a complete one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f"{self.path.name}.part")
        torch.save({**state, "identity": dict(self.identity)}, partial)
        partial.replace(self.path)

    def read(self) -> dict[str, Any]:
        """The state of the same training; of another one, an error."""
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            difference = _difference(state["identity"], self.identity)
        except (OSError, RuntimeError, EOFError, LookupError, ValueError, pickle.UnpicklingError) as error:
            raise DialometerError(
                f"the checkpoint cannot be read: {error}", where=str(self.path), remedy="delete it and start again"
            ) from error
        if difference is not None:
            raise DialometerError(
                f"the checkpoint belongs to another training{difference}",
                where=str(self.path),
                remedy="continue with the same data and options, or start again in another folder",
            )
        return state


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What makes two identities differ, in words where it is short; None where they are equal."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            inner = _difference(old, new)
            return f": other {key}{inner}" if inner else None
        return f": {key} was {old}, now {new}" if len(f"{old}{new}") <= _LONGEST_SHOWN else ""
    return None


def run_training(
    task: TrainingTask[Any],
    n_epochs: int,
    *,
    patience: int = 0,
    checkpoint: Checkpoint | None = None,
    processes: Processes = ALONE,
    report: Report = silent,
    what: str = "Training",
) -> History:
    """Trains in place, from the checkpoint if there is one. The network ends as it was after its best epoch.

    Where nothing is measured that is the last one. ``patience`` epochs without a better score end the training; 0 runs all.
    """
    run = _Run(task, n_epochs, checkpoint)
    if checkpoint is not None and checkpoint.path.is_file():
        run.restore(checkpoint.read())
    if not processes.is_first:
        run.checkpoint = None
    history = run.history
    while len(history.losses) < n_epochs and not (run.is_finished or run.is_over or _is_enough(history, patience)):
        run.epoch(report, what)
    if run.best:
        task.network.load_state_dict(run.best)
    task.network.eval()
    if not run.is_finished and run.checkpoint is not None and run.checkpoint.keeps_result:
        run.is_finished = True
        run.keep()
    return history


def _is_enough(history: History, patience: int) -> bool:
    n_since = len(history.losses) - 1 - history.best_epoch
    return bool(patience) and history.best_epoch >= 0 and n_since >= patience


class _Run:
    """A training at one moment: what a checkpoint holds."""

    def __init__(self, task: TrainingTask[Any], n_epochs: int, checkpoint: Checkpoint | None) -> None:
        self.task, self.n_epochs, self.checkpoint = task, n_epochs, checkpoint
        self.device = next(task.network.parameters()).device
        self.scaler = task.scaler or torch.amp.GradScaler(self.device.type, enabled=False)
        self.history = History()
        self.n_in_epoch = 0
        self.loss: Any = 0.0
        self.best: dict[str, Any] = {}
        self.random: dict[str, Any] = {}
        self.is_finished = self.is_over = False
        self.kept_at = time.monotonic()

    def epoch(self, report: Report, what: str) -> None:
        """The rest of an epoch, from the step where it was interrupted."""
        task, history, epoch = self.task, self.history, len(self.history.losses)
        batches = task.batches(epoch)
        n_total = len(batches) * self.n_epochs
        task.network.train()
        self._restore_random()
        for batch in task.loaded(batches[self.n_in_epoch :]):
            report(what, history.n_steps, n_total)
            self._step(batch, n_total)
            if self._is_due():
                self.keep()
            if task.after_step(epoch, self.n_in_epoch, len(batches), self.loss):
                self.is_over = True
                break
        report(what, history.n_steps, n_total)
        history.losses.append(float(self.loss) / max(1, self.n_in_epoch))
        self._judge(task.measure(epoch, history.losses[-1]))
        self.loss, self.n_in_epoch = 0.0, 0
        if self.checkpoint is not None and self.checkpoint.at_epoch_ends:
            self.keep()

    def _step(self, batch: Any, n_total: int) -> None:
        task, optimiser = self.task, self.task.optimiser
        share = task.rate(self.history.n_steps, n_total)
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * share
        optimiser.zero_grad(set_to_none=True)
        scale = float(self.scaler.scale(torch.ones((), device=self.device))) if self.scaler.is_enabled() else 1.0
        self.loss = self.loss + task.add_gradients(batch, self.history.n_steps, scale)
        self.scaler.unscale_(optimiser)
        torch.nn.utils.clip_grad_norm_(task.network.parameters(), task.max_gradient)
        self.scaler.step(optimiser)
        self.scaler.update()
        self.history.n_steps += 1
        self.n_in_epoch += 1

    def _judge(self, score: float | None) -> None:
        """Remembers the network if this epoch is the best so far."""
        if score is None:
            return
        history = self.history
        history.scores.append(score)
        if history.best_epoch < 0 or score > history.scores[history.best_epoch]:
            history.best_epoch = len(history.scores) - 1
            weights = self.task.network.state_dict()
            self.best = {name: value.detach().to("cpu", copy=True) for name, value in weights.items()}

    def _is_due(self) -> bool:
        return self.checkpoint is not None and time.monotonic() - self.kept_at >= self.checkpoint.every_s

    def keep(self) -> None:
        """Writes a checkpoint."""
        if self.checkpoint is None:
            return
        state = {
            "network": self.task.network.state_dict(),
            "history": vars(self.history),
            "is_finished": self.is_finished,
            "task": self.task.state(),
        }
        if not self.is_finished:
            random = {"cpu": torch.get_rng_state()}
            if self.device.type == "cuda":
                random["cuda"] = torch.cuda.get_rng_state(self.device)
            state |= {
                "optimiser": self.task.optimiser.state_dict(),
                "scaler": self.scaler.state_dict(),
                "best": self.best,
                "loss": float(self.loss),
                "n_in_epoch": self.n_in_epoch,
                "random": random,
            }
        self.checkpoint.write(state)
        self.kept_at = time.monotonic()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes back to a checkpoint."""
        self.task.network.load_state_dict(state["network"])
        vars(self.history).update(state["history"])
        self.is_finished = state["is_finished"]
        self.task.restore(state["task"])
        if not self.is_finished:
            self.task.optimiser.load_state_dict(state["optimiser"])
            self.scaler.load_state_dict(state["scaler"])
            self.best, self.random = state["best"], state["random"]
            self.loss, self.n_in_epoch = state["loss"], state["n_in_epoch"]

    def _restore_random(self) -> None:
        """After the epoch's batches are drawn, which may begin with a seed of their own."""
        if self.random:
            torch.set_rng_state(self.random["cpu"])
            if self.device.type == "cuda" and "cuda" in self.random:
                torch.cuda.set_rng_state(self.random["cuda"], self.device)
            self.random = {}


# The plain case: a network, batches and a loss, with nothing measured.


class TrainingOptions(Part):
    """How long and how fast."""

    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    batch_size: int = Field(default=64, ge=1)
    seed: int = Field(default=0, ge=0)


def fingerprint(*parts: object) -> str:
    """Of everything that a training depends on; names its files."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def train(
    network: Any,
    batches: Callable[[int, np.random.Generator], Sequence[Batch]],
    loss: Callable[[Batch], Any],
    options: TrainingOptions,
    work: Work,
    *,
    device: str,
    what: str,
    checkpoint: Path | None = None,
    keep_every_s: float = KEEP_EVERY_S,
) -> list[float]:
    """Trains in place and returns the mean loss of each epoch. All epochs have equally many batches."""
    history = run_training(
        _Plain(network, batches, loss, options, device),
        options.n_epochs,
        checkpoint=None if checkpoint is None else Checkpoint(checkpoint, every_s=keep_every_s),
        report=work.report,
        what=what,
    )
    return history.losses


class _Plain(TrainingTask[Batch]):
    def __init__(
        self,
        network: Any,
        batches: Callable[[int, np.random.Generator], Sequence[Batch]],
        loss: Callable[[Batch], Any],
        options: TrainingOptions,
        device: str,
    ) -> None:
        self.network, self.draw, self.loss, self.options, self.device = network, batches, loss, options, device
        groups = [{"params": network.parameters(), "rate": options.learning_rate}]
        self.optimiser = torch.optim.AdamW(groups, lr=options.learning_rate, weight_decay=0.01)
        self.precision: Any = "bfloat16" if is_half_quicker(device) else "float32"

    def batches(self, epoch: int) -> Sequence[Batch]:
        seed = self.options.seed
        portions = self.draw(epoch, np.random.default_rng([seed, epoch]))
        torch.manual_seed(seed * 1000 + epoch)
        return portions

    def add_gradients(self, batch: Batch, n_done: int, scale: float) -> float:
        with autocast(self.device, self.precision):
            loss = self.loss(batch)
        (scale * loss).backward()
        return float(loss.detach())
