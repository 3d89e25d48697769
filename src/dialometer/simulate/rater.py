"""One simulated rater: how the person perceives quality and what the person's habits do to the answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from dialometer.model.scale import Floats, NumberUse


@dataclass(frozen=True, slots=True)
class Habits:
    """How raters of a population differ. Rates are per rater or per answer as named; pulls lie between 0 and 1."""

    bias_sd: float = 0.35
    """Spread of raters' leniency, in standard deviations of quality."""
    taste_sd: float = 0.0
    """Spread of raters' own liking for a system, whatever the item, in standard deviations of quality."""
    noise_sd: float = 0.5
    """Noise of a single perception."""
    modulus_log_sd: float = 0.6
    """How far apart the numbers are that raters pick by themselves in magnitude estimation (log scale)."""
    free_modulus: float = 55.0
    """The number that raters without an anchor give to a middling response, on average."""
    slope: float = 0.45
    """Log units of magnitude per standard deviation of quality."""
    anchor_pull: float = 0.5
    """How far a shown number draws estimates towards itself."""
    text_anchor_calm: float = 0.25
    """By how much a shown standard response reduces the noise."""
    careless_share: float = 0.05
    """Share of raters who answer at random most of the time."""
    careless_rate: float = 0.7
    """Share of a careless rater's answers that are random."""
    position_bias: float = 0.0
    """Advantage of the first position on the screen, in standard deviations of quality."""
    tie_width: float = 0.25
    """Differences smaller than this are called a tie where that is allowed."""
    drop_out: float = 0.0
    """Probability that a rater leaves before the end."""
    speed_log_sd: float = 0.3
    """Spread of raters' pace (log scale)."""


@dataclass(frozen=True, slots=True)
class SimulatedRater:
    """A person drawn from the habits. All later chance is keyed by the rater's number and the screen, so that an
    interrupted simulation goes on exactly as it would have."""

    number: int
    seed: int
    bias: float
    modulus: float
    is_careless: bool
    pace: float
    leaves_at: float
    """Share of the way at which the rater leaves; 2 for those who stay."""
    habits: Habits

    def rng(self, *key: int) -> np.random.Generator:
        """Chance for one purpose of this rater."""
        return np.random.default_rng([self.seed, 3, self.number, *key])

    def taste(self, system: str) -> float:
        """How much better this rater finds a system than others do, in standard deviations of quality."""
        if not self.habits.taste_sd:
            return 0.0
        return self.habits.taste_sd * keyed_normal(self.seed, "taste", str(self.number), system)


def keyed_normal(seed: int, *names: str) -> float:
    """A standard normal deviate that depends only on the seed and the names, whatever the order of calls."""
    digest = hashlib.sha256("\x1f".join((str(seed), *names)).encode()).digest()
    words = np.frombuffer(digest[:16], dtype=np.uint64)
    u1, u2 = (float(w >> np.uint64(11)) / 2**53 for w in words)
    return float(np.sqrt(-2 * np.log(max(u1, 1e-300))) * np.cos(2 * np.pi * u2))


def draw_rater(number: int, seed: int, habits: Habits) -> SimulatedRater:
    """The rater with this number in the population with this seed."""
    rng = np.random.default_rng([seed, 2, number])
    bias, modulus, pace = rng.normal(size=3)
    is_careless = bool(rng.random() < habits.careless_share)
    leaves = float(rng.random()) if rng.random() < habits.drop_out else 2.0
    return SimulatedRater(
        number=number,
        seed=seed,
        bias=float(bias * habits.bias_sd),
        modulus=float(habits.free_modulus * np.exp(modulus * habits.modulus_log_sd)),
        is_careless=is_careless,
        pace=float(np.exp(pace * habits.speed_log_sd)) * (0.45 if is_careless else 1.0),
        leaves_at=leaves,
        habits=habits,
    )


def number_use(habits: Habits, log_modulus: Floats, anchor: float | None) -> NumberUse:
    """How raters with these habits pick numbers, with or without a number that the screen shows."""
    return NumberUse(log_modulus, habits.slope, anchor, habits.anchor_pull)
