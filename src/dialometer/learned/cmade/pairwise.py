"""The gradient of the all-pairs RankNet loss in one weight per dialogue (Liang et al. 2020, Theorem 2), without all pairs.

For a pair in which dialogue i is rated above j the loss is log(1 + exp(o_j - o_i)). Its derivative by o_i is
-sigmoid(o_j - o_i), by o_j the opposite, so a dialogue's weight is

    lambda_i = - sum over j rated below of sigmoid(o_j - o_i) + sum over j rated above of sigmoid(o_i - o_j)

(the paper prints the second exponent with the wrong sign). Sums of sigmoids over many points are smooth functions of one
variable whose nearest poles lie at a distance of pi from the real line, so on a short interval a few Chebyshev nodes give
them to machine accuracy. That makes the cost linear in the number of dialogues instead of quadratic.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.data.calibration import sigmoid

Floats = NDArray[np.float64]
_HALF_WIDTH = 1.0  # of an interval; the error shrinks by 6.4 with each node
_N_NODES = 14
_BLOCK = 256  # dialogues whose pairs among each other are summed directly
_CHUNK = 4_000_000  # sigmoids at a time


def all_pairs_lambdas(outputs: Floats, ratings: Floats) -> tuple[Floats, int]:
    """The weight of every dialogue and the number of pairs; pairs with equal ratings are dropped, as in the paper."""
    o = np.asarray(outputs, dtype=np.float64)
    y = np.asarray(ratings, dtype=np.float64)
    order = np.argsort(y, kind="stable")
    _, level, counts = np.unique(y[order], return_inverse=True, return_counts=True)
    sorted_o = o[order]
    is_coarse = len(counts) <= max(8, len(o) // _BLOCK)
    below, above = _sums_by_level(sorted_o, counts) if is_coarse else _sums_by_block(sorted_o, level)
    # sum over j below of sigmoid(o_j - o_i) = n_below - sum of sigmoid(o_i - o_j)
    starts = np.concatenate([[0], np.cumsum(counts)])
    n_below = starts[level]
    lambdas = np.empty(len(o))
    lambdas[order] = -(n_below - below) + above
    n_pairs = int((len(o) ** 2 - np.sum(counts.astype(np.int64) ** 2)) // 2)
    return lambdas, n_pairs


def all_pairs_loss(outputs: Floats, ratings: Floats, block: int = 1024) -> float:
    """The mean loss over all pairs, summed directly; for tests and reports, quadratic in time."""
    o, y = np.asarray(outputs, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    total, n_pairs = 0.0, 0
    for start in range(0, len(o), block):
        rows = slice(start, start + block)
        is_above = y[rows, None] > y[None, :]
        total += float(np.logaddexp(0.0, o[None, :] - o[rows, None])[is_above].sum())
        n_pairs += int(is_above.sum())
    return total / max(1, n_pairs)


class _Interpolator:
    """Chebyshev nodes on intervals that cover the outputs, and how to read a function given at the nodes."""

    def __init__(self, outputs: Floats) -> None:
        low, high = float(outputs.min()), float(outputs.max())
        n_intervals = max(1, int(np.ceil((high - low) / (2 * _HALF_WIDTH) + 1e-9)))
        centres = low + _HALF_WIDTH * (2 * np.arange(n_intervals) + 1)
        angles = np.pi * (np.arange(_N_NODES) + 0.5) / _N_NODES
        self.unit = np.cos(angles)
        self.nodes = (centres[:, None] + _HALF_WIDTH * self.unit).ravel()
        self.interval = np.minimum(((outputs - low) / (2 * _HALF_WIDTH)).astype(np.int64), n_intervals - 1)
        where = (outputs - centres[self.interval]) / _HALF_WIDTH
        weights = (-1.0) ** np.arange(_N_NODES) * np.sin(angles)
        gap = where[:, None] - self.unit
        is_node = np.abs(gap) < 1e-14
        terms = weights / np.where(is_node, 1.0, gap)
        share = terms / terms.sum(axis=1, keepdims=True)
        hit = is_node.any(axis=1)
        share[hit] = is_node[hit]
        self.share = share  # outputs × nodes of their interval

    def read(self, at_nodes: Floats, rows: slice | NDArray[np.int64] = slice(None)) -> Floats:
        """The function at the outputs of ``rows``, from its values at all nodes."""
        table = at_nodes.reshape(-1, _N_NODES)
        return np.asarray(np.einsum("ij,ij->i", self.share[rows], table[self.interval[rows]]))


def _at_nodes(nodes: Floats, points: Floats) -> Floats:
    """Sum over the points of sigmoid(node - point), for every node."""
    total = np.zeros(len(nodes))
    step = max(1, _CHUNK // max(1, len(nodes)))
    for start in range(0, len(points), step):
        total += sigmoid(nodes[:, None] - points[None, start : start + step]).sum(axis=1)
    return total


def _sums_by_level(o: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Few rating levels: one function per level, then sums over the levels below and above."""
    interpolator = _Interpolator(o)
    starts = np.concatenate([[0], np.cumsum(counts)])
    at_nodes = np.array([_at_nodes(interpolator.nodes, o[a:b]) for a, b in itertools.pairwise(starts)])
    upto = np.concatenate([np.zeros((1, at_nodes.shape[1])), np.cumsum(at_nodes, axis=0)])
    below, above = np.empty(len(o)), np.empty(len(o))
    for number, (a, b) in enumerate(itertools.pairwise(starts)):
        below[a:b] = interpolator.read(upto[number], slice(a, b))
        above[a:b] = interpolator.read(upto[-1] - upto[number + 1], slice(a, b))
    return below, above


def _sums_by_block(o: Floats, level: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Many levels, as smoothed ratings have: whole blocks before and after by interpolation, the own block directly."""
    interpolator = _Interpolator(o)
    n = len(o)
    starts = list(range(0, n, _BLOCK))
    at_nodes = np.array([_at_nodes(interpolator.nodes, o[a : a + _BLOCK]) for a in starts])
    upto = np.concatenate([np.zeros((1, at_nodes.shape[1])), np.cumsum(at_nodes, axis=0)])
    below, above = np.empty(n), np.empty(n)
    for number, a in enumerate(starts):
        b = min(n, a + _BLOCK)
        # A level may reach over block borders: its dialogues in other blocks are neither below nor above.
        first = int(np.searchsorted(level, level[a]))
        last = int(np.searchsorted(level, level[b - 1], side="right"))
        rows = slice(a, b)
        below[rows] = interpolator.read(upto[number], rows) - _same_level(o, level, rows, first, a)
        above[rows] = interpolator.read(upto[-1] - upto[number + 1], rows) - _same_level(o, level, rows, b, last)
        inside = sigmoid(o[rows, None] - o[None, rows])
        below[rows] += np.where(level[rows, None] > level[None, rows], inside, 0.0).sum(axis=1)
        above[rows] += np.where(level[rows, None] < level[None, rows], inside, 0.0).sum(axis=1)
    return below, above


def _same_level(o: Floats, level: NDArray[np.int64], rows: slice, start: int, stop: int) -> Floats | float:
    """Sums over dialogues of the same level that lie outside the block, to be taken off again."""
    if start >= stop:
        return 0.0
    terms = sigmoid(o[rows, None] - o[None, start:stop])
    return np.asarray(np.where(level[rows, None] == level[None, start:stop], terms, 0.0).sum(axis=1))
