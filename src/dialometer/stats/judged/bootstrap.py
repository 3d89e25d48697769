"""Bootstrap of a mean corrected by a judge, fast enough for a million scores: no resample is ever written out.

People's judgments are resampled with their scores, the judge's other scores by themselves, and the weight is tuned anew in every
resample (``ppi_py.ppboot`` tunes it once before). A resample is a vector of counts. Where the judge has few different scores (votes,
Likert points), the counts of these are drawn at once, which is exactly the same. Sums of many different scores are drawn from their
limit, a normal distribution with the scores' mean and variance and its first correction for skewness (Cornish and Fisher); for
10,000 scores or more it differs from resampling by less than resampling differs from itself.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.judged.means import METHOD
from dialometer.stats.observations import Floats, check_confidence, numbers, same_length

FEWEST_FOR_LIMIT = 10_000
MOST_VALUES = 2_000
_CELLS_AT_ONCE = 4_000_000


def judged_mean_bootstrap(
    values: ArrayLike,
    own_scores: ArrayLike,
    other_scores: ArrayLike,
    *,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """The mean of human judgments corrected by a judge, with a percentile interval; arguments as in ``judged_mean``.

    The judge's weight is tuned anew in every resample. A million scores of the judge take about 0.1 s.
    """
    level = check_confidence(confidence)
    y, own, other = numbers(values), numbers(own_scores), numbers(other_scores)
    n, n_other = same_length(values=y, own_scores=own), len(other)
    if n < 3 or n_other < 2:
        raise NotEnoughData("fewer than 3 judged or 2 other things", remedy="collect more judgments")
    # Where the mean lies says nothing, and the squares of scores far from zero would drown their spread.
    centre = float(other.mean())
    own, other = own - centre, other - centre
    rng = np.random.default_rng(seed)
    first, second = _moments(other, n_resamples, rng)
    resampled = np.empty(n_resamples)
    step = max(1, _CELLS_AT_ONCE // n)
    parts = np.stack([np.ones(n), y, own, y * own, own * own], axis=1)
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        drawn = rng.integers(0, n, size=(size, n))
        counts = np.bincount((drawn + n * np.arange(size)[:, None]).ravel(), minlength=size * n).reshape(size, n)
        place = slice(start, start + size)
        resampled[place] = _estimates(
            np.asarray(counts @ parts, dtype=np.float64), n, first[place], second[place], n_other
        )
    value = _estimates(parts.sum(0)[None], n, np.array([other.mean()]), np.array([np.mean(other**2)]), n_other)[0]
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        float(value), n, METHOD, low=float(low), high=float(high), confidence=level, interval_method="percentile bootstrap",
        seed=seed, n_resamples=n_resamples,
    )  # fmt: skip


def _estimates(sums: Floats, n: int, other: Floats, other_square: Floats, n_other: int) -> Floats:
    """The estimate of each resample from its sums of y, f, y f and f f, with the weight tuned in it."""
    y, f, yf, ff = (sums[:, k] / n for k in range(1, 5))
    whole = (n * f + n_other * other) / (n + n_other)
    spread = ((n * ff + n_other * other_square) / (n + n_other) - whole**2) * (n + n_other) / (n + n_other - 1)
    weight = np.divide(yf - y * f, spread * (1 + n / n_other), out=np.zeros_like(y), where=spread > 0)
    return np.asarray(y + np.clip(weight, 0, 1) * (other - f))


def _moments(scores: Floats, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Mean and mean square of the scores in each resample."""
    n = len(scores)
    levels, counts = np.unique(scores[:FEWEST_FOR_LIMIT], return_counts=True)
    if len(levels) <= MOST_VALUES:
        levels, counts = np.unique(scores, return_counts=True)
    if len(levels) <= MOST_VALUES:
        drawn = rng.multinomial(n, counts / n, size=n_resamples)
        return drawn @ levels / n, drawn @ levels**2 / n
    if n < FEWEST_FOR_LIMIT:
        chosen = (scores[rng.integers(0, n, size=n)] for _ in range(n_resamples))
        pairs = np.array([(part.mean(), np.mean(part**2)) for part in chosen])
        return pairs[:, 0], pairs[:, 1]
    both = np.stack([scores, scores**2])
    centre = both.mean(axis=1)
    root = np.linalg.cholesky(np.cov(both, bias=True))
    z = rng.standard_normal((n_resamples, 2))
    skew = float(np.mean(((scores - centre[0]) / root[0, 0]) ** 3)) / math.sqrt(n)
    z[:, 0] += skew * (z[:, 0] ** 2 - 1) / 6
    drawn = centre + z @ root.T / math.sqrt(n)
    return drawn[:, 0], drawn[:, 1]
