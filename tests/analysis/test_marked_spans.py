"""Marks from the pages to the report: density, agreement, the text with its marks, and the table of an export."""

from __future__ import annotations

import json

import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse_folder, families
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.design.load import check_study, load_study
from dialometer.design.templates import copy_template
from dialometer.exchange.exports.export import export_study
from dialometer.model.report import Turns
from dialometer.report.render import render
from dialometer.storage.store import Store
from report_parts import rows_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")


@pytest.fixture(scope="module")
def folder(walked):
    return walked("mqm", 12)


@pytest.fixture(scope="module")
def data(folder):
    with Store.open(folder / "study.db") as store:
        return load_data(load_study(folder), store)


@pytest.fixture(scope="module")
def found(data):
    return ANALYSES.get("marks").run(data, OPTIONS)


def answers(data, system):
    rows = data.judgments.filter(~pl.col("item").str.starts_with("gold") & (pl.col("system") == system))
    return [json.loads(answer) for answer in rows["answer"]]


def test_density_is_all_weights_over_all_words(folder, data, found):
    names = [type(family).__name__ for family in families(load_study(folder))]
    assert names.index("Ratings") < names.index("MarkedSpans")
    weights = {"minor": 1, "major": 5, "critical": 25}
    rows = {row["system"]: row for row in rows_of(table_of(found, "marks-density-errors"))}
    for system, label in (("small", "Small model"), ("large", "Large model")):
        given = answers(data, system)
        words = sum(answer["n_words"] for answer in given)
        penalty = sum(weights[mark["severity"]] for answer in given for mark in answer["marks"])
        assert rows[label]["density"].value == pytest.approx(100 * penalty / words)
        assert rows[label]["density"].low < rows[label]["density"].value < rows[label]["density"].high
        assert rows[label]["marks"] == sum(len(answer["marks"]) for answer in given)
        assert rows[label]["clean"] == pytest.approx(sum(not answer["marks"] for answer in given) / len(given))
    kinds = rows_of(table_of(found, "marks-categories-errors"))
    assert sum(row["severity-0"] + row["severity-1"] + row["severity-2"] for row in kinds) == sum(
        row["marks"] for row in rows.values()
    )


def test_agreement_and_the_text_with_its_marks(data, found):
    rows = {row["statistic"]: row for row in rows_of(table_of(found, "marks-span-agreement-errors"))}
    assert 0 < rows["Krippendorff's alpha"]["where"].value < 1
    assert rows["F1 corrected for chance"]["where"].value < rows["F1 of marked characters"]["where"].value
    (heat,) = (part for section in found.sections for part in section.parts if isinstance(part, Turns))
    assert heat.has_heat
    item = next(item for item in data.study.items if heat.caption.startswith(f"{item.id},"))
    shown = ["".join(after for _, _, after in stretches) for _, stretches in heat.rows]
    assert shown == [turn.text for turn in item.turns]
    said = [before for _, stretches in heat.rows for kind, before, _ in stretches if kind != "equal"]
    assert all(words.endswith(heat.caption.split(". ")[1].split()[0]) for words in said)  # "3 of 5", of 5 raters


def test_equally_serious_marks_come_from_all_texts_in_turn(data, found):
    table = table_of(found, "marks-errors")
    assert "of equally serious marks one from each text in turn" in table.caption
    shown = [(row["severity"], row["item"], row["system"]) for row in rows_of(table)]
    labels = {"small": "Small model", "large": "Large model"}
    for severity in ("critical", "major"):
        own = [thing for thing in shown if thing[0] == severity]
        marked = {
            (severity, row["item"], labels[row["system"]])
            for row in data.judgments.filter(~pl.col("item").str.starts_with("gold")).iter_rows(named=True)
            if row["system"] in labels
            for mark in json.loads(row["answer"])["marks"]
            if mark["severity"] == severity
        }
        assert len(set(own)) == min(len(own), len(marked))


def test_the_report_and_the_export_have_the_marks(folder, data, tmp_path):
    report = analyse_folder(folder, n_resamples=100)
    assert not [section.problem for section in report.sections if section.problem]
    render(report, tmp_path / "report", formats=("html", "markdown"))
    page = (tmp_path / "report" / "index.html").read_text()
    assert 'class="heat heat-' in page
    assert "Marked by up to" in page
    with Store.open(folder / "study.db") as store:
        export_study(load_study(folder), store, tmp_path / "out")
    marks = pl.read_csv(tmp_path / "out" / "marks.csv")
    judgments = pl.read_csv(tmp_path / "out" / "judgments.csv")
    assert len(marks) == sum(len(json.loads(answer)["marks"]) for answer in judgments["answer"])
    items = {item.id: item for item in data.study.items}
    for row in marks.head(50).iter_rows(named=True):
        assert items[row["item"]].turns[row["turn"]].text[row["start"] : row["end"]] == row["text"]
    dictionary = json.loads((tmp_path / "out" / "data_dictionary.json").read_text())
    columns = {column["name"] for column in dictionary["files"]["marks.csv"]["columns"]}
    assert {"category", "severity", "weight", "comment", "n_words"} <= columns


def test_marks_need_a_text(tmp_path):
    copy_template("mqm", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    file.write_text(file.read_text().replace("    scale: how_often", "    scale: errors"))
    (problem,) = [p for p in check_study(tmp_path / "s")[1] if p.severity == "error"]
    assert "marks words in a text and cannot answer a question" in problem.message
