"""Strict reading of a model's answer: one JSON object with exactly the wished keys, each value on its scale."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dialometer.errors import AnswerError
from dialometer.scales import SCALES

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)
WHOLE = "the answer"


class Unusable(Exception):
    """An answer that cannot be used, with a complaint for each key that is wrong."""

    def __init__(self, complaints: Mapping[str, str]) -> None:
        self.complaints = dict(complaints)
        super().__init__("; ".join(f"{name}: {why}" for name, why in complaints.items()))


def read_answers(text: str, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answers by field; raises :class:`Unusable`. A value in words, a missing key or a stray one is not guessed at."""
    found = _object(text)
    names = [field["name"] for field in fields]
    wrong = {name: "this key is not asked for" for name in found if name not in names}
    answers: dict[str, Any] = {}
    for field in fields:
        name = field["name"]
        value = found.get(name)
        if value is None:
            if field["is_required"]:
                wrong[name] = "this key is missing" if name not in found else "a value is needed"
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
    """The one JSON object that a text is; a code fence around it is the only thing let pass."""
    plain = text.strip()
    fenced = _FENCE.match(plain)
    try:
        found = json.loads(fenced[1] if fenced else plain, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise Unusable({WHOLE: f"it is not one JSON object ({error})"}) from error
    if not isinstance(found, dict):
        raise Unusable({WHOLE: "it is not a JSON object"})
    return found


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _complaint(value: Any, field: Mapping[str, Any]) -> str:
    """Why a value does not fit, empty where it does. Numbers must be numbers: what a person's form sends as text is not."""
    kind = field["scale"]["type"]
    if kind in ("likert", "slider", "magnitude") and (isinstance(value, bool) or not isinstance(value, int | float)):
        return "it must be a number"
    scale = SCALES.get(kind).model_validate(field["scale"])
    try:
        scale.parse(value, tuple(field["alternatives"]))
    except AnswerError as error:
        return error.message
    return ""
