"""What a data dictionary beside the data says, for a study that is drafted from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from dialometer.exchange.records import Condition
from dialometer.scales import SCALES

_NOT_OF_SCALE = ("in_words", "values", "conditions")


class DataDictionary:
    """The data dictionary beside the data, read without trusting it: what is malformed counts as missing."""

    def __init__(self, dictionary: Mapping[str, Any]) -> None:
        self._criteria = {str(entry.get("name")): entry for entry in _objects(dictionary.get("criteria"))}
        self._systems = {str(entry.get("name")): entry for entry in _objects(dictionary.get("systems"))}
        self._questions = {
            (str(entry.get("part")), str(entry.get("name"))): entry for entry in _objects(dictionary.get("questions"))
        }
        about = dictionary.get("study")
        self.title = _text(about, "title") if isinstance(about, dict) else ""
        self.pairs = _text(about, "pairs") if isinstance(about, dict) else ""
        self.is_controlled = self.pairs == "controlled"

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
        fitting = [scale for scale in scales if len(scales) == 1 or label in (scale.get("conditions") or ())]
        return _valid(fitting[0]) if len(fitting) == 1 else None

    def question_scale(self, part: str, name: str) -> dict[str, Any] | None:
        """The scale of a question."""
        scale = self._questions.get((part, name), {}).get("scale")
        return _valid(scale) if isinstance(scale, dict) else None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else iter(())


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
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
