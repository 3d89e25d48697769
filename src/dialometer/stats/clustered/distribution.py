"""The shape of answers rather than their mean: shares of categories, quantiles and their uncertainty.

Checked against ``statsmodels.stats.proportion.proportion_confint`` and ``scipy.stats.quantile_test(...).confidence_interval``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.observations import check_confidence, missing_note, numbers, same_length

__all__ = ["category_shares", "quantile"]


def category_shares(
    answers: ArrayLike,
    categories: Sequence[Any],
    raters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
) -> dict[Any, Estimate]:
    """Share of each category a scale offers, chosen or not; an answer outside them is refused.

    With ``raters`` the intervals respect that one rater gives several answers, otherwise they are Wilson's.
    """
    given = np.asarray(answers, dtype=object)
    is_missing = np.array([answer is None or (isinstance(answer, float) and math.isnan(answer)) for answer in given])
    is_missing = is_missing.astype(bool)
    known = given[~is_missing].tolist()
    strange = sorted({str(answer) for answer in known if answer not in categories})
    if strange:
        raise DialometerError(f"answers outside the scale: {', '.join(strange[:5])}", remedy="name all its categories")
    ids = None if raters is None else np.asarray(raters)
    if ids is not None:
        same_length(answers=given, raters=ids)
        ids = ids[~is_missing]
    result = {}
    for category in categories:
        chosen = np.array([answer == category for answer in known], dtype=np.float64)
        if ids is None:
            share = proportion(float(chosen.sum()), len(chosen), confidence=confidence, label=str(category))
        else:
            share = clustered_proportion(chosen, ids, confidence=confidence, label=str(category))
        result[category] = share
    return result


def quantile(values: ArrayLike, share: float = 0.5, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """A quantile (the median if left out) with the distribution-free interval between two order statistics.

    Its confidence is at least the one asked for; where too few values are given for that, there is no interval.
    """
    given = numbers(values)
    is_missing = np.isnan(given)
    ordered = np.sort(given[~is_missing])
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
