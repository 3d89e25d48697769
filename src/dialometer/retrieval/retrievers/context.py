"""Context-aware retrieval: what was said before helps a short follow-up ("Which one did you prefer?") to find its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query, with_context
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever
from dialometer.retrieval.retrievers.mixed import FittedMixed, Mixed


@RETRIEVERS.register("context")
class Context(Retriever):
    """The mixed encoder's score of the turn, plus a share of its score of the turn together with those before."""

    label: ClassVar[str] = "Encoder + context"
    about: ClassVar[str] = (
        "The mixed encoder on the turn and, with a smaller share, on the turn after what came before."
    )
    model: str = Field(default="", description="Folder or Hugging Face name; the packaged all-MiniLM-L6-v2 if empty.")
    answer_share: float = Field(default=0.3, ge=0)
    context_share: float = Field(default=0.3, ge=0)
    n_turns: int = Field(default=1, ge=1, le=8, description="Turns before the question that are taken along.")

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedContext:
        return FittedContext(self, kb, Mixed(model=self.model, answer_share=self.answer_share).fit(kb, work))


class FittedContext(FittedRetriever):
    """Two encodings per question; one where nothing was said before, so that first questions rank as without context."""

    options: Context

    def __init__(self, options: Context, kb: KnowledgeBase, mixed: FittedMixed) -> None:
        super().__init__(options, kb)
        self.mixed = mixed

    def prepare(self, queries: Sequence[Query]) -> tuple[Floats, Floats]:
        alone = self.mixed.prepare(queries)
        together = self.mixed.prepare([Query(with_context(query, self.options.n_turns)) for query in queries])
        return alone, together

    def score_block(self, prepared: tuple[Floats, Floats], first: int, last: int) -> Floats:
        alone, together = (self.mixed.score_block(vectors, first, last) for vectors in prepared)
        share = self.options.context_share
        return np.asarray(np.round((alone + share * together) / (1 + share), 5), dtype=np.float32)

    def explain(self, query: Query, answer: int) -> str:
        return self.mixed.explain(query, answer)
