"""Scores of a judge that learned from the same ratings: each thing is scored by a model that did not see its ratings.

A model that has seen a rating predicts it too well. What people say beyond the model then looks smaller than it is on new things,
and an estimate corrected by such a judge has an interval that is far too narrow. Cross-prediction (Zrnic and Candès 2024, PNAS 121,
e2322083121) deals the rated things into folds: each is scored by the model trained without its fold, and what nobody rated by the
mean of all these models. :func:`dialometer.stats.judged.means.corrected` takes such scores as it takes those of any judge, and its
variance is that of the paper, the variance of ratings minus scores on rated things and of scores on the others: with the weight 1
and independent ratings it is that of ``ppi_py.crossppi_mean_ci`` (``tests/stats/test_judged_folds.py``). The judge's weight is tuned
as for other judges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import NotEnoughData
from dialometer.stats.observations import Floats, Ints

N_FOLDS = 5


def cross_fitted(
    is_rated: ArrayLike,
    predict: Callable[[Ints], Floats],
    *,
    groups: ArrayLike | None = None,
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> Floats:
    """A score (or a row of them) for every thing. ``predict`` trains on the rated things of these numbers and predicts all things.

    Things of one group (such as the systems' responses of one item) are in the same fold, so that no model has seen any of them.
    """
    rated = np.flatnonzero(np.asarray(is_rated, dtype=bool))
    group = np.arange(len(rated)) if groups is None else np.unique(np.asarray(groups)[rated], return_inverse=True)[1]
    n_groups = int(group.max(initial=-1)) + 1
    if n_folds < 2 or n_groups < n_folds:
        raise NotEnoughData(
            f"{n_groups} rated items cannot be divided into {n_folds} folds",
            remedy="collect ratings of more items, or use fewer folds (at least 2)",
        )
    fold = (np.random.default_rng(seed).permutation(n_groups) % n_folds)[group]
    predictions = [np.asarray(predict(rated[fold != number]), dtype=np.float64) for number in range(n_folds)]
    scores: Floats = np.mean(predictions, axis=0)
    for number, predicted in enumerate(predictions):
        scores[rated[fold == number]] = predicted[rated[fold == number]]
    return scores
