"""Permutation tests against scipy, analysis of variance and their own calibration."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.anova import anova_lm

from dialometer.errors import DialometerError
from dialometer.stats.effects.permutation import (
    permutation_factorial,
    permutation_paired,
    permutation_two_groups,
    rater_means,
)


def mean_difference(first, second, axis=-1):
    return np.mean(first, axis=axis) - np.mean(second, axis=axis)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=5), st.lists(st.integers(0, 9), min_size=2, max_size=5))
def test_exact_two_groups_agree_with_scipy(first, second):
    mine = permutation_two_groups(first, second)
    if len(set(first + second)) == 1:
        assert not mine.is_known
        return
    # Two-sided by the absolute difference, as here; scipy's own "two-sided" doubles the smaller tail.
    peer = stats.permutation_test(
        (first, second), lambda a, b, axis: np.abs(mean_difference(a, b, axis)), vectorized=True, alternative="greater"
    )
    assert mine.p_value == pytest.approx(peer.pvalue)
    assert mine.value == pytest.approx(np.mean(first) - np.mean(second))


def test_drawn_two_groups_come_close_to_the_exact_value():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=9), rng.normal(0.8, size=8)
    exact = permutation_two_groups(first, second, n_permutations=math.comb(17, 9))
    drawn = permutation_two_groups(first, second, n_permutations=20_000)
    assert exact.seed is None
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert drawn.p_value == permutation_two_groups(first, second, n_permutations=20_000).p_value
    assert not permutation_two_groups([], second).is_known


def test_paired_by_enumeration():
    first, second = np.array([3.0, 5, 2, 8, 4, 4]), np.array([1.0, 4, 2, 5, 5, 1])
    mine = permutation_paired(first, second)
    signs = itertools.product((-1, 1), repeat=6)
    sums = np.array([np.dot(sign, first - second) for sign in signs])
    assert mine.p_value == pytest.approx(np.mean(np.abs(sums) >= abs(np.sum(first - second)) - 1e-9))
    assert mine.value == pytest.approx(np.mean(first - second))


def test_paired_drawn_by_binomial_counts():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 3, 400) / 2, rng.integers(0, 3, 400) / 2
    mine = permutation_paired(first, second, n_permutations=20_000)
    peer = stats.permutation_test(
        (first, second), mean_difference, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=rng
    )
    assert mine.p_value == pytest.approx(peer.pvalue, abs=0.015)
    assert not permutation_paired([1.0], [1.0]).is_known
    assert permutation_paired([1.0, math.nan, 3], [0.0, 1, 1]).notes == ("1 missing answer excluded",)


def test_paired_normal_limit_meets_the_draws(monkeypatch):
    rng = np.random.default_rng(5)
    first = rng.random(3000)
    second = first + rng.normal(0.004, 0.2, 3000)
    drawn = permutation_paired(first, second, n_permutations=4000)
    monkeypatch.setattr("dialometer.stats.effects.permutation.MOST_DRAWS", 1)
    limit = permutation_paired(first, second, n_permutations=4000)
    assert "normal limit" in limit.method
    assert limit.p_value == pytest.approx(drawn.p_value, abs=0.025)


def test_rater_means_relative_to_items():
    values = [1.0, 5.0, 3.0, math.nan, 7.0]
    raters = ["b", "b", "a", "a", "a"]
    plain, names = rater_means(values, raters)
    assert names.tolist() == ["a", "b"]
    assert plain == pytest.approx([5, 3])
    adjusted, _ = rater_means(values, raters, ["x", "y", "x", "x", "y"])
    assert adjusted == pytest.approx([5, 3])  # item means 2 and 6, overall 4
    easy = rater_means([2.0, 2.0, 6.0, 6.0], ["a", "b", "c", "d"], ["x", "x", "y", "y"])[0]
    assert easy == pytest.approx([4, 4, 4, 4])


def draw_means(seed, n=40, effect=0.0, interaction=0.0):
    rng = np.random.default_rng(seed)
    anchor, layout = rng.integers(0, 2, n), rng.integers(0, 3, n)
    means = rng.normal(size=n) + effect * anchor + interaction * anchor * (layout == 2) + 0.5 * layout
    return means, {"anchor": anchor, "layout": layout}


@pytest.mark.parametrize(("n", "effect", "interaction"), [(40, 0.4, 0.8), (120, 0.2, 0.0)])
def test_statistics_are_type_three_and_p_values_near_those_of_f(n, effect, interaction):
    means, factors = draw_means(2, n, effect, interaction)
    found = permutation_factorial(means, factors, n_permutations=8000)
    data = pd.DataFrame({"y": means, **factors})
    table = anova_lm(smf.ols("y ~ C(anchor, Sum) * C(layout, Sum)", data).fit(), typ=3)
    rows = ["C(anchor, Sum)", "C(layout, Sum)", "C(anchor, Sum):C(layout, Sum)"]
    assert list(found) == ["anchor", "layout", "anchor:layout"]
    for estimate, row in zip(found.values(), rows, strict=True):
        f, p = table.loc[row, "F"], table.loc[row, "PR(>F)"]
        assert estimate.statistic == pytest.approx(f)
        if not interaction or ":" in row:  # a main effect's permutation also notices effects that cancel out
            assert estimate.p_value == pytest.approx(p, abs=0.03)
        squares = table.loc[row, "sum_sq"]
        assert estimate.value == pytest.approx(squares / (squares + table.loc["Residual", "sum_sq"]))
    assert "within levels of the other factors" in found["anchor"].method
    assert "Freedman-Lane" in found["anchor:layout"].method


def test_one_factor_is_the_two_group_test():
    rng = np.random.default_rng(9)
    means, group = rng.normal(size=22), np.arange(22) % 2
    found = permutation_factorial(means, {"group": group}, n_permutations=20_000)["group"]
    peer = permutation_two_groups(means[group == 1], means[group == 0], n_permutations=20_000)
    assert found.p_value == pytest.approx(peer.p_value, abs=0.015)


@pytest.mark.parametrize("term", ["anchor", "anchor:layout"])
def test_type_one_error_with_skewed_means(term):
    n_runs, rejected = 300, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        factors = {"anchor": np.arange(24) % 2, "layout": (np.arange(24) // 2) % 2}
        means = rng.exponential(size=24) + 2.0 * factors["layout"]
        rejected += permutation_factorial(means, factors, n_permutations=299, seed=seed)[term].p_value <= 0.05
    assert 0.02 < rejected / n_runs < 0.085


def test_degenerate_designs():
    means, factors = draw_means(1)
    with pytest.raises(DialometerError, match="two levels"):
        permutation_factorial(means, {"anchor": np.zeros(40)})
    kept = ~((factors["anchor"] == 1) & (factors["layout"] == 2))
    cut = {name: labels[kept] for name, labels in factors.items()}
    assert not permutation_factorial(means[kept], cut)["anchor"].is_known
    assert not permutation_factorial(np.ones(40), factors)["anchor"].is_known
    one_each = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}
    assert "recruit more" in permutation_factorial([1.0, 2, 3, 4], one_each)["a"].notes[0]
