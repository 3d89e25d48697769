"""What raters thought of candidate answers: mean ratings by question and answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import ReadError
from dialometer.readers.answer_columns import ANSWER, QUESTION, QUESTION_TEXT, RATING, column_of
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, table_rows
from dialometer.registry import did_you_mean
from dialometer.retrieval.knowledge_base import KnowledgeBase, folded
from dialometer.retrieval.queries import Query

Floats = NDArray[np.float64]


class RatingsError(ReadError):
    """A file of ratings could not be read."""

    noun = "the ratings"


@dataclass(frozen=True)
class CrowdRatings:
    """For each judged question (by id) its rated answers (by number): the sum of their ratings and how many there are."""

    by_question: Mapping[str, Mapping[int, tuple[float, int]]]
    n_left_out: int = 0
    """Ratings whose question or answer is not known, where those were to be left out."""

    def means(self, question: str, n_answers: int) -> Floats:
        """Mean rating of every answer to one question; nan where nobody rated."""
        out = np.full(n_answers, np.nan)
        for answer, (total, n) in self.by_question.get(question, {}).items():
            out[answer] = total / n
        return out

    def matrix(self, queries: Iterable[Query], n_answers: int) -> Floats:
        """Mean ratings, questions by answers; nan where nobody rated."""
        rows = [self.means(query.id, n_answers) for query in queries]
        return np.array(rows, dtype=np.float64).reshape(len(rows), n_answers)

    @property
    def n_ratings(self) -> int:
        """All ratings."""
        return sum(n for answers in self.by_question.values() for _, n in answers.values())


def crowd_ratings(ratings: Iterable[tuple[str, int, float]]) -> CrowdRatings:
    """From single ratings: question id, answer number, rating."""
    by_question: dict[str, dict[int, tuple[float, int]]] = {}
    for question, answer, rating in ratings:
        of_question = by_question.setdefault(question, {})
        total, n = of_question.get(answer, (0.0, 0))
        of_question[answer] = (total + rating, n + 1)
    return CrowdRatings(by_question)


def read_crowd_ratings(
    path: str | Path, kb: KnowledgeBase, queries: Sequence[Query] = (), *, lenient: bool = False
) -> CrowdRatings:
    """A table with ``question``, ``answer`` (both by id or text) and ``rating``: one row per rating, or per mean.

    Without ``queries`` the questions keep their names. ``lenient`` leaves out ratings whose question or answer is not known, or
    whose question's text is that of several; ``n_left_out`` counts them.
    """
    source = SourceFile(path)
    problems = Problems(source.name)
    source.probe()
    named = QuestionNames(queries)
    ratings: list[tuple[str, int, float]] = []
    n_left_out = 0
    for row in table_rows(source, problems, ()):
        cells = _cells_of(row, problems)
        if cells is None:
            break
        question, text, value = cells
        answer, rating = kb.find(text), _number(value)
        name, why = named.find(question) if queries else (question, None)
        if rating is None:
            _refuse(problems, f"'{value}' is not a number", "give the rating as a number", row.line, "rating")
        if lenient and (answer is None or why is not None):
            n_left_out += 1
            continue
        if answer is None:
            _refuse(
                problems,
                f"'{text[:60]}' is not an answer of the knowledge base",
                "name its id or text",
                row.line,
                "answer",
            )
        if why is not None:
            _refuse(problems, *why, row.line, "question")
        if answer is not None and rating is not None and why is None:
            ratings.append((name, answer, rating))
    if problems.n_errors:
        raise RatingsError(problems.errors, n_more=problems.n_errors - len(problems.errors), counts=problems.counts)
    return replace(crowd_ratings(ratings), n_left_out=n_left_out)


class QuestionNames:
    """Finds questions by id, or by text where only one has it."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self.ids = [query.id for query in queries]
        self._ids = set(self.ids)
        self._by_text: dict[str, list[str]] = {}
        for query in queries:
            self._by_text.setdefault(folded(query.text), []).append(query.id)

    def find(self, name: str) -> tuple[str, tuple[str, str] | None]:
        """The question's id, and why there is none (message and remedy)."""
        if name in self._ids:
            return name, None
        fitting = self._by_text.get(folded(name), [])
        if len(fitting) == 1:
            return fitting[0], None
        shown = name if len(name) <= 60 else f"{name[:59]}…"
        if fitting:
            return "", (f"{len(fitting)} questions read '{shown}'", f"name it by its id: {', '.join(fitting[:5])}")
        return "", (f"unknown question '{shown}'", did_you_mean(name, self.ids))


def _cells_of(row: TableRow, problems: Problems) -> tuple[str, str, str] | None:
    """Question, answer and rating of a row; None where the table has no such columns, which is reported."""
    columns = []
    for name, names in (("question", (*QUESTION, *QUESTION_TEXT)), ("answer", ANSWER), ("rating", RATING)):
        column = column_of(names, row.cells)
        if not column:
            remedy = f"the header needs question, answer and rating; it has {', '.join(row.cells)}"
            _refuse(problems, f"the column '{name}' is missing", remedy, 1, name)
        columns.append(column)
    if not all(columns):
        return None
    question, answer, rating = (row.cells[column].strip() for column in columns)
    return question, answer, rating


def _refuse(problems: Problems, message: str, remedy: str, line: int, field: str) -> None:
    problems.of_file(problems.problem(message, remedy=remedy, line=line, field=field))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
