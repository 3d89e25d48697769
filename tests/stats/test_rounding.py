"""Where something does not vary, what is left of it is rounding: its digits differ between processors and must decide nothing.

The same judgments in another order are rounded otherwise, so that orders stand for processors here.
"""

import math

import numpy as np
import pytest

from dialometer.analysis.shared.ranking import lead
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.two_way_groups import two_way_homogeneity
from dialometer.stats.effects.effect_size import cohens_d
from dialometer.stats.effects.factorial import factorial_effects
from dialometer.stats.effects.generalizability import g_study
from dialometer.stats.effects.mixed import _denominator, fit_crossed
from dialometer.stats.effects.permutation import permutation_factorial, permutation_paired, permutation_two_groups
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.difference import icc_difference, paired_icc_difference
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.observations import from_the_highest
from dialometer.stats.ranking.best_worst import BestWorstChoices, BestWorstScores
from dialometer.stats.retrieval.sign_flips import sign_flips

N_ORDERS = 12


def judgments(n_raters, n_items, n_systems, rating):
    """Every rater on every system of every item: ratings, raters, items, systems."""
    rater, item, system = (part.ravel() for part in np.indices((n_raters, n_items, n_systems)))
    return np.array([rating(*row) for row in zip(rater, item, system, strict=True)]), rater, item, system


ADDITIVE = {
    "systems and raters": judgments(6, 5, 3, lambda r, i, s: 0.1 * r + 0.3 * s),
    "systems and items": judgments(3, 4, 2, lambda r, i, s: 0.1 * i + 0.3 * s),
    "all three": judgments(3, 4, 2, lambda r, i, s: 0.7 * r + 0.1 * i + 0.3 * s),
    "two of each": judgments(2, 2, 2, lambda r, i, s: 0.7 * r + 0.1 * i + 0.3 * s),
    "raters alone": judgments(6, 5, 3, lambda r, i, s: 0.1 + 0.2 * r),
}


def results_in_orders(columns, statistic):
    """The statistic of rows in several orders."""
    rng = np.random.default_rng(1)
    orders = [np.arange(len(columns[0])), *(rng.permutation(len(columns[0])) for _ in range(N_ORDERS))]
    return [statistic(*(column[order] for column in columns)) for order in orders]


def said(estimate):
    return [estimate.value, estimate.low, estimate.high, estimate.p_value], estimate.notes


def are_the_same(estimates):
    numbers, notes = said(estimates[0])
    for other in estimates[1:]:
        assert said(other)[0] == pytest.approx(numbers, abs=1e-9, nan_ok=True)
        assert said(other)[1] == notes


@pytest.mark.parametrize("name", ADDITIVE)
def test_groups_that_differ_alike_for_all_raters_are_not_tested(name):
    """Differences without any spread had p-values from 10⁻¹⁸ to 1."""
    of_groups = results_in_orders(ADDITIVE[name], lambda y, r, i, s: homogeneity_clustered(y, s, r))
    are_the_same(of_groups)
    assert np.isnan(of_groups[0].p_value)
    are_the_same(results_in_orders(ADDITIVE[name], lambda y, r, i, s: pairwise_clustered(y, s, r)["0", "1"]))
    are_the_same(results_in_orders(ADDITIVE[name], lambda y, r, i, s: two_way_homogeneity(y, s, r, i)))


def test_equal_answers_are_equal_whatever_their_mean():
    """The mean of 0.1, 0.1 and 0.1 is not 0.1."""
    alike = np.full(3, 0.1)
    assert not homogeneity_clustered(np.full(6, 0.1), np.repeat([0, 1], 3), np.arange(6)).is_known
    by_groups = homogeneity_clustered(np.repeat([0.1, 0.7], 3), np.repeat([0, 1], 3), np.arange(6))
    assert by_groups.notes == ("no test: in every group all raters answered alike",)
    assert not welch_t(alike, alike + 0.2).is_known
    assert not cohens_d(alike, alike + 0.2).is_known


@pytest.mark.parametrize(
    "differences", [(0.1, 0.2, -0.3, 0.5, -0.5), (0.7, -0.1, -0.6), (1 / 3, -1 / 3, 1 / 6, -1 / 6)]
)
def test_differences_that_add_up_to_nothing_have_a_p_value_of_one(differences):
    columns = (np.array(differences),)
    paired = results_in_orders(columns, lambda d: permutation_paired(d, np.zeros(len(d))))
    assert {test.p_value for test in paired} == {1.0}
    flipped = results_in_orders(columns, lambda d: sign_flips(d, np.arange(len(d))))
    assert {test.p_value for test in flipped} == {1.0}


def test_groups_with_equal_means_have_a_p_value_of_one():
    y = np.concatenate([0.1 + 0.2 * np.arange(6)] * 2)
    groups = np.repeat(["a", "b"], 6)
    tests = results_in_orders((y, groups), lambda y, g: permutation_two_groups(y[g == "a"], y[g == "b"]))
    assert {test.p_value for test in tests} == {1.0}
    tests = results_in_orders((y, groups), lambda y, g: permutation_factorial(y, {"f": g}, n_permutations=200)["f"])
    assert {test.p_value for test in tests} == {1.0}


def test_components_of_nothing_do_not_decide_on_the_method():
    studies = results_in_orders(ADDITIVE["two of each"], lambda y, r, i, s: g_study(y, s, i, r))
    assert {study.method for study in studies} == {"analysis of variance"}
    for study in studies:
        assert study.components == pytest.approx(studies[0].components)


@pytest.mark.parametrize("name", ADDITIVE)
def test_consistency_that_does_not_vary_has_no_interval(name):
    y, rater, item, system = ADDITIVE[name]
    tables = [y[system == s].reshape(rater.max() + 1, item.max() + 1).T for s in (0, 1)]  # items × raters
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(tables[0])) for _ in range(N_ORDERS)]
    are_the_same([paired_icc_difference(*(table[order] for table in tables)) for order in orders])
    are_the_same([icc_difference(*(table[order] for table in tables), n_permutations=20) for order in orders])


@pytest.mark.parametrize("name", ADDITIVE)
def test_ratings_that_raters_explain_have_an_icc_and_no_interval(name):
    """The share of raters lies beyond those that the profile looks at: the search for its ends failed."""
    y, rater, item, _ = (column[ADDITIVE[name][3] == 0] for column in ADDITIVE[name])
    result = icc_crossed(y, item, rater)
    assert result.is_known
    assert 0 <= result.value <= 1


def test_values_that_are_equal_but_for_rounding_keep_their_order():
    assert from_the_highest({"a": 0.3, "b": 0.1 + 0.2, "c": math.nan, "d": 1.0}) == ["d", "a", "b", "c"]
    for first, second in ((0.3, 0.1 + 0.2), (0.0, 0.1 + 0.2 - 0.3)):
        leader = lead({"a": Estimate(first, 10, ""), "b": Estimate(second, 10, "")}, {}, confidence=0.95)
        assert (leader.best, leader.level) == ("a", ("b",))


def test_no_reliability_is_not_negative():
    y, _, item, system = judgments(6, 5, 3, lambda r, i, s: float(s == 0 and (r, i) != (0, 0)))
    first = system == 0
    results = results_in_orders((y[first], item[first]), icc_one_way)
    are_the_same(results)


@pytest.mark.parametrize("rating", [lambda r, i, s: 0.1 + 0.6 * s, lambda r, i, s: 0.1 + 0.2 * r])
def test_a_mixed_model_of_judgments_without_residual_variance_is_refused(rating):
    """Some orders ended in a logarithm of nothing, some in a singular matrix, some in an interval of 10⁻⁹."""
    columns = judgments(2, 6, 2, rating)

    def refusal(y, r, i, s):
        with pytest.raises(NotEnoughData) as refused:
            fit_crossed(y, np.eye(2)[s], r, i)
        return str(refused.value)

    refusals = set(results_in_orders(columns, refusal))
    assert len(refusals) == 1
    fits = results_in_orders(columns, lambda y, r, i, s: factorial_effects(y, {"c": s}, r + 10 * s, i))
    assert {fit.compare({"c": "0"}, {"c": "1"}).notes for fit in fits} == {tuple(refusals)}


def test_items_that_vary_as_residuals_do_add_nothing():
    """Whether the variance over items is above the residuals' was decided by rounding: p was 10⁻⁹ or .003."""
    columns = judgments(3, 4, 2, lambda r, i, s: float(s == 0 and (r, i) != (0, 0)))
    are_the_same(
        results_in_orders(
            columns, lambda y, r, i, s: factorial_effects(y, {"c": s}, r + 10 * s, i).compare({"c": "0"}, {"c": "1"})
        )
    )


def test_infinite_degrees_of_freedom_count_as_such():
    assert _denominator(np.array([math.inf, math.inf])) == math.inf
    assert _denominator(np.array([6.0, math.inf])) == pytest.approx(2 * (1.5 + 1) / (1.5 + 1 - 2))


def test_clusters_that_hold_all_there_is_on_a_parameter_are_left_out_alike():
    """Without one of these raters a system was never shown: a matrix without an inverse, or nearly so, and a warning."""
    shown = np.array([[1, 2, 3], [0, 1, 2], [0, 1, 2], [0, 2, 3]])
    best, worst = shown[:, 0], shown[:, 2]
    rater, item = np.array([0, 1, 0, 0]), np.array([1, 0, 0, 1])

    def difference(order):
        of_raters = ("r0", "r1"), rater[order], item[order]
        choices = BestWorstChoices(tuple("abcd"), shown[order], best[order], worst[order], *of_raters)
        return BestWorstScores(choices).difference(1, 0)

    rng = np.random.default_rng(1)
    are_the_same([difference(rng.permutation(4)) for _ in range(N_ORDERS)])
