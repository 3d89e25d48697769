"""Shares of answers and quantiles against statsmodels, scipy and published cells."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from dialometer.errors import DialometerError
from dialometer.stats.clustered.proportion import (
    clopper_pearson_interval,
    proportion,
    proportion_difference,
    quantile,
    wilson_interval,
)

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_agree_with_statsmodels(pair, confidence):
    successes, n = pair
    wilson = proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    exact = proportion_confint(successes, n, alpha=1 - confidence, method="beta")
    assert wilson_interval(successes, n, confidence=confidence) == pytest.approx(wilson, abs=1e-12)
    assert clopper_pearson_interval(successes, n, confidence=confidence) == pytest.approx(exact, abs=1e-9)


@given(counts)
def test_intervals_mirror_and_contain_the_share(pair):
    successes, n = pair
    for interval in (wilson_interval, clopper_pearson_interval):
        low, high = interval(successes, n)
        other_low, other_high = interval(n - successes, n)
        assert (low, high) == pytest.approx((1 - other_high, 1 - other_low), abs=1e-9)
        assert 0 <= low <= successes / n <= high <= 1


def test_clopper_pearson_covers_at_least_its_confidence():
    n, share = 20, 0.3
    intervals = [clopper_pearson_interval(k, n) for k in range(n + 1)]
    covered = sum(stats.binom.pmf(k, n, share) for k, (low, high) in enumerate(intervals) if low <= share <= high)
    assert covered >= 0.95


def test_no_answers_are_unknown_not_zero():
    estimate = proportion(0, 0)
    assert math.isnan(estimate.value)
    assert "collect" in estimate.notes[0]
    assert all(math.isnan(end) for end in wilson_interval(0, 0))


def test_impossible_counts_are_refused():
    with pytest.raises(DialometerError, match="successes"):
        proportion(5, 3)
    with pytest.raises(DialometerError, match="confidence"):
        proportion(1, 3, confidence=95)


@pytest.mark.parametrize(("a", "n", "b", "m"), [(56, 70, 48, 80), (9, 10, 3, 10), (6, 7, 2, 7), (5, 56, 0, 29)])
def test_difference_has_newcombe_interval(a, n, b, m):
    estimate = proportion_difference(a, n, b, m)
    low, high = confint_proportions_2indep(a, n, b, m, compare="diff", method="newcomb", correction=False)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-12)
    chi2 = stats.chi2_contingency([[a, n - a], [b, m - b]], correction=False)
    assert estimate.statistic == pytest.approx(chi2.statistic)
    assert estimate.p_value == pytest.approx(chi2.pvalue)


def test_difference_of_published_example():
    # Newcombe 1998, table II, example (a): 56/70 against 48/80, method 10 gives 0.0524 to 0.3339.
    estimate = proportion_difference(56, 70, 48, 80)
    assert estimate.value == pytest.approx(0.2)
    assert (round(estimate.low, 4), round(estimate.high, 4)) == (0.0524, 0.3339)


def test_difference_without_a_group_or_variation():
    assert not proportion_difference(0, 0, 3, 4).is_known
    flat = proportion_difference(4, 4, 5, 5)
    assert flat.value == 0
    assert math.isnan(flat.p_value)
    assert flat.notes


@pytest.mark.parametrize("n", [11, 30, 101])
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_quantile_interval_is_that_of_order_statistics(n, share):
    values = np.random.default_rng(n).lognormal(size=n)
    estimate = quantile(values, share)
    low, high = stats.quantile_test(values, q=0, p=share).confidence_interval(0.95)
    assert estimate.value == pytest.approx(np.quantile(values, share))
    assert (estimate.low, estimate.high) == pytest.approx((low, high), nan_ok=True)


def test_quantile_of_few_values_has_no_interval():
    estimate = quantile([3.0, 1.0, 2.0])
    assert estimate.value == 2
    assert not estimate.has_interval
    assert "too few" in estimate.notes[0]
    assert not quantile([math.nan]).is_known
