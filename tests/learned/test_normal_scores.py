import numpy as np
from scipy import stats

from dialometer.learned.gaussian.kernel import fit_normal_scores


def test_scores_of_training_values_are_normal_quantiles_of_mid_ranks():
    """scipy.stats.rankdata(x, "average") and scipy.stats.norm.ppf."""
    values = np.random.default_rng(0).integers(0, 9, (200, 3)).astype(float)
    found = fit_normal_scores(values)(values)
    expected = stats.norm.ppf((stats.rankdata(values, axis=0) - 0.5) / 200)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_dead_dimensions_become_zero_and_do_not_blow_up():
    rng = np.random.default_rng(1)
    values = np.column_stack([rng.normal(size=50), np.full(50, 0.37), 1 + rng.normal(size=50) * 1e-15, np.zeros(50)])
    scale = fit_normal_scores(values)
    assert scale.is_alive.tolist() == [True, False, False, False]
    odd = np.array([[1e9, 5.0, -3.0, 1e-12]])
    assert (scale(odd)[0, 1:] == 0).all()
    assert np.abs(scale(odd)[0, 0]) < 3
    assert np.isfinite(scale(values)).all()
    assert not fit_normal_scores(np.zeros((5, 0))).is_alive.any()


def test_a_value_that_stands_still_but_for_rounding_is_ranked_as_equal():
    values = np.array([[1.0], [1.0 + 1e-15], [2.0], [3.0]])
    found = fit_normal_scores(values)(values)
    assert found[0, 0] == found[1, 0] < found[2, 0] < found[3, 0]
