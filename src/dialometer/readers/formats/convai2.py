"""Exports of the ConvAI2 challenge (DeepHack 2018): people chatting with bots, rated by the person afterwards.

Reference: Dinan et al., "The Second Conversational Intelligence Challenge (ConvAI2)", 2019.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dialometer.errors import Problem
from dialometer.readers.json_records import JsonRecord, json_records, kind_of, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile

# In the exports participant 2 is the bot; later releases say it at every turn, which then counts.
_SPEAKERS = {"participant1": "User", "participant2": "Agent", "Human": "User", "Bot": "Agent"}
_OWN_KEYS = {"dialog_id", "dialog", "eval_score", "profile_match"}
_OWN_TURN_KEYS = {"id", "sender", "sender_class", "text"}
_NOT_GIVEN = (None, "", -1)  # how the releases write "the person did not answer"


@READERS.register("convai2")
class Convai2Reader(Reader):
    """A JSON array of dialogues. The rating, the guess of the bot's persona and the personas go to the metadata."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """Records with ``dialog_id`` and ``dialog``."""
        return head.has_keys("dialog_id", "dialog")

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per record."""
        about_file: dict[str, Any] = {"file": source.path.name}
        day = re.search(r"\d{4}-\d{2}-\d{2}", source.path.name)
        if day:
            about_file["day"] = day.group()
        for record in objects(json_records(source, problems), problems):
            yield _draft(record, about_file, problems)


def _draft(record: JsonRecord, about_file: Mapping[str, Any], problems: Problems) -> DialogueDraft:
    value: dict[str, Any] = record.value
    faults: list[Problem] = []

    def fault(message: str, field: str) -> None:
        faults.append(problems.problem(message, line=record.line, column=record.column, field=field))

    def score(key: str, allowed: range) -> int | None:
        rating = value.get(key)
        if rating in _NOT_GIVEN:
            return None
        if isinstance(rating, bool) or not isinstance(rating, int) or rating not in allowed:
            fault(f"'{key}' must be {allowed[0]} to {allowed[-1]} or null, not {rating!r}", key)
            return None
        return rating

    metadata: dict[str, Any] = {
        "rating": score("eval_score", range(1, 6)),
        "profile_match": score("profile_match", range(2)),
        **{key: other for key, other in value.items() if key not in _OWN_KEYS},
        **about_file,
    }
    dialog = value.get("dialog")
    if not isinstance(dialog, list):
        fault(f"'dialog' must be a list, not {kind_of(dialog)}", "dialog")
        dialog = []
    turns = []
    for index, turn in enumerate(dialog):
        if isinstance(turn, dict):
            turns.append(_turn(turn, f"dialog[{index}]"))
        else:
            fault(f"turn {index + 1} must be an object, not {kind_of(turn)}", f"dialog[{index}]")
    return DialogueDraft(value.get("dialog_id"), turns, record.line, record.column, metadata=metadata, faults=faults)


def _turn(turn: dict[str, Any], place: str) -> TurnDraft:
    said_by = turn.get("sender_class") or turn.get("sender")
    speaker = _SPEAKERS.get(said_by, said_by) if isinstance(said_by, str) else said_by
    metadata = {key: value for key, value in turn.items() if key not in _OWN_TURN_KEYS}
    return TurnDraft(speaker, turn.get("text"), place=place, speaker_key="sender", others=metadata)
