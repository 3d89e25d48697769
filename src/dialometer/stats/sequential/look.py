"""A look at data that are still coming in: at which level a test is made there, and what its p-value is over all looks.

Both kinds of looks work on the p-value of any test made for a fixed number of raters. Where the test is asymptotically
normal, its statistics at several looks are correlated as a Brownian motion is: the correlation of two looks is the square
root of the ratio of their information (Jennison and Turnbull 2000, chapter 11). Here the number of raters is taken for the
information. Where items are a sample too, the information grows more slowly than the raters, because what the items add to
the error is the same at every look. Then the statistics are more alike than assumed, and the chance of crossing any of
the bounds is smaller (the Gaussian correlation inequality of Royen 2014): the error rate holds, on the safe side.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace

from scipy import special, stats

from dialometer.model.estimate import Estimate


class SequentialLook(ABC):
    """One look. Results of several looks hold together: the chance of an error at any of them is at most alpha."""

    n: int
    planned: int

    @abstractmethod
    def level(self, alpha: float) -> float:
        """The two-sided level of a test at this look, so that alpha holds over all looks."""

    @abstractmethod
    def p_value(self, p: float) -> float:
        """The p-value over all looks, from the two-sided one of this look: the smallest alpha whose level it reaches."""

    @abstractmethod
    def last_level(self, alpha: float) -> float:
        """The level at the planned end."""

    @abstractmethod
    def method(self) -> str:
        """What is done, for the methods of a report."""

    def one_sided(self, p: float) -> float:
        """The same for a one-sided p-value; those above one half are read from the other side."""
        return self.p_value(2 * p) / 2 if p <= 0.5 else 1 - self.p_value(2 * (1 - p)) / 2

    def applied(self, estimate: Estimate) -> Estimate:
        """The estimate with the interval and the p-value that hold at every look; the level keeps its name.

        The interval is widened on either side as its quantiles ask for, Student's where the test has degrees of freedom.
        """
        if "p_this_look" in estimate.details:
            return estimate
        alpha, p = 1 - estimate.confidence, estimate.p_value
        is_one_sided = "lower_bound" in estimate.details  # two one-sided tests with an interval of 1 - 2 alpha
        held = p if math.isnan(p) else self.one_sided(p) if is_one_sided else self.p_value(p)
        factor = self._factor(alpha, estimate.df)
        low = estimate.value - factor * (estimate.value - estimate.low)
        high = estimate.value + factor * (estimate.high - estimate.value)
        if is_share(estimate):
            low, high = max(low, 0.0), min(high, 1.0)
        details = {**estimate.details, "p_this_look": p, "level_this_look": self.level(alpha), "n_at_look": self.n}
        how = f"{estimate.interval_method}, holds at every look" if estimate.interval_method else ""
        return replace(estimate, low=low, high=high, p_value=held, interval_method=how, details=details)

    def _factor(self, alpha: float, df: tuple[float, ...]) -> float:
        tail = self.level(alpha) / 2
        if len(df) == 1 and df[0] > 0:
            return float(stats.t.isf(tail, max(df[0], 0.5)) / stats.t.isf(alpha / 2, max(df[0], 0.5)))
        return quantile(2 * tail) / quantile(alpha)

    def chance_at_end(self, estimate: Estimate, alpha: float) -> float:
        """The predicted chance that a test at the planned end will be significant, given what there is; ``alpha`` is two-sided.

        Predictive power under a flat prior (Spiegelhalter, Freedman and Blackburn 1986), either direction.
        """
        share = min(self.n / self.planned, 1.0)
        p = float(estimate.details.get("p_this_look", estimate.p_value))
        if math.isnan(p) or share >= 1:  # without a test nothing is known
            return 1.0 if share < 1 else 0.0
        is_one_sided = "lower_bound" in estimate.details
        z, bound = float(-special.ndtri(p)) if is_one_sided else quantile(p), quantile(self.last_level(alpha))
        end, spread = z / share**0.5, ((1 - share) / share) ** 0.5
        other = 0.0 if is_one_sided else float(special.ndtr((-end - bound) / spread))
        return float(special.ndtr((end - bound) / spread)) + other


def quantile(p: float) -> float:
    """The standard normal value with this two-sided p-value."""
    return float(-special.ndtri(max(p, 1e-300) / 2))


def is_share(estimate: Estimate) -> bool:
    """Whether the estimate is a share of answers, between 0 and 1."""
    is_one = estimate.details.get("null") == 0.5 or estimate.method.startswith(("share", "preference"))
    return is_one and estimate.unit != "log odds" and 0 <= estimate.value <= 1
