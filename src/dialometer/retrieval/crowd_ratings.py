"""What raters thought of candidate answers: mean ratings by question and answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import ReadError
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.registry import did_you_mean
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query

Floats = NDArray[np.float64]
NEEDED = ("question", "answer", "rating")


class RatingsError(ReadError):
    """A file of ratings could not be read."""

    noun = "the ratings"


@dataclass(frozen=True)
class CrowdRatings:
    """For each judged question (by id) its rated answers (by number): the sum of their ratings and how many there are."""

    by_question: Mapping[str, Mapping[int, tuple[float, int]]]

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


def read_crowd_ratings(path: str | Path, kb: KnowledgeBase, known_questions: Iterable[str] = ()) -> CrowdRatings:
    """A table with ``question`` (id), ``answer`` (id or text) and ``rating``: one row per rating, or per mean."""
    source = SourceFile(path)
    problems = Problems(source.name)
    source.probe()
    questions = list(known_questions)
    known = set(questions)
    ratings: list[tuple[str, int, float]] = []
    for row in table_rows(source, problems, NEEDED):
        question, text, value = (row.cells[name].strip() for name in NEEDED)
        answer, rating = kb.find(text), _number(value)
        if answer is None:
            _refuse(
                problems, f"'{text[:60]}' is no answer of the knowledge base", "name its id or text", row.line, "answer"
            )
        if rating is None:
            _refuse(problems, f"'{value}' is no number", "give the rating as a number", row.line, "rating")
        if known and question not in known:
            _refuse(problems, f"unknown question '{question}'", did_you_mean(question, questions), row.line, "question")
        if answer is not None and rating is not None:
            ratings.append((question, answer, rating))
    if problems.n_errors:
        raise RatingsError(problems.errors, n_more=problems.n_errors - len(problems.errors))
    return crowd_ratings(ratings)


def _refuse(problems: Problems, message: str, remedy: str, line: int, field: str) -> None:
    problems.of_file(problems.problem(message, remedy=remedy, line=line, field=field))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
