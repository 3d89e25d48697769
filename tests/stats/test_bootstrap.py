import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.stats.bootstrap.bootstrap import (
    bca_interval,
    bootstrap,
    bootstrap_clusters,
    draw_counts,
    estimate_from,
    jackknife,
    percentile_interval,
    replicate,
)
from dialometer.stats.bootstrap.means import bootstrap_mean


def mean_of(values):
    return lambda counts: counts @ values / counts.sum(axis=1)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 99))
def test_each_resample_draws_as_many_cases_as_there_are(n, n_resamples, seed):
    counts = draw_counts(np.random.default_rng(seed), n, n_resamples)
    assert counts.shape == (n_resamples, n)
    assert (counts >= 0).all()
    np.testing.assert_array_equal(counts.sum(axis=1), n)


def test_counts_have_the_moments_of_a_multinomial():
    counts = draw_counts(np.random.default_rng(1), 10, 40_000)
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.03)
    np.testing.assert_allclose(counts.var(axis=0), 0.9, atol=0.05)
    assert np.cov(counts[:, 0], counts[:, 1])[0, 1] == pytest.approx(-0.1, abs=0.03)


@pytest.mark.parametrize("statistic", [np.mean, np.std, stats.skew], ids=["mean", "sd", "skew"])
def test_intervals_equal_scipy_on_the_same_replicates(statistic):
    data = np.random.default_rng(2).lognormal(size=60)
    first = stats.bootstrap((data,), statistic, n_resamples=999, method="percentile", rng=3)
    bca = stats.bootstrap((data,), statistic, n_resamples=0, method="BCa", bootstrap_result=first)
    replicates = first.bootstrap_distribution
    left_out = np.array([statistic(np.delete(data, i)) for i in range(len(data))])
    np.testing.assert_allclose(percentile_interval(replicates, 0.95), first.confidence_interval, rtol=1e-12)
    ours = bca_interval(float(statistic(data)), replicates, left_out, 0.95)
    np.testing.assert_allclose(ours, bca.confidence_interval, rtol=1e-10)


def test_replicates_and_jackknife_do_not_depend_on_how_they_are_split(monkeypatch):
    values = np.random.default_rng(4).normal(size=37)
    whole = replicate(mean_of(values), 37, n_resamples=50, rng=np.random.default_rng(5))
    left_out = jackknife(mean_of(values), 37)
    monkeypatch.setattr("dialometer.stats.bootstrap.bootstrap._BATCH_CELLS", 200)
    np.testing.assert_allclose(replicate(mean_of(values), 37, n_resamples=50, rng=np.random.default_rng(5)), whole)
    np.testing.assert_allclose(jackknife(mean_of(values), 37), left_out)
    np.testing.assert_allclose(left_out, [np.delete(values, i).mean() for i in range(37)])


def test_result_carries_seed_count_and_method_and_repeats():
    values = np.arange(20.0)
    one, two = (bootstrap(mean_of(values), 20, method="mean", n_resamples=300, seed=7) for _ in range(2))
    assert one == two
    assert (one.seed, one.n_resamples, one.n) == (7, 300, 20)
    assert one.interval_method == "percentile bootstrap over cases"
    assert one.low < one.value < one.high
    assert bootstrap(mean_of(values), 20, method="mean", n_resamples=300, seed=8) != one
    assert bootstrap(mean_of(values), 20, method="mean", interval="bca").interval_method == "BCa bootstrap over cases"


def test_percentile_interval_of_a_mean_covers():
    rng = np.random.default_rng(11)
    hits = 0
    for trial in range(200):
        values = rng.exponential(size=80)
        result = bootstrap(mean_of(values), 80, method="mean", interval="bca", n_resamples=500, seed=trial)
        hits += result.low <= 1 <= result.high
    assert 0.89 <= hits / 200 <= 0.99  # nominal 0.95


def test_failed_resamples_are_counted_never_hidden():
    replicates = np.array([0.1, 0.2, np.nan, 0.4])
    result = estimate_from(0.2, replicates, n=4, method="x", resampled="items", seed=0)
    assert "1 of 4 resamples" in result.notes[0]
    assert result.has_interval
    mostly = estimate_from(0.2, np.array([0.1, np.nan, np.nan]), n=3, method="x", resampled="items", seed=0)
    assert not mostly.has_interval
    assert "no confidence interval" in mostly.notes[0]
    assert math.isnan(bca_interval(5.0, np.arange(4.0), np.arange(4.0), 0.95)[0])


def test_too_little_data_is_unknown_with_a_reason():
    result = bootstrap(mean_of(np.ones(1)), 1, method="mean")
    assert not result.is_known
    assert "at least 2" in result.notes[0]
    alone = bootstrap_mean([1.0, 2.0, 3.0], raters=["a", "a", "a"])
    assert not alone.has_interval
    assert "one rater" in alone.notes[0]
    assert not bootstrap_mean([], raters=[]).is_known
    assert not bootstrap_mean([np.nan, np.nan]).is_known


def clustered(rng, n_raters=25, n_items=12, sd=1.0):
    rater, item = (grid.ravel() for grid in np.meshgrid(np.arange(n_raters), np.arange(n_items), indexing="ij"))
    values = sd * rng.normal(size=n_raters)[rater] + sd * rng.normal(size=n_items)[item] + rng.normal(size=len(rater))
    return values, rater, item


@pytest.mark.parametrize("grouping", ["raters", "items", "both"])
def test_fast_mean_has_the_spread_of_the_slow_one(grouping):
    values, rater, item = clustered(np.random.default_rng(6))
    ids = (
        {"raters": rater}
        if grouping == "raters"
        else {"items": item}
        if grouping == "items"
        else {"raters": rater, "items": item}
    )
    fast = bootstrap_mean(values, n_resamples=3000, seed=1, **ids)
    slow = bootstrap_clusters(lambda rows: values[rows].mean(), *ids.values(), method="mean", n_resamples=3000, seed=2)
    assert fast.value == pytest.approx(slow.value)
    assert fast.high - fast.low == pytest.approx(slow.high - slow.low, rel=0.08)
    assert tuple(fast.details[f"n_{name}"] for name in ids) == slow.details["n_clusters"]


def test_clusters_widen_the_interval_and_cover():
    rng = np.random.default_rng(9)
    hits = {"raters": 0, "judgments": 0}
    for trial in range(120):
        values, rater, _ = clustered(rng, n_raters=30, n_items=8, sd=0.0)
        values = values + rng.normal(size=30)[rater]
        for name, ids in (("raters", {"raters": rater}), ("judgments", {})):
            result = bootstrap_mean(values, n_resamples=300, seed=trial, **ids)
            hits[name] += result.low <= 0 <= result.high
    assert hits["raters"] / 120 > 0.87
    assert hits["judgments"] / 120 < 0.75  # what ignoring raters would do


def test_missing_judgments_are_left_out_and_named():
    result = bootstrap_mean([1.0, np.nan, 3.0, 5.0], raters=list("abab"), n_resamples=50)
    assert result.value == 3.0
    assert result.n == 3
    assert result.notes[0] == "1 missing answer excluded"


def test_bca_over_clusters_leaves_out_whole_clusters():
    values, rater, item = clustered(np.random.default_rng(3))
    fast = bootstrap_mean(values, raters=rater, interval="bca", n_resamples=2000)
    slow = bootstrap_clusters(lambda rows: values[rows].mean(), rater, method="mean", interval="bca", n_resamples=2000)
    np.testing.assert_allclose([fast.low, fast.high], [slow.low, slow.high], atol=0.05)
    with pytest.raises(NotEnoughData, match="percentile"):
        bootstrap_mean(values, raters=rater, items=item, interval="bca")
    with pytest.raises(NotEnoughData, match="percentile"):
        bootstrap_clusters(lambda rows: values[rows].mean(), rater, item, method="mean", interval="bca")


@settings(max_examples=20)
@given(st.floats(-50, 50), st.floats(0.1, 9))
def test_interval_of_a_mean_moves_with_the_values(shift, scale):
    values = np.random.default_rng(1).normal(size=30)
    plain = bootstrap_mean(values, n_resamples=200)
    moved = bootstrap_mean(values * scale + shift, n_resamples=200)
    np.testing.assert_allclose([moved.low, moved.high], np.array([plain.low, plain.high]) * scale + shift, atol=1e-9)
