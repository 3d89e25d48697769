"""Chats as programs around language models keep them: OpenAI-style ``messages``, and ShareGPT's ``conversations``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.chats import CHAT_SPEAKERS, Chat, is_message
from dialometer.readers.json_records import json_records, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader
from dialometer.readers.source import SourceFile

LISTS = ("messages", "conversations", "conversation")
IDS = ("id", "conversation_id", "chat_id", "uuid")


@READERS.register("messages")
class MessagesReader(Reader):
    """``{"messages": [{"role": "user", "content": "…"}, …]}``, or ShareGPT's ``conversations`` with ``from`` and ``value``."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = CHAT_SPEAKERS

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """An object with a list of messages, each with its role (or ``from``)."""
        messages = next((head.record[name] for name in LISTS if head.has_keys(name)), None)
        is_chat = isinstance(messages, list) and bool(messages) and is_message(messages[0])
        return is_chat and not head.has_keys("chosen", "rejected")

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per line, as a stream; an array of such objects is read whole."""
        for record in objects(json_records(source, problems), problems):
            key = next((name for name in LISTS if name in record.value), LISTS[0])
            id_key = next((name for name in IDS if record.value.get(name) is not None), "")
            metadata = {name: content for name, content in record.value.items() if name not in (key, id_key)}
            draft = DialogueDraft(record.value.get(id_key), [], line=record.line, metadata=metadata)
            yield Chat(draft, problems).read(record.value.get(key), key)
