import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from dialometer.learned.gaussian.kernel import fit_process


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    return x, np.sin(x[:, 0]) + rng.normal(size=60) * 0.3, rng.normal(size=(10, 3))


def test_equals_scikit_learn_where_the_mean_is_known(data):
    """GaussianProcessRegressor(RBF(1.5), alpha=noise, optimizer=None).fit(x, y - mean).predict(new, return_std=True)."""
    x, y, new = data
    noise = np.linspace(0.05, 0.3, 60)
    found = fit_process(RBF(1.5)(x), y, noise)
    peer = GaussianProcessRegressor(RBF(1.5), alpha=noise, optimizer=None).fit(x, y - found.mean)
    means, deviations = peer.predict(new, return_std=True)
    cross = RBF(1.5)(new, x)
    np.testing.assert_allclose(found.predict(cross), means + found.mean, rtol=1e-8)
    np.testing.assert_allclose(found.deviations(cross, np.ones(10)), deviations, rtol=1e-6)


def test_the_mean_is_that_of_generalised_least_squares(data):
    import statsmodels.api as sm

    x, y, _ = data
    covariance = RBF(1.5)(x) + 0.1 * np.eye(60)
    found = fit_process(RBF(1.5)(x), y, np.full(60, 0.1))
    assert found.mean == pytest.approx(sm.GLS(y, np.ones(60), sigma=covariance).fit().params[0])


def test_what_a_rater_adds_to_all_ratings_is_explained_away(data):
    """Two raters see other dialogues, one is three points kinder: with the effect, the dialogues do not get the credit."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(120, 2))
    x[60:, 0] += 2.5
    quality = x[:, 1]
    rater = np.repeat([0, 1], 60)
    y = quality + 3.0 * rater + rng.normal(size=120) * 0.2
    effects = 4.0 * (rater[:, None] == rater[None, :])
    kernel = RBF(3.0)(x)
    new = np.array([[0.0, 0.0], [2.5, 0.0]])
    plain = fit_process(kernel, y, np.full(120, 0.1)).predict(RBF(3.0)(new, x))
    freed = fit_process(kernel, y, np.full(120, 0.1), effects).predict(RBF(3.0)(new, x))
    assert plain[1] - plain[0] > 2.0
    assert abs(freed[1] - freed[0]) < 1.0
