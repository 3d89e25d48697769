"""Whether a paired-comparison model with tie or position parameters has a finite, unique maximum-likelihood estimate.

For the plain model the graph of wins answers this. With further parameters the exact criterion is a linear programme
(Albert and Anderson 1984; Konis 2007): if some direction makes no observed outcome less likely and at least one more likely,
the likelihood grows without end along it; if a direction changes nothing, the estimate is not unique.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from dialometer.stats.paired_newton import Cells, Model


def has_finite_estimate(cells: Cells, model: Model) -> bool:
    """For a single data set; the exact answer, whatever the parameters."""
    rows = _advantages(cells, model)
    n_parameters = cells.n_systems + model.n_extra
    gram = (rows.T @ rows).toarray()
    if np.linalg.matrix_rank(gram, hermitian=True) < n_parameters - 1:
        return False
    # Directions are looked for in a box, with the first strength held at 0.
    bounds = [(0, 0)] + [(-1, 1)] * (n_parameters - 1)
    solution = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(rows.shape[0]), bounds=bounds, method="highs")
    return bool(solution.status == 0 and -solution.fun < 1e-7)


def _advantages(cells: Cells, model: Model) -> csr_array:
    """One row for each observed outcome and each other outcome it was preferred to: how parameters favour the observed one."""
    n, m = cells.n_systems, len(cells.first)
    index, one = np.arange(m), np.ones(m)
    shape = (m, n + model.n_extra)
    lead = csr_array(
        (np.concatenate([one, -one]), (np.tile(index, 2), np.concatenate([cells.first, cells.second]))), shape=shape
    )
    if model.has_position:
        lead = lead + csr_array((one, (index, np.full(m, shape[1] - 1))), shape=shape)
    first_won, second_won, tied = (counts[:, 0] > 0 for counts in (cells.first_won, cells.second_won, cells.tied))
    if not model.has_ties:
        return vstack([lead[first_won | tied], -lead[second_won | tied]]).tocsr()
    first, second = lead / 2, -lead / 2
    tie = csr_array((one, (index, np.full(m, n))), shape=shape)
    return vstack(
        [
            (first - second)[first_won],
            (first - tie)[first_won],
            (second - first)[second_won],
            (second - tie)[second_won],
            (tie - first)[tied],
            (tie - second)[tied],
        ]
    ).tocsr()
