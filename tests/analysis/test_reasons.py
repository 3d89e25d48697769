"""Reasons for a choice: asked beside it, stored as an answer of its own, listed in the report, exported and read back."""

from __future__ import annotations

import json

import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse_folder
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.design.load import check_study, load_study
from dialometer.design.templates import copy_template
from dialometer.errors import AnswersRejected
from dialometer.exchange.exports.export import export_study
from dialometer.exchange.importing import import_files
from dialometer.flow.engine import Flow
from dialometer.flow.screens import criterion_of
from dialometer.flow.submissions import Timing, read_values
from dialometer.storage.store import Store
from report_parts import rows_of, table_of

QUESTION = "scale: empathy_choice"
ASKED = (QUESTION, f"{QUESTION}\n    reason: required\n    reason_question: What made you choose so?")


@pytest.fixture(scope="module")
def folder(walked):
    return walked("best-worst", 4, ASKED)


def test_a_reason_is_asked_beside_the_choice_and_needed_where_the_study_says_so(folder, tmp_path):
    study = load_study(folder)
    with Store.open(tmp_path / "study.db") as store:
        flow = Flow(study, store, clock=lambda: 1_800_000_000_000)
        session = flow.arrive(external_id="p1").session
        while (screen := flow.screen(session)).kind != "item":
            given = {"consent": "agree"} if screen.kind == "consent" else {
                field.name: field.scale.option_names()[0] for field in screen.fields
            }  # fmt: skip
            flow.submit(session.id, screen.key, given, Timing(1, 2), f"t{screen.step}")
            session = store.sessions.get(session.id)
    names = [field.name for field in screen.fields]
    assert names == ["quality", "empathy", "empathy.reason"]
    reason = screen.fields[-1]
    assert (reason.question, criterion_of(reason), reason.is_required) == (
        "What made you choose so?", "empathy.reason", True
    )  # fmt: skip
    given = {"quality": {"best": "1", "worst": "2"}, "empathy": {"best": "1", "worst": "2"}}
    with pytest.raises(AnswersRejected) as caught:
        read_values(screen.fields, given)
    assert list(caught.value.fields) == ["empathy.reason"]
    assert read_values(screen.fields, {**given, "empathy.reason": " kind "})["empathy.reason"] == "kind"


def test_reasons_are_listed_and_change_no_number(folder):
    with Store.open(folder / "study.db") as store:
        data = load_data(load_study(folder), store)
    given = data.judgments.filter(pl.col("criterion") == "empathy.reason")
    assert len(given) == len(data.judgments.filter(pl.col("criterion") == "empathy")) > 10
    found = ANALYSES.get("reasons").run(data, Options(confidence=0.95, n_resamples=100, seed=1, correction="holm"))
    rows = rows_of(table_of(found, "reasons-empathy"))
    assert len(rows) == len(given)
    assert rows[0]["answer"].startswith("best: ")
    assert "worst: " in rows[0]["answer"]
    assert {row["reason"] for row in rows} == set(given["choice"])
    assert "100% of" in found.sections[0].paragraphs[0]


@pytest.mark.slow
def test_the_appendix_of_the_report_has_the_reasons(folder):
    report = analyse_folder(folder, n_resamples=100)
    assert [s.title for s in report.appendix if s.name == "reasons"] == ["Reasons in raters' own words"]


def test_reasons_are_exported_and_read_back(folder, tmp_path):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        export_study(study, store, tmp_path / "out")
    written = pl.read_csv(tmp_path / "out" / "judgments.csv").filter(pl.col("criterion") == "empathy.reason")
    assert written["scale"].unique().to_list() == ["text"]
    dictionary = json.loads((tmp_path / "out" / "data_dictionary.json").read_text())
    assert next(c for c in dictionary["criteria"] if c["name"] == "empathy")["reasons_under"] == "empathy.reason"
    import_files(folder, [tmp_path / "out"], tmp_path / "again.db", at_ms=1)
    with Store.open(tmp_path / "again.db") as store:
        again = [j.value for j in store.records.judgments() if j.criterion == "empathy.reason"]
    assert sorted(again) == sorted(written["choice"])


def test_where_words_are_written_anyway_no_reason_is_asked(tmp_path):
    copy_template("mqm", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    file.write_text(file.read_text().replace("    scale: errors\n", "    scale: errors\n    reason: optional\n"))
    (problem,) = [p for p in check_study(tmp_path / "s")[1] if p.severity == "error"]
    assert "hold words of their own already" in problem.message
