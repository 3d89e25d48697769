"""Which of two collections of dialogues is better: the mean probability over all pairs across them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.evaluator import Evaluator
from dialometer.learned.lambdas import posterior
from dialometer.model.dialogue import Dialogue
from dialometer.model.estimate import Estimate
from dialometer.stats.bootstrap import draw_counts, percentile_interval

Floats = NDArray[np.float64]
_CELLS = 4_000_000  # probabilities held at a time


def compare_collections(
    evaluator: Evaluator,
    first: Sequence[Dialogue],
    second: Sequence[Dialogue],
    *,
    seed: int = 0,
    n_resamples: int = 2000,
) -> Estimate:
    """The probability that a random dialogue of the first collection is better than one of the second.

    The interval is by resampling dialogues on both sides; it does not hold the evaluator's own errors.
    """
    scores = evaluator.score([*first, *second]).values
    return mean_probability(scores[: len(first)], scores[len(first) :], seed=seed, n_resamples=n_resamples)


def mean_probability(first: Floats, second: Floats, *, seed: int = 0, n_resamples: int = 2000) -> Estimate:
    """Mean of sigmoid(a - b) over all pairs of scores, with a percentile interval over resamples of both sides."""
    rng = np.random.default_rng(seed)
    counts_a = np.vstack([np.ones(len(first)), draw_counts(rng, len(first), n_resamples)])
    counts_b = np.vstack([np.ones(len(second)), draw_counts(rng, len(second), n_resamples)])
    totals = np.zeros(n_resamples + 1)
    step = max(1, _CELLS // len(second))
    for start in range(0, len(first), step):
        rows = slice(start, start + step)
        inner = posterior(first[rows, None], second[None, :]) @ counts_b.T
        totals += np.einsum("ra,ar->r", counts_a[:, rows], inner)
    means = totals / (len(first) * len(second))
    low, high = percentile_interval(means[1:], 0.95)
    return Estimate(
        value=float(means[0]),
        n=len(first) + len(second),
        method="mean probability over all pairs",
        low=low,
        high=high,
        interval_method="percentile bootstrap over dialogues of both sides",
        seed=seed,
        n_resamples=n_resamples,
    )
