"""Shares and coefficients whose uncertainty holds for other raters and other items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.clustered import two_way
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.clustered.two_way import two_way_linear, two_way_share


def crossed(n_raters: int, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.divmod(np.arange(n_raters * n_items), n_items))


def test_each_part_is_the_jackknife_of_refits() -> None:
    rng = np.random.default_rng(1)
    rater, item = crossed(9, 7)
    design = np.column_stack([np.ones(63), rng.normal(size=63)])
    y = design @ [1.0, 0.5] + rng.normal(size=63) + rng.normal(size=7)[item]
    whole, variance = two_way_linear(y, design, rater, item)
    for factor, codes in ((variance.raters, rater), (variance.items, item)):
        refits = []
        for g in np.unique(codes):
            kept = codes != g
            refits.append(np.linalg.lstsq(design[kept], y[kept], rcond=None)[0])
        n = len(refits)
        expected = (n - 1) / n * np.sum((np.array(refits) - whole)[:, 1] ** 2)
        assert factor.variance(np.array([0.0, 1.0])) == pytest.approx(expected, rel=1e-10)


def test_judgments_that_share_a_thing_are_correlated() -> None:
    """Two things a judgment: each thing left out by hand, less what is within a pair; and the double sum of Aronow et al."""
    rng = np.random.default_rng(5)
    n_things = 40
    pairs = np.array([(a, b) for a in range(n_things) for b in range(a + 1, n_things) if rng.random() < 0.3])
    things = pairs[rng.permutation(np.repeat(np.arange(len(pairs)), 2))]
    things = np.where(
        rng.random(len(things))[:, None] < 0.5, things, things[:, ::-1]
    )  # the order of the two says nothing
    quality = rng.normal(size=n_things)
    y = quality[things].sum(axis=1) + rng.normal(size=len(things))
    raters = np.arange(len(y))
    _, variance = two_way_linear(y, np.ones((len(y), 1)), raters, things)
    pair = things.min(axis=1) * n_things + things.max(axis=1)

    def jackknife(left_out: list[np.ndarray]) -> float:
        means = [y[~out].mean() for out in left_out]
        return (len(means) - 1) / len(means) * float(np.sum((np.array(means) - y.mean()) ** 2))

    of_things = jackknife([(things == thing).any(axis=1) for thing in range(n_things)])
    of_pairs = jackknife([pair == number for number in np.unique(pair)])
    assert variance.items is not None
    assert variance.items.variance(np.ones(1)) == pytest.approx(of_things - of_pairs)
    rest = y - y.mean()
    share = (things[:, None, :, None] == things[None, :, None, :]).any(axis=(2, 3))
    double_sum = float(rest @ share @ rest) / len(y) ** 2
    error, df = variance.contrast([1.0])
    assert error**2 == pytest.approx(double_sum, rel=0.1)
    assert df == pytest.approx(n_things - 1, rel=0.1)
    _, apart = two_way_linear(y, np.ones((len(y), 1)), raters, pair)
    assert error > 2 * apart.contrast([1.0])[0]


def test_the_mean_of_one_answer_per_rater_on_fixed_items_is_the_t_test() -> None:
    y = np.random.default_rng(2).normal(0.3, 1, 25)
    _, variance = two_way_linear(y, np.ones((25, 1)), np.arange(25), None)
    error, df = variance.contrast([1.0])
    expected = stats.ttest_1samp(y, 0)
    assert (y.mean() / error, df) == pytest.approx((expected.statistic, expected.df))


def test_fixed_items_give_the_share_over_raters() -> None:
    rng = np.random.default_rng(3)
    rater, item = crossed(12, 5)
    y = (rng.random(60) < 0.7).astype(float)
    assert two_way_share(y, rater, None) == clustered_proportion(y, rater)
    assert two_way_share(y, rater, item).details["n_items"] == 5


def test_one_item_allows_no_claim_beyond_it() -> None:
    y = np.array([1.0] * 15 + [0.0] * 3)
    share = two_way_share(y, np.arange(18), np.zeros(18))
    assert share.value == pytest.approx(15 / 18)
    assert math.isnan(share.p_value)
    assert math.isnan(share.low)
    assert "one item only" in share.notes[0]


@pytest.mark.parametrize(("n_items", "low"), [(2, 0.158), (8, 0.631)])
def test_equal_answers_have_an_interval_that_the_items_allow(n_items: int, low: float) -> None:
    rater, item = crossed(18, n_items)
    share = two_way_share(np.ones(18 * n_items), rater, item)
    assert (share.low, share.high) == (pytest.approx(low, abs=0.001), 1.0)
    assert share.p_value == pytest.approx(2 * 0.5**n_items)
    assert share.notes[-1].endswith(
        f"with {n_items} items p cannot fall below {2 * 0.5**n_items:.3f}".replace("0.", ".")
    )


def test_half_and_half_from_ties_alone_is_no_certainty() -> None:
    rater, item = crossed(6, 4)
    share = two_way_share(np.full(24, 0.5), rater, item)
    assert share.low < 0.35
    assert share.high > 0.65
    assert share.p_value == pytest.approx(1.0)


def test_many_meetings_are_gone_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    sums, inverse = rng.normal(size=(250, 3)), np.linalg.inv(np.diag([4.0, 5.0, 6.0]) + 0.5)
    monkeypatch.setattr(two_way, "N_AT_ONCE", 60)
    root = two_way._root(250, sums.__getitem__, inverse)
    np.testing.assert_allclose(root.T @ root, (sums @ inverse).T @ (sums @ inverse), rtol=1e-12)


def test_two_items_that_agree_by_chance_are_not_believed() -> None:
    """The variance over items is zero here, and only the design says how little two items are."""
    rater, item = crossed(40, 2)
    y = (np.arange(80) % 10 < 8).astype(float)
    share = two_way_share(y, rater, item)
    assert clustered_proportion(y, rater).p_value < 0.001
    assert share.df == (1.0,)
    assert share.p_value > 0.05


@pytest.mark.parametrize(("n_raters", "n_items", "item_sd"), [(20, 2, 0.6), (20, 4, 0.6), (40, 10, 0.3), (10, 12, 0.0)])
def test_without_a_difference_few_studies_find_one(n_raters: int, n_items: int, item_sd: float) -> None:
    rng = np.random.default_rng(4)
    rater, item = crossed(n_raters, n_items)
    n, n_false = 400, 0
    for _ in range(n):
        liking = rng.normal(0, item_sd, n_items)[item] + rng.normal(0, 0.3, n_raters)[rater]
        y = (liking + rng.normal(0, 0.7, len(rater)) > 0).astype(float)
        n_false += two_way_share(y, rater, item).p_value < 0.05
    assert n_false / n <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n)
