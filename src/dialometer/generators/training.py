"""Training: teacher forcing over batches of alike lengths, until the validation perplexity no longer falls.

One loop serves a laptop and several GPUs (accelerate shares the batches out). Everything that decides the result, weights,
optimiser, random states and the place in the epoch, is kept beside the bot while the training runs: an interrupted training
goes on and ends with the same weights as one that was not interrupted (with several processes up to their draws of dropout,
of which only the first one's are kept).
"""

from __future__ import annotations

import json
import math
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from dialometer.errors import DialometerError
from dialometer.generators.batches import Batch, by_length, examples_of, made_ahead, order
from dialometer.generators.bot import BOT_FILE, save_checkpoint
from dialometer.generators.corpus import Corpus, Split
from dialometer.generators.device import choose_device
from dialometer.generators.generator import GENERATORS, Generator, Shape, build
from dialometer.generators.vocabulary import PAD

# What an interrupted training needs to go on as if nothing had been: weights, optimiser, random states, place.


STATE_FILE = "state.pt"


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Replaces the older state only by a complete one."""
    random = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        random["cuda"] = torch.cuda.get_rng_state()
    part = folder / f"{STATE_FILE}.part"
    torch.save({**state, "random": random}, part)
    part.replace(folder / STATE_FILE)


def read_state(folder: Path, identity: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """The state of the same training; random numbers go on from where they were."""
    path = folder / STATE_FILE
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise DialometerError(
            "there is no interrupted training", where=str(folder), remedy="start it without --resume"
        ) from error
    except (OSError, RuntimeError, EOFError, LookupError, ValueError, pickle.UnpicklingError) as error:
        raise DialometerError(f"the state cannot be read: {error}", where=str(path), remedy="start again") from error
    for key, value in identity.items():
        if state["identity"][key] != value:
            raise DialometerError(
                f"the interrupted training had another {key}: {state['identity'][key]}, now {value}",
                where=str(path),
                remedy="go on with the same corpus, model and settings, or start again in another folder",
            )
    torch.set_rng_state(state["random"]["cpu"])
    if device.type == "cuda" and "cuda" in state["random"]:
        torch.cuda.set_rng_state(state["random"]["cuda"])
    return state


# What training makes small, on one batch or on a whole split, and how fast it is allowed to go.


def losses(scores: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
    """Cross entropy of the targets; padding does not count."""
    flat = scores.flatten(0, 1).float()
    return cross_entropy(
        flat, targets.flatten(), ignore_index=PAD, label_smoothing=label_smoothing, reduction=reduction
    )


def scheduled(n_done: int, n_warmup: int, along: float) -> float:
    """Share of the learning rate: rises in a line over the first steps, falls along half a cosine to a twentieth.

    ``along`` is how much of the training is over, from 0 to 1.
    """
    rise = min(1.0, (n_done + 1) / max(1, n_warmup))
    return rise * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, along))))


@torch.inference_mode()
def validation_sums(model: Generator, split: Split, accelerator: Any, size: int) -> Tensor:
    """Summed negative log likelihood and number of tokens of this process's share of a split."""
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64, device="cpu")
    parts = list(by_length(split, split.examples, size, model.shape.n_turns))[
        accelerator.process_index :: accelerator.num_processes
    ]
    window = model.shape.window
    total = torch.zeros((), device=accelerator.device)
    for batch in made_ahead(lambda rows: examples_of(split, rows, window), parts):
        moved = batch.to(accelerator.device)
        total += losses(model(moved), moved.targets, reduction="sum")
        sums[1] += batch.n_targets
    sums[0] = float(total)
    return sums.to(accelerator.device, torch.float32 if accelerator.device.type == "mps" else torch.float64)


# How a model is trained, and where a training stands.


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is trained. All of it stands in the bot's record."""

    n_epochs: int = 12
    batch_size: int = 512
    learning_rate: float = 1e-3
    n_warmup_steps: int = 200
    label_smoothing: float = 0.1
    max_gradient: float = 1.0
    weight_decay: float = 0.01
    patience: int = 2
    seed: int = 0
    device: str = "auto"
    is_mixed: bool | None = None
    is_compiled: bool | None = None
    is_bucketed: bool = True
    save_every_n_steps: int = 500
    max_minutes: float = math.inf

    def __post_init__(self) -> None:
        if self.n_epochs < 1 or self.batch_size < 1 or self.learning_rate <= 0 or self.patience < 1:
            raise DialometerError("epochs, batch size, learning rate and patience must be positive")
        if not 0 <= self.label_smoothing < 1:
            raise DialometerError("label smoothing lies between 0 and 1", remedy="0.1 is usual")


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training stands."""

    epoch: int
    n_epochs: int
    step: int
    n_steps: int
    loss: float
    tokens_per_s: float
    validation_perplexity: float | None = None


LOG_FILE = "training.jsonl"


Report = Callable[[Progress], None]


def _silent(progress: Progress) -> None:
    """Tells nobody."""


def train(
    name: str,
    corpus: Corpus,
    folder: Path,
    settings: Settings | None = None,
    *,
    sizes: Mapping[str, Any] | None = None,
    is_resumed: bool = False,
    report: Report = _silent,
) -> Path:
    """Trains a model and writes its best weights to ``folder/bot.safetensors``; gives back that path."""
    settings = settings or Settings()
    kind = GENERATORS.get(name)
    choose_device(settings.device)  # before anything is written
    shape = Shape.from_json({**kind.default_shape, **(sizes or {}), "n_tokens": len(corpus.vocabulary)})
    if not is_resumed and (folder / BOT_FILE).exists():
        raise DialometerError(f"'{folder}' holds a bot already", remedy="choose another folder, or go on with --resume")
    torch.manual_seed(settings.seed)
    model = build(name, shape, corpus.topics)
    model.begin_with_frequencies(corpus.split("train").frequencies(shape.n_tokens))
    return _Training(name, model, corpus, folder, settings, report).run(is_resumed=is_resumed)


class _Training:
    def __init__(
        self, name: str, model: Generator, corpus: Corpus, folder: Path, settings: Settings, report: Report
    ) -> None:
        from accelerate import Accelerator  # noqa: PLC0415 - slow to import

        self.name = name
        self.corpus = corpus
        self.folder = folder
        self.settings = settings
        self.report = report
        device = choose_device(settings.device)
        self.is_mixed = device.type == "cuda" if settings.is_mixed is None else settings.is_mixed
        # Precision is not left to the accelerator, whose choice would hold for the whole process.
        self.accelerator: Any = Accelerator(cpu=device.type == "cpu")
        self.device: torch.device = self.accelerator.device
        self.plain = model.to(self.device)
        by_default = device.type == "cuda" and model.is_compiled_by_default
        if by_default if settings.is_compiled is None else settings.is_compiled:
            model.compile_parts()
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=(0.9, 0.98),
            fused=device.type == "cuda",
        )
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.split = corpus.split("train")
        self.n_done = 0  # optimiser steps
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] = {}
        self.seconds = 0.0

    def run(self, *, is_resumed: bool) -> Path:
        epoch, step = self._resume() if is_resumed else (0, 0)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.began = time.monotonic() - self.seconds
        while epoch < self.settings.n_epochs and not self._is_enough():
            is_over = self._epoch(epoch, step)
            epoch, step = epoch + 1, 0
            if self.accelerator.is_main_process:
                self._save_state(epoch, step)
            if is_over:
                break
        path = self.folder / BOT_FILE
        if self.accelerator.is_main_process:
            self._write_bot(path)
            (self.folder / STATE_FILE).unlink(missing_ok=True)
        self.accelerator.wait_for_everyone()
        return path

    def _epoch(self, epoch: int, first: int) -> bool:
        """One pass over the examples from a step on; True where the time is over."""
        settings, world = self.settings, self.accelerator.num_processes
        batches = order(
            self.split,
            size=settings.batch_size,
            seed=settings.seed,
            epoch=epoch,
            is_bucketed=settings.is_bucketed,
            n_turns=self.plain.shape.n_turns,
        )
        batches = batches[: len(batches) // world * world or None] if world > 1 else batches
        mine = batches[self.accelerator.process_index :: world]
        total = settings.n_epochs * len(mine)
        window = self.plain.shape.window
        self.model.train()
        told, n_tokens, summed, n_summed = time.monotonic(), 0, torch.zeros((), device=self.device), 0
        began, n_all = told, 0
        is_over = False
        made = made_ahead(lambda rows: examples_of(self.split, rows, window).pinned(self.device), mine[first:])
        for step, batch in enumerate(made, first):
            loss = self._step(batch, total)
            summed += loss
            n_summed += 1
            n_tokens += batch.n_targets
            n_all += batch.n_targets
            is_last = step + 1 == len(mine)
            if (step + 1) % 50 == 0 or is_last:
                value = float(summed) / n_summed  # waits for the device
                rate = n_tokens * world / max(time.monotonic() - told, 1e-9)
                self.report(Progress(epoch, settings.n_epochs, step + 1, len(mine), value, rate))
                told, n_tokens = time.monotonic(), 0
            if (step + 1) % settings.save_every_n_steps == 0 and not is_last and self.accelerator.is_main_process:
                self._save_state(epoch, step + 1)
            if self._is_time_over(step):
                is_over = True
                break
        took_s = time.monotonic() - began
        self._close_epoch(epoch, float(summed) / max(n_summed, 1), n_all * world / max(took_s, 1e-9), len(mine))
        return is_over

    def _step(self, batch: Batch, total: int) -> Tensor:
        settings = self.settings
        along = max(self.n_done / max(1, total), self._share_of_time())
        rate = settings.learning_rate * scheduled(self.n_done, settings.n_warmup_steps, along)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        batch = batch.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_mixed):
            scores = self.model(batch)
        loss = losses(scores, batch.targets, label_smoothing=settings.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.model.parameters(), settings.max_gradient)
        self.optimizer.step()
        self.n_done += 1
        return loss.detach()

    def _is_time_over(self, step: int) -> bool:
        """Whether the limit is reached. Several processes ask each other now and then, so that they stop at the same step."""
        is_over = time.monotonic() - self.began > self.settings.max_minutes * 60
        if self.accelerator.num_processes == 1:
            return is_over
        if math.isinf(self.settings.max_minutes) or (step + 1) % 50:
            return False
        asked = torch.tensor(float(is_over), device=self.device)
        return bool(self.accelerator.reduce(asked, reduction="sum") > 0)

    def _share_of_time(self) -> float:
        """How much of the time limit is over. Several processes keep to the steps, or their rates would drift apart."""
        if self.accelerator.num_processes > 1:
            return 0.0
        return (time.monotonic() - self.began) / (self.settings.max_minutes * 60)

    def _close_epoch(self, epoch: int, loss: float, tokens_per_s: float, n_steps: int) -> None:
        perplexity = math.exp(self._validation_loss())
        self.seconds = time.monotonic() - self.began
        entry = {
            "epoch": epoch + 1,
            "training_loss": round(loss, 4),
            "validation_perplexity": round(perplexity, 4),
            "tokens_per_s": round(tokens_per_s),
            "seconds": round(self.seconds, 1),
        }
        if all(perplexity < other["validation_perplexity"] for other in self.history):
            self.best = {key: value.detach().cpu().clone() for key, value in self.plain.state_dict().items()}
        self.history.append(entry)
        if self.accelerator.is_main_process:
            lines = "".join(json.dumps(line) + "\n" for line in self.history)
            (self.folder / LOG_FILE).write_text(lines, encoding="utf-8")
        self.report(Progress(epoch, self.settings.n_epochs, n_steps, n_steps, loss, tokens_per_s, perplexity))

    def _validation_loss(self) -> float:
        split = self.corpus.split("validation")
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_mixed):
            sums = validation_sums(self.plain, split, self.accelerator, self.settings.batch_size)
        summed = self.accelerator.reduce(sums, reduction="sum")
        return float(summed[0] / summed[1])

    def _is_enough(self) -> bool:
        """Whether the last epochs brought nothing."""
        values = [entry["validation_perplexity"] for entry in self.history]
        return len(values) > self.settings.patience and min(values) not in values[-self.settings.patience :]

    def _resume(self) -> tuple[int, int]:
        kept = read_state(self.folder, self._identity(), self.device)
        self.plain.load_state_dict(kept["weights"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.best, self.history = kept["best"], kept["history"]
        self.n_done, self.seconds = kept["n_done"], kept["seconds"]
        return kept["epoch"], kept["step"]

    def _save_state(self, epoch: int, step: int) -> None:
        self.seconds = time.monotonic() - self.began
        state = {
            "identity": self._identity(),
            "weights": self.plain.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "history": self.history,
            "n_done": self.n_done,
            "seconds": self.seconds,
            "epoch": epoch,
            "step": step,
        }
        write_state(self.folder, state)

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a training to go on."""
        kept = asdict(self.settings)
        free = ("device", "max_minutes", "save_every_n_steps", "is_mixed", "is_compiled")
        return {
            "model": self.name,
            "shape": self.plain.shape.as_json(),
            "corpus": self.corpus.fingerprint,
            "settings": {key: value for key, value in kept.items() if key not in free},
        }

    def _write_bot(self, path: Path) -> None:
        self.plain.load_state_dict(self.best)
        best = min(self.history, key=lambda entry: entry["validation_perplexity"])
        record = {
            **self._identity(),
            "corpus_sources": self.corpus.about["sources"],
            "best_epoch": best["epoch"],
            "validation_perplexity": best["validation_perplexity"],
            "tokens_per_s": round(sum(entry["tokens_per_s"] for entry in self.history) / len(self.history)),
            "seconds": round(self.seconds, 1),
            "n_parameters": self.plain.n_parameters,
            "device": _device_name(self.device),
            "n_processes": self.accelerator.num_processes,
        }
        save_checkpoint(path, self.name, self.plain, self.corpus.vocabulary, record)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
