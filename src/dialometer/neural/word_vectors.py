"""Sentence vectors without a transformer: the mean of vectors of word pieces, fitted to those of the packaged encoder.

A transformer takes a millisecond or two of a processor core for a short text, the mean of word vectors some microseconds. The vectors
of the pieces are fitted to a sample of the texts at hand, each encoded once by the transformer: ridge regression of its vectors on
the shares of the pieces in a text (a linear student; compare Tulkens and van Dongen 2024, Model2Vec, who take each word's own vector).
What matters is not each vector but what is computed from them; ``python -m bench.large_evaluator`` measures that.
"""

from __future__ import annotations

from collections.abc import Sequence
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
N_TEXTS = 20_000
"""Texts that the pieces' vectors are fitted to."""
RIDGE = 0.3
"""Of texts: a piece that makes up less than that in all texts together is held near zero."""
MAX_TOKENS = 256
_N_STEPS = 60


@dataclass(frozen=True)
class WordVectors:
    """Vectors of word pieces by their numbers in the packaged encoder's vocabulary."""

    pieces: Ints
    """In ascending order."""
    vectors: Floats

    def __call__(self, texts: Sequence[str], work: Work = QUIET) -> Floats:  # noqa: ARG002 - stands in for an encoder
        """One vector of length one for each text; zeros where no piece is known."""
        means = np.asarray(shares_of_pieces(texts, self.pieces) @ self.vectors)
        return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def fit_word_vectors(texts: Sequence[str], work: Work = QUIET, *, seed: int = 0) -> WordVectors:
    """Fits the pieces' vectors to those of a sample of distinct texts."""
    rng = np.random.default_rng(seed)
    some = [texts[int(n)] for n in np.sort(rng.permutation(len(texts))[:N_TEXTS])]
    pieces = np.unique(np.concatenate([np.empty(0, np.int64), *_pieces(some)]))
    fitted = _ridge(shares_of_pieces(some, pieces), packaged_vectors(some, work))
    # As exact as they are kept on disk, so that an evaluator gives the same scores before and after.
    return WordVectors(pieces, fitted.astype(np.float16).astype(np.float32))


def shares_of_pieces(texts: Sequence[str], pieces: Ints) -> Any:
    """Texts × pieces: which share of a text's pieces each is; unknown ones are left out."""
    numbers = _pieces(texts)
    rows = np.repeat(np.arange(len(texts)), [len(own) for own in numbers])
    flat = np.concatenate([np.empty(0, np.int64), *numbers])
    place = np.minimum(np.searchsorted(pieces, flat), max(0, len(pieces) - 1))
    is_known = pieces[place] == flat if len(pieces) else np.zeros(len(flat), dtype=bool)
    lengths = np.maximum(np.bincount(rows, minlength=len(texts)), 1)
    shares = (1 / lengths[rows[is_known]]).astype(np.float32)
    return sparse.csr_matrix((shares, (rows[is_known], place[is_known])), shape=(len(texts), len(pieces)))


def _ridge(shares: Any, targets: Floats) -> Floats:
    """Ridge regression for all dimensions at once by conjugate gradients; equal to the normal equations solved directly."""
    solved = np.zeros((shares.shape[1], targets.shape[1]), dtype=np.float64)
    left = np.asarray(shares.T @ targets, dtype=np.float64)
    size = np.einsum("ij,ij->j", left, left)
    begin, direction = size.copy(), left.copy()
    for _ in range(_N_STEPS):
        if (size <= 1e-8 * begin).all():
            break
        moved = np.asarray(shares.T @ (shares @ direction)) + RIDGE * direction
        step = size / np.maximum(np.einsum("ij,ij->j", direction, moved), 1e-300)
        solved += step * direction
        left -= step * moved
        smaller = np.einsum("ij,ij->j", left, left)
        direction = left + smaller / np.maximum(size, 1e-300) * direction
        size = smaller
    return np.asarray(solved, dtype=np.float32)


def _pieces(texts: Sequence[str]) -> list[Ints]:
    encodings = _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415 (an extra)

    tokenizer = Tokenizer.from_file(str(Path(model_path(PACKAGED)) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer
