"""Encoder q-Q: the answer whose question lies nearest in a sentence encoder's space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedQuestionMatcher, Floats, RankedAnswers, Retriever
from dialometer.retrieval.vectors import NearestQuestions, cosines

if TYPE_CHECKING:
    from dialometer.neural.encoder import TextEncoder


@RETRIEVERS.register("encoder")
class Encoder(Retriever):
    """Cosine between the question asked and each recorded question."""

    label: ClassVar[str] = "Encoder q-Q"
    about: ClassVar[str] = "Highest cosine of sentence embeddings between the question and a recorded question."
    model: str = Field(default="", description="Folder or Hugging Face name; the packaged all-MiniLM-L6-v2 if empty.")
    n_layers: int = Field(default=1, ge=0, description="How many of the last layers are averaged; 0 takes all.")
    approximate_from: int = Field(
        default=500_000, ge=1, description="Recorded questions from which faiss searches a part of them only."
    )

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedEncoder:
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

        return FittedEncoder(self, kb, TextEncoder(self.model, work, n_layers=self.n_layers))


class FittedEncoder(FittedQuestionMatcher):
    """Vectors of all recorded questions; exact up to ``approximate_from`` of them."""

    options: Encoder

    def __init__(self, options: Encoder, kb: KnowledgeBase, encoder: TextEncoder) -> None:
        super().__init__(options, kb)
        self.encoder = encoder
        self.questions = encoder.encode(kb.questions, "Encoding questions")
        is_large = len(kb.questions) >= options.approximate_from
        self.nearest = NearestQuestions(kb, self.questions) if is_large else None

    def prepare(self, queries: Sequence[Query]) -> Floats:
        return self.encoder.encode([query.text for query in queries])

    def question_scores(self, prepared: Floats, recorded: Ints) -> Floats:
        return cosines(prepared, self.questions[recorded])

    def _rank_batch(self, queries: Sequence[Query], k: int | None) -> RankedAnswers:
        if self.nearest is None or k is None:
            return super()._rank_batch(queries, k)
        return self.nearest.rank(self.prepare(queries), k)
