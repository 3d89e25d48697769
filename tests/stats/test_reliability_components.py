import warnings

import numpy as np
import pytest

from dialometer.stats.icc.crossed import icc_crossed, icc_from
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.variance_components import CrossedLikelihood, fit, variance_components
from dialometer.stats.observations import cross


def crossed(rng, n_items=25, n_raters=8, item=1.0, rater=0.6, residual=0.8, share=1.0):
    """Judgments in rows; ``share`` of the cells is kept, at least two per item."""
    keep = rng.random((n_items, n_raters)) < share
    for row in keep:
        row[rng.permutation(n_raters)[:2]] = True
    items, raters = np.nonzero(keep)
    values = 3 + item * rng.normal(size=n_items)[items] + rater * rng.normal(size=n_raters)[raters]
    return values + residual * rng.normal(size=len(items)), items, raters


@pytest.mark.parametrize("seed", range(3))
def test_complete_design_equals_the_anova(seed):
    values, items, raters = crossed(np.random.default_rng(seed))
    found = variance_components(values, items, raters)
    assert found.has_converged
    matrix = cross(values, items, raters).ratings
    for form in ("ICC(2,1)", "ICC(3,1)", "ICC(2,k)", "ICC(3,k)"):
        assert icc_from(found, form) == pytest.approx(icc(matrix, form).value, abs=1e-6)
    squares = icc(matrix).details
    assert found.residual == pytest.approx(squares["mean_square_error"], rel=1e-6)
    assert found.item == pytest.approx((squares["mean_square_items"] - squares["mean_square_error"]) / 8, rel=1e-5)
    assert found.rater == pytest.approx((squares["mean_square_raters"] - squares["mean_square_error"]) / 25, rel=1e-5)


def test_design_with_holes_equals_statsmodels():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pandas as pd
        import statsmodels.formula.api as smf

        values, items, raters = crossed(np.random.default_rng(7), n_items=20, n_raters=6, share=0.5)
        frame = pd.DataFrame({"y": values, "item": items, "rater": raters, "all": 1})
        parts = {"item": "0 + C(item)", "rater": "0 + C(rater)"}
        peer = smf.mixedlm("y ~ 1", frame, groups="all", vc_formula=parts, re_formula="0").fit(reml=True)
    found = variance_components(values, items, raters)
    expected = dict(zip(peer.model.exog_vc.names, peer.vcomp, strict=True))
    assert found.item == pytest.approx(expected["item"], rel=1e-3)
    assert found.rater == pytest.approx(expected["rater"], rel=1e-3)
    assert found.residual == pytest.approx(peer.scale, rel=1e-3)
    assert found.mean == pytest.approx(float(peer.fe_params.iloc[0]), abs=1e-4)
    assert found.deviance == pytest.approx(-2 * peer.llf, abs=1e-3)


@pytest.mark.parametrize("shape", [(30, 6), (6, 30)], ids=["more items", "more raters"])
def test_likelihood_equals_the_one_written_out(shape):
    rng = np.random.default_rng(3)
    values, items, raters = crossed(rng, *shape, share=0.4)
    by_item, by_rater = 1.7, 0.4
    z_item, z_rater = np.eye(shape[0])[items], np.eye(shape[1])[raters]
    scaled = np.eye(len(values)) + by_item * z_item @ z_item.T + by_rater * z_rater @ z_rater.T
    inverse, one = np.linalg.inv(scaled), np.ones(len(values))
    weight = one @ inverse @ one
    mean = one @ inverse @ values / weight
    rest = (values - mean) @ inverse @ (values - mean)
    free = len(values) - 1
    expected = np.linalg.slogdet(scaled)[1] + np.log(weight) + free * (1 + np.log(2 * np.pi * rest / free))
    likelihood = CrossedLikelihood(values, items, raters)
    deviance, gradient, residual, found_mean = likelihood.evaluate(by_item, by_rater)
    assert deviance == pytest.approx(expected, rel=1e-10)
    assert residual == pytest.approx(rest / free, rel=1e-10)
    assert found_mean == pytest.approx(mean, rel=1e-10)
    step = 1e-5
    numeric = [
        (likelihood.deviance(by_item + step, by_rater) - likelihood.deviance(by_item - step, by_rater)) / (2 * step),
        (likelihood.deviance(by_item, by_rater + step) - likelihood.deviance(by_item, by_rater - step)) / (2 * step),
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5)


@pytest.mark.parametrize("dense_share", [0.0, 1.0], ids=["dense", "sparse"])
@pytest.mark.parametrize("gram_cells", [0, 10**7], ids=["each level", "levels grouped"])
def test_every_way_of_holding_the_table_gives_the_same(monkeypatch, dense_share, gram_cells):
    rng = np.random.default_rng(4)
    counts = rng.integers(2, 5, size=300)
    items = np.repeat(np.arange(300), counts)
    raters = np.concatenate([rng.permutation(160)[:count] for count in counts])
    values = rng.normal(size=300)[items] + 0.5 * rng.normal(size=160)[raters] + rng.normal(size=len(items))
    plain = variance_components(values, items, raters)
    monkeypatch.setattr("dialometer.stats.icc.variance_components._DENSE_SHARE", dense_share)
    monkeypatch.setattr("dialometer.stats.icc.variance_components._MOST_GRAM_CELLS", gram_cells)
    monkeypatch.setattr("dialometer.stats.icc.variance_components._SMALL", 0)
    other = variance_components(values, items, raters)
    for field in ("item", "rater", "residual", "deviance"):
        assert getattr(other, field) == pytest.approx(getattr(plain, field), rel=1e-6)


def test_recovers_what_was_put_in():
    rng = np.random.default_rng(5)
    found = [
        variance_components(*crossed(rng, 150, 30, item=1.0, rater=0.7, residual=0.5, share=0.2)) for _ in range(10)
    ]
    assert np.mean([one.item for one in found]) == pytest.approx(1.0, abs=0.1)
    assert np.mean([one.rater for one in found]) == pytest.approx(0.49, abs=0.12)
    assert np.mean([one.residual for one in found]) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_no_grid_point_beats_the_fit(seed):
    """Zero is a stationary point in standard deviations; searches in that scale have stopped there wrongly."""
    rng = np.random.default_rng(seed)
    values, items, raters = crossed(rng, 30, 12, item=(0.0, 0.3)[seed % 2], rater=(0.0, 3.0, 0.2)[seed % 3], share=0.3)
    likelihood = CrossedLikelihood(values, items, raters)
    (by_item, by_rater), _ = fit(likelihood)
    best = likelihood.deviance(by_item, by_rater)
    grid = [0.0, 1e-3, 0.01, 0.05, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0]
    assert all(best <= likelihood.deviance(one, two) + 1e-6 for one in grid for two in grid)


@pytest.mark.parametrize(("form", "truth"), [("ICC(2,1)", 1 / 2.0), ("ICC(3,1)", 1 / 1.64)])
def test_intervals_cover_and_agree(form, truth):
    rng = np.random.default_rng(6)
    hits = {"profile": 0, "wald": 0}
    for _ in range(40):
        data = crossed(rng, 40, 12, share=0.4)
        for interval in hits:
            result = icc_crossed(*data, form, interval=interval)
            hits[interval] += result.low <= truth <= result.high
    assert min(hits.values()) / 40 > 0.84  # nominal 0.95
    large = crossed(rng, 300, 40, share=0.2)
    profile, wald = (icc_crossed(*large, form, interval=interval) for interval in ("profile", "wald"))
    np.testing.assert_allclose([profile.low, profile.high], [wald.low, wald.high], atol=0.02)


def test_no_item_variance_gives_a_border_and_no_evidence():
    values, items, raters = crossed(np.random.default_rng(11), item=0.0)
    result = icc_crossed(values, items, raters)
    assert 0 <= result.value < 0.1
    assert result.low == 0
    assert result.p_value > 0.05
    strong = icc_crossed(*crossed(np.random.default_rng(12)))
    assert strong.p_value < 1e-6
    assert 0 < strong.low < strong.value < strong.high < 1


def test_average_form_takes_the_number_of_raters():
    data = crossed(np.random.default_rng(2), share=0.5)
    single = icc_crossed(*data, "ICC(3,1)", interval="none")
    assert not single.has_interval
    three = icc_crossed(*data, "ICC(3,k)", k=3)
    assert three.value == pytest.approx(3 * single.value / (1 + 2 * single.value))
    counts = np.bincount(data[1])
    assert icc_crossed(*data, "ICC(3,k)").details["k"] == pytest.approx(len(counts) / np.sum(1 / counts))


@pytest.mark.parametrize(
    ("values", "items", "raters", "why"),
    [
        ([1.0, 2.0], ["a", "a"], ["x", "y"], "1 items"),
        ([1.0, 2.0], ["a", "b"], ["x", "x"], "1 raters"),
        ([1.0, 2.0], ["a", "b"], ["x", "y"], "two judgments"),
        ([2.0] * 4, list("aabb"), list("xyxy"), "every rating is 2"),
        ([np.nan] * 4, list("aabb"), list("xyxy"), "0 items"),
        ([], [], [], "0 items"),
    ],
)
def test_degenerate_designs_are_unknown(values, items, raters, why):
    found = variance_components(values, items, raters)
    assert not found.is_known
    assert why in found.notes[0]
    result = icc_crossed(values, items, raters)
    assert not result.is_known
    assert why in result.notes[0]


def test_raters_who_judge_once_cannot_be_told_from_the_residual():
    rng = np.random.default_rng(1)
    items = np.repeat(np.arange(30), 3)
    values = rng.normal(size=30)[items] + rng.normal(size=90)
    refused = icc_crossed(values, items, np.arange(90), "ICC(3,1)")
    assert not refused.is_known
    assert "ICC(1,1)" in refused.notes[0]
    agreed = icc_crossed(values, items, np.arange(90), "ICC(2,1)")
    assert agreed.value == pytest.approx(icc(values.reshape(30, 3), "ICC(1,1)").value, abs=1e-6)
    assert agreed.low < agreed.value < agreed.high


def test_without_residual_says_so():
    items, raters = (grid.ravel() for grid in np.meshgrid(np.arange(6.0), np.arange(4.0), indexing="ij"))
    found = variance_components(items + raters, items, raters)
    assert "practically zero" in " ".join(found.notes)
    assert icc_from(found, "ICC(3,1)") == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("form", ["ICC(2,1)", "ICC(3,1)"])
def test_ends_of_the_profile_are_exact(form):
    """The deviance, minimised over the other ratio on a fine grid, reaches chi-square's limit at both ends to 1e-6."""
    from scipy import optimize, stats

    from dialometer.stats.icc.variance_components import CrossedLikelihood

    values, items, raters = crossed(np.random.default_rng(13), 40, 12, share=0.6)
    result = icc_crossed(values, items, raters, form, interval="profile")
    likelihood = CrossedLikelihood(values, items, raters)
    least = variance_components(values, items, raters).deviance
    for end in (result.low, result.high):

        def deviance(log_ratio, end=end):
            by_rater = np.exp(log_ratio)
            return likelihood.deviance(end / (1 - end) * (1 + (by_rater if form == "ICC(2,1)" else 0)), by_rater)

        start = min(np.linspace(-8, 4, 60), key=deviance)
        best = optimize.minimize_scalar(deviance, bracket=(start - 0.2, start, start + 0.2), tol=1e-12).fun
        slope = (deviance(start, end + 1e-5) - deviance(start, end - 1e-5)) / 2e-5
        assert abs(best - least - stats.chi2.isf(0.05, 1)) < 1e-8 * max(abs(slope), 1) + 1e-7
