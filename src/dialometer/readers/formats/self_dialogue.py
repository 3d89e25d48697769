"""Self-dialogues: one person writes both sides about a topic.

Reference: Fainberg et al., "Talking to myself: self-dialogues as data for conversational agents", 2018.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.json_records import JsonRecord, kind_of, line_records, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile


@READERS.register("self_dialogue")
class SelfDialogueReader(Reader):
    """``{"id": …, "topic": …, "turns": ["…", …]}`` per line; the speakers A and B take turns, A begins."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = {"A": "person", "B": "person"}

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """Records whose turns are bare strings."""
        turns = head.record["turns"] if head.has_keys("turns") else None
        return isinstance(turns, list) and bool(turns) and isinstance(turns[0], str)

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per line, as a stream."""
        for record in objects(line_records(source, problems), problems):
            yield _draft(record, problems)


def _draft(record: JsonRecord, problems: Problems) -> DialogueDraft:
    value: dict[str, Any] = record.value
    metadata = {key: other for key, other in value.items() if key not in ("id", "turns")}
    draft = DialogueDraft(value.get("id"), [], line=record.line, metadata=metadata)
    turns = value.get("turns")
    if not isinstance(turns, list):
        message = f"'turns' must be a list, not {kind_of(turns)}"
        draft.faults.append(problems.problem(message, line=record.line, field="turns"))
        return draft
    # The speakers alternate in the file, so that a turn left out later takes its speaker with it.
    draft.turns = [TurnDraft("AB"[i % 2], text, text_key=f"turns[{i}]") for i, text in enumerate(turns)]
    return draft
