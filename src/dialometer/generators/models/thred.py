"""THRED: HRED with topic words. Attention looks at the turns and, beside them, at words of the conversation's topic.

The third system of Santhanam, Karduni, Shaikh (CHI 2020), after Dziri et al. 2018; the topic's share in the output follows
Xing et al. 2017: the probability of a word is that of the language plus, for topic words, one more term, normalised together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from dialometer.generators.batches import ExampleBatch
from dialometer.generators.generator import GENERATORS, Shape
from dialometer.generators.models.hred import Hred
from dialometer.generators.recurrent import AdditiveAttention, State
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import PAD


@GENERATORS.register("thred")
class Thred(Hred):
    """Hierarchical encoder and decoder with attention over the context and over its topic words."""

    label: ClassVar[str] = "THRED"
    about: ClassVar[str] = (
        "Hierarchical recurrent encoder and decoder that attends to the turns of the context and to its topic words."
    )
    needs_topics: ClassVar[bool] = True
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {**Hred.choices, "attention": ("additive",)}
    topic_words: Tensor

    def __init__(self, shape: Shape, topics: TopicModel | None = None) -> None:
        super().__init__(shape, topics)
        assert topics is not None
        words = torch.from_numpy(topics.top_words(shape.n_topic_words))  # (number of topics, K)
        self.register_buffer("topic_words", words, persistent=False)
        # The query of the topic attention is the decoder's state joined with the context's, so that it fits what was said.
        self.topic_attention = AdditiveAttention(2 * shape.hidden, shape.embedding, shape.hidden // 2)
        self.topic_out = nn.Linear(shape.hidden + shape.embedding, shape.embedding)
        self.begin_weights()

    def start(self, batch: ExampleBatch) -> State:
        memory, summary, is_present = self.read(batch)
        words = self.topic_words[batch.topics]  # (B, K)
        embedded = self._embed(words)  # (B, K, E)
        return {
            **self.decoder.begin(summary, memory, is_present),
            "summary": summary,
            "words": words,
            "topic_memory": embedded,
            "topic_keys": self.topic_attention.keys(embedded),
            "topic_rows": self.embedding(words),  # (B, K, E)
        }

    def _speak(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Inputs (B, T, E) to scores (B, T, V)."""
        states, queries, _ = followed = self.decoder.follow(embedded, state)  # (B, T, H) each
        about = state["summary"][:, None].expand_as(queries).to(queries.dtype)
        is_word = state["words"] != PAD  # (B, K)
        topic = self.topic_attention(  # (B, T, E)
            torch.cat([queries, about], dim=-1), state["topic_keys"], state["topic_memory"], is_word
        )
        vectors, state = self.decoder(embedded, followed, state, topic)  # (B, T, E)
        scores = linear(vectors, self.embedding.weight, self.bias).float()  # (B, T, V)
        topical = self.topic_out(torch.cat([states, topic], dim=-1))  # (B, T, E)
        wanted = torch.bmm(topical, state["topic_rows"].to(topical.dtype).transpose(1, 2)).float()  # (B, T, K)
        wanted = wanted.masked_fill(
            ~is_word[:, None], float("-inf")
        )  # places that a short topic leaves empty add nothing
        places = state["words"][:, None].expand_as(wanted)  # (B, T, K): the words of a topic are all different
        alone = scores.gather(-1, places)
        return scores.scatter_add(-1, places, torch.logaddexp(alone, wanted) - alone), state
