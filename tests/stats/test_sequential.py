"""Looking early: bounds against published values and formulas, and the largest statistic of random walks."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.stats.effects.equivalence import equivalence
from dialometer.stats.effects.multiplicity import adjust, adjust_estimates, at_look, holm, look_of
from dialometer.stats.sequential.anytime import FIRST, AnytimeLook, narrowest
from dialometer.stats.sequential.look import SequentialLook, quantile
from dialometer.stats.sequential.planned import PlannedLook, bounds, crossing, spent

FIVE = (20, 40, 60, 80, 100)


@pytest.mark.parametrize(
    ("n_looks", "spending", "published"),
    [
        # R: rpact 3.3.4, getDesignGroupSequential(kMax, alpha = 0.05, sided = 2, typeOfDesign = "asOF" or "asP")$criticalValues
        (2, "obrien_fleming", [2.9626, 1.9686]),
        (3, "obrien_fleming", [3.7103, 2.5114, 1.9930]),
        (4, "obrien_fleming", [4.3326, 2.9631, 2.3590, 2.0141]),
        (5, "obrien_fleming", [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        (5, "pocock", [2.4380, 2.4268, 2.4102, 2.3966, 2.3859]),
    ],
)
def test_bounds_are_those_of_lan_and_demets_as_published(n_looks, spending, published):
    looks = tuple(range(1, n_looks + 1))
    assert bounds(looks, n_looks, 0.05, spending) == pytest.approx(published, abs=2e-4)


def test_crossing_is_that_of_pocock_and_obrien_fleming():
    """Jennison and Turnbull (2000), tables 2.1 and 2.3: constants of five looks at 5 %."""
    assert crossing([2.413] * 5, range(1, 6)) == pytest.approx(0.05, abs=1e-4)
    assert crossing([2.040 * math.sqrt(5 / k) for k in range(1, 6)], range(1, 6)) == pytest.approx(0.05, abs=1e-4)
    assert crossing([1.96] * 5, range(1, 6)) == pytest.approx(0.142, abs=5e-4)  # their table 2.1 for repeated tests


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_all_of_alpha_is_spent_by_the_end_and_no_more(spending):
    assert spent(1.0, 0.05, spending) == spent(1.2, 0.05, spending) == 0.05
    looks = (13, 40, 77, 120)
    assert crossing(bounds(looks, 120, 0.05, spending), looks) == pytest.approx(0.05, abs=1e-7)
    later = (13, 40, 77, 131)  # more raters than planned at the last look: still no more than alpha
    assert crossing(bounds(later, 120, 0.05, spending), later) == pytest.approx(0.05, abs=1e-7)


def test_looks_that_do_not_rise_are_refused():
    with pytest.raises(DialometerError, match="looks at"):
        bounds((20, 20), 40, 0.05)


@pytest.mark.parametrize("n", [10, 35, 60, 120, 500])
def test_the_bound_of_looks_at_any_time_is_the_published_one(n):
    """Waudby-Smith et al. (2024), equation 5: sigma sqrt(2 (t rho^2 + 1) / (t^2 rho^2) log(sqrt(t rho^2 + 1) / alpha))."""
    look = AnytimeLook(n, 120)
    rho2 = look.ratio / n
    half = math.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * math.log(math.sqrt(n * rho2 + 1) / 0.05))
    assert quantile(look.level(0.05)) == pytest.approx(half * math.sqrt(n), rel=1e-9)


def test_the_bound_is_narrowest_where_it_was_made_to_be():
    grid = np.linspace(1, 30, 2901)
    size = (1 + 1 / grid) * (2 * math.log(1 / 0.05) + np.log1p(grid))
    assert narrowest(0.05) == pytest.approx(grid[size.argmin()], abs=0.01)


@pytest.mark.parametrize(
    "look",
    [AnytimeLook(30, 120), AnytimeLook(300, 120), PlannedLook(FIVE[:1], FIVE), PlannedLook(FIVE[:3], FIVE),
     PlannedLook(FIVE, FIVE, "pocock")],
)  # fmt: skip
def test_a_p_value_is_the_smallest_alpha_whose_level_it_reaches(look: SequentialLook):
    for alpha in (0.001, 0.0125, 0.05, 0.2):
        assert look.p_value(look.level(alpha)) == pytest.approx(alpha, rel=5e-3)
    values = [look.p_value(p) for p in np.geomspace(1e-12, 1, 60)]
    assert all(earlier <= later for earlier, later in pairwise(values))
    assert values[-1] == 1.0
    assert look.level(0.05) < 0.05


def test_no_result_before_the_first_look():
    assert AnytimeLook(FIRST - 1, 100).p_value(1e-30) == 1.0
    assert AnytimeLook(FIRST - 1, 100).level(0.05) == 0.0


def test_errors_over_all_looks_stay_below_alpha_in_random_walks():
    """The largest statistic of 20,000 walks of 200 steps, looked at after every step from the tenth on."""
    rng = np.random.default_rng(4)
    steps = np.arange(1, 201)
    z = np.cumsum(rng.standard_normal((20_000, 200)), axis=1) / np.sqrt(steps)
    bound = np.array([quantile(AnytimeLook(n, 200).level(0.05)) if n >= FIRST else np.inf for n in steps])
    assert np.mean(np.any(np.abs(z) >= bound, axis=1)) < 0.05
    planned = np.array([50, 100, 150, 200])
    crossed = np.any(np.abs(z[:, planned - 1]) >= bounds(tuple(planned.tolist()), 200, 0.05), axis=1)
    assert np.mean(crossed) == pytest.approx(0.05, abs=0.005)


def test_items_that_are_a_sample_only_make_errors_rarer():
    """A share of the error that is the same at every look: statistics are more alike, and bounds are crossed less often."""
    rng = np.random.default_rng(5)
    n = np.array([20, 40, 60, 80, 100])
    walk = np.cumsum(rng.standard_normal((40_000, 5)) * np.sqrt(20), axis=1) / n
    bound = np.array(bounds(FIVE, 100, 0.05, "pocock"))
    shares = []
    for item_sd in (0.0, 0.1, 0.3):
        mean = walk + item_sd * rng.standard_normal((40_000, 1))
        z = mean / np.sqrt(1 / n + item_sd**2)
        shares.append(float(np.mean(np.any(np.abs(z) >= bound, axis=1))))
    assert shares[0] > shares[1] > shares[2]
    assert shares[0] == pytest.approx(0.05, abs=0.004)


TEST = Estimate(0.4, 50, "t-test", low=0.1, high=0.7, statistic=2.69, df=(40.0,), p_value=0.0104)


def test_an_estimate_at_a_look_agrees_with_its_test():
    """The widened interval excludes zero exactly where the p-value over all looks is below alpha."""
    error = 0.3 / stats.t.isf(0.025, 40)
    for value in (0.3, 0.45, 0.5, 0.55, 0.8):
        fixed = Estimate(
            value, 50, "t", low=value - 0.3, high=value + 0.3, df=(40.0,), p_value=2 * stats.t.sf(value / error, 40)
        )
        held = AnytimeLook(50, 100).applied(fixed)
        assert (held.low > 0) == (held.p_value < 0.05)
        assert held.high - held.low > fixed.high - fixed.low
        assert held.confidence == 0.95
    assert AnytimeLook(50, 100).applied(held) == held


def test_shares_stay_between_nought_and_one():
    share = Estimate(0.9, 30, "share", low=0.7, high=0.98, p_value=0.001, details={"null": 0.5})
    held = AnytimeLook(30, 100).applied(share)
    assert 0.0 < held.low < 0.7
    assert held.high == 1.0


def test_a_margin_is_tested_from_its_own_side():
    base = Estimate(0.02, 60, "t", low=-0.1, high=0.14, df=(59.0,), p_value=0.7, details={"standard_error": 0.06})
    tested = equivalence(base, -0.3, 0.3)
    look = PlannedLook(FIVE[:3], FIVE, "pocock")
    held = look.applied(tested)
    assert held.p_value == pytest.approx(look.p_value(2 * tested.p_value) / 2)
    assert held.low < tested.low < tested.high < held.high
    assert look.one_sided(0.999) == pytest.approx(1 - look.one_sided(0.001))


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=6))
def test_many_tests_and_many_looks_are_corrected_together(p_values):
    look = AnytimeLook(40, 100)
    correction = at_look("holm", look)
    assert correction == "holm"
    assert adjust(p_values, correction) == pytest.approx(holm([look.p_value(p) for p in p_values]))
    assert look_of(pickle.loads(pickle.dumps(correction))) == look
    made = adjust_estimates([Estimate(1.0, 9, "t", p_value=p) for p in p_values], correction)
    assert [one.details["p_adjusted"] for one in made] == pytest.approx(list(adjust(p_values, correction)))


def test_the_predicted_chance_is_that_of_simulated_ends():
    """Flat prior: the drift is drawn from what the look says, then the rest of the raters come."""
    rng = np.random.default_rng(6)
    look = PlannedLook((50,), (50, 100))
    z = 1.5
    drift = (z + rng.standard_normal(400_000)) / np.sqrt(50)
    end = (z * np.sqrt(50) + 50 * drift + rng.standard_normal(400_000) * np.sqrt(50)) / 10
    wanted = float(np.mean(np.abs(end) >= quantile(look.last_level(0.05))))
    p = float(2 * stats.norm.sf(z))
    assert look.chance_at_end(Estimate(1.0, 50, "z", p_value=p), 0.05) == pytest.approx(wanted, abs=0.003)
    margin = Estimate(1.0, 50, "z", p_value=1 - p / 2, details={"lower_bound": 0.0})  # on the wrong side of the margin
    assert look.chance_at_end(margin, 0.05) < 0.01
