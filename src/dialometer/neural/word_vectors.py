"""Sentence vectors without a transformer: the mean of vectors of words and pairs of words, fitted to those of the packaged
encoder.

A transformer takes about a millisecond of a processor core for a short text, the mean of known vectors some microseconds. The
vectors are fitted to a sample of the texts at hand, each encoded once by the transformer: ridge regression of its vectors on
how often each word piece, and each pair of neighbouring pieces, occurs in a text (a linear student; Tulkens and van Dongen
2024, Model2Vec, take each word's own vector instead, which is further from the transformer's). What this costs in accuracy is
measured by ``python -m bench.large_evaluator``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.pretrained import PACKAGED, model_path
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
N_TEXTS = 60_000
"""Texts that the vectors are fitted to."""
RIDGE = 0.03
"""In texts: a piece that makes up less than that in all texts together is held near zero."""
MAX_TOKENS = 256
_FEWEST = 3  # times that a pair of pieces must occur in the sample
_PAIR = 1 << 17  # above the number of every piece
_N_STEPS = 60


@dataclass(frozen=True)
class WordVectors:
    """Vectors of word pieces and of pairs of them, by their numbers in the packaged encoder's vocabulary."""

    terms: Ints
    """In ascending order: the number of a piece, or one for a pair (see :func:`_terms`)."""
    vectors: Floats

    def __call__(self, texts: Sequence[str], _: Work = QUIET) -> Floats:
        """One vector of length one for each text; zeros where nothing in it is known."""
        means = np.asarray(shares_of_terms(texts, self.terms) @ self.vectors)
        return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def fit_word_vectors(texts: Sequence[str], work: Work = QUIET, *, seed: int = 0) -> WordVectors:
    """Fits the vectors to those of a sample of distinct texts."""
    rng = np.random.default_rng(seed)
    some = [texts[int(n)] for n in np.sort(rng.permutation(len(texts))[:N_TEXTS])]
    terms, n_times = np.unique(
        np.concatenate([np.empty(0, np.int64), *(own for own, _ in _terms(some))]), return_counts=True
    )
    terms = terms[(terms < _PAIR) | (n_times >= _FEWEST)]
    fitted = _ridge(shares_of_terms(some, terms), packaged_vectors(some, work))
    # As exact as they are kept on disk, so that an evaluator gives the same scores before and after.
    return WordVectors(terms, fitted.astype(np.float16).astype(np.float32))


def shares_of_terms(texts: Sequence[str], terms: Ints) -> Any:
    """Texts × terms: how often each occurs, by the number of the text's pieces; unknown ones are left out."""
    found = list(_terms(texts))
    rows = np.repeat(np.arange(len(texts)), [len(own) for own, _ in found])
    flat = np.concatenate([np.empty(0, np.int64), *(own for own, _ in found)])
    lengths = np.array([max(1, n_pieces) for _, n_pieces in found], dtype=np.float32)
    place = np.minimum(np.searchsorted(terms, flat), max(0, len(terms) - 1))
    is_known = terms[place] == flat if len(terms) else np.zeros(len(flat), dtype=bool)
    shares = 1 / lengths[rows[is_known]]
    return sparse.csr_matrix((shares, (rows[is_known], place[is_known])), shape=(len(texts), len(terms)))


def _ridge(shares: Any, targets: Floats) -> Floats:
    """Ridge regression for all dimensions at once by conjugate gradients; equal to the normal equations solved directly."""
    solved = np.zeros((shares.shape[1], targets.shape[1]), dtype=np.float32)
    left = np.asarray(shares.T @ targets)
    size = np.einsum("ij,ij->j", left, left)
    begin, direction = size.copy(), left.copy()
    for _ in range(_N_STEPS):
        if (size <= 1e-7 * begin).all():
            break
        moved = np.asarray(shares.T @ (shares @ direction)) + RIDGE * direction
        step = size / np.maximum(np.einsum("ij,ij->j", direction, moved), 1e-30)
        solved += step * direction
        left -= step * moved
        smaller = np.einsum("ij,ij->j", left, left)
        direction = left + smaller / np.maximum(size, 1e-30) * direction
        size = smaller
    return solved


def _terms(texts: Sequence[str]) -> Iterator[tuple[Ints, int]]:
    """For each text its pieces and pairs of neighbours as numbers, and how many pieces it has."""
    for encoding in _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False):
        pieces = np.array(encoding.ids, dtype=np.int64)
        yield np.concatenate([pieces, (pieces[:-1] + 1) * _PAIR + pieces[1:]]), len(pieces)


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415 (an extra)

    tokenizer = Tokenizer.from_file(str(Path(model_path(PACKAGED)) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer
