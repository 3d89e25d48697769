"""Results of a batch on a crowd platform, one row for each assignment, as Mechanical Turk lets requesters download them.

What a requester showed is in columns ``Input.…``, what was answered in ``Answer.…``. Answers come in three ways: a
plain cell, one true-or-false column for each option (``Answer.quality.3``), or all in one cell of JSON
(``Answer.taskAnswers``). All three are read as plain cells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import RATING_ROLES, named_columns, rating_records
from dialometer.exchange.records import Record
from dialometer.readers.table_rows import TableRow, table_rows

PREFIXES = ("Input.",)
ANSWER = "Answer."
JSON_COLUMN = "Answer.taskAnswers"
REJECTED = "rejected assignments"
NOT_TAKEN = "rows without a rater (nobody took the assignment)"
_TRUTHS = {"true": True, "false": False}


def _also(role: str, *columns: str) -> Role:
    known = RATING_ROLES[role]
    return replace(known, usual=(*known.usual, *columns))


@FORMATS.register("batch")
class BatchResults(ImportFormat):
    """A batch file. Without ``--criteria`` every answer that is no question is a criterion."""

    roles: ClassVar[Roles] = RATING_ROLES | {
        "rater": Role(RATING_ROLES["rater"].meaning, ("WorkerId",), is_needed=True),
        "item": _also("item", "id", "HITId"),
        "time": Role("when it was submitted", ("SubmitTime",)),
        "shown_at": Role("when the assignment was accepted", ("AcceptTime",)),
        "duration_s": Role("seconds of work", ("WorkTimeInSeconds",)),
    }
    summary: ClassVar[str] = "batch results of a crowd platform (HITId, WorkerId, Input.…, Answer.…)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """The platform's columns."""
        return {"HITId", "WorkerId"} <= set(header) and any(name.startswith(ANSWER) for name in header)

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each criterion of an assignment."""
        n_before = intake.problems.n_errors
        taken = (row for row in table_rows(intake.source, intake.problems, ()) if _is_wanted(row, intake))
        rows = _with_one_header(_ticked([_unpacked(row, intake) for row in taken], intake))
        if rows:
            columns = Columns.bind(list(rows[0].cells), intake.options.columns, self.roles, PREFIXES)
            questions = _in_answers(named_columns(intake.options.questions), columns)
            criteria = _in_answers(named_columns(intake.options.criteria), columns)
            intake.options = replace(
                intake.options,
                criteria=[f"{name}={column}" for name, column in criteria or _all_answers(columns, questions)],
                questions=[f"{name}={column}" for name, column in questions],
            )
            if not intake.options.criteria and intake.problems.n_errors > n_before:
                return iter(())  # the answers could not be read, which has been reported
        return rating_records(intake, iter(rows), self.roles, prefixes=PREFIXES)


def _in_answers(pairs: list[tuple[str, str]], columns: Columns) -> list[tuple[str, str]]:
    """Names of answers with the prefix that their columns have."""
    return [
        (name, column if column in columns.header or column.startswith(ANSWER) else ANSWER + column)
        for name, column in pairs
    ]


def _all_answers(columns: Columns, questions: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All answers that play no other role; where systems stand side by side, once without the number."""
    other = {*columns.by_role.values(), *(column for _, column in questions)}
    answers = [column for column in columns.header if column.startswith(ANSWER) and column not in other]
    if "system" in columns.numbered:
        answers = [re.sub(r"[_.\- ]?[1-9]\d?$", "", column) for column in answers]
    return [(column.removeprefix(ANSWER), column) for column in dict.fromkeys(answers)]


def _is_wanted(row: TableRow, intake: Intake) -> bool:
    if row.cells.get("AssignmentStatus", "").strip().lower() == "rejected":
        intake.left_out[REJECTED] += 1
        return False
    if not row.cells.get("WorkerId", "-").strip():
        intake.left_out[NOT_TAKEN] += 1
        return False
    return True


def _unpacked(row: TableRow, intake: Intake) -> TableRow:
    """The row with the answers of its JSON cell as cells of their own."""
    text = row.cells.get(JSON_COLUMN, "").strip()
    if JSON_COLUMN not in row.cells:
        return row
    cells = {name: cell for name, cell in row.cells.items() if name != JSON_COLUMN}
    if text:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        answers = content[0] if isinstance(content, list) and len(content) == 1 else content
        if isinstance(answers, dict):
            cells |= {ANSWER + name: _plain(value, name, row.line, intake) for name, value in answers.items()}
        else:
            intake.wrong(row.line, "the answers are not a JSON object", "download the batch again", JSON_COLUMN)
    return TableRow(cells, row.line)


def _plain(value: Any, name: str, line: int, intake: Intake) -> str:
    """One answer as a cell: the option that is ticked, the label that was chosen, or what was typed."""
    if isinstance(value, dict) and value and all(isinstance(ticked, bool) for ticked in value.values()):
        return _only([str(option) for option, ticked in value.items() if ticked], name, line, intake)
    if isinstance(value, dict) and isinstance(value.get("label"), str):
        return str(value["label"])
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str | int | float):
        return "" if value is None else str(value)
    intake.wrong(line, f"the answer '{name}' has parts, which cannot be read as one answer", "", ANSWER + name)
    return ""


def _only(ticked: list[str], name: str, line: int, intake: Intake) -> str:
    if len(ticked) > 1:
        intake.wrong(
            line,
            f"several options of '{name}' are ticked: {', '.join(ticked)}",
            "only single choices can be read; make a column of your own from them",
            ANSWER + name,
        )
    return ticked[0] if ticked else ""


def _ticked(rows: list[TableRow], intake: Intake) -> list[TableRow]:
    """Columns ``Answer.name.option`` that only hold true and false become one column with the option."""
    groups: dict[str, dict[str, str]] = {}
    for column in dict.fromkeys(name for row in rows for name in row.cells):
        match = re.fullmatch(r"Answer\.(.+)\.([^.]+)", column)
        if match and all(row.cells.get(column, "").strip().lower() in ("", *_TRUTHS) for row in rows):
            groups.setdefault(match[1], {})[column] = match[2]
    groups = {name: columns for name, columns in groups.items() if len(columns) > 1}
    if not groups:
        return rows
    gone = {column for columns in groups.values() for column in columns}
    result = []
    for row in rows:
        cells = {name: cell for name, cell in row.cells.items() if name not in gone}
        for name, columns in groups.items():
            ticked = [
                option for column, option in columns.items() if _TRUTHS.get(row.cells.get(column, "").strip().lower())
            ]
            cells[ANSWER + name] = _only(ticked, name, row.line, intake)
        result.append(TableRow(cells, row.line))
    return result


def _with_one_header(rows: list[TableRow]) -> list[TableRow]:
    """All rows with the same columns: an assignment need not answer what another one does."""
    header = list(dict.fromkeys(name for row in rows for name in row.cells))
    return [TableRow({name: row.cells.get(name, "") for name in header}, row.line) for row in rows]
