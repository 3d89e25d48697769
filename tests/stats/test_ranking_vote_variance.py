"""The variance of Bradley-Terry parameters over raters and items: that of the general two-way jackknife, counted sparsely."""

from dataclasses import replace

import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.stats.clustered.two_way import two_way_variance
from dialometer.stats.ranking import vote_variance as module
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.paired_newton import PairCells
from dialometer.stats.ranking.vote_variance import is_item_per_rater, vote_variance
from dialometer.stats.ranking.votes import Votes, win_matrix

N_SYSTEMS = 4


def drawn(n=150, *, n_raters=15, n_items=24, tie=0.0, seed=1):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, N_SYSTEMS, n)
    second = (first + rng.integers(1, N_SYSTEMS, n)) % N_SYSTEMS
    outcome = np.where(rng.random(n) < tie, 0, np.where(rng.random(n) < 0.5, 1, -1))
    return Votes(
        tuple("abcd"), first, second, outcome, np.arange(n), tuple(f"r{k}" for k in range(n_raters)),
        rng.integers(0, n_raters, n), tuple(f"i{k}" for k in range(n_items)), rng.integers(0, n_items, n),
    )  # fmt: skip


def some_of(votes, kept):
    return Votes(
        votes.systems, votes.first[kept], votes.second[kept], votes.outcome[kept], votes.row[kept],
        votes.raters, votes.rater[kept], votes.items, votes.item[kept],
    )  # fmt: skip


def dense(votes, fit, *, is_fixed):
    """The same by the full design: a vote of three outcomes is three rows, weighted by their probabilities."""
    model, parameters = fit.fitted.model, fit.fitted.parameters
    side = np.zeros((votes.n, len(parameters)))
    side[np.arange(votes.n), votes.first] = 1
    side[np.arange(votes.n), votes.second] = -1
    if model.has_position:
        side[:, -1] = 1
    cells = PairCells(N_SYSTEMS, votes.first, votes.second, *(np.zeros((votes.n, 1)) for _ in range(3)))
    won, lost, tied = (p[:, 0] for p in model.outcome_probabilities(cells, parameters[:, None]))
    flat = np.zeros((len(parameters), len(parameters)))
    flat[:N_SYSTEMS, :N_SYSTEMS] = 1
    item = None if is_fixed else votes.drawn
    if not model.has_ties:
        points = np.where(votes.outcome == 0, 0.5, votes.outcome == 1)
        return two_way_variance(side * (points - won)[:, None], side, won * lost, votes.rater, item, penalty=flat)
    tie = np.zeros_like(side)
    tie[:, N_SYSTEMS] = 1
    kinds, chances = (side / 2, -side / 2, tie), (won, lost, tied)
    mean = sum(p[:, None] * kind for p, kind in zip(chances, kinds, strict=True))
    seen = np.select([(votes.outcome == k)[:, None] for k in (1, -1, 0)], kinds) - mean
    nothing = np.zeros_like(seen)
    return two_way_variance(
        np.concatenate([seen, nothing, nothing]),
        np.concatenate([kind - mean for kind in kinds]),
        np.concatenate(chances),
        np.tile(votes.rater, 3),
        None if item is None else np.concatenate([item] * 3),
        penalty=flat,
    )


@pytest.mark.parametrize("items", ["sampled", "fixed", "of prompts", "of texts"])
@pytest.mark.parametrize("has_position", [False, True])
@pytest.mark.parametrize("ties", ["none", "half", "davidson"])
def test_it_equals_the_general_jackknife(ties, has_position, items):
    is_fixed, votes = items == "fixed", drawn(tie=0.0 if ties == "none" else 0.2)
    if items == "of prompts":
        votes = replace(votes, prompt=votes.item // 3)
    if items == "of texts":
        number = np.random.default_rng(2).integers(0, 9, (votes.n, 2))
        votes = replace(votes, text=number * N_SYSTEMS + np.column_stack([votes.first, votes.second]))
    fit = bradley_terry(
        win_matrix(votes), ties="davidson" if ties == "davidson" else "half", position_effect=has_position
    )
    sparse, full = vote_variance(votes, fit, has_fixed_items=is_fixed), dense(votes, fit, is_fixed=is_fixed)
    rows = np.zeros((3, len(fit.fitted.parameters)))
    rows[0, :2] = rows[1, 2:4] = 1, -1
    rows[2, -1] = 1.0 if has_position or ties == "davidson" else 0.0
    errors, df = sparse.contrasts(rows)
    for row, error, freedom in zip(rows[: 2 + int(rows[2].any())], errors, df, strict=False):
        assert (error, freedom) == pytest.approx(full.contrast(row), rel=1e-8)


def test_it_is_close_to_leaving_out_whole_raters():
    """Refits without each rater, no Newton step: the jackknife itself."""
    votes = drawn(n=400, n_raters=10)
    fit = bradley_terry(win_matrix(votes))
    kept = [bradley_terry(win_matrix(some_of(votes, votes.rater != k))).fitted.parameters for k in range(10)]
    gaps = np.array([values[0] - values[1] for values in kept])
    exact = np.sqrt(9 / 10 * np.sum((gaps - (fit.fitted.parameters[0] - fit.fitted.parameters[1])) ** 2))
    errors, _ = vote_variance(votes, fit, has_fixed_items=True).contrasts(np.array([[1.0, -1, 0, 0]]))
    assert errors[0] == pytest.approx(exact, rel=0.05)


def test_items_of_one_rater_each_are_no_further_sample():
    votes = drawn()
    own = Votes(*(getattr(votes, name) for name in ("systems", "first", "second", "outcome", "row", "raters", "rater")),
                tuple(map(str, range(votes.n))), np.arange(votes.n))  # fmt: skip
    assert is_item_per_rater(own)
    assert not is_item_per_rater(votes)
    fit = bradley_terry(win_matrix(votes))
    rows = np.array([[1.0, -1, 0, 0]])
    alone = vote_variance(own, fit)
    assert alone.items is None
    assert alone.contrasts(rows)[0] == pytest.approx(vote_variance(votes, fit, has_fixed_items=True).contrasts(rows)[0])


def test_many_clusters_are_summed(monkeypatch):
    """Above the limit nothing is left out one by one: the plain sandwich, close to the jackknife for many raters."""
    votes = drawn(n=4000, n_raters=400)
    fit = bradley_terry(win_matrix(votes))
    rows = np.array([[1.0, -1, 0, 0]])
    left_out = vote_variance(votes, fit, has_fixed_items=True).contrasts(rows)
    monkeypatch.setattr(module, "LARGEST_LEAVING_OUT", 10)
    summed = vote_variance(votes, fit, has_fixed_items=True).contrasts(rows)
    assert summed[0] == pytest.approx(left_out[0], rel=0.02)
    assert summed[1] == pytest.approx(left_out[1], rel=0.1)


def test_a_rater_who_alone_knows_a_system_leaves_it_where_it_is():
    votes = drawn(n=60, n_raters=6)
    touches_d = (votes.first == 3) | (votes.second == 3)
    alone = Votes(votes.systems, votes.first, votes.second, votes.outcome, votes.row, (*votes.raters, "x"),
                  np.where(touches_d, 6, votes.rater), votes.items, votes.item)  # fmt: skip
    fit = bradley_terry(win_matrix(alone))
    variance = vote_variance(alone, fit, has_fixed_items=True)
    errors, df = variance.contrasts(np.array([[1.0, 0, 0, -1], [1.0, -1, 0, 0]]))
    assert np.isfinite(errors).all()
    assert df[0] < df[1]
    assert df[0] < 1.5
    assert variance.design_effect(np.array([[1.0, 0, 0, -1]]))[0] >= 1


def test_one_rater_has_no_spread():
    votes = drawn(n_raters=1)
    with pytest.raises(NotEnoughData, match="one rater"):
        vote_variance(votes, bradley_terry(win_matrix(votes)))
