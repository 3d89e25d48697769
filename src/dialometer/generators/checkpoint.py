"""A trained bot in one file: weights in half precision, and with them the sizes, the vocabulary, the topics and the record
of the training, so that the file alone is enough to talk and to tell where it came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from dialometer._version import __version__
from dialometer.errors import DialometerError
from dialometer.generators.generator import Generator, Shape, build
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import Vocabulary

BOT_FILE = "bot.safetensors"
_WEIGHTS = "weights."
_TOPICS = "topics."
FORM = 1


@dataclass(frozen=True)
class Checkpoint:
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
        "topic_prior": None if topics is None else topics.prior,
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


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """The bot in a file, ready to speak."""
    path = bot_path(path)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with safe_open(path, framework="pt") as kept:
            metadata = kept.metadata() or {}
            tensors = {key: kept.get_tensor(key) for key in kept.keys()}  # noqa: SIM118 - not a dictionary
        about = json.loads(metadata["about"])
        vocabulary = Vocabulary(metadata["vocabulary"])
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        remedy = "name a folder or file that 'dialometer bots train' wrote"
        raise DialometerError("no trained bot", where=str(path), remedy=remedy) from error
    if about.get("form") != FORM:
        raise DialometerError("the bot was written by another version", where=str(path), remedy="train it again")
    model = _model(about, tensors, path)
    if model.shape.n_tokens != len(vocabulary):
        raise DialometerError(
            f"the model has {model.shape.n_tokens} tokens and its vocabulary {len(vocabulary)}",
            where=str(path),
            remedy="train it again",
        )
    return Checkpoint(about["model"], model.to(device).eval(), vocabulary, about["record"], path, digest)


def _model(about: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], path: Path) -> Generator:
    topics = None
    if about["topic_prior"] is not None:
        words = tensors[_TOPICS + "words"].numpy().astype("int64")
        topics = TopicModel(tensors[_TOPICS + "weights"].numpy(), words, float(about["topic_prior"]))
    model = build(about["model"], Shape.from_json(about["shape"]), topics)
    weights = {key.removeprefix(_WEIGHTS): value for key, value in tensors.items() if key.startswith(_WEIGHTS)}
    try:
        model.load_state_dict({key: value.float() for key, value in weights.items()})
    except RuntimeError as error:
        raise DialometerError(
            f"the weights do not fit a model '{about['model']}'", where=str(path), remedy="train it again"
        ) from error
    return model


def same_vocabulary(checkpoint: Checkpoint, vocabulary: Vocabulary, where: str) -> None:
    """Refuses to mix tokens numbered in different ways."""
    if checkpoint.vocabulary.fingerprint != vocabulary.fingerprint:
        raise DialometerError(
            f"'{checkpoint.path}' was trained with another vocabulary ({checkpoint.vocabulary.fingerprint}) "
            f"than this corpus has ({vocabulary.fingerprint})",
            where=where,
            remedy="use the corpus it was trained on, or train it on this one",
        )
