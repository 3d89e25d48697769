"""Means, differences, confirmatory tests and sentences of a rating report say the same, and claim no more than they may."""

import dataclasses
import json

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import OVERALL, numeric_measures
from dialometer.analysis.families.ratings.factor_effects import difference_words, effect_heading
from dialometer.analysis.families.ratings.ratings import Ratings, _RatingRun
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.analysis.shared.comparisons import p_adjusted, primary_comparison
from dialometer.model.estimate import Estimate
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth, draw_truth
from report_parts import table_of

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=3, correction="holm")
SYSTEMS = ("rules", "retrieval", "neural")


def one_system_each(data):
    """As imports often are: each rater saw one system of an item, and over raters every item shows all of them."""
    items = sorted(set(data.judgments["item"]))
    raters = sorted(set(data.judgments["rater"]))
    place = pl.col("item").replace_strict({name: k for k, name in enumerate(items)}) + pl.col("rater").replace_strict(
        {name: k for k, name in enumerate(raters)}
    )
    seen = (place % 3).replace_strict(dict(enumerate(SYSTEMS)), return_dtype=pl.String)
    return dataclasses.replace(data, judgments=data.judgments.filter(pl.col("system") == seen))


def test_items_that_show_every_system_are_recognised(template, quick):
    study = template("likert")
    data = one_system_each(quick(study, n_raters=30, truth=draw_truth(study, 3, spread=0.9)))
    report = analyse(study, data, n_resamples=100)
    assert SystemRatings(study, numeric_measures(data).main, OPTIONS).layout == "items"
    assert table_of(report, "system_pairs").caption.startswith("Items were shown with several systems")
    method = next(method for method in report.methods if method.what == "Comparison of systems")
    assert "two-way jackknife" in method.method
    assert method.why.startswith("not every screen has a rating of each system; the jackknife")
    whole = analyse(study, quick(study, n_raters=30), n_resamples=100)
    method = next(method for method in whole.methods if method.what == "Comparison of systems")
    assert "Differences within screens" in method.method


@pytest.mark.parametrize("is_thinned", [False, True])
def test_means_differences_and_tests_agree(template, quick, is_thinned):
    study = template("likert")
    for seed in range(4):
        data = quick(study, n_raters=14, seed=seed, truth=draw_truth(study, seed, spread=0.05))
        if is_thinned:
            data = one_system_each(data)
        report = analyse(study, data, n_resamples=100)
        means = {row[0]: row[1:] for row in table_of(report, "system_means").rows}
        columns = [column.label for column in table_of(report, "system_means").columns][1:]
        for criterion, first, second, difference, *_ in table_of(report, "system_pairs").rows:
            at = next(k for k, label in enumerate(columns) if label.startswith(criterion.split(" (")[0].split(",")[0]))
            if criterion.startswith("All"):
                at = 0
            assert difference.value > -1e-9, "the higher first; systems that are level in the order of the study file"
            assert difference.value == pytest.approx(means[first][at].value - means[second][at].value, abs=1e-9)
        assert " lower than" not in report.summary.certainty
        tests = Ratings().primary_tests(data, primary_comparison(study), OPTIONS)
        declared = [row for row in table_of(report, "declared_ratings").rows if "(primary)" in row[0]]
        expected = sorted((abs(test.value), test.p_value, p_adjusted(test)) for test in tests.values())
        found = sorted((abs(row[4].value), row[5], row[6]) for row in declared)
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-9)


@pytest.mark.slow
def test_ratings_of_one_system_each_make_no_false_claims(template, quick):
    """40 studies without a difference, rater × system SD 0.4, item × system SD 0.6; a third claimed one before."""
    study = template("likert")
    comparison = primary_comparison(study)
    n_tests = n_answers = 0
    for seed in range(40):
        truth = Truth({}, item_sd=0.6, seed=seed)
        data = one_system_each(quick(study, n_raters=20, seed=seed, truth=truth, habits=Habits(taste_sd=0.4)))
        tests = Ratings().primary_tests(data, comparison, OPTIONS)
        n_tests += any(p_adjusted(test) < 0.05 for test in tests.values())
        claims = [claim for best, _ in _RatingRun(data, OPTIONS).best for claim in best.claims()]
        n_answers += bool(claims)
    assert max(n_tests, n_answers) <= 7  # at 5% one run in a thousand shows more


def test_one_item_is_spoken_of_as_one(template, quick):
    study = template("likert")
    data = quick(study, n_raters=30, truth=draw_truth(study, 3, spread=2.0))
    item = next(name for name in data.judgments["item"] if not name.startswith("gold"))
    only = dataclasses.replace(data, judgments=data.judgments.filter(pl.col("item") == item))
    report = analyse(study, only, n_resamples=100)
    assert "one item is too few for a general claim" in report.summary.answer
    assert "these items only" in table_of(report, "system_means").caption
    fixed = template("likert", ("  correction: holm", "  items: fixed\n  correction: holm"))
    assert "as declared" in analyse(fixed, quick(fixed, n_raters=12), n_resamples=100).summary.answer


def test_a_system_on_one_item_has_no_general_test(template, quick):
    study = template("likert")
    data = quick(study, n_raters=20)
    item = next(name for name in data.judgments["item"] if not name.startswith("gold"))
    kept = data.judgments.filter((pl.col("system") != "neural") | (pl.col("item") == item))
    ratings = SystemRatings(study, numeric_measures(dataclasses.replace(data, judgments=kept)).main, OPTIONS)
    neural = ratings.measure.book.systems.index("neural")
    for pair in ratings.pairs:
        is_lost = neural in (pair.first, pair.second)
        assert pair.difference.has_interval is not is_lost
        assert np.isnan(pair.p_adjusted) == is_lost
        if is_lost:
            assert any("one item only" in note for note in pair.difference.notes)


def test_a_criterion_may_be_called_overall(template, quick):
    old = ("- name: relevance\n", "criteria: [relevance, ", "criterion: relevance")
    study = template("likert", *((text, text.replace("relevance", "overall")) for text in old))
    data = quick(study, n_raters=12)
    measures = numeric_measures(data)
    names = [measure.name for measure in measures.all]
    assert len(set(names)) == len(names) == 4
    assert OVERALL not in [measure.name for measure in measures.criteria]
    columns = [column.name for column in table_of(analyse(study, data, n_resamples=100), "system_means").columns]
    assert len(set(columns)) == len(columns)


def test_exclusions_list_gold_items(template, quick):
    study = template("likert")
    data = quick(study, n_raters=6)
    rows = {row[0]: row[2] for row in analyse(study, data, n_resamples=100).summary.exclusions.rows}
    n_gold = len(data.judgments.filter(pl.col("item").is_in(["gold_shuttle", "gold_payment"])))
    assert rows["judgments on gold items, which check raters and are in no result"] == n_gold > 0


def test_differences_of_z_scores_are_no_points(template, quick):
    measure = dataclasses.replace(numeric_measures(quick(template("likert"), n_raters=6)).criteria[0], unit="z")
    difference = Estimate(0.3, 10, "test", low=0.1, high=0.5)
    assert effect_heading(measure) == "Difference, z"
    assert "standard deviations of a rater's ratings (z) higher than B" in difference_words(measure, difference, "B")


def test_ratios_and_differences_in_one_table_are_named(template, quick):
    study = template(
        "likert",
        ("scales:\n", "scales:\n  free: {type: magnitude}\n"),
        ("    scale: relevance_5\n", "    scale: free\n"),
    )
    report = analyse(study, quick(study, n_raters=12), n_resamples=100)
    for name in ("declared_ratings", "system_pairs"):
        table = table_of(report, name)
        assert "Difference or ratio" in [column.label for column in table.columns]
        assert {str(cell) for row in table.rows for cell in row if "(ratio)" in str(cell)} == {"Relevance (ratio)"}
    means = {column.label for column in table_of(report, "system_means").columns}
    assert means >= {"Relevance, geometric mean", "Fluency (1 to 5)"}


@pytest.mark.parametrize("name", ["likert", "anchoring"])
def test_no_number_is_the_trace_of_rounding(template, quick, tmp_path, name):
    from dialometer.report.render import render

    study = template(name)
    render(analyse(study, quick(study, n_raters=24, seed=3), n_resamples=100), tmp_path, formats=["json"])

    def numbers(part, key=""):
        if isinstance(part, dict):
            for own, inner in part.items():
                yield from numbers(inner, own)
        elif isinstance(part, list):
            for inner in part:
                yield from numbers(inner, key)
        elif isinstance(part, float):
            yield key, part

    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    found = [(key, value) for key, value in numbers(report) if key in ("value", "low", "high", "statistic")]
    assert found
    assert [pair for pair in found if 0 < abs(pair[1]) < 1e-12] == []
