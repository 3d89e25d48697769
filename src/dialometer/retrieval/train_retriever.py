"""A retriever made ready for use: its options settled by cross-validation, fitted on all there is, its confidence calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.cross_validation import N_FOLDS, FusedFolds, add_queries, cross_validate_fused, dialogue_folds
from dialometer.retrieval.fusion import PARTS
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import FittedRetriever, Ranking, Retriever, top_k
from dialometer.retrieval.retrievers.fused import Fused
from dialometer.retrieval.threshold import Calibration, calibrate
from dialometer.stats.retrieval.metrics import ranks_from_scores, success_at

# Where a retriever's confidence is learned: on questions that it was not fitted with, whoever asked them.


Marks = NDArray[np.bool_]
N_CALIBRATION_FOLDS = 5


def calibrate_on(fitted: FittedRetriever, query_set: QuerySet, *, cost_of_wrong: float = 1.0) -> Calibration:
    """On questions of dialogues that the retriever has not learned from."""
    ranking = fitted.rank(query_set.queries, 2)
    return calibrate(ranking, _is_right(ranking, query_set), cost_of_wrong=cost_of_wrong)


def calibrate_by_folds(
    kb: KnowledgeBase,
    retriever: Retriever,
    query_set: QuerySet | None,
    work: Work = QUIET,
    *,
    n_folds: int = N_CALIBRATION_FOLDS,
    seed: int = 0,
    cost_of_wrong: float = 1.0,
) -> Calibration:
    """By cross-validation, which fits the retriever once per fold: over dialogues where there are any, else over recorded
    questions. A recorded question whose answer has no other one left stands for what nobody foresaw.
    """
    rankings, right = [], []
    for number, (known, held) in enumerate(_folds(kb, query_set, n_folds, seed), start=1):
        ranking = retriever.fit(known, work.during(f"Fold {number} of {n_folds}")).rank(held.queries, 2)
        rankings.append(ranking)
        right.append(_is_right(ranking, held))
    whole = Ranking(
        np.concatenate([ranking.answers for ranking in rankings]),
        np.concatenate([ranking.scores for ranking in rankings]),
    )
    return calibrate(whole, np.concatenate(right), cost_of_wrong=cost_of_wrong)


def calibrate_fused(found: FusedFolds, n_read: int, *, cost_of_wrong: float = 1.0) -> Calibration:
    """From the out-of-fold scores of the fused retriever: its dialogues where it had any, else its recorded questions."""
    rows = found.from_dialogue if found.from_dialogue.any() else np.ones(len(found.fold), dtype=bool)
    scores = found.reranked(n_read) if n_read else found.fused()
    ranking = top_k(scores[rows], 2)
    is_right = found.right[rows][np.arange(int(rows.sum())), ranking.answers[:, 0]]
    return calibrate(ranking, np.asarray(is_right, dtype=bool), cost_of_wrong=cost_of_wrong)


def _folds(
    kb: KnowledgeBase, query_set: QuerySet | None, n_folds: int, seed: int
) -> Iterator[tuple[KnowledgeBase, QuerySet]]:
    """What is known in each fold, and what is then asked."""
    if query_set is not None:
        for known, rows in dialogue_folds(kb, query_set, n_folds, seed):
            yield known, query_set.subset(rows)
        return
    fold = np.random.default_rng(seed).permutation(len(kb.questions)) % n_folds
    for number in np.unique(fold):
        held = np.flatnonzero(fold == number)
        empty = ("",) * len(held)
        right = tuple(tuple(kb.answers_to(int(question)).tolist()) for question in held)
        questions = tuple(Query(kb.questions[row]) for row in held)
        yield kb.without_questions(held.tolist()), QuerySet(questions, empty, right, empty)


def _is_right(ranking: Ranking, query_set: QuerySet) -> Marks:
    firsts = ranking.answers[:, 0].tolist()
    return np.array([first in right for first, right in zip(firsts, query_set.right, strict=True)], dtype=bool)


PartRow = tuple[str, tuple[float, ...]]


@dataclass(frozen=True)
class TrainedRetriever:
    """``calibration`` is None where none was asked for; ``parts`` tells for the fused retriever what its parts give."""

    fitted: FittedRetriever
    calibration: Calibration | None = None
    parts: tuple[PartRow, ...] = ()


def train_retriever(
    kb: KnowledgeBase,
    retriever: Retriever,
    lessons: QuerySet | None = None,
    work: Work = QUIET,
    *,
    held_out: QuerySet | None = None,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    cost_of_wrong: float = 1.0,
    cuts: Sequence[int] = (1, 2, 10),
) -> TrainedRetriever:
    """``lessons`` are dialogues to learn from, ``held_out`` ones to calibrate on. Without the latter, calibration is by
    cross-validation (``n_folds`` further trainings), and the fused retriever's weights are found anew; 0 folds leave both out.
    """
    parts: tuple[PartRow, ...] = ()
    calibration: Calibration | None = None
    if isinstance(retriever, Fused) and n_folds:
        found = cross_validate_fused(kb, lessons, retriever, n_folds=n_folds, work=work, seed=seed)
        retriever = _with_weights(retriever, found)
        parts = tuple(parts_table(found, retriever.n_read, cuts))
        if held_out is None:
            calibration = calibrate_fused(found, retriever.n_read, cost_of_wrong=cost_of_wrong)
    elif n_folds and held_out is None:
        calibration = calibrate_by_folds(
            kb, retriever, lessons, work, n_folds=n_folds, seed=seed, cost_of_wrong=cost_of_wrong
        )
    fitted = retriever.fit(add_queries(kb, lessons), work)
    if held_out is not None:
        calibration = calibrate_on(fitted, held_out, cost_of_wrong=cost_of_wrong)
    return TrainedRetriever(fitted, calibration, parts)


def _with_weights(retriever: Fused, found: FusedFolds) -> Fused:
    weights = dict(zip(PARTS, found.weights().tolist(), strict=True))
    read = found.read_weight(found.fused(), retriever.n_read) if retriever.n_read else retriever.read_weight
    return retriever.model_copy(update={"weights": weights, "read_weight": read})


def parts_table(found: FusedFolds, n_read: int, cuts: Sequence[int]) -> list[PartRow]:
    """Success rates out of fold: all parts together, re-ranked, without each of them, and the plain nearest question.

    Over questions of dialogues, where there are any: they are what visitors ask.
    """
    rows = found.from_dialogue if found.from_dialogue.any() else np.ones(len(found.fold), dtype=bool)

    def rates(scores: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> tuple[float, ...]:
        ranks = ranks_from_scores(scores[rows], found.right[rows])
        return tuple(float(np.nanmean(success_at(ranks, k))) for k in cuts)

    table = [(f"only {PARTS[0]}", rates(found.fused((PARTS[0],)))), ("all parts", rates(found.fused()))]
    if n_read:
        table.append((f"all parts, first {n_read} re-ranked", rates(found.reranked(n_read))))
    for part in PARTS:
        table.append((f"without {part}", rates(found.fused(tuple(other for other in PARTS if other != part)))))
    return table
