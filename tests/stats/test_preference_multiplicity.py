"""Corrections for many tests against statsmodels."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from dialometer.errors import UnknownName
from dialometer.model.estimate import Estimate
from dialometer.stats.effects.multiplicity import adjust, adjust_estimates, benjamini_hochberg, bonferroni, holm


@pytest.fixture(autouse=True, scope="module")
def cheap_collections():
    """statsmodels collects garbage at every call, which takes long among all that other tests have loaded."""
    gc.freeze()
    yield
    gc.unfreeze()


families = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(families)
def test_agree_with_statsmodels(p):
    for mine, name in ((holm, "holm"), (benjamini_hochberg, "fdr_bh"), (bonferroni, "bonferroni")):
        assert mine(p) == pytest.approx(multipletests(p, method=name)[1])


@given(families, st.randoms())
def test_order_does_not_matter_and_nothing_gets_smaller(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    for correct in (holm, benjamini_hochberg):
        adjusted = correct(p)
        assert correct([p[index] for index in order]) == pytest.approx(adjusted[order])
        assert np.all(adjusted >= np.asarray(p) - 1e-15)
        assert np.all(adjusted <= bonferroni(p) + 1e-12)


def test_tests_that_could_not_be_made_do_not_count():
    assert holm([0.01, math.nan, 0.04]) == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    assert np.isnan(benjamini_hochberg([math.nan])).all()


def test_estimates_carry_the_family():
    estimates = [Estimate(0.1, 10, "t", p_value=p) for p in (0.01, 0.03, math.nan)]
    done = adjust_estimates(estimates, "holm")
    assert [e.details["p_adjusted"] for e in done] == pytest.approx([0.02, 0.03, math.nan], nan_ok=True)
    assert done[0].details["n_tests"] == 2
    assert done[0].p_value == 0.01
    assert adjust([0.2, 0.3], "none") == pytest.approx([0.2, 0.3])
    with pytest.raises(UnknownName, match="benjamini"):
        adjust([0.2], "sidak")
