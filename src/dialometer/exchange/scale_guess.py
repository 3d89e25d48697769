"""Guessing on which scale values were given, when only the values are left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialometer.scales.pairwise import CANNOT_TELL, TIE
from dialometer.scales.reading import to_number

MAX_POINTS = 11
MAX_OPTIONS = 20
Scale = dict[str, Any]
"""A scale as a study file declares it."""


@dataclass(slots=True)
class ObservedValues:
    """What the values of one criterion or question look like."""

    n: int = 0
    n_numbers: int = 0
    are_whole: bool = True
    lowest: float = math.inf
    highest: float = -math.inf
    texts: set[str] = field(default_factory=set)
    told: str = ""
    """The type of scale that the file states."""
    hint: str = ""
    """The type of scale that the form of file suggests."""

    def add(self, raw: object, *, told: str = "", hint: str = "") -> None:
        """Look at one more value."""
        self.n += 1
        self.told = self.told or told
        self.hint = self.hint or hint
        number = to_number(raw) if isinstance(raw, str | int | float) and _is_small(raw) else None
        if number is not None:
            self.n_numbers += 1
            self.are_whole &= number == int(number)
            self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
        if len(self.texts) <= MAX_OPTIONS or raw in (TIE, CANNOT_TELL):
            self.texts |= {str(one) for one in raw} if isinstance(raw, list) else {str(raw)}

    def join(self, other: ObservedValues) -> None:
        """Count another one's values in."""
        self.n += other.n
        self.n_numbers += other.n_numbers
        self.are_whole &= other.are_whole
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.texts |= other.texts
        self.told, self.hint = self.told or other.told, self.hint or other.hint

    @property
    def is_numeric(self) -> bool:
        """Whether every value is a number."""
        return self.n > 0 and self.n == self.n_numbers

    @property
    def could_be_likert(self) -> bool:
        """Whether the values are few whole numbers, as the points of a Likert-type scale."""
        first = min(1.0, self.lowest)
        return self.is_numeric and self.are_whole and first >= -5 and 2 <= self.highest - first + 1 <= MAX_POINTS


def _is_small(raw: str | int | float) -> bool:
    return not isinstance(raw, int) or abs(raw) < 1e300


def guess_scales(evidence: Mapping[str, ObservedValues]) -> dict[str, Scale]:
    """A scale for each criterion of one file.

    Likert-type criteria whose highest points differ by one at most are taken to share the longer scale, since the end of
    a scale is easily not used by anyone.
    """
    # What a form suggests holds for all its criteria: one that got low numbers only was still a magnitude.
    are_magnitudes = any(one.hint == "magnitude" and not one.could_be_likert for one in evidence.values())
    scales = {}
    for name, one in evidence.items():
        told = one.told or (one.hint if one.hint != "magnitude" or are_magnitudes else "")
        scales[name] = _TOLD[told](one) if told in _TOLD else _guess(one)
    likert = [scale for scale in scales.values() if scale["type"] == "likert"]
    for scale in likert:
        longest = max(other["points"] for other in likert if other["first"] == scale["first"])
        if longest - scale["points"] == 1:
            scale["points"] = longest
    return scales


def _guess(evidence: ObservedValues) -> Scale:
    if evidence.could_be_likert:
        return _likert(evidence)
    if evidence.is_numeric:
        return {"type": "magnitude"} if evidence.lowest >= 0 and evidence.highest > 100 else _slider(evidence)
    if 2 <= len(evidence.texts) <= MAX_OPTIONS:
        return {"type": "choice", "options": sorted(evidence.texts)}
    return _text(evidence)


def _likert(evidence: ObservedValues) -> Scale:
    first = int(max(-5.0, min(1.0, evidence.lowest)))
    points = int(evidence.highest) - first + 1 if evidence.could_be_likert else 2
    return {"type": "likert", "points": points, "first": first}


def _slider(evidence: ObservedValues) -> Scale:
    if not evidence.is_numeric or (evidence.lowest >= 0 and 1 < evidence.highest <= 100):
        return {"type": "slider", "low": 0, "high": 100}
    if evidence.lowest >= 0 and evidence.highest <= 1:
        return {"type": "slider", "low": 0, "high": 1, "step": 0.01}
    low, high = math.floor(min(0.0, evidence.lowest)), math.ceil(evidence.highest)
    return {"type": "slider", "low": low, "high": high if float(high) > float(low) else 0}


def _text(evidence: ObservedValues) -> Scale:
    if evidence.told == "text" and evidence.is_numeric:
        return {"type": "text", "format": "number"}
    return {"type": "text", "max_length": 100_000}


def _pairwise(evidence: ObservedValues) -> Scale:
    texts = evidence.texts
    return {"type": "pairwise", "allow_tie": TIE in texts, "allow_cannot_tell": CANNOT_TELL in texts}


def _options(evidence: ObservedValues) -> list[str]:
    """What was chosen; a scale needs two options, so one that nobody chose may have to be added."""
    options = sorted(evidence.texts)
    return options if len(options) > 1 else [*options, *(["Another option"] if options else ["Yes", "No"])]


_TOLD: dict[str, Callable[[ObservedValues], Scale]] = {
    "likert": _likert,
    "slider": _slider,
    "magnitude": lambda _: {"type": "magnitude"},
    "pairwise": _pairwise,
    "best_worst": lambda _: {"type": "best_worst"},
    "ranking": lambda _: {"type": "ranking"},
    "choice": lambda evidence: {"type": "choice", "options": _options(evidence), "allow_other": True},
    "multiple": lambda evidence: {"type": "multiple", "options": _options(evidence)},
    "text": _text,
}
"""How a scale is rebuilt from its values where its type is known."""
