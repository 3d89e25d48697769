"""Our own format: one dialogue per line as JSON, the one that :func:`~dialometer.readers.write_dialogues` writes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, ClassVar

from dialometer.errors import Problem
from dialometer.model.dialogue import ROLES, Role
from dialometer.readers.json_records import JsonRecord, json_records, kind_of, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile
from dialometer.readers.turn_parts import PART_KEYS
from dialometer.registry import did_you_mean

KEYS = ["id", "turns", "speakers", "system_prompt", "metadata"]
TURN_KEYS = ["speaker", "text", "role", *PART_KEYS]


@READERS.register("jsonl")
class JsonlReader(Reader):
    """``{"id": …, "turns": [{"speaker": …, "text": …}, …], "speakers"?: {…}, "metadata"?: {…}}``, further keys are kept."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    how_to_declare: ClassVar[str] = 'write "speakers": {"NAME": "agent"} in the line'

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """An object with turns that are not bare strings."""
        if not head.has_keys("turns"):
            return False
        turns = head.record["turns"]
        return not (isinstance(turns, list) and turns and isinstance(turns[0], str))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per line, as a stream; an array of such objects is read whole."""
        for record in objects(json_records(source, problems), problems):
            yield draft_of(record, problems)


def draft_of(record: JsonRecord, problems: Problems) -> DialogueDraft:
    """One object's draft with everything that is wrong in its shape; the writer checks its own lines by this too."""
    shape = _Shape(record.line, problems)
    fields, extras = shape.keys(record.value, KEYS, "")
    if extras:
        problems.assume(f"further keys are kept in the dialogue's metadata: {', '.join(map(repr, extras))}"[:200])
    turns = shape.list_of(fields.get("turns"), "turns") if "turns" in fields else shape.missing("turns")
    drafts = []
    for index, turn in enumerate(turns):
        where = f"turns[{index}]"
        values, about = shape.keys(_as_turn(turn), TURN_KEYS, where)
        if isinstance(turn, dict):
            speaker_fields = (values.get("speaker"), values.get("text"), values.get("role"))
            draft = TurnDraft(*speaker_fields, place=where, others=about)
            draft.tool_calls, draft.media = (values.get(name) for name in PART_KEYS)
            drafts.append(draft)
    return DialogueDraft(
        id=fields.get("id"),
        turns=drafts,
        line=record.line,
        system_prompt=fields.get("system_prompt", ""),
        speakers=shape.roles(fields.get("speakers", {})),
        metadata={**extras, **shape.mapping(fields.get("metadata", {}), "metadata")},
        faults=shape.faults,
    )


def _as_turn(turn: Any) -> Any:
    """A turn as chat programs write it (``role`` and ``content``) with the keys of this format."""
    if not isinstance(turn, dict) or "content" not in turn or "text" in turn:
        return turn
    renamed = {("text" if name == "content" else name): content for name, content in turn.items()}
    return renamed if "speaker" in turn or "role" not in turn else {"speaker": turn["role"], **renamed}


class _Shape:
    """Checks the containers of one line; their content is checked for all formats alike."""

    def __init__(self, line: int, problems: Problems) -> None:
        self.line = line
        self.problems = problems
        self.faults: list[Problem] = []

    def fault(self, message: str, remedy: str = "", field: str = "") -> None:
        self.faults.append(self.problems.problem(message, remedy=remedy, line=self.line, field=field))

    def missing(self, name: str) -> list[Any]:
        self.fault(f"'{name}' is missing", f"a line needs {', '.join(KEYS[:2])}", name)
        return []

    def mapping(self, value: object, field: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.fault(f"'{field}' must be an object, not {kind_of(value)}", "", field)
        return {}

    def list_of(self, value: object, field: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self.fault(f"'{field}' must be a list, not {kind_of(value)}", "", field)
        return []

    def keys(self, value: object, known: list[str], field: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The known keys of an object, and the others; a misspelt one is a fault, since it would be missed."""
        fields = self.mapping(value, field)
        extras = {name: content for name, content in fields.items() if name not in known}
        for name in extras:
            nearest = difflib.get_close_matches(name[:50], [key for key in known if len(key) > 3], n=1, cutoff=0.8)
            if nearest:
                self.fault(
                    f"unknown key '{name}'", f"did you mean '{nearest[0]}'?", f"{field}.{name}" if field else name
                )
        return {name: content for name, content in fields.items() if name in known}, extras

    def roles(self, value: object) -> dict[str, Role]:
        roles: dict[str, Role] = {}
        for name, given in self.mapping(value, "speakers").items():
            role = next((role for role in ROLES if role == given), None)
            if role is None:
                remedy = did_you_mean(str(given), list(ROLES))
                self.fault(f"speaker '{name}' has the unknown role '{given}'", remedy, f"speakers.{name}")
            else:
                roles[name] = role
        return roles
