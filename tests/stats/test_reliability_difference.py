import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.stats.icc.difference import icc_difference, paired_icc_difference
from dialometer.stats.icc.icc import icc


def two_conditions(rng, n=25, k=(12, 12), error=(1.0, 1.0), rater=0.3):
    item = rng.normal(size=(n, 1))
    sides = zip(k, error, strict=True)
    return [
        item + rater * rng.normal(size=(1, n_raters)) + noise * rng.normal(size=(n, n_raters))
        for n_raters, noise in sides
    ]


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(3,k)"])
def test_value_is_the_difference_and_a_real_one_is_found(form):
    first, second = two_conditions(np.random.default_rng(1), error=(0.5, 2.0))
    result = icc_difference(first, second, form, n_permutations=500)
    assert result.value == pytest.approx(icc(first, form).value - icc(second, form).value)
    assert result.details["icc_first"] == pytest.approx(icc(first, form).value)
    assert result.low < result.value < result.high
    if not form.endswith("k)"):  # close to 1 a difference of averages is hard to tell
        assert result.low > 0
        assert 1 / 501 <= result.p_value < 0.02
    turned = icc_difference(second, first, form, n_permutations=500)
    assert turned.value == pytest.approx(-result.value)


def test_the_level_of_a_condition_does_not_matter():
    first, second = two_conditions(np.random.default_rng(2))
    plain = icc_difference(first, second, n_permutations=300)
    moved = icc_difference(first, 40 + second, n_permutations=300)
    for field in ("value", "low", "high", "p_value"):
        assert getattr(moved, field) == pytest.approx(getattr(plain, field), abs=1e-9)
    # Its spread leaves difference and standard error alone; random divisions mix raters of both spreads.
    wider = icc_difference(first, 3 * second, n_permutations=999)
    assert wider.statistic == pytest.approx(plain.statistic, abs=1e-9)
    assert wider.p_value == pytest.approx(plain.p_value, abs=0.1)


@pytest.mark.parametrize("form", ["ICC(2,1)", "ICC(3,1)"])
@pytest.mark.parametrize("spread", [1.0, 0.5])
def test_false_alarms_and_coverage_with_careless_raters(form, spread):
    """The same ICC on both sides, 5% careless raters, and in half of the cases numbers of another spread on one side."""
    rng = np.random.default_rng(3)
    n_trials, alarms = 300, 0
    for trial in range(n_trials):
        first, second = two_conditions(rng, k=(10, 14))
        for side in (first, second):
            is_careless = rng.random(side.shape[1]) < 0.05
            side[:, is_careless] = 1.5 * rng.normal(size=(len(side), int(is_careless.sum())))
        result = icc_difference(first, spread * second, form, n_permutations=199, seed=trial)
        is_alarm = result.p_value < 0.05
        assert is_alarm == (not result.low <= 0 <= result.high)  # interval and test never disagree
        alarms += is_alarm
    assert alarms / n_trials <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / n_trials)


def test_a_condition_that_changes_single_items_is_no_change_of_consistency():
    """Items that mean something else in each condition: the same ICC, but not the same items; all items are a sample."""
    rng = np.random.default_rng(8)
    n_trials = {"sample": 0, "fixed": 0}
    for trial in range(200):
        sides = [item + rng.normal(size=(30, 19)) for item in rng.normal(size=(2, 30, 1))]
        for name in n_trials:
            result = icc_difference(*sides, "ICC(3,1)", has_fixed_items=name == "fixed", n_permutations=199, seed=trial)
            n_trials[name] += result.p_value < 0.05
    assert n_trials["sample"] <= 20
    assert n_trials["fixed"] > 40  # these items do differ


def test_responses_to_one_item_are_left_out_together():
    rng = np.random.default_rng(9)
    item = np.repeat(rng.normal(size=(10, 1)), 3, axis=0)
    sides = [item + rng.normal(size=(30, 8)) for _ in range(2)]
    alone = icc_difference(*sides, n_permutations=99)
    together = icc_difference(*sides, n_permutations=99, clusters=np.arange(30) // 3)
    assert together.value == alone.value
    assert together.details["standard_error"] != pytest.approx(alone.details["standard_error"], rel=1e-3)


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(1,k)", "ICC(2,1)", "ICC(3,1)"])
def test_holes(form):
    rng = np.random.default_rng(4)
    first, second = two_conditions(rng, n=15, k=(7, 6), error=(0.4, 1.5))
    complete = icc_difference(first, second, form, n_permutations=50)
    first[0, 0] = second[3, 2] = np.nan
    refused = icc_difference(first, second, form)
    assert not refused.is_known
    assert "first condition: 1 of 105 cells are missing" in refused.notes[0]
    dropped = icc_difference(first, second, form, missing="drop_items", n_permutations=50)
    assert dropped.n == 13
    assert "2 of 15 items excluded" in dropped.notes[0]
    fewer = icc_difference(first, second, form, missing="drop_raters", n_permutations=50)
    assert fewer.n == 15
    modelled = icc_difference(first, second, form, missing="model", n_permutations=50)
    assert modelled.value == pytest.approx(complete.value, abs=0.1)
    assert modelled.low < modelled.value < modelled.high
    assert modelled.p_value < 0.15
    if not form.startswith("ICC(1"):
        assert modelled.interval_method.startswith("jackknife over raters and items")


def test_unequal_numbers_of_raters_are_noted_for_averages():
    first, second = two_conditions(np.random.default_rng(6), k=(5, 9))
    assert "averages of 5 and of 9" in icc_difference(first, second, "ICC(2,k)", n_permutations=50).notes[0]
    assert icc_difference(first, second, "ICC(2,1)", n_permutations=50).notes == ()


def test_degenerate_and_misuse():
    first, second = two_conditions(np.random.default_rng(7))
    flat = icc_difference(first, np.full_like(second, 3.0))
    assert not flat.is_known
    assert "second condition: every rating is 3" in flat.notes[0]
    assert not icc_difference(first[:1], second[:1]).is_known
    assert not icc_difference(first[:, :1], second).is_known
    with pytest.raises(NotEnoughData, match="same items"):
        icc_difference(first[:5], second)


def test_two_raters_have_no_test():
    first, second = two_conditions(np.random.default_rng(7), k=(2, 9))
    result = icc_difference(first, second)
    assert result.is_known
    assert not result.has_interval
    assert np.isnan(result.p_value)
    assert "fewer than 3 raters" in result.notes[0]


def test_two_criteria_by_the_same_raters():
    rng = np.random.default_rng(10)
    quality = rng.normal(size=(60, 1))
    easy, hard = quality + 0.4 * rng.normal(size=(60, 8)), quality + 2 * rng.normal(size=(60, 8))
    result = paired_icc_difference(easy, hard)
    assert result.value == pytest.approx(icc(easy).value - icc(hard).value)
    assert 0 < result.low < result.high
    assert result.p_value < 0.001
    # The standard error is that of the left-out tables.
    without = [
        [icc(np.delete(t, i, axis), "ICC(2,1)").value for t in (easy, hard)]
        for axis in (0, 1)
        for i in range((60, 8)[axis])
    ]
    gaps = np.array([a - b for a, b in without])
    variance = sum((len(part) - 1) * part.var() for part in (gaps[:60], gaps[60:]))
    assert result.details["standard_error"] == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_criteria_that_are_equally_consistent_seldom_differ():
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(300):
        tables = [rng.normal(size=(30, 1)) + rng.normal(size=(30, 12)) for _ in range(2)]
        alarms += paired_icc_difference(*tables, "ICC(3,1)").p_value < 0.05
    assert alarms <= 0.05 * 300 + 2.5 * np.sqrt(300 * 0.05 * 0.95)
