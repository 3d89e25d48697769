"""What a data dictionary beside the data says about criteria, questions and systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from dialometer.exchange.records import Condition
from dialometer.scales import SCALES

_NOT_OF_SCALE = ("in_words", "values", "conditions")


class Declared:
    """Reads a data dictionary without trusting it: what is not in its form is as if it were not there."""

    def __init__(self, dictionary: Mapping[str, Any]) -> None:
        self._criteria = {str(one.get("name")): one for one in _objects(dictionary.get("criteria"))}
        self._systems = {str(one.get("name")): one for one in _objects(dictionary.get("systems"))}
        self._questions = {
            (str(one.get("part")), str(one.get("name"))): one for one in _objects(dictionary.get("questions"))
        }
        about = dictionary.get("study")
        self.title = _text(about, "title") if isinstance(about, dict) else ""

    def criterion(self, name: str, key: str) -> str:
        """The question, label or definition of a criterion; empty where it is not known."""
        return _text(self._criteria.get(name, {}), key)

    def system(self, name: str, key: str) -> str:
        """The label or description of a system."""
        return _text(self._systems.get(name, {}), key)

    def question(self, part: str, name: str) -> str:
        """The text of a question."""
        return _text(self._questions.get((part, name), {}), "text")

    def scale(self, criterion: str, condition: Condition) -> dict[str, Any] | None:
        """The scale of a criterion in a condition."""
        scales = list(_objects(self._criteria.get(criterion, {}).get("scales")))
        label = ", ".join(f"{factor}={level}" for factor, level in condition)
        fitting = [one for one in scales if len(scales) == 1 or label in (one.get("conditions") or ())]
        return _valid(fitting[0]) if len(fitting) == 1 else None

    def question_scale(self, part: str, name: str) -> dict[str, Any] | None:
        """The scale of a question."""
        scale = self._questions.get((part, name), {}).get("scale")
        return _valid(scale) if isinstance(scale, dict) else None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def _valid(scale: Mapping[str, Any]) -> dict[str, Any] | None:
    """The scale as a study file declares it, None where it would be refused."""
    kind = scale.get("type")
    if not isinstance(kind, str) or kind not in SCALES:
        return None
    config = {key: value for key, value in scale.items() if key not in _NOT_OF_SCALE}
    try:
        valid = SCALES.get(kind).model_validate(config)
    except ValidationError:
        return None
    return valid.model_dump(mode="json", exclude_defaults=True) | {"type": kind}
