"""Our own format as a table: one row per turn, for those who keep dialogues in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, ClassVar, Literal

from dialometer.readers.problems import Problems
from dialometer.readers.reader import DELIMITERS, READERS, DialogueDraft, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, plain_column, table_rows

NEEDED = ("dialogue_id", "speaker", "text")
OWN = (*NEEDED, "role")
ALSO = {
    "dialogue_id": ("dialogue", "dialog_id", "dialog", "conversation_id", "conversation", "chat_id", "session_id"),
    "speaker": ("sender", "author", "from", "role"),
    "text": ("utterance", "message", "content"),
}
"""What the needed columns are called elsewhere."""
MEANT = ("rating", "system", "bot", "model", "user")
"""Columns about a whole dialogue that analyses use: these must not change within it."""


@READERS.register("csv")
class CsvReader(Reader):
    """Columns ``dialogue_id``, ``speaker``, ``text`` and maybe ``role``; every other column tells about the dialogue."""

    delimiter: Literal[",", ";", "\t"] | None = None

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv")
    how_to_declare: ClassVar[str] = "fill the column 'role'"

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """A header with the needed columns."""
        headers = ({plain_column(name) for name in head.columns(delimiter)} for delimiter in DELIMITERS)
        return any(
            all(header & {name, *ALSO[name]} for name in NEEDED) and "winner" not in header for header in headers
        )

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft for the rows with the same id: as a stream, or put together where the rows of dialogues are mixed."""
        rows = self._rows(source, problems)
        if not _is_mixed(self._rows(source, Problems(source.name))):
            for dialogue_id, group in groupby(rows, key=_id_of):
                yield _draft(dialogue_id, list(group), problems)
            return
        problems.assume("rows of one dialogue that are not together are put together, in the order of the file")
        by_id: dict[str, list[TableRow]] = {}
        for row in rows:
            by_id.setdefault(_id_of(row), []).append(row)
        for dialogue_id, several in by_id.items():
            yield _draft(dialogue_id, several, problems)

    def _rows(self, source: SourceFile, problems: Problems) -> Iterator[TableRow]:
        """The rows with the needed columns under their own names."""
        first = next(table_rows(source, Problems(source.name), (), self.delimiter), None)
        by_plain = {plain_column(name): name for name in (first.cells if first else ())}
        called = {}
        for name in NEEDED:
            other = next((also for also in ALSO[name] if also in by_plain), "")
            if name not in by_plain and other:
                called[by_plain[other]] = name
                problems.assume(f"the column '{by_plain[other]}' is read as '{name}'")
        needed = [next((column for column in called if called[column] == name), name) for name in NEEDED]
        for row in table_rows(source, problems, needed, self.delimiter):
            yield (
                TableRow({called.get(name, name): cell for name, cell in row.cells.items()}, row.line)
                if called
                else row
            )


def _id_of(row: TableRow) -> str:
    return row.cells["dialogue_id"].strip()


def _is_mixed(rows: Iterator[TableRow]) -> bool:
    """Whether a dialogue comes back after another one began."""
    seen: set[str] = set()
    for dialogue_id, _ in groupby(rows, key=_id_of):
        if dialogue_id in seen:
            return True
        seen.add(dialogue_id)
    return False


def _draft(dialogue_id: str, rows: list[TableRow], problems: Problems) -> DialogueDraft:
    first = rows[0]
    draft = DialogueDraft(id=dialogue_id, turns=[], line=first.line)
    metadata: dict[str, Any] = {}
    for name, value in first.cells.items():
        if name not in OWN:
            metadata[name] = value.strip() or None  # an empty cell is "not known", never an empty text
    for row in rows:
        cells = row.cells
        draft.turns.append(TurnDraft(cells["speaker"], cells["text"], cells.get("role", "").strip() or None, row.line))
        for name, known in list(metadata.items()):
            here = cells[name].strip() or None
            if here != known and name not in MEANT:
                problems.assume(f"the column '{name}' changes within dialogues and is not kept for those")
                del metadata[name]
            elif here != known:
                message = f"'{name}' changes within dialogue '{dialogue_id}': {known!r} before, {here!r} here"
                remedy = "repeat the same value in every row of the dialogue"
                draft.faults.append(problems.problem(message, remedy=remedy, line=row.line, field=name))
    draft.metadata = metadata
    return draft
