"""How alike two dialogues are for the best recipe: shared words of each side, and nearness in behaviour and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.features import FeatureTable
from dialometer.learned.normal_scores import NormalScores, fit_normal_scores
from dialometer.learned.word_weights import WordWeights, fit_word_weights

Floats = NDArray[np.float64]
Aspect = Literal["words", "behaviour", "meaning"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is chosen by cross-validation. All variances are relative to that of the words."""

    near_weight: float = 4.0
    """Variance of quality that goes with behaviour and meaning."""
    sharpness: float = 2.0
    """How fast likeness in behaviour and meaning falls with distance."""
    noise: float = 3.0
    """Variance of a single rating about the quality of its dialogue."""
    effect: float = 0.3
    """Variance of what all ratings of one user, or of neighbouring dialogues, have in common."""


@dataclass(frozen=True)
class Described:
    """Dialogues as the kernel takes them: sparse words of user and agent, and normal scores of the counted features."""

    words: tuple[Any, ...]
    scores: Floats

    def __len__(self) -> int:
        return len(self.scores)

    def rows(self, numbers: Sequence[int] | NDArray[np.int64]) -> Described:
        """Some of the dialogues."""
        chosen = np.asarray(numbers, dtype=np.int64)
        return Described(tuple(one[chosen] for one in self.words), self.scores[chosen])


@dataclass(frozen=True)
class Describer:
    """What was learned about words and features from the training dialogues, without their ratings."""

    aspects: tuple[Aspect, ...]
    user_words: WordWeights | None
    agent_words: WordWeights | None
    normal: NormalScores

    def __call__(self, table: FeatureTable) -> Described:
        """Dialogues as the kernel takes them."""
        sides = ((self.user_words, table.user_text), (self.agent_words, table.agent_text))
        words = tuple(weights(texts) for weights, texts in sides if weights is not None)
        return Described(words, self.normal(counted(table, self.aspects)))


def fit_describer(table: FeatureTable, aspects: Sequence[Aspect] = ASPECTS) -> Describer:
    """Learns word weights and ranks from training dialogues."""
    has_words = "words" in aspects
    normal = fit_normal_scores(counted(table, aspects))
    describer = Describer(
        tuple(aspects),
        fit_word_weights(table.user_text) if has_words else None,
        fit_word_weights(table.agent_text) if has_words else None,
        normal,
    )
    if not (describer.user_words or describer.agent_words or normal.is_alive.any()):
        raise NotEnoughData("the dialogues do not differ in anything that is looked at", remedy="give other dialogues")
    return describer


def counted(table: FeatureTable, aspects: Sequence[Aspect]) -> Floats:
    """The counted features of the aspects that are wanted, side by side."""
    parts = [table.behaviour] * ("behaviour" in aspects) + [table.meaning] * ("meaning" in aspects)
    return np.hstack(parts) if parts else np.zeros((len(table), 0))


def quality_space(table: FeatureTable) -> NDArray[np.float32]:
    """Normal scores of behaviour and meaning: where neighbours are alike in quality, though no rating was looked at."""
    raw = counted(table, ("behaviour", "meaning"))
    return fit_normal_scores(raw)(raw).astype(np.float32)


@dataclass(frozen=True)
class Likeness:
    """The parts of the kernel between two sets of dialogues, before the settings weigh them."""

    words: Floats
    distances: Floats | None
    """Mean squared difference of the scores; None where no features are counted."""

    def kernel(self, settings: Settings) -> Floats:
        """The kernel under some settings."""
        if self.distances is None:
            return self.words
        near = np.exp(-0.5 * settings.sharpness * self.distances)
        return np.asarray(self.words + settings.near_weight * near)

    def part(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Likeness:
        """The likeness of some dialogues with others."""
        block = np.ix_(rows, columns)
        return Likeness(self.words[block], None if self.distances is None else self.distances[block])


def likeness(first: Described, second: Described) -> Likeness:
    """Likeness of every dialogue of ``first`` with every one of ``second``."""
    words = np.zeros((len(first), len(second)))
    for one, other in zip(first.words, second.words, strict=True):
        words += (one @ other.T).toarray()
    a, b = first.scores, second.scores
    if not a.shape[1]:
        return Likeness(words, None)
    squares = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :] - 2 * a @ b.T
    return Likeness(words, np.maximum(squares, 0.0) / a.shape[1])


def own_kernel(described: Described, settings: Settings) -> Floats:
    """The kernel of each dialogue with itself."""
    own = np.full(len(described), settings.near_weight if described.scores.shape[1] else 0.0)
    for one in described.words:
        own += np.asarray(one.multiply(one).sum(axis=1)).ravel()
    return own


def effect_kernel(groups: Sequence[str]) -> Floats:
    """1 where two ratings come from one user, or from neighbouring dialogues."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    return np.asarray(number[:, None] == number[None, :], dtype=np.float64)
