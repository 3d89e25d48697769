"""The many-facet Rasch model against a general optimiser, logistic regression and simulated truth."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, special

from dialometer.errors import NotEnoughData
from dialometer.stats.effects.rasch import many_facet_rasch


def log_shares(level, thresholds):
    heights = level[:, None] * np.arange(len(thresholds) + 1) + np.append(0, -np.cumsum(thresholds))
    return heights - special.logsumexp(heights, axis=1, keepdims=True)


def draw(seed, n_raters, n_items, n_systems, thresholds, spread=0.8):
    rng = np.random.default_rng(seed)
    r, i, s = (a.ravel() for a in np.meshgrid(range(n_raters), range(n_items), range(n_systems), indexing="ij"))
    severity = rng.normal(0, spread, n_raters)
    severity -= severity.mean()
    level = 0.7 * s + rng.normal(0, 0.6, n_items)[i] - severity[r]
    shares = np.exp(log_shares(level, thresholds))
    y = 1 + np.array([rng.choice(len(p), p=p) for p in shares])
    return y, s, i, r, severity


def test_a_general_optimiser_finds_the_same():
    y, s, i, r, _ = draw(5, 5, 4, 2, np.array([-1, 0, 1.0]))
    fit = many_facet_rasch(y, s, i, r)

    def unpacked(x):
        items, raters, steps = x[2:5], x[5:9], x[9:]
        return x[:2], *(np.append(part, -part.sum()) for part in (items, raters, steps))

    def minus(x):
        systems, items, raters, steps = unpacked(x)
        return -log_shares(systems[s] + items[i] - raters[r], steps)[np.arange(len(y)), y - 1].sum()

    found = optimize.minimize(minus, np.zeros(11), method="BFGS", options={"gtol": 1e-7})
    systems, items, raters, steps = unpacked(found.x)
    assert fit.log_likelihood == pytest.approx(-found.fun, abs=1e-8)
    assert [row.severity.value for row in fit.raters] == pytest.approx(raters, abs=1e-5)
    assert list(fit.systems.values()) == pytest.approx(systems, abs=1e-5)
    assert list(fit.items.values()) == pytest.approx(items, abs=1e-5)
    assert fit.thresholds == pytest.approx(steps, abs=1e-5)
    step, eye = 1e-3, np.eye(11)
    bend = np.array(
        [
            [
                minus(found.x + step * (a + b))
                - minus(found.x + step * (a - b))
                - minus(found.x - step * (a - b))
                + minus(found.x - step * (a + b))
                for a in eye
            ]
            for b in eye
        ]
    ) / (4 * step**2)
    errors = np.sqrt(np.diag(np.linalg.inv(bend)))[5:9]
    assert [row.severity.details["standard_error"] for row in fit.raters[:4]] == pytest.approx(errors, abs=1e-4)


def test_two_categories_are_logistic_regression():
    y, s, i, r, _ = draw(6, 8, 10, 2, np.array([0.6]), spread=0.4)
    fit = many_facet_rasch(y, s, i, r)
    rows = np.column_stack([s == 0, s == 1, *(i == k for k in range(1, 10)), *(r == k for k in range(1, 8))]).astype(
        float
    )
    known = sm.GLM(y - 1, rows, family=sm.families.Binomial()).fit()
    severity = -np.append(0, known.params[11:])
    assert [row.severity.value for row in fit.raters] == pytest.approx(severity - severity.mean(), abs=1e-6)
    assert fit.log_likelihood == pytest.approx(known.llf, abs=1e-8)
    mean = known.fittedvalues
    off, spread = (y - 1 - mean) ** 2, mean * (1 - mean)
    for code, row in enumerate(fit.raters):
        own = r == code
        assert row.infit == pytest.approx(off[own].sum() / spread[own].sum(), abs=1e-6)
        assert row.outfit == pytest.approx((off[own] / spread[own]).mean(), abs=1e-6)


def test_simulated_severity_comes_back():
    """Joint estimates are too wide by about L / (L - 1); intervals cover the truth."""
    y, s, i, r, severity = draw(7, 60, 15, 3, np.array([-1.5, -0.5, 0.5, 1.5]))
    fit = many_facet_rasch(y, s, i, r)
    found = np.array([row.severity.value for row in fit.raters])
    assert np.polyfit(severity, found, 1)[0] == pytest.approx(45 / 44, abs=0.06)
    inside = [row.severity.low <= true <= row.severity.high for row, true in zip(fit.raters, severity, strict=True)]
    assert np.mean(inside) > 0.87
    assert fit.homogeneity.p_value < 1e-10
    assert fit.separation_reliability > 0.8
    assert np.mean([row.infit for row in fit.raters]) == pytest.approx(1, abs=0.05)


def test_equal_raters_are_not_called_different_too_often():
    n = 40
    claims = 0
    for seed in range(n):
        y, s, i, r, _ = draw(100 + seed, 10, 10, 2, np.array([-1, 0, 1.0]), spread=0)
        claims += many_facet_rasch(y, s, i, r).homogeneity.p_value < 0.05
    assert claims <= 7  # 5 % and two standard errors


def test_a_rater_with_only_the_highest_rating_is_marked():
    y, s, i, r, _ = draw(8, 6, 8, 2, np.array([-1, 0, 1.0]))
    y[r == 2] = 4
    fit = many_facet_rasch(y, s, i, r)
    assert [row.is_extreme for row in fit.raters] == [False, False, True, False, False, False]
    assert fit.raters[2].severity.value == min(row.severity.value for row in fit.raters)
    assert np.isfinite(fit.raters[2].severity.low)


def test_items_of_one_system_each_are_left_out():
    y, s, i, r, _ = draw(9, 6, 8, 2, np.array([-1, 0, 1.0]))
    kept = i % 2 == s
    fit = many_facet_rasch(y[kept], s[kept], i[kept], r[kept])
    assert fit.items == {}
    assert len(fit.systems) == 2


def test_one_rater_is_refused():
    with pytest.raises(NotEnoughData, match="two raters"):
        many_facet_rasch([1, 2, 3], [0, 0, 0], [0, 1, 2], [0, 0, 0])
