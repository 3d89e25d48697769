"""Battles of an arena: two systems, what each of them said, and who won. Each battle gives two dialogues.

Read are the data of Chatbot Arena in its layouts (``conversation_a`` and ``conversation_b``; ``prompt``, ``response_a`` and
``response_b`` with ``winner_model_a``) and MT-Bench's human judgments, as JSON, JSON Lines, CSV, TSV, Parquet or Arrow.
Reference: Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", 2023.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.chats import CHAT_SPEAKERS, Chat
from dialometer.readers.paired_chats import (
    REPEATED,
    SIDES,
    SYSTEMS,
    WINNERS,
    is_battle,
    names_of,
    prompt_column,
    rows,
    said_column,
    side_messages,
    winner_in,
)
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader
from dialometer.readers.source import SourceFile


@READERS.register("battles")
class BattlesReader(Reader):
    """A row with ``model_a``, ``model_b`` and what both said; other columns go to the metadata of both dialogues."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = CHAT_SPEAKERS

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """Two models and what they said."""
        return is_battle(names_of(head))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """Two drafts per row, named by its number: the same question may be in many rows."""
        for number, (row, line) in enumerate(rows(source, problems), start=1):
            pairing = f"{source.stem}-{number}"
            about = _about(row)
            for side in SIDES:
                known = {**about, "pairing": pairing, "side": side, "system": row.get(SYSTEMS[side])}
                draft = DialogueDraft(f"{pairing}.{side}", [], line=line, metadata=known)
                messages = side_messages(row, side)
                yield Chat(draft, problems).read(messages if messages is not None else [], said_column(row, side))


def _about(row: Mapping[str, Any]) -> dict[str, Any]:
    responses = {said_column(row, side) for side in SIDES}
    prompts = (
        {prompt_column(row)}
        if not any(name.startswith(("conversation_", "messages_")) for name in responses)
        else set()
    )
    used = {*SYSTEMS.values(), *WINNERS, *REPEATED, *responses, *prompts}
    winner = row.get("winner") or winner_in(row)
    return {**{name: value for name, value in row.items() if name not in used}, "winner": winner or None}
