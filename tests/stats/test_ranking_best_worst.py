"""Best-worst choices: counts by hand, the choice model against statsmodels, and what is said without a fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.discrete.conditional_models import ConditionalLogit

from dialometer.errors import NotEnoughData
from dialometer.stats.ranking.best_worst import BestWorstScores
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.maxdiff import maxdiff
from ranking_data import code_best_worst, win_matrix_from_counts


def simulated(n_raters=40, n_each=10, n=6, seed=3):
    rng = np.random.default_rng(seed)
    utility = np.linspace(-1, 1, n)
    shown, best, worst, rater = [], [], [], []
    for who in range(n_raters):
        for _ in range(n_each):
            members = rng.choice(n, rng.integers(2, 5), replace=False)
            pairs = [(b, w) for b in members for w in members if b != w]
            weight = np.exp([utility[b] - utility[w] for b, w in pairs])
            b, w = pairs[rng.choice(len(pairs), p=weight / weight.sum())]
            shown.append([f"s{k}" for k in members])
            best.append(f"s{b}")
            worst.append(f"s{w}")
            rater.append(f"r{who:02}")
    return shown, best, worst, rater, utility


def values(estimates):
    return np.array([estimate.value for estimate in estimates.values()])


def test_counts_by_hand():
    choices = code_best_worst([["a", "b", "c"]] * 4, ["a", "b", "a", "a"], ["c", "c", "b", "c"])
    scores = BestWorstScores(choices).scores
    assert values(scores) == pytest.approx([3 / 4, 0, -3 / 4])
    assert {name: scores["b"].details[name] for name in ("best", "worst", "shown")} == {
        "best": 1,
        "worst": 1,
        "shown": 4,
    }
    assert scores["a"].low < 3 / 4 < scores["a"].high


def test_scores_in_different_company_are_least_squares_with_a_dummy_for_each_screen():
    shown, best, worst, rater, _ = simulated(n_raters=15)
    rows = [
        (k, name, (name == b) - (name == w))
        for k, (names, b, w) in enumerate(zip(shown, best, worst, strict=True))
        for name in names
    ]
    design = np.zeros((len(rows), 6 + len(shown)))
    for row, (screen, name, _) in enumerate(rows):
        design[row, int(name[1])] = design[row, 6 + screen] = 1
    peer = sm.OLS(np.array([mark for *_, mark in rows], dtype=float), design[:, 1:]).fit().params[:5]
    peer = np.array([0.0, *peer])
    fit = BestWorstScores(code_best_worst(shown, best, worst, rater=rater))
    assert values(fit.scores) == pytest.approx(peer - peer.mean(), abs=1e-9)
    assert fit.difference(5, 0).value == pytest.approx(peer[5] - peer[0])


def test_the_uncertainty_is_that_of_leaving_out_raters_and_items():
    """Two-way: over raters, plus over items, minus over their meetings, by refits (meetings by their scores)."""
    rng = np.random.default_rng(8)
    rater, item = np.divmod(np.arange(9 * 7), 7)
    order = np.argsort(rng.normal(size=(63, 4)) + [0, 0.2, 0.4, 1.5] + rng.normal(0, 0.5, (7, 4))[item], axis=1)
    names = np.array(list("abcd"))
    best, worst = names[order[:, -1]], names[order[:, 0]]

    def gap(kept):
        return np.mean(((best == "d") * 1.0 - (worst == "d") - (best == "a") + (worst == "a"))[kept])

    whole = gap(np.ones(63, dtype=bool))
    parts = []
    for codes, n in ((rater, 9), (item, 7)):
        parts.append((n - 1) / n * sum((gap(codes != g) - whole) ** 2 for g in range(n)))
    each = (best == "d") * 1.0 - (worst == "d") - (best == "a") + (worst == "a") - whole
    together = sum(parts) - 63 / 62 * np.sum((each / 63) ** 2)
    fit = BestWorstScores(
        code_best_worst([list("abcd")] * 63, best, worst, rater=[str(r) for r in rater], item=[str(i) for i in item])
    )
    found = fit.difference(3, 0)
    assert found.value == pytest.approx(whole)
    assert found.details["standard_error"] ** 2 == pytest.approx(max(together, *parts))
    assert found.df == pytest.approx((5.0,))


@pytest.mark.parametrize("n_items", [2, 6])
def test_always_best_has_an_interval_that_the_items_allow(n_items):
    choices = code_best_worst(
        [["a", "b", "c"]] * (9 * n_items), ["a"] * (9 * n_items), ["c"] * (9 * n_items),
        rater=[f"r{k // n_items}" for k in range(9 * n_items)], item=[f"i{k % n_items}" for k in range(9 * n_items)],
    )  # fmt: skip
    fit = BestWorstScores(choices)
    gap = fit.difference(0, 2)
    unseen = 1 - 0.025 ** (1 / n_items)
    assert (gap.value, gap.low, gap.high) == (pytest.approx(2), pytest.approx(2 - 4 * unseen), pytest.approx(2))
    assert gap.p_value == pytest.approx(stats.binomtest(n_items, n_items).pvalue)
    assert fit.scores["b"].low < 0 < fit.scores["b"].high


def test_systems_that_never_met_are_not_compared():
    choices = code_best_worst([["a", "b"], ["c", "d"]] * 4, ["a", "c"] * 4, ["b", "d"] * 4)
    fit = BestWorstScores(choices)
    assert not fit.difference(0, 2).is_known
    assert fit.difference(0, 1).value == pytest.approx(2)


def test_model_equals_conditional_logit_on_the_expanded_pairs():
    shown, best, worst, rater, _ = simulated(n_raters=20)
    chosen, groups, design = [], [], []
    for trial, (names, top, bottom) in enumerate(zip(shown, best, worst, strict=True)):
        for b in names:
            for w in names:
                if b != w:
                    row = np.zeros(6)
                    row[int(b[1])] += 1
                    row[int(w[1])] -= 1
                    chosen.append(float(b == top and w == bottom))
                    groups.append(trial)
                    design.append(row[1:])
    peer = ConditionalLogit(np.array(chosen), np.array(design), groups=np.array(groups)).fit(
        disp=0, method="newton", tol=1e-12
    )
    result = maxdiff(code_best_worst(shown, best, worst, rater=rater), n_resamples=10)
    full = np.concatenate([[0], peer.params])
    assert values(result.utilities) == pytest.approx(full - full.mean(), abs=1e-6)
    assert result.log_likelihood == pytest.approx(peer.llf, abs=1e-7)
    centre = np.eye(6)[:, 1:] - 1 / 6
    errors = np.sqrt(np.diagonal(centre @ peer.cov_params() @ centre.T))
    assert [e.details["se"] for e in result.utilities.values()] == pytest.approx(errors, rel=1e-4)


def test_the_truth_of_simulated_choices_is_recovered():
    shown, best, worst, rater, truth = simulated(n_raters=200)
    result = maxdiff(code_best_worst(shown, best, worst, rater=rater), n_resamples=500, confidence=0.999)
    for estimate, true in zip(result.utilities.values(), truth, strict=True):
        assert estimate.low < true < estimate.high
        assert estimate.high - estimate.low < 0.35
    assert result.share_penalised == 0
    assert result.ranks.ranks["s5"].high == 1


def test_pairs_alone_make_the_model_a_bradley_terry_model_with_twice_the_slope():
    wins = np.array([[0, 7, 5], [3, 0, 6], [2, 4, 0]])
    shown, best, worst = [], [], []
    for a in range(3):
        for b in range(3):
            for _ in range(wins[a, b]):
                shown.append(["abc"[a], "abc"[b]])
                best.append("abc"[a])
                worst.append("abc"[b])
    result = maxdiff(code_best_worst(shown, best, worst), n_resamples=5)
    peer = bradley_terry(win_matrix_from_counts(list("abc"), wins))
    assert 2 * values(result.utilities) == pytest.approx(values(peer.strengths), abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), order=st.permutations(range(6)))
def test_relabelling_and_repeating_change_nothing(seed, order):
    shown, best, worst, rater, _ = simulated(n_raters=8, seed=seed)
    base = maxdiff(code_best_worst(shown, best, worst, rater=rater), prior=0.2, n_resamples=2)
    name = {f"s{k}": f"t{order[k]}" for k in range(6)}
    turned = maxdiff(
        code_best_worst(
            [[name[s] for s in names] for names in shown], [name[s] for s in best], [name[s] for s in worst]
        ),
        prior=0.2,
        n_resamples=2,
    )
    for old, new in name.items():
        assert turned.utilities[new].value == pytest.approx(base.utilities[old].value, abs=1e-7)
    thrice = maxdiff(code_best_worst(shown * 3, best * 3, worst * 3), prior=0.6, n_resamples=2)
    assert values(thrice.utilities) == pytest.approx(values(base.utilities), abs=1e-7)


def test_one_resample_equals_a_fit_of_the_repeated_raters():
    shown, best, worst, rater, _ = simulated(n_raters=12)
    result = maxdiff(code_best_worst(shown, best, worst, rater=rater), n_resamples=3, seed=6)
    times = np.random.default_rng(6).multinomial(12, np.full(12, 1 / 12), size=3)[1]
    rows = [k for k, who in enumerate(rater) for _ in range(times[int(who[1:])])]
    again = maxdiff(
        code_best_worst([shown[k] for k in rows], [best[k] for k in rows], [worst[k] for k in rows]), n_resamples=2
    )
    assert result.replicates[1] == pytest.approx(values(again.utilities), abs=1e-7)


def test_a_system_that_always_loses_is_named():
    choices = code_best_worst([["a", "b", "z"]] * 4, ["a", "b", "a", "b"], ["z"] * 4)
    result = maxdiff(choices, n_resamples=20)
    assert result.is_penalised
    assert result.groups == (("a", "b"), ("z",))
    assert "any of the rest: z" in " ".join(result.utilities["z"].notes)
    assert result.utilities["z"].value < result.utilities["a"].value
    assert all(math.isfinite(value) for value in values(result.utilities))
    with pytest.raises(NotEnoughData, match="no maximum-likelihood estimate"):
        maxdiff(choices, prior=0)


def test_resamples_that_lose_the_fit_are_counted():
    shown = [["a", "b", "c"]] * 6
    best, worst = ["a", "b", "a", "b", "c", "a"], ["c", "c", "b", "c", "a", "b"]
    result = maxdiff(code_best_worst(shown, best, worst), n_resamples=200, seed=1)
    assert not result.is_penalised
    assert 0 < result.share_penalised < 1
    assert np.isfinite(result.replicates).all()
    assert "resamples admit no" in result.notes[-1]


def test_a_system_never_shown_is_unknown():
    choices = code_best_worst([["a", "b"], ["a", "b"]], ["a", "b"], ["b", "a"], systems=["idle", "a", "b"])
    result = maxdiff(choices, n_resamples=5)
    assert not result.utilities["idle"].is_known
    assert values(result.utilities)[1:] == pytest.approx([0, 0])
    assert not BestWorstScores(choices).scores["idle"].is_known


def test_one_rater_gets_no_interval_over_raters():
    choices = code_best_worst([["a", "b"]] * 3, ["a", "b", "a"], ["b", "a", "b"], rater=["r"] * 3)
    scores = BestWorstScores(choices).scores
    assert not scores["a"].has_interval
    assert math.isnan(scores["a"].p_value)
    fitted = maxdiff(choices)
    assert fitted.utilities["a"].interval_method == "Wald"
    assert "one rater" in fitted.notes[-1]


def test_no_choice_is_not_a_score():
    nothing = code_best_worst([], [], [], systems=["a", "b"])
    with pytest.raises(NotEnoughData):
        BestWorstScores(nothing)
    with pytest.raises(NotEnoughData):
        maxdiff(nothing)
