"""What every response generator can do: score a known response in one go, or go on with one token after the other.

A model's state while it speaks is a flat dictionary of tensors whose first dimension is the conversation, so that beams can be
reordered and batches repeated without knowing the model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from dialometer.errors import DialometerError
from dialometer.generators.batches import ExampleBatch, Window, moved_to
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import PAD
from dialometer.registry import Registry, did_you_mean

State = dict[str, Tensor]
M = TypeVar("M", bound="Generator")


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; stored in its checkpoint. ``n_heads`` and ``n_layers`` concern the transformer alone.

    ``n_turns`` is how many turns the model reads; ``max_turns`` the longest context it may be asked about. They differ for a
    model that by its nature answers the last turn alone.
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
        return cls(**{**values, "max_turns": max(values.get("max_turns", cls.max_turns), values.get("n_turns", 1))})


class Generator(nn.Module):
    """A model of responses. Subclasses stand in ``generators/models``, one file each."""

    label: ClassVar[str]
    about: ClassVar[str]
    """A sentence for the methods section of a study."""
    default_shape: ClassVar[Mapping[str, Any]] = {}
    needs_topics: ClassVar[bool] = False
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
                    for gate in weight.chunk(3):
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


def reordered(state: State, rows: Tensor) -> State:
    """The state with its conversations chosen by number: copies for beams, survivors of a step."""
    return {name: value.index_select(0, rows) for name, value in state.items()}


# Parts that the recurrent models share: a two-way encoder, additive attention, and the decoder that attends.
#
# Shapes: B conversations, S places attended to, T tokens of the response, E embedding, H hidden, V vocabulary.


_MAX_GROUPS = {"cpu": 6, "cuda": 2}  # a GPU waits for the steps along a line, not for the lines beside each other
_MIN_GROUP = 256  # fewer lines than this do not fill the device


def along(layer: nn.GRU, inputs: Tensor, first: Tensor | None = None) -> Tensor:
    """States (B, T, H) of a recurrent layer along inputs (B, T, E), from the state ``first`` (B, H) or zeros.

    In single precision whatever surrounds it. PyTorch's automatic mixed precision runs recurrent layers in fp16, also where
    bf16 was asked for; a token's part in a mean over ten thousand is below what fp16 holds in full (6e-5).
    """
    with torch.autocast(inputs.device.type, enabled=False):
        begun = None if first is None else first.float()[None].contiguous()
        states: Tensor = layer(inputs.float(), begun)[0]
    return states


class TwoWayEncoder(nn.Module):
    """Two GRUs, one from each end (Eq. 1 of the study's paper). What stands after a text's end never reaches its states."""

    def __init__(self, n_in: int, n_hidden: int) -> None:
        super().__init__()
        self.ahead = nn.GRU(n_in, n_hidden // 2, batch_first=True)
        self.back = nn.GRU(n_in, n_hidden // 2, batch_first=True)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, E) and lengths (B,) in main memory to states (B, S, H) and summaries (B, H)."""
        places = (lengths[:, None] - 1 - torch.arange(embedded.shape[1])).clamp(min=0)  # (B, S) the text backwards
        mirror = moved_to(places, embedded.device)[..., None]
        ahead = along(self.ahead, embedded)  # (B, S, H/2)
        back = along(self.back, embedded.gather(1, mirror.expand_as(embedded)))  # (B, S, H/2)
        last = mirror[:, :1].expand(-1, -1, ahead.shape[-1])  # (B, 1, H/2) where the text ends
        summary = torch.cat([ahead.gather(1, last), back.gather(1, last)], dim=-1)[:, 0]  # (B, H)
        return torch.cat([ahead, back.gather(1, mirror.expand_as(back))], dim=-1), summary

    def summaries(self, embed: Callable[[Tensor], Tensor], tokens: Tensor, lengths: Tensor) -> Tensor:
        """Tokens (M, L) to summaries (M, H), in a few groups of alike lengths, so that little is spent on padding."""
        ranked = torch.argsort(lengths)
        n_groups = min(_MAX_GROUPS.get(tokens.device.type, 1), -(-len(lengths) // _MIN_GROUP))
        parts = []
        for group in ranked.chunk(n_groups):
            width = int(lengths[group].max())
            shown = tokens.index_select(0, moved_to(group, tokens.device))[:, :width]  # (m, width)
            parts.append(self(embed(shown), lengths[group])[1])
        back = torch.empty_like(ranked).scatter_(0, ranked, torch.arange(len(ranked)))
        return torch.cat(parts).index_select(0, moved_to(back, tokens.device))


class AdditiveAttention(nn.Module):
    """Bahdanau, Cho, Bengio 2015: energies ``v · tanh(W query + U key)``, here Eq. 3 of the study's paper."""

    is_worth_compiling = True  # one kernel instead of a table of B·T·S·A numbers in memory

    def __init__(self, n_query: int, n_key: int, n_inner: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(n_query, n_inner, bias=False)
        self.of_key = nn.Linear(n_key, n_inner)
        self.energy = nn.Linear(n_inner, 1, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """The part that does not depend on the query, computed once: (B, S, M) to (B, S, A)."""
        out: Tensor = self.of_key(memory)
        return out

    def forward(self, queries: Tensor, keys: Tensor, memory: Tensor, is_present: Tensor) -> Tensor:
        """Queries (B, T, Q) over S places give contexts (B, T, M); absent places have no weight."""
        return torch.bmm(self.weights(queries, keys, is_present).to(memory.dtype), memory)

    def weights(self, queries: Tensor, keys: Tensor, is_present: Tensor) -> Tensor:
        """(B, T, S), each row sums to one."""
        inner = torch.tanh(self.of_query(queries)[:, :, None, :] + keys[:, None, :, :])  # (B, T, S, A)
        energies = self.energy(inner)[..., 0].float()  # (B, T, S)
        return torch.softmax(energies.masked_fill(~is_present[:, None, :], float("-inf")), dim=-1)


class AttentiveDecoder(nn.Module):
    """Two recurrent layers. The first follows the response (Eq. 2); its state before a token is the query (Eq. 3); the second
    reads that state with what was attended to; the output sees the last token, the state and the context (Eq. 4).

    As Eq. 2 is written the first layer does not see the context, so that a known response is read in one call of the GPU's
    fused kernel; the second layer gives the context its way into the state.
    """

    def __init__(self, n_embedding: int, n_hidden: int, n_memory: int, rate: float, n_extra: int = 0) -> None:
        super().__init__()
        self.rate = rate
        self.lower = nn.GRU(n_embedding, n_hidden, batch_first=True)
        self.upper = nn.GRU(n_hidden + n_memory + n_extra, n_hidden, batch_first=True)
        self.attention = AdditiveAttention(n_hidden, n_memory, n_hidden // 2)
        self.out = nn.Linear(n_embedding + n_hidden + n_memory + n_extra, n_embedding)
        self.first_lower = nn.Linear(n_memory, n_hidden)
        self.first_upper = nn.Linear(n_memory, n_hidden)

    def begin(self, summary: Tensor, memory: Tensor, is_present: Tensor) -> State:
        """The state before the first token: from the summary (B, M) of the context and the places (B, S, M) to attend to."""
        return {
            "lower": torch.tanh(self.first_lower(summary)),  # (B, H)
            "upper": torch.tanh(self.first_upper(summary)),  # (B, H)
            "memory": memory,
            "keys": self.attention.keys(memory),
            "is_present": is_present,
        }

    def follow(self, embedded: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """The first layer along inputs (B, T, E): its states (B, T, H) and those before each input, the queries."""
        states = along(self.lower, embedded, state["lower"])
        queries = torch.cat([state["lower"][:, None].to(states.dtype), states[:, :-1]], dim=1)
        return states, queries

    def forward(
        self, embedded: Tensor, followed: tuple[Tensor, Tensor], state: State, extra: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Inputs (B, T, E) to output vectors (B, T, E), which the table of embeddings turns into scores.

        ``followed`` is what :meth:`follow` gave; ``extra`` (B, T, X) is attended to by other means, such as topic words.
        """
        states, queries = followed
        context = self.attention(queries, state["keys"], state["memory"], state["is_present"])  # (B, T, M)
        seen = [context] if extra is None else [context, extra]
        upper_in = dropout(torch.cat([states, *seen], dim=-1), self.rate, self.training)
        upper = along(self.upper, upper_in, state["upper"])  # (B, T, H)
        vectors = self.out(torch.cat([embedded, upper, *seen], dim=-1))  # (B, T, E)
        new = {**state, "lower": states[:, -1], "upper": upper[:, -1]}
        return dropout(vectors, self.rate, self.training), new
