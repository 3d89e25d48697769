"""What the columns of a table of rated answers are called: by importers, and by those who evaluate retrievers."""

from __future__ import annotations

from collections.abc import Iterable

QUESTION = ("question", "question_id", "query", "query_id", "snippet_id")
QUESTION_TEXT = ("question_text", "last_turn")
ANSWER = ("answer", "answer_id", "candidate", "candidate_id", "predicted_answer")
RATING = ("value", "score", "rating")


def column_of(names: Iterable[str], header: Iterable[str]) -> str:
    """The first of some names that a header has; empty where it has none."""
    there = set(header)
    return next((name for name in names if name in there), "")
