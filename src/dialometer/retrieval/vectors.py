"""The nearest of many vectors without a full matrix of scores: exact in blocks, or by faiss where there are very many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.retriever import NO_ANSWER, PairsByAnswer, RankedAnswers, top_k

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

DECIMALS = 5
"""Cosines are compared to five decimals: a text encoded in another batch differs in the seventh, and must stay a tie."""


def cosines(queries: Floats, vectors: Floats) -> Floats:
    """Dot products of normalised vectors, rounded so that ties are ties."""
    return np.round(queries @ vectors.T, DECIMALS)


class NearestQuestions:
    """faiss' inverted lists over the recorded questions: a few lists near the query are searched, the rest is skipped.

    What is found is scored again exactly, so only answers may be missing, never misranked among those found.
    """

    def __init__(self, kb: KnowledgeBase, vectors: Floats, *, n_probed: int = 32, seed: int = 0) -> None:
        import faiss  # noqa: PLC0415 - heavy

        self.kb = kb
        self.vectors = vectors
        n_lists = max(1, int(4 * np.sqrt(len(vectors))))
        coarse = faiss.IndexFlatIP(vectors.shape[1])
        self.index: Any = faiss.IndexIVFFlat(coarse, vectors.shape[1], n_lists, faiss.METRIC_INNER_PRODUCT)
        self.index.cp.seed = seed + 1
        self.index.cp.max_points_per_centroid = 64
        self.index.cp.min_points_per_centroid = 1
        self.index.train(vectors)
        self.index.add(vectors)
        self.index.nprobe = min(n_probed, n_lists)
        order = np.argsort(kb.pair_question, kind="stable")
        self._answers = kb.pair_answer[order]
        counts = np.bincount(kb.pair_question, minlength=len(kb.questions))
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def rank(self, queries: Floats, k: int) -> RankedAnswers:
        """The k best answers among those whose questions were found."""
        deepest = min(4 * k + 16, len(self.vectors))
        _, nearest = self.index.search(np.ascontiguousarray(queries), deepest)
        answers = np.full((len(queries), k), NO_ANSWER, dtype=np.int64)
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        for row, questions in enumerate(nearest):
            near = questions[questions >= 0]
            exact = cosines(queries[row : row + 1], self.vectors[near])[0]
            best: dict[int, float] = {}
            for question, score in zip(near, exact, strict=True):
                for answer in self._answers[self._first[question] : self._first[question + 1]].tolist():
                    best[answer] = max(best.get(answer, -2.0), float(score))
            if not best:
                continue
            numbers = np.array([list(best)], dtype=np.int64)
            own = top_k(np.array([list(best.values())], dtype=np.float32), k, columns=numbers)
            answers[row], scores[row] = own.answers[0], own.scores[0]
        return RankedAnswers(answers, scores)


class QuestionVectors:
    """Vectors of all recorded questions, scored in blocks of answers."""

    def __init__(self, kb: KnowledgeBase, vectors: Floats) -> None:
        self.by_answer = PairsByAnswer(kb)
        self.vectors = vectors

    def best(self, queries: Floats, first: int, last: int) -> Floats:
        """For each query the cosine of the nearest question of each answer of a stretch."""
        pairs = self.by_answer.questions(first, last)
        return self.by_answer.best(cosines(queries, self.vectors[pairs]), first, last)
