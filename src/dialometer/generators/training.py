"""Training a generator: teacher forcing over batches of alike lengths, until the validation perplexity no longer falls.

The loop is :mod:`dialometer.neural.training`; of several processes each takes its share of the batches. Until the bot is
written, a checkpoint beside it holds all that decides the result, so that an interrupted training ends with the same weights
(with several processes up to their draws of dropout, of which only the first one's are kept).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from dialometer.errors import DialometerError
from dialometer.generators.batches import ExampleBatch, Ints, by_length, examples_of, made_ahead, order
from dialometer.generators.bot import BOT_FILE, save_checkpoint
from dialometer.generators.corpus import Corpus, CorpusSplit
from dialometer.generators.generator import GENERATORS, Generator, build, shape_of
from dialometer.generators.vocabulary import PAD
from dialometer.neural.device import choose_device
from dialometer.neural.processes import Processes, join
from dialometer.neural.training import Checkpoint, History, TrainingTask, cosine_decay, run_training

STATE_FILE = "state.pt"
LOG_FILE = "training.jsonl"
REPORT_EVERY = 50
"""Steps between reports; each waits for the device."""


def losses(scores: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
    """Cross entropy of the targets; padding does not count."""
    flat = scores.flatten(0, 1).float()
    return cross_entropy(
        flat, targets.flatten(), ignore_index=PAD, label_smoothing=label_smoothing, reduction=reduction
    )


@torch.inference_mode()
def validation_sums(
    model: Generator, split: CorpusSplit, processes: Processes, device: torch.device, size: int
) -> Tensor:
    """Summed negative log likelihood and number of tokens of a split, over all processes."""
    model.eval()
    parts = list(by_length(split, split.examples, size, model.shape.n_turns))[processes.number :: processes.count]
    window = model.shape.window
    total, n_tokens = torch.zeros((), device=device), 0
    for batch in made_ahead(lambda rows: examples_of(split, rows, window), parts):
        there = batch.to(device)
        total += losses(model(there), there.targets, reduction="sum")
        n_tokens += batch.n_targets
    kind = torch.float32 if device.type == "mps" else torch.float64
    return processes.add_up(torch.tensor([float(total), n_tokens], dtype=kind, device=device))


@dataclass(frozen=True, slots=True)
class GeneratorTraining:
    """How a model is trained. All of it is in the bot's record."""

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
    max_minutes: float = math.inf

    def __post_init__(self) -> None:
        if self.n_epochs < 1 or self.batch_size < 1 or self.learning_rate <= 0 or self.patience < 1:
            raise DialometerError("epochs, batch size, learning rate and patience must be positive")
        if not 0 <= self.label_smoothing < 1:
            raise DialometerError("label smoothing lies between 0 and 1", remedy="0.1 is usual")


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training is."""

    epoch: int
    n_epochs: int
    step: int
    n_steps: int
    loss: float
    tokens_per_s: float
    validation_perplexity: float | None = None


Report = Callable[[TrainingProgress], None]


def _silent(progress: TrainingProgress) -> None:
    """Tells nobody."""


def train(
    name: str,
    corpus: Corpus,
    folder: Path,
    settings: GeneratorTraining | None = None,
    *,
    sizes: Mapping[str, Any] | None = None,
    report: Report = _silent,
) -> Path:
    """Trains a model and writes its best weights to ``folder/bot.safetensors``; gives back that path.

    An interrupted training in the folder is continued; where it was another one, that is an error.
    """
    settings = settings or GeneratorTraining()
    kind = GENERATORS.get(name)
    choose_device(settings.device)  # before anything is written
    shape = shape_of(kind, len(corpus.vocabulary), sizes or {})
    if (folder / BOT_FILE).exists() and not (folder / STATE_FILE).exists():
        raise DialometerError(f"'{folder}' holds a bot already", remedy="choose another folder")
    torch.manual_seed(settings.seed)
    model = build(name, shape, corpus.topics)
    model.begin_with_frequencies(corpus.split("train").frequencies(shape.n_tokens))
    return _GeneratorTask(name, model, corpus, folder, settings, report).run()


class _GeneratorTask(TrainingTask[Ints]):
    def __init__(
        self,
        name: str,
        model: Generator,
        corpus: Corpus,
        folder: Path,
        settings: GeneratorTraining,
        report: Report,
    ) -> None:
        self.name, self.corpus, self.folder, self.settings, self.report = name, corpus, folder, settings, report
        self.processes, place = join(settings.device)
        self.device = torch.device(place)
        is_cuda = self.device.type == "cuda"
        self.is_mixed = is_cuda if settings.is_mixed is None else settings.is_mixed
        self.network = self.plain = model.to(self.device)
        self.max_gradient = settings.max_gradient
        if is_cuda and model.is_compiled_by_default if settings.is_compiled is None else settings.is_compiled:
            model.compile_parts()
        self.shared = self.processes.shared(model)
        self.optimiser = torch.optim.AdamW(
            [{"params": model.parameters(), "rate": settings.learning_rate}],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=(0.9, 0.98),
            fused=is_cuda,
        )
        self.split = corpus.split("train")
        self.log: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.began = self.reported_at = self.epoch_began = time.monotonic()
        self.n_tokens = self.n_epoch_tokens = self.n_steps = 0

    def run(self) -> Path:
        """Trains and writes the bot."""
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint = Checkpoint(self.folder / STATE_FILE, self._identity(), at_epoch_ends=True)
        self.began = time.monotonic()
        history = run_training(
            self,
            self.settings.n_epochs,
            patience=self.settings.patience,
            checkpoint=checkpoint,
            processes=self.processes,
        )
        path = self.folder / BOT_FILE
        if self.processes.is_first:
            self._write_bot(path, history)
            checkpoint.path.unlink(missing_ok=True)
        self.processes.wait()
        return path

    def batches(self, epoch: int) -> Sequence[Ints]:
        """Of several processes each takes its share of the batches, all equally many."""
        settings, world = self.settings, self.processes.count
        batches = order(
            self.split,
            size=settings.batch_size,
            seed=settings.seed,
            epoch=epoch,
            is_bucketed=settings.is_bucketed,
            n_turns=self.plain.shape.n_turns,
        )
        batches = batches[: len(batches) // world * world or None] if world > 1 else batches
        self.epoch_began = self.reported_at = time.monotonic()
        self.n_tokens = self.n_epoch_tokens = 0
        return batches[self.processes.number :: world]

    def loaded(self, batches: Sequence[Ints]) -> Iterator[ExampleBatch]:
        window = self.plain.shape.window
        return made_ahead(lambda rows: examples_of(self.split, rows, window).pinned(self.device), batches)

    def rate(self, n_done: int, n_total: int) -> float:
        along = max(n_done / max(1, n_total), self._share_of_time())
        return cosine_decay(n_done, self.settings.n_warmup_steps, along)

    def add_gradients(self, batch: ExampleBatch, n_done: int, scale: float) -> Tensor:
        self.n_tokens += batch.n_targets
        self.n_epoch_tokens += batch.n_targets
        there = batch.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_mixed):
            scores = self.shared(there)
        loss = losses(scores, there.targets, label_smoothing=self.settings.label_smoothing)
        (scale * loss).backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def after_step(self, epoch: int, n_done: int, n_batches: int, loss: Any) -> bool:
        """Reports now and then; True where the time is over."""
        self.n_steps = n_batches
        if n_done % REPORT_EVERY == 0 or n_done == n_batches:
            mean = float(loss) / n_done  # waits for the device
            speed = self.n_tokens * self.processes.count / max(time.monotonic() - self.reported_at, 1e-9)
            self.report(TrainingProgress(epoch, self.settings.n_epochs, n_done, n_batches, mean, speed))
            self.reported_at, self.n_tokens = time.monotonic(), 0
        return self._is_time_over(n_done)

    def _is_time_over(self, n_done: int) -> bool:
        """Whether the limit is reached. Several processes ask each other now and then, so that they stop at the same step."""
        is_over = time.monotonic() - self.began > self.settings.max_minutes * 60
        if self.processes.count == 1:
            return is_over
        if math.isinf(self.settings.max_minutes) or n_done % REPORT_EVERY:
            return False
        return bool(self.processes.add_up(torch.tensor(float(is_over), device=self.device)) > 0)

    def _share_of_time(self) -> float:
        """How much of the time limit is over. Several processes keep to the steps, or their rates would drift apart."""
        if self.processes.count > 1:
            return 0.0
        return (time.monotonic() - self.began) / (self.settings.max_minutes * 60)

    def measure(self, epoch: int, loss: float) -> float:
        """Minus the perplexity of the validation split."""
        took_s = time.monotonic() - self.epoch_began
        speed = self.n_epoch_tokens * self.processes.count / max(took_s, 1e-9)
        perplexity = math.exp(self._validation_loss())
        self.seconds = time.monotonic() - self.began
        self.log.append(
            {
                "epoch": epoch + 1,
                "training_loss": round(loss, 4),
                "validation_perplexity": round(perplexity, 4),
                "tokens_per_s": round(speed),
                "seconds": round(self.seconds, 1),
            }
        )
        if self.processes.is_first:
            lines = "".join(json.dumps(line) + "\n" for line in self.log)
            (self.folder / LOG_FILE).write_text(lines, encoding="utf-8")
        n = self.n_steps
        self.report(TrainingProgress(epoch, self.settings.n_epochs, n, n, loss, speed, perplexity))
        return -perplexity

    def _validation_loss(self) -> float:
        split = self.corpus.split("validation")
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_mixed):
            sums = validation_sums(self.plain, split, self.processes, self.device, self.settings.batch_size)
        return float(sums[0] / sums[1])

    def state(self) -> dict[str, Any]:
        self.seconds = time.monotonic() - self.began
        return {"log": self.log, "seconds": self.seconds}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.log, self.seconds = list(state["log"]), state["seconds"]
        self.began = time.monotonic() - self.seconds

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a training to go on."""
        kept = asdict(self.settings)
        free = ("device", "max_minutes", "is_mixed", "is_compiled")
        return {
            "model": self.name,
            "shape": self.plain.shape.as_json(),
            "corpus": self.corpus.fingerprint,
            "settings": {key: value for key, value in kept.items() if key not in free},
        }

    def _write_bot(self, path: Path, history: History) -> None:
        best = self.log[history.best_epoch]
        record = {
            **self._identity(),
            "corpus_sources": self.corpus.about["sources"],
            "corpus_splits": "published" if self.corpus.about.get("published_splits") else "drawn",
            "best_epoch": best["epoch"],
            "validation_perplexity": best["validation_perplexity"],
            "tokens_per_s": round(sum(entry["tokens_per_s"] for entry in self.log) / len(self.log)),
            "seconds": round(self.seconds, 1),
            "n_parameters": self.plain.n_parameters,
            "device": torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type,
            "n_processes": self.processes.count,
        }
        save_checkpoint(path, self.name, self.plain, self.corpus.vocabulary, record)
