"""TF-IDF q-Q: the answer whose question shares most of the weighted words (scikit-learn)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, ByRecorded, Floats, Retriever

NO_WORDS = "nothing recorded"


@RETRIEVERS.register("tfidf")
class Tfidf(Retriever):
    """Cosine of TF-IDF vectors between the question asked and each recorded question (Chierici and Habash 2021)."""

    label: ClassVar[str] = "TF-IDF q-Q"
    about: ClassVar[str] = "Highest cosine of TF-IDF vectors between the question and a recorded question."
    analyzer: Literal["word", "char_wb"] = "word"
    shortest: int = Field(default=1, ge=1, le=9, description="Words (or characters) of the shortest n-gram.")
    longest: int = Field(default=1, ge=1, le=9, description="Words (or characters) of the longest n-gram.")

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedTfidf:
        return FittedTfidf(self, kb)


class FittedTfidf(ByRecorded):
    """Sparse vectors of all questions; a block is a product of sparse matrices."""

    options: Tfidf

    def __init__(self, options: Tfidf, kb: KnowledgeBase) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - heavy

        super().__init__(options, kb)
        self.vectors = TfidfVectorizer(
            analyzer=options.analyzer, ngram_range=(options.shortest, max(options.shortest, options.longest))
        )
        try:
            self.vectors.fit(kb.questions)
        except ValueError:  # no question holds a word: then nothing is like anything, which is no error
            self.vectors.fit([NO_WORDS])
        self.questions = self.vectors.transform(kb.questions or [NO_WORDS])

    def prepare(self, queries: Sequence[Query]) -> Any:
        return self.vectors.transform([query.text for query in queries])

    def of_recorded(self, prepared: Any, recorded: Ints) -> Floats:
        cosines = np.asarray((prepared @ self.questions[recorded].T).todense(), dtype=np.float32)
        return np.asarray(np.round(cosines, 6))
