"""A retriever made ready for use: its options settled by cross-validation, fitted on all there is, its confidence calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.cross_validation import add_queries, dialogue_folds, question_folds
from dialometer.retrieval.fusion import PARTS, CandidateLists, FusionParts, candidate_lists, choose_weights
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query, QuerySet, repeated_questions
from dialometer.retrieval.retriever import FittedRetriever, RankedAnswers, Retriever, top_k
from dialometer.retrieval.retrievers.fused import Fused
from dialometer.retrieval.threshold import Calibration, calibrate
from dialometer.stats.retrieval.metrics import ranks_from_scores, success_at

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]


# Cross-validation of the fused retriever.
#
# In each fold a share of the recorded questions and of the dialogues is held out together. Encoder and ranker are trained on
# the rest, the held-out questions are asked, and their scores are kept. From these out-of-fold scores come the weights; and for
# the metrics, the weights that score a fold come from the other folds only.
#
# Every other question of a dialogue is asked of the knowledge base without the recorded questions that the dialogues repeat: it is
# often filled from these very dialogues, and the next visitor will repeat some of it, not as much. A recorded question is asked
# of a knowledge base without its fold, and only where an answer of it keeps another question. An answer that keeps none cannot
# be found and is not right: in use every answer has one, and among them it would be known by lacking it.

N_FOLDS = 3
"""Each fold is a training of its own, minutes on a processor; three leave two thirds to learn from."""
N_READ = 30
MOST_RECORDED = 2000
"""Recorded questions that are asked back; more would not make weights of a few parts any surer."""
NOT_FOUND = -1.0
"""Every part's score of an answer without a question: the lowest cosine."""
MOST_CELLS = 150_000_000
"""Scores held at once, answers by parts for every question asked back: fewer questions where there are very many answers."""


@dataclass(frozen=True)
class FusedFolds:
    """Out-of-fold scores of every question: recorded ones first, then those of the dialogues."""

    fold: Ints
    groups: tuple[str, ...]
    from_dialogue: Marks
    """Whether the question comes from a dialogue."""
    scores: Floats
    """Questions by answers by parts."""
    right: Marks
    read: Floats
    """The ranker's score of each question's first answers; nan elsewhere."""

    def weights(self, parts: tuple[str, ...] = PARTS, *, without_fold: int | None = None) -> NDArray[np.float64]:
        """Weights of some parts from all folds, or from all but one."""
        rows = np.flatnonzero(self.fold != (-1 if without_fold is None else without_fold))
        columns = [PARTS.index(part) for part in parts]
        lists = candidate_lists(self.scores[rows][:, :, columns], self.right[rows])
        return choose_weights(lists, [self.groups[row] for row in rows])

    def fused(self, parts: tuple[str, ...] = PARTS) -> Floats:
        """Scores of every question by weights that its own fold had no share in."""
        columns = [PARTS.index(part) for part in parts]
        out = np.empty(self.right.shape, dtype=np.float32)
        for fold in np.unique(self.fold):
            rows = self.fold == fold
            out[rows] = self.scores[rows][:, :, columns] @ self.weights(parts, without_fold=int(fold)).astype(
                np.float32
            )
        return np.asarray(np.round(out, 4))

    def read_weight(self, fused: Floats, n_read: int, *, without_fold: int | None = None) -> float:
        """How much the ranker counts among the first answers, from all folds or all but one."""
        rows = np.flatnonzero(self.fold != (-1 if without_fold is None else without_fold))
        first = top_k(fused[rows], n_read).answers
        at = np.arange(len(rows))[:, None]
        pair = np.stack([fused[rows][at, first], np.nan_to_num(self.read[rows][at, first], nan=0.0)], axis=-1)
        lists = CandidateLists(pair.astype(np.float32), self.right[rows][at, first], np.ones(first.shape, dtype=bool))
        own, read = choose_weights(lists, [self.groups[row] for row in rows])
        return max(0.0, float(read / own)) if own > 0 else 0.0

    def reranked(self, n_read: int = 10) -> Floats:
        """Fused scores with the first answers put into the order of the ranker's weighed score, fold by fold."""
        out = self.fused()
        before = out.copy()
        for fold in np.unique(self.fold):
            rows = np.flatnonzero(self.fold == fold)
            weight = self.read_weight(before, n_read, without_fold=int(fold))
            first = top_k(before[rows], n_read).answers
            at = np.arange(len(rows))[:, None]
            own = before[rows][at, first]
            again = own + weight * np.nan_to_num(self.read[rows][at, first], nan=0.0)
            lift = np.maximum(own.min(axis=1) - again.min(axis=1), 0)[:, None]
            out[rows[:, None], first] = np.round(again + lift, 4)
        return out


@dataclass(frozen=True)
class _FoldPlan:
    """What is asked in which fold: recorded questions by number, and those of dialogues by row."""

    recorded: Ints
    recorded_fold: Ints
    dialogue_fold: Ints

    @property
    def fold(self) -> Ints:
        return np.concatenate([self.recorded_fold, self.dialogue_fold]).astype(np.int64)


def _fused_folds(kb: KnowledgeBase, query_set: QuerySet | None, n_folds: int, seed: int) -> _FoldPlan:
    rng = np.random.default_rng(seed)
    fold_of_question = rng.permutation(len(kb.questions)) % n_folds
    names = sorted(set(query_set.dialogues)) if query_set else []
    fold_of = {name: number % n_folds for number, name in zip(rng.permutation(len(names)).tolist(), names, strict=True)}
    pair_fold = fold_of_question[kb.pair_question]
    in_fold = np.zeros((len(kb.answers), n_folds), dtype=bool)
    in_fold[kb.pair_answer, pair_fold] = True
    has_others = in_fold.sum(axis=1) > 1
    usable = np.unique(kb.pair_question[has_others[kb.pair_answer]])
    most = min(MOST_RECORDED, max(100, MOST_CELLS // (len(kb.answers) * len(PARTS))))
    recorded = np.sort(rng.permutation(usable)[:most]).astype(np.int64)
    return _FoldPlan(
        recorded,
        fold_of_question[recorded],
        np.array([fold_of[name] for name in query_set.dialogues] if query_set else [], dtype=np.int64),
    )


def cross_validate_fused(
    kb: KnowledgeBase,
    query_set: QuerySet | None,
    options: Fused,
    *,
    n_folds: int = N_FOLDS,
    work: Work = QUIET,
    seed: int = 0,
) -> FusedFolds:
    """Trains once per fold, so this takes ``n_folds`` times as long as fitting; dialogues are never split."""
    folds = _fused_folds(kb, query_set, n_folds, seed)
    n_recorded = len(folds.recorded)
    queries = [Query(kb.questions[row]) for row in folds.recorded] + list(query_set.queries if query_set else ())
    right = np.zeros((len(queries), len(kb.answers)), dtype=bool)
    for row, question in enumerate(folds.recorded):
        right[row, kb.answers_to(int(question))] = True
    if query_set:
        right[n_recorded:] = query_set.relevance(len(kb.answers))
    scores = np.zeros((*right.shape, len(PARTS)), dtype=np.float32)
    rankers: dict[int, Path] = {}
    for number in range(n_folds):
        others = query_set.subset(np.flatnonzero(folds.dialogue_fold != number)) if query_set else None
        rows = np.flatnonzero(folds.fold == number)
        of_recorded, of_dialogues = rows[rows < n_recorded], rows[rows >= n_recorded]
        repeated = _repeated(kb, [queries[row] for row in of_dialogues], options.model, work)
        held = folds.recorded[folds.recorded_fold == number].tolist()
        left = add_queries(kb.without_questions([*held, *repeated]), others)
        stage = work.during(f"Fold {number + 1} of {n_folds}")
        parts, _ = options.fit_parts(left, stage)
        for some, gone in ((of_recorded, held), (of_dialogues[::2], []), (of_dialogues[1::2], repeated)):
            if len(some):
                known = FusionParts(add_queries(kb.without_questions(gone), others), parts.encoder)
                can_be_found = known.kb.n_questions_of > 0
                scores[some] = np.where(can_be_found[:, None], known.all([queries[row] for row in some]), NOT_FOUND)
                right[some] &= can_be_found
        if options.n_read:
            rankers[number] = options.fit_ranker(left, stage)
    groups = (*(f"recorded-{number}" for number in folds.recorded_fold), *(query_set.dialogues if query_set else ()))
    from_dialogue = np.arange(len(queries)) >= n_recorded
    result = FusedFolds(
        folds.fold, groups, from_dialogue, scores, right, np.full(right.shape, np.nan, dtype=np.float32)
    )
    return _with_reading(result, rankers, kb, queries, work) if rankers else result


def _repeated(kb: KnowledgeBase, queries: list[Query], model: str, work: Work) -> list[int]:
    """Recorded questions that some queries repeat, by the encoder as it is."""
    if not queries:
        return []
    from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

    repeated: list[int] = repeated_questions(kb, queries, TextEncoder(model, work)).tolist()
    return repeated


def _with_reading(
    result: FusedFolds, rankers: dict[int, Path], kb: KnowledgeBase, queries: list[Query], work: Work
) -> FusedFolds:
    """Adds the rankers' scores of what comes first, each fold read by the ranker that did not know it."""
    from dialometer.retrieval.training.ranker import CrossEncoder  # noqa: PLC0415 - imports torch

    first = top_k(result.fused(), N_READ).answers
    for number, folder in rankers.items():
        ranker = CrossEncoder.load(folder, work)
        rows = np.flatnonzero(result.fold == number)
        at = np.repeat(rows, first.shape[1])
        columns = first[rows].ravel()
        result.read[at, columns] = ranker.scores(
            [queries[row].text for row in at.tolist()],
            [kb.answers[column].text for column in columns.tolist()],
            work,
            "Reading first answers",
        )
    return result


# Calibration of confidence: on questions that the retriever was not fitted with.

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
    whole = RankedAnswers(
        np.concatenate([ranking.answers for ranking in rankings]),
        np.concatenate([ranking.scores for ranking in rankings]),
    )
    return calibrate(whole, np.concatenate(right), cost_of_wrong=cost_of_wrong)


def calibrate_fused(folds: FusedFolds, n_read: int, *, cost_of_wrong: float = 1.0) -> Calibration:
    """From the out-of-fold scores of the fused retriever: its dialogues where it had any, else its recorded questions."""
    rows = folds.from_dialogue if folds.from_dialogue.any() else np.ones(len(folds.fold), dtype=bool)
    scores = folds.reranked(n_read) if n_read else folds.fused()
    ranking = top_k(scores[rows], 2)
    is_right = folds.right[rows][np.arange(int(rows.sum())), ranking.answers[:, 0]]
    return calibrate(ranking, np.asarray(is_right, dtype=bool), cost_of_wrong=cost_of_wrong)


def _folds(
    kb: KnowledgeBase, query_set: QuerySet | None, n_folds: int, seed: int
) -> Iterator[tuple[KnowledgeBase, QuerySet]]:
    """What is known in each fold, and what is then asked."""
    if query_set is None:
        yield from question_folds(kb, n_folds, seed)
    else:
        for known, rows in dialogue_folds(kb, query_set, n_folds, seed):
            yield known, query_set.subset(rows)


def _is_right(ranking: RankedAnswers, query_set: QuerySet) -> Marks:
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
    cross-validation (``n_folds`` further trainings), and the fused retriever's weights are folds anew; 0 folds leave both out.
    """
    parts: tuple[PartRow, ...] = ()
    calibration: Calibration | None = None
    if isinstance(retriever, Fused) and n_folds:
        folds = cross_validate_fused(kb, lessons, retriever, n_folds=n_folds, work=work, seed=seed)
        retriever = _with_weights(retriever, folds)
        parts = tuple(parts_table(folds, retriever.n_read, cuts))
        if held_out is None:
            calibration = calibrate_fused(folds, retriever.n_read, cost_of_wrong=cost_of_wrong)
    elif n_folds and held_out is None:
        calibration = calibrate_by_folds(
            kb, retriever, lessons, work, n_folds=n_folds, seed=seed, cost_of_wrong=cost_of_wrong
        )
    fitted = retriever.fit(add_queries(kb, lessons), work)
    if held_out is not None:
        calibration = calibrate_on(fitted, held_out, cost_of_wrong=cost_of_wrong)
    return TrainedRetriever(fitted, calibration, parts)


def _with_weights(retriever: Fused, folds: FusedFolds) -> Fused:
    weights = dict(zip(PARTS, folds.weights().tolist(), strict=True))
    read = folds.read_weight(folds.fused(), retriever.n_read) if retriever.n_read else retriever.read_weight
    return retriever.model_copy(update={"weights": weights, "read_weight": read})


def parts_table(folds: FusedFolds, n_read: int, cuts: Sequence[int]) -> list[PartRow]:
    """Success rates out of fold: all parts together, re-ranked, without each of them, and the plain nearest question.

    Over questions of dialogues, where there are any: they are what visitors ask.
    """
    rows = folds.from_dialogue if folds.from_dialogue.any() else np.ones(len(folds.fold), dtype=bool)

    def rates(scores: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> tuple[float, ...]:
        ranks = ranks_from_scores(scores[rows], folds.right[rows])
        return tuple(float(np.nanmean(success_at(ranks, k))) for k in cuts)

    table = [(f"only {PARTS[0]}", rates(folds.fused((PARTS[0],)))), ("all parts", rates(folds.fused()))]
    if n_read:
        table.append((f"all parts, first {n_read} re-ranked", rates(folds.reranked(n_read))))
    for part in PARTS:
        table.append((f"without {part}", rates(folds.fused(tuple(other for other in PARTS if other != part)))))
    return table
