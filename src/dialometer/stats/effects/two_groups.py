"""Two independent groups of raters: do their means or their ranks differ?

Each entry stands for one rater (see ``permutation.rater_means``); judgments of one rater are not independent entries.
Values are the first group relative to the second. A difference that is not significant is no evidence that the groups are
equal; ``equivalence.equivalence`` gives such evidence.

Checked against ``pingouin.ttest(x, y, correction=True)``, ``statsmodels.stats.weightstats.CompareMeans`` and an
enumeration of all arrangements for the exact Mann-Whitney test.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, check_confidence, two_samples

EMPTY = "one of the two groups is empty: recruit raters for both"
MOST_EXACT = 20


def _welch_parts(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Difference of means, its standard error without pooling, and Welch's degrees of freedom."""
    v_a, v_b = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    variance = v_a + v_b
    df = variance**2 / (v_a**2 / (len(a) - 1) + v_b**2 / (len(b) - 1))
    return float(a.mean() - b.mean()), math.sqrt(variance), df


def welch_t(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Difference of means by Welch's t-test (1947), which does not assume equal variances."""
    a, b, notes = two_samples(first, second)
    n = len(a) + len(b)
    method = "Welch's t-test of the difference of means"
    if not len(a) or not len(b):
        return unknown(method, EMPTY, n=n, label=label)
    if len(a) < 2 or len(b) < 2:
        return unknown(method, "a group has one rater: at least two are needed in each", n=n, label=label)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return unknown(
            method, "no variation within the groups: collect more or use a permutation test", n=n, label=label
        )
    difference, se, df = _welch_parts(a, b)
    half = float(stats.t.isf((1 - check_confidence(confidence)) / 2, df)) * se
    return Estimate(
        value=difference,
        n=n,
        method=method,
        low=difference - half,
        high=difference + half,
        confidence=confidence,
        interval_method="Student's t with Welch's degrees of freedom",
        statistic=difference / se,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(difference) / se, df)),
        label=label,
        notes=notes,
        details={
            "mean_first": float(a.mean()),
            "mean_second": float(b.mean()),
            "n_first": len(a),
            "n_second": len(b),
            "standard_error": se,
        },
    )


def mann_whitney(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Probability that a rater of the first group lies above one of the second, ties half, with the Mann-Whitney test.

    Exact for small groups without ties, otherwise the normal approximation with tie and continuity corrections. The
    interval is DeLong's (1988) on the logit scale; it needs two raters in each group.
    """
    a, b, notes = two_samples(first, second)
    n = len(a) + len(b)
    method = "Mann-Whitney U test"
    if not len(a) or not len(b):
        return unknown(method, EMPTY, n=n, label=label)
    pooled = np.concatenate([a, b])
    if np.ptp(pooled) == 0:
        return unknown(method, "all values are equal: ranks cannot distinguish the groups", n=n, label=label)
    has_ties = len(np.unique(pooled)) < n
    is_exact = not has_ties and max(len(a), len(b)) <= MOST_EXACT
    kind = "exact" if is_exact else "asymptotic"
    tested = stats.mannwhitneyu(a, b, alternative="two-sided", method=kind)
    probability = float(tested.statistic) / (len(a) * len(b))
    low, high = _delong(a, b, probability, check_confidence(confidence))
    return Estimate(
        value=probability,
        n=n,
        method=f"{method}, {'exact' if is_exact else 'normal approximation with tie and continuity corrections'}",
        low=low,
        high=high,
        confidence=confidence,
        interval_method="" if math.isnan(low) else "DeLong, logit scale",
        statistic=float(tested.statistic),
        p_value=float(tested.pvalue),
        label=label,
        notes=notes,
        details={"n_first": len(a), "n_second": len(b), "effect": "probability of superiority"},
    )


def _delong(a: Floats, b: Floats, probability: float, confidence: float) -> tuple[float, float]:
    if len(a) < 2 or len(b) < 2:
        return math.nan, math.nan
    variance = float(_placements(a, b).var(ddof=1)) / len(a) + float(_placements(b, a).var(ddof=1)) / len(b)
    if variance <= 0 or not 0 < probability < 1:
        return math.nan, math.nan
    half = float(stats.norm.isf((1 - confidence) / 2)) * math.sqrt(variance) / (probability * (1 - probability))
    logit = math.log(probability / (1 - probability))
    return 1 / (1 + math.exp(half - logit)), 1 / (1 + math.exp(-half - logit))


def _placements(values: Floats, other_values: Floats) -> Floats:
    """For each value the share of others below it, ties half."""
    ordered = np.sort(other_values)
    below = np.searchsorted(ordered, values, side="left")
    upto = np.searchsorted(ordered, values, side="right")
    return np.asarray((below + upto) / (2 * len(other_values)))
