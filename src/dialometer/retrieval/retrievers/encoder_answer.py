"""Encoder q-A: the answer that lies nearest to the question itself in a sentence encoder's space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever
from dialometer.retrieval.vectors import cosines

if TYPE_CHECKING:
    from dialometer.neural.encoder import TextEncoder


@RETRIEVERS.register("encoder-answer")
class EncoderAnswer(Retriever):
    """Cosine between the question asked and each answer: needs no recorded questions."""

    label: ClassVar[str] = "Encoder q-A"
    about: ClassVar[str] = "Highest cosine of sentence embeddings between the question and an answer."
    model: str = Field(default="", description="Folder or Hugging Face name; the packaged all-MiniLM-L6-v2 if empty.")

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedEncoderAnswer:
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

        return FittedEncoderAnswer(self, kb, TextEncoder(self.model, work))


class FittedEncoderAnswer(FittedRetriever):
    """Vectors of all answers."""

    options: EncoderAnswer

    def __init__(self, options: EncoderAnswer, kb: KnowledgeBase, encoder: TextEncoder) -> None:
        super().__init__(options, kb)
        self.encoder = encoder
        self.answers = encoder.encode(kb.texts, "Encoding answers")

    def prepare(self, queries: Sequence[Query]) -> Floats:
        return self.encoder.encode([query.text for query in queries])

    def score_block(self, prepared: Floats, first: int, last: int) -> Floats:
        return cosines(prepared, self.answers[first:last])
