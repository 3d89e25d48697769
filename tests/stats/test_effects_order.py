"""Correlations and ranks against pingouin and scipy."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pingouin as pg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.stats.effects import ranks
from dialometer.stats.effects.correlation import kendall, pearson, spearman
from dialometer.stats.effects.ranks import friedman, kendalls_w, kruskal_wallis, mean_ranks, wilcoxon_signed_rank

RNG = np.random.default_rng(7)
X = RNG.normal(size=40)
Y = 0.5 * X + RNG.normal(size=40)


@pytest.mark.parametrize(("mine", "name"), [(pearson, "pearson"), (spearman, "spearman"), (kendall, "kendall")])
def test_correlations_agree_with_pingouin(mine, name):
    for y in (Y, np.round(Y)):
        estimate = mine(X, y)
        peer = pg.corr(X, y, method=name)
        assert estimate.value == pytest.approx(float(peer["r"].iloc[0]))
        assert estimate.p_value == pytest.approx(float(peer.filter(regex="^p.?val").iloc[0, 0]))


def test_pearson_interval_is_that_of_scipy():
    estimate, peer = pearson(X, Y, confidence=0.9), stats.pearsonr(X, Y).confidence_interval(0.9)
    assert (estimate.low, estimate.high) == pytest.approx((peer.low, peer.high))


@pytest.mark.parametrize(
    ("mine", "truth"), [(spearman, 6 / math.pi * math.asin(0.3)), (kendall, 2 / math.pi * math.asin(0.6))]
)
def test_rank_intervals_cover(mine, truth):
    rng = np.random.default_rng(1)
    hits = []
    for _ in range(500):
        x = rng.normal(size=40)
        estimate = mine(x, 0.6 * x + 0.8 * rng.normal(size=40))
        hits.append(estimate.low <= truth <= estimate.high)
    assert 0.92 < np.mean(hits) < 0.985


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=5, max_size=30))
def test_correlations_are_symmetric_and_flip(pairs):
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    for correlate in (pearson, spearman, kendall):
        one, two, flipped = correlate(x, y), correlate(y, x), correlate(x, -y)
        assert one.is_known == (np.ptp(x) > 0 and np.ptp(y) > 0)
        if one.is_known:
            assert two.value == pytest.approx(one.value)
            assert flipped.value == pytest.approx(-one.value)
            assert (flipped.low, flipped.high) == pytest.approx((-one.high, -one.low), nan_ok=True)


def test_correlations_without_enough():
    assert not pearson([1, 2], [1, 2]).is_known
    assert "does not vary" in pearson([1, 1, 1], [1, 2, 3]).notes[0]
    perfect = pearson([1.0, 2, 3, 4, 5], [2.0, 4, 6, 8, 10])
    assert perfect.value == 1
    assert not perfect.has_interval
    assert spearman([1, 2, 3, math.nan, 5], [1, 3, 2, 4, 4]).notes[0] == "1 missing answer excluded"


SCORES = RNG.integers(1, 5, size=(12, 4)).astype(float)


def test_friedman_and_w_agree_with_pingouin():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long = pd.DataFrame(SCORES).reset_index().melt(id_vars="index", var_name="object", value_name="score")
        peer_f = pg.friedman(long, dv="score", within="object", subject="index", method="f")
        peer_chi = pg.friedman(long, dv="score", within="object", subject="index", method="chisq")
    mine, w = friedman(SCORES), kendalls_w(SCORES)
    assert mine.value == pytest.approx(float(peer_f["W"].iloc[0]))
    assert mine.statistic == pytest.approx(float(peer_f["F"].iloc[0]))
    assert mine.p_value == pytest.approx(float(peer_f.filter(regex="^p").iloc[0, 0]))
    assert w.value == mine.value
    assert w.statistic == pytest.approx(float(peer_chi["Q"].iloc[0]))
    assert w.p_value == pytest.approx(stats.friedmanchisquare(*SCORES.T).pvalue)
    assert w.low <= w.high
    assert "raters" in w.interval_method


def test_w_of_agreement_and_none():
    same = np.tile([1.0, 2, 3, 4], (6, 1))
    assert kendalls_w(same).value == pytest.approx(1)
    opposite = np.array([[1.0, 2, 3], [3, 2, 1]])
    assert kendalls_w(opposite).value == pytest.approx(0)
    assert friedman(same).p_value == 0
    assert not kendalls_w(np.ones((4, 3))).is_known
    assert not friedman(np.ones((1, 3))).is_known
    with pytest.raises(DialometerError, match="matrix"):
        friedman([1, 2, 3])


def test_mean_ranks():
    table = np.array([[1, 2, 3], [1, 3, 2], [2, 2, 1], [1, math.nan, 2]])
    found = mean_ranks(table, ["readability", "coherence", "fluency"])
    assert found["readability"].value == pytest.approx((1 + 1 + 2.5) / 3)
    assert sum(e.value for e in found.values()) == pytest.approx(6)
    peer = stats.t.interval(0.95, 2, np.mean([2, 3, 2.5]), stats.sem([2, 3, 2.5]))
    assert (found["coherence"].low, found["coherence"].high) == pytest.approx(peer)
    assert found["fluency"].notes == ("1 incomplete rankings excluded",)
    assert not mean_ranks(np.full((2, 2), np.nan), ["a", "b"])["a"].is_known
    assert not mean_ranks([[1, 2]], ["a", "b"])["a"].has_interval


def test_signed_rank_agrees_with_peers():
    differences = X - 0.3
    mine = wilcoxon_signed_rank(differences)
    assert mine.p_value == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)
    peer = pg.wilcoxon(X, np.full(40, 0.3))
    assert mine.value == pytest.approx(float(peer["RBC"].iloc[0]))
    tied = np.array([1.0, -1, 2, 2, 0, 3, -2, 1, 1, math.nan])
    found = wilcoxon_signed_rank(tied)
    assert found.p_value == pytest.approx(stats.wilcoxon(tied[:9], method="asymptotic", correction=True).pvalue)
    assert found.notes == ("1 missing answer excluded", "1 zero difference excluded")
    assert not wilcoxon_signed_rank([0, 0]).is_known


def test_kruskal_agrees_with_pingouin():
    groups = [RNG.integers(0, 6, size).astype(float) for size in (9, 12, 15)]
    data = pd.DataFrame({"y": np.concatenate(groups), "g": np.repeat(list("abc"), (9, 12, 15))})
    peer = pg.kruskal(data, dv="y", between="g")
    mine = kruskal_wallis(groups)
    assert mine.statistic == pytest.approx(float(peer["H"].iloc[0]))
    assert mine.p_value == pytest.approx(float(peer.filter(regex="^p").iloc[0, 0]))
    assert mine.value == pytest.approx(mine.statistic / 35)
    assert mine.method == "Kruskal-Wallis test, chi-square approximation"
    assert not kruskal_wallis([[1.0], []]).is_known
    assert not kruskal_wallis([[1.0], [1.0, 1.0]]).is_known


def test_kruskal_of_small_groups_is_exact_over_every_division():
    values, sizes = np.array([0.1, 0.1, 0.4, 2.0, 2.5, 3.0, 3.0]), (4, 2, 1)
    labels = set(itertools.permutations(np.repeat(range(3), sizes).tolist()))
    statistics = [
        stats.kruskal(*(values[np.array(division) == group] for group in range(3))).statistic for division in labels
    ]
    mine = kruskal_wallis([values[:4], values[4:6], values[6:]])
    assert mine.p_value == pytest.approx(np.mean(np.array(statistics) >= mine.statistic - 1e-9))
    assert mine.method == "Kruskal-Wallis test, exact, all 105 divisions"
    assert abs(mine.p_value - stats.kruskal(values[:4], values[4:6], values[6:]).pvalue) > 0.01


def test_kruskal_of_small_groups_draws_divisions_where_they_are_many(monkeypatch):
    groups = [[1.0, 2, 3, 4, 6], [5.0, 8], [10.0], [7.0, 9]]
    exact = kruskal_wallis(groups)
    assert exact.method.endswith("exact, all 7,560 divisions")
    monkeypatch.setattr(ranks, "MOST_DIVISIONS", 100)
    drawn = kruskal_wallis(groups, seed=4)
    assert drawn.method.endswith("9,999 random divisions")
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert (drawn.seed, drawn.n_resamples) == (4, 9999)


def test_one_rater_beside_thousands_is_not_compared_in_every_division():
    """Each of a few thousand divisions has thousands of ranks."""
    values = np.arange(1000.0)
    tested = kruskal_wallis([values[:1], values[1:]])
    assert tested.method.endswith("9,999 random divisions")
    assert tested.p_value == pytest.approx(2 / 1000, abs=0.003)
