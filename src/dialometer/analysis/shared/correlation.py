"""Spearman's correlation where observations come in clusters: all those of a question, or of a rater, are drawn together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import estimate_from
from dialometer.stats.observations import Floats, Ints, codes

METHOD = "Spearman's rho"
MOST_RANKED = 50_000_000
"""Rows ranked over all resamples: of very many observations fewer resamples are drawn."""


def clustered_spearman(
    first: ArrayLike, second: ArrayLike, clusters: ArrayLike, options: Options, *, resampled: str, label: str = ""
) -> Estimate:
    """Rho with a percentile bootstrap that draws whole clusters and ranks each resample anew; ``nan`` pairs are left out.

    The value is ``scipy.stats.spearmanr(first, second).statistic``, a replicate the same on the rows drawn. Instead of
    sorting, ranks of a resample come from counting how often each distinct value was drawn. There is no p-value: whether
    the interval holds zero says the same, and respects the clusters.
    """
    xs, ys = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    given = ~(np.isnan(xs) | np.isnan(ys))
    xs, ys = xs[given], ys[given]
    n = len(xs)
    if n < 3:
        return unknown(METHOD, f"{n_of(n, 'complete pair')}: at least three are needed", n=n, label=label)
    if np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return unknown(METHOD, "one side does not vary: there is nothing to correlate with", n=n, label=label)
    x, y = (np.unique(side, return_inverse=True)[1].ravel() for side in (xs, ys))
    cluster, names = codes(np.asarray(clusters)[given])
    value = _rho(x, y, np.ones(n))
    n_clusters = len(names)
    if n_clusters < 3:
        why = f"no confidence interval: {n_clusters} of {resampled} are too few to draw from"
        return Estimate(value, n, METHOD, confidence=options.confidence, label=label, notes=(why,))
    rng = np.random.default_rng(options.seed)
    n_resamples = int(np.clip(MOST_RANKED // n, min(200, options.n_resamples), options.n_resamples))
    replicates = np.empty(n_resamples)
    for index in range(n_resamples):
        times = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters).astype(np.float64)
        replicates[index] = _rho(x, y, times[cluster])
    return estimate_from(
        value,
        replicates,
        n=n,
        method=METHOD,
        resampled=resampled,
        seed=options.seed,
        confidence=options.confidence,
        label=label,
        details={"n_clusters": n_clusters},
    )


def _rho(x: Ints, y: Ints, times: Floats) -> float:
    """Pearson's correlation of the mid-ranks that the values have when row i occurs ``times[i]`` times.

    Only the products need a pass over the rows; spreads come from the distinct values. Plain sums, since waking the
    linear-algebra library's threads for each resample costs far more than it saves.
    """
    ranks_x, spread_x = _centred_ranks(x, times)
    ranks_y, spread_y = _centred_ranks(y, times)
    below = math.sqrt(spread_x * spread_y)
    return float(np.einsum("i,i,i->", times, ranks_x[x], ranks_y[y])) / below if below > 0 else math.nan


def _centred_ranks(code: Ints, times: Floats) -> tuple[Floats, float]:
    """The mid-rank of each distinct value less the mean of all, and their weighted sum of squares."""
    size = np.bincount(code, weights=times)
    middle: Floats = np.cumsum(size) - size / 2 - size.sum() / 2
    return middle, float(np.sum(size * middle**2))
