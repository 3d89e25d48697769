"""Tests of differences of strengths: likelihood ratios of other software, sign tests at the edge, and equal systems."""

import math
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit

from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.rank_intervals import ranks_by_tests
from dialometer.stats.ranking.strength_contrasts import MOST_PROFILED, StrengthContrasts
from dialometer.stats.ranking.vote_variance import vote_variance
from dialometer.stats.ranking.votes import Votes, win_matrix


def votes_of(first, second, outcome, rater, item, n_systems):
    first, second, outcome, rater, item = (np.asarray(x, dtype=np.intp) for x in (first, second, outcome, rater, item))
    return Votes(
        tuple(f"s{k}" for k in range(n_systems)), first, second, outcome, np.arange(len(first)),
        tuple(f"r{k}" for k in range(rater.max() + 1)), rater, tuple(f"i{k}" for k in range(item.max() + 1)), item,
    )  # fmt: skip


def contrasts_of(votes, *, has_position=False, ties="half", is_fixed=False):
    matrix = win_matrix(votes)
    fit = bradley_terry(matrix, ties=ties, position_effect=has_position)
    return StrengthContrasts(matrix, fit, vote_variance(votes, fit, has_fixed_items=is_fixed), confidence=0.95)


def random_votes(n=200, n_systems=4, *, n_raters=20, n_items=25, seed=2, spread=0.5):
    rng = np.random.default_rng(seed)
    strength = np.linspace(-spread, spread, n_systems)
    first = rng.integers(0, n_systems, n)
    second = (first + rng.integers(1, n_systems, n)) % n_systems
    outcome = np.where(rng.random(n) < expit(strength[first] - strength[second]), 1, -1)
    return votes_of(first, second, outcome, rng.integers(0, n_raters, n), rng.integers(0, n_items, n), n_systems)


def glm(votes, design, offset=None):
    family = sm.families.Binomial()
    return sm.GLM((votes.outcome == 1).astype(float), design, family=family, offset=offset).fit(tol=1e-12).llf


def test_ratios_and_profile_ends_equal_statsmodels():
    """``GLM(y, design, family=Binomial(), offset=...)``, the contrast held by joining two columns and an offset."""
    votes = random_votes()
    contrasts = contrasts_of(votes, has_position=True)
    design = np.zeros((votes.n, 5))
    design[np.arange(votes.n), votes.first] += 1
    design[np.arange(votes.n), votes.second] -= 1
    design[:, 4] = 1
    free = glm(votes, design[:, 1:])
    joined = np.column_stack([design[:, 0] + design[:, 1], design[:, 2], design[:, 4]])

    def ratio(gap):
        return 2 * (free - glm(votes, joined, offset=gap * design[:, 0]))

    rows = contrasts.pair_rows([("s0", "s1")])
    tests = contrasts.tests(rows)
    assert tests.roots[0] ** 2 * tests.scale[0] == pytest.approx(ratio(0.0), abs=1e-6)
    (estimate,) = contrasts.estimates(rows, ["s0 - s1"], n=votes.n)
    limit = stats.t.isf(0.025, estimate.df[0]) ** 2 * tests.scale[0]
    assert ratio(estimate.low) == pytest.approx(limit, rel=1e-3)
    assert ratio(estimate.high) == pytest.approx(limit, rel=1e-3)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.p_value == pytest.approx(2 * stats.t.sf(abs(estimate.statistic), estimate.df[0]))


@pytest.mark.parametrize("seed", range(8))
def test_interval_and_test_never_contradict_each_other(seed):
    contrasts = contrasts_of(random_votes(n=120, seed=seed, spread=0.9))
    pairs = list(combinations(contrasts.fit.systems, 2))
    for estimate in contrasts.estimates(contrasts.pair_rows(pairs), ["x"] * len(pairs), n=1):
        assert (estimate.p_value <= 0.05) == (not estimate.low <= 0 <= estimate.high)


@pytest.mark.parametrize("n_items", [4, 5, 6, 8, 12])
def test_a_system_that_always_wins_is_tested_like_signs_of_items(n_items):
    """Twelve raters, few items, every vote for one system: close to ``scipy.stats.binomtest(n_items, n_items)``."""
    rater, item = (grid.ravel() for grid in np.meshgrid(np.arange(12), np.arange(n_items)))
    contrasts = contrasts_of(votes_of(np.zeros(len(rater)), np.ones(len(rater)), np.ones(len(rater)), rater, item, 2))
    (estimate,) = contrasts.estimates(contrasts.pair_rows([("s0", "s1")]), ["x"], n=1)
    exact = stats.binomtest(n_items, n_items).pvalue
    assert (estimate.p_value <= 0.05) == (exact <= 0.05)
    assert 0.75 * exact <= estimate.p_value <= 4 * exact
    assert estimate.low < estimate.value < estimate.high
    assert any("counts as one vote" in note for note in estimate.notes)


def test_ties_only_leave_an_interval_of_some_width():
    rater, item = (grid.ravel() for grid in np.meshgrid(np.arange(6), np.arange(6)))
    nothing = np.zeros(len(rater))
    contrasts = contrasts_of(votes_of(nothing, nothing + 1, nothing, rater, item, 2))
    (estimate,) = contrasts.estimates(contrasts.pair_rows([("s0", "s1")]), ["x"], n=1)
    assert estimate.value == pytest.approx(0)
    assert estimate.high == pytest.approx(-estimate.low)
    assert 0.3 < estimate.high < 2
    assert estimate.p_value == pytest.approx(1)


def test_a_system_that_never_wins_is_not_the_best():
    """0 of 21 votes: far behind the first in the tests, and never first in the draws."""
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 3, 150), rng.integers(1, 3, 150)
    second = (first + second) % 3
    outcome = rng.choice([1, -1], 150)
    lost = np.arange(21)
    votes = votes_of(
        np.concatenate([first, np.full(21, 3)]),
        np.concatenate([second, lost % 3]),
        np.concatenate([outcome, np.full(21, -1)]),
        np.concatenate([rng.integers(0, 14, 150), lost % 14]),
        np.concatenate([rng.integers(0, 20, 150), lost % 20]),
        4,
    )
    contrasts = contrasts_of(votes)
    assert contrasts.fit.is_penalised
    rows = contrasts.pair_rows([("s0", "s3"), ("s1", "s3"), ("s2", "s3")])
    assert (contrasts.tests(rows).p_values < 0.05).all()
    assert contrasts.tests(rows).is_one_way.all()
    assert (contrasts.draws(4000, seed=1).argmax(axis=1) == 3).mean() < 0.01


def test_draws_spread_as_the_tests_say():
    contrasts = contrasts_of(random_votes(n=600, spread=0.3))
    draws = contrasts.draws(20_000, seed=3)
    rows = contrasts.pair_rows([("s0", "s1"), ("s2", "s3")])
    tests = contrasts.tests(rows)
    for k, (a, b) in enumerate([(0, 1), (2, 3)]):
        middle = np.quantile(draws[:, a] - draws[:, b], [0.16, 0.84])
        assert np.ptp(middle) / 2 == pytest.approx(tests.standard_errors[k], rel=0.2)


def test_more_systems_than_can_be_profiled_are_read_by_their_standard_errors(monkeypatch):
    votes = random_votes(n=2000)
    profiled = contrasts_of(votes)
    rows = profiled.pair_rows([("s0", "s3")])
    monkeypatch.setattr("dialometer.stats.ranking.strength_contrasts.MOST_PROFILED", 2)
    wald = contrasts_of(votes)
    assert MOST_PROFILED > 2
    assert not wald.is_profiled
    assert wald.tests(rows).roots[0] == pytest.approx(profiled.tests(rows).roots[0], rel=0.05)
    one, two = (c.estimates(rows, ["x"], n=1)[0] for c in (wald, profiled))
    assert (one.low, one.high) == pytest.approx((two.low, two.high), rel=0.1)
    assert "; Wald test by its design effect" in one.method
    monkeypatch.undo()
    few = contrasts_of(random_votes(n=200))
    assert "; likelihood ratio by its design effect" in few.estimates(rows, ["x"], n=1)[0].method


def test_one_item_leaves_no_test_and_no_p_of_one():
    rng = np.random.default_rng(1)
    shared = votes_of(np.zeros(20), np.ones(20), rng.choice([1, -1], 20), np.arange(20) // 2, np.zeros(20), 2)
    (estimate,) = contrasts_of(shared).estimates(contrasts_of(shared).pair_rows([("s0", "s1")]), ["x"], n=1)
    assert math.isnan(estimate.p_value)
    assert math.isnan(estimate.low)


def test_ranks_from_tests_are_counted():
    is_better = np.zeros((4, 4), dtype=bool)
    is_better[0, [2, 3]] = is_better[1, 3] = True
    draws = np.tile([3.0, 2.0, 1.0, math.nan], (4, 1))
    draws[0, :2] = 2.0, 3.0
    ranks = ranks_by_tests(("a", "b", "c", "d"), [1.0, 0.5, 0.2, math.nan], is_better[:4, :4], draws, n=9)
    assert (ranks.ranks["a"].low, ranks.ranks["a"].high) == (1, 1)
    assert (ranks.ranks["b"].low, ranks.ranks["b"].high) == (1, 2)
    assert (ranks.ranks["c"].low, ranks.ranks["c"].high) == (2, 3)
    assert not ranks.ranks["d"].is_known
    assert ranks.best_share["a"] == pytest.approx(0.75)


@pytest.mark.parametrize(("n_raters", "n_items", "share"), [(6, 8, 1.0), (10, 12, 0.5)])
def test_equal_systems_are_seldom_told_apart(n_raters, n_items, share):
    """Items and raters that favour systems at random, three systems: at most 5 % of studies find a difference."""
    rng = np.random.default_rng(17)
    pairs, n_studies, n_false = list(combinations(range(3), 2)), 120, 0
    for _ in range(n_studies):
        rater, item = (grid.ravel() for grid in np.meshgrid(np.arange(n_raters), np.arange(n_items)))
        seen = rng.random(len(rater)) < share
        rater, item = rater[seen], item[seen]
        first, second = np.array(pairs)[item % 3].T
        liking, quality = rng.normal(0, 0.7, (n_raters, 3)), rng.normal(0, 1.0, (n_items, 3))
        gap = liking[rater, first] - liking[rater, second] + quality[item, first] - quality[item, second]
        votes = votes_of(first, second, np.where(rng.random(len(gap)) < expit(gap), 1, -1), rater, item, 3)
        contrasts = contrasts_of(votes)
        p_values = contrasts.tests(contrasts.pair_rows([(f"s{a}", f"s{b}") for a, b in pairs])).p_values
        n_false += bool((adjust(p_values.tolist(), "holm") <= 0.05).any())
    assert n_false <= stats.binom.ppf(0.995, n_studies, 0.05)
