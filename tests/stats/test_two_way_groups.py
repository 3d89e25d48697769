"""Differences between groups of answers that hold for other raters and other items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.clustered.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.two_way import two_way_linear
from dialometer.stats.clustered.two_way_groups import min_f, two_way_differences, two_way_homogeneity


def nested(n_raters: int, n_groups: int, n_items: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every rater answers every item; items belong to groups."""
    rater, item = np.divmod(np.arange(n_raters * n_groups * n_items), n_groups * n_items)
    return rater, item // n_items, item


def test_min_f_is_clarks_formula() -> None:
    """F1(2, 30) = 8.2 and F2(2, 12) = 3.9 by hand: 8.2·3.9/12.1 = 2.643, df = 12.1²/(8.2²/12 + 3.9²/30)."""
    statistic, df = min_f(8.2, 30, 3.9, 12)
    assert statistic == pytest.approx(2.6429752)
    assert df == pytest.approx(146.41 / (67.24 / 12 + 15.21 / 30))


def test_items_that_belong_to_one_group_are_compared_by_their_means() -> None:
    """Where raters leave no doubt, min F' is the analysis of variance of the items' means (here ratings, no logits)."""
    rng = np.random.default_rng(1)
    rater, group, item = nested(200, 3, 4)
    level = rng.normal(0, 1, 12)
    y = 5 + level[item] + 0.01 * rng.normal(size=len(rater))
    found = two_way_homogeneity(y, group, rater, item)
    expected = stats.f_oneway(level[:4], level[4:8], level[8:])
    assert found.statistic == pytest.approx(expected.statistic, rel=0.01)
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.02)


def test_fixed_items_are_the_test_over_raters() -> None:
    rng = np.random.default_rng(2)
    rater, group, _ = nested(20, 3, 2)
    y = (rng.random(len(rater)) < 0.6).astype(float)
    assert two_way_homogeneity(y, group, rater, None) == homogeneity_clustered(y, group, rater)
    assert two_way_differences(y, group, rater, None) == pairwise_clustered(y, group, rater)


def test_a_difference_is_welchs_test_of_items_where_raters_agree() -> None:
    """The jackknife over 12 items (CV3) is Welch's variance times (11/12) / (5/6), on the safe side; df is n1 + n2 - 2."""
    rng = np.random.default_rng(3)
    rater, group, item = nested(30, 2, 6)
    level = rng.normal(0, 1, 12)
    y = 20 + level[item]
    found = two_way_differences(y, group, rater, item)["0", "1"]
    expected = stats.ttest_ind(level[:6], level[6:])
    assert found.statistic == pytest.approx(expected.statistic / math.sqrt(1.1), rel=1e-6)
    assert found.df[0] == pytest.approx(10)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(found.statistic), 10), rel=1e-6)


def test_degrees_of_freedom_within_groups_of_unequal_items() -> None:
    """Welch's formula with the sampling variance of a mean of n equal answers, 1/n_g: 2 and 8 items."""
    item = np.repeat(np.arange(10), 12)
    rater = np.tile(np.arange(12), 10)
    is_first = (item < 2).astype(float)
    _, variance = two_way_linear(np.arange(120.0), np.column_stack([is_first, 1 - is_first]), rater, item)
    _, df = variance.contrast([1.0, -1.0], (np.arange(10) < 2).astype(int))
    a, b = 1 / 24, 1 / 96
    assert df == pytest.approx(min(11, (a + b) ** 2 / (a**2 / 1 + b**2 / 7)))


def test_one_item_in_a_group_leaves_no_test() -> None:
    rng = np.random.default_rng(4)
    rater, group, item = nested(15, 3, 1)
    y = (rng.random(len(rater)) < 0.6).astype(float)
    whole = two_way_homogeneity(y, group, rater, item)
    assert math.isnan(whole.p_value)
    assert "fewer than two items" in whole.notes[-1]
    one = two_way_differences(y, group, rater, item)["0", "1"]
    assert one.value == pytest.approx(y[group == 0].mean() - y[group == 1].mean())
    assert (math.isnan(one.p_value), math.isnan(one.low)) == (True, True)


def test_answers_without_any_spread_have_no_interval_of_no_width() -> None:
    rater, group, item = nested(8, 2, 3)
    y = (group == 0).astype(float)
    found = two_way_differences(y, group, rater, item)["0", "1"]
    assert found.value == 1.0
    assert not found.has_interval


@pytest.mark.parametrize(("n_groups", "n_items"), [(5, 2), (2, 3)])
def test_groups_and_questions_that_do_not_differ_are_rarely_said_to(n_groups: int, n_items: int) -> None:
    """Items differ, overall and from question to question; by raters alone more than half of the tests would be false."""
    rng = np.random.default_rng(5)
    n_sims, n_raters, n_questions = 100, 30, 3
    rater, group, item = (np.repeat(a, n_questions) for a in nested(n_raters, n_groups, n_items))
    question = np.tile(np.arange(n_questions), len(rater) // n_questions)
    n_false = {"groups": 0, "questions": 0, "differences": 0, "by raters": 0}
    for _ in range(n_sims):
        level = rng.normal(0, 0.6, (n_groups * n_items, 1)) + rng.normal(0, 0.6, (n_groups * n_items, n_questions))
        y = (rng.normal(0, 0.7, len(rater)) + level[item, question] > 0).astype(float)
        n_false["groups"] += two_way_homogeneity(y, group, rater, item).p_value < 0.05
        n_false["questions"] += two_way_homogeneity(y, question, rater, item).p_value < 0.05
        n_false["by raters"] += homogeneity_clustered(y, question, rater).p_value < 0.05
        two = group < 2
        first = two_way_differences(y[two], group[two], rater[two], item[two])["0", "1"]
        n_false["differences"] += first.p_value < 0.05
    limit = 5 + 3 * math.sqrt(5 * 0.95)
    assert n_false.pop("by raters") > 50
    assert max(n_false.values()) < limit, n_false
