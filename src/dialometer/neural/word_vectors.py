"""Sentence vectors without the sentence encoder: sums of vectors of words and pairs of words, fitted to the encoder's vectors.

A ridge regression from a text's words (TF-IDF) to the encoder's vector of it, on texts of the same kind as those to come. A text
then costs microseconds instead of more than a millisecond; word order beyond neighbours is lost. Close to what Model2Vec (Tulkens and
van Dongen 2024) and Arora et al. (2017) do with words alone. The equations are solved by conjugate gradients for all dimensions at
once; ``sklearn.linear_model.Ridge(solver="sparse_cg")`` gives the same, which the test compares it with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.neural.tfidf import Tfidf, fit_tfidf

Float32s = NDArray[np.float32]
TOKEN = r"\w+|[^\w\s]+"
NGRAMS = (1, 2)
STRENGTH = 0.5
N_STEPS = 15
"""Steps of the conjugate gradients: the fit on new texts does not change after the tenth."""


def text_weights(vocabulary: dict[str, int], idf: NDArray[np.float64]) -> Tfidf:
    """Words and pairs of words of a text, with their weights by rarity."""
    return Tfidf(vocabulary, idf, ngrams=NGRAMS, token=TOKEN, is_sublinear=True)


@dataclass(frozen=True)
class WordVectors:
    """What stands in for the encoder: one vector for each word or pair of words, and one for every text."""

    weights: Tfidf
    vectors: Float32s
    """Terms × dimensions."""
    mean: Float32s

    def __call__(self, texts: Sequence[str]) -> Float32s:
        """A vector of length one for each text."""
        sums = np.asarray(self.weights(texts).astype(np.float32) @ self.vectors) + self.mean
        return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def fit_word_vectors(texts: Sequence[str], encoded: Float32s, *, n_steps: int = N_STEPS) -> WordVectors:
    """Fitted to texts and the encoder's vectors of them; kept in 16 bits, as they are saved."""
    weights = fit_tfidf(texts, ngrams=NGRAMS, token=TOKEN, is_sublinear=True, min_texts=2)
    if weights is None:
        raise NotEnoughData("no word is in two of the texts", remedy="give more dialogues, or leave meaning out")
    mean = encoded.mean(axis=0)
    vectors = ridge(weights(texts).astype(np.float32), encoded - mean, STRENGTH, n_steps)
    return WordVectors(weights, vectors.astype(np.float16).astype(np.float32), mean)


def ridge(rows: Any, answers: Float32s, strength: float, n_steps: int) -> Float32s:
    """Coefficients of a ridge regression on sparse rows, one column for each answer."""
    columns = rows.T.tocsr()
    left = columns @ answers
    found, step = np.zeros_like(left), left.copy()
    squares = np.einsum("ij,ij->j", left, left)
    for _ in range(n_steps):
        moved = columns @ (rows @ step) + strength * step
        share = squares / np.maximum(np.einsum("ij,ij->j", step, moved), 1e-30)
        found += share * step
        left -= share * moved
        before, squares = squares, np.einsum("ij,ij->j", left, left)
        step = left + squares / np.maximum(before, 1e-30) * step
    return np.asarray(found, dtype=np.float32)
