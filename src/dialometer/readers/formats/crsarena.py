"""CRSArena-Dial: people comparing conversational recommenders.

Reference: Bernard et al., "CRS Arena: Crowdsourced Benchmarking of Conversational Recommender Systems", 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from dialometer.errors import Problem
from dialometer.readers.json_records import JsonRecord, json_records, kind_of, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile

_SPEAKERS = {"USER": "User", "AGENT": "Agent"}
_OWN_KEYS = {"conversation ID", "agent", "user", "conversation", "metadata"}
_OWN_TURN_KEYS = {"participant", "utterance", "utterance ID"}


@READERS.register("crsarena")
class CrsArenaReader(Reader):
    """A JSON array of conversations. The system, the user's pseudonym and the sentiment go to the metadata."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """Records with ``conversation ID`` and ``conversation``."""
        return head.has_keys("conversation ID", "conversation")

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per record."""
        for record in objects(json_records(source, problems), problems):
            yield _draft(record, problems)


def _draft(record: JsonRecord, problems: Problems) -> DialogueDraft:
    value: dict[str, Any] = record.value
    faults: list[Problem] = []

    def expect(content: object, kind: type, field: str) -> Any:
        if isinstance(content, kind):
            return content
        expected = kind_of(kind())
        message = f"'{field}' must be {expected}, not {kind_of(content)}"
        faults.append(problems.problem(message, line=record.line, column=record.column, field=field))
        return kind()

    metadata: dict[str, Any] = {
        "system": expect(value.get("agent"), dict, "agent").get("id"),
        "user_id": expect(value.get("user"), dict, "user").get("id"),
        **expect(value.get("metadata", {}), dict, "metadata"),
        **{key: other for key, other in value.items() if key not in _OWN_KEYS},
    }
    turns = []
    for index, turn_data in enumerate(expect(value.get("conversation"), list, "conversation")):
        field = f"conversation[{index}]"
        turn = expect(turn_data, dict, field)
        said_by = turn.get("participant")
        speaker = _SPEAKERS.get(said_by, said_by) if isinstance(said_by, str) else said_by
        others = {key: other for key, other in turn.items() if key not in _OWN_TURN_KEYS}
        turns.append(
            TurnDraft(
                speaker,
                turn.get("utterance"),
                place=field,
                speaker_key="participant",
                text_key="utterance",
                others=others,
            )
        )
    return DialogueDraft(
        value.get("conversation ID"), turns, record.line, record.column, metadata=metadata, faults=faults
    )
