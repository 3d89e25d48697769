"""Dialogues as lists of messages, as programs around language models read them; our own reader gives back the same turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Turn

Message = dict[str, Any]


def as_messages_of(turns: Sequence[Turn], system_prompt: str = "") -> list[Message]:
    """The turns as messages: users and agents by their roles, of two people the first as the user.

    Calls of tools come before what the agent said after them: a message with the calls, and one for each result.
    """
    messages: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    first = turns[0].speaker if turns else ""
    n_calls = 0
    for turn in turns:
        is_user = turn.role == "user" or (turn.role == "person" and turn.speaker == first)
        if turn.tool_calls:
            messages += _calls(turn, n_calls)
            n_calls += len(turn.tool_calls)
        if turn.text or turn.media:
            messages.append({"role": "user" if is_user else "assistant", "content": _content(turn)})
    return messages


def write_lines(path: str | Path, records: Sequence[Message]) -> int:
    """Write JSON Lines, whole or not at all."""
    target = Path(path)
    if not records:
        raise DialometerError("there is nothing to write", where=str(path), remedy="collect judgments first")
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        partial.replace(target)
    except (OSError, ValueError, TypeError) as error:
        raise DialometerError(f"the file cannot be written: {error}", where=str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
    return len(records)


def _calls(turn: Turn, n_before: int) -> list[Message]:
    numbered = [(f"call_{n_before + number}", call) for number, call in enumerate(turn.tool_calls, start=1)]
    calls = [
        {"id": key, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for key, call in numbered
    ]
    results = [
        {"role": "tool", "tool_call_id": key, "content": call.result}
        for key, call in numbered
        if call.result is not None
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def _content(turn: Turn) -> Any:
    if not turn.media:
        return turn.text
    parts: list[Message] = [{"type": "text", "text": turn.text}] if turn.text else []
    for media in turn.media:
        alt = {"alt": media.alt} if media.alt else {}
        kind = "image_url" if media.kind == "image" else media.kind
        parts.append({"type": kind, kind: {"url": media.path}, **alt})
    return parts
