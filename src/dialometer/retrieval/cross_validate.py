"""Measuring a retriever that learns from dialogues without asking it what it has learned: folds of whole dialogues."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.retrieval.cross_fit import enriched
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Asked
from dialometer.retrieval.retriever import Fitted, Floats, Retriever
from dialometer.retrieval.work import QUIET, Work


def dialogue_folds(
    kb: KnowledgeBase, asked: Asked, n_folds: int, seed: int = 0
) -> Iterator[tuple[KnowledgeBase, NDArray[np.int64]]]:
    """For each fold the knowledge base with the questions of the other dialogues, and the rows that are then asked."""
    names = sorted(set(asked.dialogues))
    if len(names) < 2:
        raise NotEnoughData("one dialogue cannot be left out", remedy="give at least two dialogues, or no folds")
    lot = np.random.default_rng(seed).permutation(len(names)) % n_folds
    fold_of = dict(zip(names, lot.tolist(), strict=True))
    own = np.array([fold_of[name] for name in asked.dialogues])
    for number in np.unique(own):
        yield enriched(kb, asked.only(np.flatnonzero(own != number))), np.flatnonzero(own == number)


def unseen_scores(
    kb: KnowledgeBase, retriever: Retriever, asked: Asked, work: Work = QUIET, *, n_folds: int = 5, seed: int = 0
) -> Floats:
    """Scores of all answers for every question, by a retriever that learned from the other dialogues only."""
    scores = np.empty((len(asked), len(kb.answers)), dtype=np.float32)
    for known, rows in dialogue_folds(kb, asked, n_folds, seed):
        scores[rows] = retriever.fit(known, work).scores(asked.only(rows).queries)
    return scores


def refuse_learned(fitted: Fitted, kb: KnowledgeBase, asked: Asked, name: str) -> None:
    """Refuses a saved retriever that learned the very questions it is to be measured by.

    ``kb`` is what it may know: a question that stands only in the retriever's own knowledge base came from dialogues.
    """
    taught = set(fitted.kb.questions) - set(kb.questions)
    answerable = [query.text for query, right in zip(asked.queries, asked.right, strict=True) if right]
    n_learned = sum(text in taught for text in answerable)
    if n_learned > len(answerable) / 2:
        raise DialometerError(
            f"the retriever has learned {n_learned} of the {len(answerable)} questions it would be measured by",
            where=name,
            remedy="measure it on other dialogues, or by name with --cross-validate 5",
        )
