"""Tables of ratings in the three shapes people keep them: long, wide, and systems side by side.

Long has a column for the criterion and one for the value. Wide has a column for each criterion. Side by side has numbered
columns: ``team1``, ``team2`` are the systems of one row, ``quality1``, ``quality2`` what was said about each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypedDict

from dialometer.errors import DialometerError
from dialometer.exchange.candidates.columns import CandidateColumns, names_candidates
from dialometer.exchange.cell_reader import CellReader, Cells
from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.import_format import Intake
from dialometer.exchange.records import (
    AnswerRecord,
    Condition,
    JudgmentRecord,
    Record,
    SessionFacts,
    TextRecord,
)
from dialometer.model.session import NO_DATE_MS
from dialometer.readers.answer_columns import ANSWER, QUESTION, RATING
from dialometer.readers.table_rows import TableRow, some_columns
from dialometer.registry import did_you_mean

RATING_ROLES = {
    "rater": Role(
        "who judged",
        ("rater_id", "worker", "worker_id", "annotator", "annotator_id", "user_id", "judge"),
        is_needed=True,
    ),
    "item": Role("what was judged", ("item_id", "dialogue_id", "dialog_id", "conversation_id")),
    "question": Role("where answers to questions were judged: the question, by id or text", QUESTION[1:]),
    "answer": Role("the answer that was judged, by id or text", ANSWER[1:]),
    "gold": Role("yes or no: whether the maker of the answers calls this one right", ("is_gold",)),
    "system": Role("whose output was judged", ("system_id", "model", "bot", "agent")),
    "criterion": Role("what it was judged for", ("dimension", "metric")),
    "value": Role("the judgment itself", RATING[1:]),
    "time": Role("when it was submitted", ("answered_at", "submitted_at", "timestamp", "created_at")),
    "shown_at": Role("when it was shown"),
    "duration_s": Role("seconds from shown to submitted; needs a time too"),
    "session_minutes": Role("minutes that the rater's whole session took, the same in all of the rater's rows"),
    "position": Role("place of the item in the rater's session, from 1"),
    "turn": Role("turn of the dialogue that was judged, counted from 0"),
    "block": Role("within-subject block"),
    "context": Role("text before the response, for the items of a new study"),
    "response": Role("the text that was judged, for the items of a new study"),
}
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
            intake.wrong(line, f"there is no column '{wanted}'", did_you_mean(wanted, list(columns.header[:200])))
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
    question: str
    answer: str


class RatingTable:
    """Turns the rows of one table into records. ``ok`` is False when the table lacks what it needs.

    What was judged is an item, or the answer to a question.
    """

    def __init__(self, intake: Intake, columns: Columns, line: int, *, hint: str = "") -> None:
        self.intake = intake
        self.columns = columns
        self.hint = hint
        self.cell = CellReader(intake, columns)
        self.numbers = sorted(columns.numbered.get("system", {}))
        self._texts: set[tuple[str, ...]] = set()
        # Most files have few of the roles; those that are not there are not asked for in each of a million rows.
        self._has = frozenset(role for role in RATING_ROLES if columns.has(role))
        self._minutes: dict[str, float] = {}
        self._timed: set[str] = set()
        n_before = intake.problems.n_errors
        self.cell.check_roles(line)
        self.candidates = CandidateColumns(self.cell) if names_candidates(columns, intake.options.columns) else None
        if self.candidates is None and not columns.has("item"):
            remedy = f"name the column with --map item=COLUMN; the file has {some_columns(columns.header)}"
            self.intake.wrong(line, "no column is known to hold the item", remedy)
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
        item = self.cell.needed(cells, "item", line) if self.candidates is None else ""
        candidate = self.candidates.read(cells, line) if self.candidates is not None else None
        if not rater or not (item or candidate):
            return
        shown_at_ms, answered_at_ms = self.cell.times(cells, line)
        of_row: _OfRow = {
            "line": line,
            "rater": rater,
            "item": item,
            "shown_at_ms": shown_at_ms,
            "answered_at_ms": answered_at_ms,
            "position": (self.cell.whole(cells, "position", line, least=1) or 0) if "position" in self._has else 0,
            "turn": self.cell.whole(cells, "turn", line, least=0) if "turn" in self._has else None,
            "block": self.cell.text(cells, "block", line) if "block" in self._has else "",
            "condition": self.cell.condition(cells, line) if self.cell.factors else (),
            "hint": self.hint,
            "question": candidate.question if candidate else "",
            "answer": candidate.answer if candidate else "",
        }
        if candidate is not None and self.candidates is not None and self.candidates.is_new(candidate):
            yield candidate
        yield from self._side_by_side(cells, of_row) if self.numbers else self._single(cells, of_row)
        if "session_minutes" in self._has:
            yield from self._session(cells, of_row)
        if self.questions:
            times = (shown_at_ms, answered_at_ms)
            yield from answer_records(self.questions, cells, line=line, rater=rater, times=times)

    def _session(self, cells: Cells, of_row: _OfRow) -> Iterator[SessionFacts]:
        """How long the rater's session took, once for each rater."""
        line, rater = of_row["line"], of_row["rater"]
        minutes = self.cell.minutes(cells, "session_minutes", line)
        if minutes is None or self._minutes.setdefault(rater, minutes) != minutes:
            if minutes is not None:
                message = f"the session of the rater '{rater}' took {self._minutes[rater]:g} minutes in an earlier row"
                self.intake.wrong(line, message, "give each rater one number", self.cell.column("session_minutes"))
            return
        if rater not in self._timed:
            self._timed.add(rater)
            end_ms = NO_DATE_MS + round(minutes * 60_000)
            yield SessionFacts(
                line=line, rater=rater, condition=of_row["condition"], started_at_ms=NO_DATE_MS, finished_at_ms=end_ms
            )

    def _single(self, cells: Cells, of_row: _OfRow) -> Iterator[Record]:
        line = of_row["line"]
        system = ""
        if self.columns.has("system") and self.candidates is None:
            system = self.cell.needed(cells, "system", line)
            if not system:
                return
        yield from self._shown(cells, of_row, system)
        if not self.criteria:
            is_named = self.candidates is None or self.columns.has("criterion")
            name = self.cell.needed(cells, "criterion", line) if is_named else ""
            raw = self.columns.text(cells, "value")
            if (name or not is_named) and self._is_answered(raw):
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
            self.intake.wrong(line, f"a system appears twice in one row: {', '.join(order)}", "correct the row")
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
        if not item:
            return  # a candidate's texts are in its own record
        context = self.cell.text(cells, "context", line) if "context" in self._has else ""
        response = self.cell.text(cells, "response", line, number) if "response" in self._has else ""
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
                remedy = "systems are side by side, so name the criteria: --criteria quality for quality1, quality2 …"
            header = some_columns(self.columns.header)
            self.intake.wrong(line, "no column is known to hold judgments", f"{remedy}; the file has {header}")
        elif not self.columns.has("criterion") and self.candidates is None:
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
            message = f"systems are side by side, but '{column}' has no column for each of them"
            self.intake.wrong(line, message, f"the header needs {wanted}")
        return columns

    def _unread(self) -> list[str]:
        """Columns that play no part."""
        read = {*self.columns.by_role.values()} - ({self.columns.by_role.get("value")} if self.criteria else set())
        read |= {column for several in self.columns.numbered.values() for column in several.values()}
        for named in (*self.criteria, *self.questions):
            read |= {named.column, *named.numbered.values()}
        read |= set(self.candidates.used.values()) if self.candidates is not None else set()
        return [column for column in self.columns.header if column not in read]

    def _used(self) -> dict[str, str]:
        used = self.columns.used(but=("criterion", "value") if self.criteria else ())
        for kind, columns in (("criterion", self.criteria), ("question", self.questions)):
            for column in columns:
                if column.column != column.name:
                    used[f"{kind} {column.name}"] = column.column or ", ".join(column.numbered.values())
        if self.candidates is not None:
            used |= self.candidates.used
        return used
