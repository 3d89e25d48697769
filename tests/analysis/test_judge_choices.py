"""Models beside people in choices: shares by hand, intervals against statsmodels, and the section of a whole report."""

from __future__ import annotations

import polars as pl
import pytest
from statsmodels.stats.proportion import proportion_confint

from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.common.judges import agreement, choices_section, single_people
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=1, correction="holm")
# Three people on four items; on d they are split only with a fourth.
PEOPLE = {"a": "xxy", "b": "xxx", "c": "yyx", "d": "xyx"}


def votes(by_item, names="pqr"):
    rows = [
        {"rater": rater, "item": item, "block": "main", "choice": choice, "side": 1, "scale": "pairwise"}
        for item, choices in by_item.items()
        for rater, choice in zip(names, choices, strict=True)
    ]
    return pl.DataFrame(rows)


def test_a_model_is_set_beside_the_side_of_most():
    model = votes({"a": "x", "b": "y", "c": "y", "d": "y"}, "m")
    found = agreement(model, votes(PEOPLE), OPTIONS)
    assert (found.value, found.n) == (0.5, 4)  # most say x x y x
    low, high = proportion_confint(2, 4, alpha=0.05, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high))


def test_what_is_evenly_split_counts_on_neither_side():
    even = votes({"a": "xy", "b": "xx"}, "pq")
    assert agreement(votes({"a": "x", "b": "x"}, "m"), even, OPTIONS).n == 1
    of_model = votes({"a": "xy", "b": "xx"}, "mn")
    assert agreement(of_model, votes(PEOPLE), OPTIONS).n == 1
    assert not agreement(votes({"z": "x"}, "m"), even, OPTIONS).is_known


def test_a_person_is_set_beside_most_of_the_others():
    # The two others agree on: p: b (x), d is y and x, so not; a is x and y, so not; c is y and x, so not.
    # p: b same -> 1/1. q: a (x,y) no, b same, c (y,x) no, d (x,x) against y -> 1/2. r: a (x,x) against y, b same,
    # c (y,y) against x, d (x,y) no -> 1/3.
    found = single_people(votes(PEOPLE), OPTIONS)
    assert found.value == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert found.n == 3


def test_the_section_tells_models_and_people_apart(tmp_path):
    copy_template("strategies", tmp_path / "study")
    study = load_study(tmp_path / "study")
    with Store.open(tmp_path / "study" / "study.db") as store:
        flow = Flow(study, store)
        simulate(study, EngineAccess(flow), draw_truth(study, 1), n_raters=9, seed=1, start_ms=1_760_000_000_000)
        with store.database.writing() as connection:  # three of them are models from now on
            connection.exec_driver_sql("UPDATE sessions SET source = 'model' WHERE ordinal > 6")
            models = "(SELECT rater_id FROM sessions WHERE source = 'model')"
            named = "UPDATE people SET external_id = 'tiny#' || external_id"
            connection.exec_driver_sql(f"{named} WHERE rater_id IN {models}")
        data = load_data(study, store)
    section = choices_section(data, OPTIONS)
    (table,) = section.parts
    assert {row[1] for row in table.rows} == {"one rater", "tiny"}
    assert len(table.rows) == 2 * len(study.spec.criteria)
    assert all(row[3].n > 0 for row in table.rows)
    assert section.paragraphs[0].startswith("1 model ")
