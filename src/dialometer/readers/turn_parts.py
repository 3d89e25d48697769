"""What a turn holds besides its text: calls of tools and media files. Items and files of dialogues write them alike.

``"tool_calls": [{"name": "search", "arguments": {"query": "ferns"}, "result": "…"}]`` and
``"media": [{"path": "media/fern.png", "alt": "A fern with brown leaves"}]``.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialometer.model.dialogue import MEDIA_KINDS, Media, ToolCall, Turn, clean_text, visible_controls
from dialometer.model.media import MEDIA_TYPES, media_kind
from dialometer.readers.json_records import kind_of
from dialometer.readers.media_content import content_fault
from dialometer.readers.recordings import normal_path, path_fault
from dialometer.registry import did_you_mean

PART_KEYS = ("tool_calls", "media")
CALL_KEYS = ["name", "arguments", "result"]
MEDIA_KEYS = ["path", "alt", "kind"]
_SHOWN_TYPES = [ending for known in MEDIA_TYPES.values() for ending in known]

Assume = Callable[[str], None]
"""Says once what is assumed."""


class PartFault(Exception):
    """Something in a turn's parts; carries the field and the remedy."""

    def __init__(self, message: str, remedy: str, field: str) -> None:
        self.message, self.remedy, self.field = message, remedy, field
        super().__init__(message)


def tool_calls_of(value: object, where: str, assume: Assume) -> tuple[ToolCall, ...]:
    """The calls of one turn, in order; raises :class:`PartFault`."""
    calls = _list_of(value, where, '[{"name": "search", "arguments": {…}, "result": "…"}]')
    return tuple(_tool_call(call, f"{where}[{n}]", assume) for n, call in enumerate(calls))


def _tool_call(call: object, where: str, assume: Assume) -> ToolCall:
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        # As OpenAI's messages write it: {"id": …, "type": "function", "function": {"name": …, "arguments": "…"}}.
        call = {**call["function"], **({"result": call["result"]} if "result" in call else {})}
    known = _mapping(call, CALL_KEYS, where)
    name = _text(known.get("name", ""), f"{where}.name")
    if not name:
        raise PartFault("a tool call has no name", 'write {"name": "search", …}', f"{where}.name")
    arguments = _as_text(known.get("arguments"), assume) or ""
    return ToolCall(name, arguments, _as_text(known.get("result"), assume))


def _as_text(value: object, assume: Assume) -> str | None:
    """Arguments and results as text: JSON where they are no text. Control characters, as terminals write them, become signs."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace("\r\n", "\n")
    shown = visible_controls(text)
    if shown != text:
        assume("control characters in arguments and results of tools are shown as symbols (␛)")
    return unicodedata.normalize("NFC", shown).strip()


def media_of(value: object, where: str, folder: Path | None, assume: Assume) -> tuple[Media, ...]:
    """The media of one turn, in order; raises :class:`PartFault`. Without a folder no file is looked up."""
    entries = _list_of(value, where, '[{"path": "media/fern.png", "alt": "what it shows"}]')
    return tuple(_media(entry, f"{where}[{n}]", folder, assume) for n, entry in enumerate(entries))


def _media(entry: object, where: str, folder: Path | None, assume: Assume) -> Media:
    known = _mapping({"path": entry} if isinstance(entry, str) else entry, MEDIA_KEYS, where)
    path = _text(known.get("path", ""), f"{where}.path")
    if not path:
        raise PartFault("a media entry has no path", 'write {"path": "media/fern.png", "alt": "…"}', f"{where}.path")
    fault = path_fault(path, "path", _SHOWN_TYPES, folder)
    if fault is not None:
        message, remedy, field = fault
        raise PartFault(message, remedy, f"{where}.{field}")
    path = normal_path(path)
    kind = media_kind(path)
    assert kind is not None  # path_fault refused every other ending
    medium = known.get("kind", kind)
    if medium != kind:
        known_kinds = f"known: {', '.join(MEDIA_KINDS)}"
        raise PartFault(f"'{path}' is of the kind '{kind}', not '{medium}'", f"remove 'kind'; {known_kinds}", where)
    wrong = content_fault(folder / path, kind) if folder is not None else None
    if wrong is not None:
        raise PartFault(*wrong, f"{where}.path")
    alt = _text(known.get("alt", ""), f"{where}.alt")
    if not alt:
        assume(f"{kind} files without an alternative text ('alt') are announced to screen readers without a word")
    return Media(kind, path, alt)


def parts_as_json(tool_calls: Sequence[ToolCall], media: Sequence[Media]) -> dict[str, Any]:
    """Both as files write them; nothing where a turn has neither."""
    parts: dict[str, Any] = {}
    if tool_calls:
        parts["tool_calls"] = [_call_as_json(call) for call in tool_calls]
    if media:
        parts["media"] = [{"path": entry.path, **({"alt": entry.alt} if entry.alt else {})} for entry in media]
    return parts


def turn_as_json(turn: Turn) -> dict[str, Any]:
    """A turn as items and files of dialogues write it, without its role."""
    return {"speaker": turn.speaker, "text": turn.text, **parts_as_json(turn.tool_calls, turn.media)}


def _call_as_json(call: ToolCall) -> dict[str, Any]:
    written: dict[str, Any] = {"name": call.name}
    if call.arguments:
        written["arguments"] = _as_value(call.arguments)
    if call.result is not None:
        written["result"] = call.result
    return written


def _as_value(arguments: str) -> Any:
    """The arguments as an object where they are one and will read back the same, else as the text they are."""
    try:
        value = json.loads(arguments)
        is_same = isinstance(value, dict) and json.dumps(value, ensure_ascii=False, allow_nan=False) == arguments
    except (ValueError, RecursionError):
        return arguments
    return value if is_same else arguments


def _list_of(value: object, where: str, example: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise PartFault(f"'{where}' must be a list, not {kind_of(value)}", f"write {example}", where)
    return value


def _mapping(value: object, known: list[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PartFault(f"'{where}' must be an object, not {kind_of(value)}", f"its keys: {', '.join(known)}", where)
    unknown = next((key for key in value if key not in known and key not in ("id", "type")), None)
    if unknown is not None:
        raise PartFault(f"unknown key '{unknown}'", did_you_mean(str(unknown), known), f"{where}.{unknown}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise PartFault(f"'{where}' must be text, not {kind_of(value)}", "put it in quotes", where)
    try:
        return clean_text(value)
    except ValueError as error:
        raise PartFault(f"{error}", "remove it", where) from error
