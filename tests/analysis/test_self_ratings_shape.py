"""The shape of ratings: a J is called a J, noise is not, and real ratings come out as they are counted."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dialometer.analysis.base.wording import p_words
from dialometer.analysis.families.conversations.rating_shape import TESTS, _words, rating_shape
from dialometer.readers.dialogue_file import read_dialogues

POINTS = ["1", "2", "3", "4", "5"]


def drawn(shares, n, seed, per_rater=2):
    rng = np.random.default_rng(seed)
    return rng.choice(5, size=n, p=shares), np.arange(n) // per_rater


@pytest.mark.parametrize(
    ("shares", "shape"),
    [
        ((0.20, 0.06, 0.08, 0.16, 0.50), "J"),
        ((0.50, 0.16, 0.08, 0.06, 0.20), "reversed J"),
        ((0.38, 0.08, 0.08, 0.08, 0.38), "U"),
        ((0.02, 0.05, 0.15, 0.30, 0.48), "top"),
        ((0.48, 0.30, 0.15, 0.05, 0.02), "bottom"),
        ((0.05, 0.20, 0.50, 0.20, 0.05), "hump"),
    ],
)
def test_shapes_are_recognised(shares, shape):
    place, raters = drawn(shares, 600, 1)
    found = rating_shape(place, POINTS, raters)
    assert found.shape == shape
    assert [one.value for one in found.shares] == pytest.approx(np.bincount(place, minlength=5) / 600)


def test_a_hump_is_said_with_its_own_test():
    place, raters = drawn((0.1, 0.2, 0.4, 0.2, 0.1), 100, 1)
    found = rating_shape(place, POINTS, raters)
    assert found.shape == "hump"
    assert f"(both ends against between: {p_words(found.index.p_value)})" in _words("Overall", found)


def test_differences_are_those_of_the_shares():
    place, raters = drawn((0.2, 0.06, 0.08, 0.16, 0.5), 300, 2)
    found = rating_shape(place, POINTS, raters)
    share = np.bincount(place, minlength=5) / 300
    between = share[1:4].mean()
    expected = dict(zip(TESTS, (share[4] - between, share[0] - between, share[4] - share[0]), strict=True))
    for name, value in expected.items():
        assert found.contrasts[name].value == pytest.approx(value)
    assert found.index.value == pytest.approx((share[0] + share[4]) / 2 - between)


def test_one_rating_each_is_the_one_sample_t_test():
    place, raters = drawn((0.2, 0.1, 0.2, 0.2, 0.3), 120, 3, per_rater=1)
    found = rating_shape(place, POINTS, raters)
    score = (place == 4) - np.isin(place, (1, 2, 3)) / 3
    peer = stats.ttest_1samp(score, 0)
    assert found.contrasts[TESTS[0]].p_value == pytest.approx(peer.pvalue)
    assert found.contrasts[TESTS[0]].low == pytest.approx(peer.confidence_interval(0.95).low)


def test_flat_ratings_are_seldom_called_a_shape():
    claimed = sum(rating_shape(*_flat(seed)).shape != "none" for seed in range(300))
    assert claimed / 300 <= 0.09


def _flat(seed):
    place, raters = drawn((0.2,) * 5, 200, seed)
    return place, POINTS, raters


def test_raters_who_repeat_themselves_widen_the_intervals():
    rng = np.random.default_rng(5)
    own = rng.choice(5, size=40, p=(0.2, 0.06, 0.08, 0.16, 0.5))
    place, raters = np.repeat(own, 5), np.repeat(np.arange(40), 5)
    clustered = rating_shape(place, POINTS, raters).shares[4]
    naive = rating_shape(place, POINTS, np.arange(200)).shares[4]
    assert clustered.high - clustered.low > 1.8 * (naive.high - naive.low)


def test_two_points_have_nothing_between():
    found = rating_shape(np.array([0, 1, 1, 1]), ["no", "yes"], np.arange(4))
    assert found.shape == "none"
    assert not found.index.is_known
    assert found.shares[1].value == 0.75


def test_intervals_end_at_what_is_possible():
    """Nearly all at 2 to 4 of five points: a point between has at most a third more than an end."""
    place = np.array([4, 0] + [1, 2, 3] * 6)
    found = rating_shape(place, POINTS, np.arange(20))
    highest = found.contrasts[TESTS[0]]
    assert highest.low == pytest.approx(-1 / 3)
    assert "cut at the ends" in highest.interval_method
    assert found.index.low == pytest.approx(-1 / 3)
    assert highest.p_value < 0.05


def test_ratings_between_the_ends_only_are_said_to_be_not_tested():
    found = rating_shape(np.array([1, 2, 3] * 6), POINTS, np.arange(18))
    assert found.short_words == "all between the ends (no test)"
    assert "between the ends, so their shape is not tested" in _words("Overall", found)
    assert all(one.notes == ("nobody chose an end: no confidence interval",) for one in found.contrasts.values())
    assert rating_shape(np.array([4, 4, 0, 4]), POINTS, np.zeros(4)).short_words == "not tested"


def test_one_rater_makes_no_shape():
    found = rating_shape(np.array([4, 4, 0, 4]), POINTS, np.zeros(4))
    assert found.shape == "none"


@pytest.mark.realdata
def test_convai2_ratings_pile_up_at_the_bottom():
    """Paid people rated the bots of ConvAI2 (1 to 5): nearly half at the lowest point, no second peak at the highest."""
    folder = os.environ.get("DIALOMETER_DATA")
    if not folder or not (Path(folder) / "convai2").is_dir():
        pytest.skip("DIALOMETER_DATA does not name a folder with convai2/")
    given = []
    for path in sorted((Path(folder) / "convai2").glob("export_*.json.gz")):
        given += [one.metadata["rating"] for one in read_dialogues(path) if one.metadata["rating"] is not None]
    counts = np.bincount(given, minlength=6)[1:]
    found = rating_shape(np.array(given) - 1, POINTS, np.arange(len(given)))
    assert [round(one.value * found.n) for one in found.shares] == counts.tolist()
    assert counts.argmax() == 0
    assert found.shape == "bottom"
    assert found.shares[0].value == pytest.approx(0.4536, abs=1e-4)
