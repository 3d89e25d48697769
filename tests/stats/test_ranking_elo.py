"""Elo against evalica, and head-to-head tests against scipy and statsmodels."""

from __future__ import annotations

import math
import warnings

import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from dialometer.errors import NotEnoughData
from dialometer.stats.ranking import elo as elo_module
from dialometer.stats.ranking.elo import EloRule, elo, elo_shuffled
from dialometer.stats.ranking.head_to_head import head_to_head, overall_records
from dialometer.stats.ranking.votes import code_votes, win_matrix
from ranking_data import win_matrix_from_counts

vote = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2))


def coded(rows):
    names = ["a", "b", "c", "d"]
    pairs = [(names[i], names[(i + gap) % 4], k) for i, gap, k in rows]
    return code_votes(
        [a for a, _, _ in pairs], [b for _, b, _ in pairs], [(a, b, "tie")[k] for a, b, k in pairs], systems=names
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(vote, min_size=1, max_size=60), st.sampled_from([4.0, 16.0, 32.0]), st.sampled_from([200.0, 400.0]))
def test_ratings_equal_evalica(rows, k, scale):
    votes = coded(rows)
    winners = [{1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}[o] for o in votes.outcome.tolist()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = evalica.elo(votes.first.tolist(), votes.second.tolist(), winners, k=k, scale=scale, initial=1000.0)
    result = elo(votes, EloRule(k=k, scale=scale))
    for system, score in peer.scores.items():
        assert result.ratings["abcd"[system]].value == pytest.approx(score, abs=1e-8)
    assert {name for name, rating in result.ratings.items() if rating.is_known} == {
        "abcd"[s] for s in peer.scores.index
    }


@settings(deadline=None)
@given(st.lists(vote, min_size=1, max_size=60))
def test_points_are_only_handed_over(rows):
    ratings = [rating.value for rating in elo(coded(rows)).ratings.values() if rating.is_known]
    assert sum(ratings) == pytest.approx(1000 * len(ratings))


def test_many_sequences_at_once_equal_one_after_the_other(monkeypatch):
    rng = np.random.default_rng(2)
    votes = coded(list(zip(rng.integers(0, 4, 50), rng.integers(1, 4, 50), rng.integers(0, 3, 50), strict=True)))
    together = elo_shuffled(votes, n_orders=40, seed=1).replicates
    monkeypatch.setattr(elo_module, "_FEW_ORDERS", 10**9)
    assert elo_shuffled(votes, n_orders=40, seed=1).replicates == pytest.approx(together, abs=1e-9)
    monkeypatch.setattr(elo_module, "_MOST_PLACES", 50 * 7)
    assert elo_shuffled(votes, n_orders=40, seed=1).replicates.shape == (40, 4)


def test_shuffling_shows_the_spread_due_to_order():
    rng = np.random.default_rng(2)
    votes = coded(list(zip(rng.integers(0, 4, 80), rng.integers(1, 4, 80), rng.integers(0, 2, 80), strict=True)))
    result = elo_shuffled(votes, n_orders=300, seed=1)
    for k, name in enumerate("abcd"):
        rating = result.ratings[name]
        assert rating.low < rating.value < rating.high
        assert rating.value == pytest.approx(result.replicates[:, k].mean())
        assert rating.details["sd_over_orders"] == pytest.approx(result.replicates[:, k].std(ddof=1))
    one_vote = elo_shuffled(coded([(0, 1, 0)]), n_orders=5)
    assert one_vote.ratings["a"].value == one_vote.ratings["a"].low == 1008


def test_nobody_is_rated_without_votes():
    with pytest.raises(NotEnoughData, match="no votes"):
        elo(coded([]))
    result = elo(coded([(0, 1, 0)]))
    assert not result.ratings["c"].is_known
    assert result.ratings["c"].notes == ("no votes on 'c'",)
    assert result.ranked == ("a", "b")
    assert not elo_shuffled(coded([(0, 1, 0)]), n_orders=3).ratings["c"].is_known


def test_head_to_head_equals_exact_tests_with_holm():
    rng = np.random.default_rng(4)
    wins = rng.integers(0, 20, (5, 5))
    ties = np.triu(rng.integers(0, 5, (5, 5)), 1)
    matrix = win_matrix_from_counts(list("abcde"), wins, ties)
    records = head_to_head(matrix)
    assert len(records) == 10
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    peers = [binomtest(int(wins[a, b]), int(wins[a, b] + wins[b, a])) for a, b in pairs]
    adjusted = multipletests([peer.pvalue for peer in peers], method="holm")[1]
    for record, (a, b), peer, p_holm in zip(records, pairs, peers, adjusted, strict=True):
        assert (record.a, record.b, record.ties) == ("abcde"[a], "abcde"[b], ties[a, b])
        assert record.share.p_value == pytest.approx(peer.pvalue)
        assert record.share.details["p_adjusted"] == pytest.approx(p_holm)
        assert (record.share.low, record.share.high) == pytest.approx(tuple(peer.proportion_ci()))


def test_pairs_without_decisive_votes_are_not_tested_and_do_not_count_in_the_family():
    matrix = win_matrix_from_counts(list("abc"), [[0, 9, 0], [1, 0, 0], [0, 0, 0]], [[0, 0, 2], [0, 0, 0], [0, 0, 0]])
    first, second = head_to_head(matrix)
    assert (first.a, first.b, first.n) == ("a", "b", 10)
    assert first.share.details["p_adjusted"] == pytest.approx(first.share.p_value)
    assert not second.share.is_known
    assert second.share.notes == ("only ties",)
    assert head_to_head(win_matrix_from_counts(["a", "b"], np.zeros((2, 2)))) == ()


def test_overall_records_sum_over_opponents():
    matrix = win_matrix(code_votes(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "tie"], systems=["a", "b", "c", "d"]))
    a, b, c, d = overall_records(matrix)
    assert (a.wins, a.losses, a.ties) == (2, 0, 0)
    assert (b.wins, b.losses, b.ties) == (0, 1, 1)
    assert a.share.p_value == pytest.approx(0.5)
    assert c.share.value == 0.0
    assert not d.share.is_known
    assert math.isnan(d.share.p_value)
