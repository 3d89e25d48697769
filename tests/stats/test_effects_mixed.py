"""The crossed mixed model against statsmodels, dense matrices, analysis of variance and lme4."""

import math
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.stats.effects.mixed import fit_crossed


def draw(seed, n_raters, n_items, share=1.0, sd_rater=0.5, sd_item=0.7, effect=0.3):
    rng = np.random.default_rng(seed)
    rater, item = np.divmod(np.flatnonzero(rng.random(n_raters * n_items) < share), n_items)
    a, b = np.arange(n_raters) % 2 - 0.5, (np.arange(n_raters) // 2) % 2 - 0.5
    y = 3 + effect * a[rater] + sd_rater * rng.normal(size=n_raters)[rater] + sd_item * rng.normal(size=n_items)[item]
    design = np.column_stack([np.ones(len(rater)), a[rater], b[rater], a[rater] * b[rater]])
    return y + rng.normal(size=len(rater)), design, rater, item


def dense_reml(y, design, rater, item, variances):
    """Log-likelihood, coefficients and their covariance written out with the full covariance matrix."""
    v = np.eye(len(y)) * variances["residual"]
    v += variances["rater"] * (rater[:, None] == rater) + variances["item"] * (item[:, None] == item)
    inverse = np.linalg.inv(v)
    information = design.T @ inverse @ design
    b = np.linalg.solve(information, design.T @ inverse @ y)
    residual = y - design @ b
    df = len(y) - design.shape[1]
    deviance = np.linalg.slogdet(v)[1] + np.linalg.slogdet(information)[1] + residual @ inverse @ residual
    return -(deviance + df * math.log(2 * math.pi)) / 2, b, np.linalg.inv(information)


@pytest.mark.parametrize(("seed", "n_raters", "n_items"), [(1, 24, 10), (2, 9, 30)])
def test_agrees_with_statsmodels(seed, n_raters, n_items):
    y, design, rater, item = draw(seed, n_raters, n_items, share=0.7)
    fit = fit_crossed(y, design, rater, item)
    data = pd.DataFrame({"y": y, "a": design[:, 1], "b": design[:, 2], "rater": rater, "item": item, "one": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        components = {"rater": "0 + C(rater)", "item": "0 + C(item)"}
        model = sm.MixedLM.from_formula("y ~ a * b", groups="one", vc_formula=components, data=data)
        peer = model.fit(reml=True)
    assert fit.coefficients == pytest.approx(peer.fe_params.to_numpy(), abs=1e-5)
    by_name = dict(zip(model.exog_vc.names, peer.vcomp, strict=True))
    assert fit.variances["rater"] == pytest.approx(by_name["rater"], rel=1e-3)
    assert fit.variances["item"] == pytest.approx(by_name["item"], rel=1e-3)
    assert fit.variances["residual"] == pytest.approx(peer.scale, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(peer.llf, abs=1e-6)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(peer.bse_fe.to_numpy(), rel=2e-3)


@pytest.mark.parametrize(("n_raters", "n_items", "share"), [(20, 8, 0.6), (8, 25, 0.5), (12, 12, 1.0)])
def test_agrees_with_dense_matrices_and_is_a_maximum(n_raters, n_items, share):
    y, design, rater, item = draw(5, n_raters, n_items, share)
    fit = fit_crossed(y, design, rater, item)
    likelihood, b, covariance = dense_reml(y, design, rater, item, fit.variances)
    assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-8)
    assert fit.coefficients == pytest.approx(b, abs=1e-9)
    assert fit.covariance == pytest.approx(covariance, abs=1e-10)
    for name in fit.variances:
        for factor in (0.99, 1.01):
            moved = {**fit.variances, name: fit.variances[name] * factor}
            assert dense_reml(y, design, rater, item, moved)[0] < likelihood


def test_balanced_design_is_analysis_of_variance():
    n_raters, n_items = 20, 8
    y, design, rater, item = draw(1, n_raters, n_items)
    fit = fit_crossed(y, design, rater, item)
    means = y.reshape(n_raters, n_items).mean(axis=1)
    a, b = design[::n_items, 1], design[::n_items, 2]
    cell = 2 * (a > 0) + (b > 0)
    within = means - np.array([means[cell == c].mean() for c in range(4)])[cell]
    mean_square = float(np.sum(within**2)) / (n_raters - 4)  # of rater means within cells
    value, se, df = fit.contrast([0, 1, 0, 0])
    assert value == pytest.approx(means[a > 0].mean() - means[a < 0].mean(), abs=1e-10)
    assert se == pytest.approx(math.sqrt(mean_square * 4 / n_raters), rel=1e-8)
    assert df == pytest.approx(n_raters - 4, rel=1e-5)
    table = y.reshape(n_raters, n_items)
    rest = table - means[:, None] - table.mean(axis=0) + table.mean()
    residual = float(np.sum(rest**2)) / ((n_raters - 1) * (n_items - 1))
    item_square = n_raters * float(table.mean(axis=0).var(ddof=1))
    assert fit.variances["residual"] == pytest.approx(residual, rel=1e-6)
    assert fit.variances["item"] == pytest.approx((item_square - residual) / n_raters, rel=1e-5)
    assert fit.variances["rater"] == pytest.approx(mean_square - residual / n_items, rel=1e-5)
    f, q, denominator = fit.f_test(np.eye(4)[1:])
    cells = np.array([means[cell == c].mean() for c in range(4)])
    between = float(np.sum((cells[cell] - means.mean()) ** 2)) / 3
    assert (q, f) == (3, pytest.approx(between / mean_square, rel=1e-6))
    assert denominator == pytest.approx(n_raters - 4, rel=1e-5)


def test_satterthwaite_by_differences_of_the_dense_likelihood():
    y, design, rater, item = draw(12, 16, 7, share=0.6)
    fit = fit_crossed(y, design, rater, item)
    c = np.array([0, 1.0, 0, 0])
    names = ("rater", "item", "residual")
    at = np.array([fit.variances[name] for name in names])

    def both(variances):
        likelihood, _, covariance = dense_reml(y, design, rater, item, dict(zip(names, variances, strict=True)))
        return likelihood, float(c @ covariance @ c)

    steps = np.diag(1e-3 * at)
    slope = np.array([(both(at + s)[1] - both(at - s)[1]) / (2 * s.sum()) for s in steps])
    hessian = np.empty((3, 3))
    for i, one in enumerate(steps):
        for j, two in enumerate(steps):
            corners = (
                both(at + one + two)[0] - both(at + one - two)[0] - both(at - one + two)[0] + both(at - one - two)[0]
            )
            hessian[i, j] = corners / (4 * one.sum() * two.sum())
    variance = both(at)[1]
    expected = 2 * variance**2 / float(slope @ np.linalg.solve(-hessian, slope))
    assert fit.contrast(c)[2] == pytest.approx(expected, rel=1e-3)


def test_one_random_factor_is_the_random_intercept_model():
    y, design, rater, _ = draw(3, 15, 9, share=0.8)
    fit = fit_crossed(y, design, rater)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = sm.MixedLM(y, design, groups=rater).fit(reml=True)
    assert fit.coefficients == pytest.approx(peer.fe_params, abs=1e-5)
    assert fit.variances["rater"] == pytest.approx(float(np.asarray(peer.cov_re)[0, 0]), rel=1e-3)
    assert fit.log_likelihood == pytest.approx(peer.llf, abs=1e-6)
    assert fit.n_items == 0


def test_swapping_the_random_factors_changes_nothing():
    y, design, rater, item = draw(6, 14, 20, share=0.5)
    one, two = fit_crossed(y, design[:, :1], rater, item), fit_crossed(y, design[:, :1], item, rater)
    assert one.variances["rater"] == pytest.approx(two.variances["item"], rel=1e-6)
    assert one.log_likelihood == pytest.approx(two.log_likelihood, abs=1e-9)


def test_sparse_and_unbalanced_tables_take_the_same_road(monkeypatch):
    y, design, rater, item = draw(8, 40, 12, share=0.4)
    plain = fit_crossed(y, design, rater, item)
    monkeypatch.setattr("dialometer.stats.effects.mixed.KEPT_CELLS", 0)
    dense = fit_crossed(y, design, rater, item)
    monkeypatch.setattr("dialometer.stats.effects.mixed.DENSE_CELLS", 0)
    sparse = fit_crossed(y, design, rater, item)
    for other in (dense, sparse):
        assert other.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-9)
        assert other.contrast([0, 1, 0, 0]) == pytest.approx(plain.contrast([0, 1, 0, 0]), rel=1e-6)


def test_large_factor_takes_the_same_road():
    y, design, rater, item = draw(2, 150, 80, share=0.09)  # the smaller factor is above the size solved directly
    fit = fit_crossed(y, design, rater, item)
    likelihood, b, covariance = dense_reml(y, design, rater, item, fit.variances)
    assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-7)
    assert fit.coefficients == pytest.approx(b, abs=1e-8)
    assert fit.covariance == pytest.approx(covariance, rel=1e-6, abs=1e-10)


def test_scale_and_shift_of_ratings():
    y, design, rater, item = draw(4, 20, 8, share=0.8)
    one, two = fit_crossed(y, design, rater, item), fit_crossed(1e4 + 50 * y, design, rater, item)
    value, se, df = one.contrast([0, 1, 0, 0])
    assert two.contrast([0, 1, 0, 0]) == pytest.approx((50 * value, 50 * se, df), rel=1e-6)
    assert two.coefficients[0] == pytest.approx(1e4 + 50 * one.coefficients[0])


@pytest.mark.parametrize(("sd_rater", "sd_item"), [(0.0, 0.7), (0.5, 0.0), (0.0, 0.0)])
def test_variance_on_the_boundary_is_zero_and_said(sd_rater, sd_item):
    y, design, rater, item = draw(1, 20, 8, sd_rater=sd_rater, sd_item=sd_item)
    fit = fit_crossed(y, design, rater, item)
    zero = [name for name in ("rater", "item") if fit.variances[name] == 0]
    assert len(fit.notes) == len(zero) > 0
    likelihood = dense_reml(y, design, rater, item, fit.variances)[0]
    for name in zero:
        assert dense_reml(y, design, rater, item, {**fit.variances, name: 1e-3})[0] < likelihood
    if len(zero) == 2:
        ordinary = sm.OLS(y, design).fit()
        assert fit.contrast([0, 1, 0, 0])[1] == pytest.approx(float(ordinary.bse[1]))
        assert fit.contrast([0, 1, 0, 0])[2] == pytest.approx(ordinary.df_resid)


def test_factors_that_cannot_be_told_from_the_residual_are_left_out():
    rng = np.random.default_rng(1)
    fit = fit_crossed(rng.normal(size=12), np.ones((12, 1)), np.arange(12), np.zeros(12, dtype=int))
    assert fit.variances["rater"] == fit.variances["item"] == 0
    assert fit.notes == ("no rater effect: every rater judged once", "no item effect: a single item")


def test_impossible_designs_are_refused():
    y, design, rater, item = draw(1, 6, 3)
    with pytest.raises(NotEnoughData, match="cannot be separated"):
        fit_crossed(y, np.column_stack([design, design[:, 1]]), rater, item)
    with pytest.raises(NotEnoughData, match="judgments"):
        fit_crossed(y[:4], design[:4], rater[:4], item[:4])


def test_type_one_error_is_near_nominal():
    n_runs, rejected = 300, 0
    for seed in range(n_runs):
        y, design, rater, item = draw(1000 + seed, 16, 6, share=0.7, effect=0.0)
        value, se, df = fit_crossed(y, design, rater, item).contrast([0, 1, 0, 0])
        rejected += 2 * stats.t.sf(abs(value / se), df) < 0.05
    assert 0.02 < rejected / n_runs < 0.085


# lme4 1.1.31 (R 4.2.2): lmer(y ~ 1 + (1|item) + (1|worker)), REML, item = meaning representation x system.
LME4 = [
    # file, criterion, is_log, var_item, var_worker, var_resid
    ("likert", "informativeness", False, 2.8629800807, 0.10416947761, 0.54813191665),
    ("likert", "naturalness", True, 0.0011924059056, 0.0021771980967, 0.010933055644),
    ("plainME", "informativeness", True, 0.040256479056, 0.029602778331, 0.064420282683),
    ("plainME", "quality", False, 8.3518452928, 31.6515143742, 64.4689349641),
]


@pytest.mark.realdata
@pytest.mark.parametrize(("file", "criterion", "is_log", "var_item", "var_rater", "residual"), LME4)
def test_variances_are_those_of_lme4_on_real_ratings(file, criterion, is_log, var_item, var_rater, residual):
    folder = os.environ.get("DIALOMETER_DATA")
    if not folder or not Path(folder, "rankme").is_dir():
        pytest.skip("DIALOMETER_DATA does not name a folder with the rankme data")
    data = pd.read_csv(Path(folder, "rankme", f"setup1_{file}.csv"))
    y = data[criterion].to_numpy(dtype=float)
    item = (data["mr_id"].astype(str) + "|" + data["team"]).to_numpy(dtype=str)
    fit = fit_crossed(np.log(y) if is_log else y, np.ones((len(y), 1)), data["_worker_id"].to_numpy(), item)
    found = {"item": var_item, "rater": var_rater, "residual": residual}
    assert fit.variances == pytest.approx(found, rel=1e-4)  # lme4 stops its search at about this precision
    _, rater_code = np.unique(data["_worker_id"], return_inverse=True)
    _, item_code = np.unique(item, return_inverse=True)
    theirs = dense_reml(np.log(y) if is_log else y, np.ones((len(y), 1)), rater_code, item_code, found)[0]
    assert fit.log_likelihood >= theirs - 1e-9
