"""What is no part of a conversation comes off before anything is learned from it: commands and error messages."""

from __future__ import annotations

import re
from dataclasses import replace

from dialometer.model.dialogue import Dialogue, Turn

# '/start', '/test' and mistyped ones; a turn that begins like that but goes on ('/sorry, bye') is addressed to the machine too.
_COMMAND = re.compile(r"^\s*/\w+")
# What the machinery around a system says in its place: it names commands to type, or prints its own failure.
_MACHINE = re.compile(
    r"(?:\btype|\bpress|\bsend|\buse|\benter)\s+/\w+"
    r"|^text is not given\b"
    r"|^traceback \(most recent call last\)"
    r"|^(?:internal )?(?:server|runtime|system) error\b"
    r"|^(?:\w+(?:Error|Exception)|error)\s*:"
    r"|^(?:http )?5\d\d (?:internal server error|bad gateway|service unavailable|gateway timeout)",
    re.IGNORECASE,
)


def is_conversation(turn: Turn) -> bool:
    """Whether a turn was meant for the partner, not for or by the machinery in between."""
    if _COMMAND.match(turn.text):
        return False
    return not (turn.role == "agent" and _MACHINE.search(turn.text.strip()))


def clean_dialogue(dialogue: Dialogue) -> Dialogue:
    """The dialogue without commands and error messages; the same object where there are none."""
    turns = tuple(turn for turn in dialogue.turns if is_conversation(turn))
    return dialogue if len(turns) == len(dialogue.turns) else replace(dialogue, turns=turns)


def same_text(dialogue: Dialogue) -> tuple[tuple[str, str], ...]:
    """What two exact copies have in common: who said what, whatever the ids and names."""
    return tuple((turn.role, turn.text) for turn in dialogue.turns)


_BEGGING = re.compile(
    r"\b(?:give|rate|put|leave|set)\b.{0,30}\b(?:\d+|five|ten|maximum|max)\s*(?:stars?|points?|score)\b"
    r"|\brate\s+(?:me|us|this|our)\b",
    re.IGNORECASE,
)


def without_begging(dialogue: Dialogue) -> Dialogue:
    """The dialogue without the agent's requests for a good rating.

    They say nothing about the conversation, and an evaluator that had learned them could be bribed with them.
    """
    turns = tuple(turn for turn in dialogue.turns if not (turn.role == "agent" and _BEGGING.search(turn.text)))
    return dialogue if len(turns) == len(dialogue.turns) else replace(dialogue, turns=turns)
