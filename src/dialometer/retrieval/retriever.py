"""What every retriever can do: learn a knowledge base, then rank its answers for a batch of questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dialometer.errors import DialometerError
from dialometer.model.part import Part
from dialometer.registry import Registry, did_you_mean
from dialometer.retrieval.by_answer import ByAnswer
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.top_k import NO_ANSWER, Ranking, merge, top_k
from dialometer.retrieval.work import QUIET, Work

Floats = NDArray[np.float32]
Questions = Sequence[Query] | Sequence[str]

QUERIES_AT_ONCE = 256
ANSWERS_AT_ONCE = 16_384
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
    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> Fitted:
        """Learn the knowledge base. The same knowledge base and options give the same ranking."""

    def load(self, kb: KnowledgeBase, folder: Path, work: Work = QUIET) -> Fitted:
        """The retriever as it was saved into a folder; those without files of their own are simply fitted again."""
        return self.fit(kb, work)


RETRIEVERS: Registry[type[Retriever]] = Registry("retriever", "dialometer.retrieval.retrievers")


class Fitted(ABC):
    """A retriever that knows a knowledge base."""

    def __init__(self, options: Retriever, kb: KnowledgeBase) -> None:
        self.options = options
        self.kb = kb

    @abstractmethod
    def prepare(self, queries: Sequence[Query]) -> Any:
        """What scoring needs to know of the questions, worked out once for all answers."""

    @abstractmethod
    def block(self, prepared: Any, first: int, last: int) -> Floats:
        """Scores of answers ``first`` to ``last`` (exclusive): questions by answers, higher is better, nan: not retrieved."""

    def scores(self, questions: Questions) -> Floats:
        """Scores of all answers, questions by answers; for knowledge bases where that fits into memory."""
        queries = as_queries(questions)
        n_answers = len(self.kb.answers)
        out = np.empty((len(queries), n_answers), dtype=np.float32)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            prepared = self.prepare(queries[start : start + QUERIES_AT_ONCE])
            for first in range(0, n_answers, ANSWERS_AT_ONCE):
                last = min(first + ANSWERS_AT_ONCE, n_answers)
                out[start : start + QUERIES_AT_ONCE, first:last] = self.block(prepared, first, last)
        return out

    def rank(self, questions: Questions, k: int | None = None) -> Ranking:
        """The k best answers (all if not given) of each question; equal scores rank in the order of the answers."""
        queries = as_queries(questions)
        parts = [
            self._rank_batch(queries[start : start + QUERIES_AT_ONCE], k)
            for start in range(0, len(queries), QUERIES_AT_ONCE)
        ]
        if not parts:
            width = len(self.kb.answers) if k is None else k
            return Ranking(np.empty((0, width), dtype=np.int64), np.empty((0, width), dtype=np.float32))
        return Ranking(np.concatenate([p.answers for p in parts]), np.concatenate([p.scores for p in parts]))

    def _rank_batch(self, queries: Sequence[Query], k: int | None) -> Ranking:
        n_answers = len(self.kb.answers)
        wanted = n_answers if k is None else k
        prepared = self.prepare(queries)
        best: Ranking | None = None
        for first in range(0, n_answers, ANSWERS_AT_ONCE):
            last = min(first + ANSWERS_AT_ONCE, n_answers)
            part = top_k(self.block(prepared, first, last), wanted if best is None else min(wanted, last - first))
            shifted = Ranking(np.where(part.answers == NO_ANSWER, NO_ANSWER, part.answers + first), part.scores)
            best = shifted if best is None else merge(best, shifted, wanted)
        assert best is not None  # a knowledge base has at least one answer
        return best

    def because(self, query: Query, answer: int) -> str:
        """What speaks for an answer, in words; empty where the retriever cannot tell."""
        return ""

    def save_into(self, folder: Path) -> tuple[Path, ...]:
        """Write what fitting again would not give back at once; most retrievers have nothing of the kind."""
        return ()


class ByRecorded(Fitted):
    """A retriever that compares the question asked with recorded questions; an answer counts by its best one."""

    def __init__(self, options: Retriever, kb: KnowledgeBase) -> None:
        super().__init__(options, kb)
        self.by_answer = ByAnswer(kb)

    @abstractmethod
    def of_recorded(self, prepared: Any, recorded: Ints) -> Floats:
        """Scores of some recorded questions (by number): questions asked by recorded ones."""

    def block(self, prepared: Any, first: int, last: int) -> Floats:
        return self.by_answer.best(self.of_recorded(prepared, self.by_answer.questions(first, last)), first, last)

    def because(self, query: Query, answer: int) -> str:
        recorded = self.by_answer.questions(answer, answer + 1)
        if not len(recorded):
            return "no recorded question"
        best = int(np.argmax(self.of_recorded(self.prepare([query]), recorded)[0]))
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


def name_of(retriever: Retriever) -> str:
    """The registered name of a retriever."""
    return next(name for name in RETRIEVERS.names() if type(retriever) is RETRIEVERS.get(name))
