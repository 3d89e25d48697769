"""The statistics that rating reports add to ``stats/``, each beside an independent implementation."""

import warnings

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import pytest

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.ratings.agreement import Scores, crossing, raters_needed, reliability
from dialometer.stats.agreement.krippendorff_alpha import interval_alpha
from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.difference import paired_icc_difference
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way

OPTIONS = Options(confidence=0.95, n_resamples=500, seed=3, correction="holm")


def crossed_data(n_raters, n_items, *, seed=0, rater_sd=0.7, item_sd=0.5, shift=0.3):
    rng = np.random.default_rng(seed)
    rater, item = (codes.ravel() for codes in np.meshgrid(np.arange(n_raters), np.arange(n_items), indexing="ij"))
    y = shift + rng.normal(0, rater_sd, n_raters)[rater] + rng.normal(0, item_sd, n_items)[item]
    return y + rng.normal(0, 1, len(y)), rater, item


def test_interval_alpha_is_krippendorffs():
    rng = np.random.default_rng(7)
    table = rng.normal(size=(40, 6)) + rng.normal(size=(40, 1))
    table[rng.random(table.shape) < 0.3] = np.nan
    target, rater = np.nonzero(~np.isnan(table))
    found = interval_alpha(table[target, rater], target, n_resamples=OPTIONS.n_resamples, seed=OPTIONS.seed)
    expected = krippendorff.alpha(table.T, level_of_measurement="interval")
    assert found.value == pytest.approx(expected, abs=1e-10)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("is_complete", [True, False])
def test_the_form_of_the_icc_follows_the_design(is_complete):
    y, rater, item = crossed_data(6, 25, seed=9)
    if is_complete:
        found = reliability(Scores(y, item, rater), confidence=0.95)
        # pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="y"): ICC(A,1) and ICC(A,k)
        frame = pd.DataFrame({"item": item, "rater": rater, "y": y})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pingouin's use of pandas, not ours
            table = pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="y").set_index("Type")[
                "ICC"
            ]
        assert found.crossing == "complete"
        assert found.single.value == pytest.approx(float(table["ICC(A,1)"]), abs=1e-9)
        assert found.average.value == pytest.approx(float(table["ICC(A,k)"]), abs=1e-9)
        return
    kept = np.random.default_rng(2).random(len(y)) < 0.7
    y, rater, item = y[kept], rater[kept], item[kept]
    found = reliability(Scores(y, item, rater), confidence=0.95, method="classical")
    assert found.crossing == "partly"
    assert found.single.value == icc_crossed(y, item, rater, "ICC(2,1)").value
    whole = icc_crossed(y, item, rater, "ICC(2,k)")
    assert found.average.value == pytest.approx(whole.value, abs=1e-9)
    assert (found.average.low, found.average.high) == pytest.approx((whole.low, whole.high), abs=1e-9)


def test_raters_who_differ_from_item_to_item_get_the_one_way_form():
    rng = np.random.default_rng(3)
    item = np.repeat(np.arange(30), 3)
    y = rng.normal(size=30)[item] + rng.normal(size=90)
    scores = Scores(y, item, np.arange(90))
    assert crossing(scores) == "one_way"
    assert reliability(scores, confidence=0.95).single.value == icc_one_way(y, item, "ICC(1,1)").value


def test_too_little_for_an_icc_says_so():
    scores = Scores(np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 0]))
    found = reliability(scores, confidence=0.95)
    assert found.crossing == "none"
    assert "at least two of each" in found.single.notes[0]


def test_raters_needed_is_spearman_brown():
    for single in (0.2, 0.35, 0.6):
        n = raters_needed(single, 0.8)
        reached = [single * k / (1 + (k - 1) * single) for k in (n - 1, n)]
        assert reached[0] < 0.8 <= reached[1] + 1e-12
    assert raters_needed(-0.1) is None
    assert raters_needed(0.9) == 1


@pytest.mark.parametrize("has_holes", [False, True])
def test_two_criteria_of_the_same_raters(has_holes):
    rng = np.random.default_rng(11)
    truth = rng.normal(size=(60, 1))
    first = truth + rng.normal(0, 0.6, (60, 8))
    second = truth + rng.normal(0, 1.4, (60, 8))
    if has_holes:
        hole = rng.random((60, 8)) < 0.2
        first, second = (np.where(hole, np.nan, table) for table in (first, second))
        expected = [icc(table, "ICC(1,1)", missing="model").value for table in (first, second)]
    else:
        expected = [icc(table, "ICC(2,1)").value for table in (first, second)]
    found = paired_icc_difference(first, second)
    assert found.value == pytest.approx(expected[0] - expected[1], abs=1e-9)
    assert 0 < found.low < found.high
    assert found.p_value < 0.01
    back = paired_icc_difference(second, first)
    assert back.value == pytest.approx(-found.value)
    same = paired_icc_difference(first, truth + rng.normal(0, 0.6, (60, 8)))
    assert same.low < 0 < same.high
    assert same.p_value > 0.05


def test_interval_and_p_of_two_criteria_never_contradict():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(25, 1))
        first, second = truth + rng.normal(0, 1, (25, 6)), truth + rng.normal(0, 1.3, (25, 6))
        found = paired_icc_difference(first, second)
        is_out = not found.low <= 0 <= found.high
        assert is_out == (found.p_value < 0.05) or abs(found.p_value - 0.05) < 0.01


def test_a_mean_over_nearly_five_ratings_is_written_as_over_five():
    """The harmonic mean of how often targets were rated, with one digit: 5 and not 5.0 beside a k of 6."""
    rng = np.random.default_rng(1)
    item, rater = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    values = rng.normal(size=40)[item] + rng.normal(size=200)
    found = reliability(Scores(values[1:], item[1:], rater[1:]), confidence=0.95)
    assert 4.9 < found.average.details["k"] < 5
    assert found.n_averaged == 5.0
