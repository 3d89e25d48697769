"""Dialogues: who said what, in order."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Role = Literal["user", "agent", "person"]
ROLES: tuple[Role, ...] = get_args(Role)

_USUAL_ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "customer", "client"), "user"),
    **dict.fromkeys(("agent", "assistant", "bot", "chatbot", "ai", "model", "gpt"), "agent"),
}


def usual_role(name: str) -> Role | None:
    """The role of a speaker, or of a role, that programs call so, in capitals or not: ``assistant``, ``Human``, ``USER``.

    ``system`` is none of them: in logs of chat programs it is the prompt, elsewhere the agent.
    """
    return _USUAL_ROLES.get(name.strip().casefold())


# Layout characters that a text may hold; every other control character is refused.
_ALLOWED_CONTROLS = frozenset("\n\t")


def clean_text(text: str) -> str:
    """Unicode in NFC, line ends as ``\\n``, outer white space off; control characters are refused with their position.

    The one gate for all text that raters will see, so that equal texts are equal strings everywhere.
    """
    normal = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    for position, char in enumerate(normal):
        if unicodedata.category(char) in ("Cc", "Cs") and char not in _ALLOWED_CONTROLS:
            raise ValueError(f"control character U+{ord(char):04X} at position {position + 1}")
    return normal


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. ``speaker`` is the name shown; ``role`` is what the speaker is to the evaluation."""

    speaker: str
    text: str
    role: Role = "person"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation with an id, its turns and whatever else is known about it (ratings, system, user id …)."""

    id: str
    turns: tuple[Turn, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def said_by(self, role: Role) -> tuple[Turn, ...]:
        """The turns of one role, in order."""
        return tuple(turn for turn in self.turns if turn.role == role)
