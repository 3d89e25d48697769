"""Dialogues as a format found them, before anything is checked: the seam between the formats and the one check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dialometer.errors import Problem
from dialometer.model.dialogue import Role


@dataclass(slots=True)
class TurnDraft:
    """One turn as found. Values are ``object`` because their types are checked later, in one place for all formats.

    ``place`` and the two keys name where it stands in the record, for messages; ``others`` holds what else the file says
    about this turn.
    """

    speaker: object
    text: object
    role: object = None
    line: int = 0
    place: str = ""
    speaker_key: str = "speaker"
    text_key: str = "text"
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class DialogueDraft:
    """One dialogue as found. ``faults`` are what the format already knows to be wrong; any of them costs the dialogue."""

    id: object
    turns: list[TurnDraft]
    line: int = 0
    column: int = 0
    speakers: Mapping[str, Role] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    faults: list[Problem] = field(default_factory=list)
