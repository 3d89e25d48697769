"""Sentences of reports on ratings: what they claim follows from tests and intervals that are known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures, rater_rows
from dialometer.analysis.base.wording import size_of_icc
from dialometer.analysis.families.ratings import ordinal, severity
from dialometer.analysis.families.ratings.agreement import agreement_section
from dialometer.analysis.families.ratings.factor_effects import contrasts
from dialometer.analysis.families.ratings.groups import rating_group_section
from dialometer.analysis.families.ratings.spread import disputed_sections
from dialometer.analysis.families.ratings.system_section import best_system, mean_figures, pair_section
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


def test_groups_that_cannot_be_tested_are_not_said_to_be_alike(template, quick):
    study = template("likert")
    data = quick(study, n_raters=8)
    rows = rater_rows(data, numeric_measures(data))
    systems = [SystemRatings(study, numeric_measures(data).main, OPTIONS)]

    def verdict(first):
        answers = pl.DataFrame(
            [(name, "pre", "english", '"x"', first if k == 0 else "Good", None) for k, name in enumerate(rows.names)],
            schema=data.answers.schema,
            orient="row",
        )
        asked = replace(data, answers=answers)
        return rating_group_section(asked, rows, "english", systems, OPTIONS).paragraphs[1]

    assert verdict("Basic") == (
        "Whether the groups compare systems differently cannot be tested: a group has one rater: at least two are needed in each."
    )


def test_with_two_raters_the_caption_promises_no_jackknife(template, quick):
    """Their notes say how the interval is made; each note stands once, below the table."""
    data = quick(template("likert"), n_raters=2)
    section, _ = agreement_section(numeric_measures(data), OPTIONS)
    table = section.parts[1]
    assert "careless" not in table.caption
    assert not table.notes
    several, _ = agreement_section(numeric_measures(quick(template("likert"), n_raters=6)), OPTIONS)
    assert "one careless rater more" in several.parts[1].caption


def test_with_few_ratings_a_bad_fit_may_be_chance():
    """Smith, Schumacker and Bush (1998): infit of n ratings varies by about 2 / sqrt(n)."""
    test = Estimate(0.5, 10, "Wald", statistic=20.0, df=(9.0,), p_value=0.2)
    model = SimpleNamespace(homogeneity=test, separation_reliability=0.64)

    def said(infit, n):
        rows = [SimpleNamespace(rater="R1", fair_mean=3.0, infit=1.0, severity=Estimate(0.0, n, "Rasch"))]
        rows.append(SimpleNamespace(rater="R2", fair_mean=3.0, infit=infit, severity=Estimate(0.0, n, "Rasch")))
        return severity._paragraphs(model, rows, "Fluency", 0.05)[1]

    assert "more erratically than the model allows: R2" in said(1.6, 60)
    assert "more regularly than the model expects: R2" in said(0.4, 60)
    for infit in (1.6, 0.4):
        assert said(infit, 6).endswith("than chance allows with so few ratings.")
    assert "erratically" in said(2.9, 6)


def test_one_pair_of_systems_is_not_said_to_be_corrected(template, quick):
    def pairs(levels):
        study = template("likert")
        data = quick(study, n_raters=8)
        judgments = data.judgments.filter(pl.col("system").is_in(levels))
        (main, *_) = numeric_measures(replace(data, judgments=judgments)).criteria
        return pair_section([SystemRatings(study, main, OPTIONS)]).parts

    table, figure = pairs(["rules", "neural"])
    assert "corrected" not in table.caption + figure.caption
    table, figure = pairs(["rules", "retrieval", "neural"])
    assert "corrected over the pairs" in table.caption
    assert "not corrected" in figure.caption


def test_of_several_systems_the_significant_difference_comes_first(template, quick):
    """A supported hypothesis is not followed by the p-value of the one difference that is not significant alone."""
    study = template("likert")
    data = quick(study, n_raters=8)
    shift = {"rules": 1.0, "retrieval": 4.0, "neural": 4.0}
    rng = np.random.default_rng(2)
    noise = pl.Series(rng.integers(0, 2, len(data.judgments)))
    values = pl.col("system").replace_strict(shift, return_dtype=pl.Float64) + noise
    judgments = data.judgments.with_columns(values.alias("value"))
    (ratings, *_) = numeric_measures(replace(data, judgments=judgments)).criteria
    best = best_system(SystemRatings(study, ratings, OPTIONS))
    assert best.rivals
    assert best.behind == ("Rules",)
    first, second = best.numbers.split(", and ")
    assert "points higher than Rules" in first
    assert "p < .001" in first.replace("\u00a0", " ")
    assert second.endswith("after correction (Holm).")


def test_where_the_design_gives_items_two_raters_none_is_called_disputed(template, quick):
    study = template("judged")
    assert study.spec.design.judgments_per_item == 2
    assert not disputed_sections(study, numeric_measures(quick(study, n_raters=1)))
    likert = template("likert")
    (section,) = disputed_sections(likert, numeric_measures(quick(likert, n_raters=1)))
    assert "have items judged by more raters" in section.problem
