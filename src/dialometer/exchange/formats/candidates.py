"""Ratings of candidate answers: a question, an answer, who rated it, and the rating.

One row may also hold all ratings of a candidate as lists, the way the programs of Chierici and Habash (HumEval 2021) keep them:
``snippet_id`` and ``last_turn`` (the question), ``predicted_answer``, ``worker_ids`` and ``answers``, in JSON or in a table. Their
tables add ``isGold`` and the scores of five retrievers (``model1Score`` …).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.candidates.columns import SCORE_PREFIX
from dialometer.exchange.columns import Role, Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import RATING_ROLES, rating_records
from dialometer.exchange.records import Record
from dialometer.readers.answer_columns import QUESTION_TEXT
from dialometer.readers.json_records import json_records
from dialometer.readers.reader import Head
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, table_rows

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
        if path.is_file() and path.suffix.lower() == ".json":
            try:
                text = Head(".json", SourceFile(path).head()).text
            except OSError:
                return False
            return all(f'"{key}"' in text for key in LISTED)
        columns = set(header)
        has = {
            role: bool(columns & {role, *self.roles[role].usual}) for role in ("question", "answer", "rater", "value")
        }
        return columns >= LISTED or (all(has.values()) and not columns & {"item", *RATING_ROLES["item"].usual})

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each rating."""
        is_json = intake.source.suffix == ".json"
        rows = _json_rows(intake) if is_json else table_rows(intake.source, intake.problems, ())
        return rating_records(intake, (each for row in rows for each in _unlisted(row, intake)), self.roles)


def _json_rows(intake: Intake) -> Iterator[TableRow]:
    """Entries of a JSON file as rows; lists stay JSON until they are taken apart."""
    for record in json_records(intake.source, intake.problems):
        if not isinstance(record.value, Mapping) or not set(record.value) >= LISTED:
            remedy = f"an entry needs {', '.join(sorted(LISTED))}"
            intake.wrong(record.line, "this entry holds no ratings of a candidate", remedy)
            continue
        yield TableRow({str(key): _cell(value) for key, value in record.value.items()}, record.line)


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return "" if value is None else str(value)


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
        yield TableRow({**kept, "rater": str(rater), "rating": _cell(rating)}, row.line)


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
