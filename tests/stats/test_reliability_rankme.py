"""Reliability of the RankME crowd ratings (Novikova, Dušek & Rieser 2018) beside values made by other software.

The expected numbers come from R 4.2.2 with psych 2.2.9 and lme4 1.1.31, pingouin 0.6.1 and scikit-learn 1.9.1, run on the same
public files. An item is one system's text for one input; the k-th judgment of an item, in file order, goes to column k.
"""

import csv
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dialometer.stats.agreement.kappa import kappa_of_pairs
from dialometer.stats.effects.normalise import normalise
from dialometer.stats.icc.crossed import icc_crossed, icc_from
from dialometer.stats.icc.forms import FORMS
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.icc.variance_components import CrossedLikelihood, variance_components
from dialometer.stats.observations import stack

DATA = Path(os.environ.get("DIALOMETER_DATA", "")) / "rankme"

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        not os.environ.get("DIALOMETER_DATA") or not DATA.is_dir(),
        reason="DIALOMETER_DATA does not name a folder with rankme/ in it",
    ),
]


@cache
def judgments(elicitation: str, criterion: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, items and raters of one file; a rankME row holds three systems side by side."""
    with (DATA / f"setup1_{elicitation}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    slots = "123" if elicitation == "rankME" else ("",)
    found = [
        (float(row[criterion + s]), f"{row['mr_id']}|{row[f'team{s}']}", row["_worker_id"])
        for row in rows
        for s in slots
    ]
    values, items, raters = zip(*found, strict=True)
    return np.array(values), np.array(items), np.array(raters)


# ICC(1,1), ICC(2,1), ICC(3,1), ICC(1,k), ICC(2,k), ICC(3,k) of informativeness, plain magnitude estimation (psych and pingouin).
SIX_FORMS = {
    "raw": (0.457309053, 0.460600369, 0.46913603, 0.716553946, 0.719238276, 0.726114831),
    "ln": (0.319327412, 0.32461174, 0.332352284, 0.584615028, 0.590481055, 0.598939218),
    "ln_center": (0.37277691, 0.373143862, 0.373799927, 0.640673875, 0.64103502, 0.641679947),
    "ln_z": (0.512455036, 0.512353576, 0.512033906, 0.759226363, 0.759152121, 0.75891811),
    "raw_center": (0.486225991, 0.486319385, 0.486584739, 0.739525214, 0.739597222, 0.739801742),
    "raw_z": (0.508510397, 0.508426713, 0.508167142, 0.756328936, 0.756267223, 0.756075735),
    "minmax": (0.350466882, 0.361850639, 0.381931925, 0.618131445, 0.629779609, 0.649594227),
}


@pytest.mark.parametrize("method", SIX_FORMS)
def test_six_forms_after_each_normalisation(method):
    values, items, raters = judgments("plainME", "informativeness")
    normal = normalise(values, raters, method)
    assert len(normal.constant_raters) == 3
    matrix = stack(normal.values, items, n_columns=3).ratings
    assert matrix.shape == (300, 3)
    found = [icc(matrix, form.name).value for form in FORMS]
    np.testing.assert_allclose(found, SIX_FORMS[method], atol=1e-8)


def test_modulus_does_not_change_the_icc():
    values, items, raters = judgments("plainME", "informativeness")
    matrix = stack(normalise(values, raters, "ln", modulus=100).values, items).ratings
    assert icc(matrix, "ICC(1,1)").value == pytest.approx(SIX_FORMS["ln"][0], abs=1e-8)


# psych::ICC(x, lmer = FALSE) of raw informativeness, plain magnitude estimation: 95% bounds in the order of FORMS.
BOUNDS = [
    (0.38876201393, 0.52443059148),
    (0.3908229182, 0.52850949179),
    (0.40110508411, 0.53553613103),
    (0.65612955072, 0.76788597857),
    (0.65808183122, 0.77078942296),
    (0.66768863784, 0.77573748754),
]


def test_analytic_bounds():
    values, items, _ = judgments("plainME", "informativeness")
    matrix = stack(values, items).ratings
    found = [icc(matrix, form.name) for form in FORMS]
    np.testing.assert_allclose([(one.low, one.high) for one in found], BOUNDS, atol=1e-8)
    bootstrapped = icc(matrix, "ICC(2,1)", interval="percentile")
    np.testing.assert_allclose([bootstrapped.low, bootstrapped.high], BOUNDS[1], atol=0.06)


def test_unbalanced_one_way():
    values, items, _ = judgments("likert", "informativeness")
    result = icc_one_way(values, items, "ICC(1,k)", k=3)
    assert (result.n, result.details["n_judgments"]) == (300, 914)
    assert result.details["k0"] == pytest.approx(3.0465739188981504, abs=1e-10)
    assert result.value == pytest.approx(0.9274335217795447, abs=1e-10)
    assert result.statistic == pytest.approx(13.978879726355316, rel=1e-10)
    assert result.p_value == pytest.approx(4.8246844972791226e-160, rel=1e-6)
    assert icc_one_way(values, items).value == pytest.approx(0.8098915646109959, abs=1e-10)


# lme4::lmer(y ~ 1 + (1|item) + (1|rater), REML = TRUE): variances of item, rater, residual; ICC(A,1), ICC(C,1), k = 3 forms.
LME4 = {
    ("likert", "informativeness", "raw"): (2.8629800807, 0.10416947761, 0.54813191665, 0.814438, 0.839310, 0.929414, 0.940010),
    ("likert", "naturalness", "raw"): (0.01681900113, 0.063224508993, 0.17053329341, 0.0671211, 0.0897721, 0.177531, 0.228322),
    ("likert", "quality", "ln"): (0.001241358934, 0.001931540154, 0.0083715431655, 0.10752871, 0.12913467, 0.26549043, 0.30788639),
    ("plainME", "quality", "raw"): (8.3518452928, 31.6515143742, 64.4689349641, 0.07994316, 0.11469041, 0.20676981, 0.27987360),
    ("plainME", "naturalness", "minmax"): (0.0018541934, 0.20081133536, 0.013712370889, 0.00856924, 0.119114, 0.0252745, 0.288591),
    ("rankME", "informativeness", "ln"): (0.022395411998, 0.0036457454, 0.022141105238, 0.464806, 0.502855, 0.722642, 0.752135),
    ("rankME", "naturalness", "raw"): (0.78525926164, 0.6103267308, 10.5178163809, 0.06591394, 0.06947306, 0.17471015, 0.18299301),
}  # fmt: skip


@pytest.mark.parametrize("key", LME4, ids="-".join)
def test_variance_components_equal_lme4(key):
    values, items, raters = judgments(*key[:2])
    found = variance_components(normalise(values, raters, key[2]).values, items, raters)
    ours = [found.item, found.rater, found.residual]
    ours += [icc_from(found, form, 3) for form in ("ICC(2,1)", "ICC(3,1)", "ICC(2,k)", "ICC(3,k)")]
    np.testing.assert_allclose(ours, LME4[key], rtol=1e-3)
    assert found.has_converged


def test_without_rater_variance_the_fit_is_the_one_way_anova():
    """Centred raters leave no rater variance; with three judgments per item REML is then the one-way ANOVA.

    lme4 1.1.31 stops at item 0.046756, residual 0.060614 here (ICC 0.435), where the deviance is higher by 3.
    """
    values, items, raters = judgments("plainME", "informativeness")
    centred = normalise(values, raters, "ln_center").values
    found = variance_components(centred, items, raters)
    assert found.rater == 0
    assert icc_from(found, "ICC(2,1)") == pytest.approx(SIX_FORMS["ln_center"][0], abs=1e-6)
    codes = [np.unique(ids, return_inverse=True)[1] for ids in (items, raters)]
    likelihood = CrossedLikelihood(centred, *codes)
    assert found.deviance < likelihood.deviance(0.046756294207 / 0.060613691861, 0.0) - 2.9
    result = icc_crossed(centred, items, raters)
    assert result.low < result.value < result.high


# sklearn.metrics.cohen_kappa_score(a, b, labels=1..6, weights): linear and quadratic kappa, Likert informativeness.
KAPPAS = {
    ("closest", "lower", "given"): (0.9516267736849648, 0.9870125992715113),
    ("closest", "lower", "sorted"): (0.951654490760636, 0.9870195750775842),
    ("closest", "upper", "given"): (0.9499734426917994, 0.9862224924936338),
    ("closest", "upper", "sorted"): (0.9500043206142679, 0.9862303426270607),
    ("lowest", "random", "given"): (0.7633390705679862, 0.8672006745362564),
    ("lowest", "random", "sorted"): (0.7662074377643109, 0.8690555370801463),
    ("highest", "random", "given"): (0.7646443514644352, 0.8756791076269157),
    ("highest", "random", "sorted"): (0.7663423699169217, 0.8769515595543163),
    ("furthest", "random", "given"): (0.5393054327302277, 0.6986813102316998),
    ("furthest", "random", "sorted"): (0.5544176799667113, 0.7111131588647255),
}


@pytest.mark.parametrize("key", KAPPAS, ids="-".join)
def test_kappa_of_chosen_pairs(key):
    values, items, _ = judgments("likert", "informativeness")
    matrix = stack(values, items, n_columns=3).ratings
    choice, ties, sides = key
    for weights, expected in zip(("linear", "quadratic"), KAPPAS[key], strict=True):
        result = kappa_of_pairs(
            matrix, range(1, 7), choice, weights=weights, ties=ties, sides=sides, n_resamples=20, n_permutations=2
        )
        assert result.kappa.value == pytest.approx(expected, abs=1e-9)
        if choice == "closest":
            assert result.n_ambiguous == 16


@pytest.mark.parametrize(
    ("choice", "ties", "mean", "q975"),
    # Means and 97.5% points of linear kappa over 500 independent shuffles of the columns (numpy default_rng(7)).
    [("closest", "lower", 0.8245, 0.8516), ("lowest", "random", 0.1057, 0.1896), ("highest", "random", 0.1186, 0.2386)],
)
def test_null_of_chosen_pairs(choice, ties, mean, q975):
    values, items, _ = judgments("likert", "informativeness")
    matrix = stack(values, items, n_columns=3).ratings
    result = kappa_of_pairs(matrix, range(1, 7), choice, ties=ties, sides="given", n_resamples=20, n_permutations=500)
    assert result.null.value == pytest.approx(mean, abs=0.012)
    assert result.null.high == pytest.approx(q975, abs=0.03)


def test_random_two_of_three():
    # Mean 0.6893, standard deviation 0.0187 over 2,000 draws with scikit-learn.
    values, items, _ = judgments("likert", "informativeness")
    matrix = stack(values, items, n_columns=3).ratings
    found = [
        kappa_of_pairs(matrix, range(1, 7), "random", n_resamples=2, n_permutations=1, seed=s).kappa.value
        for s in range(80)
    ]
    assert np.mean(found) == pytest.approx(0.6893, abs=0.008)
    assert np.std(found) == pytest.approx(0.0187, abs=0.006)
