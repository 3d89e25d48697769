"""Multinomial counts for resampling many cases, exact and about twice as fast as drawing cell after cell.

Independent Poisson counts, given their sum, are multinomial. So most cases are drawn as Poisson counts with a sum kept just
below the total (a draw that overshoots is repeated, which conditions on the sum only), and the few that are missing are
drawn one by one; the two parts together are multinomial again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_LEAST_PER_CELL = 50  # with fewer cases in a cell, on average, the plain way is as fast
_MOST_CASES = 20_000_000  # the table of cases takes four bytes for each
_MARGIN = 2.0  # standard deviations between the mean of the Poisson sum and the total


def resampled_counts(counts: Integers) -> Callable[[int, np.random.Generator], Integers]:
    """Counts of cases drawn with repeats from those counted here; gives resamples by cells, each row with the same sum."""
    total, n_cells = int(counts.sum()), len(counts)
    shares = counts / total
    if not _LEAST_PER_CELL * n_cells <= total <= _MOST_CASES:
        return lambda n_resamples, rng: rng.multinomial(total, shares, size=n_resamples)
    cell_of_case = np.repeat(np.arange(n_cells, dtype=np.int32), counts)
    rate = (total - _MARGIN * np.sqrt(total)) * shares

    def draw(n_resamples: int, rng: np.random.Generator) -> Integers:
        drawn = rng.poisson(rate, size=(n_resamples, n_cells))
        missing = total - drawn.sum(axis=1)
        while len(over := np.flatnonzero(missing < 0)):
            drawn[over] = rng.poisson(rate, size=(len(over), n_cells))
            missing[over] = total - drawn[over].sum(axis=1)
        for row, n_missing in enumerate(missing.tolist()):
            drawn[row] += np.bincount(cell_of_case[rng.integers(0, total, n_missing)], minlength=n_cells)
        return drawn

    return draw
