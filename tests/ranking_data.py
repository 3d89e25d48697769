"""Votes and choices from plain lists and tables, for tests of rankings."""

from __future__ import annotations

import numpy as np

from dialometer.stats.ranking.best_worst import BestWorstChoices
from dialometer.stats.ranking.votes import WinMatrix


def win_matrix_from_counts(systems, wins, ties=None):
    """``wins[a, b]`` for a over b, ``ties`` above the diagonal or symmetric."""
    n = len(systems)
    tied = np.zeros((n, n)) if ties is None else np.triu(np.asarray(ties, dtype=float), 1)
    won = np.array(wins, dtype=float)
    np.fill_diagonal(won, 0)
    return WinMatrix(tuple(systems), won, np.zeros((n, n)), tied)


def code_best_worst(shown, best, worst, *, rater=None, item=None, systems=None):
    """Choices from names; without ``rater`` every choice counts as another rater's."""
    known = tuple(systems) if systems is not None else tuple(sorted({name for names in shown for name in names}))
    coded = np.full((len(shown), max(map(len, shown), default=0)), -1, dtype=np.intp)
    for row, names in enumerate(shown):
        coded[row, : len(names)] = [known.index(name) for name in names]
    raters, codes = np.unique(np.arange(len(shown)) if rater is None else np.asarray(rater, str), return_inverse=True)
    return BestWorstChoices(
        known,
        coded,
        np.array([known.index(name) for name in best], dtype=np.intp),
        np.array([known.index(name) for name in worst], dtype=np.intp),
        tuple(map(str, raters)),
        codes,
        None if item is None else np.unique(np.asarray(item, str), return_inverse=True)[1],
    )
