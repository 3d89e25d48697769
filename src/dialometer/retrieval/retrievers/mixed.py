"""Encoder q-Q and q-A mixed: a recorded question counts most, the answer itself where no question comes near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever
from dialometer.retrieval.retrievers.encoder import Encoder, FittedEncoder
from dialometer.retrieval.retrievers.encoder_answer import EncoderAnswer, FittedEncoderAnswer


@RETRIEVERS.register("mixed")
class Mixed(Retriever):
    """Cosine with the nearest recorded question plus a share of the cosine with the answer; nothing is trained."""

    label: ClassVar[str] = "Encoder q-Q + q-A"
    about: ClassVar[str] = "Cosine with the nearest recorded question plus 0.3 times the cosine with the answer."
    model: str = Field(default="", description="Folder or Hugging Face name; the packaged all-MiniLM-L6-v2 if empty.")
    answer_share: float = Field(default=0.3, ge=0)

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedMixed:
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

        encoder = TextEncoder(self.model, work)
        by_question = FittedEncoder(Encoder(model=self.model, approximate_from=10**9), kb, encoder)
        return FittedMixed(self, kb, by_question, FittedEncoderAnswer(EncoderAnswer(model=self.model), kb, encoder))


class FittedMixed(FittedRetriever):
    """One encoding of the query serves both; an answer without questions is judged by itself."""

    options: Mixed

    def __init__(
        self, options: Mixed, kb: KnowledgeBase, by_question: FittedEncoder, by_answer: FittedEncoderAnswer
    ) -> None:
        super().__init__(options, kb)
        self.by_question = by_question
        self.by_answer = by_answer

    def prepare(self, queries: Sequence[Query]) -> Floats:
        return self.by_question.prepare(queries)

    def score_block(self, prepared: Floats, first: int, last: int) -> Floats:
        near = np.nan_to_num(self.by_question.score_block(prepared, first, last), nan=0.0)
        mixed = near + self.options.answer_share * self.by_answer.score_block(prepared, first, last)
        return np.asarray(np.round(mixed, 5), dtype=np.float32)

    def explain(self, query: Query, answer: int) -> str:
        own = float(self.by_answer.score_block(self.prepare([query]), answer, answer + 1)[0, 0])
        return f"{self.by_question.explain(query, answer)}; answer itself {own:.2f}"
