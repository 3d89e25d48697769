"""Two groups: Welch, Mann-Whitney, effect sizes and equivalence against pingouin, statsmodels and definitions."""

import itertools
import math

import numpy as np
import pingouin as pg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.effect_size import _noncentrality_t
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW, ttost_ind

from dialometer.errors import DialometerError
from dialometer.stats.effects.effect_size import cliffs_delta, cohens_d, hedges_g
from dialometer.stats.effects.equivalence import equivalence
from dialometer.stats.effects.two_groups import mann_whitney, welch_t

RNG = np.random.default_rng(42)
FIRST, SECOND = RNG.normal(0.6, 1, 17), RNG.normal(0, 2, 23)
groups = st.lists(st.integers(0, 12), min_size=2, max_size=15)


def test_welch_agrees_with_pingouin_and_statsmodels():
    mine = welch_t(FIRST, SECOND)
    peer = pg.ttest(FIRST, SECOND, correction=True)
    assert mine.statistic == pytest.approx(float(peer["T"].iloc[0]))
    assert mine.p_value == pytest.approx(float(peer.filter(regex="p").iloc[0, 0]))
    low, high = CompareMeans(DescrStatsW(FIRST), DescrStatsW(SECOND)).tconfint_diff(usevar="unequal")
    assert (mine.low, mine.high) == pytest.approx((low, high))


@given(groups, groups)
def test_welch_swaps_sides(first, second):
    one, two = welch_t(first, second), welch_t(second, first)
    assert one.is_known == two.is_known
    if one.is_known:
        assert one.value == pytest.approx(-two.value)
        assert one.p_value == pytest.approx(two.p_value)
        assert (one.low, one.high) == pytest.approx((-two.high, -two.low))


@given(st.lists(st.floats(-9, 9), min_size=7, max_size=7, unique=True))
def test_exact_mann_whitney_by_enumeration(values):
    mine = mann_whitney(values[:3], values[3:])
    ranks = stats.rankdata(values)
    sums = np.array([sum(chosen) for chosen in itertools.combinations(ranks, 3)])
    observed = ranks[:3].sum()
    tail = min(np.mean(sums >= observed), np.mean(sums <= observed))
    assert mine.p_value == pytest.approx(min(1, 2 * tail))
    pairs = [(a > b) + 0.5 * (a == b) for a in values[:3] for b in values[3:]]
    assert mine.value == pytest.approx(np.mean(pairs))
    assert "exact" in mine.method


def test_mann_whitney_with_ties_agrees_with_pingouin():
    first, second = RNG.integers(0, 6, 40), RNG.integers(1, 7, 35)
    mine = mann_whitney(first, second)
    peer = pg.mwu(first, second)
    assert mine.statistic == pytest.approx(float(peer.iloc[0]["U_val" if "U_val" in peer else "U-val"]))
    assert mine.p_value == pytest.approx(float(peer.filter(regex="^p").iloc[0, 0]))
    assert mine.value == pytest.approx((1 + cliffs_delta(first, second).value) / 2)
    assert "tie" in mine.method


def test_mann_whitney_interval_covers():
    rng = np.random.default_rng(3)
    truth = stats.norm.cdf(0.8 / math.sqrt(2))
    found = [mann_whitney(rng.normal(0.8, 1, 25), rng.normal(0, 1, 30)) for _ in range(600)]
    assert 0.92 < np.mean([e.low <= truth <= e.high for e in found]) < 0.98


def test_cohen_and_hedges_agree_with_peers():
    d, g = cohens_d(FIRST, SECOND), hedges_g(FIRST, SECOND)
    assert d.value == pytest.approx(pg.compute_effsize(FIRST, SECOND, eftype="cohen"))
    # pingouin corrects by 1 - 3 / (4 n - 9), an approximation of the exact factor used here
    assert g.value == pytest.approx(pg.compute_effsize(FIRST, SECOND, eftype="hedges"), rel=1e-3)
    df, root = 38, math.sqrt(17 * 23 / 40)
    peer = _noncentrality_t(d.value * root, df)
    assert (d.low * root, d.high * root) == pytest.approx(tuple(peer.confint), abs=1e-6)
    factor = math.gamma(df / 2) / (math.sqrt(df / 2) * math.gamma((df - 1) / 2))
    assert (g.value, g.low, g.high) == pytest.approx((factor * d.value, factor * d.low, factor * d.high))


def test_cohen_interval_covers():
    rng = np.random.default_rng(5)
    found = [cohens_d(rng.normal(0.5, 1, 15), rng.normal(0, 1, 15)) for _ in range(400)]
    assert 0.92 < np.mean([e.low <= 0.5 <= e.high for e in found]) < 0.98


@given(groups, groups)
def test_effect_sizes_swap_sides_and_ignore_units(first, second):
    for effect in (cohens_d, hedges_g, cliffs_delta):
        one, two = effect(first, second), effect(second, first)
        scaled = effect([3 * v + 1 for v in first], [3 * v + 1 for v in second])
        assert one.is_known == two.is_known == scaled.is_known
        if one.is_known:
            assert one.value == pytest.approx(-two.value)
            assert scaled.value == pytest.approx(one.value)
            assert (one.low, one.high) == pytest.approx((-two.high, -two.low), nan_ok=True, abs=1e-7)


@given(groups, groups)
def test_cliffs_delta_over_all_pairs(first, second):
    signs = np.sign(np.subtract.outer(np.array(first), np.array(second))).astype(float)
    mine = cliffs_delta(first, second)
    assert mine.value == pytest.approx(signs.mean())
    if not mine.has_interval:
        return
    n, m = signs.shape
    delta = signs.mean()
    rows, columns = signs.mean(axis=1), signs.mean(axis=0)
    variance = m**2 * np.sum((rows - delta) ** 2) + n**2 * np.sum((columns - delta) ** 2) - np.sum((signs - delta) ** 2)
    variance = max(variance / (n * m * (n - 1) * (m - 1)), (1 - delta**2) / (n * m - 1))
    z = stats.norm.isf(0.025)
    root = z * math.sqrt(variance) * math.sqrt((1 - delta**2) ** 2 + z**2 * variance)
    expected = [(delta - delta**3 + sign * root) / (1 - delta**2 + z**2 * variance) for sign in (-1, 1)]
    assert (mine.low, mine.high) == pytest.approx((max(-1, expected[0]), min(1, expected[1])))


def test_equivalence_agrees_with_statsmodels():
    for low, high in ((-1, 1), (-0.2, 2), (-3, 0.1)):
        mine = equivalence(welch_t(FIRST, SECOND), low, high)
        peer = ttost_ind(FIRST, SECOND, low, high, usevar="unequal")
        assert mine.p_value == pytest.approx(peer[0])
        assert mine.details["p_above_low"] == pytest.approx(peer[1][1])
        assert mine.details["is_equivalent"] == (low < mine.low and mine.high < high)
    assert mine.confidence == pytest.approx(0.9)
    with pytest.raises(DialometerError, match="bound"):
        equivalence(welch_t(FIRST, SECOND), 1, -1)


@pytest.mark.parametrize("test", [welch_t, mann_whitney, cohens_d, hedges_g, cliffs_delta])
def test_empty_and_constant_groups(test):
    assert not test([], [1.0, 2.0]).is_known
    assert not test([math.nan], [1.0, 2.0]).is_known
    if test is not cliffs_delta:
        assert not test([2.0, 2.0, 2.0], [2.0, 2.0]).is_known
    noted = test([1.0, 2.0, math.nan, 4.0], [0.0, 1.0, 2.0])
    assert "1 missing answer excluded" in noted.notes


def test_groups_that_do_not_overlap():
    delta = cliffs_delta([5, 6, 7], [1, 2])
    assert delta.value == 1
    assert not delta.has_interval
    assert delta.notes
    assert not equivalence(welch_t([], [1.0]), -1, 1).is_known
