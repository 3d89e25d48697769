"""Shares and quantiles of answers, and how far they can be trusted, when every answer comes from a different rater.

Checked in ``tests/stats/test_preference_proportion.py`` against
``statsmodels.stats.proportion.proportion_confint(count, nobs, method="wilson" | "beta")``, for the two-sample interval
``confint_proportions_2indep(..., compare="diff", method="newcomb")``, and for quantiles
``scipy.stats.quantile_test(...).confidence_interval``.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, check_confidence, missing_note, numbers

ProportionInterval = Literal["wilson", "clopper-pearson"]
INTERVAL_NAMES: dict[ProportionInterval, str] = {"wilson": "Wilson", "clopper-pearson": "Clopper-Pearson"}
"""As reports write them."""


def _check_counts(successes: float, n: float) -> None:
    if not 0 <= successes <= n:
        raise DialometerError(f"{successes} successes of {n} answers", remedy="successes lie between 0 and n")


def wilson_interval(
    successes: float, n: float, *, confidence: float = 0.95, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson's score interval (1927): near-nominal even for few answers and shares near 0 or 1.

    Fractional counts are allowed (ties counted half). ``quantile`` replaces the normal quantile, which lets
    clustered answers use Student's t with an effective number of answers.
    """
    _check_counts(successes, n)
    if n == 0:
        return math.nan, math.nan
    low, high = wilson_bounds(np.array([successes / n]), np.array([n], dtype=np.float64), confidence, quantile)
    return float(low[0]), float(high[0])


def wilson_bounds(
    share: Floats, n: Floats, confidence: float = 0.95, quantile: float | None = None
) -> tuple[Floats, Floats]:
    """The same for many shares at once, such as one for each rater."""
    z = float(stats.norm.isf((1 - check_confidence(confidence)) / 2)) if quantile is None else quantile
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = np.where(share == 0, 0.0, np.maximum(centre - half, 0.0))
    return low, np.where(share == 1, 1.0, np.minimum(centre + half, 1.0))


def clopper_pearson_interval(successes: float, n: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval (1934) by inverting the exact binomial test: never below its confidence."""
    _check_counts(successes, n)
    if n == 0:
        return math.nan, math.nan
    tail = (1 - check_confidence(confidence)) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(special.betainccinv(successes + 1, n - successes, tail))
    return low, high


def interval_of(kind: ProportionInterval, successes: float, n: float, confidence: float) -> tuple[float, float]:
    """The interval of the declared kind."""
    if kind == "wilson":
        return wilson_interval(successes, n, confidence=confidence)
    return clopper_pearson_interval(successes, n, confidence=confidence)


def proportion(
    successes: float, n: int, *, interval: ProportionInterval = "wilson", confidence: float = 0.95, label: str = ""
) -> Estimate:
    """A share of independent answers; for raters who answer more than once see ``clustered_proportion``."""
    _check_counts(successes, n)
    if n == 0:
        return unknown("proportion", "no answers: collect at least one judgment", label=label)
    low, high = interval_of(interval, successes, n, confidence)
    return Estimate(
        value=successes / n,
        n=n,
        method="proportion",
        low=low,
        high=high,
        confidence=confidence,
        interval_method=INTERVAL_NAMES[interval],
        label=label,
        details={"successes": successes},
    )


def proportion_difference(
    successes_first: int,
    n_first: int,
    successes_second: int,
    n_second: int,
    *,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Difference of two independent shares (first minus second) with Newcombe's hybrid score interval (1998, method 10).

    The test is Pearson's chi-square with pooled variance, without continuity correction.
    """
    _check_counts(successes_first, n_first)
    _check_counts(successes_second, n_second)
    n = n_first + n_second
    method = "difference of two independent proportions, Pearson chi-square"
    if not n_first or not n_second:
        return unknown(method, "one of the two groups has no answers: collect judgments in both", n=n, label=label)
    first, second = successes_first / n_first, successes_second / n_second
    low_first, high_first = wilson_interval(successes_first, n_first, confidence=confidence)
    low_second, high_second = wilson_interval(successes_second, n_second, confidence=confidence)
    difference = first - second
    pooled = (successes_first + successes_second) / n
    variance = pooled * (1 - pooled) * (1 / n_first + 1 / n_second)
    statistic = difference**2 / variance if variance > 0 else math.nan
    notes = () if variance > 0 else ("all answers are equal: a test is not possible",)
    return Estimate(
        value=difference,
        n=n,
        method=method,
        low=difference - math.hypot(first - low_first, high_second - second),
        high=difference + math.hypot(high_first - first, second - low_second),
        confidence=confidence,
        interval_method="Newcombe hybrid score",
        statistic=statistic,
        df=(1.0,),
        p_value=float(stats.chi2.sf(statistic, 1)) if variance > 0 else math.nan,
        label=label,
        notes=notes,
        details={"first": first, "second": second, "n_first": n_first, "n_second": n_second},
    )


def quantile(values: ArrayLike, share: float = 0.5, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """A quantile (the median by default) with the distribution-free interval between two order statistics.

    Its confidence is at least the one asked for; where too few values are given for that, there is no interval.
    """
    array = numbers(values)
    is_missing = np.isnan(array)
    ordered = np.sort(array[~is_missing])
    n = len(ordered)
    method = f"sample quantile {share:g}"
    if not 0 < share < 1:
        raise DialometerError(f"quantile {share}", remedy="give a share between 0 and 1")
    if n == 0:
        return unknown(method, "no values: collect at least one", label=label)
    tail = (1 - check_confidence(confidence)) / 2
    below = int(stats.binom.ppf(tail, n, share))
    above = int(stats.binom.ppf(1 - tail, n, share))
    has_low = below >= 1 and stats.binom.cdf(below - 1, n, share) <= tail
    has_high = above < n
    notes = missing_note(int(is_missing.sum()))
    if not (has_low and has_high):
        notes = (*notes, f"{n} values are too few for an interval of this confidence")
    return Estimate(
        value=float(np.quantile(ordered, share)),
        n=n,
        method=method,
        low=float(ordered[below - 1]) if has_low and has_high else math.nan,
        high=float(ordered[above]) if has_low and has_high else math.nan,
        confidence=confidence,
        interval_method="order statistics" if has_low and has_high else "",
        label=label,
        notes=notes,
    )
