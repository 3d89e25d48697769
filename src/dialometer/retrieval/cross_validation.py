"""Weights and honest measures for the fused retriever: everything that learns is trained without what it is then asked.

In each fold a share of the recorded questions and of the dialogues is held out together. Encoder and ranker are trained on the
rest, the held-out questions are asked, and their scores are kept. From these out-of-fold scores come the weights; and for the
measures, the weights that score a fold come from the other folds only.

Questions of dialogues are asked of the whole knowledge base, as an avatar would be. A recorded question is asked of a knowledge
base without its fold, and only where an answer of it keeps another question: an answer without any never occurs in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.fusion import PARTS, CandidateLists, FusionParts, candidate_lists, choose_weights
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import FittedRetriever, Retriever, top_k

if TYPE_CHECKING:
    from dialometer.retrieval.retrievers.fused import Fused


Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
N_FOLDS = 3
"""Each fold is a training of its own, minutes on a processor; three leave two thirds to learn from."""
N_READ = 30
MOST_RECORDED = 2000
"""Recorded questions that are asked back; more would not make weights of a few parts any surer."""
MOST_CELLS = 150_000_000
"""Scores held at once, answers by parts for every question asked back: fewer questions where there are very many answers."""


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
class _Folds:
    """What is asked in which fold: recorded questions by number, and those of dialogues by row."""

    recorded: Ints
    recorded_fold: Ints
    dialogue_fold: Ints

    @property
    def fold(self) -> Ints:
        return np.concatenate([self.recorded_fold, self.dialogue_fold]).astype(np.int64)


def _folds(kb: KnowledgeBase, query_set: QuerySet | None, n_folds: int, seed: int) -> _Folds:
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
    return _Folds(
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
    folds = _folds(kb, query_set, n_folds, seed)
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
        held = folds.recorded[folds.recorded_fold == number]
        left = add_queries(kb.without_questions(held.tolist()), others)
        stage = work.during(f"Fold {number + 1} of {n_folds}")
        parts, _ = options.fit_parts(left, stage)
        rows = np.flatnonzero(folds.fold == number)
        for some, known in ((rows[rows < n_recorded], parts), (rows[rows >= n_recorded], None)):
            if len(some):
                of_known = known or FusionParts(add_queries(kb, others), parts.encoder)
                scores[some] = of_known.all([queries[row] for row in some])
        if options.n_read:
            rankers[number] = options.fit_ranker(left, stage)
    groups = (*(f"recorded-{number}" for number in folds.recorded_fold), *(query_set.dialogues if query_set else ()))
    from_dialogue = np.arange(len(queries)) >= n_recorded
    found = FusedFolds(folds.fold, groups, from_dialogue, scores, right, np.full(right.shape, np.nan, dtype=np.float32))
    return _with_reading(found, rankers, kb, queries, work) if rankers else found


def _with_reading(
    found: FusedFolds, rankers: dict[int, Path], kb: KnowledgeBase, queries: list[Query], work: Work
) -> FusedFolds:
    """Adds the rankers' scores of what comes first, each fold read by the ranker that did not know it."""
    from dialometer.retrieval.ranker import CrossEncoder  # noqa: PLC0415 - imports torch

    first = top_k(found.fused(), N_READ).answers
    for number, folder in rankers.items():
        ranker = CrossEncoder.load(folder, work)
        rows = np.flatnonzero(found.fold == number)
        at = np.repeat(rows, first.shape[1])
        columns = first[rows].ravel()
        found.read[at, columns] = ranker.scores(
            [queries[row].text for row in at.tolist()],
            [kb.answers[column].text for column in columns.tolist()],
            work,
            "Reading first answers",
        )
    return found


# Measuring a retriever that learns from dialogues without asking it what it has learned: folds of whole dialogues.


def dialogue_folds(
    kb: KnowledgeBase, query_set: QuerySet, n_folds: int, seed: int = 0
) -> Iterator[tuple[KnowledgeBase, NDArray[np.int64]]]:
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
