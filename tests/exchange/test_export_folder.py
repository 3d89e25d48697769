"""The folder of an export: whole or not at all, and never over somebody else's files."""

from __future__ import annotations

import json

import pytest

from dialometer.errors import DialometerError
from dialometer.exchange.exports import export as export_module
from dialometer.exchange.exports.export import export_study
from dialometer.storage.store import Store


@pytest.fixture
def case(collect, tmp_path):
    database = str(tmp_path / "a.db")
    study, _ = collect("strategies", database, n_raters=2)
    with Store.open(database) as store:
        yield study, store, tmp_path / "out"


def left_over(out) -> list[str]:
    return [path.name for path in out.parent.iterdir() if path.name.endswith(".part")]


def test_a_second_export_replaces_the_first_and_its_files(case):
    study, store, out = case
    export_study(study, store, out, format="csv")
    (out / "notes.txt").write_text("mine")
    export_study(study, store, out, format="jsonl")
    assert not list(out.glob("*.csv")), "files of the earlier export must go"
    assert (out / "notes.txt").read_text() == "mine", "files of others stay"
    assert json.loads((out / "export.json").read_text())["format"] == "jsonl"
    assert not left_over(out)


def test_a_folder_of_others_is_refused_without_force(case):
    study, store, out = case
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(DialometerError, match="not written by an export") as caught:
        export_study(study, store, out)
    assert "--out" in caught.value.remedy
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]
    export_study(study, store, out, force=True)
    assert (out / "thesis.tex").read_text() == "years of work"
    assert (out / "judgments.csv").exists()


def test_an_empty_folder_is_fine_and_a_file_is_not(case):
    study, store, out = case
    out.mkdir()
    export_study(study, store, out)
    assert (out / "export.json").exists()
    with pytest.raises(DialometerError, match="this is a file"):
        export_study(study, store, out / "export.json")


def test_an_exported_file_that_was_changed_is_not_overwritten(case):
    study, store, out = case
    export_study(study, store, out)
    path = out / "judgments.csv"
    path.write_bytes(path.read_bytes().replace(b"control", b"Control", 1))
    changed = path.read_bytes()
    with pytest.raises(DialometerError, match=r"judgments\.csv was changed after it was exported"):
        export_study(study, store, out)
    assert path.read_bytes() == changed
    export_study(study, store, out, force=True)
    assert path.read_bytes() != changed


def test_a_failed_export_leaves_what_was_there(case, monkeypatch):
    study, store, out = case

    def break_off(*_):
        raise RuntimeError("the power went out")
        yield

    monkeypatch.setattr(export_module, "screen_frames", break_off)
    with pytest.raises(RuntimeError):
        export_study(study, store, out)
    assert not out.exists()
    monkeypatch.undo()
    export_study(study, store, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr(export_module, "screen_frames", break_off)
    for format in ("csv", "jsonl", "parquet"):
        with pytest.raises(RuntimeError):
            export_study(study, store, out, format=format)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert not left_over(out)


def test_a_folder_that_cannot_be_written_is_told(case):
    study, store, out = case
    out.write_text("a file in the way")
    with pytest.raises(DialometerError, match="cannot be written") as caught:
        export_study(study, store, out / "deeper" / "still")
    assert "disk" in caught.value.remedy
