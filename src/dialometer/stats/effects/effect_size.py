"""How large a difference between two groups is, in units that compare across scales.

Checked against ``pingouin.compute_effsize(x, y, eftype="cohen" | "hedges")``, the noncentral t intervals of
``statsmodels.stats.effect_size._noncentrality_t`` and, for Cliff's delta, the definition over all pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, check_confidence, two_samples


def cohens_d(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Difference of means (first minus second) in pooled standard deviations, with a noncentral t interval."""
    return _standardised(first, second, confidence, label, is_corrected=False)


def hedges_g(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Cohen's d with Hedges' (1981) exact correction for its upward bias in small groups."""
    return _standardised(first, second, confidence, label, is_corrected=True)


def _standardised(
    first: ArrayLike, second: ArrayLike, confidence: float, label: str, *, is_corrected: bool
) -> Estimate:
    a, b, notes = two_samples(first, second)
    n = len(a) + len(b)
    method = "Hedges' g" if is_corrected else "Cohen's d, pooled standard deviation"
    if not len(a) or not len(b):
        return unknown(method, "one of the two groups is empty: recruit raters for both", n=n, label=label)
    df = n - 2
    squares = float(np.sum((a - a.mean()) ** 2) + np.sum((b - b.mean()) ** 2))
    if df < 1 or (np.ptp(a) == 0 and np.ptp(b) == 0):
        return unknown(method, "no variation within the groups to measure the difference by", n=n, label=label)
    d = float(a.mean() - b.mean()) / math.sqrt(squares / df)
    root = math.sqrt(len(a) * len(b) / n)
    low, high = _noncentral_interval(d * root, df, check_confidence(confidence))
    factor = (
        math.exp(special.gammaln(df / 2) - special.gammaln((df - 1) / 2)) / math.sqrt(df / 2) if df > 1 else math.nan
    )
    if is_corrected and df < 2:
        return unknown(method, "two raters in all: the correction needs at least three", n=n, label=label)
    scale = factor if is_corrected else 1.0
    return Estimate(
        value=scale * d,
        n=n,
        method=method,
        low=scale * low / root,
        high=scale * high / root,
        confidence=confidence,
        interval_method="noncentral t",
        label=label,
        notes=notes,
        details={"n_first": len(a), "n_second": len(b), "cohens_d": d},
    )


def _noncentral_interval(t: float, df: float, confidence: float) -> tuple[float, float]:
    """Noncentralities under which the observed t is just at the upper or lower tail (Steiger and Fouladi 1997)."""
    tail = (1 - confidence) / 2

    def share(noncentrality: float) -> float:
        with np.errstate(all="ignore"):
            below = float(stats.nct.cdf(t, df, noncentrality))
        return below if not math.isnan(below) else float(noncentrality < t)  # scipy gives nan where it underflows

    def solve(target: float) -> float:
        reach = 5.0 + abs(t)
        while not share(t + reach) < target < share(t - reach):
            reach *= 2
        return float(
            optimize.brentq(lambda noncentrality: share(noncentrality) - target, t - reach, t + reach, xtol=1e-12)
        )

    return solve(1 - tail), solve(tail)


def cliffs_delta(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Share of pairs in which the first group is above minus those in which it is below, in -1 to 1.

    The interval is Cliff's (1996) asymmetric one from the consistent variance, which respects the bounds.
    """
    a, b, notes = two_samples(first, second)
    n_a, n_b = len(a), len(b)
    method = "Cliff's delta"
    if not n_a or not n_b:
        return unknown(method, "one of the two groups is empty: recruit raters for both", n=n_a + n_b, label=label)
    rows, columns = _dominance(a, b), -_dominance(b, a)
    delta = round(float(rows.sum()) * n_b) / (n_a * n_b)  # a ratio of whole numbers: no trace of rounding around zero
    low, high = math.nan, math.nan
    if n_a > 1 and n_b > 1:
        low, high = _cliff_interval(rows, columns, a, b, check_confidence(confidence))
    if math.isnan(low):
        notes = (*notes, "no confidence interval: the groups do not overlap or are too small")
    return Estimate(
        value=delta,
        n=n_a + n_b,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method="" if math.isnan(low) else "Cliff's consistent variance, asymmetric",
        label=label,
        notes=notes,
        details={"n_first": n_a, "n_second": n_b},
    )


def _dominance(values: Floats, other_values: Floats) -> Floats:
    """For each value the share of others below minus the share above."""
    ordered = np.sort(other_values)
    below = np.searchsorted(ordered, values, side="left")
    above = len(other_values) - np.searchsorted(ordered, values, side="right")
    return np.asarray((below - above) / len(other_values))


def _cliff_interval(rows: Floats, columns: Floats, a: Floats, b: Floats, confidence: float) -> tuple[float, float]:
    n_a, n_b = len(rows), len(columns)
    delta = float(rows.mean())
    ordered = np.sort(b)
    ties = np.searchsorted(ordered, a, side="right") - np.searchsorted(ordered, a, side="left")
    untied = n_a * n_b - float(ties.sum())  # sum of squared signs over all pairs
    by_rows, by_columns = float(np.sum((rows - delta) ** 2)), float(np.sum((columns - delta) ** 2))
    spread = untied - n_a * n_b * delta**2
    pairs = n_a * n_b * (n_a - 1) * (n_b - 1)
    variance = (n_b**2 * by_rows + n_a**2 * by_columns - spread) / pairs
    variance = max(variance, (1 - delta**2) / (n_a * n_b - 1))
    if abs(delta) >= 1:
        return math.nan, math.nan
    z2 = float(stats.norm.isf((1 - confidence) / 2)) ** 2
    root = math.sqrt(z2 * variance * ((1 - delta**2) ** 2 + z2 * variance))
    scale = 1 - delta**2 + z2 * variance
    return max(-1.0, (delta - delta**3 - root) / scale), min(1.0, (delta - delta**3 + root) / scale)
