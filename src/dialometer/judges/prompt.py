"""From a screen to what a model reads: the same texts that a person sees, and the exact form of the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dialometer.errors import AnswerError
from dialometer.judges.access import Shown
from dialometer.model.scale import Scale
from dialometer.scales import SCALES

ROLE = (
    "You are a rater in a study of conversational agents. Judge only what is shown, as the instructions say. "
    "You see one screen at a time and cannot go back."
)
MAX_LISTED = 101
"""Values of a scale that a schema lists at most."""
FORM = (
    "Answer with one JSON object and nothing else: no other text, no code fence. "
    "It has exactly these keys, each with a value as described:"
)


def system_prompt(instructions: str, persona: str = "") -> str:
    """The system prompt for the whole session; ``instructions`` are the study's own, as this condition shows them."""
    parts = [ROLE, persona.strip(), f"The study's instructions:\n\n{instructions.strip()}" if instructions else ""]
    return "\n\n".join(part for part in parts if part)


def screen_prompt(shown: Shown) -> str:
    """One screen in words: the item, the questions, the form of the answer."""
    parts = [shown["text"].strip()]
    item = shown["item"]
    if item:
        parts += _item(item, shown["chat"])
    definitions = {field["label"]: field["definition"] for field in shown["fields"] if field["definition"]}
    parts += [f"{label}: {definition}" for label, definition in definitions.items()]
    keys = [f"- {json.dumps(field['name'])}: {_asked(field)}" for field in shown["fields"]]
    parts.append("\n".join([FORM, *keys]))
    return "\n\n".join(part for part in parts if part)


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
    parts += _told(item["system_prompt"])
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
        parts.append(f"{head}:\n" + "\n".join([*_told(option["system_prompt"]), *turns]))
    return parts


def _told(system_prompt: str) -> list[str]:
    return [f"What the system was told beforehand: {system_prompt}"] if system_prompt else []


def _turns(turns: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(map(_turn, turns))


def _turn(turn: Mapping[str, Any]) -> str:
    """What was said, after the steps with tools and before the media, which a model knows by their words alone."""
    steps = [_step(call) for call in turn.get("tool_calls", ())]
    files = [f"[{entry['kind']}: {entry['alt'] or 'without a description'}]" for entry in turn.get("media", ())]
    return "\n".join([*steps, f"{turn['speaker']}: {turn['text']}", *files])


def _step(call: Mapping[str, Any]) -> str:
    given = f" with {call['arguments']}" if call["arguments"] else ""
    result = f"; result: {call['result']}" if call["result"] is not None else ""
    return f"[used the tool {call['name']}{given}{result}]"


def _asked(field: Mapping[str, Any]) -> str:
    about = ""
    if field["target"].startswith("t"):
        about = f" (about the turn {field['target']})"
    elif field["target"]:
        about = f" (about number {field['target']})"
    may = "" if field["is_required"] else " It may be null."
    help_ = f" {field['help']}" if field["help"] else ""
    return f"{field['question']}{about}{help_} → {_scale(field).answer_format(field['alternatives'])}.{may}"


def _scale(field: Mapping[str, Any]) -> Scale:
    return SCALES.get(field["scale"]["type"]).model_validate(field["scale"])


# Holding a model to the form of the answer


def answer_schema(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A JSON Schema of the answers to a screen, for endpoints that let a model write nothing else.

    Where a scale takes few values they are listed; they are found by asking the scale, as answers are checked.
    """
    properties = {field["name"]: _value_schema(field) for field in fields}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value_schema(field: Mapping[str, Any]) -> dict[str, Any]:
    scale = field["scale"]
    low, high = scale.get("minimum", 1), scale.get("maximum", scale.get("points", 0))
    numbers = range(int(low), int(high) + 1) if isinstance(high, int | float) and 0 < high - low <= MAX_LISTED else ()
    candidates = [*field["alternatives"], *(scale.get("options") or ()), "tie", "both_bad", *numbers]
    listed = [value for value in candidates if not _complaint(value, field)]
    if not listed:
        return {}
    return {"enum": listed if field["is_required"] else [*listed, None]}


# Reading a model's answer

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)
WHOLE = "the answer"


class Unusable(Exception):
    """An answer that cannot be used, with a complaint for each key that is wrong."""

    def __init__(self, complaints: Mapping[str, str]) -> None:
        self.complaints = dict(complaints)
        super().__init__("; ".join(f"{name}: {why}" for name, why in complaints.items()))


def read_answers(text: str, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answers by field; raises :class:`Unusable`. A value in words, a missing key or a stray one is not guessed at."""
    given = _object(text)
    names = [field["name"] for field in fields]
    wrong = {name: "this key is not asked for" for name in given if name not in names}
    answers: dict[str, Any] = {}
    for field in fields:
        name = field["name"]
        value = given.get(name)
        if value is None:
            if field["is_required"]:
                wrong[name] = "this key is missing" if name not in given else "a value is needed"
            continue
        complaint = _complaint(value, field)
        if complaint:
            wrong[name] = complaint
        else:
            answers[name] = value
    if wrong:
        raise Unusable(wrong)
    return answers


def _object(text: str) -> dict[str, Any]:
    """The one JSON object that a text is; nothing but a code fence may surround it."""
    plain = text.strip()
    fenced = _FENCE.match(plain)
    try:
        content = json.loads(fenced[1] if fenced else plain, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise Unusable({WHOLE: f"it is not one JSON object ({error})"}) from error
    if not isinstance(content, dict):
        raise Unusable({WHOLE: "it is not a JSON object"})
    return content


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is given twice")
    return content


def _complaint(value: Any, field: Mapping[str, Any]) -> str:
    """Why a value does not fit, empty where it does. Numbers must be numbers: what a person's form sends as text is not."""
    scale = _scale(field)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scale.input_field().is_number and not is_number:
        return "it must be a number"
    try:
        scale.parse(value, tuple(field["alternatives"]))
    except AnswerError as error:
        return error.message
    return ""
