"""A trained bot that answers conversations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from dialometer._version import __version__
from dialometer.errors import DialometerError
from dialometer.generators.batches import batch_of
from dialometer.generators.decoding import Decoding
from dialometer.generators.generator import Generator, Shape, build
from dialometer.generators.speak import speak
from dialometer.generators.topics import TopicModel, prior_of
from dialometer.generators.vocabulary import Vocabulary
from dialometer.neural.device import choose_device
from dialometer.neural.pretrained import first_line

# A trained bot in one file: weights in half precision, and with them the sizes, the vocabulary, the topics and the record
# of the training, so that the file alone is enough to talk and to tell where it came from.


BOT_FILE = "bot.safetensors"
_WEIGHTS = "weights."
_TOPICS = "topics."
FORM = 1


@dataclass(frozen=True)
class BotCheckpoint:
    """A model with its vocabulary. ``record`` says what it was trained on and how; ``sha256`` names this very file."""

    name: str
    model: Generator
    vocabulary: Vocabulary
    record: Mapping[str, Any]
    path: Path
    sha256: str

    @property
    def topics(self) -> TopicModel | None:
        """What the model knows about topics."""
        return self.model.topics


def save_checkpoint(path: Path, name: str, model: Generator, vocabulary: Vocabulary, record: Mapping[str, Any]) -> None:
    """Writes the file in one go; an older one is replaced only by a complete one."""
    tensors = {
        _WEIGHTS + key: value.detach().to("cpu", torch.float16).contiguous()
        for key, value in model.state_dict().items()
    }
    topics = model.topics
    if topics is not None:
        tensors[_TOPICS + "weights"] = torch.from_numpy(topics.weights.astype("float32"))
        tensors[_TOPICS + "words"] = torch.from_numpy(topics.words.astype("int32"))
    about = {
        "form": FORM,
        "dialometer": __version__,
        "model": name,
        "shape": model.shape.as_json(),
        "topic_prior": None if topics is None else np.asarray(topics.prior).tolist(),
        "record": dict(record),
    }
    content = save(tensors, {"about": json.dumps(about), "vocabulary": vocabulary.description})
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


def bot_path(path: Path) -> Path:
    """A bot's file, given as such or as the folder that the training wrote."""
    return path / BOT_FILE if path.is_dir() else path


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> BotCheckpoint:
    """The bot in a file, ready to speak."""
    path = bot_path(path)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with safe_open(path, framework="pt") as kept:
            metadata = kept.metadata() or {}
            tensors = {key: kept.get_tensor(key) for key in kept.keys()}  # noqa: SIM118 - not a dictionary
        about = json.loads(metadata["about"])
        vocabulary = Vocabulary(metadata["vocabulary"])
    except (OSError, ValueError, KeyError, RecursionError, SafetensorError) as error:
        remedy = "name a folder or file that 'dialometer bots train' wrote"
        raise DialometerError("no trained bot", where=str(path), remedy=remedy) from error
    if not isinstance(about, dict) or about.get("form") != FORM:
        raise DialometerError("the bot was written by another version", where=str(path), remedy="train it again")
    try:
        model = _model(about, tensors, path)
        record = dict(about["record"])
    except DialometerError:
        raise
    except Exception as error:  # sizes and weights that contradict each other make torch raise anything
        message = f"the bot is damaged: {first_line(error)}"
        raise DialometerError(message, where=str(path), remedy="copy it again, or train it again") from error
    if model.shape.n_tokens != len(vocabulary):
        raise DialometerError(
            f"the model has {model.shape.n_tokens} tokens and its vocabulary {len(vocabulary)}",
            where=str(path),
            remedy="train it again",
        )
    return BotCheckpoint(about["model"], model.to(device).eval(), vocabulary, record, path, digest)


def _model(about: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], path: Path) -> Generator:
    topics = None
    if about["topic_prior"] is not None:
        words = tensors[_TOPICS + "words"].numpy().astype("int64")
        topics = TopicModel(tensors[_TOPICS + "weights"].numpy(), words, prior_of(about["topic_prior"]))
    shape = Shape.from_json(about["shape"])
    largest = max((size for tensor in tensors.values() for size in tensor.shape), default=0)
    if max(shape.n_tokens, shape.embedding, shape.hidden) > largest or shape.n_layers > max(6, len(tensors)):
        raise DialometerError("the bot's sizes are not those of its weights", where=str(path), remedy="train it again")
    model = build(about["model"], shape, topics)
    weights = {key.removeprefix(_WEIGHTS): value for key, value in tensors.items() if key.startswith(_WEIGHTS)}
    try:
        model.load_state_dict({key: value.float() for key, value in weights.items()})
    except RuntimeError as error:
        raise DialometerError(
            f"the weights do not fit a model '{about['model']}'", where=str(path), remedy="train it again"
        ) from error
    return model


def same_vocabulary(checkpoint: BotCheckpoint, vocabulary: Vocabulary, where: str) -> None:
    """Refuses to mix tokens numbered in different ways."""
    if checkpoint.vocabulary.fingerprint != vocabulary.fingerprint:
        raise DialometerError(
            f"'{checkpoint.path}' was trained with another vocabulary ({checkpoint.vocabulary.fingerprint}) "
            f"than this corpus has ({vocabulary.fingerprint})",
            where=where,
            remedy="use the corpus it was trained on, or train it on this one",
        )


Contexts = Sequence[Sequence[int] | npt.NDArray[np.uint16]]
"""The turns of one context as tokens, without end marks."""
_N_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class BotResponse:
    """A response: the words, how probable the model holds them, and how many turns of the context it read."""

    text: str
    log_prob: float
    n_turns_read: int


class Bot:
    """A checkpoint that speaks. Histories are the turns said so far, oldest first."""

    def __init__(self, checkpoint: BotCheckpoint, device: torch.device) -> None:
        self.checkpoint = checkpoint
        self.model = checkpoint.model.to(device)
        self.device = device

    @classmethod
    def load(cls, path: Path, device: str = "cpu") -> Bot:
        """The bot in a file or folder, on a device."""
        where = torch.device(choose_device(device))
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
    ) -> list[BotResponse]:
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
    ) -> list[BotResponse]:
        """As :meth:`respond`, for turns that are tokens already, as in a prepared corpus."""
        ranked = sorted(range(len(contexts)), key=lambda i: sum(map(len, contexts[i])))
        spoken: dict[int, BotResponse] = {}
        size = _N_PER_BATCH if self.device.type == "cpu" else 8 * _N_PER_BATCH
        for start in range(0, len(ranked), size):
            part = ranked[start : start + size]
            responses = self._speak([contexts[i] for i in part], decoding, [seeds[i] for i in part])
            spoken |= dict(zip(part, responses, strict=True))
            if report is not None:
                report(len(spoken))
        return [spoken[i] for i in range(len(contexts))]

    def _speak(self, contexts: list[Contexts], decoding: Decoding, seeds: list[int]) -> list[BotResponse]:
        window = self.model.shape.window
        batch = batch_of(contexts, self._topics(contexts), window).to(self.device)
        generated = speak(self.model, batch, decoding, self._may_be_said, seeds)
        return [
            BotResponse(self.vocabulary.decode(row.tokens), row.log_prob, min(len(context), window.n_turns))
            for row, context in zip(generated, contexts, strict=True)
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
