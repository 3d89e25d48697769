"""Dialogues: who said what, in order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dialometer.model.rater_text import RaterText, SpeakerName

Role = Literal["user", "agent", "person"]
ROLES: tuple[Role, ...] = get_args(Role)

NO_TEXT = "(This text is not part of the imported data.)"
"""Stands where judgments were imported without what they are about."""

_USUAL_ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "customer", "client"), "user"),
    **dict.fromkeys(("agent", "assistant", "bot", "chatbot", "ai", "model", "gpt"), "agent"),
}


def usual_role(name: str) -> Role | None:
    """The role of a speaker, or of a role, that programs call so, in capitals or not: ``assistant``, ``Human``, ``USER``.

    ``system`` is none of them: in logs of chat programs it is the prompt, elsewhere the agent.
    """
    return _USUAL_ROLES.get(name.strip().casefold())


# Control characters and halves of surrogate pairs (Unicode's Cc and Cs), except line end and tab.
_REFUSED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Unicode in NFC, line ends as ``\\n``, outer white space off; control characters are refused with their position.

    The one gate for all text that raters will see, so that equal texts are equal strings everywhere.
    """
    normal = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if refused := _REFUSED.search(normal):
        raise ValueError(f"control character U+{ord(refused[0]):04X} at position {refused.start() + 1}")
    return normal


def visible_controls(text: str) -> str:
    """The text with control characters as signs (``␛``): what a terminal or a tool wrote is shown, not refused."""
    return _REFUSED.sub(lambda match: _sign(ord(match[0])), text)


def _sign(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


MediaKind = Literal["image", "audio", "video"]
MEDIA_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One step in which a system used a tool: what it called, with what, and what came back.

    ``arguments`` is JSON as text, or whatever the system wrote. ``result`` is None where none is known.
    """

    name: str
    arguments: str = ""
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound or video of a turn: its path inside the folder, with slashes, and what it shows, in words."""

    kind: MediaKind
    path: str
    alt: RaterText = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. ``speaker`` is the name shown; ``role`` is what the speaker is to the evaluation.

    ``tool_calls`` are the steps before its text, ``media`` come with it; a turn with either may have no text.
    """

    speaker: SpeakerName
    text: RaterText
    role: Role = "person"
    tool_calls: tuple[ToolCall, ...] = ()
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation with an id, its turns and whatever else is known about it (ratings, system, user id …).

    ``system_prompt`` is what the system was told before the first turn.
    """

    id: str
    turns: tuple[Turn, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    system_prompt: str = ""

    def said_by(self, role: Role) -> tuple[Turn, ...]:
        """The turns of one role, in order."""
        return tuple(turn for turn in self.turns if turn.role == role)
