"""Responses that speak for others too: a language model that goes on with "User: …" as if it wrote the whole dialogue."""

from __future__ import annotations

import re
from typing import Literal

from dialometer.agents.interface import Reply
from dialometer.errors import AgentError

SpeakerLabels = Literal["keep", "cut", "fail"]
_LABEL = re.compile(
    r"^[ \t]*(?:\*\*|###? )?(User|Human|Customer|Assistant|Agent|AI|Bot|Chatbot|System)(?:\*\*)?:(?:\*\*)?(?=\s|$)",
    re.MULTILINE,
)
_OWN = ("Assistant", "Agent", "AI", "Bot", "Chatbot")


def labels_in(text: str, start: int = 0) -> list[re.Match[str]]:
    """Labels of speakers at the start of lines, but not of the very first, from a position on."""
    return [match for match in _LABEL.finditer(text, text.rfind("\n", 0, start) + 1) if text[: match.start()].strip()]


def without_other_speakers(reply: Reply, speaker_labels: SpeakerLabels) -> Reply:
    """The reply as the study wants it. Labels are recorded in any case, and so is what is cut off."""
    first = _LABEL.match(reply.text)
    is_another = first is not None and first[1] not in _OWN
    labels = labels_in(reply.text)
    if first is None and not labels:
        return reply
    names = list(dict.fromkeys(match[1] for match in [*([first] if first else []), *labels]))
    details = {**reply.details, "speaker_labels": names}
    if speaker_labels == "keep":
        return Reply(reply.text, details)
    if is_another or (labels and speaker_labels == "fail"):
        raise AgentError(
            f"the response speaks for another: it has a line of '{(first if is_another and first else labels[0])[1]}'",
            remedy="change the system prompt, or set speaker_labels: keep",
        )
    end = labels[0].start() if labels else len(reply.text)
    text = reply.text[first.end() if first else 0 : end].strip()
    if not text:
        raise AgentError("nothing is left of the response but labels of speakers", remedy="fix the agent")
    return Reply(text, {**details, "cut_text": reply.text[end:]} if labels else details)
