"""Looks at any time and as often as one likes: the normal mixture of Robbins, as an asymptotic confidence sequence.

At n raters a test is made with the bound ``sqrt((1 + 1/r) (2 log(1/alpha) + log(1 + r)))`` for its standard normal
statistic, where r is n over a number that says for which n the bound is narrowest (Robbins 1970; the asymptotic confidence
sequences of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, equation 5, with ``r = n rho^2``; Johari, Koomen, Pekelis
and Walsh 2022 for the p-values). The guarantee is asymptotic, as that of the tests it rests on: the first look comes after
:data:`FIRST` raters.

Checked in tests/stats/test_sequential.py against the published formulas written out on their own, and against the largest
statistic of simulated random walks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from dialometer.stats.sequential.look import SequentialLook, quantile

FIRST = 10
"""Raters before the first look: with fewer, tests are too far from normal to be repeated."""
NARROWEST_AT = 0.5
"""At which share of the planned raters the bound is narrowest; it is nearly as narrow from a quarter to twice that number."""


@dataclass(frozen=True)
class AnytimeLook(SequentialLook):
    """A look at ``n`` raters of ``planned``; ``alpha`` is the level for which the bound is made narrowest."""

    n: int
    planned: int
    alpha: float = 0.05

    @property
    def ratio(self) -> float:
        """The r of the bound: information over the one that the mixture is made for."""
        return narrowest(self.alpha) * self.n / (NARROWEST_AT * self.planned)

    def level(self, alpha: float) -> float:
        """The two-sided level at this look; 0 before the first look."""
        if self.n < FIRST:
            return 0.0
        r = self.ratio
        bound = math.sqrt((1 + 1 / r) * (2 * math.log(1 / alpha) + math.log1p(r)))
        return float(2 * special.ndtr(-bound))

    def p_value(self, p: float) -> float:
        """One over the mixture's likelihood ratio (its e-value), at most 1."""
        if self.n < FIRST:
            return 1.0
        r, z = self.ratio, quantile(p)
        return min(1.0, math.exp(0.5 * math.log1p(r) - z * z * r / (1 + r) / 2))

    def last_level(self, alpha: float) -> float:
        """The level at the planned number of raters."""
        return AnytimeLook(self.planned, self.planned, self.alpha).level(alpha)

    def method(self) -> str:
        """For the methods of a report."""
        return (
            f"asymptotic confidence sequence (normal mixture, narrowest at {round(NARROWEST_AT * self.planned)} raters), "
            "by the number of raters"
        )


def narrowest(alpha: float) -> float:
    """The r at which the bound is smallest: ``-W(-alpha^2 / e) - 1``, Lambert's lower branch."""
    return float(-special.lambertw(-(alpha**2) / math.e, -1).real - 1)
