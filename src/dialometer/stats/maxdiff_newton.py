"""Newton's method for the best-worst choice model, for many weightings of the same choices at once.

All that a weighting changes is how often each distinct set was shown and how many marks (best less worst) each system got;
both are sums over raters, so a resample of raters is two sparse products away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dialometer.stats.best_worst import BestWorstChoices
from dialometer.stats.paired_newton import Cells, Model, gradient_and_information

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

_RUNAWAY = 30.0  # as for paired comparisons: no realistic number of choices holds an estimate beyond it


class _SetsOfOneSize:
    """Distinct sets with equally many members, and the sums over them that a Newton step needs."""

    def __init__(self, choices: BestWorstChoices, rows: Codes, size: int) -> None:
        n, n_raters = len(choices.systems), len(choices.raters)
        self.members, which = np.unique(np.sort(choices.shown[rows, :size], axis=1), axis=0, return_inverse=True)
        n_sets = len(self.members)
        self.by_rater = csr_array((np.ones(len(rows)), (which.ravel(), choices.rater[rows])), shape=(n_sets, n_raters))
        n_places, n_pairs = n_sets * size, n_sets * size * size
        pairs = (self.members[:, :, None] * n + self.members[:, None, :]).ravel()
        self.sum_places = csr_array(
            (np.ones(n_places), (self.members.ravel(), np.arange(n_places))), shape=(n, n_places)
        )
        self.sum_pairs = csr_array((np.ones(n_pairs), (pairs, np.arange(n_pairs))), shape=(n * n, n_pairs))

    def moments(self, utilities: Array) -> tuple[Array, Array, Array]:
        """Mean and covariance of the marks in every set (sets, places, …, weightings), and the log of the sum over pairs.

        The sum of exp(u_b - u_w) over different members is (Σ e^u)(Σ e^-u) - size, which spares the pairs themselves.
        """
        u = utilities[self.members]
        u = u - (u.max(axis=1, keepdims=True) + u.min(axis=1, keepdims=True)) / 2
        up, down = np.exp(u), np.exp(-u)
        sum_up, sum_down = up.sum(axis=1, keepdims=True), down.sum(axis=1, keepdims=True)
        total = sum_up * sum_down - u.shape[1]
        best, worst = up * (sum_down - down) / total, down * (sum_up - up) / total
        mean = best - worst
        joint = -(up[:, :, None] * down[:, None] + down[:, :, None] * up[:, None]) / total[:, :, None]
        places = np.arange(u.shape[1])
        joint[:, places, places] = best + worst
        return mean, joint - mean[:, :, None] * mean[:, None], np.log(total[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """One or more weightings of the choices: marks (systems by weightings) and how often each set was shown."""

    marks: Array
    n_shown: tuple[Array, ...]

    def chosen(self, columns: Codes | Flags) -> Weighted:
        """Some of the weightings."""
        return Weighted(self.marks[:, columns], tuple(counts[:, columns] for counts in self.n_shown))


class MaxdiffModel:
    """The likelihood of coded choices. ``prior`` adds pseudo-wins of every system over every other one."""

    def __init__(self, choices: BestWorstChoices) -> None:
        n, n_raters = len(choices.systems), len(choices.raters)
        self.n = n
        sizes = (choices.shown >= 0).sum(axis=1)
        self._sets = [_SetsOfOneSize(choices, np.flatnonzero(sizes == size), int(size)) for size in np.unique(sizes)]
        ones = np.ones(choices.n)
        best = csr_array((ones, (choices.best, choices.rater)), shape=(n, n_raters))
        worst = csr_array((ones, (choices.worst, choices.rater)), shape=(n, n_raters))
        self._marks = best - worst
        first, second = np.triu_indices(n, 1)
        self._pairs = (first, second)

    @property
    def n_numbers(self) -> int:
        """Numbers that one weighting needs in memory at a time."""
        return int(max(self.n**2, sum(sets.members.size * sets.members.shape[1] for sets in self._sets)))

    def weighted(self, times: Array) -> Weighted:
        """Raters' weights (raters by weightings) turned into what the likelihood needs."""
        return Weighted(self._marks @ times, tuple(sets.by_rater @ times for sets in self._sets))

    def log_likelihood(self, data: Weighted, utilities: Array) -> Array:
        """Without the penalty."""
        value = (data.marks * utilities).sum(axis=0)
        for sets, n_shown in zip(self._sets, data.n_shown, strict=True):
            value = value - (n_shown * sets.moments(utilities)[2]).sum(axis=0)
        return np.asarray(value)

    def derivatives(self, data: Weighted, utilities: Array, prior: float) -> tuple[Array, Array]:
        """Gradient (systems by weightings) and information (weightings first)."""
        gradient, n_columns = data.marks.copy(), utilities.shape[1]
        information = np.zeros((self.n**2, n_columns))
        for sets, n_shown in zip(self._sets, data.n_shown, strict=True):
            mean, spread, _ = sets.moments(utilities)
            gradient -= sets.sum_places @ (mean * n_shown[:, None]).reshape(-1, n_columns)
            information += sets.sum_pairs @ (spread * n_shown[:, None, None]).reshape(-1, n_columns)
        curvature = np.ascontiguousarray(information.T).reshape(n_columns, self.n, self.n)
        if prior:
            amount = np.full((len(self._pairs[0]), n_columns), prior)
            pseudo = Cells(self.n, *self._pairs, amount, amount, np.zeros_like(amount))
            more_gradient, more_curvature = gradient_and_information(pseudo, Model(), utilities)
            gradient, curvature = gradient + more_gradient, curvature + more_curvature
        return gradient, curvature

    def fit(
        self, data: Weighted, *, prior: float, start: Array | None = None, max_iterations: int = 100
    ) -> tuple[Array, Flags]:
        """Utilities centred at 0, and which weightings converged; steps as in :mod:`dialometer.stats.paired_newton`."""
        n_columns = data.marks.shape[1]
        utilities = np.zeros((self.n, n_columns)) if start is None else np.tile(start[:, None], n_columns)
        is_converged = np.zeros(n_columns, dtype=bool)
        active, part = np.arange(n_columns), data
        for _ in range(max_iterations):
            if not len(active):
                break
            now = utilities[:, active]
            gradient, information = self.derivatives(part, now, prior)
            level = np.einsum("bkk->bk", information).max(axis=1)
            information += (level / self.n)[:, None, None]
            step = np.linalg.solve(information, gradient.T[:, :, None])[:, :, 0].T
            # A pair's log odds against another pair change by at most twice the range of the step.
            step /= np.maximum(1, 2 * np.ptp(step, axis=0))
            now = now + step
            utilities[:, active] = now
            is_done = np.abs(step).max(axis=0) < 1e-6
            is_lost = np.ptp(now, axis=0) > 2 * _RUNAWAY
            is_converged[active[is_done & ~is_lost]] = True
            stay = ~(is_done | is_lost)
            if not stay.all():
                active, part = active[stay], part.chosen(stay)
        return utilities - utilities.mean(axis=0), is_converged
