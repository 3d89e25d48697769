"""Numbers as readers expect them: the interval decides the digits, p values in the usual form, nothing known said so."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dialometer.model.estimate import Estimate

NOT_ENOUGH = "not enough data"
MINUS = "−"
_MAX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Written:
    """A number in words: its value, its interval if it has one, and remarks for below the table."""

    value: str
    interval: str = ""
    notes: tuple[str, ...] = ()
    is_known: bool = True

    @property
    def text(self) -> str:
        """Value and interval together."""
        return f"{self.value} {self.interval}" if self.interval else self.value


def write_number(value: float, n_digits: int) -> str:
    """A number with thousands separated; what would round to nothing is written in powers of ten."""
    if math.isinf(value):
        return f"{MINUS if value < 0 else ''}∞"
    rounded = f"{value:,.{n_digits}f}"
    if value and not float(rounded.replace(",", "")) and abs(value) < 10**-_MAX_DIGITS:
        rounded = f"{value:.1e}"
    if not float(rounded.replace(",", "")):
        rounded = rounded.lstrip("-")
    return rounded.replace("-", MINUS)


def write_percent(share: float, n_digits: int = 0) -> str:
    """A share from 0 to 1 in percent."""
    return f"{write_number(100 * share, n_digits)}%"


def write_p(p: float, *, is_bare: bool = False) -> str:
    """``p < .001`` or ``p = .023``; bare, for a column that is headed p, ``< .001`` or ``.023``."""
    if math.isnan(p):
        return NOT_ENOUGH
    sign, number = "=", f"{p:.3f}".removeprefix("0")
    if p < 0.001:
        sign, number = "<", ".001"
    elif p > 0.999:
        sign, number = ">", ".999"
    if is_bare:
        return number if sign == "=" else f"{sign} {number}"
    return f"p {sign} {number}"


def digits_of(estimate: Estimate, fallback: int, *, is_percent: bool = False) -> int:
    """Digits after the point that half the interval's width justifies, by the rule of the Particle Data Group.

    The first three digits of the half width decide: 100 to 354 show two of them, 355 to 949 one, from 950 it counts as
    1000 (Review of Particle Physics, introduction, "Rounding"). So 0.4137 ± 0.09 is 0.41 and 0.4137 ± 0.013 is 0.414.
    """
    if not estimate.has_interval:
        return fallback
    half = (100 if is_percent else 1) * (estimate.high - estimate.low) / 2
    if not (half > 0 and math.isfinite(half)):
        return fallback
    power = math.floor(math.log10(half))
    leading = half / 10.0**power
    n_shown = 2 if leading < 3.55 else 1 if leading < 9.5 else 2
    power += 1 if leading >= 9.5 else 0
    return min(_MAX_DIGITS, max(0, n_shown - 1 - int(power)))


def shared_digits(estimates: Iterable[Estimate], fallback: int, *, is_percent: bool = False) -> int | None:
    """One number of digits for a column if its intervals are alike, so that points line up; None if they are not."""
    found = [digits_of(e, fallback, is_percent=is_percent) for e in estimates if e.is_known and e.has_interval]
    if not found:
        return fallback
    return max(found) if max(found) - min(found) <= 1 else None


def write_estimate(
    estimate: Estimate, *, n_digits: int | None = None, fallback: int = 2, is_percent: bool = False
) -> Written:
    """An estimate with its interval in brackets; one that is not known gives its reason as a note."""
    if not estimate.is_known:
        return Written(NOT_ENOUGH, notes=estimate.notes, is_known=False)
    digits = digits_of(estimate, fallback, is_percent=is_percent) if n_digits is None else n_digits
    scale = 100 if is_percent else 1
    value = write_number(scale * estimate.value, digits) + ("%" if is_percent else "")
    interval = ""
    if estimate.has_interval:
        low, high = (write_number(scale * end, digits) for end in (estimate.low, estimate.high))
        interval = f"[{low}, {high}]"
    return Written(value, interval, estimate.notes)
