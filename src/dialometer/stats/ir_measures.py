"""Retrieval measures per question and over questions, as Chierici and Habash (HumEval 2021, section 6.5) use them.

========================  ==============================================================================
``recall@k``              share of a question's right answers among the first k (Lowe et al. 2015)
``success_rate@k``        share of questions with at least one right answer among the first k
``MRR``                   mean of one over the rank of the first right answer; 0 where none was retrieved
``MAP``                   mean over right answers of the precision at their rank; 0 for those not retrieved
========================  ==============================================================================

A question without any right answer has no value (nan). Leaving such questions out is what ``trec_eval`` does; the paper
counts them as failures in success rate, MRR and MAP. Both are offered, and how many there were is always said.

Checked against definitions written out list by list and ``sklearn.metrics.average_precision_score``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, numbers, same_length
from dialometer.stats.permutation import permutation_paired
from dialometer.stats.proportion import proportion
from dialometer.stats.relevant_ranks import RelevantRanks
from dialometer.stats.summary import bootstrap_mean

__all__ = [
    "Unanswerable",
    "average_precision",
    "compare_questions",
    "evaluate",
    "mean_over_questions",
    "recall_at",
    "reciprocal_rank",
    "success_at",
]

Unanswerable = Literal["exclude", "zero"]


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
    *,
    label: str = "",
    unanswerable: Unanswerable = "exclude",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a per-question measure: Wilson's interval where it is 0 or 1, else a bootstrap over questions."""
    given = numbers(values)
    is_without = np.isnan(given)
    n_without = int(is_without.sum())
    y = np.where(is_without, 0.0, given) if unanswerable == "zero" else given[~is_without]
    how = "counted as 0" if unanswerable == "zero" else "left out"
    plural = "" if n_without == 1 else "s"
    notes = (f"{n_without} question{plural} without a right answer {how}",) if n_without else ()
    if len(y) == 0:
        why = (
            "no question has a right answer: mark right answers first"
            if n_without
            else "no questions: give at least one"
        )
        return unknown("mean over questions", why, label=label)
    if np.isin(y, (0.0, 1.0)).all() and label.startswith("success"):
        found = proportion(float(y.sum()), len(y), confidence=confidence, label=label)
        found = replace(found, method="share of questions")
    else:
        found = bootstrap_mean(y, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)
        found = replace(
            found,
            method="mean over questions",
            interval_method=found.interval_method.replace("values", "questions"),
        )
    return replace(found, notes=(*notes, *found.notes), details={**found.details, "n_without_right_answer": n_without})


def evaluate(
    ranks: RelevantRanks,
    cuts: Sequence[int] = (1, 2, 10),
    *,
    unanswerable: Unanswerable = "exclude",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """Recall and success rate at every cut, MRR and MAP, in the order of the paper's tables.

    ``unanswerable="zero"`` reproduces the paper's choice; recall has no value there and always leaves them out.
    """
    values: dict[str, Floats] = {f"recall@{k}": recall_at(ranks, k) for k in cuts}
    values |= {"MRR": reciprocal_rank(ranks), "MAP": average_precision(ranks)}
    values |= {f"success_rate@{k}": success_at(ranks, k) for k in cuts}
    return {
        name: mean_over_questions(
            value,
            label=name,
            unanswerable="exclude" if name.startswith("recall") else unanswerable,
            n_resamples=n_resamples,
            seed=seed,
            confidence=confidence,
        )
        for name, value in values.items()
    }


def compare_questions(
    first: ArrayLike,
    second: ArrayLike,
    *,
    n_permutations: int = 10_000,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Two retrievers on the same questions: mean difference (first minus second), paired.

    The p-value is a paired permutation test, the test of choice for retrieval (Smucker, Allan and Carterette 2007); the
    interval is a bootstrap over questions. Questions without a value on either side are left out.
    """
    one, two = numbers(first), numbers(second)
    same_length(first=one, second=two)
    tested = permutation_paired(one, two, n_permutations=n_permutations, seed=seed, label=label)
    if not tested.is_known:
        return tested
    spread = bootstrap_mean(one - two, n_resamples=n_resamples, seed=seed, confidence=confidence)
    return replace(
        tested,
        low=spread.low,
        high=spread.high,
        confidence=confidence,
        interval_method=spread.interval_method.replace("values", "questions"),
    )
