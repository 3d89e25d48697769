"""Stage 2: ratings smoothed by their nearest neighbours in the feature space (Liang et al. 2020, section 5.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.neighbours import Report, nearest

Floats = NDArray[np.float64]
DEFAULT_K = 50


def knn_smooth(
    features: NDArray[np.floating],
    ratings: Floats,
    k: int = DEFAULT_K,
    *,
    queries: NDArray[np.floating] | None = None,
    is_self_included: bool = False,
    report: Report | None = None,
) -> Floats:
    """The mean rating of each dialogue's ``k`` nearest others.

    The paper does not say whether a dialogue is its own neighbour; here it is not, because its own noisy rating is what is
    to be smoothed (``is_self_included`` brings the other reading). With ``queries``, other dialogues are rated instead.
    """
    numbers, _ = nearest(features, k, queries=queries, is_self_included=is_self_included, report=report)
    return np.asarray(np.asarray(ratings, dtype=np.float64)[numbers].mean(axis=1))
