"""The questions that a retriever got wrong, with what was expected and what it answered."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.formula_cells import escaped_row
from dialometer.retrieval.evaluation import Evaluation
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import QuerySet

SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """A question with a right answer that did not come first."""

    retriever: str
    id: str
    question: str
    expected: str
    """All right answers."""
    answered: str
    """Empty where nothing was retrieved."""


def failed_questions(evaluation: Evaluation, query_set: QuerySet, kb: KnowledgeBase) -> dict[str, list[FailedQuestion]]:
    """For each retriever, in the order of the questions. By the maker's labels; questions without a right answer cannot fail."""
    failed: dict[str, list[FailedQuestion]] = {}
    for name, first in evaluation.first.items():
        failed[name] = [
            FailedQuestion(
                name,
                query.id,
                query.text,
                SEPARATOR.join(kb.answers[number].text for number in right),
                kb.answers[answer].text if answer >= 0 else "",
            )
            for query, right, answer in zip(query_set.queries, query_set.right, first.tolist(), strict=True)
            if right and answer not in right
        ]
    return failed


def write_failed(path: Path, failed: Mapping[str, Sequence[FailedQuestion]]) -> None:
    """All of them as one table."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(field.name for field in fields(FailedQuestion))
            writer.writerows(escaped_row(astuple(question)) for questions in failed.values() for question in questions)
    except OSError as error:
        raise DialometerError(
            f"cannot be written ({error.strerror})", where=str(path), remedy="name another file"
        ) from error
