"""Numbers that R gives for the same data, where R is installed: lmerTest, psych and base R.

Packages (Debian): r-base-core r-cran-lme4 r-cran-lmertest r-cran-psych. Elsewhere each check is skipped and says what is missing;
the same statistics are then checked against Python packages and published tables in the other modules of this folder.
"""

import math

import numpy as np
import pytest

from dialometer.model.estimate import Estimate
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.stats.clustered.preference import binomial_test
from dialometer.stats.effects.equivalence import equivalence
from dialometer.stats.effects.mixed import fit_crossed
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.icc.icc import icc
from r_checks import run_r

RNG = np.random.default_rng(20)
SHOWN = RNG.random(96) < 0.85
RATER, ITEM = np.repeat(np.arange(12), 8)[SHOWN], np.tile(np.arange(8), 12)[SHOWN]
N = len(RATER)
GAP = 0.3 + RNG.normal(0, 0.5, 12)[RATER] + RNG.normal(0, 0.4, 8)[ITEM] + RNG.normal(0, 0.8, N)


def r(values):
    return f"c({', '.join(repr(float(value)) for value in values)})"


def test_a_mean_over_raters_and_items_and_its_margins_as_by_lmertest():
    script = (
        f"d <- data.frame(y={r(GAP)}, rater=factor({r(RATER)}), item=factor({r(ITEM)}));"
        "m <- lmer(y ~ 1 + (1 | rater) + (1 | item), d); k <- coef(summary(m));"
        "cat(k[1, 1], k[1, 2], k[1, 3], k[1, 5], '\\n');"
        "cat(pt((k[1, 1] + 1) / k[1, 2], k[1, 3], lower.tail=FALSE), pt((k[1, 1] - 1) / k[1, 2], k[1, 3]), '\\n')"
    )
    (value, error, df, p), (above, below) = run_r(script, "lmerTest")
    mine = fit_crossed(GAP, np.ones((N, 1)), RATER, ITEM).contrast([1.0])
    assert mine == pytest.approx((value, error, df), rel=1e-3)
    difference = Estimate(mine[0], N, "mean", df=(mine[2],), details={"standard_error": mine[1]})
    tested = equivalence(difference, -1, 1)
    assert tested.p_value == pytest.approx(max(above, below), rel=5e-3)
    assert equivalence(difference, -1, math.inf).p_value == pytest.approx(above, rel=5e-3)
    assert 0 < p < 1


@pytest.mark.parametrize("margin", [0.5, 1.5])
def test_equivalence_of_two_groups_as_by_t_test(margin):
    first, second = RNG.normal(0.2, 1, 25), RNG.normal(0, 1.8, 18)
    script = (
        f"a <- {r(first)}; b <- {r(second)};"
        f"cat(t.test(a, b, mu=-{margin}, alternative='greater')$p.value, t.test(a, b, mu={margin}, alternative='less')$p.value,"
        " t.test(a, b, conf.level=.9)$conf.int, '\\n')"
    )
    ((above, below, low, high),) = run_r(script)
    tested = equivalence(welch_t(first, second), -margin, margin)
    assert tested.p_value == pytest.approx(max(above, below), rel=1e-5)
    assert (tested.low, tested.high) == pytest.approx((low, high), rel=1e-5)


def test_six_forms_of_the_icc_as_by_psych():
    table = RNG.normal(0, 1, (10, 1)) + RNG.normal(0, 0.5, (1, 4)) + RNG.normal(0, 0.7, (10, 4))
    script = (
        f"x <- matrix({r(table.ravel())}, nrow=10, byrow=TRUE); i <- ICC(x, lmer=FALSE)$results;"
        "for (k in 1:6) cat(i[k, 2], i[k, 3], i[k, 6], i[k, 7], i[k, 8], '\\n')"
    )
    forms = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")
    for form, (value, statistic, p, low, high) in zip(forms, run_r(script, "psych"), strict=True):
        mine = icc(table, form)
        assert (mine.value, mine.low, mine.high) == pytest.approx((value, low, high), rel=1e-3)
        assert statistic > 0
        assert p < 1


@pytest.mark.parametrize(("weights", "place"), [("none", 1), ("quadratic", 2)])
def test_kappa_as_by_psych(weights, place):
    first = RNG.integers(1, 5, 60)
    second = np.clip(first + RNG.integers(-1, 2, 60), 1, 4)
    script = f"k <- cohen.kappa(cbind({r(first)}, {r(second)})); cat(k$confid[{place}, ], '\\n')"
    ((_, value, _),) = run_r(script, "psych")
    assert cohen_kappa(first, second, [1, 2, 3, 4], weights=weights).value == pytest.approx(value, rel=1e-5)


def test_corrections_and_exact_tests_as_by_base_r():
    p = [0.001, 0.2, 0.03, 0.03, 0.8]
    script = f"cat(p.adjust({r(p)}, 'holm'), '\\n'); cat(p.adjust({r(p)}, 'BH'), '\\n'); cat(binom.test(14, 18)$p.value, '\\n')"
    holm, benjamini, (exact,) = run_r(script)
    assert list(adjust(p, "holm")) == pytest.approx(holm, rel=1e-5)
    assert list(adjust(p, "benjamini-hochberg")) == pytest.approx(benjamini, rel=1e-5)
    assert binomial_test(14, 18).p_value == pytest.approx(exact, rel=1e-5)
