"""Differences of bounded scores: the t-test where one factor is all there is, refits, and one-sided answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.clustered.two_way_contrasts import TwoWayContrasts


def crossed(n_raters: int, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.divmod(np.arange(n_raters * n_items), n_items))


def test_one_answer_per_rater_on_fixed_items_is_the_t_test() -> None:
    y = np.random.default_rng(2).uniform(-1, 1, 25)
    found = TwoWayContrasts(y, np.ones((25, 1)), np.arange(25), None).contrast([1.0], limit=1.0, n=25)
    peer = stats.ttest_1samp(y, 0)
    assert (found.statistic, found.p_value) == pytest.approx((peer.statistic, peer.pvalue))
    assert (found.low, found.high) == pytest.approx(tuple(peer.confidence_interval()))


def test_two_groups_of_items_by_leave_one_out_refits() -> None:
    rng = np.random.default_rng(3)
    rater, item = crossed(8, 10)
    group = item % 2
    y = (rng.random(80) < 0.3 + 0.3 * group + rng.normal(0, 0.15, 10)[item]).astype(float)
    design = np.eye(2)[group]

    def gap(kept: np.ndarray) -> float:
        return float(y[kept & (group == 1)].mean() - y[kept & (group == 0)].mean())

    whole = gap(np.ones(80, dtype=bool))
    of_raters, of_items = (
        (n - 1) / n * sum((gap(codes != g) - whole) ** 2 for g in range(n)) for codes, n in ((rater, 8), (item, 10))
    )
    own = (y - design @ [y[group == 0].mean(), y[group == 1].mean()]) / 40
    together = of_raters + of_items - 80 / 79 * float(own @ own)
    found = TwoWayContrasts(y, design, rater, item).contrast([-1.0, 1.0], limit=1.0, n=80)
    assert found.value == pytest.approx(whole)
    assert found.details["standard_error"] ** 2 == pytest.approx(max(together, of_raters, of_items, float(own @ own)))
    assert found.df == pytest.approx((7.0,))


@pytest.mark.parametrize(("n_raters", "n_items"), [(12, 3), (4, 9)])
def test_what_was_never_seen_may_happen(n_raters: int, n_items: int) -> None:
    rater, item = crossed(n_raters, n_items)
    n = min(n_raters, n_items)
    found = TwoWayContrasts(np.ones(len(rater)), np.ones((len(rater), 1)), rater, item).contrast(
        [1.0], limit=1.0, n=len(rater)
    )
    never_seen = stats.binomtest(0, n).proportion_ci(method="exact").high
    assert (found.low, found.high) == (pytest.approx(1 - 2 * never_seen), 1.0)
    assert found.p_value == pytest.approx(stats.binomtest(n, n).pvalue)


def test_an_interval_that_is_cut_says_so() -> None:
    rater, item = crossed(6, 4)
    y = np.where(item == 0, 0.0, 1.0)
    fit = TwoWayContrasts(y, np.ones((24, 1)), rater, item)
    cut, free = (fit.contrast([1.0], limit=limit, n=24) for limit in (1.0, 9.0))
    assert (cut.high, free.high > 1) == (1.0, True)
    assert cut.interval_method == f"{free.interval_method}, cut at the ends of the scale"
    assert (cut.low, cut.p_value) == (free.low, free.p_value)


def test_nothing_but_middle_answers_is_no_test() -> None:
    rater, item = crossed(5, 5)
    found = TwoWayContrasts(np.zeros(25), np.ones((25, 1)), rater, item).contrast([1.0], limit=1.0, n=25)
    assert found.low < 0 < found.high
    assert math.isnan(found.p_value)


@pytest.mark.parametrize(
    ("raters", "items", "why"), [(np.arange(9), np.zeros(9), "one item"), (np.zeros(9), np.arange(9), "one rater")]
)
def test_one_of_either_allows_no_test(raters: np.ndarray, items: np.ndarray, why: str) -> None:
    y = np.array([1.0, 0, 1, 1, 0, 1, 1, 1, 0])
    found = TwoWayContrasts(y, np.ones((9, 1)), raters, items).contrast([1.0], limit=1.0, n=9)
    assert not found.has_interval
    assert math.isnan(found.p_value)
    assert why in found.notes[0]


@pytest.mark.parametrize(("n_raters", "n_items"), [(30, 4), (40, 8), (8, 20)])
def test_items_that_decide_by_themselves_seldom_make_a_difference(n_raters: int, n_items: int) -> None:
    """Each item has its own best of four systems, which nearly all raters see; no system is better on the whole."""
    rng = np.random.default_rng(4)
    rater, item = crossed(n_raters, n_items)
    n, n_false = 400, 0
    for _ in range(n):
        seen = rng.normal(0, 1.0, (n_items, 4))[item] + rng.normal(0, 0.5, (len(rater), 4))
        y = (seen.argmax(axis=1) == 0) * 1.0 - (seen.argmax(axis=1) == 1)
        found = TwoWayContrasts(y, np.ones((len(y), 1)), rater, item).contrast([1.0], limit=1.0, n=len(y))
        n_false += found.p_value < 0.05
    assert n_false / n <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n)
