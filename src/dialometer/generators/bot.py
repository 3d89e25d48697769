"""A trained bot that answers conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dialometer.errors import DialometerError
from dialometer.generators.batches import batch_of
from dialometer.generators.checkpoint import Checkpoint, load_checkpoint
from dialometer.generators.decoding import Decoding
from dialometer.generators.device import choose_device
from dialometer.generators.speak import speak
from dialometer.generators.vocabulary import Vocabulary

Contexts = Sequence[Sequence[int] | npt.NDArray[np.uint16]]
"""The turns of one context as tokens, without end marks."""
_N_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class Spoken:
    """A response: the words, how probable the model holds them, and how many turns of the context it read."""

    text: str
    log_prob: float
    n_turns_read: int


class Bot:
    """A checkpoint that speaks. Histories are the turns said so far, oldest first."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device) -> None:
        self.checkpoint = checkpoint
        self.model = checkpoint.model.to(device)
        self.device = device

    @classmethod
    def load(cls, path: Path, device: str = "cpu") -> Bot:
        """The bot in a file or folder, on a device."""
        where = choose_device(device)
        return cls(load_checkpoint(path, where), where)

    @property
    def vocabulary(self) -> Vocabulary:
        """How the bot cuts text into tokens."""
        return self.checkpoint.vocabulary

    @cached_property
    def _may_be_said(self) -> torch.Tensor:
        return torch.from_numpy(self.vocabulary.may_be_said).to(self.device)

    def respond(
        self,
        histories: Sequence[Sequence[str]],
        decoding: Decoding | None = None,
        *,
        seeds: Sequence[int] | None = None,
        is_cut: bool = False,
        names: Sequence[str] | None = None,
    ) -> list[Spoken]:
        """One response to each history. A history beyond the model's window is an error unless it may be cut to its end."""
        decoding = decoding or Decoding()
        seeds = range(len(histories)) if seeds is None else seeds
        names = [f"context {i + 1}" for i in range(len(histories))] if names is None else names
        contexts = [self._read(history, name, is_cut=is_cut) for history, name in zip(histories, names, strict=True)]
        return self.respond_to_tokens(contexts, decoding, seeds)

    def respond_to_tokens(
        self,
        contexts: Sequence[Contexts],
        decoding: Decoding,
        seeds: Sequence[int],
        *,
        report: Callable[[int], None] | None = None,
    ) -> list[Spoken]:
        """As :meth:`respond`, for turns that are tokens already, as in a prepared corpus."""
        ranked = sorted(range(len(contexts)), key=lambda i: sum(map(len, contexts[i])))
        spoken: dict[int, Spoken] = {}
        size = _N_PER_BATCH if self.device.type == "cpu" else 8 * _N_PER_BATCH
        for start in range(0, len(ranked), size):
            part = ranked[start : start + size]
            said = self._speak([contexts[i] for i in part], decoding, [seeds[i] for i in part])
            spoken |= dict(zip(part, said, strict=True))
            if report is not None:
                report(len(spoken))
        return [spoken[i] for i in range(len(contexts))]

    def _speak(self, contexts: list[Contexts], decoding: Decoding, seeds: list[int]) -> list[Spoken]:
        window = self.model.shape.window
        batch = batch_of(contexts, self._topics(contexts), window).to(self.device)
        said = speak(self.model, batch, decoding, self._may_be_said, seeds)
        return [
            Spoken(self.vocabulary.decode(row.tokens), row.log_prob, min(len(context), window.n_turns))
            for row, context in zip(said, contexts, strict=True)
        ]

    def _topics(self, contexts: list[Contexts]) -> Any:
        topics = self.checkpoint.topics
        if topics is None:
            return np.zeros(len(contexts), dtype=np.int64)
        n_turns = self.model.shape.n_turns
        return topics.topics_of([np.concatenate([np.asarray(turn) for turn in c[-n_turns:]]) for c in contexts])

    def _read(self, history: Sequence[str], name: str, *, is_cut: bool) -> list[list[int]]:
        """Tokens of the turns; raises where there is nothing to answer or more than the model can see."""
        turns = self.vocabulary.encode(list(history))
        window = self.model.shape.window
        if not turns or not all(turns):
            raise DialometerError("there is nothing to answer", where=name, remedy="give at least one turn with text")
        remedy = "shorten it, or allow cutting (--cut), which lets the bot see the end of it alone"
        if len(turns) > self.model.shape.max_turns and not is_cut:
            raise DialometerError(
                f"{len(turns)} turns are more than the {self.model.shape.max_turns} that '{self.checkpoint.name}' sees",
                where=name,
                remedy=remedy,
            )
        longest = max(map(len, turns[-window.n_turns :]))
        if longest > window.n_turn_tokens - 1 and not is_cut:
            raise DialometerError(
                f"a turn of {longest} tokens is longer than the {window.n_turn_tokens - 1} that "
                f"'{self.checkpoint.name}' sees",
                where=name,
                remedy=remedy,
            )
        return turns
