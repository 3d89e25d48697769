"""Votes between two systems: which was better, or a tie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import ClassVar

from dialometer.exchange.cell_reader import CellReader, Cells
from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import (
    HEADER_LINE,
    NO_ANSWER,
    RATING_ROLES,
    answer_records,
    find_columns,
)
from dialometer.exchange.records import JudgmentRecord, Record, TextRecord, read_time_ms
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE, is_missing
from dialometer.readers.problems import Problems
from dialometer.readers.table_rows import TableRow, table_rows

CRITERION = "preference"
_A = ("crs1", "system_a", "model_a", "system1", "model1", "left")
_B = ("crs2", "system_b", "model_b", "system2", "model2", "right")
_WORDS = {
    TIE: (
        "tie",
        "draw",
        "equal",
        "same",
        "both",
        "neither",
        "no preference",
    ),
    BOTH_BAD: ("both_bad", "both bad", "bothbad", "tie (bothbad)", "both are bad", "neither is good"),
    CANNOT_TELL: ("cannot_tell", "cannot tell", "can't tell", "unsure", "do not know", "don't know"),
}
VOTE_WORDS = {word: value for value, words in _WORDS.items() for word in words}
"""Words for a vote that names neither side."""
_FIRST = {"a", "1", "left", "first", "model_a", "system_a", "model1", "system1"}
_SECOND = {"b", "2", "right", "second", "model_b", "system_b", "model2", "system2"}


@FORMATS.register("votes")
class ArenaVotes(ImportFormat):
    """One vote a row. Without an item column every vote is an item of its own, as in arenas with live conversations."""

    roles: ClassVar[Roles] = {
        "rater": RATING_ROLES["rater"],
        "a": Role("the first (left) system", _A, is_needed=True),
        "b": Role("the second (right) system", _B, is_needed=True),
        "winner": Role("the better system by name, or a, b, tie", ("vote", "choice", "preference"), is_needed=True),
        "item": Role("what was compared; every row for itself if there is none", ("item_id", "question_id")),
        "criterion": Role(f"what was asked; “{CRITERION}” if there is none"),
        "time": Role("when it was submitted", ("answered_at", "timestamp", "tstamp", "created_at", "session_id")),
        "shown_at": RATING_ROLES["shown_at"],
        "duration_s": RATING_ROLES["duration_s"],
        "position": RATING_ROLES["position"],
        "context": RATING_ROLES["context"],
        "text_a": Role("what the first system said, for the items of a new study"),
        "text_b": Role("what the second system said, for the items of a new study"),
    }
    takes: ClassVar[frozenset[str]] = frozenset({"questions", "time_format"})
    summary: ClassVar[str] = "votes between two systems, with or without ties (one row for each vote)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Two columns of systems and one of votes."""
        return not Columns.bind(list(header), {}, self.roles).missing

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment a row."""
        rows = table_rows(intake.source, intake.problems, ())
        first = next(rows, None)
        if first is None:
            return
        columns = Columns.bind(list(first.cells), intake.options.columns, self.roles)
        _drop_a_time_that_is_none(columns, first, intake)
        n_before = intake.problems.n_errors
        table = _VoteTable(intake, columns, has_many_pairs=_has_many_pairs(intake, columns))
        table.cell.check_roles(HEADER_LINE)
        intake.used |= columns.used()
        read = {*columns.by_role.values(), *(question.column for question in table.questions)}
        intake.unread += [column for column in columns.header if column not in read]
        if intake.problems.n_errors > n_before:
            return
        for number, row in enumerate(chain([first], rows), start=1):
            yield from table.records(row, number)
            intake.has_read(row.line)


def _drop_a_time_that_is_none(columns: Columns, first: TableRow, intake: Intake) -> None:
    """A column that was taken for the time only because of its name must look like one."""
    if "time" in intake.options.columns or "time" not in columns.by_role:
        return
    try:
        read_time_ms(columns.text(first.cells, "time"), intake.options.time_format)
    except ValueError:
        del columns.by_role["time"]


def _has_many_pairs(intake: Intake, columns: Columns) -> bool:
    """Whether one item is compared between different pairs of systems, as a question of a benchmark is."""
    if "item" not in columns.by_role:
        return False
    pairs: dict[str, frozenset[str]] = {}
    for row in table_rows(intake.source, Problems(str(intake.path)), ()):
        item, a, b = (columns.text(row.cells, role) for role in ("item", "a", "b"))
        if pairs.setdefault(item, frozenset((a, b))) != {a, b}:
            return True
    return False


class _VoteTable:
    """Turns rows into votes. Where items have many pairs, item and pair together are what was shown."""

    def __init__(self, intake: Intake, columns: Columns, *, has_many_pairs: bool) -> None:
        self.intake = intake
        self.columns = columns
        self.has_many_pairs = has_many_pairs
        self.cell = CellReader(intake, columns)
        self.questions = find_columns(intake, columns, intake.options.questions, HEADER_LINE)

    def records(self, row: TableRow, number: int) -> Iterator[Record]:
        """The two sides and the vote."""
        cells, line, cell = row.cells, row.line, self.cell
        rater, a, b = (cell.needed(cells, role, line) for role in ("rater", "a", "b"))
        if not rater or not a or not b:
            return
        if a == b:
            self.intake.wrong(line, f"'{a}' is compared with itself", "correct or remove the row", cell.column("b"))
            return
        item = self._item(cells, a, b, line, number)
        criterion = cell.needed(cells, "criterion", line) if self.columns.has("criterion") else CRITERION
        vote = self._vote(cells, a, b, line)
        if not item or not criterion or not vote:
            return
        context = cell.text(cells, "context", line)
        for system, role in ((a, "text_a"), (b, "text_b")):
            yield TextRecord(
                line=line, item=item, system=system, context=context, response=cell.text(cells, role, line)
            )
        shown_at_ms, answered_at_ms = cell.times(cells, line)
        yield JudgmentRecord(
            line=line,
            rater=rater,
            item=item,
            criterion=criterion,
            raw=vote,
            shown=(a, b),
            position=cell.whole(cells, "position", line, least=1) or 0,
            shown_at_ms=shown_at_ms,
            answered_at_ms=answered_at_ms,
            condition=cell.condition(cells, line),
            hint="pairwise",
            column=cell.column("winner"),
        )
        times = (shown_at_ms, answered_at_ms)
        yield from answer_records(self.questions, cells, line=line, rater=rater, times=times)

    def _item(self, cells: Cells, a: str, b: str, line: int, number: int) -> str:
        if not self.columns.has("item"):
            return f"{self.intake.source.stem}-{number:04d}"
        item = self.cell.needed(cells, "item", line)
        return f"{item} ({' or '.join(sorted((a, b)))})" if item and self.has_many_pairs else item

    def _vote(self, cells: Cells, a: str, b: str, line: int) -> str:
        """The winner's name, ``tie`` or ``cannot_tell``; empty where there was no vote or it cannot be read."""
        text = self.cell.text(cells, "winner", line)
        if not self.columns.text(cells, "winner"):
            self.intake.left_out[NO_ANSWER] += 1
            return ""
        if text in (a, b):
            return text
        word = text.lower()
        if word in _FIRST or text == self.columns.by_role.get("a"):
            return a
        if word in _SECOND or text == self.columns.by_role.get("b"):
            return b
        if word not in VOTE_WORDS and is_missing(text):
            self.intake.left_out[NO_ANSWER] += 1
        elif word not in VOTE_WORDS:
            remedy = f"write '{a}', '{b}', a, b, tie or cannot_tell"
            self.intake.wrong(line, f"'{text}' is none of the two systems", remedy, self.cell.column("winner"))
        return VOTE_WORDS.get(word, "")
