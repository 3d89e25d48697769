"""From a knowledge base, dialogues and retrievers to an evaluation: all that ``dialometer retrieval evaluate`` and ``dm`` do.

A retriever is fitted, loaded from its folder, or fitted once per fold of dialogues, so that none is asked what it has learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.cross_validation import add_queries, check_not_learned, cross_validated_scores
from dialometer.retrieval.evaluation import (
    CUTOFFS,
    QUESTIONS,
    Evaluation,
    Marks,
    Resampling,
    evaluate,
    judges_of,
    rated_share,
)
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.labels.crowd_ratings import CrowdRatings
from dialometer.retrieval.queries import QuerySet
from dialometer.retrieval.retriever import FittedRetriever, Retriever
from dialometer.retrieval.retrievers.crowd import Crowd, FittedCrowd
from dialometer.retrieval.selection import CROWD, Selected, fit_or_load
from dialometer.stats.retrieval.metrics import RelevantRanks, ranks_from_lists, ranks_from_scores

MAX_SCORES = 60_000_000
"""Questions times answers up to which every answer is ranked; beyond it the first 1,000 are, and MRR and MAP end there."""
MAX_DEPTH = 1000


def evaluate_retrievers(
    kb: KnowledgeBase,
    query_set: QuerySet,
    retrievers: Selected,
    *,
    learn_from: QuerySet | None = None,
    crowd: CrowdRatings | None = None,
    good_from: float | None = None,
    n_folds: int = 0,
    cutoffs: Sequence[int] = CUTOFFS,
    compare_on: str = "",
    resampling: Resampling = QUESTIONS,
    work: Work = QUIET,
) -> Evaluation:
    """Every retriever by the maker's labels and, with the crowd's ratings, by the crowd's and both.

    ``learn_from`` are further dialogues that retrievers may learn from. With ``n_folds`` they learn from the other
    dialogues of ``query_set``. With ratings, the crowd's mean rating takes part as a retriever of its own, in the last place.
    """
    judges = judges_of(query_set, len(kb.answers), crowd, good_from)
    known = add_queries(kb, learn_from)
    distinct = tuple(dict.fromkeys(cutoffs))
    labels = [judge.relevant for judge in judges]
    if crowd is not None:
        labels.append(~np.isnan(crowd.matrix(query_set.queries, len(kb.answers))))
    ranks, rated, first = {}, {}, {}
    for name, retriever in retrievers.items():
        by_label, first[name] = _ranks(retriever, known, query_set, labels, work, n_folds, resampling.seed)
        ranks[name] = by_label[: len(judges)]
        if crowd is not None:
            rated[name] = rated_share(by_label[-1], judges[-1].has_judged, distinct)
    if crowd is not None:
        ranks[CROWD] = relevant_ranks(FittedCrowd(Crowd(), known, crowd), query_set, labels)[: len(judges)]
    return evaluate(
        ranks,
        query_set,
        judges,
        cutoffs=distinct,
        compare_on=compare_on,
        resampling=resampling,
        rated=rated,
        first=first,
    )


def _ranks(
    retriever: Retriever | Path,
    kb: KnowledgeBase,
    query_set: QuerySet,
    labels: Sequence[Marks],
    work: Work,
    n_folds: int,
    seed: int,
) -> tuple[list[RelevantRanks], Ints]:
    """Ranks of the right answers for each set of labels, and which answer comes first."""
    if not n_folds:
        fitted = fit_or_load(retriever, kb, work)
        check_not_learned(fitted, kb, query_set, str(retriever))
        return _relevant_ranks(fitted, query_set, labels)
    if isinstance(retriever, Path):
        remedy = "name the retriever, so that it can be fitted fold by fold"
        raise DialometerError("a saved retriever cannot be cross-validated", where=str(retriever), remedy=remedy)
    scores = cross_validated_scores(kb, retriever, query_set, work, n_folds=n_folds, seed=seed)
    return [ranks_from_scores(scores, relevant) for relevant in labels], _first(scores)


def relevant_ranks(fitted: FittedRetriever, query_set: QuerySet, labels: Sequence[Marks]) -> list[RelevantRanks]:
    """At which ranks a retriever puts right answers, for each of several sets of labels; the questions are asked once."""
    return _relevant_ranks(fitted, query_set, labels)[0]


def _relevant_ranks(
    fitted: FittedRetriever, query_set: QuerySet, labels: Sequence[Marks]
) -> tuple[list[RelevantRanks], Ints]:
    if len(query_set) * len(fitted.kb.answers) <= MAX_SCORES:
        scores = fitted.scores(query_set.queries)
        return [ranks_from_scores(scores, relevant) for relevant in labels], _first(scores)
    lists = fitted.rank(query_set.queries, min(MAX_DEPTH, len(fitted.kb.answers))).answers
    return [ranks_from_lists(lists, relevant) for relevant in labels], lists[:, 0]


def _first(scores: NDArray[np.floating[Any]]) -> Ints:
    """The answer that comes first for each question; -1 where nothing was retrieved."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    first = filled.argmax(axis=1)
    return np.where(np.isneginf(filled.max(axis=1)), -1, first)
