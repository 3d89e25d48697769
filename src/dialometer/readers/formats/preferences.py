"""Preference pairs as reward models are trained on: a ``chosen`` and a ``rejected`` response. Each pair gives two dialogues.

Responses are lists of messages, texts with ``Human:`` and ``Assistant:`` as in HH-RLHF (Bai et al. 2022), or plain texts after
a ``prompt``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.chats import CHAT_SPEAKERS, Chat
from dialometer.readers.paired_chats import (
    CHOSEN,
    REJECTED,
    is_preference,
    names_of,
    preference_messages,
    prompt_column,
    rows,
)
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader
from dialometer.readers.source import SourceFile


@READERS.register("preferences")
class PreferencesReader(Reader):
    """A row with ``chosen`` and ``rejected``, maybe a ``prompt``; other columns go to the metadata of both dialogues."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = CHAT_SPEAKERS

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """The two columns."""
        return is_preference(names_of(head))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """Two drafts per row, named by its number."""
        for number, (row, line) in enumerate(rows(source, problems), start=1):
            pairing = f"{source.stem}-{number}"
            used = {CHOSEN, REJECTED, "messages", prompt_column(row)}
            about = {name: value for name, value in row.items() if name not in used}
            for which in (CHOSEN, REJECTED):
                known = {**about, "pairing": pairing, "is_chosen": which == CHOSEN}
                draft = DialogueDraft(f"{pairing}.{which}", [], line=line, metadata=known)
                messages = preference_messages(row, which)
                yield Chat(draft, problems).read(messages if messages is not None else [], which)
