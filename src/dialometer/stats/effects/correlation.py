"""How closely two measures go together, with intervals.

Checked against ``pingouin.corr(x, y, method="pearson" | "spearman" | "kendall")`` (values, p-values, Pearson's interval)
and published formulas for the other intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, check_confidence, missing_note, numbers, same_length


def pearson(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Pearson's linear correlation with Fisher's z interval."""

    def error(_: float, n: int) -> float:
        return 1 / math.sqrt(n - 3)

    return _correlate(first, second, "Pearson's r", stats.pearsonr, error, 4, "Fisher's z", confidence, label)


def spearman(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Spearman's rank correlation; Fisher's z with Bonett and Wright's (2000) standard error."""

    def error(r: float, n: int) -> float:
        return math.sqrt((1 + r * r / 2) / (n - 3))

    kind = "Fisher's z, Bonett-Wright"
    return _correlate(first, second, "Spearman's rho", stats.spearmanr, error, 4, kind, confidence, label)


def kendall(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Kendall's tau-b; Fisher's z with the standard error of Fieller, Hartley and Pearson (1957)."""

    def error(_: float, n: int) -> float:
        return math.sqrt(0.437 / (n - 4))

    kind = "Fisher's z, Fieller-Hartley-Pearson"
    return _correlate(first, second, "Kendall's tau-b", stats.kendalltau, error, 5, kind, confidence, label)


def _correlate(
    first: ArrayLike,
    second: ArrayLike,
    method: str,
    function: Callable[[Floats, Floats], Any],
    error: Callable[[float, int], float],
    least: int,
    kind: str,
    confidence: float,
    label: str,
) -> Estimate:
    x, y = numbers(first), numbers(second)
    same_length(first=x, second=y)
    is_whole = ~(np.isnan(x) | np.isnan(y))
    x, y = x[is_whole], y[is_whole]
    n = len(x)
    notes = missing_note(int(np.sum(~is_whole)))
    if n < 3:
        return unknown(method, f"{n} complete pairs: at least three are needed", n=n, label=label)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return unknown(method, "one side does not vary: there is nothing to correlate with", n=n, label=label)
    result = function(x, y)
    r = min(1.0, max(-1.0, float(result.statistic)))
    low = high = math.nan
    check_confidence(confidence)
    if n < least:
        notes = (*notes, f"no confidence interval from {n} pairs: at least {least} are needed")
    elif abs(r) > 1 - 1e-12:
        notes = (*notes, "no confidence interval: the relation is perfect in these data")
    else:
        half = float(stats.norm.isf((1 - confidence) / 2)) * error(r, n)
        low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    return Estimate(
        value=r,
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method="" if math.isnan(low) else kind,
        statistic=r,
        p_value=float(result.pvalue),
        label=label,
        notes=notes,
    )
