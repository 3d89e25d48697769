"""Means by condition: bootstrap intervals against scipy and against resampling raters one by one."""

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.clustered.clustered import clustered_mean


def draw(seed, n_raters=25):
    rng = np.random.default_rng(seed)
    rater = np.repeat(np.arange(n_raters), rng.integers(3, 12, n_raters))
    return rng.normal(size=n_raters)[rater] + rng.normal(size=len(rater)) + 5, rater


def test_plain_mean_has_the_interval_of_scipy():
    values = np.random.default_rng(1).integers(1, 6, 80).astype(float)
    mine = bootstrap_mean(values, n_resamples=20_000)
    peer = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2))
    assert mine.value == pytest.approx(values.mean())
    assert (mine.low, mine.high) == pytest.approx(tuple(peer.confidence_interval), abs=0.02)
    assert mine.details["bootstrap_bias"] == pytest.approx(0, abs=0.01)


def test_many_distinct_values_get_the_limit_of_the_bootstrap(monkeypatch):
    values = np.random.default_rng(1).exponential(size=3000)
    drawn = bootstrap_mean(values, n_resamples=3000)
    monkeypatch.setattr("dialometer.stats.bootstrap.means.MOST_DRAWS", 1)
    limit = bootstrap_mean(values, n_resamples=3000)
    assert limit.interval_method == "Student's t"
    assert (limit.low, limit.high) == pytest.approx((drawn.low, drawn.high), abs=0.003)
    peer = stats.ttest_1samp(values, 0).confidence_interval()
    assert (limit.low, limit.high) == pytest.approx(tuple(peer))


def test_clustered_mean_resamples_whole_raters():
    values, rater = draw(3)
    mine = bootstrap_mean(values, rater, n_resamples=8000)
    rng = np.random.default_rng(9)
    parts = [values[rater == label] for label in range(25)]
    slow = [np.concatenate([parts[i] for i in rng.integers(0, 25, 25)]).mean() for _ in range(8000)]
    assert (mine.low, mine.high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])), abs=0.03)
    alone = bootstrap_mean(values)
    assert mine.high - mine.low > 1.3 * (alone.high - alone.low)
    robust = clustered_mean(values, rater)
    assert mine.high - mine.low == pytest.approx(robust.high - robust.low, rel=0.15)
    assert mine.details["n_raters"] == 25
    assert "raters" in mine.interval_method
    assert mine.seed == 0
    assert mine.n_resamples == 8000


def test_interval_covers_near_its_confidence():
    hits = []
    for seed in range(250):
        rng = np.random.default_rng(seed)
        rater = np.repeat(np.arange(40), 4)
        estimate = bootstrap_mean(rng.normal(size=40)[rater] + rng.normal(size=160), rater, n_resamples=400, seed=seed)
        hits.append(estimate.low <= 0 <= estimate.high)
    assert 0.89 < np.mean(hits) < 0.985


def test_same_seed_same_interval():
    values, rater = draw(4)
    one, two = bootstrap_mean(values, rater, seed=5), bootstrap_mean(values, rater, seed=5)
    assert (one.low, one.high) == (two.low, two.high)
    other = bootstrap_mean(values, rater, seed=6)
    assert (one.low, one.high) != (other.low, other.high)


def test_too_little():
    assert not bootstrap_mean([]).is_known
    assert not bootstrap_mean([math.nan], ["a"]).is_known
    one = bootstrap_mean([3.0, 4.0], ["a", "a"])
    assert one.value == 3.5
    assert not one.has_interval
    assert "recruit" in one.notes[0]
    assert not bootstrap_mean([3.0]).has_interval
    assert bootstrap_mean([1.0, math.nan, 2.0]).notes == ("1 missing answer excluded",)
