"""Our own format: one dialogue per line as JSON, the one that :func:`~dialometer.readers.write_dialogues` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from dialometer.errors import Problem
from dialometer.model.dialogue import ROLES, Role
from dialometer.readers.json_records import JsonRecord, kind_of, line_records, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile
from dialometer.registry import did_you_mean

KEYS = ["id", "turns", "speakers", "metadata"]
TURN_KEYS = ["speaker", "text", "role"]


@READERS.register("jsonl")
class JsonlReader(Reader):
    """``{"id": …, "turns": [{"speaker": …, "text": …}, …], "speakers"?: {…}, "metadata"?: {…}}``, strict about keys."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    how_to_declare: ClassVar[str] = 'write "speakers": {"NAME": "agent"} in the line'

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """An object with turns that are not bare strings."""
        if not head.has_keys("turns") or head.text.lstrip().startswith("["):
            return False
        turns = head.record["turns"]
        return not (isinstance(turns, list) and turns and isinstance(turns[0], str))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per line, as a stream."""
        for record in objects(line_records(source, problems), problems):
            yield draft_of(record, problems)


def draft_of(record: JsonRecord, problems: Problems) -> DialogueDraft:
    """One object's draft with everything that is wrong in its shape; the writer checks its own lines by this too."""
    shape = _Shape(record.line, problems)
    fields = shape.keys(record.value, KEYS, "", "everything else belongs in 'metadata'")
    turns = shape.list_of(fields.get("turns"), "turns") if "turns" in fields else shape.missing("turns")
    drafts = []
    for index, turn in enumerate(turns):
        where = f"turns[{index}]"
        values = shape.keys(turn, TURN_KEYS, where, "put it in the dialogue's 'metadata'")
        if isinstance(turn, dict):
            drafts.append(TurnDraft(values.get("speaker"), values.get("text"), values.get("role"), place=where))
    return DialogueDraft(
        id=fields.get("id"),
        turns=drafts,
        line=record.line,
        speakers=shape.roles(fields.get("speakers", {})),
        metadata=shape.mapping(fields.get("metadata", {}), "metadata"),
        faults=shape.faults,
    )


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

    def keys(self, value: object, known: list[str], field: str, otherwise: str) -> dict[str, Any]:
        fields = self.mapping(value, field)
        for name in fields:
            if name not in known:
                remedy = f"{did_you_mean(name, known)}; {otherwise}"
                self.fault(f"unknown key '{name}'", remedy, f"{field}.{name}" if field else name)
        return fields

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
