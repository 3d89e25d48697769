"""Our own format as a table: one row per turn, for those who keep dialogues in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, ClassVar, Literal

from dialometer.readers.problems import Problems
from dialometer.readers.reader import DELIMITERS, READERS, DialogueDraft, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, table_rows

NEEDED = ("dialogue_id", "speaker", "text")
OWN = (*NEEDED, "role")


@READERS.register("csv")
class CsvReader(Reader):
    """Columns ``dialogue_id``, ``speaker``, ``text`` and maybe ``role``; every other column tells about the dialogue."""

    delimiter: Literal[",", ";", "\t"] | None = None

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv")
    how_to_declare: ClassVar[str] = "fill the column 'role'"

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """A header with the needed columns."""
        return any(set(NEEDED) <= set(head.columns(delimiter)) for delimiter in DELIMITERS)

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per run of rows with the same id, as a stream; an id that comes back is noticed as used before."""
        rows = table_rows(source, problems, NEEDED, self.delimiter)
        for dialogue_id, group in groupby(rows, key=lambda row: row.cells["dialogue_id"].strip()):
            yield _draft(dialogue_id, list(group), problems)


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
        for name, known in metadata.items():
            here = cells[name].strip() or None
            if here != known:
                message = f"'{name}' changes within dialogue '{dialogue_id}': {known!r} before, {here!r} here"
                remedy = "repeat the same value in every row of the dialogue"
                draft.faults.append(problems.problem(message, remedy=remedy, line=row.line, field=name))
    draft.metadata = metadata
    return draft
