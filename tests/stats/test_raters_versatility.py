"""Versatile and one-sided questions, as section 6.4 of Chierici and Habash (2021) defines them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import variation

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.stats.retrieval.versatility import coefficient_of_variation, versatility


def long(pairs):
    """{(question, answer): ratings} as three columns."""
    rows = [(q, a, r) for (q, a), ratings in pairs.items() for r in ratings]
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(("ratings", "published"), [([3, 4, 5], 0.25), ([1, 2, 3], 0.50), ([5, 5, 5], 0.0)])
def test_three_ratings_give_the_published_thresholds(ratings, published):
    assert coefficient_of_variation(ratings) == pytest.approx(published)
    assert coefficient_of_variation(ratings) == pytest.approx(variation(ratings, ddof=1))


@pytest.mark.parametrize("ratings", [[], [4], [0, 0, 0], [-1, 1], [math.nan, 3]])
def test_no_variation_is_claimed_where_there_is_none_to_measure(ratings):
    assert math.isnan(coefficient_of_variation(ratings))


def test_sets_are_taken_at_the_level_of_questions():
    pairs = {
        ("open", "a1"): [1, 3, 5],  # CoV 0.667
        ("open", "a2"): [1, 2, 3],  # 0.5
        ("mixed", "a1"): [1, 1, 5],  # 0.990
        ("mixed", "a3"): [5, 5, 5],  # 0
        ("narrow", "a2"): [4, 4, 5],  # 0.133
        ("narrow", "a3"): [3, 4, 5],  # 0.25
        ("middle", "a4"): [2, 3, 4],  # 0.333
    }
    result = versatility(*long(pairs))
    assert result.median == pytest.approx(1 / 3)
    assert result.percentile_75 == pytest.approx((0.5 + 2 / 3) / 2)
    questions = result.questions
    assert questions.high == {"open", "mixed"}
    assert questions.low == {"mixed", "narrow"}
    assert questions.both == {"mixed"}
    assert questions.versatile == {"open"}
    assert questions.one_sided == {"narrow"}
    assert result.answers.versatile == {"a1"}
    assert result.answers.one_sided == {"a2", "a3"}
    assert questions.mean_cov["open"] == pytest.approx((0.5 + 2 / 3) / 2)


def test_published_counts_follow_from_the_set_arithmetic():
    """167 questions in A, 239 in B, 133 in both: 34 versatile and 106 one-sided, as the paper reports."""
    pairs = {}
    for k in range(273):
        in_a, in_b = k < 167, k >= 34
        if in_a:
            pairs[(f"q{k}", "wide")] = [1, 3, 5]
        if in_b:
            pairs[(f"q{k}", "tight")] = [5, 5, 5]
        pairs[(f"q{k}", "middle")] = pairs[(f"q{k}", "middle2")] = [3, 4, 5]
    result = versatility(*long(pairs))
    questions = result.questions
    assert (result.median, result.percentile_75) == (pytest.approx(0.25), pytest.approx(0.25))
    assert (len(questions.high), len(questions.low), len(questions.both)) == (167, 239, 133)
    assert (len(questions.versatile), len(questions.one_sided)) == (34, 106)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("pqrs"), st.sampled_from("abcd")),
        st.lists(st.integers(1, 5), min_size=2, max_size=4),
        min_size=1,
    ),
    st.floats(0.1, 10),
)
def test_the_unit_of_the_scale_does_not_matter(pairs, factor):
    question, answer, rating = long(pairs)
    base = versatility(question, answer, rating)
    assert base.n_unusable == 0
    assert not base.questions.versatile & base.questions.one_sided
    assert base.questions.high | base.questions.low <= set(question)
    scaled = versatility(question, answer, [value * factor for value in rating])
    assert np.allclose(scaled.cov, base.cov)
    assert scaled.questions.versatile == base.questions.versatile
    assert scaled.answers.one_sided == base.answers.one_sided


def test_pairs_rated_once_are_counted_not_used():
    result = versatility(["p", "p", "q"], ["a", "a", "b"], [1, 3, 4])
    assert result.n_unusable == 1
    assert result.questions.mean_cov.keys() == {"p"}
    with pytest.raises(NotEnoughData, match="no pair has two ratings"):
        versatility(["p"], ["a"], [3])
    with pytest.raises(DialometerError, match="1 questions, 2 answers"):
        versatility(["p"], ["a", "b"], [3])
