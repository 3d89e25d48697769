"""Systems compared by the ordinal mixed model: odds ratios and mean ratings that hold for other raters and other items.

Beside the level of each rater and item, raters may have a taste for a system and items may suit one (random slopes, Barr et al.
2013), so that a few of them do not pass for a general lead: ratings ~ system + (1 | rater) + (1 | item) + (1 | rater:system) +
(1 | item:system), and (1 | rater:item:system) where a rater rates several turns of the same dialogue. Wald's statistic is
compared with Student's t; its degrees of freedom are the raters or the items, whichever are fewer, less one (less the number
of systems where each of them belongs to one system). The likelihood knows no degrees of freedom, and z would reject too often
with few items.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.model.estimate import Estimate
from dialometer.stats.effects.ordinal import OrdinalFit, fit_ordinal
from dialometer.stats.observations import as_judgments, check_confidence, exponential

METHOD = "cumulative link mixed model (logit, Laplace), random raters and items with slopes for systems"
INTERVAL = "Wald with Student's t, raters or items less one"


@dataclass(frozen=True, eq=False, repr=False)
class OrdinalSystems:
    """A fitted ordinal model with one coefficient for each system but the first."""

    fit: OrdinalFit
    systems: tuple[Any, ...]
    n_raters: int
    n_items: int
    df: float
    confidence: float

    def __repr__(self) -> str:
        first = self.systems[0]
        odds = ", ".join(f"{name} {self.log_odds(name, first)[0]:.3g}" for name in self.systems[1:])
        return f"OrdinalSystems({self.n_raters} raters, {self.n_items} items; log odds of a higher rating than {first}: {odds})"

    def _row(self, system: Any) -> np.ndarray:
        if system not in self.systems:
            raise UnknownName(
                f"system '{system}' has no ratings", remedy=f"there are {', '.join(map(str, self.systems))}"
            )
        return np.array([1.0 if name == system else 0.0 for name in self.systems[1:]])

    def log_odds(self, first: Any, second: Any) -> tuple[float, float]:
        """The log odds ratio of a higher rating, first against second, and its standard error."""
        return self.fit.contrast(self._row(first) - self._row(second))

    def difference(self, first: Any, second: Any) -> Estimate:
        """The difference of the two mean ratings, in points, with the test of the log odds ratio.

        The interval is that of the log odds ratio, each end turned into points around the middle of the two systems: interval
        and test always agree, and it is the same whichever comes first. The log odds ratio and its standard error are in
        ``details``.
        """
        value, error = self.log_odds(first, second)
        half = self._quantile * error
        middle = float((self._row(first) + self._row(second)) @ self.fit.coefficients) / 2
        points, low, high = (
            self.fit.expected_rating(middle + odds / 2) - self.fit.expected_rating(middle - odds / 2)
            for odds in (value, value - half, value + half)
        )
        return self._estimate(
            points, low, high, f"{first} − {second}", f"{METHOD}, Wald t-test", t=value / error,
            more={"log_odds": value, "log_odds_error": error, "odds_ratio": exponential(value)},
        )  # fmt: skip

    def odds_ratio(self, first: Any, second: Any) -> Estimate:
        """The ratio of the odds of a higher rating, first to second."""
        value, error = self.log_odds(first, second)
        half = self._quantile * error
        ratio, low, high = (exponential(value + side * half) for side in (0, -1, 1))
        return self._estimate(
            ratio, low, high, f"{first} / {second}", f"{METHOD}, odds ratio", t=value / error, more={"null": 1.0}
        )

    def mean(self, system: Any) -> Estimate:
        """The mean rating of a system over all raters and items, as the model expects it."""
        value, error = self.fit.mean_rating(self._row(system))
        half = self._quantile * error
        return self._estimate(value, value - half, value + half, str(system), f"{METHOD}, mean rating")

    @cached_property
    def differences(self) -> Mapping[tuple[Any, Any], Estimate]:
        """Every pair of systems, the better first, in points."""
        order = sorted(self.systems, key=lambda name: -float(self._row(name) @ self.fit.coefficients))
        return {pair: self.difference(*pair) for pair in itertools.combinations(order, 2)}

    @property
    def _quantile(self) -> float:
        return float(stats.t.isf((1 - self.confidence) / 2, self.df))

    def _estimate(
        self,
        value: float,
        low: float,
        high: float,
        label: str,
        method: str,
        *,
        t: float = math.nan,
        more: Mapping[str, float] | None = None,
    ) -> Estimate:
        error = (high - low) / (2 * self._quantile)
        return Estimate(
            value=value,
            n=self.fit.n,
            method=method,
            low=low,
            high=high,
            confidence=self.confidence,
            interval_method=INTERVAL,
            statistic=t,
            df=(self.df,),
            p_value=math.nan if math.isnan(t) else float(2 * stats.t.sf(abs(t), self.df)),
            label=label,
            details={"standard_error": error, "n_raters": self.n_raters, "n_items": self.n_items, **(more or {})},
        )


def ordinal_systems(
    ratings: ArrayLike,
    systems: ArrayLike,
    raters: ArrayLike,
    items: ArrayLike,
    *,
    has_fixed_items: bool = False,
    confidence: float = 0.95,
) -> OrdinalSystems:
    """Fit the model. With ``has_fixed_items`` claims are about these items only: nothing of what suits them is random."""
    level = check_confidence(confidence)
    y, (system, rater, item), (names, rater_names, item_names) = as_judgments(ratings, systems, raters, items)
    n_systems, n_raters, n_items = len(names), len(rater_names), len(item_names)
    if n_systems < 2 or n_raters < 2:
        counts = f"{n_systems} system{'' if n_systems == 1 else 's'} and {n_raters} rater{'' if n_raters == 1 else 's'}"
        raise NotEnoughData(counts, remedy="at least two of each are needed")
    of_rater, of_item = rater * n_systems + system, item * n_systems + system
    factors = {"rater": rater, "rater:system": of_rater, "item": item}
    df = n_raters - (n_systems if len(np.unique(of_rater)) == n_raters else 1)
    if not has_fixed_items:
        factors["item:system"] = of_item
        df = min(df, n_items - (n_systems if len(np.unique(of_item)) == n_items else 1))
    cell = (rater * n_items + item) * n_systems + system
    if len(np.unique(cell)) < 0.9 * len(y):
        factors["rater:item:system"] = cell
    if df < 1:
        raise NotEnoughData(
            f"{n_items} items and {n_raters} raters for {n_systems} systems",
            remedy="a claim about other items needs several of them; rate more",
        )
    design = (system[:, None] == np.arange(1, n_systems)).astype(np.float64)
    fit = fit_ordinal(y, design, factors)
    return OrdinalSystems(fit, tuple(names.tolist()), n_raters, n_items, float(df), level)
