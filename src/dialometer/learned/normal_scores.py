"""Features brought to a normal shape by their ranks among the training dialogues.

Counts and shares are skewed, and a new domain may hold values far outside the training data; ranks keep a single odd dialogue
from deciding what is near. Dimensions that do not vary in training become 0 everywhere instead of noise divided by nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NormalScores:
    """The training values of each dimension in order, by which other values are ranked."""

    sorted_values: Floats
    """Dialogues × dimensions, each column in ascending order."""

    @property
    def is_alive(self) -> NDArray[np.bool_]:
        """Dimensions that vary by more than rounding."""
        span = self.sorted_values[-1] - self.sorted_values[0]
        return np.asarray(span > _TOLERANCE * np.maximum(1.0, np.abs(self.sorted_values).max(axis=0)))

    def __call__(self, values: Floats) -> Floats:
        """Normal scores of each value: the quantile of its mid-rank among the training values, 0 in dead dimensions."""
        n = len(self.sorted_values)
        out = np.zeros(values.shape)
        for column in np.flatnonzero(self.is_alive):
            known = self.sorted_values[:, column]
            slack = _TOLERANCE * max(1.0, float(np.abs(known).max()))
            below = np.searchsorted(known, values[:, column] - slack, side="left")
            upto = np.searchsorted(known, values[:, column] + slack, side="right")
            share = np.clip((below + upto) / 2, 0.5, n - 0.5) / n
            out[:, column] = special.ndtri(share)
        return out


def fit_normal_scores(values: Floats) -> NormalScores:
    """The ranking by some training values."""
    return NormalScores(np.sort(np.asarray(values, dtype=np.float64), axis=0))
