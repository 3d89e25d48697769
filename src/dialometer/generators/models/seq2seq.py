"""Seq2Seq: a two-way encoder over the words of the context, attention over them, and a decoder.

The first system of Santhanam, Karduni, Shaikh (CHI 2020): Sutskever et al. 2014 with the attention of Bahdanau et al. 2015.
By default it answers the last turn alone, as a message-and-reply model does; with ``n_turns`` above one the turns are read as
one line of words. With ``attention="none"`` the decoder knows the context by its first state alone (Sutskever et al. 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from dialometer.generators.batches import ExampleBatch
from dialometer.generators.generator import GENERATORS, Generator, Shape
from dialometer.generators.recurrent import RecurrentDecoder, State, TwoWayEncoder
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import PAD


@GENERATORS.register("seq2seq")
class Seq2Seq(Generator):
    """Encoder and decoder over the words of the last turn."""

    label: ClassVar[str] = "Seq2Seq"
    about: ClassVar[str] = "Recurrent encoder and decoder over the words of the context."
    default_shape: ClassVar[Mapping[str, Any]] = {"n_turns": 1}

    def __init__(self, shape: Shape, topics: TopicModel | None = None) -> None:
        super().__init__(shape, topics)
        self.embedding = nn.Embedding(shape.n_tokens, shape.embedding, padding_idx=PAD)
        self.encoder = TwoWayEncoder(shape.embedding, shape.hidden, shape.cell)
        self.decoder = RecurrentDecoder(shape)
        self.bias = nn.Parameter(self.embedding.weight.new_zeros(shape.n_tokens))
        self.begin_weights()

    def forward(self, batch: ExampleBatch) -> Tensor:
        scores, _ = self._speak(self._embed(batch.inputs), self.start(batch))
        return scores

    def start(self, batch: ExampleBatch) -> State:
        memory, summary = self.encoder(self._embed(batch.source), batch.source_lengths)  # (B, S, H), (B, H)
        state: State = self.decoder.begin(summary, memory, batch.source != PAD)
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        scores, state = self._speak(self._embed(tokens[:, None]), state)
        return scores[:, 0], state

    def _speak(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Inputs (B, T, E) to scores (B, T, V)."""
        vectors, state = self.decoder(embedded, self.decoder.follow(embedded, state), state)  # (B, T, E)
        return linear(vectors, self.embedding.weight, self.bias), state

    def _embed(self, tokens: Tensor) -> Tensor:
        return dropout(self.embedding(tokens) * self.shape.embedding**0.5, self.shape.dropout, self.training)
