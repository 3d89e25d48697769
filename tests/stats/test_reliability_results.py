"""Every reliability statistic gives a plain, frozen result that can be stored, and states what it rests on."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from dialometer.model.estimate import Estimate
from dialometer.stats.agreement.fleiss import fleiss_kappa, label_counts, percent_agreement
from dialometer.stats.agreement.kappa import cohen_kappa, kappa_of_pairs
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.difference import icc_difference
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way

RNG = np.random.default_rng(1)
LABELS = [1, 2, 3, 4, 5]
RATINGS = np.clip(RNG.integers(1, 6, size=(30, 1)) + RNG.integers(-1, 2, size=(30, 4)), 1, 5)
HOLED = np.where(RNG.random(RATINGS.shape) < 0.15, np.nan, RATINGS)
OTHERS = np.clip(RATINGS + RNG.integers(-1, 2, size=RATINGS.shape), 1, 5)
ITEMS, RATERS = (grid.ravel() for grid in np.meshgrid(np.arange(30), np.arange(4), indexing="ij"))
FEW = {"n_resamples": 50}

RESULTS = {
    "mean": lambda: bootstrap_mean(RATINGS.ravel(), raters=RATERS, items=ITEMS, **FEW),
    "icc": lambda: icc(RATINGS),
    "icc bootstrap": lambda: icc(RATINGS, "ICC(3,k)", interval="bca", **FEW),
    "icc one-way": lambda: icc_one_way(RATINGS.ravel(), ITEMS, interval="percentile", **FEW),
    "icc crossed": lambda: icc_crossed(RATINGS.ravel(), ITEMS, RATERS),
    "icc model": lambda: icc(HOLED, missing="model"),
    "difference": lambda: icc_difference(RATINGS, OTHERS, n_permutations=20),
    "difference model": lambda: icc_difference(HOLED, RATINGS, missing="model", n_permutations=5),
    "kappa": lambda: cohen_kappa(RATINGS[:, 0], RATINGS[:, 1], LABELS),
    "kappa bootstrap": lambda: cohen_kappa(RATINGS[:, 0], RATINGS[:, 1], LABELS, interval="percentile", **FEW),
    "kappa of pairs": lambda: kappa_of_pairs(HOLED, LABELS, n_permutations=20, **FEW).kappa,
    "null of pairs": lambda: kappa_of_pairs(HOLED, LABELS, n_permutations=20, **FEW).null,
    "alpha": lambda: krippendorff_alpha(HOLED, "ordinal", **FEW),
    "fleiss": lambda: fleiss_kappa(label_counts(RATINGS, LABELS), **FEW),
    "percent": lambda: percent_agreement(HOLED, LABELS, **FEW),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_is_plain_and_says_what_it_rests_on(name):
    result = RESULTS[name]()
    assert isinstance(result, Estimate)
    assert json.loads(json.dumps(asdict(result)))["n"] == result.n
    for field in ("value", "low", "high", "statistic", "p_value"):
        assert type(getattr(result, field)) is float, field
    assert result.is_known
    assert result.low <= result.value <= result.high
    assert result.method
    assert result.interval_method
    assert result.n >= 29
    if "bootstrap" in result.interval_method:
        assert result.n_resamples == 50
        assert result.seed == 0
    assert RESULTS[name]() == result
