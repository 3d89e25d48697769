"""Numbers in words: digits, p values, percentages, and what is not known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialometer.analysis.base.wording import interval_only, value_only
from dialometer.model.estimate import Estimate, unknown
from dialometer.report.numbers import (
    MINUS,
    NOT_ENOUGH,
    digits_of,
    shared_digits,
    write_estimate,
    write_number,
    write_p,
    write_percent,
    write_signed,
)


def within(value, half):
    return Estimate(value, 10, "mean", value - half, value + half)


@pytest.mark.parametrize(
    ("value", "half", "written"),
    [
        # Two digits in a sentence, a tile and a table alike, whatever the width of the interval.
        (0.827, 0.119, "0.83"),
        (0.827, 0.367, "0.83"),
        (5.1234, 0.951, "5.12"),
        (5.1234, 4.9, "5.12"),
        (51.234, 5.1, "51.2"),
        (51.234, 51.0, "51"),
        # Narrower than that: the borders 354/355 and 949/950 of the Particle Data Group's rule.
        (5.12345, 0.00354, "5.1235"),
        (5.12345, 0.00356, "5.123"),
        (1234.5, 30.0, "1,235"),  # halves are rounded up
        (1234567.8, 5000.0, "1,234,568"),
    ],
)
def test_interval_decides_the_digits(value, half, written):
    assert write_estimate(within(value, half)).value == written


def test_half_width_from_950_counts_as_the_next_power():
    assert digits_of(within(1, 0.00949), 9) == 3
    assert digits_of(within(1, 0.00951), 9) == 3
    assert digits_of(within(1, 0.000949), 9) == 4
    assert digits_of(within(1, 0.000951), 9) == 4


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e6))
def test_what_is_written_is_never_further_off_than_the_interval_allows(value, half):
    estimate = Estimate(value, 5, "mean", value - half, value + half)
    read = float(write_estimate(estimate).value.replace(",", "").replace(MINUS, "-"))
    assert abs(read - value) <= max(0.15 * (estimate.high - estimate.low), 0.5 if half > 3.5 else 0) + 1e-9


def test_columns_share_digits_unless_their_intervals_are_of_different_size():
    assert shared_digits([within(1, 0.2), within(1, 0.05), unknown("m", "why")], 2) == 2
    assert shared_digits([within(1, 0.0002), within(1000, 50)], 2) is None
    assert shared_digits([Estimate(1, 3, "m")], 4) == 4


def ratio(value, low, high):
    return Estimate(value, 9, "m", low, high, unit="ratio")


def test_ratios_share_digits():
    wide, narrow = (ratio(1.0, 1 - half, 1 + half) for half in (0.03, 0.0185))
    assert [digits_of(wide, 2), digits_of(narrow, 2)] == [2, 3]
    assert shared_digits([wide, wide, narrow], 2) == 3  # 1.00 for 1.002 would hide the side of 1


@pytest.mark.parametrize(
    ("estimate", "written"),
    [
        (ratio(26.21, 7.15, 96.08), "26 [7.15, 96]"),
        (ratio(2948.4, 548.2, 15853.3), "2,900 [550, 16,000]"),
        (ratio(340.2, 52.1, 2246.4), "340 [52, 2,200]"),
        (ratio(1.48, 0.97, 12.35), "1.48 [0.97, 12]"),  # on which side of 1 the lower end is remains to be seen
        (ratio(152.3, 147.2, 157.1), "152 [147, 157]"),  # an interval narrower than two digits shows more
        (ratio(34.56, 5.0, math.inf), "35 [5.00, ∞)"),
    ],
)
def test_large_ratios_have_two_significant_digits_alone_in_a_column_and_in_a_sentence(estimate, written):
    assert write_estimate(estimate).text == written
    assert write_estimate(estimate, n_digits=shared_digits([estimate, ratio(1.1, 0.8, 1.5)], 2)).text == written
    value, low, high = written.replace("(", "[").translate(str.maketrans("", "", "[])")).replace(", ", " ").split()
    assert value_only(estimate) == value
    assert interval_only(estimate) == f"95% confidence interval {low} to {high}"


@pytest.mark.parametrize(
    ("p", "text", "bare"),
    [
        (0.0231, "p\u00a0=\u00a0.023", ".023"),
        (0.0009999, "p\u00a0<\u00a0.001", "<\u00a0.001"),
        (0.0, "p\u00a0<\u00a0.001", "<\u00a0.001"),
        (0.001, "p\u00a0=\u00a0.001", ".001"),
        (0.5, "p\u00a0=\u00a0.500", ".500"),
        (0.9999, "p\u00a0>\u00a0.999", ">\u00a0.999"),
        (1.0, "p\u00a0>\u00a0.999", ">\u00a0.999"),
        (math.nan, NOT_ENOUGH, NOT_ENOUGH),
    ],
)
def test_p_values(p, text, bare):
    assert write_p(p) == text
    assert write_p(p, is_bare=True) == bare


def test_numbers():
    assert write_number(-0.0004, 3) == "0.000"
    assert write_number(-1234.5, 1) == f"{MINUS}1,234.5"
    assert write_number(0.00000012, 2) == f"1.2e{MINUS}07"
    assert write_number(-math.inf, 2) == f"{MINUS}∞"
    assert write_percent(0.6234, 1) == "62.3%"
    assert write_percent(0.0) == "0%"


@pytest.mark.parametrize(
    ("value", "text"), [(2.04, "+2.0"), (-11.1, f"{MINUS}11.1"), (0.04, "0.0"), (-0.04, "0.0"), (0, "0.0")]
)
def test_differences_have_their_sign(value, text):
    assert write_signed(value, 1) == text


def test_percent_estimate_scales_value_and_interval():
    words = write_estimate(Estimate(0.583, 120, "share", 0.494, 0.668), is_percent=True)
    assert words.text == "58% [49, 67]"


def test_not_known_is_said_with_its_reason_and_never_zero():
    words = write_estimate(unknown("mean", "no answers"))
    assert words.value == NOT_ENOUGH
    assert words.notes == ("no answers",)
    assert not words.is_known


def test_estimate_without_an_interval_uses_the_columns_digits():
    assert write_estimate(Estimate(0.123456, 5, "mean"), fallback=3).text == "0.123"
    assert write_estimate(Estimate(2.0, 5, "mean", 2.0, 2.0), fallback=1).text == "2.0 [2.0, 2.0]"
    assert write_estimate(Estimate(2.0, 5, "mean", 1.5, math.inf), fallback=1).text == "2.0 [1.5, ∞)"


def test_a_difference_on_seven_points_has_the_digits_of_its_table_however_wide():
    assert write_estimate(Estimate(0.55, 40, "mean", -5.87, 6.0, 0.95)).text == "0.55 [−5.87, 6.00]"
    assert write_estimate(Estimate(3.2, 40, "mean", -2.5, 8.9, 0.95)).text == "3.2 [−2.5, 8.9]"


@pytest.mark.parametrize("unit", ["percentage points of the scale", "% of the scale"])
def test_parts_of_a_scale_in_percent_have_one_digit_however_wide_and_without_interval(unit):
    assert write_estimate(Estimate(10.3, 40, "mean", -56.3, 76.9, 0.95, unit=unit)).text == "10.3 [−56.3, 76.9]"
    alone = Estimate(41.39, 1, "mean", unit=unit)
    assert write_estimate(alone, n_digits=shared_digits([alone], 2)).text == "41.4"
