"""BM25 q-Q: the answer whose question matches best by Okapi BM25 (bm25s)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedQuestionMatcher, Floats, RankedAnswers, Retriever

WORD = re.compile(r"\w+")
BATCH_FROM = 20_000
"""Questions in the knowledge base from which answers are found by bm25s' compiled search instead of a full product."""


@RETRIEVERS.register("bm25")
class Bm25(Retriever):
    """Robertson and Zaragoza's BM25 in the form Lucene uses (Lù, "BM25S", 2024), over recorded questions."""

    label: ClassVar[str] = "BM25 q-Q"
    about: ClassVar[str] = "Highest BM25 score between the question and a recorded question."
    k1: float = Field(default=1.5, gt=0)
    b: float = Field(default=0.75, ge=0, le=1)

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedBm25:
        return FittedBm25(self, kb)


class FittedBm25(FittedQuestionMatcher):
    """Every word's weight in every question is worked out beforehand, so that asking is a sum over few columns."""

    options: Bm25

    def __init__(self, options: Bm25, kb: KnowledgeBase) -> None:
        import bm25s  # noqa: PLC0415 - heavy
        from scipy import sparse  # noqa: PLC0415 - heavy

        super().__init__(options, kb)
        self.vocabulary: dict[str, int] = {}
        corpus = [self._learn(question) for question in kb.questions]
        n_questions = max(len(kb.questions), 1)
        self.index = bm25s.BM25(k1=options.k1, b=options.b, method="lucene", backend="auto")
        if not self.vocabulary:  # no question holds a word: one that nobody can ask for stands in
            corpus = [[0]] * n_questions
        self.index.index((corpus, self.vocabulary or {"": 0}), show_progress=False, create_empty_token=False)
        held = self.index.scores
        shape = (n_questions, len(held["indptr"]) - 1)
        self.weights = (
            sparse.csc_matrix((held["data"], held["indices"], held["indptr"]), shape=shape).T.tocsc().astype(np.float64)
        )

    def _learn(self, text: str) -> list[int]:
        return [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in words(text)]

    def known_words(self, queries: Sequence[Query]) -> list[list[int]]:
        """The known words of each question, by number."""
        known = self.vocabulary
        return [[known[word] for word in words(query.text) if word in known] for query in queries]

    def prepare(self, queries: Sequence[Query]) -> Any:
        from scipy import sparse  # noqa: PLC0415 - heavy

        asked = self.known_words(queries)
        column = np.array([token for tokens in asked for token in tokens], dtype=np.int64)
        row = np.repeat(np.arange(len(asked)), [len(tokens) for tokens in asked])
        counts = np.ones(len(column), dtype=np.float64)
        return sparse.csr_matrix((counts, (row, column)), shape=(len(asked), self.weights.shape[0]))

    def question_scores(self, prepared: Any, recorded: Ints) -> Floats:
        sums = np.asarray((prepared @ self.weights[:, recorded]).todense())
        return np.round(sums, 5).astype(np.float32)

    def _rank_batch(self, queries: Sequence[Query], k: int | None) -> RankedAnswers:
        if k is None or len(self.kb.questions) < BATCH_FROM:
            return super()._rank_batch(queries, k)
        return self.search(self.known_words(queries), k)

    def search(self, asked: Sequence[Sequence[int]], k: int, n_threads: int = 0) -> RankedAnswers:
        """The k best answers to queries given as numbers of words, by the compiled search."""
        import numba  # noqa: PLC0415 - heavy

        from dialometer.retrieval.bm25_search import fill_with_unmatched, search  # noqa: PLC0415 - compiles

        starts = np.cumsum([0, *(len(tokens) for tokens in asked)], dtype=np.int64)
        flat = np.fromiter((token for tokens in asked for token in tokens), dtype=np.int64, count=int(starts[-1]))
        held = self.index.scores
        scores, answers = search(
            flat, starts, held["data"], held["indices"], held["indptr"], self._most,
            self.weights.indices, self.weights.data, self.weights.indptr, *self._pairs_by_question,
            len(self.kb.answers), min(k, len(self.kb.answers)), n_threads or numba.get_num_threads(),
        )  # fmt: skip
        fill_with_unmatched(answers, scores, np.flatnonzero(self.kb.n_questions_of > 0))
        gap = ((0, 0), (0, k - answers.shape[1]))
        return RankedAnswers(
            np.pad(answers, gap, constant_values=-1), np.pad(scores, gap, constant_values=np.nan).astype(np.float32)
        )

    @cached_property
    def _most(self) -> NDArray[np.float64]:
        """The highest weight of each word in any question."""
        held = self.index.scores
        most = np.zeros(len(held["indptr"]) - 1)
        used = np.flatnonzero(np.diff(held["indptr"]))
        if len(used):
            most[used] = np.maximum.reduceat(held["data"], held["indptr"][used])
        return most

    @cached_property
    def _pairs_by_question(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Answers of all questions one after the other, and where those of each question begin."""
        order = np.argsort(self.kb.pair_question, kind="stable")
        counts = np.bincount(self.kb.pair_question, minlength=len(self.kb.questions))
        return self.kb.pair_answer[order], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def words(text: str) -> list[str]:
    """Lower-case words; function words stay, since much of a short question is made of them."""
    return WORD.findall(text.lower())
