"""The small bar under a headline number: where the interval lies on a scale that shows what no effect would be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dialometer.model.estimate import Estimate
from dialometer.report.numbers import RATIO_UNITS, SHARE_UNITS, write_number, write_percent

_REACH = 3


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """Places in percent of the bar's width, and the words at its ends."""

    value: float
    low: float
    high: float
    reference: float | None
    reference_text: str
    start_text: str
    end_text: str


def interval_bar(estimate: Estimate | None) -> IntervalBar | None:
    """The bar of an estimate with an interval.

    A share is drawn on 0 to 100 %. Anything else gets a scale around its interval, with no effect on it (zero, or one
    for a ratio) if that is not far. The reference is ``details["null"]`` where the statistic names what it was tested
    against, else no effect. The ends are in words for shares, and where there is no reference to read the bar by.
    """
    if estimate is None or not (estimate.is_known and estimate.has_interval):
        return None
    low, high = min(estimate.low, estimate.value), max(estimate.high, estimate.value)
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return None
    is_share = estimate.unit in SHARE_UNITS and low >= 0 and high <= 1
    reference = _reference(estimate, low, high)
    if is_share:
        start, end = 0.0, 1.0
    else:
        ends = [low, high] if reference is None else [low, high, reference]
        room = (max(ends) - min(ends)) * 0.12
        start, end = min(ends) - room, max(ends) + room

    def place(number: float) -> float:
        return round(100 * (number - start) / (end - start), 2)

    def words(number: float) -> str:
        if reference is not None and not is_share:
            return ""
        if is_share:
            return write_percent(number, 0)
        return write_number(number, max(0, min(4, 1 - math.floor(math.log10(end - start)))))

    return IntervalBar(
        value=place(estimate.value),
        low=place(estimate.low),
        high=place(estimate.high),
        reference=None if reference is None else place(reference),
        reference_text="" if reference is None else _short(reference, is_share),
        start_text=words(start),
        end_text=words(end),
    )


def _reference(estimate: Estimate, low: float, high: float) -> float | None:
    declared = estimate.details.get("null")
    if isinstance(declared, int | float) and math.isfinite(declared):
        return float(declared)
    if estimate.unit in SHARE_UNITS:
        return None
    nothing = 1.0 if estimate.unit in RATIO_UNITS else 0.0
    reach = _REACH * (high - low)
    return nothing if low - reach <= nothing <= high + reach else None


def _short(reference: float, is_share: bool) -> str:
    return write_percent(reference, 0) if is_share else f"{reference:g}".replace("-", "−")
