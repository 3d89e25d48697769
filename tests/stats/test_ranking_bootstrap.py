"""The bootstrap of rankings: every resample is fitted as evalica fits it, and intervals mean what they say."""

from __future__ import annotations

import math
import warnings

import evalica
import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.stats.ranking import bradley_terry_bootstrap as bootstrap_module
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.bradley_terry_bootstrap import bradley_terry_bootstrap, draw_raters, draw_votes
from dialometer.stats.ranking.paired_newton import cells_of
from dialometer.stats.ranking.rank_intervals import rank_intervals
from dialometer.stats.ranking.votes import (
    Votes,
    WinGraph,
    WinMatrix,
    code_votes,
    strong_groups,
    win_matrix,
)
from ranking_data import win_matrix_from_counts


def simulated(n_votes=2000, n_systems=5, n_raters=40, seed=3, spread=0.6):
    rng = np.random.default_rng(seed)
    strength = np.linspace(-spread, spread, n_systems)
    first = rng.integers(0, n_systems, n_votes)
    second = (first + rng.integers(1, n_systems, n_votes)) % n_systems
    outcome = np.where(rng.random(n_votes) < 1 / (1 + np.exp(strength[second] - strength[first])), 1, -1)
    outcome[rng.random(n_votes) < 0.2] = 0
    names = tuple(f"s{k}" for k in range(n_systems))
    raters = tuple(f"r{k:02}" for k in range(n_raters))
    return Votes(
        names, first, second, outcome, np.arange(n_votes), raters=raters, rater=rng.integers(0, n_raters, n_votes)
    )


def first_generator(seed):
    """The generator of the first part of a bootstrap."""
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])


def test_each_resample_is_fitted_as_evalica_fits_it():
    votes = simulated(n_votes=300)
    boot = bradley_terry_bootstrap(votes, n_resamples=20, seed=9)
    cells = cells_of(win_matrix(votes), keep_order=False, all_pairs=False)
    drawn = draw_votes(cells)(20, first_generator(9))
    outcomes = [evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw]
    for k in range(20):
        weights = np.concatenate([counts[:, k] for counts in (drawn.first_won, drawn.second_won, drawn.tied)])
        assert weights.sum() == 300
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = evalica.bradley_terry(
                np.tile(cells.first, 3).tolist(),
                np.tile(cells.second, 3).tolist(),
                np.repeat(outcomes, len(cells.first)).tolist(),
                index=pd.Index(range(5)),
                weights=weights.tolist(),
                tolerance=1e-12,
                limit=10000,
            )
        log = np.log(peer.scores.sort_index().to_numpy())
        assert boot.replicates[k] == pytest.approx(log - log.mean(), abs=1e-7)


@pytest.mark.parametrize("ties", ["half", "davidson"])
@pytest.mark.parametrize("position_effect", [False, True])
def test_each_resample_equals_a_fit_of_its_own(ties, position_effect):
    votes = simulated(n_votes=200)
    boot = bradley_terry_bootstrap(votes, ties=ties, position_effect=position_effect, n_resamples=8, seed=4)
    cells = cells_of(win_matrix(votes), keep_order=position_effect, all_pairs=False)
    drawn = draw_votes(cells)(8, first_generator(4))
    for k in range(8):
        grids = []
        for counts in (drawn.first_won, drawn.second_won, drawn.tied):
            grid = np.zeros((5, 5))
            grid[cells.first, cells.second] = counts[:, k]
            grids.append(grid)
        own = bradley_terry(WinMatrix(votes.systems, *grids), ties=ties, position_effect=position_effect)
        assert boot.replicates[k] == pytest.approx([e.value for e in own.strengths.values()], abs=1e-7)


def test_bootstrap_errors_agree_with_analytic_ones_where_there_are_no_ties():
    votes = simulated(n_votes=4000)
    kept = votes.outcome != 0
    votes = Votes(votes.systems, votes.first[kept], votes.second[kept], votes.outcome[kept], votes.row[kept])
    boot = bradley_terry_bootstrap(votes, n_resamples=2000, seed=1)
    for name, estimate in boot.strengths.items():
        assert estimate.details["bootstrap_se"] == pytest.approx(boot.fit.strengths[name].details["se"], rel=0.08)
        assert estimate.low == pytest.approx(boot.fit.strengths[name].low, abs=0.02)
        assert estimate.low < estimate.value < estimate.high
        assert estimate.seed == 1
        assert estimate.n_resamples == 2000


def test_the_same_seed_gives_the_same_intervals():
    votes = simulated(n_votes=100)
    one, two, other = (bradley_terry_bootstrap(votes, n_resamples=50, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(one.replicates, two.replicates)
    assert not np.array_equal(one.replicates, other.replicates)


def test_the_number_of_processors_changes_nothing(monkeypatch):
    votes = simulated(n_votes=400)
    monkeypatch.setattr(bootstrap_module, "_CHUNK_NUMBERS", 12 * 30)
    many = bradley_terry_bootstrap(votes, n_resamples=100, seed=5)
    monkeypatch.setattr(bootstrap_module.os, "cpu_count", lambda: 1)
    assert np.array_equal(bradley_terry_bootstrap(votes, n_resamples=100, seed=5).replicates, many.replicates)
    assert len(np.unique(many.replicates[:, 0])) == 100


def test_resampling_raters_keeps_their_votes_together():
    votes = simulated(n_votes=500, n_raters=7)
    for keep_order in (False, True):
        cells = cells_of(win_matrix(votes), keep_order=keep_order, all_pairs=False)
        drawn = draw_raters(votes, cells, list(range(5)), keep_order=keep_order)(30, np.random.default_rng(2))
        times = np.random.default_rng(2).multinomial(7, np.full(7, 1 / 7), size=30)
        assert drawn.n.sum(axis=0) == pytest.approx(times @ np.bincount(votes.rater))
        # One resample rebuilt vote by vote.
        chosen = np.repeat(np.arange(500), times[0][votes.rater])
        again = Votes(votes.systems, votes.first[chosen], votes.second[chosen], votes.outcome[chosen], chosen)
        rebuilt = win_matrix(again)
        grid = np.zeros((5, 5))
        grid[cells.first, cells.second] = drawn.first_won[:, 0]
        assert grid.tolist() == (rebuilt.first_won if keep_order else np.triu(rebuilt.wins, 1)).tolist()


def test_raters_who_disagree_widen_the_interval_over_raters():
    """Each of 30 raters casts the same vote 20 times: only 30 votes' worth of evidence."""
    rng = np.random.default_rng(0)
    likes_a = rng.random(30) < 0.5
    rater = np.repeat([f"r{k}" for k in range(30)], 20)
    winner = np.where(np.repeat(likes_a, 20), "a", "b")
    votes = code_votes(["a"] * 600, ["b"] * 600, winner, rater=rater)
    by_vote = bradley_terry_bootstrap(votes, seed=1).strengths["a"]
    by_rater = bradley_terry_bootstrap(votes, by_rater=True, seed=1).strengths["a"]
    ratio = (by_rater.high - by_rater.low) / (by_vote.high - by_vote.low)
    assert ratio == pytest.approx(math.sqrt(20), rel=0.2)
    assert by_rater.interval_method == "percentile bootstrap over raters"


def test_resamples_without_a_finite_fit_are_counted_and_penalised():
    matrix = win_matrix_from_counts(["a", "b", "c"], [[0, 8, 1], [1, 0, 6], [0, 2, 0]])
    boot = bradley_terry_bootstrap(matrix, n_resamples=500, seed=2)
    assert not boot.fit.is_penalised
    assert 0.2 < boot.share_penalised < 0.6  # (1 - 1/18)^18 of the resamples lose the only win of b over a
    assert np.isfinite(boot.replicates).all()
    assert "resamples admit no maximum-likelihood estimate" in boot.strengths["a"].notes[-1]


def test_davidson_resamples_without_ties_have_a_tie_parameter_of_zero():
    matrix = win_matrix_from_counts(["a", "b"], [[0, 6], [5, 0]], [[0, 1], [1, 0]])
    boot = bradley_terry_bootstrap(matrix, ties="davidson", n_resamples=400, seed=2)
    assert boot.tie_parameter.low == 0
    assert boot.tie_parameter.high > boot.fit.tie_parameter.value
    assert np.isfinite(boot.replicates).all()


def test_systems_without_votes_stay_unknown():
    votes = code_votes(["a", "b", "a"] * 5, ["b", "a", "b"] * 5, ["a", "b", "tie"] * 5, systems=["a", "b", "idle"])
    boot = bradley_terry_bootstrap(votes, n_resamples=50)
    assert not boot.strengths["idle"].is_known
    assert not boot.ranks.ranks["idle"].is_known
    assert np.isnan(boot.replicates[:, 2]).all()
    assert boot.ranks.ranks["a"].high <= 2


def test_what_cannot_be_resampled_is_refused():
    votes = code_votes(["a", "b"], ["b", "a"], ["a", "b"], rater=["r", "r"])
    with pytest.raises(NotEnoughData, match="1 rater"):
        bradley_terry_bootstrap(votes, by_rater=True)
    with pytest.raises(DialometerError, match="do not name their raters"):
        bradley_terry_bootstrap(code_votes(["a", "b"], ["b", "a"], ["a", "b"]), by_rater=True)
    with pytest.raises(DialometerError, match="does not name raters"):
        bradley_terry_bootstrap(win_matrix(votes), by_rater=True)
    with pytest.raises(DialometerError, match="weighted votes"):
        bradley_terry_bootstrap(win_matrix_from_counts(["a", "b"], [[0, 1.5], [1, 0]]))


def test_the_quick_test_of_connection_equals_the_plain_one():
    rng = np.random.default_rng(6)
    winner, loser = np.array([0, 1, 2, 3, 0, 2, 1, 0]), np.array([1, 2, 3, 0, 2, 1, 3, 1])  # the last repeats an edge
    counts = rng.poisson(0.9, size=(8, 300)).astype(float)
    answer = WinGraph(4, winner, loser).is_connected(counts)
    assert 0 < answer.sum() < 300
    for k in range(300):
        grid = np.zeros((4, 4))
        np.add.at(grid, (winner, loser), counts[:, k])
        assert answer[k] == (len(strong_groups(grid)) == 1)
    assert not WinGraph(3, np.array([0, 1]), np.array([1, 0])).is_connected(np.ones((2, 4))).any()


def test_rank_intervals_are_percentiles_of_ranks():
    rng = np.random.default_rng(0)
    replicates = rng.normal([0, 0.5, 3], 1, size=(999, 3))
    result = rank_intervals(["a", "b", "c"], [0, 0.5, 3], replicates, n=10, resampled="votes", seed=0)
    places = np.array([rankdata(-row) for row in replicates])
    for k, name in enumerate("abc"):
        rank = result.ranks[name]
        assert rank.value == [3, 2, 1][k]
        ordered = np.sort(places[:, k])
        assert rank.low == ordered[math.ceil(0.025 * 999) - 1]
        assert rank.high == ordered[math.ceil(0.975 * 999) - 1]
        assert rank.details["mean_rank"] == pytest.approx(places[:, k].mean())
        assert result.best_share[name] == pytest.approx((places[:, k] == 1).mean())
    turned = rank_intervals(["a", "b", "c"], [0, 0.5, 3], replicates, n=10, resampled="votes", higher_is_better=False)
    assert [turned.ranks[name].value for name in "abc"] == [1, 2, 3]


def test_equal_scores_share_rank_and_first_place():
    result = rank_intervals(["a", "b"], [1, 1], [[1, 1], [2, 1]], n=2, resampled="votes")
    assert result.ranks["a"].value == 1.5
    assert result.best_share == {"a": 0.75, "b": 0.25}


def test_missing_scores_are_never_ranked():
    nan = float("nan")
    result = rank_intervals(
        ["a", "b", "c"], [1, nan, 2], [[1, nan, 2], [nan, 3, 1], [3, nan, 2]], n=2, resampled="votes"
    )
    assert not result.ranks["b"].is_known
    assert result.ranks["a"].notes == ("1 of 3 resamples gave no score for a system and was excluded",)
    assert result.best_share["a"] == 0.5
    empty = rank_intervals(["a", "b"], [1, 2], np.empty((0, 2)), n=1, resampled="raters")
    assert empty.ranks["b"].value == 1
    assert not empty.ranks["b"].has_interval
    with pytest.raises(DialometerError, match="replicates"):
        rank_intervals(["a", "b"], [1, 2], [[1, 2, 3]], n=1, resampled="votes")
