"""From a screen to what a model reads: the same texts that a person sees, and the exact form of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dialometer.judges.access import Shown
from dialometer.judges.answers import scale_of

ROLE = (
    "You are a rater in a study of conversational agents. Judge only what is shown, as the instructions say. "
    "You see one screen at a time and cannot go back."
)
FORM = (
    "Answer with one JSON object and nothing else: no other text, no code fence. "
    "It has exactly these keys in this order, each with a value as described:"
)


def system_prompt(instructions: str, persona: str = "", guidance: str = "") -> str:
    """The system prompt for the whole session; ``instructions`` are the study's own, as this condition shows them."""
    preamble = f"The study's instructions:\n\n{instructions.strip()}" if instructions else ""
    parts = [ROLE, persona.strip(), preamble, guidance.strip()]
    return "\n\n".join(part for part in parts if part)


def screen_prompt(shown: Shown) -> str:
    """One screen in words: the item, the questions, the form of the answer."""
    parts = [shown["text"].strip()]
    item = shown["item"]
    if item:
        parts += _item(item, shown["chat"])
    definitions = {field["label"]: field["definition"] for field in shown["fields"] if field["definition"]}
    parts += [f"{label}: {definition}" for label, definition in definitions.items()]
    keys = [f"- {json.dumps(field['name'])}: {_question_text(field)}" for field in shown["fields"]]
    parts.append("\n".join([FORM, *keys]))
    return "\n\n".join(part for part in parts if part)


def example_prompt(shown: Shown, answers: Mapping[str, Any]) -> str:
    """An item with its answer, as an example."""
    text = "\n\n".join(part for part in _item(shown["item"], None) if part)
    return f"{text}\n\nThe answer: {json.dumps(answers, ensure_ascii=False)}"


def message_prompt(shown: Shown) -> str:
    """What a model reads when it is its turn in a conversation."""
    item = shown["item"]
    sides = [option["turns"] for option in item["options"]] or [shown["chat"] or []]
    so_far = "\n\n".join(
        (f"Agent {chr(65 + place)}:\n" if len(sides) > 1 else "") + _turns(turns)
        for place, turns in enumerate(sides)
        if turns
    )
    with_whom = "an agent" if len(sides) == 1 else "two agents, who both read your message"
    parts = [
        f"You are now the user in a conversation with {with_whom}.",
        f"The situation: {item['scenario']}" if item["scenario"] else "",
        f"Said so far:\n{so_far}" if so_far else "Nothing was said yet.",
        "Write your next message, and nothing else.",
    ]
    return "\n\n".join(part for part in parts if part)


def again(complaints: Mapping[str, str]) -> str:
    """What a model reads when its answer cannot be used."""
    reasons = "\n".join(f"- {name}: {why}" for name, why in complaints.items())
    return f"This answer cannot be used:\n{reasons}\n\nGive the whole JSON object again, and nothing else."


def _item(item: Mapping[str, Any], chat: Sequence[Mapping[str, Any]] | None) -> list[str]:
    parts = [item["title"], item["text"], f"Situation: {item['scenario']}" if item["scenario"] else ""]
    parts += _system_prompt_lines(item["system_prompt"])
    if chat:
        parts.append(f"The conversation:\n{_turns(chat)}")
    elif item["context"]:
        parts.append(f"What was said before:\n{_turns(item['context'])}")
    if item["standard"]:
        parts.append(f"A standard response, for comparison: {item['standard']}")
    parts += [f"The value of the standard on {name}: {value:g}." for name, value in item["anchor_values"].items()]
    if item["task"]:
        parts.append(item["task"])
    is_dialogue = item["kind"] in ("transcript_pair", "dialogue", "arena")
    noun = "Conversation" if is_dialogue else "Response"
    for option in item["options"]:
        head = noun if len(item["options"]) == 1 else f"{noun} {option['place']}"
        rated = set(item["rated_turns"])
        turns = [
            f"{f'(t{number}) ' if number in rated else ''}{_turn(turn)}" for number, turn in enumerate(option["turns"])
        ]
        parts.append(f"{head}:\n" + "\n".join([*_system_prompt_lines(option["system_prompt"]), *turns]))
    return parts


def _system_prompt_lines(system_prompt: str) -> list[str]:
    return [f"What the system was told beforehand: {system_prompt}"] if system_prompt else []


def _turns(turns: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(map(_turn, turns))


def _turn(turn: Mapping[str, Any]) -> str:
    """What was said, after the steps with tools and before the media, which a model knows by their words alone."""
    steps = [_step(call) for call in turn.get("tool_calls", ())]
    files = [f"[{entry['kind']}: {entry['alt'] or 'without a description'}]" for entry in turn.get("media", ())]
    return "\n".join([*steps, f"{turn['speaker']}: {turn['text']}", *files])


def _step(call: Mapping[str, Any]) -> str:
    arguments = f" with {call['arguments']}" if call["arguments"] else ""
    result = f"; result: {call['result']}" if call["result"] is not None else ""
    return f"[used the tool {call['name']}{arguments}{result}]"


def _question_text(field: Mapping[str, Any]) -> str:
    about = ""
    if field["target"].startswith("t"):
        about = f" (about the turn {field['target']})"
    elif field["target"]:
        about = f" (about number {field['target']})"
    may = "" if field["is_required"] else " It may be null."
    help_ = f" {field['help']}" if field["help"] else ""
    return f"{field['question']}{about}{help_} → {scale_of(field).answer_format(field['alternatives'])}.{may}"
