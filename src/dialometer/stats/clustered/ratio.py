"""A ratio of sums, such as errors per 100 words, with an interval over raters and items at once.

Each judgment counts as much as its denominator: long texts weigh more than short ones. The ratio solves ``sum(y - r x) = 0``, so the
variance of :mod:`dialometer.stats.clustered.two_way` applies; leaving out a cluster by one Newton step is exact for it. The
interval is made on the logarithm, which keeps it above zero.

Checked in tests/stats/test_ratio.py against the ratio computed anew without each cluster (the delete-one jackknife, Efron and Stein
1981), and by hand: 3 errors in 60 words and 1 in 40 are 4 in 100, not the mean of 5 and 2.5.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.two_way import FEWEST_ITEMS, ONE_ITEM, two_way_variance
from dialometer.stats.clustered.two_way_contrasts import ONE_RATER
from dialometer.stats.observations import check_confidence, numbers, same_length

NOTHING = "nothing was counted, so there is no confidence interval"
WIDEST = 100.0
"""A factor: an interval that goes so far up and down says nothing, and its ends would have more digits than marks were counted."""
TOO_WIDE = f"too little was counted for a confidence interval: it would end above {WIDEST:g} times the value"


def two_way_ratio(
    counted: ArrayLike,
    size: ArrayLike,
    raters: ArrayLike,
    items: ArrayLike | None,
    *,
    per: float = 1.0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """``per`` times the sum of ``counted`` over the sum of ``size``; ``items=None`` takes the items as fixed."""
    y, x = numbers(counted), numbers(size)
    same_length(counted=y, size=x, raters=np.asarray(raters))
    if np.any(x < 0) or np.any(y < 0):
        raise DialometerError("a count or a size is below zero", remedy="give counts and sizes from 0 upwards")
    used = ~(np.isnan(y) | np.isnan(x)) & (x > 0)
    y, x, rater = y[used], x[used], np.asarray(raters)[used]
    item = None if items is None else np.asarray(items)[used]
    method = (
        "ratio of sums, two-way jackknife over raters and items"
        if items is not None
        else "ratio of sums, jackknife over raters"
    )
    if not len(y):
        return unknown(method, "nothing to count in: collect at least one judgment", label=label)
    ratio = float(y.sum() / x.sum())
    variance = two_way_variance((y - ratio * x)[:, None], np.ones((len(y), 1)), x, rater, item)
    details = {"n_raters": variance.n_raters, "n_items": variance.n_items, "size": float(x.sum())}
    plain = Estimate(per * ratio, len(y), method, confidence=confidence, label=label, details=details)
    if variance.n_raters < 2:
        return plain.with_note(ONE_RATER)
    if item is not None and variance.n_items < FEWEST_ITEMS:
        return plain.with_note(ONE_ITEM)
    if ratio == 0:
        return plain.with_note(NOTHING)
    error, df = variance.contrast([1.0])
    spread = float(stats.t.isf((1 - check_confidence(confidence)) / 2, max(df, 0.5))) * error / ratio
    if spread > math.log(WIDEST):
        return plain.with_note(TOO_WIDE)
    return Estimate(
        per * ratio,
        len(y),
        method,
        low=per * ratio * math.exp(-spread),
        high=per * ratio * math.exp(spread),
        confidence=confidence,
        interval_method="Student's t on the logarithm",
        df=(df,),
        label=label,
        details={**details, "standard_error": per * error},
    )
