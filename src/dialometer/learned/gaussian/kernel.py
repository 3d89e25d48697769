"""How alike two dialogues are for the Gaussian process: shared words of each side, and nearness in behaviour and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, special

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.gaussian.features import FeatureTable
from dialometer.neural.tfidf import Tfidf, fit_tfidf

Floats = NDArray[np.float64]
_FEW = 50
# Punctuation is part of how people write, so "?!" and ":)" are words too.
_TOKEN = r"\w+|[^\w\s]+"


def word_weights(vocabulary: dict[str, int], idf: Floats) -> Tfidf:
    """Words and pairs of words of what one side said, with their weights by rarity."""
    return Tfidf(vocabulary, idf, ngrams=(1, 2), token=_TOKEN, is_sublinear=True)


def fit_word_weights(texts: Sequence[str]) -> Tfidf | None:
    """The weights by which texts are described; None where they hold no word that could be shared."""
    return fit_tfidf(texts, ngrams=(1, 2), token=_TOKEN, is_sublinear=True, min_texts=2 if len(texts) >= _FEW else 1)


# Features brought to a normal shape by their ranks among the training dialogues.
#
# Counts and shares are skewed, and a new domain may hold values far outside the training data; ranks keep a single odd dialogue
# from deciding what is near. Dimensions that do not vary in training become 0 everywhere instead of noise divided by nothing.


_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NormalScores:
    """The training values of each dimension in order, by which other values are ranked."""

    sorted_values: Floats
    """Dialogues × dimensions, each column in ascending order."""

    @property
    def is_alive(self) -> NDArray[np.bool_]:
        """Dimensions that vary by more than rounding."""
        span = self.sorted_values[-1] - self.sorted_values[0]
        return np.asarray(span > _TOLERANCE * np.maximum(1.0, np.abs(self.sorted_values).max(axis=0)))

    def __call__(self, values: Floats) -> Floats:
        """Normal scores of each value: the quantile of its mid-rank among the training values, 0 in dead dimensions."""
        n = len(self.sorted_values)
        if values.shape[1] != self.sorted_values.shape[1]:
            remedy = "train it again with this version"
            raise DialometerError("the evaluator was trained on other features of dialogues", remedy=remedy)
        out = np.zeros(values.shape)
        for column in np.flatnonzero(self.is_alive):
            known = self.sorted_values[:, column]
            slack = _TOLERANCE * max(1.0, float(np.abs(known).max()))
            below = np.searchsorted(known, values[:, column] - slack, side="left")
            upto = np.searchsorted(known, values[:, column] + slack, side="right")
            share = np.clip((below + upto) / 2, 0.5, n - 0.5) / n
            out[:, column] = special.ndtri(share)
        return out


def fit_normal_scores(values: Floats) -> NormalScores:
    """The ranking by some training values."""
    return NormalScores(np.sort(np.asarray(values, dtype=np.float64), axis=0))


Aspect = Literal["words", "behaviour", "meaning"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


@dataclass(frozen=True, slots=True)
class KernelSettings:
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
        return Described(tuple(side[chosen] for side in self.words), self.scores[chosen])

    def followed_by(self, other: Described) -> Described:
        """These dialogues and others after them."""
        words = tuple(sparse.vstack([side, more]).tocsr() for side, more in zip(self.words, other.words, strict=True))
        return Described(words, np.vstack([self.scores, other.scores]))


@dataclass(frozen=True)
class Describer:
    """What was learned about words and features from the training dialogues, without their ratings."""

    aspects: tuple[Aspect, ...]
    user_words: Tfidf | None
    agent_words: Tfidf | None
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

    def kernel(self, settings: KernelSettings) -> Floats:
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
    for side, other in zip(first.words, second.words, strict=True):
        words += (side @ other.T).toarray()
    a, b = first.scores, second.scores
    if not a.shape[1]:
        return Likeness(words, None)
    squares = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :] - 2 * a @ b.T
    return Likeness(words, np.maximum(squares, 0.0) / a.shape[1])


def own_kernel(described: Described, settings: KernelSettings) -> Floats:
    """The kernel of each dialogue with itself."""
    own = np.full(len(described), settings.near_weight if described.scores.shape[1] else 0.0)
    for side in described.words:
        own += np.asarray(side.multiply(side).sum(axis=1)).ravel()
    return own


def effect_kernel(groups: Sequence[str]) -> Floats:
    """1 where two ratings come from one user, or from neighbouring dialogues."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    return np.asarray(number[:, None] == number[None, :], dtype=np.float64)


# Regression with a Gaussian process of known kernel: a mean that is estimated, random effects, and noise.
#
# The constant mean is estimated by generalised least squares, so it is not shrunk. Random effects (of the user who gave the
# rating, of neighbouring dialogues) are in the covariance of the training ratings but not in what is predicted: what a rater adds
# to all of his ratings is explained away instead of being put down to the dialogues. Equal to
# ``sklearn.gaussian_process.GaussianProcessRegressor`` with the same kernel where the mean is known and there are no effects.


@dataclass(frozen=True)
class Posterior:
    """What the training ratings say: weights of the known dialogues, the mean, and the factor of their covariance."""

    weights: Floats
    mean: float
    factor: Any
    """As ``scipy.linalg.cho_factor`` gives it, lower."""
    unit: float
    """Points of the rating scale in one unit of the kernel, which is known up to a factor: restricted maximum likelihood."""

    def predict(self, cross: Floats) -> Floats:
        """Expected ratings, from the kernel between new dialogues (rows) and training dialogues."""
        return np.asarray(cross @ self.weights + self.mean)

    def deviations(self, cross: Floats, own: Floats) -> Floats:
        """Standard deviation of the quality of each new dialogue; ``own`` is the kernel of each with itself."""
        known = linalg.solve_triangular(self.factor[0], cross.T, lower=True)
        return np.asarray(np.sqrt(np.maximum(own - np.einsum("ij,ij->j", known, known), 0.0)))


@dataclass(frozen=True)
class HeldOut:
    """What models expect of dialogues whose groups they have not seen."""

    expected: Floats
    """Ratings."""
    quality: Floats
    """The same less each model's mean, to compare dialogues by: without a high rating the mean of the others is lower, so that
    expected ratings of several models are ordered worse than by chance where nothing was learned."""


def familiarity(deviations: Floats, own: Floats) -> Floats:
    """The share of the variance of each dialogue's quality that training explains: 0 for one that is unlike all others."""
    return np.asarray(1 - deviations**2 / np.maximum(own, 1e-12))


def left_out_familiarity(factor: Any, covariance: Floats, own: Floats, at_most: int = 500) -> Floats:
    """How familiar training dialogues would be, had the rating of each not been there; of some of many.

    ``factor`` is that of the ratings' covariance, ``covariance`` that of the qualities, ``own`` the kernel of each with itself.
    In closed form, as leave-one-out predictions are (Rasmussen and Williams 2006, 5.4.2).
    """
    some = np.unique(np.linspace(0, len(own) - 1, min(at_most, len(own))).astype(np.int64))
    place = np.arange(len(some))
    columns = covariance[:, some]
    solved = linalg.cho_solve(factor, columns)
    precisions = linalg.cho_solve(factor, np.eye(len(own))[:, some])[some, place]
    explained = np.einsum("ij,ij->j", columns, solved) - solved[some, place] ** 2 / precisions
    return familiarity(np.sqrt(np.maximum(columns[some, place] - explained, 0.0)), own[some])


def fit_process(kernel: Floats, ratings: Floats, noise: Floats, effects: Floats | None = None) -> Posterior:
    """The posterior for a training kernel, the variance of the noise of each rating, and the kernel of random effects."""
    covariance = kernel + np.diag(noise)
    if effects is not None:
        covariance += effects
    factor = linalg.cho_factor(covariance, lower=True, overwrite_a=True)
    solved = linalg.cho_solve(factor, np.column_stack([ratings, np.ones(len(ratings))]))
    mean = float(solved[:, 0].sum() / solved[:, 1].sum())
    weights = solved[:, 0] - mean * solved[:, 1]
    misfit = float((ratings - mean) @ weights)
    return Posterior(weights, mean, factor, float(np.sqrt(max(misfit, 1e-12) / (len(ratings) - 1))))
