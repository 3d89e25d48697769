"""Does a rater's level change over a session? One straight line per rater, drawn together where raters differ little.

Each rater's slope is that of least squares with its own standard error. Slopes vary between raters by chance and in truth;
the true part is estimated by the method of moments (DerSimonian & Laird 1986), and each slope is pulled towards the mean by
the share that chance has in it (an empirical Bayes estimate, as the random slopes of a mixed model are). Single raters are
tested with their own slope, corrected for their number.

Checked in tests/stats/test_effects_drift.py against ``scipy.stats.linregress`` for each rater, against the formulas of
random-effects meta-analysis on a small example by hand, and by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.stats.effects.multiplicity import Correction, adjust
from dialometer.stats.observations import Floats, Ints, codes, numbers, same_length

FEWEST_JUDGMENTS = 5


@dataclass(frozen=True)
class RaterSlopes:
    """Slopes of raters with enough judgments, in the unit of the values per step of time."""

    raters: tuple[object, ...]
    slopes: Floats
    errors: Floats
    p_values: Floats
    """Of each rater alone, not corrected."""
    p_adjusted: Floats
    shrunken: Floats
    shrunken_errors: Floats
    mean: float
    sd: float
    """Standard deviation of the true slopes between raters; 0 where all differences may be chance."""
    p_equal: float
    """Cochran's test that all raters have the same slope."""
    df: Floats
    """Degrees of freedom of each rater's line: judgments minus two."""


def rater_slopes(
    values: ArrayLike, times: ArrayLike, raters: ArrayLike, *, correction: Correction = "holm"
) -> RaterSlopes | None:
    """The line of every rater over time; None where fewer than two raters have five judgments at different times."""
    y, x = numbers(values), numbers(times)
    code, names = codes(raters)
    same_length(values=y, times=x, raters=code)
    given = ~(np.isnan(y) | np.isnan(x))
    slopes, errors, free = _lines(y[given], x[given], code[given], len(names))
    known = errors[np.isfinite(errors)]
    usable = np.flatnonzero(errors > 1e-9 * known.max(initial=0))  # a perfect line has no error but rounding
    if len(usable) < 2:
        return None
    b, se, df = slopes[usable], errors[usable], free[usable]
    p = 2 * stats.t.sf(np.abs(b / se), df)
    mean, variance, q = _between(b, se)
    kept = variance / (variance + se**2)
    return RaterSlopes(
        raters=tuple(names[place] for place in usable.tolist()),
        slopes=b,
        errors=se,
        p_values=p,
        p_adjusted=np.asarray(adjust(p.tolist(), correction), dtype=np.float64),
        shrunken=mean + kept * (b - mean),
        shrunken_errors=np.sqrt(kept) * se,
        mean=mean,
        sd=math.sqrt(variance),
        p_equal=float(stats.chi2.sf(q, len(b) - 1)),
        df=df,
    )


def _lines(y: Floats, x: Floats, code: Ints, n: int) -> tuple[Floats, Floats, Floats]:
    """Least squares for every rater at once: slopes, standard errors and degrees of freedom."""
    count = np.bincount(code, minlength=n).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap_x = x - (np.bincount(code, weights=x, minlength=n) / count)[code]
        gap_y = y - (np.bincount(code, weights=y, minlength=n) / count)[code]
        spread = np.bincount(code, weights=gap_x**2, minlength=n)
        slope = np.bincount(code, weights=gap_x * gap_y, minlength=n) / spread
        rest = np.bincount(code, weights=(gap_y - slope[code] * gap_x) ** 2, minlength=n)
        error = np.sqrt(rest / (count - 2) / spread)
    is_usable = (count >= FEWEST_JUDGMENTS) & (spread > 0)
    return slope, np.where(is_usable, error, np.nan), count - 2


def _between(slopes: Floats, errors: Floats) -> tuple[float, float, float]:
    """Mean slope, variance of true slopes (DerSimonian & Laird) and Cochran's Q."""
    weight = 1 / errors**2
    common = float(weight @ slopes / weight.sum())
    q = float(weight @ (slopes - common) ** 2)
    scale = float(weight.sum() - (weight @ weight) / weight.sum())
    variance = max(0.0, (q - (len(slopes) - 1)) / scale)
    weight = 1 / (errors**2 + variance)
    return float(weight @ slopes / weight.sum()), variance, q
