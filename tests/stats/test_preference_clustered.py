"""Repeated raters: sandwich variances against statsmodels GEE, small-sample tests against their exact special cases."""

import math
import warnings

import numpy as np
import pingouin as pg
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.stats.clustered.clustered import clustered_mean, clustered_preference, clustered_proportion
from dialometer.stats.clustered.homogeneity import AGREED, homogeneity, homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.preference import preference
from dialometer.stats.clustered.proportion import wilson_interval


def draw_answers(seed, n_raters=30, most=9, spread=2.0):
    rng = np.random.default_rng(seed)
    rater = np.repeat(np.arange(n_raters), rng.integers(1, most, n_raters))
    leaning = rng.beta(spread, 0.75 * spread, n_raters)
    return (rng.random(len(rater)) < leaning[rater]).astype(float), rater


def gee(y, rater, structure, cov_type):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sm.GEE(y, np.ones(len(y)), rater, family=sm.families.Binomial(), cov_struct=structure)
        fit = model.fit(maxiter=300, ctol=1e-13, cov_type=cov_type)
    share = float(fit.fittedvalues[0])
    return share, float(fit.bse[0]) * share * (1 - share)


@pytest.mark.parametrize("working", ["independence", "exchangeable"])
@pytest.mark.parametrize(("sandwich", "cov_type"), [("CR0", "robust"), ("CR3", "bias_reduced")])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sandwich_is_that_of_gee(working, sandwich, cov_type, seed):
    y, rater = draw_answers(seed)
    structure = sm.cov_struct.Independence() if working == "independence" else sm.cov_struct.Exchangeable()
    share, error = gee(y, rater, structure, cov_type)
    mine = clustered_proportion(y, rater, working=working, sandwich=sandwich)
    assert mine.value == pytest.approx(share, abs=1e-8)
    assert mine.details["standard_error"] == pytest.approx(error, rel=1e-6)
    if working == "exchangeable":
        assert mine.details["working_correlation"] == pytest.approx(structure.dep_params, abs=1e-7)
    assert working in mine.method
    assert "cluster-robust" in mine.method


def test_negative_correlation_leaves_every_answer_its_weight():
    rater = np.repeat(np.arange(6), [2, 2, 4, 4, 6, 40])
    y = np.arange(len(rater)) % 2  # everyone answers half and half
    y[0] = 1
    one, two = (clustered_proportion(y, rater, working=working) for working in ("independence", "exchangeable"))
    assert two.details["working_correlation"] == 0
    assert two.value == pytest.approx(one.value)


def test_cr1_scales_the_plain_sandwich():
    y, rater = draw_answers(4)
    plain = clustered_proportion(y, rater, sandwich="CR0").details["standard_error"]
    scaled = clustered_proportion(y, rater, sandwich="CR1").details["standard_error"]
    assert scaled == pytest.approx(plain * math.sqrt(30 / 29))


def test_balanced_raters_give_the_t_test_on_rater_means():
    rng = np.random.default_rng(7)
    table = rng.normal(size=(14, 1)) + rng.normal(size=(14, 5))
    rater = np.repeat(np.arange(14), 5)
    peer = stats.ttest_1samp(table.mean(axis=1), 0.3)
    for working in ("independence", "exchangeable"):
        mine = clustered_mean(table.ravel(), rater, null=0.3, working=working)
        assert mine.statistic == pytest.approx(peer.statistic)
        assert mine.df[0] == pytest.approx(13)
        assert mine.p_value == pytest.approx(peer.pvalue)
        assert (mine.low, mine.high) == pytest.approx(tuple(peer.confidence_interval()))


def test_bell_mccaffrey_degrees_by_brute_force():
    _, rater = draw_answers(9, n_raters=8)
    n = len(rater)
    hat = np.full((n, n), 1 / n)
    quadratic = np.zeros((n, n))
    for label in np.unique(rater):
        inside = rater == label
        size = inside.sum()
        values, vectors = np.linalg.eigh(np.eye(size) - hat[np.ix_(inside, inside)])
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        row = np.zeros(n)
        row[inside] = root @ np.ones(size) / n
        weights = (np.eye(n) - hat).T @ row
        quadratic += np.outer(weights, weights)
    y = np.random.default_rng(0).random(n)
    mine = clustered_mean(y, rater)
    assert mine.details["standard_error"] ** 2 == pytest.approx(float(y @ quadratic @ y))
    assert mine.df[0] == pytest.approx(np.trace(quadratic) ** 2 / np.sum(quadratic**2))


def test_score_test_and_interval_never_contradict():
    for seed in range(40):
        y, rater = draw_answers(seed, n_raters=9, most=5)
        for null in (0.3, 0.5, 0.8):
            mine = clustered_proportion(y, rater, null=null)
            assert (mine.p_value < 0.05) == (not mine.low <= null <= mine.high)


def test_type_one_error_is_near_nominal_where_the_plain_test_is_not():
    rng = np.random.default_rng(11)
    n_runs, n_raters = 1500, 20
    robust = plain = 0
    rater = np.repeat(np.arange(n_raters), 8)
    for _ in range(n_runs):
        y = (rng.random(len(rater)) < rng.beta(1, 1, n_raters)[rater]).astype(float)
        robust += clustered_proportion(y, rater).p_value < 0.05
        plain += preference(int(y.sum()), int(len(y) - y.sum()), test="chi2").p_value < 0.05
    assert 0.03 < robust / n_runs < 0.07
    assert plain / n_runs > 0.2


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.permutations(range(12)))
def test_names_and_order_of_raters_do_not_matter(seed, names):
    y, rater = draw_answers(seed, n_raters=12)
    one = clustered_proportion(y, rater)
    order = np.random.default_rng(seed).permutation(len(y))
    two = clustered_proportion(y[order], np.array([f"r{name}" for name in names])[rater][order])
    mirrored = clustered_proportion(1 - y, rater)
    assert two.value == pytest.approx(one.value)
    assert two.p_value == pytest.approx(one.p_value)
    assert mirrored.p_value == pytest.approx(one.p_value)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - one.high, 1 - one.low), abs=1e-9)


def test_degenerate_answers():
    assert not clustered_proportion([], []).is_known
    one = clustered_proportion([1, 0, 1], ["a", "a", "a"])
    assert one.value == pytest.approx(2 / 3)
    assert not one.has_interval
    assert "one rater" in one.notes[0]
    same = clustered_proportion([1] * 20, np.repeat(np.arange(5), 4))
    assert same.value == 1
    assert same.p_value == pytest.approx(stats.binomtest(5, 5).pvalue)
    assert same.high == 1
    assert same.low == pytest.approx(stats.binomtest(5, 5).proportion_ci().low)
    balanced = clustered_proportion([1, 0] * 6, np.repeat(np.arange(6), 2))
    assert balanced.p_value == 1
    assert (balanced.low, balanced.high) == pytest.approx(wilson_interval(3, 6))
    with pytest.raises(DialometerError, match="0 to 1"):
        clustered_proportion([2], ["a"])
    missing = clustered_proportion([1, 0, math.nan, 1], ["a", "a", "b", "b"])
    assert missing.n == 3
    assert missing.notes == ("1 missing answer excluded",)


def test_preference_rules_with_repeated_raters():
    rng = np.random.default_rng(2)
    rater = np.repeat(np.arange(25), 4)
    signed = rng.choice([1.0, -1.0, 0.0, np.nan], size=100, p=[0.5, 0.25, 0.15, 0.1])
    n_for, n_against = int(np.sum(signed == 1)), int(np.sum(signed == -1))
    n_ties = int(np.sum(signed == 0))
    drop = clustered_preference(signed, rater)
    decisive = np.isin(signed, (1.0, -1.0))
    peer = clustered_proportion((signed[decisive] + 1) / 2, rater[decisive])
    assert drop.value == pytest.approx(n_for / (n_for + n_against))
    assert drop.p_value == pytest.approx(peer.p_value)
    half = clustered_preference(signed, rater, ties="half")
    assert half.value == pytest.approx((n_for + n_ties / 2) / (n_for + n_against + n_ties))
    report = clustered_preference(signed, rater, ties="report", cannot_tell="report")
    assert report.value == pytest.approx(n_for / 100)
    peer_mean = clustered_mean(np.nan_to_num(signed), rater, null=0.0)
    assert report.p_value == pytest.approx(peer_mean.p_value)
    assert not clustered_preference([0, np.nan], ["a", "b"]).is_known


def test_homogeneity_agrees_with_scipy():
    table = np.array([[30, 20], [25, 35], [40, 10]])
    peer = stats.chi2_contingency(table, correction=False)
    mine = homogeneity(table[:, 0], table.sum(axis=1))
    assert mine.statistic == pytest.approx(peer.statistic)
    assert mine.p_value == pytest.approx(peer.pvalue)
    assert mine.value == pytest.approx(stats.contingency.association(table, method="cramer"))
    assert not homogeneity([0, 3], [0, 5]).is_known
    assert not homogeneity([5, 5], [5, 5]).is_known


def test_within_raters_it_is_hotelling():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(25, 1)) + rng.normal(size=(25, 4))
    mine = homogeneity_clustered(table.ravel(), np.tile(list("abcd"), 25), np.repeat(np.arange(25), 4))
    peer = pg.multivariate_ttest(table[:, 1:] - table[:, :1])
    assert mine.statistic == pytest.approx(float(peer["F"].iloc[0]))
    assert mine.df == pytest.approx((3, 22))
    assert mine.p_value == pytest.approx(float(peer["pval"].iloc[0]))
    pair = pairwise_clustered(table.ravel(), np.tile(list("abcd"), 25), np.repeat(np.arange(25), 4))["b", "c"]
    t = stats.ttest_rel(table[:, 1], table[:, 2])
    assert (pair.statistic, pair.p_value) == pytest.approx((t.statistic, t.pvalue))
    assert (pair.low, pair.high) == pytest.approx(tuple(t.confidence_interval()))


def test_between_raters_the_statistic_is_welch():
    rng = np.random.default_rng(8)
    one, two = rng.normal(size=12), rng.normal(1, 3, size=17)
    mine = homogeneity_clustered(np.concatenate([one, two]), [0] * 12 + [1] * 17, np.arange(29))
    assert mine.statistic == pytest.approx(stats.ttest_ind(one, two, equal_var=False).statistic ** 2)


def test_clustered_effect_of_yes_no_is_cramers_v():
    y, rater = draw_answers(5)
    group = np.arange(len(y)) % 3
    table = np.array([[np.sum(y[group == g] == value) for value in (1, 0)] for g in range(3)])
    assert homogeneity_clustered(y, group, rater).value == pytest.approx(stats.contingency.association(table))


def test_clustered_homogeneity_is_calibrated():
    rng = np.random.default_rng(4)
    n_runs, n_raters, rejected = 1000, 15, 0
    for _ in range(n_runs):
        rater = np.repeat(np.arange(n_raters), rng.integers(2, 8, n_raters))
        group = rng.integers(0, 4, len(rater))
        y = (rng.random(len(rater)) < rng.beta(2, 2, n_raters)[rater]).astype(float)
        rejected += homogeneity_clustered(y, group, rater).p_value < 0.05
    assert 0.03 < rejected / n_runs < 0.07


@pytest.mark.parametrize(("sizes", "n_each"), [((4, 34), 1), ((3, 17, 20), 4)])
def test_a_small_group_that_agrees_by_chance_seldom_differs(sizes: tuple[int, ...], n_each: int) -> None:
    """Raters whose shares vary around 80 % in all groups; taken as certain, agreeing groups differ in 17 to 24 % of these."""
    rng = np.random.default_rng(6)
    rater = np.repeat(np.arange(sum(sizes)), n_each)
    group = np.repeat(np.arange(len(sizes)), sizes)[rater]
    n, n_false, n_pairs, n_agreed = 300, 0, 0, 0
    for _ in range(n):
        y = (rng.normal(1.2, 1, sum(sizes))[rater] + rng.normal(size=len(rater)) > 0).astype(float)
        found = homogeneity_clustered(y, group, rater)
        n_agreed += AGREED in found.notes
        n_false += found.p_value < 0.05
        n_pairs += pairwise_clustered(y, group, rater)["0", "1"].p_value < 0.05
    assert n_agreed > n / 10
    assert max(n_false, n_pairs) / n <= 0.05


def test_a_group_that_agrees_is_still_tested():
    """The variance of the group of ones is the mean of both groups: sqrt((0.125 + 0.25) / 20) for 20 raters each."""
    y = np.concatenate([np.ones(20), np.arange(20) % 2])
    found = homogeneity_clustered(y, np.arange(40) // 20, np.arange(40))
    assert math.sqrt(found.statistic) == pytest.approx(0.5 / math.sqrt(0.375 / 20 * 20 / 19))
    assert found.p_value < 0.01
    assert AGREED in found.notes


def test_clustered_homogeneity_degenerate():
    alike = homogeneity_clustered([1, 1, 1, 0, 0, 0], list("aaabbb"), np.arange(6))
    assert "all raters answered alike" in alike.notes[-1]
    same = homogeneity_clustered([1, 1, 0, 0, 1, 1], list("ababab"), [1, 1, 2, 2, 3, 3])
    assert "do not vary between some groups" in same.notes[-1]
    assert not homogeneity_clustered([1, 1, 1, 1], ["a", "a", "b", "b"], [1, 2, 1, 2]).is_known
    assert "two raters" in homogeneity_clustered([1, 0, 1, 1], ["a", "a", "b", "b"], [1, 2, 1, 1]).notes[0]
    assert not homogeneity_clustered([1, 0], ["a", "a"], [1, 2]).is_known
    few = homogeneity_clustered([1, 0, 0, 1, 1, 0], list("abcabc"), [1, 1, 1, 2, 2, 2])
    assert math.isnan(few.p_value)
    assert "2 raters are too few for 3 groups" in few.notes[-1]
    assert AGREED not in few.notes, "without a test no group is tested with the mean variance"
