"""Equivalence and non-inferiority: is a difference smaller than a margin that was named beforehand?

A difference that is not significant is no evidence that two systems are equal: with few raters everything is "not
significant". Evidence is a confidence interval that lies within the margin, which is what two one-sided tests show
(Schuirmann 1987); for non-inferiority one of the two is enough. Both are made from an estimate that there is already, with
its standard error and degrees of freedom, so that they hold for other raters and items where that estimate does.

Checked in tests/stats/test_equivalence.py against ``statsmodels.stats.weightstats.ttost_ind`` (unequal variances) and
``ttost_paired``, and by simulation: true differences at the margin are called equivalent in at most 5 % of studies.
"""

from __future__ import annotations

import math

from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.proportion import wilson_interval
from dialometer.stats.observations import check_confidence


def equivalence(difference: Estimate, low: float, high: float, *, confidence: float = 0.95) -> Estimate:
    """Two one-sided t-tests that a difference lies between ``low`` and ``high`` (Schuirmann 1987).

    ``difference`` is an estimate with a standard error in its details and Student's degrees of freedom, such as those of
    ``welch_t``, ``clustered_mean`` and ``two_way_share``; shares with an effective number of answers are tested by their
    score, as they are against one half. A small p-value supports equivalence. The interval has confidence 1 - 2 alpha (90%
    for 95%), so that equivalence holds at alpha exactly when it lies within the bounds. An infinite bound leaves one test:
    ``low`` alone is non-inferiority.
    """
    if not low < high:
        raise DialometerError(f"equivalence bounds {low} and {high}", remedy="the lower bound comes first")
    alpha = 1 - check_confidence(confidence)
    is_two_sided = math.isfinite(low) and math.isfinite(high)
    what = f"equivalence within {low:g} to {high:g}, two one-sided tests"
    if not is_two_sided:
        what = f"one-sided test of more than {low:g}" if math.isfinite(low) else f"one-sided test of less than {high:g}"
    method = f"{what}; {difference.method}"
    if not difference.is_known:
        return unknown(method, (difference.notes or ("no data",))[-1], n=difference.n, label=difference.label)
    tests = _sides(difference, low, high, alpha)
    if tests is None:
        why = (difference.notes or ("no standard error: no test of a margin",))[-1]
        return unknown(method, why, n=difference.n, label=difference.label)
    (t_low, p_low), (t_high, p_high), (end_low, end_high), how = tests
    p_value = max(p_low, p_high)
    return Estimate(
        value=difference.value,
        n=difference.n,
        method=method,
        low=end_low,
        high=end_high,
        confidence=1 - 2 * alpha,
        interval_method=f"{how}, 1 - 2 alpha",
        statistic=t_low if p_low > p_high or not math.isfinite(high) else t_high,
        df=difference.df,
        p_value=p_value,
        label=difference.label,
        notes=difference.notes,
        details={
            **difference.details,
            "p_above_low": p_low,
            "p_below_high": p_high,
            "is_equivalent": p_value < alpha,
            "lower_bound": low,
            "upper_bound": high,
        },
    )


_Sides = tuple[tuple[float, float], tuple[float, float], tuple[float, float], str]


def _sides(difference: Estimate, low: float, high: float, alpha: float) -> _Sides | None:
    """Statistic and p-value against each bound, and the interval; None where the estimate carries no error to test with."""
    details, value = difference.details, difference.value
    n_effective = float(details.get("n_effective", math.nan))
    error = float(details.get("standard_error", math.nan))
    if difference.df and n_effective > 0:
        df = max(difference.df[0], 0.5)
        ends = wilson_interval(value * n_effective, n_effective, quantile=float(stats.t.isf(alpha, df)))
        return _score(value, low, n_effective, df, 1), _score(value, high, n_effective, df, -1), ends, "Wilson"
    if difference.df and error > 0:
        df = difference.df[0]
        half = float(stats.t.isf(alpha, df)) * error
        t_low, t_high = (value - low) / error, (value - high) / error
        below, above = (t_low, float(stats.t.sf(t_low, df))), (t_high, float(stats.t.cdf(t_high, df)))
        return below, above, (value - half, value + half), "Student's t"
    is_exact = difference.interval_method.startswith("Clopper-Pearson over")
    if value in (0.0, 1.0) and is_exact and "n_raters" in details:  # all answers equal: each rater or item counts once
        n = min(int(details["n_raters"]), int(details.get("n_items") or details["n_raters"]))
        k = round(value * n)
        ends = (float(stats.beta.ppf(alpha, k, 1)) if k else 0.0, 1.0 if k else float(stats.beta.ppf(1 - alpha, 1, n)))
        p_low = 0.0 if low <= 0 else float(stats.binom.sf(k - 1, n, low))
        p_high = 0.0 if high >= 1 else float(stats.binom.cdf(k, n, high))
        return (math.nan, p_low), (math.nan, p_high), ends, "Clopper-Pearson"
    return None


def _score(share: float, bound: float, n: float, df: float, side: int) -> tuple[float, float]:
    """Score test that a share lies above (``side`` 1) or below (-1) a bound; bounds outside 0 to 1 are always kept."""
    if not 0 < bound < 1:
        return side * math.inf, 0.0
    t = (share - bound) / math.sqrt(bound * (1 - bound) / n)
    return t, float(stats.t.sf(side * t, df))
