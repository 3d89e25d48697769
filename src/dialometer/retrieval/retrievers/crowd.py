"""The crowd as a retriever: answers in the order of their mean rating, for questions that were judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from dialometer.errors import DialometerError
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.labels.crowd_ratings import CrowdRatings, read_crowd_ratings
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever


@RETRIEVERS.register("crowd")
class Crowd(Retriever):
    """Knows only the questions that were judged (by their ids), and of each only the answers that were rated."""

    label: ClassVar[str] = "Crowd's rating"
    about: ClassVar[str] = "Answers by the mean rating that raters gave them; what nobody rated is not retrieved."
    ratings: str = Field(default="", description="Table with question, answer and rating.")

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedCrowd:
        if not self.ratings:
            raise DialometerError(
                "the crowd needs ratings", remedy="give --crowd, a table or the folder of a judged study"
            )
        return FittedCrowd(self, kb, read_crowd_ratings(self.ratings, kb))


class FittedCrowd(FittedRetriever):
    """Ratings that are already read."""

    options: Crowd

    def __init__(self, options: Crowd, kb: KnowledgeBase, ratings: CrowdRatings) -> None:
        super().__init__(options, kb)
        self.ratings = ratings

    def prepare(self, queries: Sequence[Query]) -> Floats:
        return self.ratings.matrix(queries, len(self.kb.answers)).astype(np.float32)

    def score_block(self, prepared: Floats, first: int, last: int) -> Floats:
        return prepared[:, first:last]

    def explain(self, query: Query, answer: int) -> str:
        n = self.ratings.by_question.get(query.id, {}).get(answer, (0.0, 0))[1]
        return f"mean of {n} rating{'' if n == 1 else 's'}"
