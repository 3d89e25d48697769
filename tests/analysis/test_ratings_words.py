"""Sentences of reports on ratings: what they claim follows from tests and intervals that are known."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.base.wording import size_of_icc
from dialometer.analysis.families.ratings import ordinal, severity
from dialometer.analysis.families.ratings.factor_effects import contrasts
from dialometer.analysis.families.ratings.system_section import mean_figures
from dialometer.analysis.families.ratings.system_shifts import Shift, shift_sentences
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.model.estimate import Estimate

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=3, correction="holm")


def estimate(value, half=None):
    ends = {} if half is None else {"low": value - half, "high": value + half}
    return Estimate(value, 20, "made", **ends)


@pytest.mark.parametrize(
    ("value", "half", "words"),
    [
        (0.94, 0.99, "poor to excellent"),
        (0.8, 0.04, "good"),
        (0.75, 0.05, "moderate to good"),
        (0.94, None, "excellent"),
        (0.3, 0.1, "poor"),
    ],
)
def test_reliability_is_named_by_the_ends_of_its_interval(value, half, words):
    """Koo and Li (2016): the words are for the 95% confidence interval, not for the estimate."""
    assert size_of_icc(estimate(value, half)) == words


@pytest.mark.parametrize("p", [0.001, 0.284])
def test_the_share_of_true_variance_is_given_where_raters_differ(p):
    test = Estimate(0.5, 10, "Wald", statistic=20.0, df=(9.0,), p_value=p)
    model = SimpleNamespace(homogeneity=test, separation_reliability=0.64)
    raters = [SimpleNamespace(rater=name, fair_mean=3.0, infit=1.0) for name in ("R1", "R2")]
    said = severity._paragraphs(model, raters, "Fluency", 0.05)[0]
    if p < 0.05:
        assert "about 64% of the variance of the estimated severities is true variance, the rest is estimation" in said
    else:
        assert "do not differ significantly in severity (p" in said
        assert "%" not in said


def test_changes_of_differences_have_a_direction_a_test_and_a_scope(template):
    study = template("anchoring")
    factor = study.spec.design.factors[0]
    (contrast,) = contrasts(factor)
    shifts = [
        Shift(contrast, "A", "B", estimate(0.2, 0.1), estimate(0.5, 0.1), estimate(-0.3, 0.1), 0.003),
        Shift(contrast, "A", "C", estimate(0.9, 0.1), estimate(0.5, 0.1), estimate(0.4, 0.1), 0.004),
        Shift(contrast, "B", "C", estimate(0.4, 0.1), estimate(0.5, 0.1), estimate(-0.1, 0.2), 0.4),
    ]

    def said(is_log, found):
        effects = SimpleNamespace(
            factors=[factor], options=OPTIONS, measure=SimpleNamespace(is_log=is_log, label="All criteria")
        )
        return shift_sentences(effects, found)[0].replace("\u00a0", " ")

    scope = ". Exploratory; about other raters, for these items."
    assert (
        "the difference of A – B (p = .003) is significantly smaller and the difference of A – C (p = .004) is "
        "significantly larger than under “no anchor” after correction (Holm). No systems change places significantly"
        + scope
    ) in said(False, shifts)
    assert "the ratio of A – B (p = .003) is significantly closer to 1" in said(True, shifts)
    turned = Shift(contrast, "A", "B", estimate(-0.4, 0.1), estimate(0.5, 0.1), estimate(-0.9, 0.1), 0.001)
    assert f"these systems change places: A – B{scope}" in said(False, [turned])
    assert said(False, shifts[2:]).startswith("Differences between systems do not change significantly between")


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "on Fluency, the ordinal model gives the same verdict in the comparison of systems."),
        (3, "in all 3 comparis"),
    ],
)
def test_the_other_model_says_on_which_criteria_it_agrees(n, words):
    assert words in ordinal._verdict([], n, "Fluency", is_declared=False)


def test_figures_of_systems_are_described_with_the_digits_of_their_tables(template, quick):
    study = template("likert")
    ratings = SystemRatings(study, numeric_measures(quick(study, n_raters=12)).criteria[0], OPTIONS)
    wide = Estimate(57.8, 9, "m", low=37.4, high=78.1, statistic=2.0, df=(8.0,), p_value=0.04)
    narrow = replace(wide, value=96.07, low=92.38, high=99.75)
    named = {ratings.systems[0]: wide, ratings.systems[1]: narrow, ratings.systems[2]: wide}
    assert all(pair.raters_for_first.method.endswith("ties half") for pair in ratings.pairs)
    ratings.__dict__["means"] = named
    (figure,) = mean_figures([ratings])
    assert "96.1 [92.4, 99.8]" in figure.alt
