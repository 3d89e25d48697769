"""Rows of the ablation whose encoder is not trained: what any learned evaluator has to beat.

The number of utterances; ridge regression on TF-IDF of what either side said; ridge regression on means of frozen sentence
vectors; and the best recipe. How strongly a ridge regression holds back is chosen by cross-validation over whole users (or
blocks of neighbours) of the training part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.cmade.neighbours import standardise
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import groups_of
from dialometer.learned.experiments.rating_values import value_ratings
from dialometer.learned.gaussian.features import FeatureTable, describe, frozen_features
from dialometer.learned.gaussian.kernel import Aspect, fit_word_weights, quality_space
from dialometer.learned.gaussian.training import fit_gaussian
from dialometer.neural.work import Work


@dataclass(frozen=True, slots=True)
class AblationRow:
    """A line of the table. ``published`` is the accuracy that the paper reports for it, on its own expert pairs."""

    name: str
    label: str
    published: float | None = None


Floats = NDArray[np.float64]
N_FOLDS = 5
STRENGTHS = tuple(float(10.0**power) for power in np.arange(-2, 5, 0.5))


@dataclass(frozen=True)
class PlainRow:
    """A row and how it scores test dialogues after learning from training dialogues."""

    row: AblationRow
    score: Callable[[Sequence[RatedDialogue], Sequence[RatedDialogue]], Floats]


def plain_rows(rated: Sequence[RatedDialogue], work: Work) -> tuple[PlainRow, ...]:
    """The rows for these dialogues; features that learn nothing from ratings are computed once, when first needed."""
    known = _Known(rated, work)
    return (
        PlainRow(AblationRow("utterances", "number of utterances"), _utterances),
        PlainRow(AblationRow("tfidf-ridge", "TF-IDF + ridge"), _tfidf),
        PlainRow(AblationRow("frozen-ridge", "frozen encoder + ridge"), known.frozen_ridge),
        PlainRow(AblationRow("best", "the best recipe"), known.best),
    )


def ridge_scores(products: Floats, across: Floats, ratings: Floats, groups: Sequence[str]) -> Floats:
    """Ridge regression in its dual form, so that many features cost little.

    ``products`` are those of training rows with each other, ``across`` those of test rows with training rows. Equal to
    ``sklearn.linear_model.Ridge(alpha)`` with intercept on the same features.
    """
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    fold = np.random.default_rng(0).permutation(int(group.max()) + 1)[group] % N_FOLDS
    errors = np.zeros(len(STRENGTHS))
    for fold_number in np.unique(fold):
        held, kept = np.flatnonzero(fold == fold_number), np.flatnonzero(fold != fold_number)
        for number, strength in enumerate(STRENGTHS):
            predicted = _ridge(products[np.ix_(kept, kept)], ratings[kept], products[np.ix_(held, kept)], strength)
            errors[number] += float(((predicted - ratings[held]) ** 2).sum())
    best = STRENGTHS[int(np.argmin(errors))]
    return _ridge(products, ratings, across, best)


def _ridge(products: Floats, ratings: Floats, across: Floats, strength: float) -> Floats:
    """Predictions from products of centred rows."""
    mean_row, mean_all = products.mean(axis=0), products.mean()
    centred = products - mean_row[None, :] - mean_row[:, None] + mean_all
    weights = np.linalg.solve(centred + strength * np.eye(len(ratings)), ratings - ratings.mean())
    rows = across - across.mean(axis=1, keepdims=True) - mean_row[None, :] + mean_all
    return np.asarray(rows @ weights + ratings.mean())


def _ratings(rated: Sequence[RatedDialogue]) -> Floats:
    return np.array([row.rating for row in rated], dtype=np.float64)


def _utterances(_: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
    """Longer is better; in which direction needs no learning, since people leave bad conversations."""
    return np.array([row.n_utterances for row in test], dtype=np.float64)


def _tfidf(train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
    from scipy.sparse import hstack  # noqa: PLC0415 - heavy

    parts: list[tuple[Any, Any]] = []
    for role in ("user", "agent"):
        texts = [[_said(row, role) for row in side] for side in (train, test)]
        weights = fit_word_weights(texts[0])
        if weights is not None:
            parts.append((weights(texts[0]), weights(texts[1])))
    own, other = (hstack([part[side] for part in parts]).tocsr() for side in (0, 1))
    return ridge_scores((own @ own.T).toarray(), (other @ own.T).toarray(), _ratings(train), groups_of(train))


def _said(rated: RatedDialogue, role: str) -> str:
    return "\n".join(turn.text for turn in rated.dialogue.turns if turn.role == role)


class _Known:
    """Features of all dialogues, by id."""

    def __init__(self, rated: Sequence[RatedDialogue], work: Work) -> None:
        self.rated, self.work = rated, work
        self.place = {row.id: number for number, row in enumerate(rated)}

    @cached_property
    def _frozen(self) -> NDArray[np.float32]:
        return frozen_features([row.dialogue for row in self.rated], self.work)

    @cached_property
    def _table(self) -> FeatureTable:
        return describe([row.dialogue for row in self.rated], self.work)

    def _rows(self, rated: Sequence[RatedDialogue]) -> NDArray[np.int64]:
        return np.array([self.place[row.id] for row in rated], dtype=np.int64)

    def frozen_ridge(self, train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
        raw = [self._frozen[self._rows(part)] for part in (train, test)]
        own, other = (standardise(features, raw[0]).astype(np.float64) for features in raw)
        return ridge_scores(own @ own.T, other @ own.T, _ratings(train), groups_of(train))

    def best(self, train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
        fitted = fit_gaussian(train, table=self._table.rows(self._rows(train)), work=self.work)
        return fitted.evaluator.score_table(self._table.rows(self._rows(test))).values


# What each part of the best recipe adds, and what valuing ratings would: rows for the table of evaluators.
#
# All rows learn from the same training ratings. The recipe itself keeps every rating; the rows that weigh or drop ratings by their
# Shapley values stand beside a control that drops as many at random.


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


def gaussian_rows(rated: Sequence[RatedDialogue], work: Work) -> tuple[PlainRow, ...]:
    """Rows for these dialogues; their features are computed once, when first needed."""
    known = _GaussianRows(rated, work)
    parts = [
        PlainRow(AblationRow(f"best-{name}", f"best, {' and '.join(aspects)} only"), partial(known.aspects, aspects))
        for name, aspects in ASPECT_SETS.items()
    ]
    return (
        PlainRow(AblationRow("approval", "praise minus complaints"), known.approval),
        *parts,
        PlainRow(
            AblationRow("best-weighted", "best, ratings weighed by Shapley value"), partial(known.valued, _weighed)
        ),
        PlainRow(AblationRow("best-lowest", "best, lowest tenth dropped"), partial(known.valued, _lowest)),
        PlainRow(AblationRow("best-random", "best, a tenth dropped at random"), partial(known.valued, _random)),
    )


class _GaussianRows:
    """Features of all dialogues, by id."""

    def __init__(self, rated: Sequence[RatedDialogue], work: Work) -> None:
        self.rated, self.work = rated, work
        self.place = {row.id: number for number, row in enumerate(rated)}

    @cached_property
    def table(self) -> FeatureTable:
        return describe([row.dialogue for row in self.rated], self.work)

    def of(self, rated: Sequence[RatedDialogue]) -> FeatureTable:
        return self.table.rows([self.place[row.id] for row in rated])

    def approval(self, _: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
        """A rule of thumb: how often users praise, less how often they complain."""
        table = self.of(test)
        names = table.behaviour_names
        praise, complaint = (names.index(f"user_{kind}_turns") for kind in ("approval", "complaint"))
        return np.asarray(table.behaviour[:, praise] - table.behaviour[:, complaint])

    def aspects(
        self, aspects: Sequence[Aspect], train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]
    ) -> Floats:
        fitted = fit_gaussian(train, aspects=aspects, table=self.of(train))
        return fitted.evaluator.score_table(self.of(test)).values

    def valued(
        self, weigh: Callable[[Floats], Floats], train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]
    ) -> Floats:
        weights = weigh(_values(train, self.of(train)))
        kept = np.flatnonzero(weights > 0)
        own = [train[int(n)] for n in kept]
        fitted = fit_gaussian(own, table=self.of(own), weights=weights[kept])
        return fitted.evaluator.score_table(self.of(test)).values


def _values(rated: Sequence[RatedDialogue], table: FeatureTable) -> Floats:
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
