"""Raters who answer far faster or slower than the others.

Times are skewed, so raters are compared by the median of their logarithms; the distance from the other raters is a robust z
(median absolute deviation; Iglewicz and Hoaglin 1993), which the outliers themselves cannot stretch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown

_TO_SIGMA = 0.6744897501960817  # the MAD of a normal distribution with standard deviation 1


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """One rater's pace. ``robust_z`` is negative for the fast; it is unknown where the others give no measure of spread."""

    rater: str
    n: int
    median_s: float
    robust_z: Estimate
    is_fast: bool
    is_slow: bool
    n_dropped: int
    """Times that were missing, zero or negative, and left out."""


def answer_times(
    rater: Sequence[str], duration_s: Sequence[float], *, threshold: float = 3.5
) -> dict[str, AnswerTimes]:
    """For every rater; beyond the threshold (3.5 is the customary one) a rater is marked fast or slow."""
    if len(rater) != len(duration_s):
        raise DialometerError(
            f"{len(rater)} raters for {len(duration_s)} times", where="answer times", remedy="give one of each"
        )
    names, times = np.asarray(rater, dtype=np.str_), np.asarray(duration_s, dtype=np.float64)
    usable = np.isfinite(times) & (times > 0)
    raters = sorted(set(names.tolist()))
    pace = {
        name: float(np.median(np.log(times[usable & (names == name)])))
        for name in raters
        if (usable & (names == name)).any()
    }
    centre = float(np.median(list(pace.values()))) if pace else math.nan
    spread = float(np.median(np.abs(np.array(list(pace.values())) - centre))) if pace else math.nan
    found = {}
    for name in raters:
        n = int((usable & (names == name)).sum())
        z = _robust_z(name, pace, centre, spread, n)
        found[name] = AnswerTimes(
            rater=name,
            n=n,
            median_s=math.exp(pace[name]) if name in pace else math.nan,
            robust_z=z,
            is_fast=z.is_known and z.value < -threshold,
            is_slow=z.is_known and z.value > threshold,
            n_dropped=int((~usable & (names == name)).sum()),
        )
    return found


def _robust_z(name: str, pace: dict[str, float], centre: float, spread: float, n: int) -> Estimate:
    method = "robust z of log answer times"
    if name not in pace:
        return unknown(method, "no usable answer time", label=name)
    if len(pace) < 3:
        return unknown(method, f"{len(pace)} raters; at least 3 are needed", n=n, label=name)
    if spread <= 0:
        return unknown(method, "more than half of the raters have the same pace: no measure of spread", n=n, label=name)
    return Estimate(_TO_SIGMA * (pace[name] - centre) / spread, n, method, label=name)
