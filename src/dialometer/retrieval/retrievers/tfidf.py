"""TF-IDF q-Q: the answer whose question shares most of the weighted words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dialometer.neural.tfidf import Tfidf, fit_tfidf
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedQuestionMatcher, Floats, Retriever

NO_WORDS = "nothing recorded"


@RETRIEVERS.register("tfidf")
class TfidfRetriever(Retriever):
    """Cosine of TF-IDF vectors between the question asked and each recorded question (Chierici and Habash 2021)."""

    label: ClassVar[str] = "TF-IDF q-Q"
    about: ClassVar[str] = "Highest cosine of TF-IDF vectors between the question and a recorded question."
    analyzer: Literal["word", "char_wb"] = "word"
    shortest: int = Field(default=1, ge=1, le=9, description="Words (or characters) of the shortest n-gram.")
    longest: int = Field(default=1, ge=1, le=9, description="Words (or characters) of the longest n-gram.")

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedTfidf:
        return FittedTfidf(self, kb)


class FittedTfidf(FittedQuestionMatcher):
    """Sparse vectors of all questions; a block is a product of sparse matrices."""

    options: TfidfRetriever

    def __init__(self, options: TfidfRetriever, kb: KnowledgeBase) -> None:
        super().__init__(options, kb)
        how: dict[str, Any] = {
            "analyzer": options.analyzer,
            "ngrams": (options.shortest, max(options.shortest, options.longest)),
        }
        # Where no question holds a word, nothing is like anything, which is no error.
        self.vectors = fit_tfidf(kb.questions, **how) or Tfidf({NO_WORDS: 0}, np.ones(1), **how)
        self.questions = self.vectors(kb.questions or [NO_WORDS])

    def prepare(self, queries: Sequence[Query]) -> Any:
        return self.vectors([query.text for query in queries])

    def question_scores(self, prepared: Any, recorded: Ints) -> Floats:
        cosines = np.asarray((prepared @ self.questions[recorded].T).todense(), dtype=np.float32)
        return np.asarray(np.round(cosines, 6))
