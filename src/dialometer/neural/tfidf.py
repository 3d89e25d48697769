"""TF-IDF: texts as sparse vectors of their words, pairs of words or letters, weighted by rarity.

Equal to ``sklearn.feature_extraction.text.TfidfVectorizer`` with the same options (smoothed idf, rows of length one), which
the tests compare it with. It is written here because retrieval and the learned evaluator need nothing else of scikit-learn
in the core installation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Analyzer = Literal["word", "char_wb"]
WORD = r"\b\w\w+\b"


class Tfidf:
    """A fitted vocabulary with its weights. Call it with texts to get a sparse matrix, texts × terms."""

    def __init__(
        self,
        vocabulary: dict[str, int],
        idf: Floats,
        *,
        analyzer: Analyzer = "word",
        ngrams: tuple[int, int] = (1, 1),
        token: str = WORD,
        is_sublinear: bool = False,
    ) -> None:
        self.vocabulary = vocabulary
        self.idf = np.asarray(idf, dtype=np.float64)
        self.is_sublinear = is_sublinear
        self._terms = _terms(analyzer, ngrams, token)

    def __call__(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """Weights of the known terms; a text without any is a row of zeros."""
        columns: list[int] = []
        counts: list[int] = []
        starts = [0]
        for text in texts:
            known = Counter(self.vocabulary[term] for term in self._terms(text) if term in self.vocabulary)
            for column in sorted(known):
                columns.append(column)
                counts.append(known[column])
            starts.append(len(columns))
        index = np.array(columns, dtype=np.int64)
        values = np.array(counts, dtype=np.float64)
        if self.is_sublinear:
            values = np.log(values) + 1
        values *= self.idf[index]
        shape = (len(starts) - 1, len(self.vocabulary))
        rows = np.repeat(np.arange(shape[0]), np.diff(starts))
        lengths = np.sqrt(np.bincount(rows, weights=values**2, minlength=shape[0]))
        return sparse.csr_matrix((values / lengths[rows], index, starts), shape=shape)


def fit_tfidf(
    texts: Sequence[str],
    *,
    analyzer: Analyzer = "word",
    ngrams: tuple[int, int] = (1, 1),
    token: str = WORD,
    is_sublinear: bool = False,
    min_texts: int = 1,
) -> Tfidf | None:
    """The terms that occur in at least ``min_texts`` texts, with their weights; None where there are none."""
    terms = _terms(analyzer, ngrams, token)
    n_texts = Counter(term for text in texts for term in set(terms(text)))
    kept = sorted(term for term, n in n_texts.items() if n >= min_texts)
    if not kept:
        return None
    idf = np.log((1 + len(texts)) / (1 + np.array([n_texts[term] for term in kept], dtype=np.float64))) + 1
    vocabulary = {term: column for column, term in enumerate(kept)}
    return Tfidf(vocabulary, idf, analyzer=analyzer, ngrams=ngrams, token=token, is_sublinear=is_sublinear)


def _terms(analyzer: Analyzer, ngrams: tuple[int, int], token: str) -> Callable[[str], Iterator[str]]:
    lengths = range(ngrams[0], ngrams[1] + 1)
    words = re.compile(token).findall

    def of_words(text: str) -> Iterator[str]:
        tokens = words(text.lower())
        for n in lengths:
            yield from (" ".join(tokens[start : start + n]) for start in range(len(tokens) - n + 1))

    def of_letters(text: str) -> Iterator[str]:
        """Letters inside words, each word with a space on both sides; a word shorter than ``n`` counts once."""
        for word in text.lower().split():
            padded = f" {word} "
            for n in lengths:
                yield from (padded[start : start + n] for start in range(max(1, len(padded) - n + 1)))
                if len(padded) <= n:
                    break

    return of_words if analyzer == "word" else of_letters
