"""Models that reviewers ask for in reports on ratings: ordered categories, severity, how many raters and items."""

from dataclasses import replace

import numpy as np
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.exploring import DataChoice
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.families.ratings.ordinal_model import has_order, ordinal_of
from dialometer.report.numbers import write_headline
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import draw_truth

from dialometer.analysis.base.data import data_from_arrays  # isort: skip
from report_parts import section_of, table_of

ORDINAL = ("  correction: holm", "  model: ordinal\n  correction: holm")


def data_of(study, n_raters=30):
    columns = simulate_judgments(study, draw_truth(study, seed=4), Habits(), n_raters=n_raters, seed=3)
    return data_from_arrays(study, columns)


@pytest.fixture(scope="module")
def reports(template):
    made = {}
    for name, study in (("linear", template("likert")), ("ordinal", template("likert", ORDINAL))):
        made[name] = analyse(study, data_of(study), n_resamples=100)
    return made


def test_the_sections_are_exploratory_and_never_the_headline(reports):
    for report in reports.values():
        for name in ("ordinal", "severity", "generalisability"):
            made = section_of(report, name)
            assert not made.problem
            assert not made.is_confirmatory
            assert made.parts
        assert not any("odds" in headline.sentence for headline in report.summary.headlines)


def test_headlines_of_a_part_say_what_is_compared_and_in_what_unit(template):
    """In a part of the data nothing is declared, so that the best system on each measure is the headline."""
    shown = {}
    for name in ("compare", "anchoring"):
        study = template(name)
        part = [DataChoice.parse(f"item={study.people_items[0].id}")]
        report = analyse(study, data_of(study), n_resamples=50, only=part)
        shown |= {headline.label: write_headline(headline).unit for headline in report.summary.headlines}
    assert shown == {
        "All criteria: Version 1 against Version 2": "percentage points of the scale",
        "Overall quality: Version 1 against Version 2": "points",
        "Relevance: Version 1 against Version 2": "points",
        "Did the anchor (anchor (text and number)) change the ratings?": "times",
    }


def test_both_models_stand_side_by_side(reports):
    rows = {kind: table_of(report, "ordinal").rows for kind, report in reports.items()}
    assert len(rows["linear"]) == 3  # the primary comparison is about one criterion
    for one, other in zip(rows["linear"], rows["ordinal"], strict=True):
        assert one[0] == other[0]
        assert one[1].value == pytest.approx(other[1].value)
        assert one[5].value == pytest.approx(other[5].value)
        assert (one[3].low > 0) == (one[5].low > 1)
        assert one[1].value == pytest.approx(one[3].value, abs=0.15)


def test_a_declared_ordinal_model_is_the_only_one(template, reports):
    """Declared tests, pairs, best system and the tests that power repeats come from the same fit."""
    report = reports["ordinal"]
    points = {row[0]: row[3] for row in table_of(report, "ordinal").rows}
    declared = [row for row in table_of(report, "declared_ratings").rows if row[1] == "Helpfulness"]
    assert len(declared) == 3
    for row in declared:
        assert row[4].value == points[f"Helpfulness: {row[2]} against {row[3]}"].value
        assert "cumulative link" in row[4].method
    pairs = [row for row in table_of(report, "system_pairs").rows if row[0].startswith("Helpfulness")]
    named = {f"Helpfulness: {row[1]} against {row[2]}": row[3].value for row in pairs}
    assert named == {name: difference.value for name, difference in points.items()}
    study = template("likert", ORDINAL)
    analysis = study.spec.analysis
    primary = next(c for c in analysis.comparisons if c.name == analysis.primary)
    options = Options(0.95, 100, 0, analysis.correction, model=analysis.model)
    tests = ANALYSES.get("ratings").primary_tests(data_of(study), primary, options)
    assert sorted(abs(test.value) for test in tests.values()) == pytest.approx(
        sorted(abs(difference.value) for difference in points.values())
    )
    assert any("Cumulative link" in method.method for method in report.methods)


def test_the_default_stays_linear(reports):
    assert all("linear" in row[4].method for row in table_of(reports["linear"], "declared_ratings").rows)


def test_the_plan_names_raters_items_and_money(reports):
    made = section_of(reports["linear"], "generalisability")
    assert "would by this plan be known to about" in made.paragraphs[0]
    assert "Twice as many raters" in made.paragraphs[0]
    designs = table_of(reports["linear"], "designs")
    assert len(designs.rows) == 3
    assert "USD" in str(designs.rows)
    shares = [row[2] for row in table_of(reports["linear"], "variance_components").rows]
    assert sum(shares) == pytest.approx(1)


def test_severity_names_raters_at_both_ends(reports):
    rows = table_of(reports["linear"], "severity").rows
    assert len(rows) >= 10
    values = [row[2].value for row in rows[:10]]
    assert values == sorted(values, reverse=True)


def test_fixed_items_narrow_the_ordinal_model(template):
    study = template("likert")
    measures = numeric_measures(data_of(study))
    options = Options(0.95, 100, 0, "holm")
    criterion = measures.criteria[0]
    assert has_order(criterion)
    assert measures.overall is not None
    assert not has_order(measures.overall)
    fixed = ordinal_of(criterion, replace(options, has_fixed_items=True)).difference(0, 1)
    general = ordinal_of(criterion, options).difference(0, 1)
    assert fixed.high - fixed.low < general.high - general.low


def owned_bytes(column):
    """What an array keeps in memory, through whatever it is a part of."""
    while column.base is not None:
        column = column.base
    return column.nbytes


def test_measures_take_no_more_memory_than_they_need(template):
    measures = numeric_measures(data_of(template("likert")))
    overall, (first, second, *_) = measures.overall, measures.criteria
    assert np.ptp(overall.cell) == 0
    assert owned_bytes(overall.cell) == 8, "a column with one number throughout is that number"
    for name in ("rater", "item", "system"):
        assert np.shares_memory(getattr(overall, name), getattr(second, name)), name
    screens = first.screens
    assert first.screens is screens
    assert second.screens is not screens
    assert len(measures.book.last_screens) == 1, "those of one measure at a time"
    again = first.screens
    np.testing.assert_array_equal(again.y, screens.y)
    assert not np.array_equal(again.y, second.screens.y, equal_nan=True)


def test_the_other_model_is_a_choice_of_the_critic(reports):
    """The sensitivity figure holds the ordinal model where the linear one is declared, and the other way round."""
    for kind, other in (("linear", "ordinal mixed model (cumulative link)"), ("ordinal", "linear mixed model")):
        rows = [row for table in reports[kind].tables() for row in table.rows if f"Model: {other}" in row]
        assert rows
