"""Spearman's correlation where observations come in clusters: all those of a question, or of a rater, are drawn together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import estimate_from
from dialometer.stats.observations import Floats, codes

METHOD = "Spearman's rho"
MOST_RANKED = 50_000_000
"""Rows ranked over all resamples: of very many observations fewer resamples are drawn."""
_AT_ONCE = 20_000  # rows times resamples ranked together


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
    x, y = (_Ranked(side) for side in (xs, ys))
    cluster, names = codes(np.asarray(clusters)[given])
    value = float(_rho(x, y, np.ones((1, n)))[0])
    n_clusters = len(names)
    if n_clusters < 3:
        why = f"no confidence interval: {n_clusters} of {resampled} are too few to draw from"
        return Estimate(value, n, METHOD, confidence=options.confidence, label=label, notes=(why,))
    rng = np.random.default_rng(options.seed)
    n_resamples = int(np.clip(MOST_RANKED // n, min(200, options.n_resamples), options.n_resamples))
    size = max(1, _AT_ONCE // n)
    replicates = np.concatenate(
        [
            _rho(x, y, _times(min(size, n_resamples - begin), n_clusters, rng)[:, cluster])
            for begin in range(0, n_resamples, size)
        ]
    )
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


class _Ranked:
    """Which of the distinct values each row has."""

    def __init__(self, values: Floats) -> None:
        distinct, code = np.unique(values, return_inverse=True)
        self.n_values, self.code = len(distinct), code.ravel()

    def centred(self, times: Floats) -> tuple[Floats, Floats]:
        """For each resample the mid-ranks of the distinct values less the mean of all, and their weighted sum of squares."""
        shape = (len(times), self.n_values)
        place = self.code + self.n_values * np.arange(len(times))[:, None]
        size = np.bincount(place.ravel(), weights=times.ravel(), minlength=math.prod(shape)).reshape(shape)
        middle = np.cumsum(size, axis=1) - size / 2 - size.sum(axis=1, keepdims=True) / 2
        return middle, np.einsum("bv,bv,bv->b", size, middle, middle)


def _times(n_resamples: int, n_clusters: int, rng: np.random.Generator) -> Floats:
    """How often each cluster was drawn, resamples by clusters."""
    drawn = rng.integers(0, n_clusters, (n_resamples, n_clusters)) + n_clusters * np.arange(n_resamples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n_resamples * n_clusters)
    return counts.reshape(n_resamples, n_clusters).astype(np.float64)


def _rho(x: _Ranked, y: _Ranked, times: Floats) -> Floats:
    """Pearson's correlation of the mid-ranks that the values have when row i occurs ``times[b, i]`` times, for each b.

    Only the products need a pass over the rows; spreads come from the distinct values. Plain sums, since waking the
    linear-algebra library's threads for each batch costs far more than it saves.
    """
    ranks_x, spread_x = x.centred(times)
    ranks_y, spread_y = y.centred(times)
    below = np.sqrt(spread_x * spread_y)
    products = np.einsum("bi,bi,bi->b", times, ranks_x[:, x.code], ranks_y[:, y.code])
    return np.asarray(np.divide(products, below, out=np.full(len(times), math.nan), where=below > 0))
