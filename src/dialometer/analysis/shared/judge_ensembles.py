"""Several judges as one by Dawid and Skene's model, with people's labels as anchors; cross-fitted, as it learns from these labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialometer.stats.agreement.label_models import code_labels, dawid_skene
from dialometer.stats.judged.folds import cross_fitted
from dialometer.stats.observations import Floats, Ints

SMOOTHING, MOST_ROUNDS = 0.01, 200


def weighed_labels(own: Floats, people: Floats, n_labels: int, *, items: Sequence[str], seed: int) -> Floats:
    """How likely each label is for each thing (things by labels), from the labels of judges (things by judges).

    ``people`` are people's labels, nan where there is none. They anchor the judges' tables of confusion, but never on the thing
    itself: the things are dealt into folds by their items, and each is weighed without the labels of its fold.
    """
    row, judge = np.nonzero(~np.isnan(own))
    labels = code_labels(
        [str(j) for j in judge], [str(i) for i in row], [str(int(k)) for k in own[row, judge]],
        classes=[str(k) for k in range(n_labels)],
    )  # fmt: skip
    place = np.array([int(item) for item in labels.items])

    def predict(training: Ints) -> Floats:
        known = {str(i): str(int(people[i])) for i in training}
        weighed = dawid_skene(labels, known=known, smoothing=SMOOTHING, max_iterations=MOST_ROUNDS)
        likely = np.full((len(own), n_labels), np.nan)
        likely[place] = weighed.posterior
        return likely

    return cross_fitted(~np.isnan(people), predict, groups=items, seed=seed)
