"""The temperature is the most likely one, and probabilities mean what they say afterwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.metrics import brier_score_loss, log_loss

from dialometer.errors import NotEnoughData
from dialometer.learned.data.calibration import HIGHEST, fit_temperature, reliability


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(5, 300), scale=st.sampled_from([0.01, 1.0, 50.0]), shift=st.floats(0.05, 3), seed=st.integers(0, 999)
)
def test_equal_to_another_optimiser(n, scale, shift, seed):
    gaps = scale * np.random.default_rng(seed).normal(shift, 1, n)
    target = (n + 1) / (n + 2)

    def loss(log_temperature):
        g = gaps / np.exp(log_temperature)
        return np.mean(target * np.logaddexp(0, -g) + (1 - target) * np.logaddexp(0, g))

    found = fit_temperature(gaps)
    if found >= HIGHEST:
        assert np.mean(gaps) <= 1e-3 * scale or loss(np.log(found)) <= loss(0.0) + 1e-6
        return
    best = minimize_scalar(
        loss, bounds=(np.log(scale) - 8, np.log(scale) + 12), method="bounded", options={"xatol": 1e-10}
    )
    assert loss(np.log(found)) <= best.fun + 1e-9


def test_true_probabilities_keep_their_temperature():
    rng = np.random.default_rng(0)
    logit = 1.5 * rng.normal(size=40_000)
    is_first = rng.random(40_000) < 1 / (1 + np.exp(-logit))
    gaps = 3.0 * np.where(is_first, logit, -logit)
    temperature = fit_temperature(gaps)
    assert temperature == pytest.approx(3.0, rel=0.05)
    assert reliability(gaps, temperature).calibration_error < 0.01
    assert reliability(gaps, 1.0).calibration_error > 0.05


def test_extremes_stay_finite():
    assert 0 < fit_temperature(np.full(10, 2.0)) < 2
    assert fit_temperature(np.full(10, -2.0)) == HIGHEST
    assert fit_temperature(np.zeros(10)) == HIGHEST
    with pytest.raises(NotEnoughData, match="no pairs"):
        fit_temperature(np.empty(0))


def test_measures_equal_those_of_scikit_learn():
    gaps = np.random.default_rng(1).normal(0.5, 1, 500)
    chance = 1 / (1 + np.exp(-gaps / 1.7))
    both, happened = np.concatenate([chance, 1 - chance]), np.repeat([1, 0], 500)
    found = reliability(gaps, 1.7)
    assert found.log_loss == pytest.approx(log_loss(happened, both))
    assert found.brier == pytest.approx(brier_score_loss(happened, both))
    assert np.isnan(reliability(np.empty(0), 1.0).brier)
