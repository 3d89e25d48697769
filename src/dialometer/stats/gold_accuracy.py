"""How often raters answer items of known answer right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.stats.proportion import proportion


def gold_accuracy(
    rater: Sequence[str],
    is_right: Sequence[bool],
    *,
    raters: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """Share of right answers with Wilson's interval, by rater; ``raters`` may name those who saw no gold item too."""
    if len(rater) != len(is_right):
        raise DialometerError(
            f"{len(rater)} raters for {len(is_right)} answers", where="gold items", remedy="give one of each"
        )
    names = list(raters) if raters is not None else sorted(set(rater))
    given, right = np.asarray(rater, dtype=np.str_), np.asarray(is_right, dtype=bool)
    accuracy = {}
    for name in names:
        own = right[given == name]
        estimate = proportion(int(own.sum()), len(own), interval="wilson", confidence=confidence, label=name)
        accuracy[name] = estimate if estimate.is_known else estimate.with_note(f"'{name}' saw no gold item")
    return accuracy
