"""Bradley-Terry against evalica, statsmodels and the truth of simulated votes; and what it says where no fit exists."""

from __future__ import annotations

import math
import warnings

import evalica
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.stats.ranking.bradley_terry import bradley_terry, has_finite_estimate
from dialometer.stats.ranking.paired_newton import PairedModel, cells_of, newton
from dialometer.stats.ranking.votes import Votes, WinMatrix, code_votes, win_matrix
from ranking_data import win_matrix_from_counts


def simulated(n_systems=6, n_votes=3000, tie=0.6, position=0.3, seed=5):
    """Votes from the full model (ties and position) with known strengths, and those strengths."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, n_systems)
    first = rng.integers(0, n_systems, n_votes)
    second = (first + rng.integers(1, n_systems, n_votes)) % n_systems
    d = strength[first] - strength[second] + position
    weights = np.stack([np.exp(d / 2), np.full(n_votes, tie), np.exp(-d / 2)])
    edges = np.cumsum(weights / weights.sum(axis=0), axis=0)
    outcome = 1 - (rng.random(n_votes) > edges[:2]).sum(axis=0)
    names = tuple(f"s{k}" for k in range(n_systems))
    return Votes(names, first, second, outcome, np.arange(n_votes)), strength


def values(estimates):
    return np.array([estimate.value for estimate in estimates.values()])


def contrast_errors(result, base=0):
    """Standard errors of strengths relative to one system, to compare with models that hold one at 0."""
    n = len(result.systems)
    turn = np.eye(n) - np.eye(n)[base]
    cov = result.fitted.covariance[:n, :n]
    return np.sqrt(np.diagonal(turn @ cov @ turn.T))


def strength_columns(first, second, n):
    return np.eye(n)[first] - np.eye(n)[second]


def test_strengths_equal_evalica():
    votes, _ = simulated()
    winners = [{1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}[k] for k in votes.outcome.tolist()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = evalica.bradley_terry(votes.first.tolist(), votes.second.tolist(), winners, tolerance=1e-12, limit=10000)
    log = np.log(peer.scores.sort_index().to_numpy())
    result = bradley_terry(win_matrix(votes))
    assert values(result.strengths) == pytest.approx(log - log.mean(), abs=1e-9)
    assert not result.is_penalised
    assert result.method == "Bradley-Terry, ties as half wins, maximum likelihood"


def test_strengths_and_errors_equal_logistic_regression():
    votes, _ = simulated(tie=0)
    matrix = win_matrix(votes)
    i, j = np.triu_indices(6, 1)
    design = strength_columns(i, j, 6)[:, 1:]
    peer = sm.GLM(np.stack([matrix.wins[i, j], matrix.wins[j, i]], axis=1), design, family=sm.families.Binomial()).fit(
        tol=1e-14
    )
    result = bradley_terry(matrix)
    strengths = values(result.strengths)
    assert strengths[1:] - strengths[0] == pytest.approx(peer.params, abs=1e-10)
    assert contrast_errors(result)[1:] == pytest.approx(peer.bse, rel=1e-8)


def test_position_effect_equals_logistic_regression_with_intercept():
    votes, _ = simulated(tie=0)
    matrix = win_matrix(votes)
    i, j = np.nonzero(~np.eye(6, dtype=bool))
    design = np.column_stack([np.ones(len(i)), strength_columns(i, j, 6)[:, 1:]])
    counts = np.stack([matrix.first_won[i, j], matrix.second_won[i, j]], axis=1)
    peer = sm.GLM(counts, design, family=sm.families.Binomial()).fit(tol=1e-14)
    result = bradley_terry(matrix, position_effect=True)
    effect = result.position_effect
    assert effect.value == pytest.approx(peer.params[0], abs=1e-10)
    assert effect.details["se"] == pytest.approx(peer.bse[0], rel=1e-8)
    assert effect.p_value == pytest.approx(peer.pvalues[0], rel=1e-6)
    assert (effect.low, effect.high) == pytest.approx(tuple(peer.conf_int()[0]), abs=1e-8)
    strengths = values(result.strengths)
    assert strengths[1:] - strengths[0] == pytest.approx(peer.params[1:], abs=1e-10)


def test_davidson_equals_a_poisson_log_linear_model():
    """A log-linear model with a free total for each pair is Davidson's model (Fienberg and Larntz 1976)."""
    votes, _ = simulated()
    matrix = win_matrix(votes)
    i, j = np.nonzero(~np.eye(6, dtype=bool))
    counts, rows = [], []
    for cell, (a, b) in enumerate(zip(i, j, strict=True)):
        lead = (np.eye(6)[a] - np.eye(6)[b])[1:] / 2
        for count, weights, tie, position in (
            (matrix.first_won[a, b], lead, 0, 0.5),
            (matrix.second_won[a, b], -lead, 0, -0.5),
            (matrix.tied[a, b], 0 * lead, 1, 0),
        ):
            counts.append(count)
            rows.append([*np.eye(len(i))[cell], *weights, tie, position])
    peer = sm.GLM(np.array(counts), np.array(rows), family=sm.families.Poisson()).fit(tol=1e-14)
    result = bradley_terry(matrix, ties="davidson", position_effect=True)
    strengths = values(result.strengths)
    m = len(i)
    assert strengths[1:] - strengths[0] == pytest.approx(peer.params[m : m + 5], abs=1e-8)
    assert contrast_errors(result)[1:] == pytest.approx(peer.bse[m : m + 5], rel=1e-6)
    assert math.log(result.tie_parameter.value) == pytest.approx(peer.params[m + 5], abs=1e-8)
    assert result.tie_parameter.details["se_log"] == pytest.approx(peer.bse[m + 5], rel=1e-6)
    assert result.position_effect.value == pytest.approx(peer.params[m + 6], abs=1e-8)
    assert result.position_effect.details["se"] == pytest.approx(peer.bse[m + 6], rel=1e-6)


def test_the_truth_of_simulated_votes_is_recovered():
    votes, truth = simulated(n_votes=40_000, seed=8)
    result = bradley_terry(win_matrix(votes), ties="davidson", position_effect=True, confidence=0.999)
    for estimate, true in zip(result.strengths.values(), truth, strict=True):
        assert estimate.low < true < estimate.high
        assert estimate.high - estimate.low < 0.25
    assert result.tie_parameter.low < 0.6 < result.tie_parameter.high
    assert result.position_effect.low < 0.3 < result.position_effect.high
    assert result.ranked == ("s5", "s4", "s3", "s2", "s1", "s0")


def test_wald_intervals_cover_the_truth_about_as_often_as_they_say():
    covered = []
    for seed in range(200):
        votes, truth = simulated(n_votes=400, tie=0, position=0, seed=seed)
        result = bradley_terry(win_matrix(votes))
        covered += [e.low < t < e.high for e, t in zip(result.strengths.values(), truth, strict=True)]
    assert 0.92 < np.mean(covered) < 0.98


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_probabilities_and_their_intervals_follow_from_the_model(ties):
    votes, _ = simulated(n_votes=500)
    result = bradley_terry(win_matrix(votes), ties=ties)
    tie = result.tie_parameter.value if ties == "davidson" else 0.0

    def points(theta, nu, a, b):
        win, loss = math.exp((theta[a] - theta[b]) / 2), math.exp((theta[b] - theta[a]) / 2)
        return (win + nu / 2) / (win + loss + nu)

    theta = values(result.strengths)
    pair = result.win_probability("s4", "s1")
    assert pair.value == pytest.approx(points(theta, tie, 4, 1), abs=1e-12)
    average = np.mean([points(theta, tie, 4, b) for b in range(6) if b != 4])
    assert result.beats_average["s4"].value == pytest.approx(average, abs=1e-12)
    # The delta method's slope against numerical differences.
    parameters, step = result.fitted.parameters, 1e-6

    def logit_at(shift):
        moved = parameters + shift
        nu = math.exp(moved[6]) if ties == "davidson" else 0.0
        p = np.mean([points(moved[:6], nu, 4, b) for b in range(6) if b != 4])
        return math.log(p / (1 - p))

    unit = np.eye(len(parameters)) * step
    slope = np.array([(logit_at(row) - logit_at(-row)) / (2 * step) for row in unit])
    se = math.sqrt(slope @ result.fitted.covariance @ slope)
    assert result.beats_average["s4"].details["se_logit"] == pytest.approx(se, rel=1e-6)
    assert result.win_probability("s4", "s1").value + result.win_probability("s1", "s4").value == pytest.approx(1)


def test_elo_scale_is_the_strength_in_other_units():
    votes, _ = simulated()
    result = bradley_terry(win_matrix(votes))
    for name, strength in result.strengths.items():
        elo = result.elo[name]
        assert elo.value == pytest.approx(1000 + 400 / math.log(10) * strength.value)
        assert expit(strength.value) == pytest.approx(1 / (1 + 10 ** ((1000 - elo.value) / 400)))
        assert elo.high - elo.low == pytest.approx(400 / math.log(10) * (strength.high - strength.low))


wins_strategy = st.lists(st.lists(st.integers(1, 9), min_size=4, max_size=4), min_size=4, max_size=4)


@settings(max_examples=40, deadline=None)
@given(wins=wins_strategy, factor=st.integers(2, 50), order=st.permutations(range(4)))
def test_scaling_and_relabelling_change_nothing(wins, factor, order):
    names = ["a", "b", "c", "d"]
    counts, ties = np.array(wins), np.triu(np.array(wins), 1) // 3
    base = bradley_terry(win_matrix_from_counts(names, counts, ties))
    scaled = bradley_terry(win_matrix_from_counts(names, counts * factor, ties * factor))
    assert values(scaled.strengths) == pytest.approx(values(base.strengths), abs=1e-8)
    both = ties + ties.T
    turned = bradley_terry(
        win_matrix_from_counts([names[k] for k in order], counts[np.ix_(order, order)], both[np.ix_(order, order)])
    )
    for name in names:
        assert turned.strengths[name].value == pytest.approx(base.strengths[name].value, abs=1e-8)
        assert turned.strengths[name].low == pytest.approx(base.strengths[name].low, abs=1e-7)
    assert values(base.strengths).sum() == pytest.approx(0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(wins=wins_strategy)
def test_the_gradient_vanishes_at_the_estimate(wins):
    """The defining equations of the model: every system's expected number of wins equals the observed one."""
    matrix = win_matrix_from_counts(["a", "b", "c", "d"], wins)
    theta = values(bradley_terry(matrix).strengths)
    n = matrix.wins + matrix.wins.T
    expected = (n * expit(theta[:, None] - theta[None])).sum(axis=1)
    assert matrix.wins.sum(axis=1) == pytest.approx(expected, abs=1e-7)


def test_a_group_that_never_wins_is_named_and_the_fit_penalised():
    matrix = win_matrix_from_counts(["a", "b", "c", "d"], [[0, 3, 2, 0], [2, 0, 0, 1], [0, 0, 0, 4], [0, 0, 3, 0]])
    result = bradley_terry(matrix)
    assert result.groups == (("a", "b"), ("c", "d"))
    assert result.is_penalised
    assert result.prior == 0.1
    assert "penalised likelihood (0.1 pseudo-wins)" in result.method
    note = " ".join(result.strengths["a"].notes)
    assert "no maximum-likelihood estimate exists" in note
    assert "never preferred to, nor tied with, any of the rest: c, d" in note
    assert all(math.isfinite(value) for value in values(result.strengths))
    with pytest.raises(NotEnoughData, match="c, d"):
        bradley_terry(matrix, prior=0)


def test_groups_that_never_met_are_named():
    matrix = win_matrix_from_counts(["a", "b", "c", "d"], [[0, 3, 0, 0], [2, 0, 0, 0], [0, 0, 0, 4], [0, 0, 3, 0]])
    result = bradley_terry(matrix)
    assert "never compared with the rest: a, b" in " ".join(result.notes)
    assert result.is_penalised


def test_a_tie_joins_two_groups():
    matrix = win_matrix_from_counts(["a", "b"], [[0, 3], [0, 0]], [[0, 1], [0, 0]])
    result = bradley_terry(matrix)
    assert not result.is_penalised
    assert result.strengths["a"].value - result.strengths["b"].value == pytest.approx(math.log(3.5 / 0.5))


def test_penalty_equals_pseudo_wins_added_by_hand():
    votes, _ = simulated(n_votes=60)
    matrix = win_matrix(votes)
    by_hand = win_matrix_from_counts(matrix.systems, matrix.wins + 0.5 * (1 - np.eye(6)), matrix.ties)
    penalised = bradley_terry(matrix, prior=0.5)
    assert values(penalised.strengths) == pytest.approx(values(bradley_terry(by_hand).strengths), abs=1e-9)
    with_order = bradley_terry(matrix, prior=0.5, position_effect=True)
    assert with_order.is_penalised
    assert math.isfinite(with_order.position_effect.value)


def test_all_first_places_winning_leaves_the_position_effect_open():
    votes = code_votes(["a", "b", "a", "b"], ["b", "a", "b", "a"], ["a", "b", "a", "b"])
    result = bradley_terry(win_matrix(votes), position_effect=True)
    assert result.is_penalised
    assert "position parameter open" in " ".join(result.notes)
    assert math.isfinite(result.position_effect.value)
    assert not bradley_terry(win_matrix(votes)).is_penalised


def test_one_fixed_order_cannot_tell_position_from_strength():
    votes = code_votes(["a"] * 4, ["b"] * 4, ["a", "a", "b", "a"])
    assert bradley_terry(win_matrix(votes), position_effect=True).is_penalised


@settings(max_examples=150, deadline=None)
@given(
    counts=st.lists(st.integers(0, 2), min_size=18, max_size=18),
    has_ties=st.booleans(),
    has_position=st.booleans(),
)
def test_the_criterion_of_existence_agrees_with_newtons_own_behaviour(counts, has_ties, has_position):
    cube = np.array(counts, dtype=float).reshape(3, 6)
    off = ~np.eye(3, dtype=bool)
    first_won, second_won, tied = (np.zeros((3, 3)) for _ in range(3))
    for matrix, row in zip((first_won, second_won, tied), cube, strict=True):
        matrix[off] = row
    matrix = WinMatrix(("a", "b", "c"), first_won, second_won, tied)
    assume((matrix.votes_per_system > 0).all())
    model = PairedModel(has_ties=has_ties, has_position=has_position)
    assume(not has_ties or tied.any())
    cells = cells_of(matrix, keep_order=has_position, all_pairs=False)
    exists = has_finite_estimate(cells, model)
    if exists:
        fit = newton(cells, model, max_iterations=200)
        assert fit.is_converged[0]
        assert np.abs(model.differences(cells, fit.parameters)).max() < 25
    else:
        # From two far starts the fits must disagree, or run away: there is no unique finite maximum.
        rng = np.random.default_rng(1)
        ends = [
            newton(cells, model, start=rng.normal(0, 1, (3 + model.n_extra, 1)), max_iterations=200) for _ in range(2)
        ]
        ran_away = any(not end.is_converged[0] or np.abs(end.parameters).max() > 8 for end in ends)
        assert ran_away or np.abs(ends[0].parameters - ends[1].parameters).max() > 1e-3


def test_a_system_without_votes_is_unknown_and_the_rest_is_fitted():
    votes = code_votes(["a", "b", "a"], ["b", "a", "b"], ["a", "b", "a"], systems=["a", "idle", "b"])
    result = bradley_terry(win_matrix(votes))
    assert not result.strengths["idle"].is_known
    assert result.strengths["idle"].notes == ("no votes on 'idle'",)
    assert not result.beats_average["idle"].is_known
    assert not result.win_probability("idle", "a").is_known
    assert list(result.strengths) == ["a", "idle", "b"]
    assert result.ranked == ("a", "b")
    assert result.strengths["a"].value - result.strengths["b"].value == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (code_votes([], [], [], systems=["a", "b"]), "no votes"),
        (code_votes(["a"], ["a"], ["a"]), "1 system"),
        (code_votes(["a", "b"], ["a", "b"], ["a", "b"]), "no votes between two different systems"),
    ],
)
def test_nothing_to_rank_is_an_error_with_a_reason(votes, message):
    with pytest.raises(NotEnoughData, match=message):
        bradley_terry(win_matrix(votes))


def test_self_comparisons_are_noted():
    votes = code_votes(["a", "a", "b"], ["a", "b", "a"], ["tie", "a", "b"])
    assert "1 votes set a system against itself" in " ".join(bradley_terry(win_matrix(votes)).notes)


def test_davidson_without_ties_is_the_plain_model_and_says_so():
    matrix = win_matrix_from_counts(["a", "b"], [[0, 3], [1, 0]])
    result = bradley_terry(matrix, ties="davidson")
    assert not result.tie_parameter.is_known
    assert "no ties" in result.tie_parameter.notes[0]
    assert result.strengths["a"].value * 2 == pytest.approx(math.log(3))


def test_only_ties_are_penalised_under_davidson():
    result = bradley_terry(win_matrix_from_counts(["a", "b"], np.zeros((2, 2)), [[0, 5], [5, 0]]), ties="davidson")
    assert result.is_penalised
    assert values(result.strengths) == pytest.approx([0, 0])


def test_requests_that_make_no_sense_are_refused():
    matrix = win_matrix_from_counts(["a", "b"], [[0, 3], [1, 0]])
    with pytest.raises(DialometerError, match="pseudo-wins"):
        bradley_terry(matrix, prior=-1)
    with pytest.raises(DialometerError, match="pseudo-wins"):
        bradley_terry(matrix, prior=float("nan"))
