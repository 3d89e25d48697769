"""A number that can be trusted or doubted: the value with its interval, sample size and method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

CUT = "cut at the ends of the scale"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The result of a statistic. ``nan`` stands for "not enough data" and always comes with a note that says why."""

    value: float
    n: int
    method: str
    low: float = math.nan
    high: float = math.nan
    confidence: float = 0.95
    interval_method: str = ""
    statistic: float = math.nan
    df: tuple[float, ...] = ()
    p_value: float = math.nan
    seed: int | None = None
    n_resamples: int = 0
    label: str = ""
    unit: str = ""
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """False when there was not enough data to compute it."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval could be computed."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def with_note(self, note: str) -> Estimate:
        """The same estimate with one more remark for the reader."""
        return replace(self, notes=(*self.notes, note))

    def within(self, low: float, high: float) -> Estimate:
        """The same with its interval cut at the ends of what is possible, which its method says; the coverage stays."""
        if not self.has_interval or (self.low >= low and self.high <= high):
            return self
        return replace(
            self,
            low=min(max(self.low, low), high),
            high=max(min(self.high, high), low),
            interval_method=", ".join(dict.fromkeys(word for word in (self.interval_method, CUT) if word)),
        )

    def __str__(self) -> str:
        if not self.is_known:
            return "not enough data"
        text = f"{self.value:.3g}"
        if self.has_interval:
            text += f" [{self.low:.3g}, {self.high:.3g}]"
        return text


SHUFFLES = "middle of the shuffles"
"""The method of an interval that is no confidence interval: where a statistic of shuffled data lies."""


def unknown(method: str, why: str, *, n: int = 0, label: str = "") -> Estimate:
    """An estimate that could not be computed, with the reason."""
    return Estimate(value=math.nan, n=n, method=method, label=label, notes=(why,))
