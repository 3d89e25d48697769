"""Ratings of candidate answers: a question, an answer, who rated it, and the rating.

One row may also hold all ratings of a candidate as lists, the way the programs of Chierici and Habash (HumEval 2021) keep them:
``snippet_id`` and ``last_turn`` (the question), ``predicted_answer``, ``worker_ids`` and ``answers``, in JSON or in a table. Their
tables add ``isGold`` and the scores of five retrievers (``model1Score`` …).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.candidates.columns import SCORE_PREFIX
from dialometer.exchange.columns import Role, Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import RATING_ROLES, rating_records
from dialometer.exchange.records import Record
from dialometer.readers.answer_columns import QUESTION_TEXT
from dialometer.readers.table_rows import TableRow, cell_text, plain_column, table_rows

RATERS, RATINGS = "worker_ids", "answers"
LISTED = {"snippet_id", "predicted_answer", RATERS, RATINGS}
"""What an entry with lists has at least."""
_SCORE = re.compile(r"(model\d+)Score")


def _also(role: str, *columns: str) -> Role:
    known = RATING_ROLES[role]
    return replace(known, usual=(*known.usual, *columns))


@FORMATS.register("candidates")
class CandidateRatings(ImportFormat):
    """A table of ratings of answers to questions."""

    roles: ClassVar[Roles] = {
        name: role for name, role in RATING_ROLES.items() if name not in ("item", "turn", "block")
    } | {
        "question": replace(RATING_ROLES["question"], is_needed=True),
        "answer": replace(RATING_ROLES["answer"], is_needed=True),
        "gold": _also("gold", "isGold"),
        "context": _also("context", *QUESTION_TEXT),
        "response": _also("response", "answer_text"),
    }
    summary: ClassVar[str] = "ratings of candidate answers: question, answer, rater, rating"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Columns for question, answer, rater and rating, or entries with lists of ratings."""
        columns = {plain_column(name) for name in header}
        has = {
            role: bool(columns & {role, *self.roles[role].usual}) for role in ("question", "answer", "rater", "value")
        }
        return columns >= LISTED or (all(has.values()) and not columns & {"item", *RATING_ROLES["item"].usual})

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each rating."""
        rows = table_rows(intake.source, intake.problems, ())
        return rating_records(intake, (each for row in rows for each in _unlisted(row, intake)), self.roles)


def _unlisted(row: TableRow, intake: Intake) -> Iterator[TableRow]:
    """One row for each rating where a row lists several."""
    if not set(row.cells) >= LISTED:
        yield row
        return
    raters, ratings = (_list(row.cells[name]) for name in (RATERS, RATINGS))
    if raters is None or ratings is None or len(raters) != len(ratings):
        message = f"{RATERS} and {RATINGS} are not two lists of the same length"
        intake.wrong(row.line, message, 'write lists, such as ["ann", "bob"] and [5, 3]', RATINGS)
        return
    kept = {_column(name): cell for name, cell in row.cells.items() if name not in (RATERS, RATINGS)}
    for rater, rating in zip(raters, ratings, strict=True):
        yield TableRow({**kept, "rater": str(rater), "rating": cell_text(rating)}, row.line)


def _column(name: str) -> str:
    score = _SCORE.fullmatch(name)
    return f"{SCORE_PREFIX}{score[1]}" if score else name


def _list(text: str) -> list[Any] | None:
    """A list as JSON or as Python writes it."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) else None
