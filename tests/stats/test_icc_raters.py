"""ICCs with raters and items excluded, and intervals that hold where raters are not alike."""

import numpy as np
import pytest

from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.left_out import CompleteTable, HoledTable
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.icc.unequal_raters import METHOD, over_raters_and_items

CLUSTER = np.arange(30) // 3
GROUPS = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0, 1]], dtype=float)


def ratings(seed, n=30, k=7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=k) + rng.normal(size=(n, k))


@pytest.mark.parametrize(
    ("model", "form"), [("one_way", "ICC(1,1)"), ("agreement", "ICC(2,1)"), ("consistency", "ICC(3,1)")]
)
@pytest.mark.parametrize("is_clustered", [False, True])
def test_complete_tables_without_each_rater_and_item(model, form, is_clustered):
    matrix = ratings(1)
    cluster = CLUSTER if is_clustered else np.arange(30)
    left = CompleteTable(matrix, CLUSTER if is_clustered else None).left_out(GROUPS, model)
    for row, members in enumerate(GROUPS > 0):
        own = matrix[:, members]
        assert left.values[row] == pytest.approx(icc(own, form).value, abs=1e-12)
        expected = [icc(np.delete(own, place, axis=1), form).value for place in range(own.shape[1])]
        np.testing.assert_allclose(left.without_raters[row, members], expected, atol=1e-12)
        expected = [icc(own[cluster != number], form).value for number in range(cluster.max() + 1)]
        np.testing.assert_allclose(left.without_items[row], expected, atol=1e-12)
        without = left.without_raters[row, members]
        k = len(without)
        assert left.rater_variance()[row] == pytest.approx((k - 1) * without.var(), rel=1e-9)


def one_way(matrix):
    item, rater = np.nonzero(~np.isnan(matrix))
    return icc_one_way(matrix[item, rater], item).value


@pytest.mark.parametrize("is_sparse", [False, True])
def test_tables_with_holes_without_each_rater_and_item(monkeypatch, is_sparse):
    if is_sparse:
        monkeypatch.setattr("dialometer.stats.icc.left_out._MOST_DENSE", 10)
    matrix = ratings(2)
    matrix[np.random.default_rng(3).random(matrix.shape) < 0.4] = np.nan
    item, rater = np.nonzero(~np.isnan(matrix))
    left = HoledTable(matrix[item, rater], item, rater, CLUSTER[item]).left_out(GROUPS)
    for row, members in enumerate(GROUPS > 0):
        own = matrix[:, members]
        assert left.values[row] == pytest.approx(one_way(own), abs=1e-12)
        expected = [one_way(np.delete(own, place, axis=1)) for place in range(own.shape[1])]
        np.testing.assert_allclose(left.without_raters[row, members], expected, atol=1e-12)
        expected = [one_way(own[number != CLUSTER]) for number in range(10)]
        np.testing.assert_allclose(left.without_items[row], expected, atol=1e-12)


def rows(matrix):
    item, rater = np.nonzero(~np.isnan(matrix))
    return matrix[item, rater], item, rater


def study(rng, n_raters, careless, *, share_seen=1.0, n=60):
    """Raters of a population in which some answer 70% of the things at random; quality has variance 0.5, noise 0.25."""
    quality = np.sqrt(0.5) * rng.normal(size=(n, 1))
    perceived = quality + 0.5 * rng.normal(size=(n, n_raters))
    is_random = (rng.random(n_raters) < careless) & (rng.random((n, n_raters)) < 0.7)
    table = np.where(is_random, 1.5 * rng.normal(size=(n, n_raters)), perceived) + 0.3 * rng.normal(size=n_raters)
    table[rng.random(table.shape) > share_seen] = np.nan
    return table


def truth(careless, form):
    """The ICC of the population of raters: mean covariance of two raters over the variance of one rating."""
    both = ((1 - careless) + 0.3 * careless) ** 2 * 0.5
    variance = (1 - careless) * 0.75 + careless * (0.3 * 0.75 + 0.7 * 2.25)
    return both / (variance + (0.09 if form == "ICC(2,1)" else 0.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "n_raters", "share_seen"),
    [("ICC(2,1)", 77, 1.0), ("ICC(3,1)", 20, 1.0), ("ICC(3,1)", 40, 1.0), ("ICC(1,1)", 60, 0.2), ("ICC(2,1)", 40, 0.5)],
)
def test_intervals_cover_with_careless_raters_where_classical_ones_do_not(form, n_raters, share_seen):
    rng = np.random.default_rng(4)
    population = truth(0.05, "ICC(2,1)" if form == "ICC(1,1)" else form)
    n_trials, covered, classical = 150, 0, 0
    for _ in range(n_trials):
        table = study(rng, n_raters, 0.05, share_seen=share_seen)
        if share_seen == 1:
            plain = icc(table, form)
        elif form == "ICC(1,1)":
            plain = icc_one_way(*rows(table)[:2], form)
        else:
            plain = icc_crossed(*rows(table), form, interval="wald")
        wide = over_raters_and_items(plain, *rows(table))
        assert wide.value == plain.value
        covered += wide.low <= population <= wide.high
        classical += plain.low <= population <= plain.high
    assert covered / n_trials >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / n_trials)
    assert classical < covered


def test_intervals_are_not_needlessly_wide_where_raters_are_alike_and_many():
    table = study(np.random.default_rng(5), 77, 0.0, n=150)
    plain = icc(table, "ICC(3,1)")
    wide = over_raters_and_items(plain, *rows(table))
    assert wide.high - wide.low < 1.6 * (plain.high - plain.low)


def test_average_forms_follow_by_spearman_brown():
    table = study(np.random.default_rng(6), 12, 0.1)
    single, average = (over_raters_and_items(icc(table, form), *rows(table)) for form in ("ICC(2,1)", "ICC(2,k)"))
    for end in ("value", "low", "high"):
        one = getattr(single, end)
        assert getattr(average, end) == pytest.approx(12 * one / (1 + 11 * one), rel=1e-9)
    assert average.interval_method == METHOD


def test_two_raters_keep_the_classical_interval():
    table = ratings(7, k=2)
    plain = icc(table)
    kept = over_raters_and_items(plain, *rows(table))
    assert (kept.low, kept.high) == (plain.low, plain.high)
    assert "two raters" in kept.notes[-1]


def test_fixed_items_and_clusters_change_the_interval():
    table = study(np.random.default_rng(8), 12, 0.0)
    plain = icc(table)
    wide = over_raters_and_items(plain, *rows(table))
    fixed = over_raters_and_items(plain, *rows(table), has_fixed_items=True)
    assert wide.low < fixed.low < fixed.high < wide.high
    values, item, rater = rows(table)
    clustered = over_raters_and_items(plain, values, item, rater, clusters=item // 3)
    assert clustered.low != wide.low


def test_p_and_interval_are_one_test():
    """p is .05 where the end of the 95% interval is 0, whichever side it is on."""
    rng = np.random.default_rng(5)
    n_significant = 0
    for trial in range(60):
        matrix = rng.uniform(0, 1.5) * rng.normal(size=(40, 1)) + rng.normal(size=(40, 8))
        if trial % 4 == 0:
            matrix -= 0.95 * matrix.mean(axis=1, keepdims=True)  # raters who contradict each other
        item, rater = (index.ravel() for index in np.indices(matrix.shape))
        result = over_raters_and_items(icc(matrix, "ICC(2,1)"), matrix.ravel(), item, rater)
        assert (result.p_value < 0.05) == (not result.low <= 0 <= result.high)
        n_significant += result.p_value < 0.05
    assert 10 < n_significant < 50
