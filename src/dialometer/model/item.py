"""Items: what a rater is shown and judges, in six kinds.

Every kind has ``id``, ``block`` (the within-subject block it belongs to), ``metadata``, ``line`` (where it stands in its
file, for messages), ``system_prompt`` (what all its systems were told), ``kind`` and ``systems`` (whose output it shows, in
file order).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dialometer.model.dialogue import Media, ToolCall, Turn
from dialometer.model.media import Recording
from dialometer.model.rater_text import RaterText

ItemKind = Literal["responses", "transcript_pair", "dialogue", "candidate", "chat", "arena"]
KIND_WORDS: Mapping[ItemKind, str] = {
    "responses": "single responses to a shared context",
    "transcript_pair": "pairs of whole transcripts",
    "dialogue": "whole dialogues",
    "candidate": "candidate answers to a context",
    "chat": "live dialogues",
    "arena": "live dialogues with two systems side by side",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesItem:
    """A context and one response per system, with an optional standard (gold) response that can serve as the anchor.

    ``tool_calls``, ``media`` and ``system_prompts`` hold, by system, what comes with a response besides its text.
    """

    kind: ClassVar[ItemKind] = "responses"
    id: str
    context: tuple[Turn, ...]
    responses: Mapping[str, RaterText]
    standard: RaterText | None = None
    tool_calls: Mapping[str, tuple[ToolCall, ...]] = field(default_factory=dict)
    media: Mapping[str, tuple[Media, ...]] = field(default_factory=dict)
    system_prompts: Mapping[str, str] = field(default_factory=dict)
    block: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    system_prompt: str = ""

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(self.responses)

    def response_turn(self, system: str, speaker: str = "") -> Turn:
        """The response of a system as a turn, with its tool calls and media."""
        return Turn(
            speaker,
            self.responses[system],
            tool_calls=self.tool_calls.get(system, ()),
            media=self.media.get(system, ()),
        )


@dataclass(frozen=True, slots=True)
class Transcript:
    """One side of a pair: the system (or version) it shows, its turns and how the conversation ended."""

    system: str
    turns: tuple[Turn, ...]
    outcome: str = ""
    system_prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairItem:
    """Two full transcripts. ``breaches`` names the controlled-pair rules the pair breaks on purpose, each with its reason."""

    kind: ClassVar[ItemKind] = "transcript_pair"
    id: str
    a: Transcript
    b: Transcript
    breaches: Mapping[str, str] = field(default_factory=dict)
    block: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    system_prompt: str = ""

    @property
    def systems(self) -> tuple[str, ...]:
        return (self.a.system, self.b.system)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueItem:
    """One transcript to rate, as a whole or turn by turn."""

    kind: ClassVar[ItemKind] = "dialogue"
    id: str
    system: str
    turns: tuple[Turn, ...]
    block: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    system_prompt: str = ""

    @property
    def systems(self) -> tuple[str, ...]:
        return (self.system,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateItem:
    """A context and one candidate answer. ``ranks`` says at which rank each system retrieved it; gold answers are known good."""

    kind: ClassVar[ItemKind] = "candidate"
    id: str
    context: tuple[Turn, ...]
    candidate: Turn
    recording: Recording | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)
    is_gold: bool = False
    block: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    system_prompt: str = ""

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(self.ranks)

    @property
    def turns_before(self) -> str:
        """All turns before the candidate, one to a line."""
        return "\n".join(turn.text for turn in self.context)

    @property
    def question(self) -> str:
        """The question that is answered: as the item file names it, else the turns before the candidate."""
        return str(self.metadata.get("question") or self.turns_before)

    @property
    def answer(self) -> str:
        """The answer: as the item file names it, else its text."""
        return str(self.metadata.get("answer") or self.candidate.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveItem:
    """What live conversations have in common, whether with one system or with two."""

    id: str
    scenario: RaterText = ""
    opening: RaterText = ""
    min_turns: int = 1
    max_turns: int = 50
    block: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    system_prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatItem(LiveItem):
    """A live conversation with a system, rated afterwards."""

    kind: ClassVar[ItemKind] = "chat"
    system: str

    @property
    def systems(self) -> tuple[str, ...]:
        return (self.system,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaItem(LiveItem):
    """A live conversation with two systems side by side, then a vote. Which two of ``systems`` is drawn for each rater."""

    kind: ClassVar[ItemKind] = "arena"
    systems: tuple[str, ...]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every two systems that can meet, in file order."""
        return tuple(itertools.combinations(self.systems, 2))


Item = ResponsesItem | PairItem | DialogueItem | CandidateItem | ChatItem | ArenaItem


def turns_of(item: Item) -> tuple[Turn, ...]:
    """Every turn that an item shows, responses and candidates included."""
    match item:
        case ResponsesItem():
            return (*item.context, *(item.response_turn(system) for system in item.responses))
        case PairItem():
            return (*item.a.turns, *item.b.turns)
        case DialogueItem():
            return item.turns
        case CandidateItem():
            return (*item.context, item.candidate)
        case ChatItem() | ArenaItem():
            return (Turn("Agent", item.opening, "agent"),) if item.opening else ()
