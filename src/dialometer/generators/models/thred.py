"""THRED: HRED with topic words. Attention looks at the turns and, beside them, at words of the conversation's topic.

The third system of Santhanam, Karduni, Shaikh (CHI 2020), after Dziri et al. 2018; the topic's share in the output follows
Xing et al. 2017: the probability of a word is that of the language plus, for topic words, one more term, normalised together.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from dialometer.generators.batches import ExampleBatch
from dialometer.generators.generator import GENERATORS, AdditiveAttention, Shape, State
from dialometer.generators.models.hred import Hred
from dialometer.generators.topics import TopicModel


@GENERATORS.register("thred")
class Thred(Hred):
    """Hierarchical encoder and decoder with attention over the context and over its topic words."""

    label: ClassVar[str] = "THRED"
    about: ClassVar[str] = (
        "Hierarchical recurrent encoder and decoder with attention over the turns of the context and over its topic words."
    )
    needs_topics: ClassVar[bool] = True
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
        states, queries = followed = self.decoder.follow(embedded, state)  # (B, T, H) each
        about = state["summary"][:, None].expand_as(queries).to(queries.dtype)
        everywhere = torch.ones_like(state["words"], dtype=torch.bool)
        topic = self.topic_attention(  # (B, T, E)
            torch.cat([queries, about], dim=-1), state["topic_keys"], state["topic_memory"], everywhere
        )
        vectors, state = self.decoder(embedded, followed, state, topic)  # (B, T, E)
        scores = linear(vectors, self.embedding.weight, self.bias).float()  # (B, T, V)
        topical = self.topic_out(torch.cat([states, topic], dim=-1))  # (B, T, E)
        wanted = torch.bmm(topical, state["topic_rows"].to(topical.dtype).transpose(1, 2)).float()  # (B, T, K)
        places = state["words"][:, None].expand_as(wanted)  # (B, T, K): the words of a topic are all different
        joint = torch.logaddexp(scores.gather(-1, places), wanted)
        return scores.scatter(-1, places, joint), state
