"""Equivalence: evidence that two groups differ by less than matters, which a non-significant difference is not.

Checked against ``statsmodels.stats.weightstats.ttost_ind(x, y, low, high, usevar="unequal")``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import check_confidence, missing_note, numbers
from dialometer.stats.two_groups import EMPTY, welch_parts

__all__ = ["tost_welch"]


def tost_welch(
    first: ArrayLike, second: ArrayLike, low: float, high: float, *, confidence: float = 0.95, label: str = ""
) -> Estimate:
    """Two one-sided Welch tests that the difference (first minus second) lies between ``low`` and ``high``.

    A small p-value supports equivalence. The interval has confidence 1 - 2 alpha (90% for 95%), so equivalence holds at
    alpha exactly when it lies within the bounds.
    """
    if not low < high:
        raise DialometerError(f"equivalence bounds {low} and {high}", remedy="the lower bound comes first")
    one, two = numbers(first), numbers(second)
    n_missing = int(np.isnan(one).sum() + np.isnan(two).sum())
    one, two = one[~np.isnan(one)], two[~np.isnan(two)]
    n = len(one) + len(two)
    method = f"equivalence within {low:g} to {high:g}, two one-sided Welch tests"
    if not len(one) or not len(two):
        return unknown(method, EMPTY, n=n, label=label)
    if len(one) < 2 or len(two) < 2:
        return unknown(method, "a group has one rater: at least two are needed in each", n=n, label=label)
    difference, se, df = welch_parts(one, two)
    if se == 0:
        return unknown(method, "no variation within the groups: collect more", n=n, label=label)
    alpha = 1 - check_confidence(confidence)
    t_low, t_high = (difference - low) / se, (difference - high) / se
    p_low, p_high = float(stats.t.sf(t_low, df)), float(stats.t.cdf(t_high, df))
    half = float(stats.t.isf(alpha, df)) * se
    return Estimate(
        value=difference,
        n=n,
        method=method,
        low=difference - half,
        high=difference + half,
        confidence=1 - 2 * alpha,
        interval_method="Student's t with Welch's degrees of freedom, 1 - 2 alpha",
        statistic=t_low if p_low > p_high else t_high,
        df=(df,),
        p_value=max(p_low, p_high),
        label=label,
        notes=missing_note(n_missing),
        details={
            "p_above_low": p_low,
            "p_below_high": p_high,
            "is_equivalent": max(p_low, p_high) < alpha,
            "lower_bound": low,
            "upper_bound": high,
            "standard_error": se if math.isfinite(se) else math.nan,
        },
    )
