"""At which rank each right answer came: all that retrieval measures need, found by counting instead of sorting.

The rank of an answer is one plus the number of answers that score higher, so only right answers are looked at; sorting
every list would cost far more when few of many answers are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialometer.errors import DialometerError
from dialometer.stats.observations import Floats, Ints

__all__ = ["RelevantRanks", "Ties", "ranks_from_hits", "ranks_from_lists", "ranks_from_scores"]

Ties = Literal["order", "best", "worst"]

BATCH_CELLS = 200_000  # fits in a processor's cache
FEW_RELEVANT = 12


@dataclass(frozen=True)
class RelevantRanks:
    """Every retrieved right answer as its question and rank (from 1), with how many right answers each question has."""

    question: Ints
    rank: Ints
    n_relevant: Ints

    @property
    def n_questions(self) -> int:
        """All questions, with those that have no right answer."""
        return len(self.n_relevant)


def ranks_from_scores(scores: ArrayLike, relevant: ArrayLike, *, ties: Ties = "order") -> RelevantRanks:
    """Ranks from scores (questions by answers, higher is better, nan: not retrieved) and marks of the same shape.

    Equal scores rank in column order, or all at the best or the worst of their places.
    """
    values = np.asarray(scores, dtype=np.float64)
    marks = np.asarray(relevant, dtype=bool)
    if values.ndim != 2 or values.shape != marks.shape:
        told = f"scores {values.shape} and marks {marks.shape}"
        raise DialometerError(f"{told} do not match", remedy="give both as questions by answers")
    question, answer = np.divmod(np.flatnonzero(marks), max(marks.shape[1], 1))
    own = values[question, answer]
    is_retrieved = ~np.isnan(own)
    n_relevant = marks.sum(axis=1, dtype=np.int64)
    question, answer, own = question[is_retrieved], answer[is_retrieved], own[is_retrieved]
    if len(question) > FEW_RELEVANT * len(values):
        rank = _ranks_by_sorting(values, ties)[question, answer]
    else:
        rank = _ranks_by_counting(values, question, answer, own, ties)
    return RelevantRanks(question.astype(np.int64), rank, n_relevant)


def _ranks_by_counting(values: Floats, question: Ints, answer: Ints, own: Floats, ties: Ties) -> Ints:
    n_answers = values.shape[1]
    rank = np.empty(len(question), dtype=np.int64)
    batch = max(1, BATCH_CELLS // max(n_answers, 1))
    column = np.arange(n_answers)
    for start in range(0, len(question), batch):
        part = slice(start, start + batch)
        rows, mine = values[question[part]], own[part, None]
        above = np.count_nonzero(rows > mine, axis=1)
        if ties == "best":
            rank[part] = above + 1
            continue
        upto = np.count_nonzero(rows >= mine, axis=1)
        rank[part] = upto if ties == "worst" else above + 1
        if ties == "order":
            tied = np.flatnonzero(upto - above > 1)
            if len(tied):
                is_before = (rows[tied] == mine[tied]) & (column < answer[part][tied, None])
                rank[start + tied] += np.count_nonzero(is_before, axis=1)
    return rank


def _ranks_by_sorting(values: Floats, ties: Ties) -> Ints:
    """The rank of every answer, cheaper than counting where many are right."""
    order = np.argsort(-values, axis=1, kind="stable")
    rank = np.empty(values.shape, dtype=np.int64)
    n_answers = values.shape[1]
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(1, n_answers + 1), values.shape), axis=1)
    if ties == "order":
        return rank
    ordered = np.take_along_axis(values, order, axis=1)
    is_new = np.ones(values.shape, dtype=bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    place = np.broadcast_to(np.arange(1, n_answers + 1), values.shape)
    if ties == "best":
        shared = np.maximum.accumulate(np.where(is_new, place, 0), axis=1)
    else:
        is_last = np.ones(values.shape, dtype=bool)
        is_last[:, :-1] = is_new[:, 1:]
        last = np.where(is_last, place, n_answers + 1)
        shared = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    np.put_along_axis(rank, order, shared, axis=1)
    return rank


def ranks_from_hits(hits: ArrayLike, n_relevant: ArrayLike) -> RelevantRanks:
    """Ranks from lists already in order: ``hits[q, r]`` says whether the answer at rank r + 1 is right."""
    marks = np.asarray(hits, dtype=bool)
    total = np.asarray(n_relevant, dtype=np.int64)
    if marks.ndim != 2 or len(marks) != len(total):
        raise DialometerError("hits and numbers of right answers do not match", remedy="give one row per question")
    if np.any(marks.sum(axis=1) > total):
        raise DialometerError("a question has more hits than right answers", remedy="count every right answer once")
    question, place = np.nonzero(marks)
    return RelevantRanks(question.astype(np.int64), place.astype(np.int64) + 1, total)


def ranks_from_lists(retrieved: ArrayLike, relevant: ArrayLike | Sequence[Iterable[int]]) -> RelevantRanks:
    """Ranks from retrieved answer numbers (questions by ranks, best first, -1 for no answer).

    ``relevant`` is a matrix of marks (questions by answers) or, for each question, the numbers of its right answers.
    """
    lists = np.asarray(retrieved, dtype=np.int64)
    if lists.ndim != 2:
        raise DialometerError("retrieved answers are not a matrix", remedy="fill short lists with -1")
    marks = _marks(relevant, len(lists), int(lists.max(initial=-1)) + 1)
    _refuse_repeats(lists)
    is_filled = lists >= 0
    hits = np.zeros(lists.shape, dtype=bool)
    rows = np.broadcast_to(np.arange(len(lists))[:, None], lists.shape)
    hits[is_filled] = marks[rows[is_filled], lists[is_filled]]
    return ranks_from_hits(hits, marks.sum(axis=1))


def _marks(relevant: ArrayLike | Sequence[Iterable[int]], n_questions: int, least_width: int) -> NDArray[np.bool_]:
    if isinstance(relevant, np.ndarray) and relevant.ndim == 2:
        marks = relevant.astype(bool)
    else:
        sets = [np.fromiter(set(answers), dtype=np.int64) for answers in relevant]  # type: ignore[union-attr,arg-type]
        width = max([least_width, *(int(answers.max(initial=-1)) + 1 for answers in sets)])
        marks = np.zeros((len(sets), width), dtype=bool)
        for row, answers in enumerate(sets):
            marks[row, answers] = True
    if len(marks) != n_questions:
        raise DialometerError(f"{n_questions} lists but {len(marks)} questions", remedy="give one row per question")
    if marks.shape[1] < least_width:
        raise DialometerError("a retrieved answer has no mark", remedy="the marks need a column for every answer")
    return marks


def _refuse_repeats(lists: Ints) -> None:
    """An answer listed twice would count twice; that is a fault of the retriever, not a better list."""
    ordered = np.sort(lists, axis=1)
    if np.any((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)):
        raise DialometerError("a list holds an answer twice", remedy="list every answer once")
