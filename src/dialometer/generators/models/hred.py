"""HRED: one encoder for each turn, a second one over the turns, and a decoder.

The second system of Santhanam, Karduni, Shaikh (CHI 2020), after Sordoni et al. 2015 and Serban et al. 2016. As published it has
no attention (``attention="none"``): the last state of the second encoder begins the decoder. By default the decoder also
attends to the states after each turn.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from dialometer.generators.batches import ExampleBatch, moved_to
from dialometer.generators.generator import GENERATORS, Generator, Shape
from dialometer.generators.recurrent import RecurrentDecoder, State, TwoWayEncoder, along, recurrent_layer
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import PAD


@GENERATORS.register("hred")
class Hred(Generator):
    """Hierarchical encoder and decoder; a second level encodes the turns of the context."""

    label: ClassVar[str] = "HRED"
    about: ClassVar[str] = (
        "Hierarchical recurrent encoder and decoder; a second level encodes the turns of the context."
    )

    def __init__(self, shape: Shape, topics: TopicModel | None = None) -> None:
        super().__init__(shape, topics)
        self.embedding = nn.Embedding(shape.n_tokens, shape.embedding, padding_idx=PAD)
        self.of_turn = TwoWayEncoder(shape.embedding, shape.hidden, shape.cell)
        self.of_context = recurrent_layer(shape.cell, shape.hidden, shape.hidden)
        self.decoder = RecurrentDecoder(shape, n_extra=shape.embedding if self.needs_topics else 0)
        self.bias = nn.Parameter(self.embedding.weight.new_zeros(shape.n_tokens))
        if type(self) is Hred:
            self.begin_weights()

    def forward(self, batch: ExampleBatch) -> Tensor:
        scores, _ = self._speak(self._embed(batch.inputs), self.start(batch))
        return scores

    def start(self, batch: ExampleBatch) -> State:
        memory, summary, is_present = self.read(batch)
        state: State = self.decoder.begin(summary, memory, is_present)
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        scores, state = self._speak(self._embed(tokens[:, None]), state)
        return scores[:, 0], state

    def _speak(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Inputs (B, T, E) to scores (B, T, V)."""
        vectors, state = self.decoder(embedded, self.decoder.follow(embedded, state), state)  # (B, T, E)
        return linear(vectors, self.embedding.weight, self.bias), state

    def read(self, batch: ExampleBatch) -> tuple[Tensor, Tensor, Tensor]:
        """States after each turn (B, N, H), the last of each conversation (B, H), and which turns there are (B, N)."""
        device = batch.turns.device
        n_rows, n_turns = batch.turn_lengths.shape
        lengths = batch.turn_lengths.flatten()  # (B·N,)
        present = lengths.nonzero()[:, 0]  # (M,) numbers of the turns that there are, found in main memory
        places = moved_to(present, device)
        turns = batch.turns.flatten(0, 1).index_select(0, places)  # (M, L)
        summaries = self.of_turn.summaries(self._embed, turns, lengths[present])  # (M, H)
        inputs = summaries.new_zeros((n_rows * n_turns, summaries.shape[-1])).index_copy(0, places, summaries)
        inputs = dropout(inputs.view(n_rows, n_turns, -1), self.shape.dropout, self.training)  # (B, N, H)
        states = along(
            self.of_context, inputs
        ).states  # (B, N, H); absent turns stand at the end and change nothing before
        is_present = batch.turn_lengths > 0
        last = moved_to(is_present.sum(dim=1) - 1, device)  # (B,)
        summary = states[torch.arange(n_rows, device=device), last]  # (B, H)
        return states, summary, moved_to(is_present, device)

    def _embed(self, tokens: Tensor) -> Tensor:
        return dropout(self.embedding(tokens) * self.shape.embedding**0.5, self.shape.dropout, self.training)
