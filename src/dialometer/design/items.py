"""Items from their JSON Lines file, every problem with its line."""

from __future__ import annotations

import difflib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dialometer.errors import Problem
from dialometer.model.dialogue import ROLES, Media, Role, ToolCall, Turn, clean_text, usual_role
from dialometer.model.item import (
    ArenaItem,
    CandidateItem,
    ChatItem,
    DialogueItem,
    Item,
    ItemKind,
    PairItem,
    ResponsesItem,
    Transcript,
)
from dialometer.model.media import Recording
from dialometer.readers.containers.encodings import NAMES, UTF8, encoding_of
from dialometer.readers.json_records import MAX_DEPTH, is_too_deep
from dialometer.readers.recordings import recording_of
from dialometer.readers.turn_parts import PART_KEYS, PartFault, media_of, tool_calls_of
from dialometer.registry import did_you_mean

_COMMON = ("id", "block", "metadata", "system_prompt")
_KEYS: dict[ItemKind, tuple[str, ...]] = {
    "responses": ("context", "standard", "responses"),
    "transcript_pair": ("a", "b", "breaches"),
    "dialogue": ("system", "turns"),
    "candidate": ("context", "candidate", "ranks", "is_gold"),
    "chat": ("system", "scenario", "opening", "min_turns", "max_turns"),
    "arena": ("systems", "scenario", "opening", "min_turns", "max_turns"),
}

_SIDE_KEYS = ["system", "turns", "outcome", "system_prompt"]
_RECORDING_KEYS = ("media", "captions")


class _Wrong(Exception):
    """Something in one line; carries the field and the remedy."""

    def __init__(self, message: str, remedy: str, field: str = "") -> None:
        self.message, self.remedy, self.field = message, remedy, field
        super().__init__(message)


class ItemReader:
    """Reads items of one kind; collects problems instead of stopping at the first."""

    def __init__(
        self, kind: ItemKind, speakers: Mapping[str, Role], systems: list[str], file: str, folder: Path | None = None
    ) -> None:
        self.folder = folder
        self.kind = kind
        # Read before the study file is checked: what is no role there is reported there.
        self.speakers = {name: role for name, role in speakers.items() if isinstance(name, str) and role in ROLES}
        self.systems = systems
        self.file = file
        self.problems: list[Problem] = []
        self.names_files = False
        """Whether items name recordings, images or the like, which were looked at."""
        self._assumed: set[str] = set()
        self._line = 0

    def read(self, content: bytes) -> list[Item]:
        """All items of a file's content that are in order; what is not is in ``problems``."""
        items: list[Item] = []
        lines_of: dict[str, int] = {}
        for number, line in enumerate(self._utf8(content).split(b"\n"), start=1):
            if not line.strip():
                continue
            item = self._read_line(number, line)
            if item is None:
                continue
            if item.id in lines_of:
                self._complain(
                    number,
                    f"the id '{item.id}' was given on line {lines_of[item.id]}",
                    "give each item its own id",
                    "id",
                )
                continue
            lines_of[item.id] = number
            items.append(item)
        if not items and not any(problem.severity == "error" for problem in self.problems):
            self._complain(1, "the items file is empty", "add one JSON object per line")
        return items

    def _utf8(self, content: bytes) -> bytes:
        """The content as UTF-8 without a mark at its beginning, whatever the editor made of it."""
        encoding = encoding_of(io.BytesIO(content))
        if encoding == UTF8:
            return content.removeprefix(b"\xef\xbb\xbf")
        self._assume(1, f"the file is read as {NAMES[encoding]}", "save it as UTF-8")
        return content.decode(encoding, "replace").encode()

    def _assume(self, line: int, message: str, remedy: str, field: str = "") -> None:
        """Say once what is assumed, as a warning."""
        if message not in self._assumed:
            self._assumed.add(message)
            self.problems.append(Problem(message, remedy, self.file, line, 0, field, "warning"))

    def _complain(self, line: int, message: str, remedy: str, field: str = "", column: int = 0) -> None:
        self.problems.append(Problem(message, remedy, self.file, line, column, field))

    def _read_line(self, number: int, line: bytes) -> Item | None:
        self._line = number
        try:
            data = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            self._complain(number, "not UTF-8 text", "save the file as UTF-8", column=error.start + 1)
            return None
        except json.JSONDecodeError as error:
            self._complain(number, f"not valid JSON: {error.msg}", "one JSON object per line", column=error.colno)
            return None
        except (ValueError, RecursionError):  # valid JSON, with a number of thousands of digits or nested as deeply
            self._complain(number, "a number is too long, or the nesting too deep", "shorten it, or put it in quotes")
            return None
        try:
            if b"\\ud" in line.lower() and _has_half(data):
                raise _Wrong("half of a surrogate pair, which is not a character", "correct the text")
            if not isinstance(data, dict):
                raise _Wrong("not a JSON object", 'write {"id": …}')
            return self._build(data, number)
        except _Wrong as wrong:
            self._complain(number, wrong.message, wrong.remedy, wrong.field)
            return None

    def _build(self, data: dict[str, Any], line: int) -> Item:
        metadata = data.get("metadata", {})
        if not isinstance(metadata, dict):
            raise _Wrong("'metadata' should be an object", 'write {"topic": "…"}', "metadata")
        metadata = {**self._further(data, line), **metadata}
        if is_too_deep(metadata):
            raise _Wrong("'metadata' is nested too deeply", f"keep to {MAX_DEPTH} levels", "metadata")
        item_id = self._id(data, line)
        if len(item_id) > 128:
            raise _Wrong("the id is longer than 128 characters", "shorten it", "id")
        common = {"id": item_id, "metadata": metadata, "line": line}
        common |= {key: self._text(data, key, "") for key in ("block", "system_prompt")}
        build: dict[ItemKind, Callable[[dict[str, Any], dict[str, Any]], Item]] = {
            "responses": self._responses,
            "transcript_pair": self._pair,
            "dialogue": self._dialogue,
            "candidate": self._candidate,
            "chat": self._chat,
            "arena": self._arena,
        }
        return build[self.kind](data, common)

    def _further(self, data: dict[str, Any], line: int) -> dict[str, Any]:
        """Keys that items of this kind do not have: kept in the metadata; one that looks misspelt is refused."""
        known = [*_COMMON, *_KEYS[self.kind]]
        further = {key: value for key, value in data.items() if key not in known}
        for key in further:
            if difflib.get_close_matches(key[:50], [name for name in known if len(name) > 3], n=1, cutoff=0.8):
                raise _Wrong(f"unknown key '{key}' in a {self.kind} item", did_you_mean(key, known), key)
            other_kinds = [kind for kind, keys in _KEYS.items() if key in keys]
            if other_kinds:
                raise _Wrong(
                    f"unknown key '{key}' in a {self.kind} item",
                    f"known: {', '.join(known)}; '{key}' belongs to items of the kind {' or '.join(other_kinds)}",
                    key,
                )
            message = f"the key '{key}' is none of a {self.kind} item; it is kept in the metadata"
            self._assume(line, message, 'put it under "metadata"', key)
        return further

    def _id(self, data: dict[str, Any], line: int) -> str:
        """The id. Numbers are ids too; an item without one is called after its line."""
        item_id = data.get("id")
        if isinstance(item_id, int) and not isinstance(item_id, bool) and abs(item_id) < 10**18:
            return str(item_id)
        if item_id is None:
            self._assume(line, "items without an id are called after their line: item-1, item-2 …", 'add "id"', "id")
            return f"item-{line}"
        return self._text(data, "id")

    def _responses(self, data: dict[str, Any], common: dict[str, Any]) -> Item:
        responses = data.get("responses")
        if not isinstance(responses, dict) or not responses:
            raise _Wrong("'responses' is missing", 'write {"system": "its response", …}', "responses")
        is_exempt = bool(common["metadata"].get("practice") or common["metadata"].get("gold"))
        for system in responses:
            self._system(system, "responses")
        missing = [system for system in self.systems if system not in responses]
        if missing and not is_exempt:
            raise _Wrong(f"no response of {', '.join(missing)}", "give one response per declared system", "responses")
        by_system = {system: self._response(responses, system) for system in responses}
        return ResponsesItem(
            context=self._turns(data, "context"),
            responses={system: turn.text for system, (turn, _) in by_system.items()},
            standard=self._text(data, "standard", "") or None,
            tool_calls={system: turn.tool_calls for system, (turn, _) in by_system.items() if turn.tool_calls},
            media={system: turn.media for system, (turn, _) in by_system.items() if turn.media},
            system_prompts={system: prompt for system, (_, prompt) in by_system.items() if prompt},
            **common,
        )

    def _response(self, responses: dict[str, Any], system: str) -> tuple[Turn, str]:
        """A response, and what its system alone was told; given as its text, or as an object with what comes with it."""
        where = f"responses.{system}"
        response = responses[system]
        if not isinstance(response, dict):
            return Turn("", self._text(responses, system, where="responses.")), ""
        known = ["text", *PART_KEYS, "system_prompt"]
        unknown = next((key for key in response if key not in known), None)
        if unknown is not None:
            raise _Wrong(f"unknown key '{unknown}' in a response", did_you_mean(unknown, known), f"{where}.{unknown}")
        text, calls, media = self._said(response, where)
        return Turn("", text, tool_calls=calls, media=media), self._text(
            response, "system_prompt", "", where=f"{where}."
        )

    def _pair(self, data: dict[str, Any], common: dict[str, Any]) -> Item:
        sides = []
        for key in ("a", "b"):
            side = data.get(key)
            if not isinstance(side, dict):
                raise _Wrong(f"the side '{key}' is missing", 'write {"system": "…", "turns": […]}', key)
            for name in side:
                if name not in _SIDE_KEYS:
                    raise _Wrong(f"unknown key '{name}'", did_you_mean(name, _SIDE_KEYS), f"{key}.{name}")
            system = self._system(self._text(side, "system", where=f"{key}."), f"{key}.system")
            outcome, prompt = (self._text(side, name, "", where=f"{key}.") for name in ("outcome", "system_prompt"))
            sides.append(Transcript(system, self._turns(side, "turns", where=f"{key}."), outcome, prompt))
        if sides[0].system == sides[1].system:
            remedy = "name two systems or versions; for two dialogues of one system see 'pairs: dialogues'"
            raise _Wrong("both sides are of the same system", remedy, "b.system")
        breaches = data.get("breaches", {})
        if not isinstance(breaches, dict) or not all(isinstance(why, str) and why for why in breaches.values()):
            raise _Wrong("'breaches' should name rules with a reason", 'write {"rule": "why"}', "breaches")
        return PairItem(a=sides[0], b=sides[1], breaches=breaches, **common)

    def _dialogue(self, data: dict[str, Any], common: dict[str, Any]) -> Item:
        system = self._system(self._text(data, "system"), "system")
        return DialogueItem(system=system, turns=self._turns(data, "turns"), **common)

    def _candidate(self, data: dict[str, Any], common: dict[str, Any]) -> Item:
        shown = data.get("candidate")
        recording, words = None, shown
        # "media" names the recording that plays the candidate, or lists what comes with it, as in other turns.
        if isinstance(shown, dict) and not isinstance(shown.get("media"), list):
            recording = self._recording(shown)
            words = {key: value for key, value in shown.items() if key not in _RECORDING_KEYS}
        candidate = self._turn(words, "candidate")
        ranks = data.get("ranks", {})
        if not isinstance(ranks, dict):
            raise _Wrong("'ranks' should be an object", 'write {"system": 1}', "ranks")
        for system, rank in ranks.items():
            self._system(system, "ranks")
            if not isinstance(rank, int) or rank < 1:
                raise _Wrong(
                    f"the rank of {system} should be a whole number from 1", "ranks count from 1", f"ranks.{system}"
                )
        gold = data.get("is_gold", False)
        if not isinstance(gold, bool):
            raise _Wrong("'is_gold' should be true or false", "write true or false", "is_gold")
        return CandidateItem(
            context=self._turns(data, "context"),
            candidate=candidate,
            recording=recording,
            ranks=ranks,
            is_gold=gold,
            **common,
        )

    def _recording(self, shown: dict[str, Any]) -> Recording | None:
        """The video or audio file of a candidate, inside the study's folder."""
        media, captions = (self._text(shown, key, "", where="candidate.") for key in _RECORDING_KEYS)
        self.names_files = self.names_files or bool(media or captions)
        recording = recording_of(media, captions, self.folder)
        if isinstance(recording, tuple):
            message, remedy, field = recording
            raise _Wrong(message, remedy, f"candidate.{field}")
        return recording

    def _chat(self, data: dict[str, Any], common: dict[str, Any]) -> Item:
        system = self._system(self._text(data, "system"), "system")
        return ChatItem(system=system, **self._talk(data), **common)

    def _arena(self, data: dict[str, Any], common: dict[str, Any]) -> Item:
        given = data.get("systems", self.systems)
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise _Wrong("'systems' should be a list of systems", 'write ["one", "other"], or leave it out', "systems")
        systems = tuple(dict.fromkeys(self._system(name, "systems") for name in given))
        if len(systems) < 2:
            raise _Wrong("two systems meet in an arena", "name at least two, or leave it out for all", "systems")
        ordered = tuple(name for name in self.systems if name in systems)
        return ArenaItem(systems=ordered, **self._talk(data), **common)

    def _talk(self, data: dict[str, Any]) -> dict[str, Any]:
        """What live conversations are about, and how long they last."""
        low, high = (self._count(data, key, default) for key, default in (("min_turns", 1), ("max_turns", 50)))
        if low > high:
            raise _Wrong(f"min_turns ({low}) is more than max_turns ({high})", "swap or correct them", "min_turns")
        words = {key: self._text(data, key, "") for key in ("scenario", "opening")}
        return {**words, "min_turns": low, "max_turns": high}

    def _count(self, data: dict[str, Any], key: str, default: int) -> int:
        value = data.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise _Wrong(f"'{key}' should be a whole number from 1", "correct it", key)
        return value

    def _system(self, name: str, field: str) -> str:
        if name not in self.systems:
            raise _Wrong(f"unknown system '{name}'", did_you_mean(name, self.systems), field)
        return name

    def _turns(self, data: dict[str, Any], key: str, where: str = "") -> tuple[Turn, ...]:
        turns = data.get(key)
        if not isinstance(turns, list) or not turns:
            raise _Wrong(
                f"'{where}{key}' needs at least one turn", 'write [{"speaker": "…", "text": "…"}]', where + key
            )
        return tuple(self._turn(turn, f"{where}{key}[{i}]") for i, turn in enumerate(turns))

    def _turn(self, turn: Any, where: str) -> Turn:
        if not isinstance(turn, dict) or set(turn) - {"speaker", "text", *PART_KEYS}:
            remedy = 'write {"speaker": "…", "text": "…"}; it may also have "tool_calls" and "media"'
            raise _Wrong("a turn has a speaker and a text", remedy, where)
        speaker = self._text(turn, "speaker", where=f"{where}.")
        role = self.speakers.get(speaker) or self._usual_role(speaker)
        if role is None:
            remedy = did_you_mean(speaker, list(self.speakers)) + " or declare it under speakers in study.yaml"
            raise _Wrong(f"unknown speaker '{speaker}'", remedy, f"{where}.speaker")
        text, calls, media = self._said(turn, where)
        return Turn(speaker, text, role, calls, media)

    def _said(self, data: dict[str, Any], where: str) -> tuple[str, tuple[ToolCall, ...], tuple[Media, ...]]:
        """The text of a turn or response, with the calls of tools and the media; with either, the text may be empty."""
        try:
            calls = tool_calls_of(data.get("tool_calls"), f"{where}.tool_calls", self._assume_part)
            self.names_files = self.names_files or bool(data.get("media"))
            media = media_of(data.get("media"), f"{where}.media", self.folder, self._assume_part)
        except PartFault as fault:
            raise _Wrong(fault.message, fault.remedy, fault.field) from fault
        return self._text(data, "text", "" if calls or media else None, where=f"{where}."), calls, media

    def _assume_part(self, message: str) -> None:
        self._assume(self._line, message, "")

    def _usual_role(self, speaker: str) -> Role | None:
        """The role of a speaker that the study does not declare: as it declares it in other letters, else as usual."""
        folded = {name.casefold(): role for name, role in self.speakers.items()}
        role = folded.get(speaker.casefold()) or usual_role(speaker)
        if role is not None:
            message = f"the speaker '{speaker}' is read as the {role}"
            self._assume(0, message, "declare it under speakers in study.yaml")
        return role

    def _text(self, data: Mapping[str, Any], key: str, default: str | None = None, where: str = "") -> str:
        value = data.get(key, default)
        if value is None:
            raise _Wrong(f"'{key}' is missing", f'add "{key}": "…"', where + key)
        if not isinstance(value, str):
            raise _Wrong(f"'{key}' should be text", "put it in quotes", where + key)
        try:
            text = clean_text(value)
        except ValueError as error:
            raise _Wrong(f"{error} in '{key}'", "remove it", where + key) from error
        if not text and default is None:
            raise _Wrong(f"'{key}' is empty", "write something or leave the item out", where + key)
        return text


def _has_half(data: Any) -> bool:
    """Whether a text in a record holds half of a surrogate pair, which JSON can write and nothing can store."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
