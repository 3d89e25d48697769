"""Regression with a Gaussian process of known kernel: a mean that is estimated, random effects, and noise.

The constant mean is estimated by generalised least squares, so it is not shrunk. Random effects (of the user who gave the
rating, of neighbouring dialogues) are in the covariance of the training ratings but not in what is predicted: what a rater adds
to all of his ratings is explained away instead of being put down to the dialogues. Equal to
``sklearn.gaussian_process.GaussianProcessRegressor`` with the same kernel where the mean is known and there are no effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """What the training ratings say: weights of the training dialogues, the mean, and the factor of their covariance."""

    weights: Floats
    mean: float
    factor: Any
    """As ``scipy.linalg.cho_factor`` gives it."""

    def predict(self, cross: Floats) -> Floats:
        """Expected ratings, from the kernel between new dialogues (rows) and training dialogues."""
        return np.asarray(cross @ self.weights + self.mean)

    def deviations(self, cross: Floats, own: Floats) -> Floats:
        """Standard deviation of the quality of each new dialogue; ``own`` is the kernel of each with itself."""
        spread = own - np.einsum("ij,ji->i", cross, linalg.cho_solve(self.factor, cross.T))
        return np.asarray(np.sqrt(np.maximum(spread, 0.0)))


def fit_process(kernel: Floats, ratings: Floats, noise: Floats, effects: Floats | None = None) -> Posterior:
    """The posterior for a training kernel, the variance of the noise of each rating, and the kernel of random effects."""
    covariance = kernel + np.diag(noise)
    if effects is not None:
        covariance += effects
    factor = linalg.cho_factor(covariance, lower=True, overwrite_a=True)
    solved = linalg.cho_solve(factor, np.column_stack([ratings, np.ones(len(ratings))]))
    mean = float(solved[:, 0].sum() / solved[:, 1].sum())
    return Posterior(solved[:, 0] - mean * solved[:, 1], mean, factor)
