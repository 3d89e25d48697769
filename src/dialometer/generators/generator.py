"""What every response generator can do: score a known response in one go, or go on with one token after the other.

A model's state while it speaks is a flat dictionary of tensors whose first dimension is the conversation, so that beams can be
reordered and batches repeated without knowing the model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dialometer.errors import DialometerError
from dialometer.generators.batches import ExampleBatch, Window
from dialometer.generators.recurrent import Attention, Cell, State
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import PAD
from dialometer.registry import Registry, did_you_mean

M = TypeVar("M", bound="Generator")
LARGEST_SIZE = 1_000_000
"""No size of a model comes near it; a checkpoint that says more is damaged."""


@dataclass(frozen=True)
class Shape:
    """How a model is built; stored in its checkpoint. ``n_heads`` and ``n_layers`` concern the transformer alone, ``cell`` and
    ``attention`` the recurrent models.

    ``n_turns`` is how many turns the model reads; ``max_turns`` the longest context it may be asked about. They differ for a
    model that by its nature answers the last turn alone. Defaults are also what a checkpoint means that does not say, so
    they never change.
    """

    n_tokens: int
    n_turns: int = 5
    max_turns: int = 5
    n_turn_tokens: int = 64
    embedding: int = 256
    hidden: int = 448
    n_layers: int = 6
    n_heads: int = 4
    dropout: float = 0.2
    n_topic_words: int = 50
    cell: Cell = "gru"
    attention: Attention = "additive"

    def __post_init__(self) -> None:
        for name, kinds in (("cell", get_args(Cell)), ("attention", get_args(Attention))):
            given = getattr(self, name)
            if given not in kinds:
                raise DialometerError(f"there is no {name} '{given}'", remedy=f"use {' or '.join(kinds)}")
        for entry in fields(self):
            size = getattr(self, entry.name)
            if entry.type == "int" and (type(size) is not int or not 1 <= size <= LARGEST_SIZE):
                message = f"the size '{entry.name}' is {str(size)[:40]}"
                raise DialometerError(message, remedy=f"use a whole number from 1 to {LARGEST_SIZE:,}")
        if type(self.dropout) not in (int, float) or not 0 <= self.dropout < 1:
            raise DialometerError(f"the dropout is {str(self.dropout)[:40]}", remedy="use a number from 0 to below 1")

    @property
    def window(self) -> Window:
        """How much of a conversation the model sees."""
        return Window(self.n_turns, self.n_turn_tokens)

    def as_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Shape:
        """From the checkpoint or from options; an unknown size is an error."""
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise DialometerError(f"a model has no size '{name}'", remedy=did_you_mean(name, known))
        turns = values.get("max_turns", cls.max_turns), values.get("n_turns", 1)
        if "n_tokens" not in values or not all(isinstance(n, int) for n in turns):
            raise DialometerError("the sizes of a model are incomplete", remedy="train it again")
        return cls(**{**values, "max_turns": max(turns)})


class Generator(nn.Module):
    """A model of responses. Subclasses stand in ``generators/models``, one file each."""

    label: ClassVar[str]
    about: ClassVar[str]
    """What the model is, without its cells and attention, which :attr:`description` adds."""
    default_shape: ClassVar[Mapping[str, Any]] = {}
    needs_topics: ClassVar[bool] = False
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"cell": get_args(Cell), "attention": get_args(Attention)}
    """What of a shape may be chosen for this model; a choice that is not here is refused rather than ignored."""
    is_compiled_by_default: ClassVar[bool] = False
    """Whether ``torch.compile`` pays on a GPU (see docs/explanation/generators.md for what was measured)."""
    bias: nn.Parameter
    """What every token's score begins with (V,)."""

    def __init__(self, shape: Shape, topics: TopicModel | None = None) -> None:
        super().__init__()
        self.shape = shape
        self.topics = topics

    @abstractmethod
    def forward(self, batch: ExampleBatch) -> Tensor:
        """Scores of the next token after each of the batch's inputs (B, T, V), not normalised."""

    @abstractmethod
    def start(self, batch: ExampleBatch) -> State:
        """The state after reading the context, before the first token of the response."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Scores after one more token (B,) for each conversation: (B, V), and the state from there on."""

    @property
    def description(self) -> str:
        """A sentence or two for the methods section of a study."""
        built = [f"{self.shape.cell.upper()} cells"] if "cell" in self.choices else []
        if "attention" in self.choices:
            built.append("no attention" if self.shape.attention == "none" else f"{self.shape.attention} attention")
        return " ".join([self.about, f"{', '.join(built)}." if built else ""]).strip()

    @property
    def n_parameters(self) -> int:
        """Weights that are learned, shared ones counted once."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def compile_parts(self) -> None:
        """Compiles the parts where it pays: those that do much arithmetic outside of the vendor's own kernels."""
        for part in self.modules():
            if getattr(part, "is_worth_compiling", False):
                part.compile(dynamic=True)

    def begin_weights(self) -> None:
        """Starting values: normal numbers for tables, orthogonal matrices inside recurrent layers.

        Models multiply what they read from a table by the root of its width, since the same table scores the output.
        """
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if "embedding" in name:
                    nn.init.normal_(weight, std=self.shape.embedding**-0.5)
                    weight[PAD] = 0.0
                elif "weight_hh" in name:
                    for gate in torch.split(weight, weight.shape[1]):
                        nn.init.orthogonal_(gate)
                elif weight.ndim > 1:
                    nn.init.xavier_uniform_(weight)

    def begin_with_frequencies(self, counts: npt.NDArray[np.int64]) -> None:
        """Lets scores begin at how often each token (V,) is said, so that no step is spent on learning that.

        Their exponentials sum to the size of the vocabulary, beside which a topic word's second term starts small.
        """
        shares = (counts + 1.0) / (counts.sum() + len(counts))
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(np.log(shares * len(counts))))


GENERATORS: Registry[type[Generator]] = Registry("generator", "dialometer.generators.models")


def build(name: str, shape: Shape, topics: TopicModel | None = None) -> Generator:
    """A model with fresh weights; one that speaks of topics needs them."""
    kind = GENERATORS.get(name)
    if kind.needs_topics and topics is None:
        raise DialometerError(
            f"the model '{name}' needs topics, and the corpus has none", remedy="prepare it with --topics 50"
        )
    return kind(shape, topics if kind.needs_topics else None)


def shape_of(kind: type[Generator], n_tokens: int, given: Mapping[str, Any]) -> Shape:
    """The shape of a new model: its own defaults with what was asked for; refuses what the model does not have."""
    for name, known in Generator.choices.items():
        allowed = kind.choices.get(name, ())
        if name in given and given[name] in known and given[name] not in allowed:
            remedy = f"use {' or '.join(allowed)}" if allowed else f"leave --{name} out"
            raise DialometerError(f"{kind.label} has no {name} '{given[name]}'", where=f"--{name}", remedy=remedy)
    return Shape.from_json({**kind.default_shape, **given, "n_tokens": n_tokens})


def reordered(state: State, rows: Tensor) -> State:
    """The state with its conversations chosen by number: copies for beams, survivors of a step."""
    return {name: value.index_select(0, rows) for name, value in state.items()}
