"""Stage 2: ratings smoothed by their nearest neighbours in the feature space (Liang et al. 2020, section 5.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.neighbours import distance_blocks

Floats = NDArray[np.float64]
DEFAULT_K = 50


def knn_smooth(
    features: NDArray[np.floating],
    ratings: Floats,
    k: int = DEFAULT_K,
    *,
    queries: NDArray[np.floating] | None = None,
    is_self_included: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> Floats:
    """The mean rating of each dialogue's ``k`` nearest others.

    The paper does not say whether a dialogue is its own neighbour; here it is not, because its own noisy rating is what is
    to be smoothed (``is_self_included`` brings the other reading). With ``queries``, other dialogues are rated instead.
    """
    ratings = np.asarray(ratings, dtype=np.float64)
    is_own = queries is None and not is_self_included
    n_needed = k + 1 if is_own else k
    if len(ratings) < n_needed:
        raise NotEnoughData(
            f"{len(ratings)} rated dialogues are too few for {k} neighbours", remedy="use a smaller K or more dialogues"
        )
    rows = features if queries is None else queries
    smoothed = np.empty(len(rows))
    for start, block in distance_blocks(rows, features):
        if is_own:
            block[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        nearest = np.argpartition(block, k - 1, axis=1)[:, :k]
        smoothed[start : start + len(block)] = ratings[nearest].mean(axis=1)
        if report is not None:
            report(start + len(block), len(rows))
    return smoothed
