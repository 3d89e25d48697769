"""Writing dialogues in our own JSONL format, so that reading gives back exactly what was written."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue, Role
from dialometer.readers.draft_check import DraftChecker
from dialometer.readers.formats.jsonl import draft_of
from dialometer.readers.json_records import DECODER, JsonRecord
from dialometer.readers.problems import Problems
from dialometer.readers.reader import KNOWN_SPEAKERS
from dialometer.readers.turn_parts import turn_as_json


def write_dialogues(path: str | Path, dialogues: Iterable[Dialogue]) -> int:
    """Write one line per dialogue (gzipped where the name ends in ``.gz``) and return how many.

    Every line is read back before it is kept: a dialogue that would not come back equal (unclean text, a repeated id,
    metadata that JSON cannot hold) is an error, and then the file is left as it was.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    checker = DraftChecker(Problems(str(path)), known=KNOWN_SPEAKERS, declared={}, empty_turns="error")
    n = 0
    try:
        with partial.open("wb") as raw:
            is_gzip = target.suffix.lower() == ".gz"
            # No name and no time in the gzip header: the same dialogues give the same bytes.
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if is_gzip else raw as stream:
                for n, dialogue in enumerate(dialogues, start=1):
                    stream.write(_line(dialogue, n, checker).encode() + b"\n")
        if not n:
            raise DialometerError("there are no dialogues to write", where=str(path), remedy="give at least one")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return n


def _line(dialogue: Dialogue, number: int, checker: DraftChecker) -> str:
    """One dialogue as JSON, read back to be sure."""
    where = f"{checker.problems.file}:{number}"
    try:
        text = json.dumps(_record(dialogue), ensure_ascii=False, allow_nan=False)
        back = checker.dialogue(draft_of(JsonRecord(DECODER.decode(text), number), checker.problems))
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "keep to what JSON can hold"
        raise DialometerError(f"dialogue '{dialogue.id}' is not JSON: {error}", where=where, remedy=remedy) from error
    if back is None:
        fault = checker.problems.errors[0]
        raise DialometerError(f"dialogue '{dialogue.id}': {fault.message}", where=where, remedy=fault.remedy)
    if back != dialogue:
        remedy = "pass its texts through clean_text and keep its metadata to strings, numbers, lists and dictionaries"
        raise DialometerError(f"dialogue '{dialogue.id}' would not read back equal", where=where, remedy=remedy)
    return text


def _record(dialogue: Dialogue) -> dict[str, Any]:
    """The line's object; roles are given once per speaker, or at the turns where one speaker has several."""
    roles: dict[str, set[Role]] = {}
    for turn in dialogue.turns:
        roles.setdefault(turn.speaker, set()).add(turn.role)
    turns = []
    for turn in dialogue.turns:
        entry = turn_as_json(turn)
        turns.append({**entry, "role": turn.role} if len(roles[turn.speaker]) > 1 else entry)
    speakers = {name: min(own) for name, own in roles.items() if len(own) == 1 and KNOWN_SPEAKERS.get(name) not in own}
    record: dict[str, Any] = {"id": dialogue.id, "turns": turns}
    if speakers:
        record["speakers"] = speakers
    if dialogue.system_prompt:
        record["system_prompt"] = dialogue.system_prompt
    if dialogue.metadata:
        record["metadata"] = dict(dialogue.metadata)
    return record
