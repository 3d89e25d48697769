import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.stats.icc.difference import icc_difference
from dialometer.stats.icc.icc import icc


def two_conditions(rng, n=25, k=(12, 12), error=(1.0, 1.0), rater=0.3):
    item = rng.normal(size=(n, 1))
    sides = zip(k, error, strict=True)
    return [
        item + rater * rng.normal(size=(1, n_raters)) + noise * rng.normal(size=(n, n_raters))
        for n_raters, noise in sides
    ]


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(2,1)", "ICC(3,k)"])
def test_value_is_the_difference_and_a_real_one_is_found(form):
    first, second = two_conditions(np.random.default_rng(1), error=(0.5, 2.0))
    result = icc_difference(first, second, form, n_resamples=500, n_permutations=500)
    assert result.value == pytest.approx(icc(first, form).value - icc(second, form).value)
    assert result.details["icc_first"] == pytest.approx(icc(first, form).value)
    assert 0 < result.low < result.value < result.high
    assert result.p_value == pytest.approx(1 / 501)
    turned = icc_difference(second, first, form, n_resamples=500, n_permutations=500)
    assert turned.value == pytest.approx(-result.value)


def test_level_and_spread_of_a_condition_do_not_matter():
    first, second = two_conditions(np.random.default_rng(2))
    plain = icc_difference(first, second, n_resamples=200, n_permutations=300)
    moved = icc_difference(first, 40 + 7 * second, n_resamples=200, n_permutations=300)
    for field in ("value", "low", "high", "p_value"):
        assert getattr(moved, field) == pytest.approx(getattr(plain, field), abs=1e-9)


def test_false_alarms_and_coverage():
    rng = np.random.default_rng(3)
    n_trials, alarms, hits = 200, 0, 0
    for trial in range(n_trials):
        first, second = two_conditions(rng, k=(10, 14))
        result = icc_difference(first, second, n_resamples=200, n_permutations=199, seed=trial)
        alarms += result.p_value <= 0.05
        hits += result.low <= 0 <= result.high
    assert alarms / n_trials < 0.1  # nominal 0.05
    assert hits / n_trials > 0.87  # nominal 0.95


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(1,k)", "ICC(2,1)", "ICC(3,1)"])
def test_holes(form):
    rng = np.random.default_rng(4)
    first, second = two_conditions(rng, n=15, k=(7, 6), error=(0.4, 1.5))
    complete = icc_difference(first, second, form, n_resamples=200, n_permutations=50)
    first[0, 0] = second[3, 2] = np.nan
    refused = icc_difference(first, second, form)
    assert not refused.is_known
    assert "first condition: 1 of 105 cells are missing" in refused.notes[0]
    dropped = icc_difference(first, second, form, missing="drop_items", n_resamples=200, n_permutations=50)
    assert dropped.n == 13
    assert "2 of 15 items left out" in dropped.notes[0]
    fewer = icc_difference(first, second, form, missing="drop_raters", n_resamples=200, n_permutations=50)
    assert fewer.n == 15
    modelled = icc_difference(first, second, form, missing="model", n_resamples=200, n_permutations=50)
    assert modelled.value == pytest.approx(complete.value, abs=0.1)
    assert modelled.low < modelled.value < modelled.high
    assert modelled.p_value < 0.1
    if not form.startswith("ICC(1"):
        assert modelled.interval_method == "jackknife over raters and items"


def test_one_way_with_holes_equals_the_complete_road_when_there_are_none():
    from dialometer.stats.icc.difference import _one_way_on_counts
    from dialometer.stats.icc.forms import form_named, icc_of_counts

    rng = np.random.default_rng(5)
    ratings = rng.normal(size=(9, 1)) + rng.normal(size=(9, 5))
    items, raters = np.ones((3, 9)), np.array([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], dtype=float)
    for name in ("ICC(1,1)", "ICC(1,k)"):
        holed = _one_way_on_counts(ratings, items, raters, form_named(name))
        np.testing.assert_allclose(holed, icc_of_counts(ratings, items, raters)[name], atol=1e-12)


def test_unequal_numbers_of_raters_are_noted_for_averages():
    first, second = two_conditions(np.random.default_rng(6), k=(5, 9))
    assert (
        "averages of 5 and of 9"
        in icc_difference(first, second, "ICC(2,k)", n_resamples=50, n_permutations=50).notes[0]
    )
    assert icc_difference(first, second, "ICC(2,1)", n_resamples=50, n_permutations=50).notes == ()


def test_degenerate_and_misuse():
    first, second = two_conditions(np.random.default_rng(7))
    flat = icc_difference(first, np.full_like(second, 3.0))
    assert not flat.is_known
    assert "second condition: every rating is 3" in flat.notes[0]
    assert not icc_difference(first[:1], second[:1]).is_known
    assert not icc_difference(first[:, :1], second).is_known
    with pytest.raises(NotEnoughData, match="same items"):
        icc_difference(first[:5], second)
