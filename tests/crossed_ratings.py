"""Simulated Likert ratings of systems on items by raters, all crossed."""

import numpy as np


def crossed(seed=1, n_raters=60, n_items=20, n_systems=3, taste=0.4, fit=0.4, effects=(0, 0.3, 0.6)):
    """Rating, system, rater and item of every meeting."""
    rng = np.random.default_rng(seed)
    r, i, s = (a.ravel() for a in np.meshgrid(range(n_raters), range(n_items), range(n_systems), indexing="ij"))
    level = np.array(effects)[s] + rng.normal(0, 0.8, n_raters)[r] + rng.normal(0, 0.6, n_items)[i]
    level = level + rng.normal(0, taste, n_raters * n_systems)[r * n_systems + s]
    level = level + rng.normal(0, fit, n_items * n_systems)[i * n_systems + s]
    y = 1 + np.sum((level + rng.logistic(size=len(level)))[:, None] > np.array([-2, -0.7, 0.6, 2.0]), axis=1)
    return y, s, r, i
