"""Parts that the recurrent models share: a two-way encoder, additive attention, and the decoder.

A recurrent layer is of GRUs (Cho et al. 2014) or LSTMs (Hochreiter and Schmidhuber 1997). Both give out a state after each
token; an LSTM also hands on a memory cell, which the decoder carries from token to token beside its state.

Shapes: B conversations, S places attended to, T tokens of the response, E embedding, H hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from dialometer.generators.batches import moved_to

State = dict[str, Tensor]
Cell = Literal["gru", "lstm"]
Attention = Literal["additive", "none"]


class DecoderShape(Protocol):
    """What the decoder needs to know of a model's shape."""

    @property
    def embedding(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def dropout(self) -> float: ...
    @property
    def cell(self) -> Cell: ...
    @property
    def attention(self) -> Attention: ...


_MAX_GROUPS = {"cpu": 6, "cuda": 2}  # a GPU waits for the steps along a line, not for the lines beside each other
_MIN_GROUP = 256  # fewer lines than this do not fill the device


def recurrent_layer(cell: Cell, n_in: int, n_hidden: int) -> nn.GRU | nn.LSTM:
    """One layer of recurrent cells. An LSTM begins by remembering: the bias of its forget gate is 1 (Jozefowicz et al. 2015)."""
    if cell == "gru":
        return nn.GRU(n_in, n_hidden, batch_first=True)
    layer = nn.LSTM(n_in, n_hidden, batch_first=True)
    with torch.no_grad():
        for name, value in (("bias_ih_l0", 1.0), ("bias_hh_l0", 0.0)):
            layer.get_parameter(name)[n_hidden : 2 * n_hidden] = value
    return layer


class Along(NamedTuple):
    """States of a layer after each input (B, T, H), and the memory cell after the last one (B, H) where the layer has one."""

    states: Tensor
    cell: Tensor | None


def along(layer: nn.GRU | nn.LSTM, inputs: Tensor, first: Tensor | None = None, cell: Tensor | None = None) -> Along:
    """A recurrent layer along inputs (B, T, E), from the state ``first`` and the memory ``cell`` (B, H each) or zeros.

    In single precision whatever surrounds it. PyTorch's automatic mixed precision runs recurrent layers in fp16, also where
    bf16 was asked for; a token's part in a mean over ten thousand is below what fp16 holds in full (6e-5).
    """
    with torch.autocast(inputs.device.type, enabled=False):
        begun = None if first is None else first.float()[None].contiguous()
        if isinstance(layer, nn.GRU):
            return Along(layer(inputs.float(), begun)[0], None)
        held = None if begun is None else torch.zeros_like(begun) if cell is None else cell.float()[None].contiguous()
        states, (_, after) = layer(inputs.float(), None if begun is None else (begun, held))
    return Along(states, after[0])


class TwoWayEncoder(nn.Module):
    """Two layers, one from each end (Eq. 1 of the study's paper). What stands after a text's end never reaches its states."""

    def __init__(self, n_in: int, n_hidden: int, cell: Cell = "gru") -> None:
        super().__init__()
        self.ahead = recurrent_layer(cell, n_in, n_hidden // 2)
        self.back = recurrent_layer(cell, n_in, n_hidden // 2)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, E) and lengths (B,) in main memory to states (B, S, H) and summaries (B, H)."""
        places = (lengths[:, None] - 1 - torch.arange(embedded.shape[1])).clamp(min=0)  # (B, S) the text backwards
        mirror = moved_to(places, embedded.device)[..., None]
        ahead = along(self.ahead, embedded).states  # (B, S, H/2)
        back = along(self.back, embedded.gather(1, mirror.expand_as(embedded))).states  # (B, S, H/2)
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


class Followed(NamedTuple):
    """The decoder's first layer along a response: its states (B, T, H), those before each token (the queries of the attention),
    and its memory cell after the last token."""

    states: Tensor
    queries: Tensor
    cell: Tensor | None


class RecurrentDecoder(nn.Module):
    """Two recurrent layers. The first follows the response (Eq. 2); its state before a token is the query (Eq. 3); the second
    reads that state with what was attended to; the output sees the last token, the state and the context (Eq. 4).

    As Eq. 2 is written the first layer does not see the context, so that a known response is read in one call of the GPU's
    fused kernel; the second layer gives the context its way into the state. Without attention the context reaches the
    decoder through its first state alone, as in HRED's paper (Serban et al. 2016, d_0 = tanh(D_0 c + b_0)).
    """

    def __init__(self, shape: DecoderShape, n_extra: int = 0) -> None:
        super().__init__()
        n_embedding, n_hidden, n_memory = shape.embedding, shape.hidden, shape.hidden
        n_seen = n_extra + (n_memory if shape.attention != "none" else 0)
        self.rate = shape.dropout
        self.lower = recurrent_layer(shape.cell, n_embedding, n_hidden)
        self.upper = recurrent_layer(shape.cell, n_hidden + n_seen, n_hidden)
        self.attention = AdditiveAttention(n_hidden, n_memory, n_hidden // 2) if shape.attention != "none" else None
        self.out = nn.Linear(n_embedding + n_hidden + n_seen, n_embedding)
        self.first_lower = nn.Linear(n_memory, n_hidden)
        self.first_upper = nn.Linear(n_memory, n_hidden)
        self.first_cells = nn.Linear(n_memory, 2 * n_hidden) if shape.cell == "lstm" else None

    def begin(self, summary: Tensor, memory: Tensor, is_present: Tensor) -> State:
        """The state before the first token: from the summary (B, M) of the context and the places (B, S, M) to attend to."""
        state = {
            "lower": torch.tanh(self.first_lower(summary)),  # (B, H)
            "upper": torch.tanh(self.first_upper(summary)),  # (B, H)
        }
        if self.first_cells is not None:
            state["lower_cell"], state["upper_cell"] = self.first_cells(summary).chunk(2, dim=-1)  # (B, H) each
        if self.attention is not None:
            state |= {"memory": memory, "keys": self.attention.keys(memory), "is_present": is_present}
        return state

    def follow(self, embedded: Tensor, state: State) -> Followed:
        """The first layer along inputs (B, T, E)."""
        states, cell = along(self.lower, embedded, state["lower"], state.get("lower_cell"))
        queries = torch.cat([state["lower"][:, None].to(states.dtype), states[:, :-1]], dim=1)
        return Followed(states, queries, cell)

    def forward(
        self, embedded: Tensor, followed: Followed, state: State, extra: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Inputs (B, T, E) to output vectors (B, T, E), which the table of embeddings turns into scores.

        ``followed`` is what :meth:`follow` gave; ``extra`` (B, T, X) is attended to by other means, such as topic words.
        """
        states, queries, lower_cell = followed
        seen = [] if extra is None else [extra]
        if self.attention is not None:
            seen.insert(0, self.attention(queries, state["keys"], state["memory"], state["is_present"]))  # (B, T, M)
        upper_in = dropout(torch.cat([states, *seen], dim=-1), self.rate, self.training)
        upper, upper_cell = along(self.upper, upper_in, state["upper"], state.get("upper_cell"))  # (B, T, H)
        vectors = self.out(torch.cat([embedded, upper, *seen], dim=-1))  # (B, T, E)
        new = {**state, "lower": states[:, -1], "upper": upper[:, -1]}
        if lower_cell is not None and upper_cell is not None:
            new |= {"lower_cell": lower_cell, "upper_cell": upper_cell}
        return dropout(vectors, self.rate, self.training), new
