"""The Gaussian process on many dialogues: all ratings count, but likeness is taken with a few inducing dialogues only.

The quality of a dialogue is the combination of the inducing dialogues' qualities that its likeness with them gives (the
projected process, also called deterministic training conditional: Quiñonero-Candela and Rasmussen 2005; Rasmussen and Williams
2006, 8.3.4). Cost grows with the number of dialogues times the square of the inducing ones, not with the cube of the dialogues.
What n ratings say about m inducing dialogues equals what m ratings of these would say, with a certain mean and covariance of
their noise, so the result is an ordinary :class:`~dialometer.learned.gaussian.kernel.Posterior`. With all dialogues as inducing
ones it is the exact process, which the tests compare it with.

Sums over the dialogues are kept for each fold. A model that has not seen a fold is the sum over the others, so cross-validation
costs one pass over the data. What a rater adds to all ratings is summed out within a fold; a rater whose ratings lie in several
folds (where several people rated one dialogue) counts as another rater in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dialometer.learned.gaussian.kernel import Described, HeldOut, KernelSettings, Posterior, likeness
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS_AT_A_TIME = 4096
_JITTER = 1e-8


@dataclass(frozen=True)
class RatingSums:
    """What some ratings say about the inducing dialogues, with noise and raters' habits summed out."""

    n: int
    products: Floats
    """Inducing × inducing: features by features."""
    answers: Floats
    """Inducing × 2: features by ratings, and by ones."""
    squares: Floats
    """2 × 2: ratings and ones by each other."""

    def __add__(self, other: RatingSums) -> RatingSums:
        return RatingSums(
            self.n + other.n,
            self.products + other.products,
            self.answers + other.answers,
            self.squares + other.squares,
        )


class InducingProcess:
    """Training ratings by folds, summed up over the inducing dialogues under some settings."""

    def __init__(
        self,
        described: Described,
        inducing: Ints,
        settings: KernelSettings,
        ratings: Floats,
        noise: Floats,
        raters: Sequence[str],
        folds: Ints,
        work: Work = QUIET,
    ) -> None:
        self.described, self.known, self.settings = described, described.rows(inducing), settings
        self.ratings, self.noise, self.folds, self.work = ratings, noise, folds, work
        own = likeness(self.known, self.known).kernel(settings)
        self.kernel = own + _JITTER * np.trace(own) / len(own) * np.eye(len(own))
        self.root = linalg.cholesky(self.kernel, lower=True)
        _, self.rater = np.unique(np.asarray(raters), return_inverse=True)
        self.sums = [self._sum_up(np.flatnonzero(folds == number)) for number in range(int(folds.max()) + 1)]

    def posterior(self) -> Posterior:
        """What all ratings say."""
        total = self.sums[0]
        for one in self.sums[1:]:
            total = total + one
        weights, mean, unit = self._solved(total)
        # As if each inducing dialogue had one rating: the covariance of the noise that such ratings would have.
        small = _JITTER * np.trace(total.products) / len(total.products)
        inner = linalg.cholesky(total.products + small * np.eye(len(total.products)), lower=True)
        noise_root = linalg.solve_triangular(inner, self.root.T, lower=True)
        factor = linalg.cho_factor(self.kernel + noise_root.T @ noise_root, lower=True, overwrite_a=True)
        return Posterior(weights, mean, factor, unit)

    def held_out(self) -> HeldOut:
        """What is expected of each dialogue by a model that has not seen its fold."""
        quality, means = np.empty(len(self.ratings)), np.empty(len(self.ratings))
        for number in range(len(self.sums)):
            first, *others = (one for place, one in enumerate(self.sums) if place != number)
            for one in others:
                first = first + one
            weights, mean, _ = self._solved(first)
            for rows, cross in self._blocks(np.flatnonzero(self.folds == number), "Checking on held-out dialogues"):
                quality[rows], means[rows] = cross @ weights, mean
        return HeldOut(quality + means, quality)

    def _sum_up(self, fold: Ints) -> RatingSums:
        """Sums over one fold. Raters are taken whole, so that what each adds to all ratings can be summed out at once."""
        m = len(self.root)
        total = RatingSums(0, np.zeros((m, m)), np.zeros((m, 2)), np.zeros((2, 2)))
        ordered = fold[np.argsort(self.rater[fold], kind="stable")]
        for rows, cross in self._blocks(ordered, "Training"):
            features = linalg.solve_triangular(self.root, cross.T, lower=True).T
            sides = np.column_stack([features, self.ratings[rows], np.ones(len(rows))])
            total = total + _summed(sides, self.noise[rows], self.rater[rows], self.settings.effect)
        return total

    def _blocks(self, rows: Ints, what: str) -> Iterator[tuple[Ints, Floats]]:
        """Portions of dialogues with their likeness to the inducing ones; no rater is cut in two where rows are in order."""
        ends = np.append(np.flatnonzero(np.diff(self.rater[rows])) + 1, len(rows))
        start = 0
        while start < len(rows):
            later = ends[ends > start]
            n_whole = int(np.searchsorted(later, start + ROWS_AT_A_TIME, side="right"))
            stop = int(later[max(1, n_whole) - 1])
            part = rows[start:stop]
            yield part, likeness(self.described.rows(part), self.known).kernel(self.settings)
            start = stop
            self.work.report(what, start, len(rows))

    def _solved(self, sums: RatingSums) -> tuple[Floats, float, float]:
        """Weights of the inducing dialogues, the mean by generalised least squares, and the kernel's unit in points."""
        factor = linalg.cho_factor(sums.products + np.eye(len(self.root)), lower=True)
        solved = linalg.cho_solve(factor, sums.answers)
        left = sums.squares - sums.answers.T @ solved
        mean = float(left[0, 1] / left[1, 1])
        misfit = float(left[0, 0] - 2 * mean * left[0, 1] + mean**2 * left[1, 1])
        weights = linalg.solve_triangular(self.root, solved[:, 0] - mean * solved[:, 1], lower=True, trans="T")
        return weights, mean, float(np.sqrt(max(misfit, 1e-12) / (sums.n - 1)))


def _summed(sides: Floats, noise: Floats, rater: Ints, effect: float) -> RatingSums:
    """Products of columns, weighed by the inverse covariance of noise and raters' habits (Sherman and Morrison, rater by rater)."""
    precise = sides / noise[:, None]
    products = sides.T @ precise
    if effect > 0:
        starts = np.append(0, np.flatnonzero(np.diff(rater)) + 1)
        by_rater = np.add.reduceat(precise, starts, axis=0)
        share = effect / (1 + effect * np.add.reduceat(1 / noise, starts))
        products -= by_rater.T @ (share[:, None] * by_rater)
    return RatingSums(len(sides), products[:-2, :-2], products[:-2, -2:], products[-2:, -2:])
