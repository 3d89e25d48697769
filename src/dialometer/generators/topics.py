"""What a conversation is about: latent Dirichlet allocation over the words of the training dialogues.

Fitted by online variational Bayes (Hoffman, Blei, Bach 2010) through scikit-learn, in portions of dialogues that stream from
disk. Finding the topic of a new context needs only the fitted weights and is done here, so that a trained bot carries no
scikit-learn; ``tests/generators`` compares it with ``LatentDirichletAllocation.transform``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import digamma

from dialometer.errors import DialometerError
from dialometer.generators.vocabulary import PAD
from dialometer.readers.containers.arrays import read_arrays

if TYPE_CHECKING:
    from dialometer.generators.corpus import CorpusSplit
    from dialometer.generators.vocabulary import Vocabulary

T = TypeVar("T")
Tokens = Sequence[int] | npt.NDArray[np.uint16]
_N_DIALOGUES_PER_PORTION = 512
_MAX_SHARE = 0.15  # a word of more dialogues than this says little about any of them
_MIN_DIALOGUES = 5
_N_STEPS = 100
_NEAR_ENOUGH = 1e-3
_RELEVANCE = 0.6


@dataclass(frozen=True)
class TopicModel:
    """``weights`` are the variational parameters of the topics (topics by words); ``words`` the token of each column.

    ``prior`` of a text's topics is one number, or one for each topic where the model was trained so.
    """

    weights: npt.NDArray[np.float32]
    words: npt.NDArray[np.int64]
    prior: float | npt.NDArray[np.float64]

    @property
    def n_topics(self) -> int:
        """How many topics there are."""
        return len(self.weights)

    def top_words(self, n_words: int) -> npt.NDArray[np.int64]:
        """Tokens of the words that tell each topic best, topics by words.

        Ranked by relevance (Sievert and Shirley 2014, with their 0.6): probability in the topic against that everywhere,
        without which "great" and "really" head most topics of small talk. Places that a topic of fewer words leaves empty
        hold the padding.
        """
        with np.errstate(divide="ignore"):  # a word outside a topic has the weight 0
            inside = np.log(self.weights / self.weights.sum(axis=1, keepdims=True))
        everywhere = np.log(self.weights.sum(axis=0) / self.weights.sum())
        relevance = _RELEVANCE * inside + (1 - _RELEVANCE) * (inside - everywhere)
        best = np.argsort(-relevance, axis=1, kind="stable")[:, :n_words]
        is_word = np.take_along_axis(self.weights > 0, best, axis=1)
        return np.asarray(np.where(is_word, self.words[best], PAD))

    def mixtures(self, contexts: Sequence[Tokens]) -> npt.NDArray[np.float64]:
        """The share of each topic in each text (texts by topics); a text without topic words has the prior's even shares."""
        rows = [self._columns(np.asarray(context)) for context in contexts]
        width = max((len(row) for row in rows), default=0)
        gamma = np.full((len(rows), self.n_topics), 1.0)
        if not width:
            return gamma / self.n_topics
        columns = np.zeros((len(rows), width), dtype=np.int64)
        present = np.zeros((len(rows), width))
        for i, row in enumerate(rows):
            columns[i, : len(row)] = row
            present[i, : len(row)] = 1.0
        likely = self._likelihood[columns]  # (texts, words, topics): exp of the expected log probability
        moving = np.arange(len(rows))  # texts whose shares still change
        for _ in range(_N_STEPS):
            old = gamma[moving]
            mix = np.exp(digamma(old) - digamma(old.sum(axis=1, keepdims=True)))  # (moving, topics)
            norm = np.matmul(likely, mix[:, :, None])[:, :, 0] + 1e-100  # (moving, words)
            new = self.prior + mix * np.matmul((present / norm)[:, None, :], likely)[:, 0, :]
            gamma[moving] = new
            goes_on = np.abs(new - old).mean(axis=1) >= _NEAR_ENOUGH
            if not goes_on.any():
                break
            moving, likely, present = moving[goes_on], likely[goes_on], present[goes_on]
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))

    def topics_of(self, contexts: Sequence[Tokens]) -> npt.NDArray[np.int64]:
        """The dominant topic of each text."""
        return np.asarray(np.argmax(self.mixtures(contexts), axis=1), dtype=np.int64)

    def save(self, path: Path) -> None:
        """Written in full."""
        np.savez(path, weights=self.weights, words=self.words, prior=np.asarray(self.prior, dtype=np.float64))

    @classmethod
    def load(cls, path: Path) -> TopicModel:
        """What :meth:`save` wrote."""
        kept = read_arrays(path, ("weights", "words", "prior"))
        weights, words, prior = kept["weights"], kept["words"], kept["prior"]
        is_sound = weights.ndim == 2 and weights.dtype.kind == "f" and words.shape == weights.shape[1:]
        is_sound = is_sound and words.dtype.kind in "iu" and prior.dtype.kind == "f"
        if (
            not is_sound
            or prior.shape not in ((), (1,), (len(weights),))
            or (words < 0).any()
            or (words >= 2**20).any()
        ):
            remedy = "prepare the corpus again"
            raise DialometerError("these arrays are not a topic model", where=str(path), remedy=remedy)
        return cls(weights, words, prior_of(prior))

    @cached_property
    def _likelihood(self) -> npt.NDArray[np.float64]:
        weights = self.weights.astype(np.float64)
        return np.asarray(np.exp(digamma(weights) - digamma(weights.sum(axis=1, keepdims=True))).T)

    @cached_property
    def _column_of(self) -> npt.NDArray[np.int64]:
        """The column of each token, -1 where it is no topic word."""
        column = np.full(int(self.words.max(initial=0)) + 1, -1, dtype=np.int64)
        column[self.words] = np.arange(len(self.words))
        return column

    def _columns(self, tokens: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
        columns = self._column_of[tokens[tokens < len(self._column_of)].astype(np.int64)]
        return columns[columns >= 0]


def prior_of(values: Any) -> float | npt.NDArray[np.float64]:
    """A prior as it was stored: one number or one for each topic."""
    prior = np.asarray(values, dtype=np.float64)
    return float(prior) if prior.ndim == 0 else prior


def fit_topics(
    split: CorpusSplit, vocabulary: Vocabulary, *, n_topics: int = 50, n_passes: int = 3, seed: int = 0
) -> TopicModel:
    """Topics of the training dialogues; their words are whole words of the vocabulary that are neither rare nor everywhere."""
    from sklearn.decomposition import LatentDirichletAllocation  # noqa: PLC0415 - slow to import, only for fitting

    words, n_dialogues = _topic_words(split, vocabulary)
    if len(words) < n_topics:
        raise DialometerError(
            f"{len(words)} words are too few for {n_topics} topics",
            remedy="ask for fewer topics or give more dialogues",
        )
    model = LatentDirichletAllocation(
        n_components=n_topics,
        learning_method="online",
        learning_offset=10.0,
        total_samples=n_dialogues,
        random_state=seed,
    )
    for _ in range(n_passes):
        for counts in _portions(split, words):
            model.partial_fit(counts)
    return TopicModel(model.components_.astype(np.float32), words, float(model.doc_topic_prior_))


def _bags(split: CorpusSplit) -> Iterator[npt.NDArray[np.uint16]]:
    """The tokens of each dialogue, one after the other."""
    edges = np.flatnonzero(np.diff(np.asarray(split.dialogues))) + 1
    bounds = np.concatenate([[0], edges, [len(split.dialogues)]])
    for first, last in pairwise(bounds.tolist()):
        yield np.asarray(split.tokens[int(split.starts[first]) : int(split.starts[last])])


def _topic_words(split: CorpusSplit, vocabulary: Vocabulary) -> tuple[npt.NDArray[np.int64], int]:
    """Whole words that are no English function words, neither rare nor everywhere; and the number of dialogues."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # noqa: PLC0415

    is_function_word = np.array([piece.strip().lower() in ENGLISH_STOP_WORDS for piece in vocabulary.pieces])
    seen_in = np.zeros(len(vocabulary), dtype=np.int64)
    n_dialogues = 0
    for tokens in _bags(split):
        seen_in[np.unique(tokens)] += 1
        n_dialogues += 1
    fewest = min(_MIN_DIALOGUES, max(1, n_dialogues // 100))
    telling = (
        vocabulary.is_word
        & ~is_function_word
        & (seen_in >= fewest)
        & (seen_in <= max(_MAX_SHARE * n_dialogues, fewest))
    )
    return np.flatnonzero(telling), n_dialogues


def _portions(split: CorpusSplit, words: npt.NDArray[np.int64]) -> Iterator[Any]:
    """Counts of the topic words in some hundred dialogues at a time, as sparse matrices."""
    column = np.full(int(words.max()) + 1, -1, dtype=np.int64)
    column[words] = np.arange(len(words))
    for bags in batched(_bags(split), _N_DIALOGUES_PER_PORTION):
        columns_of = [column[tokens[tokens < len(column)].astype(np.int64)] for tokens in bags]
        columns_of = [columns[columns >= 0] for columns in columns_of]
        rows = np.repeat(np.arange(len(columns_of)), [len(columns) for columns in columns_of])
        ones = np.ones(len(rows))
        yield csr_matrix((ones, (rows, np.concatenate(columns_of))), shape=(len(columns_of), len(words)))


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Rows in lists of ``size``; the last one may be shorter."""
    waiting = iter(rows)
    while portion := list(islice(waiting, size)):
        yield portion
