"""A ratio of sums: by hand, and its variance against the ratio computed anew without each cluster."""

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.stats.clustered.ratio import TOO_WIDE, two_way_ratio


def test_long_texts_weigh_more():
    found = two_way_ratio([3, 1], [60, 40], ["a", "b"], ["x", "y"], per=100)
    assert found.value == pytest.approx(4)


def test_the_error_over_raters_is_that_of_the_delete_one_jackknife():
    rng = np.random.default_rng(4)
    rater = rng.integers(0, 9, 80)
    words = rng.integers(20, 90, 80).astype(float)
    errors = rng.poisson(0.04 * words * (1 + rater / 9)).astype(float)
    found = two_way_ratio(errors, words, rater, None)
    left_out = np.array([errors[rater != r].sum() / words[rater != r].sum() for r in range(9)])
    jackknife = math.sqrt(8 / 9 * np.sum((left_out - found.value) ** 2))
    assert found.details["standard_error"] == pytest.approx(jackknife)
    spread = stats.t.isf(0.025, found.df[0]) * jackknife / found.value
    assert (found.low, found.high) == pytest.approx((found.value * math.exp(-spread), found.value * math.exp(spread)))
    over_items = two_way_ratio(errors, words, rater, np.arange(80) % 10)
    assert over_items.details["n_items"] == 10
    assert over_items.value == found.value


def test_what_cannot_be_known_is_said():
    assert "one rater only" in two_way_ratio([1, 2], [10, 10], ["a", "a"], ["x", "y"]).notes[0]
    assert "one item only" in two_way_ratio([1, 2], [10, 10], ["a", "b"], ["x", "x"]).notes[0]
    nothing = two_way_ratio([0, 0], [10, 10], ["a", "b"], ["x", "y"])
    assert (nothing.value, nothing.has_interval) == (0, False)
    assert not two_way_ratio([], [], [], []).is_known
    with pytest.raises(DialometerError, match="below zero"):
        two_way_ratio([-1], [10], ["a"], ["x"])


def test_intervals_hold_what_they_promise():
    """200 studies of 12 raters and 10 items with errors that depend on both: 95 % intervals hold the truth in 90 % or more."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        rater, item = (grid.ravel() for grid in np.meshgrid(np.arange(12), np.arange(10)))
        rate = 0.05 * np.exp(rng.normal(-0.045, 0.3, 12)[rater] + rng.normal(-0.045, 0.3, 10)[item])
        words = np.full(len(rater), 60.0)
        found = two_way_ratio(rng.poisson(rate * words), words, rater, item)
        hits += found.low <= 0.05 <= found.high
    assert hits >= 0.9 * 200


def test_an_interval_that_says_nothing_is_not_shown():
    """Two raters, one error: on the logarithm the interval would reach from 0 to many millions."""
    found = two_way_ratio([1, 0, 0, 0], [50, 60, 55, 45], ["a", "a", "b", "b"], [1, 2, 1, 2], per=100)
    assert found.value == pytest.approx(100 / 210)
    assert not found.has_interval
    assert found.notes == (TOO_WIDE,)
