"""Chats as programs around language models keep them: OpenAI-style ``messages``, and ShareGPT's ``conversations``.

The system prompt and calls of tools are no turns of the dialogue. They are kept: the prompt as ``system_prompt`` in the
metadata, calls with their results as ``tool_calls`` of the turn that they led to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.json_records import JsonRecord, json_records, kind_of, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile

LISTS = ("messages", "conversations", "conversation")
IDS = ("id", "conversation_id", "chat_id", "uuid")
USERS = frozenset({"user", "human"})
AGENTS = frozenset({"assistant", "gpt", "model", "chatgpt", "bot", "bing", "bard"})
PROMPTS = frozenset({"system", "developer"})
RESULTS = frozenset({"tool", "function", "observation", "function_response", "tool_response"})
CALLS = frozenset({"function_call", "tool_call"})
"""Roles under which ShareGPT files write a call as a message of its own."""


@READERS.register("messages")
class MessagesReader(Reader):
    """``{"messages": [{"role": "user", "content": "…"}, …]}``, or ShareGPT's ``conversations`` with ``from`` and ``value``."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = {**dict.fromkeys(USERS, "user"), **dict.fromkeys(AGENTS, "agent")}

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """An object with a list of messages, each with its role (or ``from``)."""
        messages = next((head.record[name] for name in LISTS if head.has_keys(name)), None)
        first = messages[0] if isinstance(messages, list) and messages else None
        return isinstance(first, dict) and (("role" in first and "content" in first) or {"from", "value"} <= set(first))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per line, as a stream; an array of such objects is read whole."""
        for record in objects(json_records(source, problems), problems):
            yield _Chat(record, problems).draft()


class _Chat:
    """The work on one chat."""

    def __init__(self, record: JsonRecord, problems: Problems) -> None:
        self.value: dict[str, Any] = record.value
        self.problems = problems
        self.key = next((name for name in LISTS if name in self.value), LISTS[0])
        id_key = next((name for name in IDS if self.value.get(name) is not None), "")
        others = {name: content for name, content in self.value.items() if name not in (self.key, id_key)}
        self.made = DialogueDraft(self.value.get(id_key), [], line=record.line, metadata=others)
        self.prompts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        """Calls of tools since the last turn; they belong to the next turn of the agent."""

    def draft(self) -> DialogueDraft:
        """The draft, with its faults."""
        messages = self.value.get(self.key)
        if not isinstance(messages, list):
            self._fault(f"'{self.key}' must be a list, not {kind_of(messages)}", self.key)
            return self.made
        for place, message in enumerate(messages):
            self._take(message, f"{self.key}[{place}]")
        if self.calls and self.made.turns:  # the chat ended with a call
            last = self.made.turns[-1]
            last.others = {**last.others, "tool_calls": [*last.others.get("tool_calls", ()), *self.calls]}
        if self.prompts:
            self.made.metadata = {**self.made.metadata, "system_prompt": "\n\n".join(self.prompts)}
            self.problems.assume("system prompts are no turns; they are kept in the metadata as 'system_prompt'")
        return self.made

    def _take(self, message: Any, place: str) -> None:
        if not isinstance(message, dict):
            self._fault(f"a message must be an object, not {kind_of(message)}", place)
            return
        speaker = message.get("role", message.get("from"))
        role = str(speaker).strip().casefold() if isinstance(speaker, str) else ""
        text, parts = self._text(message.get("content", message.get("value")), place)
        self._note_calls(message)
        if role in PROMPTS:
            self.prompts += [text] if text else []
        elif role in RESULTS:
            self._note_result(text)
        elif role in CALLS:
            self._note_call({"call": text})
        else:
            self._add(message, speaker, text, parts, place)

    def _add(self, message: dict[str, Any], speaker: object, text: str, parts: list[Any], place: str) -> None:
        known = {"role", "from", "content", "value", "tool_calls", "function_call"}
        others = {name: content for name, content in message.items() if name not in known and content is not None}
        if parts:
            others["parts"] = parts
        if text and self.calls and str(speaker).casefold() in AGENTS:
            others["tool_calls"], self.calls = self.calls, []
        elif not text and ("tool_calls" in message or "function_call" in message):
            return  # only a call; its result and the answer follow
        self.made.turns.append(
            TurnDraft(speaker, text, place=place, others=others, speaker_key="role", text_key="content")
        )

    def _text(self, content: Any, place: str) -> tuple[str, list[Any]]:
        """The text of a message and its parts that are no text; where such a part stood, the text says so."""
        if content is None or isinstance(content, str):
            return content or "", []
        if not isinstance(content, list):
            self._fault(f"'content' must be a text or a list of parts, not {kind_of(content)}", place)
            return "", []
        texts, others = [], []
        for part in content:
            given = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
            if isinstance(given, str):
                texts.append(given)
            elif isinstance(part, dict):
                kind = str(part.get("type", "part")).removeprefix("input_").removesuffix("_url")
                texts.append(f"[{kind}]")
                others.append(part)
                self.problems.assume(f"parts that are no text become [{kind}] and are kept in 'turn_fields'")
            else:
                self._fault(f"a part must be a text or an object, not {kind_of(part)}", place)
        return "\n".join(text for text in texts if text), others

    def _note_calls(self, message: dict[str, Any]) -> None:
        calls = message.get("tool_calls") or ([message["function_call"]] if message.get("function_call") else [])
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function", call) if isinstance(call, dict) else call
            if isinstance(function, dict):
                self._note_call({name: function[name] for name in ("name", "arguments") if name in function})
            else:
                self._note_call({"call": function})

    def _note_call(self, call: dict[str, Any]) -> None:
        self.calls.append(call)
        self.problems.assume(
            "calls of tools and their results are no turns; they are kept with the turn that they led to"
        )

    def _note_result(self, text: str) -> None:
        """A result belongs to the first call that has none yet."""
        waiting = next((call for call in self.calls if "result" not in call), None)
        if waiting is None:
            self._note_call({"result": text})
        else:
            waiting["result"] = text

    def _fault(self, message: str, field: str) -> None:
        self.made.faults.append(self.problems.problem(message, line=self.made.line, field=field))
