"""Checklists from the pages to the report: the score as a rating, each point as a share, and whether raters agree on it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse_folder, families
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.exclusions import exclusions_table
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.planning.power import primary_tests
from dialometer.design.load import load_study
from dialometer.exchange.exports.export import export_study
from dialometer.storage.store import Store
from report_parts import rows_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")


@pytest.fixture(scope="module")
def folder(walked):
    return walked("rubric", 12)


@pytest.fixture(scope="module")
def data(folder):
    with Store.open(folder / "study.db") as store:
        return load_data(load_study(folder), store)


@pytest.fixture(scope="module")
def found(data):
    return ANALYSES.get("checklists").run(data, OPTIONS)


def answers(data):
    """The raw answers that count, outside gold items, with their systems."""
    rows = data.judgments.filter(~pl.col("item").str.starts_with("gold"))
    return [(system, json.loads(answer)) for system, answer in rows.select("system", "answer").iter_rows()]


def test_the_score_is_a_rating_and_power_knows_its_test(folder, data, template, quick):
    names = [type(family).__name__ for family in families(load_study(folder))]
    assert names.index("Ratings") < names.index("Checklists")
    assert list(primary_tests(quick(template("rubric"), n_raters=9), OPTIONS))
    weights = {"answers": 3, "contradicts": 3, "next_step": 2, "limits": 1, "asks": 1, "brief": 1}
    for row in data.judgments.head(20).iter_rows(named=True):
        given = json.loads(row["answer"])
        met = {name: given[name] == ("no" if name in ("contradicts", "brief") else "yes") for name in weights}
        applies = [name for name in weights if given[name] != "not_applicable"]
        expected = 100 * sum(weights[n] for n in applies if met[n]) / sum(weights[n] for n in applies)
        assert row["value"] == pytest.approx(expected)


def test_points_are_the_shares_of_the_answers_where_they_apply(data, found):
    rows = {row["point"]: row for row in rows_of(table_of(found, "checklists-points-quality"))}
    text = "Does it say anything that contradicts the house rules? (wanted: no)"
    assert list(rows)[1] == text
    for place, system in enumerate(("plain", "guided")):
        given = [answer["contradicts"] for name, answer in answers(data) if name == system]
        applies = [answer for answer in given if answer != "not_applicable"]
        assert rows[text][f"system-{place}"].value == pytest.approx(applies.count("no") / len(applies))
        assert rows[text][f"system-{place}"].has_interval
    assert sum(row["weight_share"] for row in rows.values()) == pytest.approx(1)
    differences = rows_of(table_of(found, "checklists-point-differences-quality"))
    first = next(row for row in differences if row["point"] == text)
    assert (first["first"], first["second"]) == ("Guided prompt", "Plain prompt"), (
        "the better system first, as elsewhere"
    )
    assert first["difference"].value == pytest.approx(rows[text]["system-1"].value - rows[text]["system-0"].value)
    words = next(section for section in found.sections if section.name == "checklists-points-quality").paragraphs[-1]
    assert "more often than Plain prompt after correction (Holm): “" in words, "as its p-values are"


def test_agreement_on_a_point_is_that_of_pairs_of_raters(data, found):
    rows = rows_of(table_of(found, "checklists-point-agreement-quality"))
    kept = data.judgments.filter(~pl.col("item").str.starts_with("gold"))
    by_thing = {}
    for item, system, answer in kept.select("item", "system", "answer").iter_rows():
        by_thing.setdefault((item, system), []).append(json.loads(answer)["limits"])
    shares = [
        np.mean([a == b for i, a in enumerate(given) for j, b in enumerate(given) if i != j])
        for given in by_thing.values()
        if len(given) > 1
    ]
    limits = next(row for row in rows if row["point"].startswith("Does it say openly"))
    assert limits["agreement"].value == pytest.approx(np.mean(shares))
    assert -1 <= limits["ac1"].value <= 1


def test_answers_without_a_score_are_listed_as_excluded(data):
    none = dict.fromkeys(json.loads(data.judgments["answer"][0]), "not_applicable")
    first = pl.int_range(pl.len()) == 0
    changed = data.judgments.with_columns(
        pl.when(first).then(None).otherwise("value").alias("value"),
        pl.when(first).then(pl.lit(json.dumps(none))).otherwise("answer").alias("answer"),
    )
    changed = replace(data, judgments=changed)
    assert numeric_measures(changed).notes[0] == "1 judgment without a score (no point applies) is excluded."
    reason = "judgments without a score (no point applies)"
    assert (reason, "", 1) in exclusions_table(changed).rows
    assert reason not in [row[0] for row in exclusions_table(data).rows]


def test_a_point_that_never_applies_has_no_share(data):
    answer = pl.Series([json.dumps({**json.loads(a), "limits": "not_applicable"}) for a in data.judgments["answer"]])
    changed = replace(data, judgments=data.judgments.with_columns(answer=answer))
    found = ANALYSES.get("checklists").run(changed, OPTIONS)
    rows = rows_of(table_of(found, "checklists-points-quality"))
    limits = next(row for row in rows if row["point"].startswith("Does it say openly"))
    assert (limits["system-0"], limits["not_applicable"]) == (None, 1.0)
    assert "nan" not in " ".join(text for section in found.sections for text in section.paragraphs)


@pytest.mark.slow
def test_the_report_lists_the_points(folder):
    report = analyse_folder(folder, n_resamples=100)
    titles = [section.title for section in report.in_order]
    assert "Points of the checklist: Rubric" in titles
    assert not [section.problem for section in report.sections if section.problem]


def test_the_export_lists_the_points(folder, tmp_path):
    with Store.open(folder / "study.db") as store:
        export_study(load_study(folder), store, tmp_path / "out")
    points = pl.read_csv(tmp_path / "out" / "checklist_points.csv")
    judgments = pl.read_csv(tmp_path / "out" / "judgments.csv")
    assert len(points) == 6 * len(judgments)
    first = points.filter(pl.col("judgment") == judgments["judgment"][0])
    assert dict(first.select("point", "answer").iter_rows()) == json.loads(judgments["answer"][0])
    dictionary = json.loads((tmp_path / "out" / "data_dictionary.json").read_text())
    assert "one row per point of a checklist" in dictionary["files"]["checklist_points.csv"]["row"]


def test_a_study_without_answers_says_so(template, quick):
    """Simulated arrays hold the numbers alone."""
    section = ANALYSES.get("checklists").run(quick(template("rubric"), n_raters=4), OPTIONS).sections[0]
    assert "no answers on 'quality' yet" in section.problem


SHORT = """  short_rubric:
    type: checklist
    points: [{name: answers, text: Does it answer?}, {name: polite, text: Is it polite?}]
"""
FACTOR = """  factors:
    - name: rubric
      levels: [{name: long}, {name: short, set: {scales: {quality: short_rubric}}}]
"""


def test_a_criterion_on_two_checklists_is_analysed_on_each(walked):
    folder = walked(
        "rubric", 8, ("  agreement_5:\n", f"{SHORT}  agreement_5:\n"), ("design:\n", f"design:\n{FACTOR}"), n_items=8
    )
    with Store.open(folder / "study.db") as store:
        data = load_data(load_study(folder), store)
    found = ANALYSES.get("checklists").run(data, OPTIONS)
    assert [section.problem for section in found.sections if section.problem] == []
    titles = [section.title for section in found.sections if section.title.startswith("Points of")]
    assert titles == ["Points of the checklist: Rubric (rubric=long)", "Points of the checklist: Rubric (rubric=short)"]
    rows = rows_of(table_of(found, "checklists-points-quality-2"))
    is_plain = (pl.col("system") == "plain") & ~pl.col("item").str.starts_with("gold")
    short = data.judgments.filter((pl.col("factor_rubric") == "short") & is_plain)
    polite = [json.loads(answer)["polite"] for answer in short["answer"]]
    applies = [one for one in polite if one != "not_applicable"]
    assert rows[1]["system-0"].value == pytest.approx(applies.count("yes") / len(applies))
    assert len(rows_of(table_of(found, "checklists-points-quality-1"))) == 6
