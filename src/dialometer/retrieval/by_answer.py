"""From scores of questions to scores of answers: an answer is as good as its best question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase

Floats = NDArray[np.float32]


class ByAnswer:
    """The pairs of a knowledge base in answer order, so that a stretch of answers is a stretch of pairs."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.question = kb.pair_question
        counts = kb.n_questions_of
        self.first_pair = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def questions(self, first: int, last: int) -> Ints:
        """Questions of the pairs of answers ``first`` to ``last`` (exclusive), pair by pair."""
        return self.question[self.first_pair[first] : self.first_pair[last]]

    def best(self, pair_scores: Floats, first: int, last: int) -> Floats:
        """The highest score of each answer; ``nan`` for an answer without a question, which nothing can retrieve."""
        bounds = self.first_pair[first : last + 1] - self.first_pair[first]
        has_any = bounds[1:] > bounds[:-1]
        out = np.full((len(pair_scores), last - first), np.nan, dtype=np.float32)
        if has_any.any():
            out[:, has_any] = np.maximum.reduceat(pair_scores, bounds[:-1][has_any], axis=1)
        return out
