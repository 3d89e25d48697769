"""The best k of many scores without sorting them all; equal scores rank by their column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

NO_ANSWER = -1


@dataclass(frozen=True)
class Ranking:
    """For each question the numbers of its answers, best first, with their scores; -1 (and nan) where there are no more."""

    answers: Ints
    scores: Floats

    def __len__(self) -> int:
        return len(self.answers)

    def first(self, k: int) -> Ranking:
        """Only the first k ranks."""
        return Ranking(self.answers[:, :k], self.scores[:, :k])


def top_k(scores: Floats, k: int | None = None, *, columns: Ints | None = None) -> Ranking:
    """The k highest of each row (all if not given). ``nan`` means "not retrieved" and never ranks.

    ``columns`` gives the numbers of the columns where they are not simply counted (per row); among equal scores the
    lower number wins.
    """
    n_columns = scores.shape[1]
    wanted = n_columns if k is None else min(k, n_columns)
    values = np.where(np.isnan(scores), -np.inf, scores)
    numbers = np.broadcast_to(np.arange(n_columns), scores.shape) if columns is None else columns
    if columns is None and wanted < n_columns // 4:
        picked = _candidates(values, wanted)
    else:
        by_number = np.argsort(numbers, axis=1, kind="stable")
        by_score = np.argsort(-np.take_along_axis(values, by_number, 1), axis=1, kind="stable")
        picked = np.take_along_axis(by_number, by_score, 1)[:, :wanted]
    best = np.take_along_axis(values, picked, 1).astype(np.float32)
    chosen = np.take_along_axis(numbers, picked, 1).astype(np.int64)
    is_none = np.isneginf(best)
    chosen[is_none], best[is_none] = NO_ANSWER, np.nan
    if k is not None and wanted < k:
        gap = ((0, 0), (0, k - wanted))
        chosen = np.pad(chosen, gap, constant_values=NO_ANSWER)
        best = np.pad(best, gap, constant_values=np.nan)
    return Ranking(chosen, best)


def _candidates(values: Floats, k: int) -> Ints:
    """Columns of the k best. A partition finds the k-th value; what equals it is taken from the left."""
    n_columns = values.shape[1]
    threshold = np.partition(values, n_columns - k, axis=1)[:, n_columns - k]
    picked = np.empty((len(values), k), dtype=np.int64)
    for row, (line, limit) in enumerate(zip(values, threshold, strict=True)):
        above = np.flatnonzero(line > limit)
        level = np.flatnonzero(line == limit)[: k - len(above)]
        columns = np.concatenate([above, level])
        picked[row] = columns[np.lexsort((columns, -line[columns]))]
    return picked


def merge(one: Ranking, other: Ranking, k: int) -> Ranking:
    """The best k of two rankings of different answers."""
    return top_k(
        np.concatenate([one.scores, other.scores], axis=1),
        k,
        columns=np.concatenate([one.answers, other.answers], axis=1),
    )
