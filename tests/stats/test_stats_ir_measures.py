"""Retrieval measures against definitions written out list by list, and scikit-learn."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from statsmodels.stats.proportion import proportion_confint

from dialometer.errors import DialometerError
from dialometer.stats.retrieval.metrics import (
    RelevantRanks,
    average_precision,
    compare_questions,
    mean_over_questions,
    ranks_from_hits,
    ranks_from_lists,
    ranks_from_scores,
    recall_at,
    reciprocal_rank,
    success_at,
)


def slow_measures(ordered, right, k):
    """One question by the book: ``ordered`` answers best first, ``right`` the set of right ones."""
    if not right:
        return (math.nan,) * 4
    found = [rank for rank, answer in enumerate(ordered, 1) if answer in right]
    precision = [sum(r <= rank for r in found) / rank for rank in found]
    within = [rank for rank in found if rank <= k]
    return len(within) / len(right), float(bool(within)), 1 / found[0] if found else 0.0, sum(precision) / len(right)


@st.composite
def score_tables(draw):
    n_questions, n_answers = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    size = n_questions * n_answers
    scores = draw(st.lists(st.one_of(st.integers(0, 4), st.just(math.nan)), min_size=size, max_size=size))
    marks = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    shape = (n_questions, n_answers)
    return np.array(scores, dtype=float).reshape(shape), np.array(marks).reshape(shape)


@given(score_tables(), st.integers(1, 5), st.sampled_from(["counting", "sorting"]))
def test_measures_by_the_book(table, k, road):
    scores, marks = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dialometer.stats.retrieval.metrics.FEW_RELEVANT", 100 if road == "counting" else 0)
        ranks = ranks_from_scores(scores, marks)
    mine = np.column_stack(
        [recall_at(ranks, k), success_at(ranks, k), reciprocal_rank(ranks), average_precision(ranks)]
    )
    for row, (score, mark) in enumerate(zip(scores, marks, strict=True)):
        retrieved = [int(a) for a in np.argsort(-score, kind="stable") if not math.isnan(score[a])]
        expected = slow_measures(retrieved, set(np.flatnonzero(mark).tolist()), k)
        assert mine[row] == pytest.approx(expected, nan_ok=True)


@given(score_tables(), st.sampled_from(["best", "worst"]))
def test_ties_at_best_or_worst_place(table, ties):
    scores, marks = table
    for few in (100, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dialometer.stats.retrieval.metrics.FEW_RELEVANT", few)
            ranks = ranks_from_scores(scores, marks, ties=ties)
        answers = np.argwhere(marks & ~np.isnan(scores))
        for rank, (question, answer) in zip(ranks.rank, answers, strict=True):
            row, own = scores[question], scores[question, answer]
            assert rank == (np.sum(row > own) + 1 if ties == "best" else np.sum(row >= own))


def test_average_precision_agrees_with_sklearn():
    rng = np.random.default_rng(1)
    scores, marks = rng.random((30, 50)), rng.random((30, 50)) < 0.1
    marks[:, 0] = True
    mine = average_precision(ranks_from_scores(scores, marks))
    peer = [average_precision_score(mark, score) for mark, score in zip(marks, scores, strict=True)]
    assert mine == pytest.approx(peer)


def test_three_ways_to_the_same_ranks():
    rng = np.random.default_rng(2)
    scores, marks = rng.random((20, 15)), rng.random((20, 15)) < 0.2
    by_score = ranks_from_scores(scores, marks)
    order = np.argsort(-scores, axis=1)
    by_list = ranks_from_lists(order, marks)
    by_sets = ranks_from_lists(order, [set(np.flatnonzero(mark).tolist()) for mark in marks])
    by_hits = ranks_from_hits(np.take_along_axis(marks, order, axis=1), marks.sum(axis=1))
    for other in (by_list, by_sets, by_hits):
        assert average_precision(other) == pytest.approx(average_precision(by_score), nan_ok=True)
        assert other.n_relevant.tolist() == by_score.n_relevant.tolist()


def test_short_lists_and_cuts():
    ranks = ranks_from_lists([[3, 1, -1], [0, 2, 4], [-1, -1, -1]], [{1, 5}, {4}, {0}])
    assert recall_at(ranks, 2).tolist() == [0.5, 0, 0]
    assert success_at(ranks, 3).tolist() == [1, 1, 0]
    assert reciprocal_rank(ranks) == pytest.approx([1 / 2, 1 / 3, 0])
    assert reciprocal_rank(ranks, 2) == pytest.approx([1 / 2, 0, 0])
    assert average_precision(ranks) == pytest.approx([0.25, 1 / 3, 0])
    assert average_precision(ranks, 2) == pytest.approx([0.25, 0, 0])
    with pytest.raises(DialometerError, match="twice"):
        ranks_from_lists([[1, 1]], [{1}])
    with pytest.raises(DialometerError, match="count from 1"):
        recall_at(ranks, 0)
    with pytest.raises(DialometerError, match="more hits"):
        ranks_from_hits([[True, True]], [1])
    with pytest.raises(DialometerError, match="match"):
        ranks_from_scores([[1.0, 2.0]], [[True]])


def evaluate(ranks, cuts=(1, 2, 10), *, unanswerable="exclude"):
    """All measures of a retriever; recall has no value where there is no right answer."""
    values = {f"recall@{k}": recall_at(ranks, k) for k in cuts}
    values |= {"MRR": reciprocal_rank(ranks), "MAP": average_precision(ranks)}
    values |= {f"success_rate@{k}": success_at(ranks, k) for k in cuts}
    return {
        name: mean_over_questions(
            value,
            label=name,
            unanswerable="exclude" if name.startswith("recall") else unanswerable,
            shares="wilson" if name.startswith("success") else "bootstrap",
        )
        for name, value in values.items()
    }


def test_questions_without_a_right_answer_are_never_silently_zero():
    ranks = ranks_from_scores([[3.0, 1], [1, 2], [1, 2]], [[True, False], [True, False], [False, False]])
    excluded, counted = evaluate(ranks, (1, 2)), evaluate(ranks, (1, 2), unanswerable="zero")
    assert excluded["success_rate@1"].value == pytest.approx(1 / 2)
    assert counted["success_rate@1"].value == pytest.approx(1 / 3)
    assert counted["MAP"].value == pytest.approx(0.5)
    assert counted["recall@2"].value == pytest.approx(1)
    assert "1 question without a right answer excluded" in excluded["MRR"].notes
    assert "counted as 0" in counted["MRR"].notes[0]
    assert excluded["MRR"].details["n_without_right_answer"] == 1
    none = evaluate(ranks_from_scores([[1.0]], [[False]]))
    assert not none["MAP"].is_known
    assert "mark right answers" in none["MAP"].notes[0]
    assert not mean_over_questions([]).is_known


def test_estimates_have_intervals():
    rng = np.random.default_rng(3)
    marks = rng.random((200, 20)) < 0.15
    found = evaluate(ranks_from_scores(rng.random((200, 20)), marks))
    success = found["success_rate@2"]
    n = int(np.sum(marks.any(axis=1)))
    wilson = proportion_confint(round(success.value * n), n, method="wilson")
    assert (success.low, success.high) == pytest.approx(wilson)
    assert found["MAP"].low < found["MAP"].value < found["MAP"].high
    assert "questions" in found["MAP"].interval_method


def test_compare_two_retrievers():
    rng = np.random.default_rng(4)
    marks = rng.random((150, 20)) < 0.15
    noise = rng.random((150, 20))
    good, bad = ranks_from_scores(noise + 0.5 * marks, marks), ranks_from_scores(noise, marks)
    estimate = compare_questions(average_precision(good), average_precision(bad))
    assert estimate.value == pytest.approx(np.nanmean(average_precision(good)) - np.nanmean(average_precision(bad)))
    assert estimate.low > 0
    assert estimate.p_value < 0.001
    assert (estimate.n_resamples, estimate.seed) == (10_000, 0), "those of the test and of its interval"
    assert estimate.interval_method == "inverted permutation test over questions"
    assert not compare_questions([0.5, 0.5], [0.5, 0.5]).is_known


def test_better_scores_never_hurt():
    rng = np.random.default_rng(6)
    scores, marks = rng.random((40, 12)), rng.random((40, 12)) < 0.3
    before, after = ranks_from_scores(scores, marks), ranks_from_scores(scores + 0.3 * marks, marks)
    for measure in (lambda r: recall_at(r, 3), lambda r: success_at(r, 1), reciprocal_rank, average_precision):
        assert np.all(np.nan_to_num(measure(after) - measure(before)) >= -1e-12)


def test_many_questions_take_little_time():
    rng = np.random.default_rng(8)
    scores = rng.random((20_000, 100))
    marks = np.zeros(scores.shape, dtype=bool)
    marks[np.arange(20_000)[:, None], rng.integers(0, 100, (20_000, 3))] = True
    started = time.perf_counter()
    ranks = ranks_from_scores(scores, marks)
    assert isinstance(ranks, RelevantRanks)
    for values in (recall_at(ranks, 10), success_at(ranks, 10), reciprocal_rank(ranks), average_precision(ranks)):
        assert 0 < values.mean() < 1
    assert time.perf_counter() - started < 60  # about 0.1 s when the machine is free
