"""Resamples of votes as counts: as if other votes had been cast, or other raters had come.

Votes are never drawn one by one: the counts of a resample follow a multinomial distribution over the observed outcomes, so
that a million votes cost no more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.stats.multinomial import resampled_counts
from dialometer.stats.paired_newton import Cells
from dialometer.stats.votes import FIRST, SECOND, Votes

Array = npt.NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Cells]
"""Takes a number of resamples, gives the cells with that many data sets."""


def draw_votes(cells: Cells) -> Draw:
    """Resample single votes; right where every vote comes from another rater."""
    flat = np.concatenate([cells.first_won, cells.second_won, cells.tied])[:, 0]
    if not np.array_equal(flat, flat.round()):
        raise DialometerError("weighted votes cannot be resampled", where="bootstrap", remedy="count every vote once")
    seen = np.flatnonzero(flat)
    counts_of_seen = resampled_counts(flat[seen].astype(np.int64))

    def draw(n_resamples: int, rng: np.random.Generator) -> Cells:
        counts = np.zeros((len(flat), n_resamples))
        counts[seen] = counts_of_seen(n_resamples, rng).T
        return _filled(cells, counts)

    return draw


def draw_raters(votes: Votes, cells: Cells, shown: list[int], *, keep_order: bool) -> Draw:
    """Resample whole raters with all their votes; ``shown`` are the systems that the cells are about, in their order."""
    if votes.rater is None:
        raise DialometerError(
            "the votes do not name their raters", where="bootstrap by rater", remedy="pass rater=… to code_votes"
        )
    n_raters = len(votes.raters)
    if n_raters < 2:
        raise NotEnoughData(
            f"{n_raters} rater", where="bootstrap by rater", remedy="at least two are needed to resample"
        )
    renumber = np.full(len(votes.systems), -1)
    renumber[shown] = np.arange(len(shown))
    first, second, outcome = renumber[votes.first], renumber[votes.second], votes.outcome
    if not keep_order:
        is_turned = first > second
        first, second = np.where(is_turned, second, first), np.where(is_turned, first, second)
        outcome = np.where(is_turned, -outcome, outcome)
    number = np.full((cells.n_systems, cells.n_systems), -1)
    number[cells.first, cells.second] = np.arange(len(cells.first))
    block = np.where(outcome == FIRST, 0, np.where(outcome == SECOND, 1, 2))
    row = block * len(cells.first) + number[first, second]
    by_rater = csr_array((np.ones(votes.n), (row, votes.rater)), shape=(3 * len(cells.first), n_raters))

    def draw(n_resamples: int, rng: np.random.Generator) -> Cells:
        times = rng.multinomial(n_raters, np.full(n_raters, 1 / n_raters), size=n_resamples).T
        return _filled(cells, by_rater @ times.astype(np.float64))

    return draw


def _filled(cells: Cells, counts: Array) -> Cells:
    first_won, second_won, tied = np.split(counts, 3)
    return replace(cells, first_won=first_won, second_won=second_won, tied=tied)
