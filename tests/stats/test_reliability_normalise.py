import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.stats.effects.normalise import normalise

VALUES = np.array([10.0, 20.0, 40.0, 3.0, 5.0, 9.0, 100.0, 100.0])
RATERS = np.array(["a", "a", "a", "b", "b", "b", "c", "c"])


def test_log_normalisation_divides_by_the_geometric_mean():
    result = normalise(VALUES, RATERS, "ln_center")
    for rater in "abc":
        own = VALUES[rater == RATERS]
        np.testing.assert_allclose(result.values[rater == RATERS], np.log(own / stats.gmean(own)), atol=1e-12)
    assert result.constant_raters == ("c",)
    assert "always the same value by: c" in result.notes


@pytest.mark.parametrize(("method", "transform"), [("raw_z", lambda x: x), ("ln_z", np.log)])
def test_z_uses_each_raters_own_spread(method, transform):
    result = normalise(VALUES, RATERS, method)
    for rater in "ab":
        np.testing.assert_allclose(
            result.values[rater == RATERS], stats.zscore(transform(VALUES[rater == RATERS]), ddof=1)
        )
    np.testing.assert_array_equal(result.values[RATERS == "c"], 0)


def test_other_methods():
    np.testing.assert_allclose(normalise(VALUES, RATERS, "minmax").values, [0, 1 / 3, 1, 0, 1 / 3, 1, 0, 0])
    np.testing.assert_allclose(normalise(VALUES, RATERS, "raw").values, VALUES)
    np.testing.assert_allclose(normalise(VALUES, RATERS, "ln").values, np.log(VALUES))
    np.testing.assert_allclose(normalise(VALUES, RATERS, "ln", modulus=100).values, np.log(VALUES / 100))
    centred = normalise(VALUES, RATERS, "raw_center").values
    np.testing.assert_allclose(centred[:3], VALUES[:3] - VALUES[:3].mean())


def test_half_minimum_replaces_and_counts():
    result = normalise([0.0, 4.0, 8.0, -1.0, 6.0, 3.0], list("aaabbb"), "ln", zeros="half_minimum")
    np.testing.assert_allclose(np.exp(result.values), [2, 4, 8, 1.5, 6, 3])
    assert (result.n_zero, result.n_negative, result.n_replaced, result.n_excluded) == (1, 1, 2, 0)
    assert "2 of 1 zero and 1 negative estimates replaced" in result.notes[0]


def test_exclude_leaves_a_hole_and_counts():
    result = normalise([0.0, 4.0, 8.0, -1.0, 6.0, 3.0], list("aaabbb"), zeros="exclude")
    np.testing.assert_array_equal(np.isnan(result.values), [True, False, False, True, False, False])
    np.testing.assert_allclose(result.values[1:3].sum(), 0, atol=1e-12)  # centred on what is left
    assert (result.n_excluded, result.n_replaced) == (2, 0)


def test_error_refuses_and_says_what_to_do():
    with pytest.raises(NotEnoughData, match=r"number 3: 0.*exclude or half_minimum"):
        normalise([1.0, 2.0, 0.0], list("aaa"), zeros="error")
    assert normalise([1.0, 2.0], list("aa"), zeros="error").n_excluded == 0


def test_a_rater_with_nothing_positive_is_excluded_and_named():
    result = normalise([0.0, 0.0, 4.0, 8.0], list("aabb"), "ln", zeros="half_minimum")
    assert np.isnan(result.values[:2]).all()
    assert result.raters_without_positive == ("a",)
    assert result.n_excluded == 2
    assert any("no positive estimate by: a" in note for note in result.notes)


def test_zeros_matter_to_the_logarithm_only():
    result = normalise([0.0, 5.0, 10.0], list("aaa"), "minmax", zeros="error")
    np.testing.assert_allclose(result.values, [0, 0.5, 1])
    assert result.n_zero == 1


def test_missing_values_stay_missing():
    result = normalise([np.nan, 5.0, 10.0, np.nan], list("aaab"), "raw_center")
    np.testing.assert_array_equal(np.isnan(result.values), [True, False, False, True])
    assert result.n_missing == 2
    assert normalise([], [], "ln_z").n == 0


def test_misuse_is_refused():
    with pytest.raises(UnknownName, match="ln_center"):
        normalise([1.0], ["a"], "ln_centre")
    with pytest.raises(UnknownName, match="exclude"):
        normalise([1.0], ["a"], zeros="excluded")
    with pytest.raises(NotEnoughData, match="one rater for every value"):
        normalise([1.0, 2.0], ["a"])
    with pytest.raises(NotEnoughData, match="modulus"):
        normalise([1.0], ["a"], "ln", modulus=0)


@given(st.lists(st.floats(0.5, 1000), min_size=2, max_size=30), st.floats(0.01, 100))
def test_a_raters_own_unit_does_not_matter(values, unit):
    raters = np.arange(len(values)) % 3
    factor = np.where(raters == 1, unit, 1.0)
    for method in ("ln_center", "minmax"):
        one, two = normalise(values, raters, method).values, normalise(values * factor, raters, method).values
        np.testing.assert_allclose(one, two, atol=1e-6)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_every_rater_is_centred(values):
    raters = np.arange(len(values)) % 4
    for method in ("raw_center", "raw_z", "ln_center", "ln_z"):
        result = normalise(values, raters, method).values
        assert np.isfinite(result).all()
        for rater in set(raters):
            assert abs(result[raters == rater].mean()) < 1e-9
