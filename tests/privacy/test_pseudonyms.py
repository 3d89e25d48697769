"""One person has one pseudonym, over files, tables and analyses."""

from __future__ import annotations

import csv

import polars as pl
import pytest

from dialometer.analysis.base.choose import balance_table, warnings
from dialometer.analysis.base.data import load_data
from dialometer.design.load import load_study
from dialometer.exchange.exports.export import export_study
from dialometer.exchange.formats import ImportOptions
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store
from dialometer.storage.table import long_table

HEAD = "rater,item,system,criterion,value,factor_tone\n"
FIRST = HEAD + "".join(f"{who},1,{system},q,3,plain\n" for who in ("ann", "bob") for system in ("a", "b"))
SAME_PLACE = HEAD + "bob,2,a,q,4,plain\nbob,2,b,q,5,plain\ncid,2,a,q,1,plain\ncid,2,b,q,2,plain\n"
OTHER_PLACE = HEAD + "ann,2,a,q,4,warm\nann,2,b,q,5,warm\n"


def bring(folder, *texts):
    files = []
    for number, text in enumerate(texts):
        files.append(folder.parent / f"data{number}.csv")
        files[-1].write_text(text, encoding="utf-8")
    import_files(folder, files, folder / "study.db", format="long", options=ImportOptions(), at_ms=1)
    return load_study(folder)


@pytest.fixture
def study(tmp_path):
    return bring(tmp_path / "study", FIRST, SAME_PLACE, OTHER_PLACE)


def test_a_person_of_two_files_is_one_rater_with_two_sessions(study):
    with Store.open(study.folder / "study.db") as store:
        table = long_table(store.records.judgment_batches())
        people = {
            store.sessions.person(s.id).external_id: store.sessions.rater_numbers()[s.id] for s in store.sessions.all()
        }
    assert sorted(people.items()) == [("ann", 1), ("bob", 2), ("cid", 4)]
    pairs = table.select("rater", "session").unique().sort("session").rows()
    assert pairs == [("R0001", "S0001"), ("R0002", "S0002"), ("R0002", "S0003"), ("R0004", "S0004"), ("R0001", "S0005")]


def test_all_files_of_an_export_use_the_same_pseudonym_and_come_back_as_they_were(study, tmp_path):
    with Store.open(study.folder / "study.db") as store:
        done = export_study(study, store, tmp_path / "out")
    assert done.n_raters == 3
    with (tmp_path / "out" / "sessions.csv").open(encoding="utf-8") as file:
        rows = [(row["rater"], row["session"], row["n_judgments"]) for row in csv.DictReader(file)]
    assert rows == [
        ("R0001", "S0001", "2"),
        ("R0002", "S0002", "2"),
        ("R0002", "S0003", "2"),
        ("R0004", "S0004", "2"),
        ("R0001", "S0005", "2"),
    ]
    back = tmp_path / "back"
    back.mkdir()
    for name in ("study.yaml", "items.jsonl", "consent.md", "instructions.md", "debriefing.md"):
        (back / name).write_bytes((study.folder / name).read_bytes())
    done = import_files(back, [tmp_path / "out"], back / "study.db", at_ms=2)
    assert done.files[0].n_raters == 3
    with Store.open(back / "study.db") as store:
        again = export_study(load_study(back), store, tmp_path / "again")
    assert again.n_raters == 3
    first, second = (pl.read_csv(tmp_path / name / "judgments.csv") for name in ("out", "again"))
    kept = ["rater", "session", "item", "system", "value", "factor_tone"]
    assert first.select(kept).rows() == second.select(kept).rows()


def test_an_analysis_counts_one_person_in_two_conditions_in_each_of_them(study):
    with Store.open(study.folder / "study.db") as store:
        data = load_data(study, store)
    by_cell = data.judgments.group_by("factor_tone").agg(pl.col("rater").unique().sort()).sort("factor_tone").rows()
    assert by_cell == [("plain", ["R0001", "R0002", "R0004"]), ("warm", ["R0001/2"])]
    assert [row[-1] for row in balance_table(data).rows] == [8, 2]
    assert any("more than one condition" in sentence for sentence in warnings(data, ""))
