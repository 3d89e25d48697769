"""From drafts to dialogues: the one place where texts are cleaned, roles assigned and problems noticed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialometer.errors import Problem
from dialometer.model.dialogue import ROLES, Dialogue, Media, Role, ToolCall, Turn, clean_text, usual_role
from dialometer.readers.json_records import kind_of
from dialometer.readers.problems import Problems
from dialometer.readers.reader import DialogueDraft, EmptyTurns, TurnDraft
from dialometer.readers.turn_parts import PartFault, media_of, tool_calls_of
from dialometer.registry import did_you_mean

LEFT_OUT = "left_out_turns"
TURN_FIELDS = "turn_fields"


class DraftChecker:
    """Turns the drafts of one file into dialogues. Everything wrong in a draft is reported before the next one."""

    def __init__(
        self,
        problems: Problems,
        *,
        known: Mapping[str, Role],
        declared: Mapping[str, Role],
        empty_turns: EmptyTurns,
        how_to_declare: str = "",
    ) -> None:
        self.problems = problems
        self.roles: dict[str, Role] = {**known, **declared}
        self.empty_turns = empty_turns
        self.how_to_declare = how_to_declare
        self.lines_by_id: dict[str, int] = {}
        self.n_drafts = 0

    def dialogue(self, draft: DialogueDraft) -> Dialogue | None:
        """The checked dialogue, or None when the draft has faults (which are then reported)."""
        self.n_drafts += 1
        check = _DraftCheck(self, draft)
        check.declare()
        dialogue_id = check.dialogue_id()
        turns = check.turns()
        prompt = check.system_prompt()
        metadata = check.metadata()
        if check.faults:
            self.problems.of_record(check.faults)
            return None
        for remark in check.remarks:
            self.problems.remark(remark)
        return Dialogue(id=dialogue_id, turns=tuple(turns), metadata=metadata, system_prompt=prompt)


class _DraftCheck:
    """The work on one draft, with its faults and remarks."""

    def __init__(self, checker: DraftChecker, draft: DialogueDraft) -> None:
        self.checker = checker
        self.draft = draft
        self.faults: list[Problem] = list(draft.faults)
        self.remarks: list[Problem] = []
        self.left_out: list[dict[str, Any]] = []
        self.turn_fields: list[dict[str, Any]] = []
        self.declared: dict[str, Role] = {}

    def declare(self) -> None:
        """Take the speakers that the dialogue itself declares, under the names that its turns will have."""
        for name, role in self.draft.speakers.items():
            cleaned = self._clean(name, f"the speaker {name!r}", "speakers")
            if cleaned is not None:
                self.declared[cleaned] = role

    def dialogue_id(self) -> str:
        """The id, known from here on; a second dialogue of the same id is a fault."""
        cleaned = self._text(self._given_id(), "id", self.draft.line)
        if cleaned is None:
            return ""
        if not cleaned:
            self._fault("the id is empty", "give every dialogue an id of its own", field="id")
        elif cleaned in self.checker.lines_by_id:
            first = self.checker.lines_by_id[cleaned]
            before = f" (line {first})" if first else ""
            self._fault(
                f"the id '{cleaned}' was used before{before}", "give every dialogue an id of its own", field="id"
            )
        else:
            self.checker.lines_by_id[cleaned] = self.draft.line
        return cleaned

    def _given_id(self) -> object:
        """The id as in the file. Numbers are ids too, and dialogues without one are called after the file and counted."""
        dialogue_id = self.draft.id
        if isinstance(dialogue_id, int) and not isinstance(dialogue_id, bool) and abs(dialogue_id) < 10**18:
            return str(dialogue_id)
        if dialogue_id is None:
            stem = Path(self.checker.problems.file).name.partition(".")[0]
            self.checker.problems.assume("dialogues without an id are numbered in the order of the file")
            return f"{stem}-{self.checker.n_drafts}"
        return dialogue_id

    def turns(self) -> list[Turn]:
        """The turns with text, in order."""
        turns: list[Turn] = []
        for position, draft in enumerate(self.draft.turns, start=1):
            turn = self._turn(draft, position)
            if turn is not None:
                turns.append(turn)
                self.turn_fields.append(dict(draft.others))
        if not turns and not self.faults:
            self._fault("the dialogue has no turns" + (" with text" if self.left_out else ""), "remove it")
        return turns

    def system_prompt(self) -> str:
        """What the system was told before the first turn; most dialogues have none."""
        return self._text(self.draft.system_prompt or "", "system_prompt", self.draft.line) or ""

    def metadata(self) -> dict[str, Any]:
        """What else is known, every string cleaned, with a note of what this reading left out."""
        metadata = dict(self.draft.metadata)
        if any(self.turn_fields):
            metadata[TURN_FIELDS] = self.turn_fields
        if self.left_out:
            earlier = metadata.get(LEFT_OUT)
            metadata[LEFT_OUT] = [*(earlier if isinstance(earlier, list) else []), *self.left_out]
        cleaned = self._value(metadata, "metadata")
        return cleaned if isinstance(cleaned, dict) else {}

    def _turn(self, draft: TurnDraft, position: int) -> Turn | None:
        line = draft.line or self.draft.line
        speaker = self._text(draft.speaker, draft.speaker_key, line, draft.place, position)
        calls, media = self._parts(draft, line)
        may_be_silent = bool(calls or media)
        given = "" if draft.text is None and may_be_silent else draft.text
        text = self._text(given, draft.text_key, line, draft.place, position)
        role = self._role(draft, speaker, position) if speaker else None
        if speaker == "":
            self._fault(
                f"turn {position} has no speaker", "name the speaker", line, _join(draft.place, draft.speaker_key)
            )
        if text == "" and not may_be_silent:
            self._empty(draft, position, speaker or "")
            return None
        if not speaker or text is None or role is None:
            return None
        return Turn(speaker=speaker, text=text, role=role, tool_calls=calls, media=media)

    def _parts(self, draft: TurnDraft, line: int) -> tuple[tuple[ToolCall, ...], tuple[Media, ...]]:
        """The calls of tools and the media of a turn. Files of dialogues may be far from their media: only names are checked."""
        assume = self.checker.problems.assume
        try:
            calls = tool_calls_of(draft.tool_calls, _join(draft.place, "tool_calls"), assume)
            return calls, media_of(draft.media, _join(draft.place, "media"), None, assume)
        except PartFault as fault:
            self._fault(fault.message, fault.remedy, line, fault.field)
            return (), ()

    def _role(self, draft: TurnDraft, speaker: str, position: int) -> Role | None:
        line = draft.line or self.draft.line
        if draft.role is not None:
            given = next((role for role in ROLES if role == draft.role), None)
            if given is None and isinstance(draft.role, str):
                given = self._usual(draft.role, "role")
            if given is None:
                problem = f"turn {position}: unknown role '{draft.role}'"
                self._fault(problem, did_you_mean(str(draft.role), list(ROLES)), line, _join(draft.place, "role"))
            return given
        role = self.declared.get(speaker) or self.checker.roles.get(speaker) or self._usual(speaker, "speaker")
        if role is None:
            in_file = f"{self.checker.how_to_declare}, or " if self.checker.how_to_declare else ""
            remedy = f"declare the role: {in_file}read with speakers={{{speaker!r}: 'user'}} ({', '.join(ROLES)})"
            where = _join(draft.place, draft.speaker_key)
            self._fault(f"turn {position}: speaker '{speaker}' has no known role", remedy, line, where)
        return role

    def _usual(self, name: str, kind: str) -> Role | None:
        """The role that a name usually means; said once."""
        role = usual_role(name)
        if role is not None:
            self.checker.problems.assume(f"the {kind} '{name.strip()}' is read as the {role}")
        return role

    def _empty(self, draft: TurnDraft, position: int, speaker: str) -> None:
        line, field = draft.line or self.draft.line, _join(draft.place, draft.text_key)
        if self.checker.empty_turns == "error":
            remedy = "remove the turn, or read with empty_turns='leave_out'"
            self._fault(f"turn {position} is empty", remedy, line, field)
            return
        self.left_out.append({"turn": position, "speaker": speaker, "reason": "empty"})
        message = f"turn {position} of '{self.draft.id}' is empty and was skipped"
        self.remarks.append(self.checker.problems.problem(message, line=line, column=self.draft.column, field=field))

    def _text(self, value: object, name: str, line: int, field: str = "", position: int = 0) -> str | None:
        """The cleaned string, or None where it is none (which is then a fault)."""
        label = f"turn {position}: '{name}'" if position else f"'{name}'"
        where = _join(field, name)
        if value is None:
            self._fault(f"{label} is missing", "", line, where)
        elif not isinstance(value, str):
            self._fault(f"{label} must be a string, not {kind_of(value)}", "put it in quotes", line, where)
        else:
            return self._clean(value, label, where, line)
        return None

    def _clean(self, text: str, label: str, field: str, line: int = 0) -> str | None:
        try:
            return clean_text(text)
        except ValueError as error:
            self._fault(f"{label}: {error}", "remove the character", line, field)
            return None

    def _value(self, value: Any, field: str) -> Any:
        """A metadata value with all its strings cleaned, keys included."""
        if isinstance(value, str):
            return self._clean(value, f"'{field}'", field)
        if isinstance(value, list):
            return [self._value(element, f"{field}[{index}]") for index, element in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        cleaned: dict[str, Any] = {}
        for key, element in value.items():
            name = self._clean(key, f"a key of '{field}'", field) or ""
            if name in cleaned:
                self._fault(f"'{field}' has the key '{name}' twice", "rename one", field=field)
            cleaned[name] = self._value(element, f"{field}.{name}")
        return cleaned

    def _fault(self, message: str, remedy: str = "", line: int = 0, field: str = "") -> None:
        line = line or self.draft.line
        column = self.draft.column if line == self.draft.line else 0
        self.faults.append(self.checker.problems.problem(message, remedy=remedy, line=line, column=column, field=field))


def _join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name
