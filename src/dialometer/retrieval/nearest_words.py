"""Words that an encoder holds to be alike: a stand-in for synonyms where WordNet is not to be found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class NearestWords:
    """Neighbours in the encoder's own word vectors, among whole words of its vocabulary."""

    def __init__(self, tokenizer: Any, network: Any, *, n_nearest: int = 5, least_cosine: float = 0.35) -> None:
        vocabulary = tokenizer.get_vocab()
        whole = {
            word: number for word, number in vocabulary.items() if word.isalpha() and word.islower() and len(word) > 2
        }
        table = network.get_input_embeddings().weight.detach().float().cpu().numpy()
        self.words = sorted(whole)
        vectors = table[[whole[word] for word in self.words]]
        vectors = vectors - vectors.mean(axis=0)
        self.vectors: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.number = {word: row for row, word in enumerate(self.words)}
        self.n_nearest = n_nearest
        self.least_cosine = least_cosine
        self._known: dict[str, list[str]] = {}

    def synonyms(self, word: str) -> list[str]:
        """The nearest other words, nearest first; none for a word the encoder cuts into pieces."""
        lower = word.lower()
        if lower not in self._known:
            self._known[lower] = self._near(lower)
        return self._known[lower]

    def _near(self, word: str) -> list[str]:
        row = self.number.get(word)
        if row is None:
            return []
        cosines = self.vectors @ self.vectors[row]
        cosines[row] = -1
        best = np.argpartition(-cosines, self.n_nearest)[: self.n_nearest]
        best = best[np.lexsort((best, -cosines[best]))]
        return [self.words[other] for other in best if cosines[other] >= self.least_cosine]
