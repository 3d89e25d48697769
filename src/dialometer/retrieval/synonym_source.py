"""Which source of synonyms augmentation uses here: WordNet where it is found, else the encoder's nearest words."""

from __future__ import annotations

from functools import cache
from typing import Any

from dialometer.retrieval.augment import Synonyms
from dialometer.retrieval.nearest_words import NearestWords
from dialometer.retrieval.wordnet import WordNet, find_wordnet


@cache
def _wordnet() -> WordNet | None:
    place = find_wordnet()
    return WordNet(place) if place else None


def synonym_source(tokenizer: Any, network: Any) -> Synonyms:
    """WordNet is read once and kept."""
    return _wordnet() or NearestWords(tokenizer, network)
