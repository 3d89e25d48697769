"""Probabilities that mean what they say: one temperature for the differences of scores (Guo et al. 2017).

A model trained on noisy pairs is too sure of itself. Dividing its scores by a temperature changes no order; the temperature
is the one under which held-out pairs are most likely. Pairs of a development set share dialogues, so their number overstates
how much is known; the targets are drawn towards even odds as Platt (1999) does, which also keeps the result finite where
every pair is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData

Floats = NDArray[np.float64]
HIGHEST = 1e6
"""A temperature that makes every probability one half: the scores say nothing about the pairs."""


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def posterior(first: Floats | float, second: Floats | float, temperature: float = 1.0) -> Floats:
    """The probability that the first dialogue of each pair is the better one (RankNet)."""
    return sigmoid((np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)) / temperature)


def fit_temperature(gaps: Floats) -> float:
    """The temperature of score differences, better minus worse dialogue, by Newton steps on its inverse.

    Minimises the mean log loss over pairs, with the target (n + 1) / (n + 2) for "the better one wins". Checked against
    ``scipy.optimize.minimize_scalar`` on the same loss.
    """
    gaps = np.asarray(gaps, dtype=np.float64)
    if not len(gaps) or not np.isfinite(gaps).all():
        raise NotEnoughData("there are no pairs to calibrate by", remedy="give more development pairs")
    spread = float(np.sqrt(np.mean(gaps**2)))
    if spread == 0:
        return HIGHEST
    gaps = gaps / spread
    target = (len(gaps) + 1) / (len(gaps) + 2)
    sharpness = 0.0
    for _ in range(100):
        chance = sigmoid(sharpness * gaps)
        slope = float(np.mean((chance - target) * gaps))
        bend = float(np.mean(chance * (1 - chance) * gaps**2))
        step = slope / max(bend, 1e-12)
        # A Newton step on a logistic loss may overshoot; half the way always suffices.
        while step and _loss(sharpness - step, gaps, target) > _loss(sharpness, gaps, target) + 1e-15:
            step /= 2
        sharpness -= step
        if abs(step) < 1e-10 * max(1.0, abs(sharpness)):
            break
    return min(spread / sharpness, HIGHEST) if sharpness > spread / HIGHEST else HIGHEST


@dataclass(frozen=True, slots=True)
class CalibrationQuality:
    """How far probabilities are from what happened: log loss, Brier score, and the mean gap over bins (ECE)."""

    log_loss: float
    brier: float
    calibration_error: float
    n: int


def reliability(gaps: Floats, temperature: float, n_bins: int = 10) -> CalibrationQuality:
    """Of the probabilities given to pairs, by the difference of their scores (better minus worse).

    Every pair counts from both sides, so the result does not depend on which dialogue stands first.
    """
    if not len(gaps):
        return CalibrationQuality(math.nan, math.nan, math.nan, 0)
    chance = sigmoid(np.asarray(gaps, dtype=np.float64) / temperature)
    both = np.concatenate([chance, 1 - chance])
    happened = np.concatenate([np.ones(len(chance)), np.zeros(len(chance))])
    bins = np.minimum((both * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    distance = np.abs(np.bincount(bins, both - happened, minlength=n_bins))
    return CalibrationQuality(
        log_loss=float(np.mean(np.logaddexp(0.0, -np.asarray(gaps) / temperature))),
        brier=float(np.mean((both - happened) ** 2)),
        calibration_error=float(distance.sum() / counts.sum()),
        n=len(gaps),
    )


def _loss(sharpness: float, gaps: Floats, target: float) -> float:
    win, lose = np.logaddexp(0.0, -sharpness * gaps), np.logaddexp(0.0, sharpness * gaps)
    return float(np.mean(target * win + (1 - target) * lose))
