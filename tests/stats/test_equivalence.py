"""Equivalence and non-inferiority against statsmodels, against their intervals, and by simulation at the margin."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.clustered.two_way import two_way_linear, two_way_share
from dialometer.stats.effects.equivalence import equivalence
from dialometer.stats.effects.two_groups import welch_t

RNG = np.random.default_rng(11)
FIRST, SECOND = RNG.normal(0.2, 1, 40), RNG.normal(0, 2, 30)


@pytest.mark.parametrize("margin", [0.2, 0.8, 1.5])
def test_independent_and_paired_means_agree_with_statsmodels(margin):
    mine = equivalence(welch_t(FIRST, SECOND), -margin, margin)
    assert mine.p_value == pytest.approx(ttost_ind(FIRST, SECOND, -margin, margin, usevar="unequal")[0])
    gaps = FIRST[:30] - SECOND
    paired = equivalence(clustered_mean(gaps, np.arange(30)), -margin, margin)
    assert paired.p_value == pytest.approx(ttost_paired(FIRST[:30], SECOND, -margin, margin)[0])


def test_one_bound_is_the_one_sided_test():
    gaps = FIRST[:30] - SECOND
    difference = clustered_mean(gaps, np.arange(30), null=0.0)
    for bound in (-0.9, -0.3, 0.1):
        peer = stats.ttest_1samp(gaps, bound, alternative="greater")
        tested = equivalence(difference, bound, math.inf)
        assert tested.p_value == pytest.approx(peer.pvalue)
        assert tested.statistic == pytest.approx(peer.statistic)
        assert (tested.low > bound) == (tested.p_value < 0.05)
        mirrored = equivalence(difference, -math.inf, bound)
        assert mirrored.p_value == pytest.approx(1 - peer.pvalue)


def test_shares_are_tested_by_their_score_and_the_interval_agrees():
    answers = RNG.random(400) < 0.52
    share = two_way_share(answers, np.arange(400) % 40, np.arange(400) // 40)
    n, df = share.details["n_effective"], share.df[0]
    for margin in (0.05, 0.1, 0.2):
        tested = equivalence(share, 0.5 - margin, 0.5 + margin)
        above = (share.value - 0.5 + margin) / math.sqrt((0.25 - margin**2) / n)
        below = (share.value - 0.5 - margin) / math.sqrt((0.25 - margin**2) / n)
        assert tested.p_value == pytest.approx(max(stats.t.sf(above, df), stats.t.cdf(below, df)))
        is_inside = 0.5 - margin < tested.low and tested.high < 0.5 + margin
        assert is_inside == tested.details["is_equivalent"]


def test_answers_that_are_all_equal_are_tested_exactly():
    share = two_way_share(np.ones(60), np.arange(60) % 12, np.arange(60) // 12)
    tested = equivalence(share, 0.4, math.inf)
    assert tested.p_value == pytest.approx(stats.binomtest(5, 5, 0.4, alternative="greater").pvalue)
    assert tested.low == pytest.approx(0.05 ** (1 / 5))
    assert equivalence(share, 0.3, 0.7).p_value > 0.9


def test_what_has_no_error_has_no_test():
    bare = Estimate(0.1, 5, "mean", notes=("one rater: no interval",))
    tested = equivalence(bare, -1, 1)
    assert math.isnan(tested.p_value)
    assert tested.notes == ("one rater: no interval",)


@pytest.mark.parametrize("is_one_sided", [False, True])
def test_a_difference_as_large_as_the_margin_is_called_equivalent_at_most_as_often_as_declared(is_one_sided):
    """500 studies of 15 raters × 8 items whose true difference is the margin: 25 expected, 40 are three errors above."""
    rng = np.random.default_rng(5)
    rater, item = np.repeat(np.arange(15), 8), np.tile(np.arange(8), 15)
    n_found = 0
    for _ in range(500):
        true = -0.5 if is_one_sided else 0.5
        y = true + rng.normal(0, 0.4, 15)[rater] + rng.normal(0, 0.3, 8)[item] + rng.normal(0, 0.8, 120)
        mean, variance = two_way_linear(y, np.ones((120, 1)), rater, item)
        error, df = variance.contrast([1.0])
        difference = Estimate(float(mean[0]), 120, "mean", df=(df,), details={"standard_error": error})
        n_found += equivalence(difference, -0.5, math.inf if is_one_sided else 0.5).p_value < 0.05
    assert n_found <= 40


def test_a_share_at_the_margin_is_called_equivalent_at_most_as_often_as_declared():
    """400 studies of 30 raters × 8 items with a true share of 65 % and a margin of 15 points: 20 expected, 33 at most."""
    rng = np.random.default_rng(6)
    rater, item = np.repeat(np.arange(30), 8), np.tile(np.arange(8), 30)
    n_found = 0
    for _ in range(400):
        true = np.clip(0.65 + rng.normal(0, 0.08, 30)[rater] + rng.normal(0, 0.08, 8)[item], 0, 1)
        share = two_way_share(rng.random(240) < true, rater, item)
        n_found += equivalence(share, 0.35, 0.65).p_value < 0.05
    assert n_found <= 33
