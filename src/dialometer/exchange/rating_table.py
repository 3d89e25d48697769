"""Tables of ratings in the three shapes people keep them: long, wide, and systems side by side.

Long has a column for the criterion and one for the value. Wide has a column for each criterion. Side by side has numbered
columns: ``team1``, ``team2`` are the systems of one row, ``quality1``, ``quality2`` what was said about each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import TypedDict

from dialometer.errors import DialometerError
from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.import_format import Intake
from dialometer.exchange.records import (
    UNKNOWN_MS,
    AnswerRecord,
    Condition,
    JudgmentRecord,
    Record,
    TextRecord,
    read_time_ms,
)
from dialometer.model.dialogue import clean_text
from dialometer.readers.table_rows import TableRow
from dialometer.registry import did_you_mean
from dialometer.storage.table import FACTOR_PREFIX

Cells = Mapping[str, str]


class CellReader:
    """Reads what plays a role in a row; what cannot be read is reported and comes as empty, None or unknown."""

    def __init__(self, intake: Intake, columns: Columns) -> None:
        self.intake = intake
        self.columns = columns
        self.factors = [
            (role.removeprefix(FACTOR_PREFIX), role)
            for role in (*columns.by_role, *columns.constants)
            if role.startswith(FACTOR_PREFIX)
        ]

    def check_roles(self, line: int) -> None:
        """Report every column that was asked for, or is needed, and is not there."""
        header = list(self.columns.header)
        for role, wanted in self.columns.missing:
            if wanted:
                self.intake.wrong(line, f"there is no column '{wanted}' for the {role}", did_you_mean(wanted, header))
            else:
                remedy = f"name the column with --map {role}=COLUMN; the file has {', '.join(header)}"
                self.intake.wrong(line, f"no column is known to hold the {role}", remedy)

    def needed(self, cells: Cells, role: str, line: int, number: int = 0) -> str:
        """A text that must be there."""
        given = self.columns.text(cells, role, number)
        if not given:
            self.intake.wrong(line, f"the {role} is missing", "fill the cell", self.column(role, number))
        return self._clean(given, role, line)

    def text(self, cells: Cells, role: str, line: int, number: int = 0) -> str:
        """A text that may be there."""
        return self._clean(self.columns.text(cells, role, number), role, line)

    def _clean(self, text: str, role: str, line: int) -> str:
        if not text:
            return ""
        try:
            return _cleaned(text)
        except ValueError as error:
            self.intake.wrong(line, f"the {role} holds a {error}", "remove the character", self.column(role))
            return ""

    def times(self, cells: Cells, line: int) -> tuple[int, int]:
        """When it was shown and when it was submitted, as far as the row tells."""
        answered = self._time(cells, "time", line)
        shown = self._time(cells, "shown_at", line)
        seconds = self.columns.text(cells, "duration_s")
        if seconds and answered and not shown:
            try:
                shown = answered - round(float(seconds) * 1000)
            except (ValueError, OverflowError):
                message = f"'{seconds}' is no number of seconds"
                self.intake.wrong(line, message, "correct the cell", self.column("duration_s"))
        if shown and answered and shown > answered:
            self.intake.wrong(line, "it was submitted before it was shown", "check the two times", self.column("time"))
        return shown, answered

    def _time(self, cells: Cells, role: str, line: int) -> int:
        text = self.columns.text(cells, role)
        if not text:
            return UNKNOWN_MS
        try:
            return _time_ms(text, self.intake.options.time_format)
        except ValueError as error:
            remedy = "give its form with --time-format, such as '%m/%d/%Y %H:%M:%S'"
            self.intake.wrong(line, str(error), remedy, self.column(role))
            return UNKNOWN_MS

    def whole(self, cells: Cells, role: str, line: int, *, least: int) -> int | None:
        """A whole number that may be there."""
        text = self.columns.text(cells, role)
        if not text:
            return None
        if text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least:
            return int(text)
        self.intake.wrong(line, f"'{text}' is no whole number from {least} on", "correct the cell", self.column(role))
        return None

    def condition(self, cells: Cells, line: int) -> Condition:
        """The levels of all factors that the row has."""
        levels = [(name, self.text(cells, role, line)) for name, role in self.factors]
        return _shared(tuple((name, level) for name, level in levels if level))

    def column(self, role: str, number: int = 0) -> str:
        """The column of a role, for messages."""
        return self.columns.numbered.get(role, {}).get(number) or self.columns.by_role.get(role, role)


@lru_cache(maxsize=65_536)
def _cleaned(text: str) -> str:
    return intern(clean_text(text))


@lru_cache(maxsize=65_536)
def _time_ms(text: str, time_format: str) -> int:
    return read_time_ms(text, time_format)


@lru_cache(maxsize=4_096)
def _shared(condition: Condition) -> Condition:
    return condition


RATING_ROLES = {
    "rater": Role(
        "who judged",
        ("rater_id", "worker", "worker_id", "annotator", "annotator_id", "user_id", "judge"),
        is_needed=True,
    ),
    "item": Role("what was judged", ("item_id", "dialogue_id", "dialog_id", "conversation_id"), is_needed=True),
    "system": Role("whose output was judged", ("system_id", "model", "bot", "agent")),
    "criterion": Role("what it was judged for", ("dimension", "metric")),
    "value": Role("the judgment itself", ("score", "rating")),
    "time": Role("when it was submitted", ("answered_at", "submitted_at", "timestamp", "created_at")),
    "shown_at": Role("when it was shown"),
    "duration_s": Role("seconds from shown to submitted; needs a time too"),
    "position": Role("place of the item in the rater's session, from 1"),
    "turn": Role("turn of the dialogue that was judged, counted from 0"),
    "block": Role("within-subject block"),
    "context": Role("text before the response, for the items of a new study"),
    "response": Role("the text that was judged, for the items of a new study"),
}
DEFAULT_SYSTEM = "system"
HEADER_LINE = 1
NO_ANSWER = "empty cells (nothing was answered)"


@dataclass(frozen=True, slots=True)
class CriterionColumn:
    """A criterion of a wide table: one column, or one for each system of the row."""

    name: str
    column: str = ""
    numbered: Mapping[int, str] = field(default_factory=dict)


def named_columns(entries: Sequence[str]) -> list[tuple[str, str]]:
    """``name=column`` or just ``column`` for each entry of ``--criteria`` or ``--questions``."""
    pairs = []
    for entry in entries:
        name, sign, column = entry.partition("=")
        if not name.strip() or (sign and not column.strip()):
            raise DialometerError(f"'{entry}' names no column", remedy="write column, or name=column")
        pairs.append((name.strip(), (column if sign else name).strip()))
    return pairs


def find_columns(intake: Intake, columns: Columns, entries: Sequence[str], line: int) -> list[CriterionColumn]:
    """The column of each entry of ``--criteria`` or ``--questions``; one that is not there is reported."""
    found = []
    for name, wanted in named_columns(entries):
        column = columns.find(wanted)
        if column is None:
            intake.wrong(line, f"there is no column '{wanted}'", did_you_mean(wanted, list(columns.header)))
        else:
            found.append(CriterionColumn(name, column))
    return found


def answer_records(
    questions: Sequence[CriterionColumn], cells: Cells, *, line: int, rater: str, times: tuple[int, int]
) -> Iterator[AnswerRecord]:
    """What one row says about its rater."""
    for question in questions:
        raw = cells[question.column].strip()
        if raw:
            yield AnswerRecord(
                line=line,
                rater=rater,
                question=question.name,
                raw=raw,
                shown_at_ms=times[0],
                answered_at_ms=times[1],
                column=question.column,
            )


def rating_records(
    intake: Intake, rows: Iterator[TableRow], roles: Roles, *, prefixes: Sequence[str] = (), hint: str = ""
) -> Iterator[Record]:
    """The records of a table of ratings, its columns bound by what the user says and by their names."""
    first = next(rows, None)
    if first is None:
        return
    columns = Columns.bind(list(first.cells), intake.options.columns, roles, prefixes)
    table = RatingTable(intake, columns, HEADER_LINE, hint=hint)
    if not table.ok:
        return
    for row in chain([first], rows):
        yield from table.records(row)
        intake.has_read(row.line)


class _OfRow(TypedDict):
    """What all judgments of a row share."""

    line: int
    rater: str
    item: str
    shown_at_ms: int
    answered_at_ms: int
    position: int
    turn: int | None
    block: str
    condition: Condition
    hint: str


class RatingTable:
    """Turns the rows of one table into records. ``ok`` is False when the table lacks what it needs."""

    def __init__(self, intake: Intake, columns: Columns, line: int, *, hint: str = "") -> None:
        self.intake = intake
        self.columns = columns
        self.hint = hint
        self.cell = CellReader(intake, columns)
        self.numbers = sorted(columns.numbered.get("system", {}))
        self._texts: set[tuple[str, ...]] = set()
        n_before = intake.problems.n_errors
        self.cell.check_roles(line)
        self.criteria = self._find(intake.options.criteria, line)
        self.questions = find_columns(intake, columns, intake.options.questions, line)
        self._check_judgments(line)
        self.ok = intake.problems.n_errors == n_before
        intake.used |= self._used()
        intake.unread += self._unread()

    def records(self, row: TableRow) -> Iterator[Record]:
        """What one row says."""
        cells, line = row.cells, row.line
        rater = self.cell.needed(cells, "rater", line)
        item = self.cell.needed(cells, "item", line)
        if not rater or not item:
            return
        shown_at_ms, answered_at_ms = self.cell.times(cells, line)
        of_row: _OfRow = {
            "line": line,
            "rater": rater,
            "item": item,
            "shown_at_ms": shown_at_ms,
            "answered_at_ms": answered_at_ms,
            "position": self.cell.whole(cells, "position", line, least=1) or 0,
            "turn": self.cell.whole(cells, "turn", line, least=0),
            "block": self.cell.text(cells, "block", line),
            "condition": self.cell.condition(cells, line),
            "hint": self.hint,
        }
        yield from self._side_by_side(cells, of_row) if self.numbers else self._single(cells, of_row)
        times = (shown_at_ms, answered_at_ms)
        yield from answer_records(self.questions, cells, line=line, rater=rater, times=times)

    def _single(self, cells: Cells, of_row: _OfRow) -> Iterator[Record]:
        line = of_row["line"]
        system = self.cell.needed(cells, "system", line) if self.columns.has("system") else DEFAULT_SYSTEM
        if not system:
            return
        yield from self._shown(cells, of_row, system)
        if not self.criteria:
            name = self.cell.needed(cells, "criterion", line)
            raw = self.columns.text(cells, "value")
            if name and self._is_answered(raw):
                yield JudgmentRecord(criterion=name, raw=raw, system=system, column=self.cell.column("value"), **of_row)
        for criterion in self.criteria:
            raw = cells[criterion.column].strip()
            if self._is_answered(raw):
                yield JudgmentRecord(
                    criterion=criterion.name, raw=raw, system=system, column=criterion.column, **of_row
                )

    def _side_by_side(self, cells: Cells, of_row: _OfRow) -> Iterator[Record]:
        line = of_row["line"]
        systems = {number: self.cell.needed(cells, "system", line, number) for number in self.numbers}
        order = tuple(systems.values())
        if not all(order):
            return
        if len(set(order)) < len(order):
            self.intake.wrong(line, f"a system stands twice in one row: {', '.join(order)}", "correct the row")
            return
        for place, (number, system) in enumerate(systems.items(), start=1):
            yield from self._shown(cells, of_row, system, number)
            for criterion in self.criteria:
                column = criterion.numbered[number]
                raw = cells[column].strip()
                if self._is_answered(raw):
                    yield JudgmentRecord(
                        criterion=criterion.name,
                        raw=raw,
                        system=system,
                        shown=order,
                        side=place,
                        column=column,
                        **of_row,
                    )

    def _shown(self, cells: Cells, of_row: _OfRow, system: str, number: int = 0) -> Iterator[TextRecord]:
        """The texts of a row, once for each that is new."""
        line, item = of_row["line"], of_row["item"]
        context = self.cell.text(cells, "context", line)
        response = self.cell.text(cells, "response", line, number)
        key = (item, system, context, response)
        if key not in self._texts:
            self._texts.add(key)
            yield TextRecord(line=line, item=item, system=system, context=context, response=response)

    def _is_answered(self, raw: str) -> bool:
        if not raw:
            self.intake.left_out[NO_ANSWER] += 1
        return bool(raw)

    def _check_judgments(self, line: int) -> None:
        if self.intake.options.criteria:
            return
        if self.numbers or not self.columns.has("value"):
            remedy = "name it with --map value=COLUMN, or several with --criteria COLUMN,COLUMN"
            if self.numbers:
                remedy = "systems stand side by side, so name the criteria: --criteria quality for quality1, quality2 …"
            header = ", ".join(self.columns.header)
            self.intake.wrong(line, "no column is known to hold judgments", f"{remedy}; the file has {header}")
        elif not self.columns.has("criterion"):
            remedy = "say it with --map criterion=COLUMN, or --map criterion=:quality where all rows are about the same"
            self.intake.wrong(line, "no column says what was judged", remedy)

    def _find(self, entries: Sequence[str], line: int) -> list[CriterionColumn]:
        """The columns of criteria: one each, or one for each system where these stand side by side."""
        if not self.numbers:
            return find_columns(self.intake, self.columns, entries, line)
        columns = []
        for name, column in named_columns(entries):
            numbered = self.columns.find_numbered(column)
            if set(self.numbers) <= set(numbered):
                columns.append(CriterionColumn(name, numbered=numbered))
                continue
            wanted = ", ".join(f"{column}{number}" for number in self.numbers)
            message = f"systems stand side by side, but '{column}' has no column for each of them"
            self.intake.wrong(line, message, f"the header needs {wanted}")
        return columns

    def _unread(self) -> list[str]:
        """Columns that play no part."""
        read = {*self.columns.by_role.values()} - ({self.columns.by_role.get("value")} if self.criteria else set())
        read |= {column for several in self.columns.numbered.values() for column in several.values()}
        for named in (*self.criteria, *self.questions):
            read |= {named.column, *named.numbered.values()}
        return [column for column in self.columns.header if column not in read]

    def _used(self) -> dict[str, str]:
        used = self.columns.used(but=("criterion", "value") if self.criteria else ())
        for kind, columns in (("criterion", self.criteria), ("question", self.questions)):
            for named in columns:
                if named.column != named.name:
                    used[f"{kind} {named.name}"] = named.column or ", ".join(named.numbered.values())
        return used
