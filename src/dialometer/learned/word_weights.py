"""TF-IDF of what one side said, fitted on training dialogues and kept as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_FEW = 50
# Punctuation is part of how people write, so "?!" and ":)" are words too.
_TOKEN = r"\w+|[^\w\s]+"


class WordWeights:
    """Words and pairs of words with their weights by rarity; rows have length one."""

    def __init__(self, vocabulary: dict[str, int], idf: Floats) -> None:
        self.vocabulary = vocabulary
        self.idf = np.asarray(idf, dtype=np.float64)
        self._vectoriser = _vectoriser(vocabulary=vocabulary)
        self._vectoriser.idf_ = self.idf

    def __call__(self, texts: Sequence[str]) -> Any:
        """A sparse matrix, texts × words."""
        return self._vectoriser.transform(texts)


def fit_word_weights(texts: Sequence[str]) -> WordWeights | None:
    """The weights by which texts are described; None where they hold no word that could be shared."""
    found = _vectoriser(min_df=2 if len(texts) >= _FEW else 1)
    try:
        found.fit(texts)
    except ValueError:  # an empty vocabulary
        return None
    return WordWeights({word: int(number) for word, number in found.vocabulary_.items()}, found.idf_)


def _vectoriser(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - an extra

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=_TOKEN, **options)
