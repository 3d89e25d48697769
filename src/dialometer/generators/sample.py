"""What a bot does on a split: how probable it holds what people said, and what it says itself. The measures look at this alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dialometer.generators.ahead import made_ahead
from dialometer.generators.batches import by_length, examples_of
from dialometer.generators.bot import Bot
from dialometer.generators.checkpoint import same_vocabulary
from dialometer.generators.corpus import Corpus, Split
from dialometer.generators.decoding import Decoding
from dialometer.generators.loss import losses
from dialometer.generators.vocabulary import PAD

Report = Callable[[str, int, int], None]
_BATCH = 256


@dataclass(frozen=True)
class Sample:
    """One bot on one split. ``log_loss`` and ``n_tokens`` are sums per dialogue; texts stand beside the dialogue they are of."""

    name: str
    about: dict[str, Any]
    decoding: dict[str, Any]
    log_loss: list[float]
    n_tokens: list[int]
    responses: list[str]
    references: list[str]
    dialogues: list[int]

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Sample:
        """What :meth:`write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def _silent(what: str, n_done: int, n_total: int) -> None:
    """Tells nobody."""


def take_sample(
    bot: Bot,
    corpus: Corpus,
    decoding: Decoding,
    *,
    split: str = "test",
    n_responses: int = 1000,
    seed: int = 0,
    report: Report = _silent,
) -> Sample:
    """Scores every example of the split and answers ``n_responses`` of them, drawn by the seed alone (the same for all bots)."""
    same_vocabulary(bot.checkpoint, corpus.vocabulary, str(corpus.folder))
    part = corpus.split(split)
    log_loss, n_tokens = log_losses(bot, part, report)
    rows = asked_about(part, n_responses, seed)
    contexts = [part.context(int(row), bot.model.shape.n_turns) for row in rows]
    said = bot.respond_to_tokens(
        contexts,
        decoding,
        [int(row) + seed for row in rows],
        report=lambda n_done: report("answering", n_done, len(rows)),
    )
    checkpoint = bot.checkpoint
    about = {
        "model": checkpoint.name,
        "label": checkpoint.model.label,
        "n_parameters": checkpoint.model.n_parameters,
        "sha256": checkpoint.sha256,
        "record": dict(checkpoint.record),
    }
    return Sample(
        name=checkpoint.name,
        about=about,
        decoding=decoding.as_json(),
        log_loss=log_loss,
        n_tokens=n_tokens,
        responses=[spoken.text for spoken in said],
        references=[bot.vocabulary.decode(part.turn(int(row)).tolist()) for row in rows],
        dialogues=[int(part.dialogues[row]) for row in rows],
    )


def asked_about(split: Split, n_responses: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """The examples that are answered, drawn by the seed alone."""
    n_asked = min(n_responses, len(split.examples))
    return np.sort(np.random.default_rng([seed, 11]).choice(split.examples, n_asked, replace=False))


@torch.inference_mode()
def log_losses(
    bot: Bot,
    split: Split,
    report: Report = _silent,
    *,
    rows: npt.NDArray[np.int64] | None = None,
    n_turns: int | None = None,
) -> tuple[list[float], list[int]]:
    """Negative log likelihood and tokens of the responses of people, summed over each dialogue.

    ``rows`` are the examples to look at, all by default; ``n_turns`` shows fewer turns of the context than the bot reads.
    """
    n_dialogues = int(split.dialogues[-1]) + 1
    summed, counted = np.zeros(n_dialogues), np.zeros(n_dialogues, dtype=np.int64)
    window = bot.model.shape.window
    window = window if n_turns is None else replace(window, n_turns=min(n_turns, window.n_turns))
    parts = list(by_length(split, split.examples if rows is None else rows, _BATCH, window.n_turns))
    for done, batch in enumerate(made_ahead(lambda part: examples_of(split, part, window), parts)):
        moved = batch.to(bot.device)
        each = losses(bot.model(moved), moved.targets, reduction="none").view(batch.targets.shape)  # (B, T)
        of_dialogue = np.asarray(split.dialogues[parts[done]])
        np.add.at(summed, of_dialogue, each.sum(dim=1).double().cpu().numpy())
        np.add.at(counted, of_dialogue, (batch.targets != PAD).sum(dim=1).numpy())
        report("scoring", done + 1, len(parts))
    is_there = counted > 0
    return summed[is_there].tolist(), counted[is_there].tolist()
