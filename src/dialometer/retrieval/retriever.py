"""What every retriever can do: learn a knowledge base, then rank its answers for a batch of questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dialometer.errors import DialometerError
from dialometer.model.part import Part
from dialometer.neural.work import QUIET, Work
from dialometer.registry import Registry, did_you_mean
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
NO_ANSWER = -1


class PairsByAnswer:
    """From scores of questions to scores of answers: an answer is as good as its best question.

    Pairs stand in answer order, so that a stretch of answers is a stretch of pairs.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.question = kb.pair_question
        counts = kb.n_questions_of
        self.first_pair = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def questions(self, first: int, last: int) -> Ints:
        """Questions of the pairs of answers ``first`` to ``last`` (exclusive), pair by pair."""
        return self.question[self.first_pair[first] : self.first_pair[last]]

    def questions_of(self, answers: Ints) -> tuple[Ints, Ints]:
        """Questions of the pairs of some answers, each of which has at least one, and where those of each answer begin."""
        counts = self.first_pair[answers + 1] - self.first_pair[answers]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        pairs = np.repeat(self.first_pair[answers] - starts, counts) + np.arange(int(counts.sum()))
        return self.question[pairs], starts

    def best(self, pair_scores: Floats, first: int, last: int) -> Floats:
        """The highest score of each answer; ``nan`` for an answer without a question, which nothing can retrieve."""
        bounds = self.first_pair[first : last + 1] - self.first_pair[first]
        has_any = bounds[1:] > bounds[:-1]
        out = np.full((len(pair_scores), last - first), np.nan, dtype=np.float32)
        if has_any.any():
            out[:, has_any] = np.maximum.reduceat(pair_scores, bounds[:-1][has_any], axis=1)
        return out


@dataclass(frozen=True)
class RankedAnswers:
    """For each question the numbers of its answers, best first, with their scores; -1 (and nan) where there are no more."""

    answers: Ints
    scores: Floats

    def __len__(self) -> int:
        return len(self.answers)

    def first(self, k: int) -> RankedAnswers:
        """Only the first k ranks."""
        return RankedAnswers(self.answers[:, :k], self.scores[:, :k])


def top_k(scores: Floats, k: int | None = None, *, columns: Ints | None = None) -> RankedAnswers:
    """The k highest of each row (all if not given). ``nan`` means "not retrieved" and never ranks.

    ``columns`` gives the numbers of the columns where they are not simply counted (per row); among equal scores the
    lower number wins.
    """
    n_columns = scores.shape[1]
    wanted = n_columns if k is None else min(k, n_columns)
    values = np.where(np.isnan(scores), -np.inf, scores)
    numbers = np.broadcast_to(np.arange(n_columns), scores.shape) if columns is None else columns
    if columns is None and wanted < n_columns // 4:
        picked = _candidates(values, wanted)
    else:
        by_number = np.argsort(numbers, axis=1, kind="stable")
        by_score = np.argsort(-np.take_along_axis(values, by_number, 1), axis=1, kind="stable")
        picked = np.take_along_axis(by_number, by_score, 1)[:, :wanted]
    best = np.take_along_axis(values, picked, 1).astype(np.float32)
    chosen = np.take_along_axis(numbers, picked, 1).astype(np.int64)
    is_none = np.isneginf(best)
    chosen[is_none], best[is_none] = NO_ANSWER, np.nan
    if k is not None and wanted < k:
        gap = ((0, 0), (0, k - wanted))
        chosen = np.pad(chosen, gap, constant_values=NO_ANSWER)
        best = np.pad(best, gap, constant_values=np.nan)
    return RankedAnswers(chosen, best)


def _candidates(values: Floats, k: int) -> Ints:
    """Columns of the k best. A partition finds the k-th value; what equals it is taken from the left."""
    n_columns = values.shape[1]
    threshold = np.partition(values, n_columns - k, axis=1)[:, n_columns - k]
    picked = np.empty((len(values), k), dtype=np.int64)
    for row, (line, limit) in enumerate(zip(values, threshold, strict=True)):
        above = np.flatnonzero(line > limit)
        level = np.flatnonzero(line == limit)[: k - len(above)]
        columns = np.concatenate([above, level])
        picked[row] = columns[np.lexsort((columns, -line[columns]))]
    return picked


def merge(first: RankedAnswers, second: RankedAnswers, k: int) -> RankedAnswers:
    """The best k of two rankings of different answers."""
    return top_k(
        np.concatenate([first.scores, second.scores], axis=1),
        k,
        columns=np.concatenate([first.answers, second.answers], axis=1),
    )


Questions = Sequence[Query] | Sequence[str]

QUERY_BATCH = 256
ANSWER_BATCH = 16_384
"""Scores of a whole batch and of all answers never stand in memory together: at most 256 x 16,384 of them do."""


class Retriever(Part):
    """A retriever's options. Fitting gives a :class:`Fitted` and changes nothing here."""

    label: ClassVar[str]
    """Its name in tables."""
    about: ClassVar[str]
    """What it does, in a sentence."""
    is_trained: ClassVar[bool] = False
    """Whether fitting trains a model, which takes minutes on a CPU."""

    @abstractmethod
    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedRetriever:
        """Learn the knowledge base. The same knowledge base and options give the same ranking."""

    def load(self, kb: KnowledgeBase, folder: Path, work: Work = QUIET) -> FittedRetriever:
        """The retriever as it was saved into a folder; those without files of their own are simply fitted again."""
        return self.fit(kb, work)


RETRIEVERS: Registry[type[Retriever]] = Registry("retriever", "dialometer.retrieval.retrievers")


class FittedRetriever(ABC):
    """A retriever that knows a knowledge base."""

    def __init__(self, options: Retriever, kb: KnowledgeBase) -> None:
        self.options = options
        self.kb = kb

    @abstractmethod
    def prepare(self, queries: Sequence[Query]) -> Any:
        """What scoring needs to know of the questions, worked out once for all answers."""

    @abstractmethod
    def score_block(self, prepared: Any, first: int, last: int) -> Floats:
        """Scores of answers ``first`` to ``last`` (exclusive): questions by answers, higher is better, nan: not retrieved."""

    def scores(self, questions: Questions) -> Floats:
        """Scores of all answers, questions by answers; for knowledge bases where that fits into memory."""
        queries = as_queries(questions)
        n_answers = len(self.kb.answers)
        out = np.empty((len(queries), n_answers), dtype=np.float32)
        for start in range(0, len(queries), QUERY_BATCH):
            prepared = self.prepare(queries[start : start + QUERY_BATCH])
            for first in range(0, n_answers, ANSWER_BATCH):
                last = min(first + ANSWER_BATCH, n_answers)
                out[start : start + QUERY_BATCH, first:last] = self.score_block(prepared, first, last)
        return out

    def rank(self, questions: Questions, k: int | None = None) -> RankedAnswers:
        """The k best answers (all if not given) of each question; equal scores rank in the order of the answers."""
        queries = as_queries(questions)
        parts = [
            self._rank_batch(queries[start : start + QUERY_BATCH], k) for start in range(0, len(queries), QUERY_BATCH)
        ]
        if not parts:
            width = len(self.kb.answers) if k is None else k
            return RankedAnswers(np.empty((0, width), dtype=np.int64), np.empty((0, width), dtype=np.float32))
        return RankedAnswers(np.concatenate([p.answers for p in parts]), np.concatenate([p.scores for p in parts]))

    def _rank_batch(self, queries: Sequence[Query], k: int | None) -> RankedAnswers:
        n_answers = len(self.kb.answers)
        wanted = n_answers if k is None else k
        prepared = self.prepare(queries)
        best: RankedAnswers | None = None
        for first in range(0, n_answers, ANSWER_BATCH):
            last = min(first + ANSWER_BATCH, n_answers)
            part = top_k(self.score_block(prepared, first, last), wanted if best is None else min(wanted, last - first))
            shifted = RankedAnswers(np.where(part.answers == NO_ANSWER, NO_ANSWER, part.answers + first), part.scores)
            best = shifted if best is None else merge(best, shifted, wanted)
        assert best is not None  # a knowledge base has at least one answer
        return best

    def explain(self, query: Query, answer: int) -> str:
        """What speaks for an answer, in words; empty where the retriever cannot tell."""
        return ""

    def save_into(self, folder: Path) -> tuple[Path, ...]:
        """Write what fitting again would not give back at once; most retrievers have nothing of the kind."""
        return ()


class FittedQuestionMatcher(FittedRetriever):
    """A retriever that compares the question asked with recorded questions; an answer counts by its best one."""

    def __init__(self, options: Retriever, kb: KnowledgeBase) -> None:
        super().__init__(options, kb)
        self.by_answer = PairsByAnswer(kb)

    @abstractmethod
    def question_scores(self, prepared: Any, recorded: Ints) -> Floats:
        """Scores of some recorded questions (by number): questions asked by recorded ones."""

    def score_block(self, prepared: Any, first: int, last: int) -> Floats:
        return self.by_answer.best(self.question_scores(prepared, self.by_answer.questions(first, last)), first, last)

    def explain(self, query: Query, answer: int) -> str:
        recorded = self.by_answer.questions(answer, answer + 1)
        if not len(recorded):
            return "no recorded question"
        best = int(np.argmax(self.question_scores(self.prepare([query]), recorded)[0]))
        return f"recorded: {self.kb.questions[recorded[best]]}"


def as_queries(questions: Questions) -> list[Query]:
    """Plain texts become queries without context."""
    return [Query(question) if isinstance(question, str) else question for question in questions]


def make_retriever(name: str, options: dict[str, Any] | None = None) -> Retriever:
    """A retriever by its registered name; a wrong option is an error that names it."""
    kind = RETRIEVERS.get(name)
    try:
        return kind.model_validate(options or {})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        known = list(kind.model_fields)
        remedy = did_you_mean(where, known) if first["type"] == "extra_forbidden" else f"options: {', '.join(known)}"
        raise DialometerError(f"option '{where}' of the retriever '{name}': {first['msg']}", remedy=remedy) from error


def retriever_name(retriever: Retriever) -> str:
    """The registered name of a retriever."""
    return next(name for name in RETRIEVERS.names() if type(retriever) is RETRIEVERS.get(name))


@dataclass(frozen=True)
class ExplainedAnswer:
    """An answer of a retriever, with its score and what that rests on."""

    rank: int
    answer: str
    text: str
    score: float
    because: str


def explained_answers(fitted: FittedRetriever, query: Query, k: int = 3) -> list[ExplainedAnswer]:
    """The first k answers of a retriever."""
    ranking = fitted.rank([query], k)
    pairs = zip(ranking.answers[0].tolist(), ranking.scores[0].tolist(), strict=True)
    return [
        ExplainedAnswer(
            rank, fitted.kb.answers[answer].id, fitted.kb.answers[answer].text, score, fitted.explain(query, answer)
        )
        for rank, (answer, score) in enumerate(pairs, start=1)
        if answer != NO_ANSWER
    ]
