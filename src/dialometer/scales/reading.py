"""How raw answers are read as numbers: one rule for forms, programs and imported files."""

from __future__ import annotations

import math


def to_number(raw: object) -> float | None:
    """The number in a raw answer, or None. Takes a decimal comma; refuses infinities, NaN and truth values."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int | float):
        try:
            number = float(raw)
        except OverflowError:
            return None
    elif isinstance(raw, str):
        try:
            number = float(raw.strip().replace(",", ".").replace("_", "x"))
        except ValueError:
            return None
    else:
        return None
    return number if math.isfinite(number) else None


def tidy(number: float) -> int | float:
    """Whole numbers as int, so that 70 is stored as 70 and not 70.0."""
    return int(number) if number == int(number) and abs(number) < 2**53 else number
