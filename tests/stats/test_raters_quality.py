"""Single raters: agreement with the rest, gold items, straight-lining, answer times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from dialometer.errors import DialometerError
from dialometer.stats.agreement.rater_agreement import bias_from_rest, correlation_with_rest, exact_agreement_with_rest
from dialometer.stats.agreement.raters import answer_times, gold_accuracy, longest_run, straight_lining

NAN = float("nan")


@pytest.fixture
def ratings():
    """20 items by 5 raters with holes; the fourth rates at random, the fifth half a point higher."""
    rng = np.random.default_rng(7)
    matrix = rng.normal(3, 1, 20)[:, None] + rng.normal(0, 0.4, (20, 5))
    matrix[:, 3] = rng.normal(3, 1, 20)
    matrix[:, 4] += 0.5
    matrix[rng.random((20, 5)) < 0.2] = NAN
    return matrix


NAMES = ["r1", "r2", "r3", "r4", "r5"]


@pytest.mark.parametrize(("kind", "peer"), [("pearson", stats.pearsonr), ("spearman", stats.spearmanr)])
def test_correlation_with_the_rest_equals_scipy(ratings, kind, peer):
    result = correlation_with_rest(ratings, NAMES, kind=kind)
    for k, name in enumerate(NAMES):
        pairs = []
        for row in ratings:
            others = [x for j, x in enumerate(row) if j != k and not np.isnan(x)]
            if not np.isnan(row[k]) and others:
                pairs.append((row[k], np.mean(others)))
        expected = peer(*np.array(pairs).T)
        assert result[name].value == pytest.approx(expected.statistic, abs=1e-12)
        assert result[name].p_value == pytest.approx(expected.pvalue, rel=1e-8)
        assert result[name].n == len(pairs)
        if kind == "pearson":
            interval = expected.confidence_interval()
            assert (result[name].low, result[name].high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert min(result, key=lambda name: result[name].value) == "r4"


def test_bias_from_the_rest_equals_a_paired_t_test(ratings):
    result = bias_from_rest(ratings, NAMES)
    rest = np.array([[np.nanmean(np.delete(row, 4))] for row in ratings])[:, 0]
    shared = ~np.isnan(ratings[:, 4])
    peer = stats.ttest_rel(ratings[shared, 4], rest[shared])
    assert result["r5"].statistic == pytest.approx(peer.statistic)
    assert result["r5"].p_value == pytest.approx(peer.pvalue)
    interval = peer.confidence_interval()
    assert (result["r5"].low, result["r5"].high) == pytest.approx((interval.low, interval.high))
    assert result["r5"].low > 0


def test_exact_agreement_by_hand():
    labels = [[1, 1, 2], [2, 2, 2], [1, NAN, 2], [3, NAN, NAN]]
    result = exact_agreement_with_rest(labels, ["a", "b", "c"])
    assert result["a"].value == pytest.approx((0.5 + 1 + 0) / 3)
    assert result["a"].n == 3
    assert result["b"].value == pytest.approx((0.5 + 1) / 2)
    low, high = proportion_confint(1.5, 3, method="wilson")
    assert (result["a"].low, result["a"].high) == pytest.approx((low, high))


def test_raters_without_company_or_variation_are_unknown_with_a_reason():
    matrix = [[1, 4, NAN], [2, 4, NAN], [3, 4, NAN], [NAN, NAN, 5]]
    names = ["a", "flat", "alone"]
    correlation = correlation_with_rest(matrix, names)
    assert correlation["flat"].notes == ("gave 4 to every shared item",)
    assert "the same on every shared item" in correlation["a"].notes[0]
    assert correlation["alone"].notes == ("0 items shared with other raters; at least 3 are needed",)
    assert not exact_agreement_with_rest(matrix, names)["alone"].is_known
    assert not bias_from_rest(matrix, names)["alone"].is_known
    assert exact_agreement_with_rest(matrix, names)["a"].value == 0
    three = correlation_with_rest([[1, 2], [2, 1], [3, 4]], ["a", "b"])["a"]
    assert three.is_known
    assert not three.has_interval
    with pytest.raises(DialometerError, match="2 columns for 1 raters"):
        correlation_with_rest([[1, 2]], ["a"])


def test_gold_accuracy_has_wilsons_interval():
    rater = ["a"] * 10 + ["b"] * 4
    right = [True] * 9 + [False] + [False] * 4
    result = gold_accuracy(rater, right, raters=["a", "b", "c"])
    for name, (k, n) in {"a": (9, 10), "b": (0, 4)}.items():
        low, high = proportion_confint(k, n, method="wilson")
        assert result[name].value == k / n
        assert (result[name].low, result[name].high) == pytest.approx((max(low, 0), high))
    assert not result["c"].is_known
    assert "saw no gold item" in result["c"].notes[-1]
    with pytest.raises(DialometerError, match="2 raters for 1 answers"):
        gold_accuracy(["a", "b"], [True])


def test_straight_lining_follows_the_order_of_answers():
    rater = ["a", "a", "b", "a", "a", "a", "b"]
    value = [3, 5, 1, 3, 3, 3, 2]
    result = straight_lining(rater, value)
    assert (result["a"].longest_run, result["a"].run_value, result["a"].mode, result["a"].n) == (3, 3, 3, 5)
    assert result["a"].share_at_mode.value == pytest.approx(0.8)
    assert (result["b"].longest_run, result["b"].n_distinct) == (1, 2)
    turned = straight_lining(rater, value, order=[0, 2.5, 0, 1, 2, 3, 1])
    assert turned["a"].longest_run == 3
    assert straight_lining(["a"] * 4, [1, 2, 1, 2], order=[1, 3, 2, 4])["a"].longest_run == 2
    assert straight_lining([], []) == {}
    with pytest.raises(DialometerError, match="different length"):
        straight_lining(["a"], [1], order=[])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], (0, None)), (["x"], (1, "x")), ([1, 1, 2, 2, 2, 1], (3, 2)), ([1, 2, 2, 3, 3], (2, 2))],
)
def test_longest_run(values, expected):
    assert longest_run(values) == expected


def test_fast_and_slow_raters_stand_out():
    rng = np.random.default_rng(1)
    rater, duration = [], []
    for k in range(20):
        pace = {0: 0.3, 1: 200.0}.get(k, 10.0 * math.exp(rng.normal(0, 0.2)))
        rater += [f"r{k:02}"] * 15
        duration += (pace * np.exp(rng.normal(0, 0.1, 15))).tolist()
    result = answer_times(rater, duration)
    assert [name for name, times in result.items() if times.is_fast] == ["r00"]
    assert [name for name, times in result.items() if times.is_slow] == ["r01"]
    medians = np.log([np.exp(np.median(np.log(np.array(duration)[np.array(rater) == name]))) for name in result])
    expected = (medians - np.median(medians)) / stats.median_abs_deviation(medians, scale="normal")
    assert [times.robust_z.value for times in result.values()] == pytest.approx(expected, rel=1e-9)


def test_times_that_say_nothing_are_left_out_and_counted():
    result = answer_times(["a", "a", "b", "b", "c"], [1.0, 0.0, 2.0, NAN, -1.0])
    assert (result["a"].n, result["a"].n_dropped, result["a"].median_s) == (1, 1, pytest.approx(1.0))
    assert result["c"].robust_z.notes == ("no usable answer time",)
    assert math.isnan(result["c"].median_s)
    assert not result["c"].is_fast
    assert "2 raters; at least 3" in result["a"].robust_z.notes[0]
    same = answer_times(["a", "b", "c"], [5.0, 5.0, 9.0])
    assert "no measure of spread" in same["c"].robust_z.notes[0]
    assert answer_times([], []) == {}
    with pytest.raises(DialometerError, match="1 raters for 2 times"):
        answer_times(["a"], [1.0, 2.0])
