"""Differences of first answers hold for other raters and other questions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.analysis.families.candidates.answer_differences import answer_difference
from dialometer.analysis.families.candidates.pool import Pool
from dialometer.scales.likert import Likert


def pool_of_ratings(value: np.ndarray, rater: np.ndarray, candidate: np.ndarray, n_questions: int) -> Pool:
    """Two candidates a question, the even ones the first system's answer, the odd ones the second's."""
    n = 2 * n_questions
    rank = np.full((n, 2), np.nan)
    rank[0::2, 0] = rank[1::2, 1] = 1
    return Pool(
        criterion="fit", scale=Likert(points=5), systems=("a", "b"), labels=("A", "B"),
        items=tuple(f"i{k}" for k in range(n)), questions=tuple(f"q{k}" for k in range(n_questions)),
        question_texts=("",) * n_questions, question=np.repeat(np.arange(n_questions), 2), answers=(), answer=np.arange(n),
        candidate_texts=("",) * n, coreference=(None,) * n_questions,
        is_gold=np.zeros(n, dtype=bool), rank=rank, value=value.astype(float), rater=rater.astype(np.int64),
        rater_names=np.unique(rater), candidate=candidate.astype(np.int64),
    )  # fmt: skip


def difference(pool: Pool, **more: float):
    return answer_difference(pool, pool.first_answers(0), pool.first_answers(1), confidence=0.95, **more)


def test_raters_who_agree_leave_the_t_test_over_questions() -> None:
    rng = np.random.default_rng(1)
    quality = rng.normal(3, 1, 30)
    candidate, rater = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    value = quality[candidate]
    estimate = difference(pool_of_ratings(value, rater, candidate, 15))
    gaps = quality[0::2] - quality[1::2]
    assert estimate.value == pytest.approx(gaps.mean())
    assert estimate.statistic == pytest.approx(stats.ttest_1samp(gaps, 0).statistic)
    assert estimate.df == (3.0,)  # four raters: fewer than the questions


def test_the_part_of_the_raters_is_the_jackknife_of_refits() -> None:
    rng = np.random.default_rng(2)
    candidate, rater = np.repeat(np.arange(24), 5), np.tile(np.arange(5), 24)
    value = rng.normal(3, 0.1, 120) + rng.normal(0, 1, 5)[rater] * (candidate % 2)
    pool = pool_of_ratings(value, rater, candidate, 12)
    whole = difference(pool)
    without = []
    for left_out in range(5):
        kept = rater != left_out
        reduced = pool_of_ratings(value[kept], rater[kept], candidate[kept], 12)
        without.append(difference(reduced).value)
    expected = 4 / 5 * np.sum((np.array(without) - whole.value) ** 2)
    assert whole.details["standard_error"] ** 2 >= expected * (1 - 1e-9)
    assert whole.details["standard_error"] ** 2 == pytest.approx(expected, rel=0.05)


def test_the_same_answers_give_no_test() -> None:
    candidate, rater = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    pool = pool_of_ratings(np.arange(60) % 5 + 1, rater, candidate, 10)
    same = answer_difference(pool, pool.first_answers(0), pool.first_answers(0), confidence=0.95)
    assert same.value == 0
    assert math.isnan(same.p_value)
    assert "too few for a test" in same.notes[0]


@pytest.mark.parametrize(("n_raters", "n_questions", "rater_sd"), [(10, 12, 0.5), (24, 8, 0.0)])
def test_without_a_difference_few_studies_find_one(n_raters: int, n_questions: int, rater_sd: float) -> None:
    rng = np.random.default_rng(3)
    n, n_false = 400, 0
    for _ in range(n):
        taste = rng.normal(0, rater_sd, (n_raters, 2))
        quality = rng.normal(0, 0.8, 2 * n_questions)
        candidate = np.repeat(np.arange(2 * n_questions), 3)
        rater = np.concatenate([rng.choice(n_raters, 3, replace=False) for _ in range(2 * n_questions)])
        value = quality[candidate] + taste[rater, candidate % 2] + rng.normal(0, 0.5, len(rater))
        n_false += difference(pool_of_ratings(value, rater, candidate, n_questions)).p_value < 0.05
    assert n_false / n <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n)


def test_with_fixed_questions_only_raters_count() -> None:
    """Raters who agree leave no uncertainty about these questions; else it is the jackknife over raters."""
    rng = np.random.default_rng(4)
    quality = rng.normal(3, 1, 30)
    candidate, rater = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    alike = difference(pool_of_ratings(quality[candidate], rater, candidate, 15), has_fixed_questions=True)
    assert "no variation between raters" in alike.notes[0]
    value = quality[candidate] + rng.normal(0, 1, 120)
    whole = difference(pool_of_ratings(value, rater, candidate, 15), has_fixed_questions=True)
    without = []
    for left_out in range(4):
        kept = rater != left_out
        without.append(difference(pool_of_ratings(value[kept], rater[kept], candidate[kept], 15)).value)
    expected = 3 / 4 * np.sum((np.array(without) - whole.value) ** 2)
    assert whole.details["standard_error"] ** 2 == pytest.approx(expected)
    assert whole.df == (3.0,)
