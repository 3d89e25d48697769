"""Retrieval metrics per question and over questions, as Chierici and Habash (HumEval 2021, section 6.5) use them.

========================  ==============================================================================
``recall@k``              share of a question's right answers among the first k (Lowe et al. 2015)
``success_rate@k``        share of questions with at least one right answer among the first k
``MRR``                   mean of one over the rank of the first right answer; 0 where none was retrieved
``MAP``                   mean over right answers of the precision at their rank; 0 for those not retrieved
========================  ==============================================================================

They need only the ranks of right answers. The rank of an answer is one plus the number of answers that score higher, so
ranks are counted; sorting every list would cost far more when few of many answers are right.

A question without any right answer has no value (nan). Leaving such questions out is what ``trec_eval`` does; the paper
counts them as failures in success rate, MRR and MAP. Both are offered, and the notes say how many there were.

Checked against definitions written out list by list and ``sklearn.metrics.average_precision_score``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.observations import Floats, Ints, codes, missing_note, numbers, same_length
from dialometer.stats.retrieval.sign_flips import sign_flips

RankTies = Literal["order", "best", "worst"]

BATCH_CELLS = 200_000  # fits in a processor's cache
FEW_RELEVANT = 12


@dataclass(frozen=True)
class RelevantRanks:
    """Every retrieved right answer as its question and rank (from 1), with how many right answers each question has."""

    question: Ints
    rank: Ints
    n_relevant: Ints

    @property
    def n_questions(self) -> int:
        """All questions, with those that have no right answer."""
        return len(self.n_relevant)


def ranks_from_scores(scores: ArrayLike, relevant: ArrayLike, *, ties: RankTies = "order") -> RelevantRanks:
    """Ranks from scores (questions by answers, higher is better, nan: not retrieved) and marks of the same shape.

    Equal scores rank in column order, or all at the best or the worst of their places.
    """
    values = np.asarray(scores, dtype=np.float64)
    marks = np.asarray(relevant, dtype=bool)
    if values.ndim != 2 or values.shape != marks.shape:
        shapes = f"scores {values.shape} and marks {marks.shape}"
        raise DialometerError(f"{shapes} do not match", remedy="give both as questions by answers")
    question, answer = np.divmod(np.flatnonzero(marks), max(marks.shape[1], 1))
    own = values[question, answer]
    is_retrieved = ~np.isnan(own)
    n_relevant = marks.sum(axis=1, dtype=np.int64)
    question, answer, own = question[is_retrieved], answer[is_retrieved], own[is_retrieved]
    if len(question) > FEW_RELEVANT * len(values):
        rank = _ranks_by_sorting(values, ties)[question, answer]
    else:
        rank = _ranks_by_counting(values, question, answer, own, ties)
    return RelevantRanks(question.astype(np.int64), rank, n_relevant)


def _ranks_by_counting(values: Floats, question: Ints, answer: Ints, own: Floats, ties: RankTies) -> Ints:
    n_answers = values.shape[1]
    rank = np.empty(len(question), dtype=np.int64)
    batch = max(1, BATCH_CELLS // max(n_answers, 1))
    column = np.arange(n_answers)
    for start in range(0, len(question), batch):
        part = slice(start, start + batch)
        rows, mine = values[question[part]], own[part, None]
        above = np.count_nonzero(rows > mine, axis=1)
        if ties == "best":
            rank[part] = above + 1
            continue
        upto = np.count_nonzero(rows >= mine, axis=1)
        rank[part] = upto if ties == "worst" else above + 1
        if ties == "order":
            tied = np.flatnonzero(upto - above > 1)
            if len(tied):
                is_before = (rows[tied] == mine[tied]) & (column < answer[part][tied, None])
                rank[start + tied] += np.count_nonzero(is_before, axis=1)
    return rank


def _ranks_by_sorting(values: Floats, ties: RankTies) -> Ints:
    """The rank of every answer, cheaper than counting where many are right."""
    order = np.argsort(-values, axis=1, kind="stable")
    rank = np.empty(values.shape, dtype=np.int64)
    n_answers = values.shape[1]
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(1, n_answers + 1), values.shape), axis=1)
    if ties == "order":
        return rank
    ordered = np.take_along_axis(values, order, axis=1)
    is_new = np.ones(values.shape, dtype=bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    place = np.broadcast_to(np.arange(1, n_answers + 1), values.shape)
    if ties == "best":
        shared = np.maximum.accumulate(np.where(is_new, place, 0), axis=1)
    else:
        is_last = np.ones(values.shape, dtype=bool)
        is_last[:, :-1] = is_new[:, 1:]
        last = np.where(is_last, place, n_answers + 1)
        shared = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    np.put_along_axis(rank, order, shared, axis=1)
    return rank


def ranks_from_hits(hits: ArrayLike, n_relevant: ArrayLike) -> RelevantRanks:
    """Ranks from lists already in order: ``hits[q, r]`` says whether the answer at rank r + 1 is right."""
    marks = np.asarray(hits, dtype=bool)
    total = np.asarray(n_relevant, dtype=np.int64)
    if marks.ndim != 2 or len(marks) != len(total):
        raise DialometerError("hits and numbers of right answers do not match", remedy="give one row per question")
    if np.any(marks.sum(axis=1) > total):
        raise DialometerError("a question has more hits than right answers", remedy="count every right answer once")
    question, place = np.nonzero(marks)
    return RelevantRanks(question.astype(np.int64), place.astype(np.int64) + 1, total)


def ranks_from_lists(retrieved: ArrayLike, relevant: ArrayLike | Sequence[Iterable[int]]) -> RelevantRanks:
    """Ranks from retrieved answer numbers (questions by ranks, best first, -1 for no answer).

    ``relevant`` is a matrix of marks (questions by answers) or, for each question, the numbers of its right answers.
    """
    lists = np.asarray(retrieved, dtype=np.int64)
    if lists.ndim != 2:
        raise DialometerError("retrieved answers are not a matrix", remedy="fill short lists with -1")
    marks = _marks(relevant, len(lists), int(lists.max(initial=-1)) + 1)
    _refuse_repeats(lists)
    is_filled = lists >= 0
    hits = np.zeros(lists.shape, dtype=bool)
    rows = np.broadcast_to(np.arange(len(lists))[:, None], lists.shape)
    hits[is_filled] = marks[rows[is_filled], lists[is_filled]]
    return ranks_from_hits(hits, marks.sum(axis=1))


def _marks(relevant: ArrayLike | Sequence[Iterable[int]], n_questions: int, least_width: int) -> NDArray[np.bool_]:
    if isinstance(relevant, np.ndarray) and relevant.ndim == 2:
        marks = relevant.astype(bool)
    else:
        sets = [np.fromiter(set(answers), dtype=np.int64) for answers in relevant]  # type: ignore[union-attr,arg-type]
        width = max([least_width, *(int(answers.max(initial=-1)) + 1 for answers in sets)])
        marks = np.zeros((len(sets), width), dtype=bool)
        for row, answers in enumerate(sets):
            marks[row, answers] = True
    if len(marks) != n_questions:
        raise DialometerError(f"{n_questions} lists but {len(marks)} questions", remedy="give one row per question")
    if marks.shape[1] < least_width:
        raise DialometerError("a retrieved answer has no mark", remedy="the marks need a column for every answer")
    return marks


def _refuse_repeats(lists: Ints) -> None:
    """An answer listed twice would count twice; that is a fault of the retriever, not a better list."""
    ordered = np.sort(lists, axis=1)
    if np.any((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)):
        raise DialometerError("a list holds an answer twice", remedy="list every answer once")


Unanswerable = Literal["exclude", "zero"]
ShareInterval = Literal["wilson", "bootstrap"]


def _check_cut(k: int | None) -> None:
    if k is not None and k < 1:
        raise DialometerError(f"cut at rank {k}", remedy="ranks count from 1")


def _known(ranks: RelevantRanks, values: Floats) -> Floats:
    return np.where(ranks.n_relevant > 0, values, np.nan)


def _hits_within(ranks: RelevantRanks, k: int) -> Floats:
    within = ranks.question[ranks.rank <= k]
    return np.bincount(within, minlength=ranks.n_questions).astype(np.float64)


def recall_at(ranks: RelevantRanks, k: int) -> Floats:
    """For each question the share of its right answers among the first k; nan where it has none."""
    _check_cut(k)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(_hits_within(ranks, k) / ranks.n_relevant)


def success_at(ranks: RelevantRanks, k: int) -> Floats:
    """For each question 1 if a right answer is among the first k, else 0; nan where it has no right answer."""
    _check_cut(k)
    return _known(ranks, (_hits_within(ranks, k) > 0).astype(np.float64))


def reciprocal_rank(ranks: RelevantRanks, k: int | None = None) -> Floats:
    """For each question one over the rank of its first right answer (within k if given), 0 if there is none."""
    _check_cut(k)
    best = np.zeros(ranks.n_questions)
    is_seen = ranks.rank <= k if k is not None else np.ones(len(ranks.rank), dtype=bool)
    np.maximum.at(best, ranks.question[is_seen], 1 / ranks.rank[is_seen])
    return _known(ranks, best)


def average_precision(ranks: RelevantRanks, k: int | None = None) -> Floats:
    """For each question the mean, over all its right answers, of the precision at their ranks (0 beyond k)."""
    _check_cut(k)
    if len(ranks.rank) == 0:
        return _known(ranks, np.zeros(ranks.n_questions))
    key = ranks.question * (int(ranks.rank.max()) + 1) + ranks.rank
    order = np.argsort(key, kind="stable")
    question, rank = ranks.question[order], ranks.rank[order]
    n_found = np.bincount(question, minlength=ranks.n_questions)
    first = np.cumsum(n_found) - n_found
    precision = (np.arange(len(question)) - first[question] + 1) / rank
    if k is not None:
        precision[rank > k] = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.bincount(question, weights=precision, minlength=ranks.n_questions)
        return np.asarray(total / ranks.n_relevant)


def mean_over_questions(
    values: ArrayLike,
    dialogues: ArrayLike | None = None,
    *,
    label: str = "",
    unanswerable: Unanswerable = "exclude",
    shares: ShareInterval = "bootstrap",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a metric of each question, with a bootstrap interval over questions, or over whole dialogues if given.

    With ``shares="wilson"``, a metric that is only ever 0 or 1 is a share of questions and has Wilson's interval. It has that
    interval in any case where every question has the same 0 or 1, which no resample can change.
    """
    array = numbers(values)
    is_without = np.isnan(array)
    n_without = int(is_without.sum())
    is_kept = np.ones(len(array), dtype=bool) if unanswerable == "zero" else ~is_without
    y = np.where(is_without, 0.0, array)[is_kept]
    how = "counted as 0" if unanswerable == "zero" else "excluded"
    plural = "" if n_without == 1 else "s"
    notes = (f"{n_without} question{plural} without a right answer {how}",) if n_without else ()
    if len(y) == 0:
        why = (
            "no question has a right answer: mark right answers first"
            if n_without
            else "no questions: give at least one"
        )
        return unknown("mean over questions", why, label=label)
    if np.isin(y, (0.0, 1.0)).all() and (shares == "wilson" or np.ptp(y) == 0):
        estimate = proportion(float(y.sum()), len(y), confidence=confidence, label=label)
        estimate = replace(estimate, method="share of questions")
    else:
        groups = None if dialogues is None else np.asarray(dialogues)[is_kept]
        estimate = bootstrap_mean(y, groups, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)
        estimate = replace(estimate, method="mean over questions", interval_method=_over_questions(estimate))
    details = {**estimate.details, "n_without_right_answer": n_without}
    return replace(estimate, notes=(*notes, *estimate.notes), details=details)


def _over_questions(estimate: Estimate) -> str:
    """The interval in the words of retrieval: values are those of questions, and what groups them are dialogues."""
    return estimate.interval_method.replace("values", "questions").replace("raters", "dialogues")


def compare_questions(
    first: ArrayLike,
    second: ArrayLike,
    dialogues: ArrayLike | None = None,
    *,
    n_permutations: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Two retrievers on the same questions: mean difference (first minus second), paired.

    The p-value is a paired permutation test, the test of choice for retrieval (Smucker, Allan and Carterette 2007); the
    interval holds the values that this test does not reject. With ``dialogues``, signs are flipped by whole dialogue.
    Questions without a value on either side are left out.
    """
    a, b = numbers(first), numbers(second)
    same_length(first=a, second=b)
    is_given = ~np.isnan(a - b)
    difference, n = (a - b)[is_given], int(is_given.sum())
    notes = missing_note(int(np.sum(~is_given)))
    method = "two-sided paired permutation test of the mean difference"
    if not n:
        return unknown(method, "no pairs: both sides are needed for at least one entry", label=label)
    groups = np.arange(n) if dialogues is None else codes(np.asarray(dialogues)[is_given])[0]
    if np.allclose(np.bincount(groups, weights=difference), 0, atol=1e-12):
        return unknown(method, "no pair differs: the test needs at least one that does", n=n, label=label)
    result = sign_flips(difference, groups, n_permutations=n_permutations, seed=seed, confidence=confidence)
    low, high, how = result.low, result.high, "inverted permutation test"
    if math.isnan(low):
        notes = (*notes, "so few questions differ that the test rejects no value: no confidence interval")
    elif np.ptp(difference) == 0 and abs(difference[0]) == 1 and np.isin(a[is_given], (0.0, 1.0)).all():
        ends = proportion(n, n, confidence=confidence)
        low, high, how = *sorted(float(difference[0]) * end for end in (ends.low, ends.high)), ends.interval_method
    elif np.ptp(difference) == 0:
        low, high, notes = math.nan, math.nan, (*notes, "all differences are equal: no confidence interval")
    return Estimate(
        value=float(difference.mean()),
        n=n,
        method=f"{method}, {result.how}" if result.how else method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=f"{how} over {'questions' if dialogues is None else 'dialogues'}",
        p_value=result.p_value,
        seed=seed if result.n_drawn else None,
        n_resamples=result.n_drawn,
        label=label,
        notes=notes,
    )
