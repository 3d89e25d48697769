"""Where a retriever's confidence is learned: on questions that it was not fitted with, whoever asked them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dialometer.retrieval.cross_fit import CrossFit
from dialometer.retrieval.cross_validate import dialogue_folds
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Asked, Query
from dialometer.retrieval.retriever import Fitted, Retriever
from dialometer.retrieval.threshold import Calibration, calibrate
from dialometer.retrieval.top_k import Ranking, top_k
from dialometer.retrieval.work import QUIET, Work

Marks = NDArray[np.bool_]
N_FOLDS = 5


def calibrate_on(fitted: Fitted, asked: Asked, *, cost_of_wrong: float = 1.0) -> Calibration:
    """On questions of dialogues that the retriever has not learned from."""
    ranking = fitted.rank(asked.queries, 2)
    return calibrate(ranking, _is_right(ranking, asked), cost_of_wrong=cost_of_wrong)


def calibrate_across(
    kb: KnowledgeBase,
    retriever: Retriever,
    asked: Asked | None,
    work: Work = QUIET,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    cost_of_wrong: float = 1.0,
) -> Calibration:
    """By cross-validation, which fits the retriever once per fold: over dialogues where there are any, else over recorded
    questions. A recorded question whose answer has no other one left stands for what nobody foresaw.
    """
    rankings, right = [], []
    for number, (known, held) in enumerate(_folds(kb, asked, n_folds, seed), start=1):
        ranking = retriever.fit(known, work.during(f"Fold {number} of {n_folds}")).rank(held.queries, 2)
        rankings.append(ranking)
        right.append(_is_right(ranking, held))
    whole = Ranking(
        np.concatenate([ranking.answers for ranking in rankings]),
        np.concatenate([ranking.scores for ranking in rankings]),
    )
    return calibrate(whole, np.concatenate(right), cost_of_wrong=cost_of_wrong)


def calibrate_from(found: CrossFit, n_read: int, *, cost_of_wrong: float = 1.0) -> Calibration:
    """From the out-of-fold scores of the fused retriever: its dialogues where it had any, else its recorded questions."""
    rows = found.is_asked if found.is_asked.any() else np.ones(len(found.fold), dtype=bool)
    scores = found.reranked(n_read) if n_read else found.fused()
    ranking = top_k(scores[rows], 2)
    is_right = found.right[rows][np.arange(int(rows.sum())), ranking.answers[:, 0]]
    return calibrate(ranking, np.asarray(is_right, dtype=bool), cost_of_wrong=cost_of_wrong)


def _folds(kb: KnowledgeBase, asked: Asked | None, n_folds: int, seed: int) -> Iterator[tuple[KnowledgeBase, Asked]]:
    """What is known in each fold, and what is then asked."""
    if asked is not None:
        for known, rows in dialogue_folds(kb, asked, n_folds, seed):
            yield known, asked.only(rows)
        return
    fold = np.random.default_rng(seed).permutation(len(kb.questions)) % n_folds
    for number in np.unique(fold):
        held = np.flatnonzero(fold == number)
        empty = ("",) * len(held)
        right = tuple(tuple(kb.answers_to(int(question)).tolist()) for question in held)
        questions = tuple(Query(kb.questions[row]) for row in held)
        yield kb.without_questions(held.tolist()), Asked(questions, empty, right, empty)


def _is_right(ranking: Ranking, asked: Asked) -> Marks:
    firsts = ranking.answers[:, 0].tolist()
    return np.array([first in right for first, right in zip(firsts, asked.right, strict=True)], dtype=bool)
