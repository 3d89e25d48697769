"""From perceived quality to a number on a scale: one formula for single screens and for whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialometer.model.scale import Scale
from dialometer.simulate.rater import Habits

Floats = NDArray[np.float64]
ANCHOR_SHARE = 0.8  # a middling response seems worth four fifths of a good standard
ANCHOR_FLATTENING = 0.3  # a shown number also narrows the range that raters use


def magnitudes(habits: Habits, log_modulus: Floats, utility: Floats, anchor: float | None) -> Floats:
    """Log-normal estimates around the rater's own modulus; a shown number draws that modulus to itself."""
    slope = habits.slope
    if anchor:
        log_modulus = (1 - habits.anchor_pull) * log_modulus + habits.anchor_pull * np.log(anchor * ANCHOR_SHARE)
        slope *= 1 - ANCHOR_FLATTENING * habits.anchor_pull
    value = np.exp(log_modulus + slope * utility)
    # People use round numbers: steps of five above ten.
    return np.asarray(np.maximum(1.0, np.where(value > 10, np.round(value / 5) * 5, np.round(value))))


def ratings(scale: Scale, utility: Floats) -> Floats:
    """Points of a Likert scale or places on a slider; the middle stands for average quality."""
    if scale.type == "likert":
        points, first = int(scale.points), int(scale.first)  # type: ignore[attr-defined]
        middle = first + (points - 1) / 2
        return np.asarray(np.clip(np.round(middle + utility * (points - 1) / 4), first, first + points - 1))
    low, high, step = float(scale.low), float(scale.high), float(scale.step)  # type: ignore[attr-defined]
    value = low + (high - low) * np.clip(0.5 + utility / 5, 0, 1)
    return np.asarray(np.clip(low + np.round((value - low) / step) * step, low, high))
