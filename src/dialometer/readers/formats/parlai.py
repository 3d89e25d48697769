"""ParlAI conversations: the chat logs that ACUTE-Eval compares, and the pairings it was given.

The format follows ParlAI's ``parlai/utils/conversations.py`` and the README of its ``acute_eval``. Shapes that its
versions have written, all read here:

* conversations: ``{"dialog": [[{"id": speaker, "text": …}, …], …], "context"?: […], …}``, one list per exchange;
* flat logs of the first version: ``{"conversation_id": …, "dialog": [{"speaker": …, "text": …}, …]}``;
* pairings: ``{"speakers_to_eval": […], "dialogue_dicts": [{"speakers": […], "dialogue": […]}, …], …}``;
* world logs: a JSON array of conversations, each a bare list of exchanges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dialometer.errors import Problem
from dialometer.model.dialogue import Role
from dialometer.readers.json_records import JsonRecord, json_records, kind_of, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import KNOWN_SPEAKERS, READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile

_TURN_KEYS = ("dialog", "dialogue")
_ID_KEYS = ("conversation_id", "dialogue_id", "id")
_CONTEXT = "context"


@READERS.register("parlai")
class ParlaiReader(Reader):
    """One conversation or one pairing per record; a pairing gives one dialogue for each of its sides."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = {
        **KNOWN_SPEAKERS,
        "human": "user",
        "human_evaluator": "user",
        "other_speaker": "user",
        "model": "agent",
    }

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """Records with a dialogue under one of ParlAI's keys, or bare lists of exchanges."""
        if isinstance(head.record, list):
            return bool(head.record) and isinstance(head.record[0], list)
        is_convai2 = head.has_keys("dialog_id")
        return not is_convai2 and any(head.has_keys(key) for key in (*_TURN_KEYS, "dialogue_dicts"))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """Drafts in file order; a record without an id is called after the file and its number."""
        records = (_with_keys(record) for record in json_records(source, problems))
        for n, record in enumerate(objects(records, problems), start=1):
            name = f"{source.stem}-{n}"
            if "dialogue_dicts" in record.value:
                yield from pairing_drafts(record, name, problems)
            else:
                yield _conversation(record.value, name, _Faults(record, problems))


def _with_keys(record: JsonRecord) -> JsonRecord:
    """A world log's bare list of exchanges as the object that later versions write."""
    return (
        JsonRecord({"dialog": record.value}, record.line, record.column) if isinstance(record.value, list) else record
    )


class _Faults:
    """Faults of one record at one place."""

    def __init__(self, record: JsonRecord, problems: Problems) -> None:
        self.record = record
        self.problems = problems
        self.found: list[Problem] = []

    def add(self, message: str, field: str) -> None:
        place = self.record
        self.found.append(self.problems.problem(message, line=place.line, column=place.column, field=field))

    def list_of(self, value: object, field: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self.add(f"'{field}' must be a list, not {kind_of(value)}", field)
        return []


def _conversation(value: dict[str, Any], name: str, faults: _Faults, field: str = "") -> DialogueDraft:
    key = next((key for key in _TURN_KEYS if key in value), _TURN_KEYS[0])
    context = [_context_text(act) for act in faults.list_of(value.get(_CONTEXT, []), field + _CONTEXT)]
    turns = []
    for act, where in _acts(faults.list_of(value.get(key), field + key), field + key):
        if not isinstance(act, dict):
            faults.add(f"a turn must be an object, not {kind_of(act)}", where)
        elif act.get("id") == _CONTEXT:
            context.append(_context_text(act))
        else:
            said_by = "speaker" if "speaker" in act else "id"
            turns.append(TurnDraft(act.get(said_by), act.get("text"), place=where, speaker_key=said_by))
    given_id = next((value[key] for key in _ID_KEYS if value.get(key) is not None), name)
    about = value.get("metadata", {})
    if not isinstance(about, dict):
        faults.add(f"'metadata' must be an object, not {kind_of(about)}", field + "metadata")
        about = {}
    used = {*_TURN_KEYS, *_ID_KEYS, _CONTEXT, "metadata"}
    metadata = {**about, **{other: value[other] for other in value if other not in used}}
    if context:
        metadata[_CONTEXT] = context
    given_id = str(given_id) if type(given_id) is int else given_id
    place = faults.record
    return DialogueDraft(given_id, turns, place.line, place.column, metadata=metadata, faults=faults.found)


def _acts(dialog: list[Any], field: str) -> Iterator[tuple[Any, str]]:
    """The acts of a dialogue, whether its exchanges are lists or the acts stand side by side."""
    for index, element in enumerate(dialog):
        where = f"{field}[{index}]"
        if isinstance(element, list):
            yield from ((act, f"{where}[{inner}]") for inner, act in enumerate(element))
        else:
            yield element, where


def _context_text(act: object) -> object:
    text = act.get("text") if isinstance(act, dict) else act
    return "\n".join(map(str, text)) if isinstance(text, list) else text


def pairing_drafts(record: JsonRecord, name: str, problems: Problems) -> Iterator[DialogueDraft]:
    """One draft per side: the evaluated speaker is the agent, the one who talks to it the user.

    The same conversation may stand in many pairings, so that a side is named by its pairing; its own id is kept beside.
    """
    value: dict[str, Any] = record.value
    faults = _Faults(record, problems)
    sides = faults.list_of(value.get("dialogue_dicts"), "dialogue_dicts")
    evaluated = faults.list_of(value.get("speakers_to_eval", []), "speakers_to_eval")
    ids = faults.list_of(value.get("dialogue_ids", []), "dialogue_ids")
    if sides and evaluated and len(evaluated) != len(sides):
        faults.add(f"{len(evaluated)} speakers to evaluate for {len(sides)} dialogues", "speakers_to_eval")
    if faults.found:
        problems.of_record(faults.found)
        return
    about = {key: value[key] for key in value if key not in ("dialogue_dicts", "speakers_to_eval", "dialogue_ids")}
    for index, side in enumerate(sides):
        field = f"dialogue_dicts[{index}]"
        if not isinstance(side, dict):
            problems.of_record([problems.problem(f"'{field}' must be an object", line=record.line, field=field)])
            continue
        draft = _conversation(side, name, _Faults(record, problems), f"{field}.")
        system = evaluated[index] if evaluated else None
        own_id = ids[index] if index < len(ids) else draft.id
        where = {"pairing": name, "side": index + 1, "system": system, "dialogue_id": own_id}
        draft.metadata = {**about, **draft.metadata, **where}
        draft.speakers = _roles(side.get("speakers"), system)
        draft.id = f"{name}.{index + 1}"
        yield draft


def _roles(speakers: object, evaluated: object) -> dict[str, Role]:
    names = [name for name in speakers if isinstance(name, str)] if isinstance(speakers, list) else []
    roles: dict[str, Role] = dict.fromkeys(names, "user") if evaluated in names else {}
    if isinstance(evaluated, str):
        roles[evaluated] = "agent"
    return roles
