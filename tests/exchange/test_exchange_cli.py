"""The two verbs as people use them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from commands import result_of
from commands import run as in_own_process
from dialometer.errors import DialometerError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command line in a fresh folder; gives the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str]:
        result = result_of(*arguments)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout

    return call


def test_new_simulate_export(run, tmp_path):
    run("new", "anchoring", "s")
    run("simulate", "s", "--raters", "8")
    code, text = run("export", "s")
    assert code == 0
    assert "2,400  judgments of 8 raters" in text
    assert "sessions: 8 completed" in text
    assert "8 of 8 sessions are simulated" in text
    assert "48 practice judgments are excluded (--include-practice" in text
    names = {path.name for path in (tmp_path / "s" / "export").iterdir()}
    tables = {f"{name}.csv" for name in ("judgments", "answers", "sessions", "screens", "flags")}
    assert names == tables | {"data_dictionary.md", "data_dictionary.json", "export.json"}


def test_export_as_json_and_in_other_forms(run, tmp_path):
    run("new", "strategies", "s")
    run("simulate", "s", "--raters", "2")
    _, text = run("export", "s", "--format", "parquet", "--out", "data/here", "--json")
    told = json.loads(text)
    assert told["format"] == "parquet"
    assert told["files"]["judgments.parquet"]["n_rows"] == 40
    assert (tmp_path / "data" / "here" / "judgments.parquet").exists()
    _, text = run("export", "s", "--include-practice", "--include-corrected", "--json")
    assert json.loads(text)["options"] == {
        "include_practice": True,
        "include_corrected": True,
        "escape_formulas": True,
    }


def test_export_before_anything_was_collected(run):
    run("new", "strategies", "s")
    with pytest.raises(DialometerError, match="nothing has been collected") as caught:
        run("export", "s")
    assert "dialometer simulate s" in caught.value.remedy


def test_export_refuses_a_folder_of_others(run, tmp_path):
    run("new", "strategies", "s")
    run("simulate", "s", "--raters", "1")
    with pytest.raises(DialometerError, match="--force"):
        run("export", "s", "--out", "s")
    code, _ = run("export", "s", "--out", "s", "--force")
    assert code == 0
    assert (tmp_path / "s" / "study.yaml").exists()


RATINGS = "worker,mr_id,score,bot\nann,1,4,x\nann,2,5,x\nbob,1,2,x\n"


def test_import_into_a_new_folder_then_check_and_export(run, tmp_path):
    (tmp_path / "r.csv").write_text(RATINGS)
    arguments = ["r.csv", "--format", "long", "--map", "item=mr_id", "--map", "criterion=:quality"]
    code, text = run("import", "mine", *arguments, "--dry-run")
    assert code == 0
    assert "Would import r.csv (long): 3 judgments by 2 raters on 2 items" in text
    assert "Nothing was stored" in text
    assert not (tmp_path / "mine").exists()
    code, text = run("import", "mine", *arguments)
    assert code == 0
    assert "Imported r.csv (long): 3 judgments by 2 raters on 2 items" in text
    used = "rater ← worker; item ← mr_id; system ← bot; criterion ← “quality” for all; value ← score"
    assert used in " ".join(text.split())
    assert "mine held no study, so one was written from the data" in text
    assert "quality: 5-point scale from 1 to 5" in text
    assert "all 2 items have placeholders" in text
    code, text = run("check", "mine")
    assert code == 0
    assert "no errors" in text
    code, text = run("export", "mine")
    assert code == 0
    assert "3  judgments of 2 raters" in text


def test_import_as_json(run, tmp_path):
    (tmp_path / "r.csv").write_text(RATINGS)
    _, text = run("import", "mine", "r.csv", "--format", "long", "--criteria", "score", "--map", "item=mr_id", "--json")
    told = json.loads(text)
    assert told["files"][0]["n_judgments"] == 3
    assert told["new_study"]["scales"] == {"score": "5-point scale from 1 to 5"}


def test_an_unknown_format_lists_the_known_ones(run, tmp_path):
    (tmp_path / "r.csv").write_text(RATINGS)
    with pytest.raises(DialometerError, match="did you mean 'votes'"):
        run("import", "mine", "r.csv", "--format", "vote")
    with pytest.raises(
        DialometerError,
        match="acute, batch, candidates, choices, dialogues, dialometer, label_studio, long, potato, preferences, rankme, votes",
    ):
        run("import", "mine", "r.csv")


def test_problems_are_printed_with_file_and_line_and_without_traceback(tmp_path):
    (tmp_path / "r.csv").write_text(RATINGS + ",3,4,x\nbob,2,excellent,x\n")
    told = ("--format", "long", "--map", "item=mr_id", "--criteria", "score")
    done = in_own_process("import", "mine", "r.csv", *told, cwd=tmp_path, code=1)
    assert "r.csv:5: the rater is missing" in done.stderr
    assert "Traceback" not in done.stderr
    assert "nothing was stored" in done.stderr
    assert done.stdout == ""


def test_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from dialometer.cli import build_app; build_app(); "
        "heavy = {'polars', 'sqlalchemy', 'scipy', 'pandas', 'torch', 'numpy'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
