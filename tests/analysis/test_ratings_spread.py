"""Where ratings are spread: disputed items by the ratings as given, and changes over a session with their units."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.families.ratings.drift import _level_sentence
from dialometer.analysis.families.ratings.spread import _digits, _relative, disputed_section, order_section
from dialometer.model.report import Figure, Table
from dialometer.stats.effects.drift import rater_slopes

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=3, correction="holm")


def tables_of(section):
    return {part.name: part for part in section.parts if isinstance(part, Table)}


def test_disputed_items_are_those_of_the_ratings_as_given(template, quick):
    """Raters whose level differs on other things agree where they gave the same rating."""
    study = template("likert")
    data = quick(study, n_raters=24)
    is_alike = (pl.col("item") == "t07") & (pl.col("system") == "rules")
    number = pl.col("rater").str.slice(1).cast(pl.Int64)
    moved = pl.when(is_alike).then(5.0).otherwise(pl.when(number % 2 == 0).then(1.0).otherwise(5.0))
    measures = numeric_measures(dataclasses.replace(data, judgments=data.judgments.with_columns(value=moved)))
    rows = tables_of(disputed_section(study, measures))["disputed"].rows
    measure = measures.criteria[0]
    assert rows
    for _, item, label, _, n, mean, spread, ends in rows[:3]:
        (system,) = (s.name for s in study.spec.systems if (s.label or s.name) == label)
        code = measure.book.items.index(item), measure.book.systems.index(system)
        given = measure.raw[(measure.item == code[0]) & (measure.system == code[1])]
        assert (n, mean, spread) == (len(given), given.mean(), pytest.approx(given.std(ddof=1)))
        assert ends == f"{given.min():g} to {given.max():g}"
        assert spread > 1.5
    assert ("t07", "Rules") not in {(row[1], row[2]) for row in rows}


def test_what_all_raters_rate_alike_is_not_disputed(template, quick):
    """Each rater's numbers are the same multiples: their logarithms differ in the last digit, less the rater's level."""
    study = template("anchoring")
    data = quick(study, n_raters=24)
    number = pl.col("rater").str.slice(1).cast(pl.Int64)
    first = data.judgments["item"][0]
    alike = data.judgments.with_columns(
        value=(number + 2.0) * pl.when(pl.col("item") == first).then(3.0).otherwise(7.0)
    )
    section = disputed_section(study, numeric_measures(dataclasses.replace(data, judgments=alike)))
    assert section.paragraphs == ("Nothing is disputed: what 3 raters or more rated, all of them rated alike.",)


def test_ratings_that_are_all_equal_are_said_to_be_that(template, quick):
    study = template("likert")
    data = quick(study, n_raters=10)
    same = dataclasses.replace(data, judgments=data.judgments.with_columns(value=pl.lit(3.0)))
    report = analyse(study, same, n_resamples=100)
    sections = {section.name: section for section in report.sections}
    assert sections["disputed"].paragraphs[0].startswith("Nothing is disputed")
    problems = [section.problem for section in report.sections if section.problem]
    assert len([problem for problem in problems if "all ratings are equal" in problem]) == 3, problems


@pytest.mark.parametrize(
    ("raw", "unit", "n_digits"),
    [
        ([1.0, 5.0, 3.0], "points", 0),
        ([0.0, 90.91, 100.0], "points", 1),
        ([2.0, 2.5], "points", 1),
        ([3.25, 4.0], "points", 2),
        ([0.125, 300.0], "log", 3),
    ],
)
def test_a_range_has_the_digits_of_its_criterion(raw, unit, n_digits):
    is_wide = unit == "points" and np.std(raw) > 10
    measure = SimpleNamespace(raw=np.array(raw), unit=unit, is_log=unit == "log", is_wide=is_wide)
    assert _digits(measure) == n_digits


def order_of(template, quick, n_items):
    study = template("likert", ("items_per_rater: 10", f"items_per_rater: {n_items}"))
    data = quick(study, n_raters=12, seed=2)
    measure = numeric_measures(data).criteria[0]
    return measure, order_section(data, measure, OPTIONS)


@pytest.mark.parametrize(("n_items", "span"), [(4, "from the first to the last of 4 items"), (20, "per 10 items")])
def test_changes_of_single_raters_lie_in_their_intervals_and_go_no_further_than_a_session(
    template, quick, n_items, span
):
    measure, section = order_of(template, quick, n_items)
    table = tables_of(section)["drift_of_raters"]
    assert table.columns[1].label == f"Change {span}, points"
    assert any(f"points {span}" in paragraph for paragraph in section.paragraphs)
    steps = min(n_items - 1, 10)
    rest = _relative(measure)
    for name, change, *_ in table.rows:
        own = measure.rater == measure.book.raters.index(name)
        slope = np.polyfit(measure.position[own], rest[own], 1)[0]
        assert change.value == pytest.approx(steps * slope)
        assert (change.low + change.high) / 2 == pytest.approx(change.value), "a rate is not cut at the ends of a scale"


def test_units_of_differences_are_named(template, quick):
    measure, section = order_of(template, quick, 20)
    parts = tables_of(section)
    assert parts["place_on_screen"].columns[1].label == "Items × raters"
    assert parts["place_on_screen"].columns[2].label == "Difference from the item's mean, points"
    n_judged = len(np.unique(measure.rater * len(measure.book.items) + measure.item))
    assert parts["place_on_screen"].rows[0][1] == n_judged
    drawn = {part.name: str(part.spec) for part in section.parts if isinstance(part, Figure)}
    assert "difference from the mean, points" in drawn["drift"]
    assert "change per 10 items, points" in drawn["drift_of_raters"]


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_whether_raters_differ_in_drift_is_said_with_and_without_a_significant_rater(size):
    rng = np.random.default_rng(9)
    rater, time = (one.ravel() for one in np.meshgrid(range(8), np.arange(12.0), indexing="ij"))
    slopes = rater_slopes(rng.normal(0, 1, len(time)) + size * time * (rater == 3), time, rater)
    said = _level_sentence(slopes, OPTIONS)
    assert said.startswith("1 of 8 raters (13%) drifts" if size else "None of 8 raters drifts")
    assert f"raters {'differ' if size else 'do not differ'} significantly in drift (p" in said
