"""Forced choices: tests, rules for ties, and the cells of Guerini, Falcone and Magnini (SCAI 2018), Table 2."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.descriptivestats import sign_test as peer_sign_test

from dialometer.errors import DialometerError
from dialometer.stats.clustered.homogeneity import homogeneity
from dialometer.stats.clustered.preference import (
    binomial_test,
    chi2_goodness_of_fit,
    mcnemar,
    preference,
    preference_of,
    signed_choices,
)
from dialometer.stats.effects.multiplicity import adjust

# Ratios of the published Table 2; 143 subjects per cell, count = floor(ratio * 143 + 0.5).
RATIOS = {
    "alignment": (0.60, 0.61, 0.67, 0.65),
    "empathy": (0.73, 0.78, 0.73, 0.76),
    "facing": (0.64, 0.71, 0.70, 0.66),
    "formal": (0.74, 0.80, 0.73, 0.66),
    "vocabulary": (0.74, 0.71, 0.73, 0.77),
}
COUNTS = {name: [math.floor(ratio * 143 + 0.5) for ratio in row] for name, row in RATIOS.items()}

# Computed from those counts with scipy 1.12 and statsmodels 0.15 (binomtest, chisquare, proportion_confint).
CELLS = [
    # count, exact p, chi2, chi2 p, chi2 Yates, Yates p, Clopper-Pearson, Wilson
    (86, 0.01889113501880962, 5.881118881118881, 0.01530409340258161, 5.4825174825174825, 0.01920757707591021,
     (0.5162391447893127, 0.682266554255018), (0.5195108062987854, 0.677981102545647)),
    (112, 5.83538118989512e-12, 45.88111888111888, 1.2565118537811186e-11, 44.75524475524475, 2.2326809725315012e-11,
     (0.7066301406671183, 0.8477021352346987), (0.7087505597246031, 0.8428647718753632)),
    (94, 0.00020947054060672137, 14.160839160839162, 0.0001678274108301305, 13.538461538461538, 0.00023372390540286994,
     (0.573410978559919, 0.7346043298816983), (0.5763536012607213, 0.7300993607392599)),
    (110, 7.086785585051165e-11, 41.46153846153846, 1.2021292162482808e-10, 40.39160839160839, 2.0783183945037826e-10,
     (0.691460164168484, 0.835512719027603), (0.6936784222161915, 0.8306966460948876)),
]  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: str(cell[0]))
def test_published_cells(cell):
    count, exact_p, chi2, chi2_p, yates, yates_p, exact_interval, wilson = cell
    exact = preference(count, 143 - count, interval="clopper-pearson")
    assert exact.value == pytest.approx(count / 143, abs=1e-12)
    assert exact.p_value == pytest.approx(exact_p, rel=1e-9)
    assert (exact.low, exact.high) == pytest.approx(exact_interval, abs=1e-9)
    plain = preference(count, 143 - count, test="chi2")
    assert (plain.low, plain.high) == pytest.approx(wilson, abs=1e-9)
    assert plain.statistic == pytest.approx(chi2, abs=1e-9)
    assert plain.p_value == pytest.approx(chi2_p, rel=1e-9)
    corrected = preference(count, 143 - count, test="chi2-yates")
    assert corrected.statistic == pytest.approx(yates, abs=1e-9)
    assert corrected.p_value == pytest.approx(yates_p, rel=1e-9)


def test_published_family_under_holm():
    p = [binomial_test(count, 143).p_value for row in COUNTS.values() for count in row]
    adjusted = adjust(p, "holm")
    assert adjusted[0] == pytest.approx(0.023699789762036093, rel=1e-9)  # alignment, ease
    assert adjusted[3] == pytest.approx(0.0016238979325553622, rel=1e-9)  # alignment, interaction
    assert np.all(adjusted < 0.05)  # the paper: all results are significant


def test_published_homogeneity():
    strategies = homogeneity([sum(row) for row in COUNTS.values()], [572] * 5)
    assert strategies.statistic == pytest.approx(26.653238938761906, abs=1e-9)
    assert strategies.df == (4.0,)
    assert strategies.p_value == pytest.approx(2.3359655180865627e-05, rel=1e-9)
    questions = homogeneity(np.sum(list(COUNTS.values()), axis=0), [715] * 4)
    assert questions.statistic == pytest.approx(2.012804634215146, abs=1e-9)
    assert questions.p_value == pytest.approx(0.5697533129098766, rel=1e-9)
    cells = homogeneity([count for row in COUNTS.values() for count in row], [143] * 20)
    assert cells.statistic == pytest.approx(40.86077625223869, abs=1e-9)
    assert cells.p_value == pytest.approx(0.002518584035682051, rel=1e-9)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.05, 0.95))
def test_binomial_agrees_with_scipy(n, k, null):
    k = min(k, n)
    assert binomial_test(k, n, null=null).p_value == pytest.approx(stats.binomtest(k, n, null).pvalue)


@given(st.lists(st.integers(0, 40), min_size=2, max_size=6).filter(lambda counts: sum(counts) > 0))
def test_goodness_of_fit_agrees_with_scipy(counts):
    peer = stats.chisquare(counts)
    mine = chi2_goodness_of_fit(counts)
    assert mine.statistic == pytest.approx(peer.statistic)
    assert mine.p_value == pytest.approx(peer.pvalue)
    assert mine.value == pytest.approx(math.sqrt(peer.statistic / sum(counts)))


def test_goodness_of_fit_with_expected_shares():
    peer = stats.chisquare([30, 50, 20], np.array([0.2, 0.5, 0.3]) * 100)
    assert chi2_goodness_of_fit([30, 50, 20], [2, 5, 3]).p_value == pytest.approx(peer.pvalue)
    assert "below 5" in chi2_goodness_of_fit([1, 2]).notes[0]
    with pytest.raises(DialometerError, match="above zero"):
        chi2_goodness_of_fit([1, 2], [1, 0])
    assert not chi2_goodness_of_fit([0, 0]).is_known


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 10))
def test_sides_mirror_and_rules_agree_on_the_test(n_for, n_against, n_ties, n_cannot_tell):
    for rule in ("drop", "half", "report"):
        one = preference(n_for, n_against, n_ties, n_cannot_tell, ties=rule, cannot_tell=rule)
        two = preference(n_against, n_for, n_ties, n_cannot_tell, ties=rule, cannot_tell=rule)
        if n_for + n_against == 0:
            assert not one.is_known
            continue
        assert one.p_value == pytest.approx(two.p_value)
        assert one.p_value == pytest.approx(stats.binomtest(n_for, n_for + n_against).pvalue)
        assert one.details["share_against"] == pytest.approx(two.value)
        if rule != "report":
            assert one.value == pytest.approx(1 - two.value)


def test_rules_for_ties():
    drop, half, report = (preference(30, 10, 20, 5, ties=rule) for rule in ("drop", "half", "report"))
    assert (drop.value, drop.n) == (0.75, 40)
    assert "20 ties excluded" in drop.notes
    assert (half.value, half.n) == (pytest.approx(40 / 60), 60)
    assert (report.value, report.n) == (0.5, 60)
    assert report.details["share_against"] == pytest.approx(10 / 60)
    assert "ties counted as answers" in report.method
    assert all("5 cannot tell excluded" in estimate.notes for estimate in (drop, half, report))
    assert drop.method.endswith("; ties and “cannot tell” excluded")
    assert half.method.endswith("; ties counted as half, “cannot tell” excluded")
    assert preference(30, 10).method == "preference, exact binomial test on decisive answers"
    assert "cannot tell" not in preference(30, 10, 2).method
    with pytest.raises(DialometerError, match="negative"):
        preference(-1, 3)


def test_half_rule_interval_covers_at_least_its_confidence():
    rng = np.random.default_rng(5)
    draws = rng.multinomial(60, [0.4, 0.25, 0.35], size=1500)
    truth = 0.4 + 0.35 / 2
    hits = [e.low <= truth <= e.high for e in (preference(a, b, t, ties="half") for a, b, t in draws.tolist())]
    assert np.mean(hits) >= 0.95


def test_choices_become_signs():
    signed = signed_choices(
        ["new", "old", "tie", "cannot_tell", None, float("nan"), "new"], favoured="new", against="old"
    )
    assert signed[:3].tolist() == [1, -1, 0]
    assert np.isnan(signed[3:6]).all()
    estimate = preference_of(signed)
    assert estimate.details == {
        "n_for": 2, "n_against": 1, "n_ties": 1, "n_cannot_tell": 3, "share_against": pytest.approx(1 / 3)
    }  # fmt: skip
    with pytest.raises(DialometerError, match="neu"):
        signed_choices(["new", "neu"], favoured="new", against="old")
    with pytest.raises(DialometerError, match="signed_choices"):
        preference_of([2.0])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_agrees_with_statsmodels(pairs):
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    table = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), np.sum(~first & ~second)]]
    b, c = table[0][1], table[1][0]
    mine = mcnemar(first, second)
    if b + c == 0:
        assert not mine.is_known
        return
    peer = peer_mcnemar(table, exact=True)
    assert mine.p_value == pytest.approx(peer.pvalue)
    assert mine.statistic == peer.statistic
    plain = peer_mcnemar(table, exact=False, correction=False)
    assert mcnemar(first, second, exact=False, correction=False).p_value == pytest.approx(plain.pvalue)
    if b != c:
        corrected = peer_mcnemar(table, exact=False, correction=True)
        assert mcnemar(first, second, exact=False).statistic == pytest.approx(corrected.statistic)


def test_mcnemar_leaves_out_missing_pairs():
    estimate = mcnemar([1, 0, 1, math.nan, 1], [0, 0, 0, 1, 1])
    assert estimate.n == 4
    assert estimate.notes == ("1 missing answer excluded",)
    with pytest.raises(DialometerError, match="yes/no"):
        mcnemar([2], [1])


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60))
def test_sign_test_agrees_with_statsmodels(differences):
    mine = preference_of(np.sign(differences))
    if not any(differences):
        assert not mine.is_known
        return
    statistic, p_value = peer_sign_test(np.array(differences, dtype=float))
    assert (mine.details["n_for"] - mine.details["n_against"]) / 2 == statistic
    assert mine.p_value == pytest.approx(p_value)
    assert mine.value == pytest.approx(1 - preference_of(-np.sign(differences)).value)
