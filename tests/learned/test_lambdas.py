"""One weight per dialogue gives the same gradient as all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.learned.cmade.pairwise import all_pairs_lambdas, all_pairs_loss


def direct(o, y):
    """Theorem 2 written out over all pairs."""
    gap = o[:, None] - o[None, :]
    is_above = y[:, None] > y[None, :]
    below = np.where(is_above, -1 / (1 + np.exp(gap)), 0.0).sum(axis=1)
    above = np.where(is_above.T, 1 / (1 + np.exp(-gap)), 0.0).sum(axis=1)
    return below + above, int(is_above.sum())


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 700),
    spread=st.sampled_from([0.0, 0.01, 1.0, 8.0, 40.0]),
    kind=st.sampled_from(["likert", "smoothed", "coarse"]),
    seed=st.integers(0, 10_000),
)
def test_equal_to_all_pairs(n, spread, kind, seed):
    rng = np.random.default_rng(seed)
    o = spread * rng.normal(size=n)
    y = {
        "likert": rng.integers(1, 6, n).astype(float),
        "smoothed": rng.random(n),
        "coarse": np.round(rng.random(n) * 200),
    }[kind]
    expected, n_expected = direct(o, y)
    found, n_pairs = all_pairs_lambdas(o, y)
    assert n_pairs == n_expected
    np.testing.assert_allclose(found, expected, atol=1e-8 * max(1, n))


def test_equal_to_the_numerical_gradient_of_the_loss():
    rng = np.random.default_rng(0)
    o, y = rng.normal(size=40), rng.integers(1, 6, 40).astype(float)
    found, n_pairs = all_pairs_lambdas(o, y)
    step = 1e-6
    for i in range(40):
        up, down = o.copy(), o.copy()
        up[i] += step
        down[i] -= step
        slope = (all_pairs_loss(up, y) - all_pairs_loss(down, y)) / (2 * step)
        assert found[i] / n_pairs == pytest.approx(slope, abs=1e-7)


def test_weights_sum_to_nothing():
    """Raising all scores together changes no comparison."""
    rng = np.random.default_rng(1)
    found, _ = all_pairs_lambdas(3 * rng.normal(size=5000), rng.random(5000))
    assert abs(found.sum()) < 1e-6


def test_equal_ratings_have_no_pairs():
    found, n_pairs = all_pairs_lambdas(np.arange(5.0), np.ones(5))
    assert n_pairs == 0
    np.testing.assert_array_equal(found, 0.0)
