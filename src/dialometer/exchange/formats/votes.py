"""Votes between two systems: which was better, or a tie; the battles of arenas and of MT-Bench among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

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
from dialometer.exchange.side_turns import SideTurns
from dialometer.model.shared_texts import PROMPT as PROMPT_OF_ITEMS
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE, is_missing, tidy, to_number
from dialometer.readers.chats import as_messages, in_cell
from dialometer.readers.paired_chats import PROMPT, REPEATED, SAID, WINNERS, winner_in
from dialometer.readers.problems import Problems
from dialometer.readers.table_rows import TableRow, some_columns, table_rows

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


_MEANT = frozenset({"practice", "gold", "factors", "first", "second", "first_rating", "second_rating", "user_rating"})
"""Keys of an item's metadata that studies and reports act on."""
REPEATS = "later votes of a rater on the same item"
EACH_ITS_OWN = "no column names the rater: every vote counts as a rater of its own"


@FORMATS.register("votes")
class ArenaVotes(ImportFormat):
    """One vote a row. Without an item column every vote is an item of its own, as in arenas with live conversations."""

    roles: ClassVar[Roles] = {
        "rater": Role(RATING_ROLES["rater"].meaning, (*RATING_ROLES["rater"].usual, "evaluation_session_id")),
        "a": Role("the first (left) system", _A, is_needed=True),
        "b": Role("the second (right) system", _B, is_needed=True),
        "winner": Role("the better system by name, or a, b, tie, both_bad", ("vote", "choice", "preference")),
        "item": Role("what was compared; every row for itself if there is none", ("item_id", "question_id")),
        "turn": Role("up to which response the conversations were judged, from 1; it is part of the item"),
        "criterion": Role(f"what was asked; “{CRITERION}” if there is none"),
        "time": Role("when it was submitted", ("answered_at", "timestamp", "tstamp", "created_at", "session_id")),
        "shown_at": RATING_ROLES["shown_at"],
        "duration_s": RATING_ROLES["duration_s"],
        "position": RATING_ROLES["position"],
        "context": Role(RATING_ROLES["context"].meaning, PROMPT[:1]),
        "text_a": Role("what the first system said, or the whole conversation", tuple(f"{name}_a" for name in SAID)),
        "text_b": Role("what the second system said, or the whole conversation", tuple(f"{name}_b" for name in SAID)),
    }
    takes: ClassVar[frozenset[str]] = frozenset({"questions", "time_format"})
    summary: ClassVar[str] = (
        "votes between two systems, with or without ties (one row for each vote), as arenas keep them"
    )

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Two columns of systems and one of votes, or those of the Arena-55k layout."""
        columns = Columns.bind(list(header), {}, self.roles)
        return not columns.missing and (columns.has("winner") or set(WINNERS) <= set(header))

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment a row."""
        rows = table_rows(intake.source, intake.problems, ())
        first = next(rows, None)
        if first is None:
            return
        columns = Columns.bind(list(first.cells), intake.options.columns, self.roles)
        _drop_a_time_that_is_none(columns, first, intake)
        is_arena = columns.has("text_a") or set(WINNERS) <= set(columns.header)
        if is_arena and not columns.has("item") and "id" in columns.header:
            columns.by_role["item"] = "id"
        n_before = intake.problems.n_errors
        _check(intake, columns, is_arena=is_arena)
        table = _VoteTable(intake, columns, is_arena=is_arena)
        table.cell.check_roles(HEADER_LINE)
        if intake.problems.n_errors > n_before:
            return
        intake.used |= columns.used() | ({} if columns.has("winner") else {"winner": ", ".join(WINNERS)})
        table.look_ahead()
        for number, row in enumerate(chain([first], rows), start=1):
            yield from table.records(row, number)
            intake.has_read(row.line)


def _check(intake: Intake, columns: Columns, *, is_arena: bool) -> None:
    """Report what only this table needs: a winner in one of two layouts, and raters where it is no arena's."""
    header = some_columns(columns.header)
    if not columns.has("winner") and not set(WINNERS) <= set(columns.header):
        remedy = f"name the column with --map winner=COLUMN; the file has {header}"
        intake.wrong(HEADER_LINE, "no column is known to hold the winner", remedy)
    if not columns.has("rater") and not is_arena:
        remedy = f"name the column with --map rater=COLUMN; the file has {header}"
        intake.wrong(HEADER_LINE, "no column is known to hold the rater", remedy)
    elif not columns.has("rater"):
        intake.problems.assume(EACH_ITS_OWN)


def _drop_a_time_that_is_none(columns: Columns, first: TableRow, intake: Intake) -> None:
    """A column that was taken for the time only because of its name must look like one."""
    if "time" in intake.options.columns or "time" not in columns.by_role:
        return
    try:
        read_time_ms(columns.text(first.cells, "time"), intake.options.time_format)
    except ValueError:
        del columns.by_role["time"]


@dataclass(slots=True)
class _Repeated:
    """What a first look at the table shows: items are compared between several pairs or at several turns, as a benchmark's are."""

    pairs: dict[str, frozenset[str]] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)
    has_many_pairs: bool = False
    has_many_turns: bool = False

    def add(self, item: str, pair: frozenset[str], turn: str) -> None:
        self.has_many_pairs |= self.pairs.setdefault(item, pair) != pair
        self.has_many_turns |= self.turns.setdefault(item, turn) != turn


class _VoteTable:
    """Turns rows into votes. Where items have many pairs or turns, all of them together are what was shown."""

    def __init__(self, intake: Intake, columns: Columns, *, is_arena: bool) -> None:
        self.intake = intake
        self.columns = columns
        self.is_arena = is_arena
        self.cell = CellReader(intake, columns)
        self.questions = find_columns(intake, columns, intake.options.questions, HEADER_LINE)
        self.sides = SideTurns(intake)
        self.repeated = _Repeated()
        self.about: list[str] = []
        """Columns that play no other part and are the same in all rows of an item: they are kept with the item."""
        self._voted: set[tuple[str, str, str]] = set()

    def look_ahead(self) -> None:
        """Go through the table once: what items are, and which other columns tell something about them."""
        read = {*self.columns.by_role.values(), *(question.column for question in self.questions), *WINNERS, *REPEATED}
        unread = [column for column in self.columns.header if column not in read]
        has_items = "item" in self.columns.by_role
        for row in table_rows(self.intake.source, Problems(str(self.intake.path)), ()) if has_items else ():
            item, a, b, turn = (self.columns.text(row.cells, role) for role in ("item", "a", "b", "turn"))
            self.repeated.add(item, frozenset((a, b)), turn)
        known: dict[str, list[str]] = {}
        varying: set[str] = set()
        if has_items and unread:
            for number, row in enumerate(table_rows(self.intake.source, Problems(str(self.intake.path)), ()), start=1):
                a, b = (self.columns.text(row.cells, role) for role in ("a", "b"))
                item = self._item(row.cells, a, b, row.line, number)
                cells = [row.cells[name] for name in unread]
                before = known.setdefault(item, cells)
                if before is not cells and before != cells:
                    varying |= {name for name, old, new in zip(unread, before, cells, strict=True) if old != new}
        self.about = [name for name in unread if name not in varying]
        header, kept = set(self.columns.header), set(self.about)  # a table may have thousands of columns
        self.intake.unread += [name for name in (*unread, *REPEATED) if name in header and name not in kept]
        if self.about:
            self.intake.used["kept with the item"] = some_columns(self.about)

    def records(self, row: TableRow, number: int) -> Iterator[Record]:
        """The two sides and the vote."""
        cells, line, cell = row.cells, row.line, self.cell
        rater = cell.needed(cells, "rater", line) if self.columns.has("rater") else f"vote-{number}"
        a, b = (cell.needed(cells, role, line) for role in ("a", "b"))
        if not rater or not a or not b:
            return
        if a == b:
            self.intake.wrong(line, f"'{a}' is compared with itself", "correct or remove the row", cell.column("b"))
            return
        item = self._item(cells, a, b, line, number)
        criterion = cell.needed(cells, "criterion", line) if self.columns.has("criterion") else CRITERION
        vote = self._vote(cells, a, b, line)
        if not item:
            cell.needed(cells, "item", line)
        if not item or not criterion or not vote:
            return
        if self.is_arena and (rater, item, criterion) in self._voted:
            self.intake.left_out[REPEATS] += 1
            return
        self._voted.add((rater, item, criterion))
        if self.intake.needs_texts:
            yield from self._texts(cells, item, (a, b), line)
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

    def _texts(self, cells: Cells, item: str, systems: tuple[str, str], line: int) -> Iterator[TextRecord]:
        """What both systems said: texts, or whole conversations."""
        about = about_item(cells, self.about)
        if self.repeated.has_many_pairs or self.repeated.has_many_turns:
            about.setdefault(PROMPT_OF_ITEMS, self.columns.text(cells, "item"))
        if self.columns.has("turn"):
            about["turn"] = cell_value(self.columns.text(cells, "turn"))
        for system, role in zip(systems, ("text_a", "text_b"), strict=True):
            told, said = self.columns.text(cells, "context"), self.columns.text(cells, role)
            messages = as_messages(said, told) if isinstance(in_cell(said), list) else None
            if messages is None:
                context, response = (self.cell.text(cells, name, line) for name in ("context", role))
                yield TextRecord(line=line, item=item, system=system, context=context, response=response, about=about)
                continue
            until = self.cell.whole(cells, "turn", line, least=1)
            turns = self.sides.turns(messages, line, self.cell.column(role), n_responses=until)
            yield TextRecord(line=line, item=item, system=system, turns=turns, about=about)

    def _item(self, cells: Cells, a: str, b: str, line: int, number: int) -> str:
        if not self.columns.has("item"):
            return f"{self.intake.source.stem}-{number:04d}"
        item = self.cell.text(cells, "item", line)
        if item and self.repeated.has_many_turns:
            item = f"{item} turn {self.columns.text(cells, 'turn')}"
        return f"{item} ({' or '.join(sorted((a, b)))})" if item and self.repeated.has_many_pairs else item

    def _vote(self, cells: Cells, a: str, b: str, line: int) -> str:
        """The winner's name, ``tie``, ``both_bad`` or ``cannot_tell``; empty where there was no vote or it cannot be read."""
        text = self.cell.text(cells, "winner", line) if self.columns.has("winner") else winner_in(cells)
        if not text:
            self.intake.left_out[NO_ANSWER] += 1
            return ""
        system_columns = {self.columns.by_role.get("a"): a, self.columns.by_role.get("b"): b}
        meant = side_of_vote(text, a, b) or system_columns.get(text, "")
        if meant:
            return meant
        if is_missing(text):
            self.intake.left_out[NO_ANSWER] += 1
        else:
            remedy = f"write '{a}', '{b}', a, b, tie, both_bad or cannot_tell"
            self.intake.wrong(line, f"'{text}' is none of the two systems", remedy, self.cell.column("winner"))
        return ""


def side_of_vote(text: str, a: str, b: str) -> str:
    """The system that a vote names, ``tie``, ``both_bad`` or ``cannot_tell``; empty where it means none of them."""
    if text in (a, b):
        return text
    word = text.strip().lower()
    if word in _FIRST or word in _SECOND:
        return a if word in _FIRST else b
    return VOTE_WORDS.get(word, "")


def about_item(cells: Cells, names: Sequence[str]) -> dict[str, Any]:
    """What the item's metadata keep of a row."""
    return {kept_key(name): cell_value(cells[name]) for name in names if cells[name].strip()}


def kept_key(name: str) -> str:
    """Under which key an item's metadata keep a column; a name that means something to studies gets another one."""
    return f"{name}_column" if name in _MEANT else name


def cell_value(cell: str) -> Any:
    """A cell as what it is: a number, true or false, a list or object, else text."""
    text = cell.strip()
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    number = to_number(text)
    if number is not None and str(tidy(number)) == text:
        return tidy(number)
    return in_cell(text)
