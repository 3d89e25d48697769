"""Vectors of words in place of the sentence encoder: a ridge regression like scikit-learn's, and vectors of length one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dialometer.errors import NotEnoughData
from dialometer.neural.word_vectors import fit_word_vectors, ridge


def test_the_regression_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    rows = sparse.random(200, 30, density=0.2, random_state=0, format="csr").astype(np.float32)
    answers = rng.normal(size=(200, 4)).astype(np.float32)
    peer = linear_model.Ridge(alpha=0.5, fit_intercept=False, solver="cholesky").fit(rows.toarray(), answers)
    assert pytest.approx(peer.coef_, abs=1e-4) == ridge(rows, answers, 0.5, 40).T


def test_texts_of_the_same_words_are_near_and_of_length_one() -> None:
    rng = np.random.default_rng(1)
    words = {"music": 0, "song": 0, "film": 1, "movie": 1, "rain": 2, "sun": 2}
    texts = [" ".join(rng.choice([word for word, kind in words.items() if kind == n % 3], 3)) for n in range(90)]
    encoded = np.eye(3, dtype=np.float32)[[n % 3 for n in range(90)]]
    learned = fit_word_vectors(texts, encoded)
    found = learned(["music song", "song music music", "a movie", "nothing known"])
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert found[0] @ found[1] > 0.95
    assert found[0] @ found[2] < 0.5


def test_texts_without_a_shared_word_are_refused() -> None:
    with pytest.raises(NotEnoughData, match="no word is in two"):
        fit_word_vectors(["one", "two"], np.eye(2, dtype=np.float32))
