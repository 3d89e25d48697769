"""Answers on which the maker of an avatar, its retrievers and the crowd disagree (Chierici and Habash 2021, figure 4)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialometer.formula_cells import escaped_row
from dialometer.retrieval.evaluation import GOOD_FROM
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.labels.crowd_ratings import CrowdRatings
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import RankedAnswers

COLUMNS = (
    "question", "before", "text", "answer", "answer_text", "maker", "crowd", "mean_rating", "n_ratings", "first_of",
    "maker_answers",
)  # fmt: skip


@dataclass(frozen=True)
class Disputed:
    """One answer to one question that somebody calls right, or gives first, and somebody else calls wrong."""

    query: Query
    answer: str
    text: str
    is_makers: bool
    """Whether the maker marked it as right."""
    mean_rating: float | None
    n_ratings: int
    is_crowds: bool | None
    """Whether the crowd calls it right; None where nobody rated it."""
    first_of: tuple[str, ...]
    """Retrievers whose first answer it is."""
    maker_answers: tuple[str, ...]
    """What the maker marked as right."""


def disputed_answers(
    kb: KnowledgeBase,
    query_set: QuerySet,
    firsts: Mapping[str, RankedAnswers],
    crowd: CrowdRatings | None = None,
    good_from: float | None = None,
) -> list[Disputed]:
    """First answers that the maker did not mark, and rated answers on which maker and crowd differ, in the order of questions.

    A question to which the maker marked nothing is left out: there is no verdict to differ from.
    """
    threshold = GOOD_FROM if good_from is None else good_from
    found: list[Disputed] = []
    for row, query in enumerate(query_set.queries):
        right = query_set.right[row]
        rated = crowd.by_question.get(query.id, {}) if crowd is not None else {}
        first_of: dict[int, list[str]] = {}
        for name, ranking in firsts.items():
            answer = int(ranking.answers[row, 0]) if ranking.answers.shape[1] else -1
            if answer >= 0:
                first_of.setdefault(answer, []).append(name)
        for number in sorted({*first_of, *rated, *right} if right else ()):
            total, n = rated.get(number, (0.0, 0))
            mean = total / n if n else None
            is_crowds = None if mean is None else mean >= threshold
            is_makers = number in right
            if (is_crowds is not None and is_crowds != is_makers) or (number in first_of and not is_makers):
                answer_ = kb.answers[number]
                makers = tuple(kb.answers[other].text for other in right)
                picked = tuple(first_of.get(number, ()))
                found.append(Disputed(query, answer_.id, answer_.text, is_makers, mean, n, is_crowds, picked, makers))
    return found


def write_disputed(path: Path, disputed: Sequence[Disputed]) -> None:
    """All of them as a table."""
    words = {True: "yes", False: "no", None: ""}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for one in disputed:
            before = one.query.context[-1].text if one.query.context else ""
            mean = "" if one.mean_rating is None else f"{one.mean_rating:.2f}"
            row = [
                one.query.id,
                before,
                one.query.text,
                one.answer,
                one.text,
                words[one.is_makers],
                words[one.is_crowds],
                mean,
                one.n_ratings,
                "; ".join(one.first_of),
                " | ".join(one.maker_answers),
            ]
            writer.writerow(escaped_row(row))
