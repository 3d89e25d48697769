"""A small transformer decoder: the modern reference under the same interface.

Context and response are one line of tokens; only the response is scored. Blocks normalise before (Xiong et al. 2020),
positions turn the queries and keys (Su et al. 2021), attention runs in PyTorch's fused kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import dropout, gelu, linear, scaled_dot_product_attention

from dialometer.errors import DialometerError
from dialometer.generators.batches import ExampleBatch, moved_to
from dialometer.generators.generator import GENERATORS, Generator, Shape
from dialometer.generators.recurrent import State
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import PAD

# Without cuDNN's kernel, which is planned anew for every length: there are hundreds of them, a fifth of a second each.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class TransformerBlock(nn.Module):
    """Attention and a two-layer network, each added to what came in."""

    is_worth_compiling = True  # its norms, turns and sums become a few kernels

    def __init__(self, width: int, n_heads: int, rate: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.rate = rate
        self.before_attention = nn.LayerNorm(width)
        self.before_network = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.attended = nn.Linear(width, width, bias=False)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, turn: Tensor, mask: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, T, E) with positions (B, 1, T, D/2) and mask (B, 1, T, P+T); past keys and values (B, 2, heads, P, D)."""
        query, key, value = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, heads, T, D)
            for part in self.query_key_value(self.before_attention(x)).chunk(3, dim=-1)
        )
        query, key = _turned(query, turn), _turned(key, turn)
        present = torch.stack([key, value], dim=1)  # (B, 2, heads, T, D)
        if past is not None:
            present = torch.cat([past.to(present.dtype), present], dim=3)
        rate = self.rate if self.training else 0.0
        seen = scaled_dot_product_attention(query, present[:, 0], present[:, 1], attn_mask=mask, dropout_p=rate)
        x = x + dropout(self.attended(seen.transpose(1, 2).flatten(2)), self.rate, self.training)
        wide = gelu(self.widen(self.before_network(x)))  # (B, T, 4E)
        return x + dropout(self.narrow(wide), self.rate, self.training), present


@GENERATORS.register("transformer")
class Transformer(Generator):
    """Decoder-only transformer over the turns and the response."""

    label: ClassVar[str] = "Transformer"
    about: ClassVar[str] = "Small decoder-only transformer over the words of the context."
    default_shape: ClassVar[Mapping[str, Any]] = {"n_layers": 6, "n_heads": 4}
    is_compiled_by_default: ClassVar[bool] = True
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, shape: Shape, topics: TopicModel | None = None) -> None:
        super().__init__(shape, topics)
        if shape.embedding % (2 * shape.n_heads):
            raise DialometerError(
                f"{shape.n_heads} heads do not divide an embedding of {shape.embedding} into even parts",
                remedy="make the embedding a multiple of twice the heads",
            )
        self.embedding = nn.Embedding(shape.n_tokens, shape.embedding, padding_idx=PAD)
        self.blocks = nn.ModuleList(
            TransformerBlock(shape.embedding, shape.n_heads, shape.dropout) for _ in range(shape.n_layers)
        )
        self.last = nn.LayerNorm(shape.embedding)
        self.bias = nn.Parameter(self.embedding.weight.new_zeros(shape.n_tokens))
        self.begin_weights()

    def forward(self, batch: ExampleBatch) -> Tensor:
        source, n_before = _to_the_right(batch.source, batch.source_lengths)  # (B, S)
        tokens = torch.cat([source, batch.inputs], dim=1)  # (B, S + T)
        is_text = torch.arange(tokens.shape[1], device=tokens.device) >= n_before[:, None]  # (B, S + T)
        x, _ = self._through(tokens, n_before, is_text, 0, None)
        vectors = x[:, source.shape[1] :]  # (B, T, E): only the response is scored
        return linear(vectors, self.embedding.weight, self.bias)

    def start(self, batch: ExampleBatch) -> State:
        source, n_before = _to_the_right(batch.source, batch.source_lengths)
        is_text = torch.arange(source.shape[1], device=source.device) >= n_before[:, None]
        _, past = self._through(source, n_before, is_text, 0, None)
        return {**past, "n_before": n_before, "is_text": is_text}

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        is_text = torch.cat([state["is_text"], torch.ones_like(state["is_text"][:, :1])], dim=1)  # (B, P + 1)
        x, past = self._through(tokens[:, None], state["n_before"], is_text, state["is_text"].shape[1], state)
        scores = linear(x[:, 0], self.embedding.weight, self.bias)
        return scores, {**past, "n_before": state["n_before"], "is_text": is_text}

    def _through(
        self, tokens: Tensor, n_before: Tensor, is_text: Tensor, n_past: int, past: State | None
    ) -> tuple[Tensor, State]:
        """Tokens (B, T) after ``n_past`` earlier ones, through all blocks; padding stands before the text."""
        n_new = tokens.shape[1]
        places = torch.arange(n_past, n_past + n_new, device=tokens.device)  # (T,)
        positions = (places - n_before[:, None]).clamp(min=0)  # (B, T)
        everything = torch.arange(n_past + n_new, device=tokens.device)  # (P + T,)
        is_before = everything <= places[:, None]  # (T, P + T)
        itself = everything == places[:, None]  # padding attends to itself, so that its row is defined
        mask = ((is_before & is_text[:, None, :]) | itself)[:, None]  # (B, 1, T, P + T)
        x = dropout(self.embedding(tokens) * self.shape.embedding**0.5, self.shape.dropout, self.training)
        angles = _angles(positions, self.shape.embedding // self.shape.n_heads)
        new: State = {}
        with sdpa_kernel(_KERNELS):
            for number, block in enumerate(self.blocks):
                x, new[f"block{number}"] = block(x, angles, mask, None if past is None else past[f"block{number}"])
        return self.last(x), new


def _to_the_right(source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The source with its padding before the text, so that what is said next follows at once: (B, S), padding (B,)."""
    n_before = source.shape[1] - moved_to(lengths, source.device)  # (B,)
    places = torch.arange(source.shape[1], device=source.device) - n_before[:, None]  # (B, S)
    moved = source.gather(1, places.clamp(min=0))
    return moved.masked_fill(places < 0, PAD), n_before


def _angles(positions: Tensor, width: int) -> Tensor:
    """Angles of the rotary positions: (B, T) to (B, 1, T, width / 2)."""
    rates = 10000.0 ** (-torch.arange(0, width, 2, device=positions.device) / width)
    return (positions[..., None] * rates)[:, None]


def _turned(x: Tensor, angles: Tensor) -> Tensor:
    """Pairs of numbers turned by their position's angles."""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
