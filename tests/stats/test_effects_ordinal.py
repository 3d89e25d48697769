"""The cumulative link mixed model against ordinal::clmm, published values, brute force and simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special

from crossed_ratings import crossed
from dialometer.errors import NotEnoughData
from dialometer.stats.effects.ordinal import _Model, fit_ordinal
from dialometer.stats.effects.ordinal_systems import ordinal_systems
from dialometer.stats.effects.random_blocks import RandomBlocks
from r_checks import run_r

# Randall (1989), the bitterness of wine: 9 judges, cold and warm, without and with contact, two bottles each.
WINE = np.array([int(x) for x in "233444551213235423325544323232532343333332322454112223232223333412323244"])
PLACE = np.arange(72)
JUDGE, WARM, CONTACT = PLACE // 8, (PLACE % 8 >= 4).astype(float), (PLACE % 4 >= 2).astype(float)


def factors_of(s, r, i, n_systems=3):
    return {"rater": r, "item": i, "rater:system": r * n_systems + s, "item:system": i * n_systems + s}


def design_of(s, n_systems=3):
    return (s[:, None] == np.arange(1, n_systems)).astype(float)


def test_the_wine_of_the_ordinal_package():
    """Christensen (2019), clmm(rating ~ temp + contact + (1|judge), data = wine), as printed in its documentation."""
    fit = fit_ordinal(WINE, np.column_stack([WARM, CONTACT]), {"judge": JUDGE})
    assert fit.thresholds == pytest.approx([-1.6237, 1.5134, 4.2285, 6.0888], abs=1e-4)
    assert fit.threshold_errors == pytest.approx([0.6824, 0.6038, 0.8090, 0.9725], abs=1e-4)
    assert fit.coefficients == pytest.approx([3.0630, 1.8349], abs=1e-4)
    assert fit.errors == pytest.approx([0.5954, 0.5125], abs=1e-4)
    assert fit.deviations["judge"] ** 2 == pytest.approx(1.279, abs=1e-3)
    assert fit.log_likelihood == pytest.approx(-81.57, abs=5e-3)


def test_four_random_effects_are_those_of_clmm():
    """ordinal 2022.11-16 on these ratings: y ~ s + (1|r) + (1|i) + (1|r:s) + (1|i:s)."""
    y, s, r, i = crossed()
    fit = fit_ordinal(y, design_of(s), factors_of(s, r, i))
    assert fit.thresholds == pytest.approx([-1.58678, -0.31610, 0.94806, 2.38183], abs=1e-4)
    assert fit.threshold_errors == pytest.approx([0.166862, 0.164087, 0.164907, 0.169275], abs=1e-4)
    assert fit.coefficients == pytest.approx([0.560828, 0.806309], abs=1e-4)
    assert fit.errors == pytest.approx([0.159398, 0.159689], abs=1e-4)
    assert list(fit.deviations.values()) == pytest.approx([0.649652, 0.368918, 0.397262, 0.382365], abs=1e-4)
    assert fit.log_likelihood == pytest.approx(-5412.11104, abs=1e-4)


@pytest.mark.slow
def test_r_agrees_where_it_is_installed(tmp_path):
    y, s, r, i = crossed(3, 20, 8, 2)
    path = tmp_path / "ratings.csv"
    np.savetxt(path, np.column_stack([y, s, r, i]), fmt="%d", delimiter=",", header="y,s,r,i", comments="")
    script = (
        f"d<-read.csv('{path}');d[]<-lapply(d,factor);m<-clmm(y~s+(1|r)+(1|i),data=d);"
        "cat(coef(summary(m))[,1],'\\n',coef(summary(m))[,2],'\\n',sapply(VarCorr(m),function(v)sqrt(v[1])),'\\n',logLik(m))"
    )
    values, errors, deviations, likelihood = run_r(script, "ordinal")
    fit = fit_ordinal(y, design_of(s, 2), {"rater": r, "item": i})
    assert [*fit.thresholds, *fit.coefficients] == pytest.approx(values, abs=1e-4)
    assert [*fit.threshold_errors, *fit.errors] == pytest.approx(errors, abs=1e-4)
    assert [fit.deviations["rater"], fit.deviations["item"]] == pytest.approx(deviations, abs=2e-4)
    assert fit.log_likelihood == pytest.approx(likelihood[0], abs=1e-4)


def log_share(y, level, thresholds):
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return np.log(special.expit(ends[y + 1] - level) - special.expit(ends[y] - level))


def test_the_likelihood_is_laplaces_and_near_the_integral():
    """One factor: the mode and curvature of each judge by a general optimiser, and the integral by quadrature."""
    thresholds, b, sd = np.array([-1.6, 1.5, 4.2, 6.0]), np.array([3.0, 1.8]), 1.1
    design = np.column_stack([WARM, CONTACT])
    model = _Model(WINE - 1, 5, design, [JUDGE])
    value, _ = model.evaluate(np.concatenate([thresholds, b, [math.log(sd)]]))
    laplace = integral = 0.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for judge in range(9):
        own = judge == JUDGE

        def joint(u, own=own):
            return log_share(WINE[own] - 1, design[own] @ b + sd * u, thresholds).sum() - u * u / 2

        top = optimize.minimize_scalar(
            lambda u: -joint(u), bounds=(-6, 6), method="bounded", options={"xatol": 1e-10}
        ).x
        bend = -(joint(top + 1e-3) - 2 * joint(top) + joint(top - 1e-3)) / 1e-6
        laplace += joint(top) - math.log(bend) / 2
        integral += math.log(sum(w * math.exp(joint(u) + u * u / 2) for u, w in zip(nodes, weights, strict=True)))
    integral -= 9 * math.log(math.sqrt(2 * math.pi))
    assert value == pytest.approx(laplace, abs=1e-4)
    assert value == pytest.approx(integral, abs=0.3)


def test_gradients_are_those_of_differences():
    y, s, r, i = crossed(2, 9, 6, 2)
    model = _Model(y - 1, 5, design_of(s, 2), list(factors_of(s, r, i, 2).values()))
    x = np.array([-2.0, -0.8, 0.5, 1.9, 0.3, -0.2, -0.7, -1.0, -0.9])
    _, gradient = model.evaluate(x)
    differences = [(model.evaluate(x + d)[0] - model.evaluate(x - d)[0]) / 2e-5 for d in 1e-5 * np.eye(len(x))]
    assert gradient == pytest.approx(differences, abs=1e-5)


def test_blocks_are_the_dense_matrix():
    y, s, r, i = crossed(4, 7, 5, 2)
    factors = list(factors_of(s, r, i, 2).values())
    rng = np.random.default_rng(0)
    weights, deviations = rng.random(len(y)), np.array([0.7, 0.4, 0.9, 0.3])
    layout = RandomBlocks(factors)
    z = np.column_stack([d * (f[:, None] == np.arange(f.max() + 1)) for f, d in zip(factors, deviations, strict=True)])
    dense = np.eye(z.shape[1]) + z.T @ (weights[:, None] * z)
    made = layout.factorise(layout.sums(weights), deviations)
    assert made.logdet == pytest.approx(np.linalg.slogdet(dense)[1])
    leverage, traces = made.leverages()
    inverse = np.linalg.inv(dense)
    assert leverage == pytest.approx(np.einsum("ij,jk,ik->i", z, inverse, z))
    ends = np.cumsum([0, *(f.max() + 1 for f in factors)])
    sums = [np.trace(inverse[a:b, a:b]) for a, b in itertools.pairwise(ends)]
    assert traces == pytest.approx(sums)
    assert made.traces() == pytest.approx(sums)
    v = rng.normal(size=len(y))
    assert layout.spread(made.solve(layout.gather(v, deviations)), deviations) == pytest.approx(z @ inverse @ (z.T @ v))


def test_without_random_effects_it_is_ordered_regression():
    """No factor left: the ordinary cumulative logit model, by a general optimiser."""
    y, s, *_ = crossed(5, 10, 5, 2)
    fit = fit_ordinal(y, design_of(s, 2), {"rater": np.zeros(len(y)), "item": np.arange(len(y))})
    assert len(fit.notes) == 2
    assert fit.deviations == {}

    def minus(x):
        cuts = np.concatenate([[x[0]], x[0] + np.cumsum(np.exp(x[1:4]))])
        return -log_share(y - 1, x[4] * s, cuts).sum()

    found = optimize.minimize(minus, [-2, 0, 0, 0, 0.0], method="BFGS", options={"gtol": 1e-7})
    assert fit.log_likelihood == pytest.approx(-found.fun, abs=1e-7)
    assert fit.coefficients[0] == pytest.approx(found.x[4], abs=1e-4)


def test_a_group_with_only_the_highest_rating_has_no_odds():
    y = np.array([1, 2, 3, 2, 1, 3, 5, 5, 5, 5, 5, 5] * 4)
    s = np.array([0] * 6 + [1] * 6).tolist() * 4
    with pytest.raises(NotEnoughData, match="no limit"):
        fit_ordinal(y, np.array(s, dtype=float)[:, None], {"rater": np.repeat(range(4), 12)})


def test_systems_in_points_and_odds_with_one_verdict():
    y, s, r, i = crossed()
    names = np.array(["a", "b", "c"])[s]
    model = ordinal_systems(y, names, r, i)
    for (first, second), points in model.differences.items():
        odds = model.odds_ratio(first, second)
        means = model.mean(first).value - model.mean(second).value
        assert points.value == pytest.approx(means)
        assert (points.low > 0) == (odds.low > 1) == (points.p_value < 0.05)
        assert points.df == (19.0,)
        assert model.mean(first).value == pytest.approx(y[names == first].mean(), abs=0.03)
    assert next(iter(model.differences)) == ("c", "b")
    with pytest.raises(NotEnoughData, match="rate more"):
        ordinal_systems(y[i == 0], names[i == 0], r[i == 0], i[i == 0])


def test_few_items_are_not_taken_for_a_general_lead():
    """No true difference, but items suit one system or the other (SD 1): at most 5 % claims, within chance."""
    n = 20
    claims = 0
    for seed in range(n):
        y, s, r, i = crossed(seed, 12, 5, 2, taste=0.5, fit=1.0, effects=(0, 0))
        claims += ordinal_systems(y, s, r, i).difference(1, 0).p_value < 0.05
    assert claims <= 3


def test_raters_who_give_one_number_throughout_leave_odds_ratios_without_bounds():
    """Systems hold nothing then: the ends are beyond any number, which ended reports with an OverflowError."""
    rater, item, system = (part.ravel() for part in np.indices((4, 5, 2)))
    ratio = ordinal_systems(1.0 + rater, system, rater, item).odds_ratio(0, 1)
    assert ratio.value == pytest.approx(1.0, abs=0.01)
    assert (ratio.low, ratio.high) == (0.0, math.inf)
