"""What counts as an answer of a model: the schema it is held to, and what is read from what it wrote.

The form is read leniently (thoughts, code fences and words around the JSON object are passed over), the meaning strictly: a
value that does not fit its scale is not guessed at, and two different answers in one text are none.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialometer.errors import AnswerError
from dialometer.model.scale import Scale
from dialometer.model.study import REASON
from dialometer.scales import SCALES
from dialometer.scales.text import Text

MAX_LISTED = 101
"""Values of a scale that a schema lists at most."""
REASONS = "reasons"
"""The key under which a model gives its reasons where the study itself asks for none."""
WHOLE = "the answer"
_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"\A(.*)</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
Field = Mapping[str, Any]
"""A field of a screen as the JSON API shows it."""


def scale_of(field: Field) -> Scale:
    """The scale that a field is answered on."""
    scale: Scale = SCALES.get(field["scale"]["type"]).model_validate(field["scale"])
    return scale.said_as(field.get("option_words") or {})


def reasons_first(fields: Sequence[Field]) -> list[Field]:
    """The fields in the order in which a model should answer: reasons before the verdict they are for.

    Where the study asks for no reasons, a key for them is put before everything.
    """
    names = {field["name"]: field for field in fields}
    ordered: list[Field] = []
    for field_ in fields:
        reason = names.get(field_["name"] + REASON)
        if not field_["name"].endswith(REASON):
            ordered += [field_] if reason is None else [reason, field_]
    if len(ordered) == len(fields) and any(name.endswith(REASON) for name in names):
        return ordered
    blank = dict.fromkeys(("definition", "label", "help", "target"), "")
    scale = Text(max_length=100_000).model_dump(mode="json")
    question = "First, in two or three sentences: what speaks for and against each answer?"
    own = {"name": REASONS, "question": question, **blank, "alternatives": [], "is_required": False, "scale": scale}
    return [own, *fields]


# The form that a model is held to


def answer_schema(fields: Sequence[Field]) -> dict[str, Any]:
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


def _value_schema(field: Field) -> dict[str, Any]:
    scale = scale_of(field)
    low, high = scale.bounds()
    numbers = range(math.ceil(low), math.floor(high) + 1) if high - low < MAX_LISTED else ()
    candidates = [*field["alternatives"], *scale.option_names(), *scale.extra_options(), *numbers]
    is_open = not complaint("a text of its own", field)
    listed = [] if is_open else [value for value in dict.fromkeys(candidates) if not complaint(value, field)]
    lacking = [] if field["is_required"] else ["null"]
    if listed:
        kinds = sorted({"string" if isinstance(value, str) else "integer" for value in listed})
        return {"type": [*kinds, *lacking], "enum": [*listed, *([None] if lacking else [])]}
    kind = "string" if is_open else "number" if scale.input_field().is_number else ""
    return {"type": [kind, *lacking]} if kind else {}


# Reading what a model wrote


class Unusable(Exception):
    """An answer that cannot be used, with a complaint for each key that is wrong."""

    def __init__(self, complaints: Mapping[str, str]) -> None:
        self.complaints = dict(complaints)
        super().__init__("; ".join(f"{name}: {why}" for name, why in complaints.items()))


@dataclass(frozen=True)
class ModelAnswers:
    """What a model answered: the values by field, and why, in its words."""

    values: dict[str, Any]
    reasons: str = ""
    wrong: Mapping[str, str] = field(default_factory=dict)


def read_answers(text: str, fields: Sequence[Field]) -> ModelAnswers:
    """The answers in a model's text; raises :class:`Unusable`.

    Further keys are taken as reasons where they are words or a stated confidence; anything else that was not asked for may
    be a slip of the pen in a key and is refused.
    """
    thoughts, objects = _parts(text)
    names = {field["name"] for field in fields}
    wrapped = [inner for content in objects for inner in content.values() if isinstance(inner, dict)]
    about = [content for content in (*objects, *wrapped) if names & content.keys()]
    read = [_read(content, fields) for content in about or objects[-1:]]
    usable = [answers for answers in read if not answers.wrong]
    if not usable:
        raise Unusable(read[-1].wrong)
    if any(answers.values != usable[0].values for answers in usable):
        raise Unusable({WHOLE: "it holds several different answers"})
    last = usable[-1]
    return ModelAnswers(last.values, last.reasons or thoughts)


def _read(data: Mapping[str, Any], fields: Sequence[Field]) -> ModelAnswers:
    names = {field["name"] for field in fields}
    own_words = [str(value) for name, value in data.items() if name not in names and _is_reasoning(name, value)]
    wrong = {
        name: "this key is not asked for"
        for name, value in data.items()
        if name not in names and not _is_reasoning(name, value)
    }
    values: dict[str, Any] = {}
    for one in fields:
        name = one["name"]
        value = data.get(name)
        if value is None or (value == "" and not one["is_required"]):
            if one["is_required"]:
                wrong[name] = "this key is missing" if name not in data else "a value is needed"
        elif why := complaint(value, one):
            wrong[name] = why
        else:
            values[name] = value
    if REASONS in names and REASONS in values:
        own_words.insert(0, str(values.pop(REASONS)))
    return ModelAnswers(values, "\n".join(own_words), wrong)


def _is_reasoning(name: str, value: Any) -> bool:
    return isinstance(value, str) or value is None or (name == "confidence" and isinstance(value, int | float))


def _parts(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The thoughts in a text, and the JSON objects outside of them."""
    thoughts = [match[2].strip() for match in _THOUGHT.finditer(text)]
    rest = _THOUGHT.sub(" ", text)
    if ended := _END_OF_THOUGHT.match(rest):  # some servers leave out where thinking began
        thoughts.append(ended[1].strip())
        rest = rest[ended.end() :]
    decoder = json.JSONDecoder(object_pairs_hook=_no_repeats)
    objects: list[dict[str, Any]] = []
    why, place = "there is none", rest.find("{")
    while place >= 0:
        try:
            content, end = decoder.raw_decode(rest, place)
        except (ValueError, RecursionError) as error:
            why, end = str(error), place + 1
        else:
            objects.append(content)
        place = rest.find("{", end)
    if not objects:
        raise Unusable({WHOLE: f"it holds no JSON object ({why})"})
    return "\n".join(thoughts), objects


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is given twice")
    return content


def complaint(value: Any, field: Field) -> str:
    """Why a value does not fit, empty where it does. Numbers must be numbers: what a person's form sends as text is not."""
    scale = scale_of(field)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scale.input_field().is_number and not is_number:
        return "it must be a number"
    try:
        scale.parse(value, tuple(field["alternatives"]))
    except AnswerError as error:
        return error.message
    return ""
