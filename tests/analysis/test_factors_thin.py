"""Whatever is left of a study, there is a report: holes, single systems, equal numbers, a handful of judgments."""

import dataclasses

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.model.estimate import Estimate
from dialometer.report import report_to_json
from dialometer.simulate.rater import Habits


def holes(rows, rng, name):
    return rows.filter(pl.Series(rng.random(len(rows)) < rng.choice([0.02, 0.1, 0.5])))


def few_values(rows, rng, name):
    return rows.with_columns(value=pl.Series(rng.integers(name != "anchoring", 3, len(rows)).astype(float)))


def one_value(rows, rng, name):
    return rows.with_columns(value=pl.lit(3.0))


def one_system(rows, rng, name):
    return rows.filter(pl.col("system") == rows["system"][0])


def no_places(rows, rng, name):
    nothing = pl.lit(None, dtype=pl.Int32)
    return rows.filter(pl.col("criterion") == rows["criterion"][0]).with_columns(position=nothing, side=nothing)


def a_handful(rows, rng, name):
    return rows.head(int(rng.integers(1, 30)))


def one_item(rows, rng, name):
    return rows.filter(pl.col("item") == rows["item"][0])


@pytest.mark.parametrize("name", ["anchoring", "likert"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("damage", [holes, few_values, one_value, one_system, no_places, a_handful, one_item])
def test_whatever_is_left_gets_a_report(template, quick, damage, seed, name):
    study = template("anchoring", n_items=6) if name == "anchoring" else template("likert")
    rng = np.random.default_rng([seed, len(damage.__name__)])
    data = quick(study, n_raters=int(rng.integers(1, 12)), seed=seed, habits=Habits())
    rows = damage(data.judgments, rng, name)
    report = analyse(study, dataclasses.replace(data, judgments=rows), n_resamples=100)
    report_to_json(report)
    assert report.summary.answer
    for table in report.tables():
        for cell in (cell for row in table.rows for cell in row if isinstance(cell, Estimate)):
            assert cell.is_known or cell.notes, table.name
