"""Listwise boosted trees for ranking (LambdaMART: Burges, "From RankNet to LambdaRank to LambdaMART", 2010).

Small trees, one after the other, move the candidates' scores so that right answers rise, weighted by what each swap would change
in the reciprocal rank. The first score is that of the linear fusion, so no tree at all is the linear fusion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeRegressor

Floats = npt.NDArray[np.float64]
N_TREES = (0, 10, 30)
"""How many; chosen on dialogues that the trees were not grown on."""
RATE = 0.1
N_LEAVES = 6
LEAST_IN_LEAF = 40
N_CANDIDATES = 30
"""The first by the linear fusion; the others stay where they are, below."""


def _push(scores: Floats, right: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """How far each candidate should move, and how certain that is (gradient and second derivative)."""
    push, weight = np.zeros_like(scores), np.zeros_like(scores)
    place = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
    for row in np.flatnonzero(right.any(axis=1)):
        good, bad = np.flatnonzero(right[row]), np.flatnonzero(~right[row])
        gain = np.abs(1 / place[row, good][:, None] - 1 / place[row, bad][None, :])
        chance = 1 / (1 + np.exp(np.clip(scores[row, good][:, None] - scores[row, bad][None, :], -30, 30)))
        push[row, good] += (gain * chance).sum(axis=1)
        push[row, bad] -= (gain * chance).sum(axis=0)
        slope = gain * chance * (1 - chance)
        weight[row, good] += slope.sum(axis=1)
        weight[row, bad] += slope.sum(axis=0)
    return push, weight


class BoostedLists:
    """Grown on lists of candidates (questions by candidates by features)."""

    def __init__(self, features: Floats, first: Floats, right: npt.NDArray[np.bool_], n_trees: int) -> None:
        self.trees: list[tuple[DecisionTreeRegressor, Floats]] = []
        scores, rows = first.astype(np.float64), features.reshape(-1, features.shape[-1])
        for number in range(n_trees):
            push, weight = (part.ravel() for part in _push(scores, right))
            tree = DecisionTreeRegressor(max_leaf_nodes=N_LEAVES, min_samples_leaf=LEAST_IN_LEAF, random_state=number)
            leaves = tree.fit(rows, push).apply(rows)
            size = tree.tree_.node_count
            step = RATE * np.bincount(leaves, push, size) / (np.bincount(leaves, weight, size) + 1.0)
            self.trees.append((tree, step))
            scores += step[leaves].reshape(scores.shape)

    def moves(self, features: Floats, n_trees: int) -> Floats:
        """What the first trees add to the first scores."""
        flat = features.reshape(-1, features.shape[-1])
        total = sum((step[tree.apply(flat)] for tree, step in self.trees[:n_trees]), np.zeros(len(flat)))
        return np.asarray(total).reshape(features.shape[:-1])


def best_n_trees(features: Floats, first: Floats, right: npt.NDArray[np.bool_], groups: Sequence[str]) -> int:
    """The number that ranks dialogues best which the trees were not grown on; three parts of the dialogues take turns."""
    of_row, names = np.array(groups), sorted(set(groups))
    totals = np.zeros(len(N_TREES))
    for start in range(3):
        is_out = np.isin(of_row, names[start::3])
        grown = BoostedLists(features[~is_out], first[~is_out], right[~is_out], max(N_TREES))
        for number, n_trees in enumerate(N_TREES):
            scores = first[is_out] + grown.moves(features[is_out], n_trees)
            best = np.where(right[is_out], scores, -np.inf).max(axis=1, keepdims=True)
            place = (~right[is_out] & (scores >= best)).sum(axis=1) + 1
            totals[number] += (1 / place)[right[is_out].any(axis=1)].sum()
    return N_TREES[int(np.argmax(totals))]
