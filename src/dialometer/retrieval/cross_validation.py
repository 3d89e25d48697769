"""Folds, so that no retriever is asked what it has learned: whole dialogues, or recorded questions, are held out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import FittedRetriever, Floats, Ints, Retriever


def add_queries(kb: KnowledgeBase, query_set: QuerySet | None) -> KnowledgeBase:
    """The knowledge base with questions as people put them, where their right answers are known."""
    if query_set is None:
        return kb
    pairs = [
        (query.text, answer)
        for query, right in zip(query_set.queries, query_set.right, strict=True)
        for answer in right
    ]
    return kb.with_pairs(pairs)


def dialogue_folds(
    kb: KnowledgeBase, query_set: QuerySet, n_folds: int, seed: int = 0
) -> Iterator[tuple[KnowledgeBase, Ints]]:
    """For each fold the knowledge base with the questions of the other dialogues, and the rows that are then asked."""
    names = sorted(set(query_set.dialogues))
    if len(names) < 2:
        raise NotEnoughData("one dialogue cannot be left out", remedy="give at least two dialogues, or no folds")
    lot = np.random.default_rng(seed).permutation(len(names)) % n_folds
    fold_of = dict(zip(names, lot.tolist(), strict=True))
    own = np.array([fold_of[name] for name in query_set.dialogues])
    for number in np.unique(own):
        yield add_queries(kb, query_set.subset(np.flatnonzero(own != number))), np.flatnonzero(own == number)


def cross_validated_scores(
    kb: KnowledgeBase, retriever: Retriever, query_set: QuerySet, work: Work = QUIET, *, n_folds: int = 5, seed: int = 0
) -> Floats:
    """Scores of all answers for every question, by a retriever that learned from the other dialogues only."""
    scores = np.empty((len(query_set), len(kb.answers)), dtype=np.float32)
    for known, rows in dialogue_folds(kb, query_set, n_folds, seed):
        scores[rows] = retriever.fit(known, work).scores(query_set.subset(rows).queries)
    return scores


def check_not_learned(fitted: FittedRetriever, kb: KnowledgeBase, query_set: QuerySet, name: str) -> None:
    """Refuses a saved retriever that learned the very questions it is to be measured by.

    ``kb`` is what it may know: a question that stands only in the retriever's own knowledge base came from dialogues.
    """
    taught = set(fitted.kb.questions) - set(kb.questions)
    answerable = [query.text for query, right in zip(query_set.queries, query_set.right, strict=True) if right]
    n_learned = sum(text in taught for text in answerable)
    if n_learned > len(answerable) / 2:
        raise DialometerError(
            f"the retriever has learned {n_learned} of the {len(answerable)} questions it would be measured by",
            where=name,
            remedy="measure it on other dialogues, or by name with --cross-validate 5",
        )


def question_folds(kb: KnowledgeBase, n_folds: int, seed: int = 0) -> Iterator[tuple[KnowledgeBase, QuerySet]]:
    """For each fold the knowledge base without some recorded questions, and those questions."""
    fold = np.random.default_rng(seed).permutation(len(kb.questions)) % n_folds
    for number in np.unique(fold):
        held_out = np.flatnonzero(fold == number)
        empty = ("",) * len(held_out)
        right = tuple(tuple(kb.answers_to(int(question)).tolist()) for question in held_out)
        questions = tuple(Query(kb.questions[row]) for row in held_out)
        yield kb.without_questions(held_out.tolist()), QuerySet(questions, empty, right, empty)
