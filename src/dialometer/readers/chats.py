"""Lists of messages, as programs around language models keep them, as the turns of a dialogue.

System prompts and calls of tools are no turns. They are kept: the prompt with the dialogue, calls and their results with the
turn that they led to.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dialometer.model.dialogue import Role, visible_controls
from dialometer.model.media import media_kind
from dialometer.readers.json_records import kind_of
from dialometer.readers.problems import Problems
from dialometer.readers.reader import DialogueDraft, TurnDraft

USERS = frozenset({"user", "human"})
AGENTS = frozenset({"assistant", "gpt", "model", "chatgpt", "bot", "bing", "bard"})
PROMPTS = frozenset({"system", "developer"})
RESULTS = frozenset({"tool", "function", "observation", "function_response", "tool_response"})
CALLS = frozenset({"function_call", "tool_call"})
"""Roles under which ShareGPT files write a call as a message of its own."""
THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
CHAT_SPEAKERS: Mapping[str, Role] = {**dict.fromkeys(USERS, "user"), **dict.fromkeys(AGENTS, "agent")}
UNNAMED_TOOL = "tool"
"""What a tool is called that only its result tells of."""

_HUMAN_ASSISTANT = re.compile(r"(?:^|\n\n)(Human|Assistant):[ \n]?")
_BETWEEN_OBJECTS = re.compile(r"\}\s*\n\s*\{")
_KNOWN = {"role", "from", "content", "value", "tool_calls", "function_call"}
_MAX_LITERAL = 4_000_000


class Chat:
    """The work on one list of messages: ``draft`` is what became of it, with its faults."""

    def __init__(self, draft: DialogueDraft, problems: Problems) -> None:
        self.draft = draft
        self.problems = problems
        self._prompts: list[str] = []
        self._calls: list[dict[str, Any]] = []
        """Calls of tools since the last turn; they belong to the next turn of the agent."""
        self._waiting: dict[str, dict[str, Any]] = {}
        """Calls without a result, by the id that the file gives them."""

    def read(self, messages: object, field: str) -> DialogueDraft:
        """Take all messages."""
        if not isinstance(messages, list):
            self._fault(f"'{field}' must be a list, not {kind_of(messages)}", field)
            return self.draft
        for place, message in enumerate(messages):
            self._take(message, f"{field}[{place}]")
        self._add_silent(field)
        if self._prompts:
            self.draft.system_prompt = "\n\n".join(self._prompts)
            self.problems.assume("system prompts are not turns; they are kept as the dialogue's system prompt")
        return self.draft

    def _take(self, message: Any, place: str) -> None:
        if not isinstance(message, dict):
            self._fault(f"a message must be an object, not {kind_of(message)}", place)
            return
        speaker = message.get("role", message.get("from"))
        role = speaker.strip().casefold() if isinstance(speaker, str) else ""
        text, parts = self._text(message.get("content", message.get("value")), place)
        if role in PROMPTS:
            self._prompts += [text] if text else []
        elif role in RESULTS:
            self._note_result(message, text)
        elif role in CALLS:
            self._note_call({"name": UNNAMED_TOOL, "arguments": text})
        else:
            self._note_calls(message)
            self._add(message, speaker, text, parts, place)

    def _add(self, message: dict[str, Any], speaker: object, text: str, parts: list[Any], place: str) -> None:
        extras = {name: content for name, content in message.items() if name not in _KNOWN and content is not None}
        media = [part for part in parts if part.get("path")]
        if len(media) < len(parts):
            extras["parts"] = [part for part in parts if not part.get("path")]
        content = message.get("content")
        kinds = (
            {str(part.get("type")) for part in content if isinstance(part, dict)}
            if isinstance(content, list)
            else set()
        )
        has_call = message.get("tool_calls") or message.get("function_call") or kinds & {"tool_use", "tool_result"}
        if not text and has_call:
            return  # only a call or its result; the answer follows
        turn = TurnDraft(speaker, text, place=place, others=extras, speaker_key="role", text_key="content")
        turn.media = media or None
        if str(speaker).strip().casefold() not in AGENTS:
            self._add_silent(place)
        elif self._calls and text:
            turn.tool_calls, self._calls = self._calls, []
        self.draft.turns.append(turn)

    def _add_silent(self, place: str) -> None:
        """Calls after which the agent said nothing are a turn without text."""
        if self._calls:
            self.draft.turns.append(TurnDraft("assistant", "", place=place, tool_calls=self._calls))
            self._calls = []

    def _text(self, content: Any, place: str) -> tuple[str, list[Any]]:
        """The text of a message and its parts that are not text; where such a part stood, the text says so."""
        if content is None or isinstance(content, str):
            return self._readable(content or ""), []
        if not isinstance(content, list):
            self._fault(f"'content' must be a text or a list of parts, not {kind_of(content)}", place)
            return "", []
        texts, extras = [], []
        for part in content:
            given = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
            if isinstance(given, str):
                texts.append(self._readable(given))
            elif isinstance(part, dict) and part.get("type") == "tool_use":
                self._note_calls({"tool_calls": [{**part, "arguments": part.get("input")}]})
            elif isinstance(part, dict) and part.get("type") == "tool_result":
                result, _ = self._text(part.get("content"), place)
                self._note_result({"tool_call_id": part.get("tool_use_id")}, result)
            elif isinstance(part, dict) and str(part.get("type")) in THOUGHTS:
                extras.append(part)
                self.problems.assume(
                    "what a model thought before it answered is kept in 'turn_fields', not in the text"
                )
            elif isinstance(part, dict) and (media := _media(part)):
                extras.append(media)
            elif isinstance(part, dict):
                kind = str(part.get("type", "part")).removeprefix("input_").removesuffix("_url")
                texts.append(f"[{kind}]")
                extras.append(part)
                self.problems.assume(f"parts that are not text become [{kind}] and are kept in 'turn_fields'")
            else:
                self._fault(f"a part must be a text or an object, not {kind_of(part)}", place)
        return "\n".join(text for text in texts if text), extras

    def _readable(self, text: str) -> str:
        """Models write control characters and halves of surrogate pairs now and then; a chat is not refused for them."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        shown = visible_controls(text)
        if shown != text:
            self.problems.assume("control characters in messages are shown as symbols (␛)")
        return shown

    def _note_calls(self, message: dict[str, Any]) -> None:
        calls = message.get("tool_calls") or ([message["function_call"]] if message.get("function_call") else [])
        for call in calls if isinstance(calls, list) else []:
            fields = call if isinstance(call, dict) else {}
            # {"function": {"name", "arguments"}} as OpenAI writes it, {"function": "name", "arguments": {…}} as Inspect does
            function = fields.get("function")
            inner = function if isinstance(function, dict) else fields
            name = inner.get("name") or (function if isinstance(function, str) else "") or UNNAMED_TOOL
            arguments = inner.get("arguments", call if not fields else None)
            noted = {"name": str(name), **({} if arguments is None else {"arguments": arguments})}
            self._note_call(noted)
            if isinstance(fields.get("id"), str):
                self._waiting[fields["id"]] = noted

    def _note_call(self, call: dict[str, Any]) -> None:
        self._calls.append(call)
        self.problems.assume("tool calls and their results are not turns; they are kept with the turn that they led to")

    def _note_result(self, message: dict[str, Any], text: str) -> None:
        """A result belongs to the call of its id, else to the first call that has none yet."""
        error = message.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            text = f"{text}\n{error['message']}".strip()
        waiting = self._waiting.pop(str(message.get("tool_call_id")), None)
        waiting = waiting or next((call for call in self._calls if "result" not in call), None)
        if waiting is None:
            name = message.get("name") or message.get("function") or UNNAMED_TOOL
            self._note_call({"name": str(name), "result": text})
        else:
            waiting["result"] = text

    def _fault(self, message: str, field: str) -> None:
        self.draft.faults.append(self.problems.problem(message, line=self.draft.line, field=field))


def _media(part: dict[str, Any]) -> dict[str, str] | None:
    """An image, sound or video that a part names by its path; one at an address, or inside the file, is no path."""
    source = next(
        (part[name] for name in ("image_url", "image", "audio", "video", "input_audio", "path") if part.get(name)), None
    )
    path = source.get("url", source.get("path")) if isinstance(source, dict) else source
    is_path = isinstance(path, str) and not re.match(r"[a-z+]+:|/|\\|.*\.\./", path) and media_kind(path) is not None
    return {"path": str(path), "alt": str(part.get("alt") or "")} if is_path else None


def is_message(value: object) -> bool:
    """Whether a value is a message: a role (or ``from``) and a content (or ``value``)."""
    return isinstance(value, dict) and (("role" in value and "content" in value) or {"from", "value"} <= set(value))


def in_cell(value: Any) -> Any:
    """What a cell of a table holds: lists are written there as JSON, or as Python and pandas print them."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    if len(value) > _MAX_LITERAL:
        return value
    for text in (value, _BETWEEN_OBJECTS.sub("}, {", value)):
        try:
            found = ast.literal_eval(text.strip())
            json.dumps(found)  # a set, bytes or a complex number are no data but a text in braces
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        return found
    return value


def as_messages(value: Any, prompt: Any = None) -> list[Any] | None:
    """A conversation as messages: a list of them, a text with ``Human:`` and ``Assistant:``, or prompts with responses.

    ``prompt`` is what came before: messages, a text, or one text for each response. None where there is nothing.
    """
    messages, before = in_cell(value), in_cell(prompt)
    if messages is None or messages in ("", []):
        return None
    if is_message(messages):
        messages = [messages]
    if isinstance(messages, list) and any(is_message(message) for message in messages):
        return [*_unless_repeated(_before(before), messages), *messages]
    if isinstance(messages, list) and (isinstance(value, list) or isinstance(before, list)):
        return _exchanges(before if isinstance(before, list) else [prompt], messages)
    text = value if isinstance(value, str) else str(value)  # a text may look like a list and be none
    if _HUMAN_ASSISTANT.match(text.lstrip(" ")):
        return human_assistant(text)
    return [*_before(before if isinstance(before, list) else prompt), {"role": "assistant", "content": text}]


def human_assistant(text: str) -> list[dict[str, str]]:
    """``\\n\\nHuman: … \\n\\nAssistant: …`` as messages."""
    _, *pieces = _HUMAN_ASSISTANT.split(text.lstrip(" "))
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[speaker], "content": said} for speaker, said in zip(pieces[::2], pieces[1::2], strict=True)]


def _before(prompt: Any) -> list[Any]:
    if not prompt:
        return []
    if isinstance(prompt, list) and any(is_message(message) for message in prompt):
        return prompt
    if isinstance(prompt, str) and _HUMAN_ASSISTANT.match(prompt.lstrip(" ")):
        return [message for message in human_assistant(prompt) if message["content"].strip()]
    return [{"role": "user", "content": part} for part in (prompt if isinstance(prompt, list) else [prompt])]


def _unless_repeated(before: list[Any], messages: list[Any]) -> list[Any]:
    """The prompt where the conversation does not begin with it already."""
    texts = [_said(message) for message in messages if is_message(message)]
    prompt_texts = [_said(message) for message in before if is_message(message)]
    return [] if prompt_texts and prompt_texts[-1] in texts[: len(prompt_texts) + 1] else before


def _said(message: dict[str, Any]) -> tuple[str, Any]:
    role = str(message.get("role", message.get("from"))).casefold()
    content = message.get("content", message.get("value"))
    return ("user" if role in USERS else role), content.strip() if isinstance(content, str) else content


def _exchanges(prompts: Sequence[Any], responses: Sequence[Any]) -> list[dict[str, Any]]:
    messages = []
    for number, response in enumerate(responses):
        if number < len(prompts) and prompts[number]:
            messages.append({"role": "user", "content": prompts[number]})
        messages.append({"role": "assistant", "content": response})
    return messages
