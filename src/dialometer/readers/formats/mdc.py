"""Dialogues of the Margarita Dialogue Corpus: a person asks, the recorded person answers.

Reference: Chierici, Habash, Bicec, "The Margarita Dialogue Corpus", LREC 2020.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, table_rows

NEEDED = ("Mode", "Conversation", "Exchange", "Q", "A")
_YES, _NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
_ANSWER_COLUMN = re.compile(r"BA\d+")


@READERS.register("mdc")
class MdcReader(Reader):
    """A table with one exchange per row; ``Mode`` and ``Conversation`` together name the dialogue.

    ``metadata["exchanges"]`` keeps for each exchange its number, its note and the knowledge-base answers that the
    avatar's maker marked as right (``BA1``, ``BA2`` …). A column ``Coreference`` (yes or no) of one's own marks questions that
    need the turns before them.
    """

    empty_turns: ClassVar[EmptyTurns] = "leave_out"

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """A header with the corpus's columns."""
        return set(NEEDED) <= set(head.columns())

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per conversation, in the order of their first rows."""
        conversations: dict[tuple[str, str], list[TableRow]] = {}
        for row in table_rows(source, problems, NEEDED, ","):
            key = row.cells["Mode"].strip(), row.cells["Conversation"].strip()
            conversations.setdefault(key, []).append(row)
        for (mode, conversation), rows in conversations.items():
            yield _draft(mode, conversation, rows, problems)


def _draft(mode: str, conversation: str, rows: list[TableRow], problems: Problems) -> DialogueDraft:
    draft = DialogueDraft(f"{mode}-{conversation}", [], line=rows[0].line)
    exchanges: list[dict[str, Any]] = []
    for row in rows:
        cells = row.cells
        number = _number(cells["Exchange"])
        if number is None or (exchanges and number <= exchanges[-1]["exchange"]):
            message = f"exchange {cells['Exchange']!r} of {draft.id} does not come after the one before"
            remedy = "number the exchanges of a conversation in rising order"
            draft.faults.append(problems.problem(message, remedy=remedy, line=row.line, field="Exchange"))
        exchanges.append(
            {
                "exchange": number or 0,
                "answers": [cells[name] for name in cells if _ANSWER_COLUMN.fullmatch(name) and cells[name].strip()],
                "part": cells.get("Experiment", "").strip() or None,
                "note": cells.get("Notes", "").strip() or None,
                **({"coreference": _mark(row, problems, draft)} if "Coreference" in cells else {}),
            }
        )
        draft.turns.append(TurnDraft("User", cells["Q"], line=row.line, text_key="Q"))
        draft.turns.append(TurnDraft("Agent", cells["A"], line=row.line, text_key="A"))
    draft.metadata = {"mode": mode, "conversation": conversation, "exchanges": exchanges}
    return draft


def _number(cell: str) -> int | None:
    text = cell.strip()
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _mark(row: TableRow, problems: Problems, draft: DialogueDraft) -> bool | None:
    text = row.cells.get("Coreference", "").strip().lower()
    if text not in ("", *_YES, *_NO):
        message = f"'{text}' is neither yes nor no"
        draft.faults.append(problems.problem(message, remedy="write yes or no", line=row.line, field="Coreference"))
    return text in _YES if text else None
