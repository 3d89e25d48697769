"""Values as raters give them: reading a number, names that every comparison knows, and what a column of values shows."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

# A judgment's value as it is stored: a number, a name, a list of names, or parts by name (best and worst, the points of a
# checklist, marks in a text).
Value = int | float | str | list[str] | dict[str, Any]

TIE = "tie"
BOTH_BAD = "both_bad"
"""A tie between two that are both bad: an answer of its own, which counts as a tie where systems are ranked."""
CANNOT_TELL = "cannot_tell"
MAX_OPTIONS = 20
"""More different texts than this are free text, not options."""
MAX_POINTS = 11


_GROUP_SPACES = " \u00a0\u2009\u202f'’٬"
"""What separates thousands and nothing else: spaces, apostrophes and the Arabic thousands separator."""
_GROUPS = {
    mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+") for mark in (",", ".", *_GROUP_SPACES)
}
MISSING = frozenset({"", "na", "n/a", "nan", "null", "-", "--", ".", "#n/a", "#null!", "<na>"})
"""How programs write that there is no answer: R writes NA, Python nan, SAS and Stata a point, spreadsheets #N/A, SPSS #NULL!."""


def is_missing(raw: object) -> bool:
    """Whether a cell says that nothing was answered. A study may still have an option of that name."""
    if isinstance(raw, float):
        return math.isnan(raw)
    return raw is None or (isinstance(raw, str) and len(raw) < 10 and raw.strip().casefold() in MISSING)


def to_number(raw: object) -> float | None:
    """The number in a raw answer, or None. Refuses infinities, NaN and truth values.

    Takes a decimal comma, and thousands where they are separated beyond doubt: ``1 000``, ``1,000,000``, ``1.000,5``. A
    percent sign is left out: 80% is 80. A comma before exactly three digits (``1,000``) may be either and is no number;
    ``which_number`` asks. A point there is a decimal point, as programs and files write it. One rule for forms, programs and
    imported files.
    """
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int | float):
        try:
            number = float(raw)
        except OverflowError:
            return None
    elif isinstance(raw, str) and not which_number(raw, ","):
        try:
            number = float(_with_point(raw.strip().removesuffix("%").rstrip()).replace("_", "x"))
        except ValueError:
            return None
    else:
        return None
    return number if math.isfinite(number) else None


def which_number(raw: object, marks: str = ",.") -> str:
    """What to ask where a number has one of these marks before three digits: ``1,000`` is 1000 or 1. Empty where it is clear."""
    text = raw.strip() if isinstance(raw, str) else ""
    mark = next((mark for mark in marks if text.count(mark) == 1), "")
    if not mark or not _GROUPS[mark].fullmatch(text):
        return ""
    decimal = f"{float(text.replace(mark, '.')):g}"
    if _GROUPS["."].fullmatch(decimal):  # written so, it would be asked again
        decimal += "0"
    return f"Do you mean {text.replace(mark, '')} or {decimal}? Please write it like one of these."


def _with_point(text: str) -> str:
    """The number as programs write it: thousands joined, a decimal point."""
    text = text.replace("٫", ".")  # the Arabic decimal separator
    decimal = max(",.", key=text.rfind)
    whole, point, rest = text.rpartition(decimal)
    if not point:
        whole, rest = text, ""
    for mark, groups in _GROUPS.items():
        if mark != decimal and groups.fullmatch(whole):
            whole = whole.replace(mark, "")
        elif mark == decimal and groups.fullmatch(text) and text.count(mark) > 1:
            return text.replace(mark, "")
    return f"{whole}.{rest}" if point else whole


def tidy(number: float) -> int | float:
    """Whole numbers as int, so that 70 is stored as 70 and not 70.0."""
    return int(number) if number == int(number) and abs(number) < 2**53 else number


@dataclass(slots=True)
class ObservedValues:
    """What the imported values of one criterion or question look like; from it a scale says whether it can be theirs."""

    n: int = 0
    n_numbers: int = 0
    are_whole: bool = True
    lowest: float = math.inf
    highest: float = -math.inf
    texts: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    """The names of the parts, where values have parts."""
    stated: str = ""
    """The type of scale that the file states."""
    hint: str = ""
    """The type of scale that the file's format suggests."""

    def add(self, raw: object, *, stated: str = "", hint: str = "") -> None:
        """Look at one more value; one that is missing says nothing about the scale."""
        if is_missing(raw) and not stated:
            return
        self.n += 1
        self.stated = self.stated or stated
        self.hint = self.hint or hint
        is_small = isinstance(raw, str | float) or (isinstance(raw, int) and abs(raw) < 1e300)
        number = to_number(raw) if is_small else None
        if number is not None:
            self.n_numbers += 1
            self.are_whole &= number == int(number)
            self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
        if isinstance(raw, dict) and len(self.keys) <= MAX_OPTIONS:
            self.keys |= {str(key) for key in raw}
        if len(self.texts) <= MAX_OPTIONS or raw in (TIE, BOTH_BAD, CANNOT_TELL):
            self.texts |= {str(part) for part in raw} if isinstance(raw, list) else {str(raw)}

    def join(self, other: ObservedValues) -> None:
        """Count another one's values in."""
        self.n += other.n
        self.n_numbers += other.n_numbers
        self.are_whole &= other.are_whole
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.texts |= other.texts
        self.keys |= other.keys
        self.stated, self.hint = self.stated or other.stated, self.hint or other.hint

    @property
    def is_numeric(self) -> bool:
        """Whether every value is a number."""
        return self.n > 0 and self.n == self.n_numbers

    @property
    def are_points(self) -> bool:
        """Whether the values are few whole numbers, as the points of a Likert-type scale."""
        first = min(1.0, self.lowest)
        return self.is_numeric and self.are_whole and first >= -5 and 2 <= self.highest - first + 1 <= MAX_POINTS

    def options(self) -> list[str]:
        """What was chosen; a scale needs two options, so one that nobody chose may have to be added."""
        options = sorted(self.texts)
        return options if len(options) > 1 else [*options, *(["Another option"] if options else ["Yes", "No"])]


def answer_words(value: object) -> str:
    """An answer in words."""
    match value:
        case {"best": best, "worst": worst}:
            return f"best {best}, worst {worst}"
        case {"marks": list() as marks}:
            words = [
                f"“{mark.get('text', '')}” ({mark['category']}, {mark['severity']}{_comment(mark)})" for mark in marks
            ]
            return "; ".join(words) or "nothing marked"
        case dict():
            return ", ".join(f"{part}: {str(answer).replace('_', ' ')}" for part, answer in value.items())
        case list():
            return " > ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _comment(mark: dict[str, Any]) -> str:
    return f": {mark['comment']}" if mark.get("comment") else ""
