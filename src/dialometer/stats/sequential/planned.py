"""A few looks fixed in advance, with the error spent over them (Lan and DeMets 1983).

A spending function says how much of alpha may be used up by a given share of the planned raters. From it follow the bounds
of the looks, one after the other: each makes the chance of crossing it, and none before, what may be spent there. The chance
comes from recursive numerical integration (Armitage, McPherson and Rowe 1969; Jennison and Turnbull 2000, chapter 19). The
intervals are repeated confidence intervals, which hold whether or not the study stops (Jennison and Turnbull 1989).

Checked in tests/stats/test_sequential.py against R's rpact 3.3.4 (``getDesignGroupSequential``, asOF and asP, five equal looks
at 5 %, two-sided: O'Brien-Fleming-like 4.87688, 3.35701, 2.68028, 2.28982, 2.03103; Pocock-like 2.43798, 2.42681, 2.41019,
2.39665, 2.38600) and against the constants of Jennison and Turnbull (2000), tables 2.1 and 2.3 (Pocock 2.413 and
O'Brien-Fleming 2.040 for five looks).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import optimize, special

from dialometer.errors import DialometerError
from dialometer.stats.observations import Floats
from dialometer.stats.sequential.look import SequentialLook, quantile

Spending = Literal["obrien_fleming", "pocock"]
WORDS: dict[Spending, str] = {"obrien_fleming": "O'Brien-Fleming-like", "pocock": "Pocock-like"}
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_FARTHEST = 8.5
"""Standard errors beyond which nothing is counted."""
_NOTHING = 1e-15
_LEVELS = tuple(np.concatenate([10.0 ** np.linspace(-12, -2.1, 34), np.linspace(0.01, 0.99, 99), [0.9999]]).tolist())


@dataclass(frozen=True)
class PlannedLook(SequentialLook):
    """The last of the looks that were reached; ``reached`` are the raters at each of them, this one included."""

    reached: tuple[int, ...]
    looks: tuple[int, ...]
    spending: Spending = "obrien_fleming"

    @property
    def n(self) -> int:  # type: ignore[override]
        """Raters at this look."""
        return self.reached[-1]

    @property
    def planned(self) -> int:  # type: ignore[override]
        """Raters at the last look."""
        return self.looks[-1]

    def level(self, alpha: float) -> float:
        """The two-sided level at this look."""
        return float(2 * special.ndtr(-bounds(self.reached, self.planned, alpha, self.spending)[-1]))

    def p_value(self, p: float) -> float:
        """The smallest alpha at which this look's bound is reached, between tabulated values by their normal quantiles."""
        alphas, statistics = _table(self.reached, self.planned, self.spending)
        z = quantile(p)
        if z <= statistics[-1]:
            return 1.0
        return float(2 * special.ndtr(-np.interp(z, statistics[::-1], alphas[::-1])))

    def last_level(self, alpha: float) -> float:
        """The level at the last look, where the looks between are made as planned."""
        rest = tuple(n for n in self.looks if n > self.n)
        return PlannedLook((*self.reached, *rest), self.looks, self.spending).level(alpha)

    def method(self) -> str:
        """For the methods of a report."""
        looks = ", ".join(map(str, self.looks))
        return f"{len(self.looks)} looks at {looks} raters, {WORDS[self.spending]} alpha spending (Lan and DeMets)"


def spent(share: float, alpha: float, spending: Spending = "obrien_fleming") -> float:
    """How much of a two-sided alpha may be used up at a share of the planned raters: half of it on either side."""
    if share >= 1:
        return alpha
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1) * share)
    return float(4 * special.ndtr(-quantile(alpha / 2) / math.sqrt(share)))


@lru_cache(maxsize=4096)
def bounds(
    reached: tuple[int, ...], planned: int, alpha: float, spending: Spending = "obrien_fleming"
) -> tuple[float, ...]:
    """The bounds of the looks for a standard normal statistic, two-sided; infinite where next to nothing may be spent."""
    if any(later <= earlier for earlier, later in zip((0, *reached), reached, strict=False)):
        raise DialometerError(f"looks at {reached}", remedy="each look has more raters than the one before")
    found_bounds: list[float] = []
    walk = _Walk()
    before = 0.0
    for n in reached:
        now = spent(n / planned, alpha, spending)
        found_bounds.append(walk.bound(n, now - before))
        walk.go_on(n, found_bounds[-1])
        before = now
    return tuple(found_bounds)


def crossing(statistics: Sequence[float], reached: Sequence[int]) -> float:
    """The chance that a standard normal statistic without an effect crosses any of these bounds at these looks."""
    walk, total = _Walk(), 0.0
    for n, bound in zip(reached, statistics, strict=True):
        total += walk.chance(n, bound)
        walk.go_on(n, bound)
    return total


class _Walk:
    """A random walk that has crossed no bound so far: where it is, as a density on points with weights."""

    def __init__(self) -> None:
        self.n = 0
        self.points: Floats = np.zeros(1)
        self.mass: Floats = np.ones(1)

    def chance(self, n: int, bound: float) -> float:
        """The chance of crossing a bound at n, having crossed none before."""
        step = math.sqrt(n - self.n)
        return float(2 * self.mass @ special.ndtr((self.points - bound * math.sqrt(n)) / step))

    def bound(self, n: int, chance: float) -> float:
        """The bound at n that is crossed with this chance."""
        if chance < _NOTHING or self.chance(n, _FARTHEST) >= chance:
            return math.inf
        if self.chance(n, 0.0) <= chance:
            return 0.0
        return float(optimize.brentq(lambda bound: self.chance(n, bound) - chance, 0.0, _FARTHEST, xtol=1e-10))

    def go_on(self, n: int, bound: float) -> None:
        """On to n, within the bound."""
        step, end = math.sqrt(n - self.n), min(bound, _FARTHEST) * math.sqrt(n)
        points = end * _POINTS
        density = (
            np.exp(-(((points[:, None] - self.points) / step) ** 2) / 2) @ self.mass / (step * math.sqrt(2 * math.pi))
        )
        self.n, self.points, self.mass = n, points, density * end * _WEIGHTS


@lru_cache(maxsize=256)
def _table(reached: tuple[int, ...], planned: int, spending: Spending) -> tuple[Floats, Floats]:
    """For many alphas, as normal quantiles, the bound of this look; both fall as alpha grows."""
    levels = [(quantile(alpha), bounds(reached, planned, alpha, spending)[-1]) for alpha in _LEVELS]
    kept = [(alpha, bound) for alpha, bound in levels if math.isfinite(bound)] or [(math.inf, math.inf)]
    return np.array([alpha for alpha, _ in kept]), np.array([bound for _, bound in kept])
