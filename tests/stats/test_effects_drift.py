"""Slopes of single raters over a session."""

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.effects.drift import rater_slopes


def sessions(rng, n_raters=40, n=50, slopes=0.0, noise=1.0):
    time = np.tile(np.arange(n), n_raters)
    rater = np.repeat(np.arange(n_raters), n)
    return np.broadcast_to(slopes, n_raters)[rater] * time + rng.normal(0, noise, len(time)), time, rater


def test_each_line_is_that_of_linregress():
    y, x, rater = sessions(np.random.default_rng(1), 5, 20, 0.02)
    found = rater_slopes(y, x, rater)
    for place in range(5):
        line = stats.linregress(x[rater == place], y[rater == place])
        assert found.slopes[place] == pytest.approx(line.slope)
        assert found.errors[place] == pytest.approx(line.stderr)
        assert found.p_values[place] == pytest.approx(line.pvalue)
        assert found.df[place] == 18


def test_between_raters_is_dersimonian_and_laird_by_hand():
    """Three slopes 0, 1, 2 with standard errors made equal: tau^2 = (Q - 2 df / (df - 2)) / (sum w - sum w^2 / sum w)."""
    rng = np.random.default_rng(2)
    x = np.tile(np.arange(10.0), 3)
    rater = np.repeat(np.arange(3), 10)
    noise = np.tile(rng.normal(size=10), 3)  # the same residuals for all: equal standard errors
    found = rater_slopes(rater * x + noise, x, rater)
    weight = 1 / found.errors[0] ** 2
    q = weight * np.sum((found.slopes - found.slopes.mean()) ** 2)
    variance = (q - 2 * 8 / 6) / (3 * weight - weight)
    assert found.sd == pytest.approx(np.sqrt(variance))
    assert found.mean == pytest.approx(found.slopes.mean())
    kept = variance / (variance + found.errors[0] ** 2)
    np.testing.assert_allclose(found.shrunken - found.mean, kept * (found.slopes - found.mean))


def test_no_drift_is_seldom_found_and_shrinks_to_nothing():
    rng = np.random.default_rng(3)
    any_found, equal = 0, 0
    for _ in range(200):
        found = rater_slopes(*sessions(rng))
        any_found += bool((found.p_adjusted < 0.05).any())
        equal += found.p_equal < 0.05
        assert np.ptp(found.shrunken) <= np.ptp(found.slopes)
    assert max(any_found, equal) <= 0.05 * 200 + 2.5 * np.sqrt(200 * 0.05 * 0.95)


@pytest.mark.parametrize("is_alike", [True, False])
def test_raters_with_few_judgments_are_not_called_different(is_alike):
    """With their standard errors taken as known, 45% of such studies were."""
    rng = np.random.default_rng(6)
    n_found = 0
    for _ in range(200):
        y, x, rater = sessions(rng, 16, 6)
        noise = np.ones(16) if is_alike else np.exp(rng.normal(0, 0.5, 16))
        n_found += rater_slopes(y * noise[rater], x, rater).p_equal < 0.05
    assert n_found <= 0.05 * 200 + 2.5 * np.sqrt(200 * 0.05 * 0.95)


def test_with_many_judgments_the_test_is_cochrans():
    y, x, rater = sessions(np.random.default_rng(7), 6, 4000, np.array([0, 0, 2, 1, 0, 1]) * 1e-5)
    found = rater_slopes(y, x, rater)
    weight = 1 / found.errors**2
    q = float(weight @ (found.slopes - weight @ found.slopes / weight.sum()) ** 2)
    assert found.p_equal == pytest.approx(float(stats.chi2.sf(q, 5)), rel=0.01)


def test_raters_who_drift_are_found():
    slopes = np.zeros(40)
    slopes[[3, 17]] = 0.08, -0.08
    found = rater_slopes(*sessions(np.random.default_rng(4), slopes=slopes))
    assert np.flatnonzero(found.p_adjusted < 0.05).tolist() == [3, 17]
    assert found.p_equal < 0.001


def test_too_little_is_none():
    assert rater_slopes([1.0, 2.0], [1, 2], [0, 1]) is None
    y, x, rater = sessions(np.random.default_rng(5), 3, 10)
    y[rater == 1] = np.nan
    assert rater_slopes(y, x, rater).raters == (0, 2)


@pytest.mark.parametrize(("n_raters", "n", "sd"), [(8, 16, 0.1), (10, 6, 0.1), (20, 30, 0.02)])
def test_intervals_of_shrunken_slopes_hold_the_true_ones(n_raters, n, sd):
    """With the error of the slope alone, without those of mean and variance between raters, 80 to 88% did."""
    rng = np.random.default_rng(8)
    n_held = n_shown = 0
    for _ in range(150):
        true = rng.normal(0, sd, n_raters)
        found = rater_slopes(*sessions(rng, n_raters, n, true))
        if found.sd > 0:
            reach = stats.t.isf(0.025, found.df) * found.shrunken_errors
            n_held += int(np.sum(np.abs(found.shrunken - true) <= reach))
            n_shown += n_raters
    assert 0.915 <= n_held / n_shown <= 0.985
