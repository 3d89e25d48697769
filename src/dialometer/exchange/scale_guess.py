"""Guessing on which scale values were given, when only the values are left. What fits is for each scale to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialometer.model.values import ObservedValues
from dialometer.scales import SCALES

Scale = dict[str, Any]
"""A scale as a study file declares it."""


<<<<<<< HEAD
=======
@dataclass(slots=True)
class ObservedValues:
    """What the values of one criterion or question look like."""

    n: int = 0
    n_numbers: int = 0
    are_whole: bool = True
    lowest: float = math.inf
    highest: float = -math.inf
    texts: set[str] = field(default_factory=set)
    stated: str = ""
    """The type of scale that the file states."""
    hint: str = ""
    """The type of scale that the format suggests."""

    def add(self, raw: object, *, stated: str = "", hint: str = "") -> None:
        """Look at one more value."""
        self.n += 1
        self.stated = self.stated or stated
        self.hint = self.hint or hint
        number = to_number(raw) if isinstance(raw, str | int | float) and _is_small(raw) else None
        if number is not None:
            self.n_numbers += 1
            self.are_whole &= number == int(number)
            self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
        if len(self.texts) <= MAX_OPTIONS or raw in (TIE, CANNOT_TELL):
            self.texts |= {str(part) for part in raw} if isinstance(raw, list) else {str(raw)}

    def join(self, other: ObservedValues) -> None:
        """Count another one's values in."""
        self.n += other.n
        self.n_numbers += other.n_numbers
        self.are_whole &= other.are_whole
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.texts |= other.texts
        self.stated, self.hint = self.stated or other.stated, self.hint or other.hint

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


>>>>>>> 334a828 (Exchange, readers and result commands: plain names and English, one progress bar, questions and hashes from one place)
def guess_scales(evidence: Mapping[str, ObservedValues]) -> dict[str, Scale]:
    """A scale for each criterion of one file.

    Likert-type criteria whose highest points differ by one at most are taken to share the longer scale, since the end of
    a scale is easily not used by anyone.
    """
    # What a format suggests holds for all its criteria: one that got low numbers only was still a magnitude.
<<<<<<< HEAD
    trusted = {seen.hint for seen in evidence.values() if _confirms_hint(seen)}
    scales = {}
    for name, seen in evidence.items():
        known = seen.stated or (seen.hint if seen.hint in trusted else "")
        scales[name] = SCALES.get(known).guess(seen) if known in SCALES else _guess(seen)
    pointed = [scale for scale in scales.values() if "points" in scale]
    for scale in pointed:
        longest = max(other["points"] for other in pointed if other["first"] == scale["first"])
=======
    are_magnitudes = any(values.hint == "magnitude" and not values.could_be_likert for values in evidence.values())
    scales = {}
    for name, values in evidence.items():
        kind = values.stated or (values.hint if values.hint != "magnitude" or are_magnitudes else "")
        scales[name] = _OF_KIND[kind](values) if kind in _OF_KIND else _guess(values)
    likert = [scale for scale in scales.values() if scale["type"] == "likert"]
    for scale in likert:
        longest = max(other["points"] for other in likert if other["first"] == scale["first"])
>>>>>>> 334a828 (Exchange, readers and result commands: plain names and English, one progress bar, questions and hashes from one place)
        if longest - scale["points"] == 1:
            scale["points"] = longest
    return scales


def _confirms_hint(seen: ObservedValues) -> bool:
    return seen.hint in SCALES and (SCALES.get(seen.hint).level == "nominal" or not seen.are_points)


<<<<<<< HEAD
def _guess(seen: ObservedValues) -> Scale:
    kinds = [SCALES.get(name) for name in SCALES]
    tried = sorted((kind for kind in kinds if kind.guess_rank is not None), key=lambda kind: kind.guess_rank or 0)
    return next(kind.guess(seen) for kind in tried if kind.could_give(seen))
=======
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
    if evidence.stated == "text" and evidence.is_numeric:
        return {"type": "text", "format": "number"}
    return {"type": "text", "max_length": 100_000}


def _pairwise(evidence: ObservedValues) -> Scale:
    texts = evidence.texts
    return {"type": "pairwise", "allow_tie": TIE in texts, "allow_cannot_tell": CANNOT_TELL in texts}


def _options(evidence: ObservedValues) -> list[str]:
    """What was chosen; a scale needs two options, so one that nobody chose may have to be added."""
    options = sorted(evidence.texts)
    return options if len(options) > 1 else [*options, *(["Another option"] if options else ["Yes", "No"])]


_OF_KIND: dict[str, Callable[[ObservedValues], Scale]] = {
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
>>>>>>> 334a828 (Exchange, readers and result commands: plain names and English, one progress bar, questions and hashes from one place)
