"""What each part of the best recipe adds, and what valuing ratings would: rows for the table of evaluators.

All rows learn from the same training ratings. The recipe itself keeps every rating; the rows that weigh or drop ratings by their
Shapley values stand beside a control that drops as many at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.best import fit_best
from dialometer.learned.best_kernel import Aspect, quality_space
from dialometer.learned.features import FeatureTable, describe
from dialometer.learned.plain_rows import PlainRow
from dialometer.learned.rated import Rated
from dialometer.learned.rating_values import value_ratings
from dialometer.learned.row import Row
from dialometer.retrieval.work import Work

Floats = NDArray[np.float64]
ASPECT_SETS: dict[str, tuple[Aspect, ...]] = {
    "words": ("words",),
    "behaviour": ("behaviour",),
    "meaning": ("meaning",),
    "words-behaviour": ("words", "behaviour"),
    "words-meaning": ("words", "meaning"),
    "behaviour-meaning": ("behaviour", "meaning"),
}
SHARE = 0.1
"""Of ratings that the rows with dropping leave out."""
_SEED = 0


def best_rows(rated: Sequence[Rated], work: Work) -> tuple[PlainRow, ...]:
    """Rows for these dialogues; their features are computed once, when first needed."""
    known = _Known(rated, work)
    parts = [
        PlainRow(Row(f"best-{name}", f"best, {' and '.join(aspects)} only"), partial(known.aspects, aspects))
        for name, aspects in ASPECT_SETS.items()
    ]
    return (
        PlainRow(Row("approval", "praise minus complaints"), known.approval),
        *parts,
        PlainRow(Row("best-weighted", "best, ratings weighed by Shapley value"), partial(known.valued, _weighed)),
        PlainRow(Row("best-lowest", "best, lowest tenth dropped"), partial(known.valued, _lowest)),
        PlainRow(Row("best-random", "best, a tenth dropped at random"), partial(known.valued, _random)),
    )


class _Known:
    """Features of all dialogues, by id."""

    def __init__(self, rated: Sequence[Rated], work: Work) -> None:
        self.rated, self.work = rated, work
        self.place = {one.id: number for number, one in enumerate(rated)}

    @cached_property
    def table(self) -> FeatureTable:
        return describe([one.dialogue for one in self.rated], self.work)

    def of(self, rated: Sequence[Rated]) -> FeatureTable:
        return self.table.rows([self.place[one.id] for one in rated])

    def approval(self, _: Sequence[Rated], test: Sequence[Rated]) -> Floats:
        """A rule of thumb: how often users praise, less how often they complain."""
        table = self.of(test)
        names = table.behaviour_names
        praise, complaint = (names.index(f"user_{kind}_turns") for kind in ("approval", "complaint"))
        return np.asarray(table.behaviour[:, praise] - table.behaviour[:, complaint])

    def aspects(self, aspects: Sequence[Aspect], train: Sequence[Rated], test: Sequence[Rated]) -> Floats:
        fitted = fit_best(train, aspects=aspects, table=self.of(train))
        return fitted.evaluator.score_table(self.of(test)).values

    def valued(self, weigh: Callable[[Floats], Floats], train: Sequence[Rated], test: Sequence[Rated]) -> Floats:
        weights = weigh(_values(train, self.of(train)))
        kept = np.flatnonzero(weights > 0)
        own = [train[int(n)] for n in kept]
        fitted = fit_best(own, table=self.of(own), weights=weights[kept])
        return fitted.evaluator.score_table(self.of(test)).values


def _values(rated: Sequence[Rated], table: FeatureTable) -> Floats:
    """Cross-fitted Shapley values in the space of behaviour and meaning, where neighbours are alike in quality."""
    return value_ratings(rated, quality_space(table), seed=_SEED).values


def _ranks(values: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.linspace(0, 1, len(values))
    return ranks


def _weighed(values: Floats) -> Floats:
    return 0.5 + _ranks(values)


def _lowest(values: Floats) -> Floats:
    return (_ranks(values) >= SHARE).astype(np.float64)


def _random(values: Floats) -> Floats:
    return _lowest(np.random.default_rng(_SEED).random(len(values)))
