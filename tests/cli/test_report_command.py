"""dialometer report, as a researcher types it."""

import json
import re
import shlex
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest

from commands import invoke
from commands import run as dialometer
from dialometer.design.load import load_study
from dialometer.design.lock import freeze


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    dialometer("new", "likert", "s", cwd=path)
    dialometer("simulate", "s", "--raters", "8", cwd=path)
    return path


def test_the_answer_and_the_files(folder):
    done = dialometer("report", "s", "--format", "html", "--format", "csv", "--resamples", "100", cwd=folder)
    assert "Rating the responses of a travel assistant" in done.stdout
    assert "These raters are simulated" in done.stdout
    page = folder / "s" / "report" / "index.html"
    assert f"Open {page.relative_to(folder)}" in done.stdout
    assert "<svg" in page.read_text(encoding="utf-8")
    assert list((folder / "s" / "report").rglob("system_means*.csv"))
    assert not list((folder / "s" / "report").rglob("*.md"))


def test_json_and_another_folder(folder):
    done = dialometer("report", "s", "--out", "o", "--format", "json", "--seed", "5", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert told["provenance"]["seed"] == 5
    assert told["folder"] == "o"
    assert told["problems"] == {}
    written = json.loads((folder / "o" / "report.json").read_text(encoding="utf-8"))
    assert written["summary"]["answer"] == told["answer"]


def test_the_command_in_the_report_makes_the_same_report(folder):
    """Whatever options it was made with: every table again, byte for byte."""
    options = ("--seed", "7", "--resamples", "120", "--source", "simulated")
    dialometer("report", "s", "--out", "first", "--format", "csv", "--format", "json", *options, cwd=folder)
    written = json.loads((folder / "first" / "report.json").read_text(encoding="utf-8"))
    command = shlex.split(written["provenance"]["command"])
    assert command[:3] == ["dialometer", "report", "s"]
    dialometer(*command[1:], "--out", "again", "--format", "csv", "--format", "json", cwd=folder)
    tables = sorted(path.relative_to(folder / "first") for path in (folder / "first").rglob("*.csv"))
    assert len(tables) > 10
    assert all((folder / "first" / path).read_bytes() == (folder / "again" / path).read_bytes() for path in tables)
    assert (folder / "first" / "report.json").read_bytes() == (folder / "again" / "report.json").read_bytes()


@pytest.mark.parametrize(
    ("frozen_in", "words"),
    [
        (None, "not frozen, so nothing shows since when"),
        (2020, "frozen on 2020-01-01, before the first judgment"),
        (2999, "frozen on 2999-01-01, after the first judgment"),
    ],
)
def test_since_when_the_analysis_is_declared(frozen_in, words, folder, tmp_path):
    """Of people's judgments; the clock of simulated raters shows nothing."""
    study = tmp_path / "s"
    shutil.copytree(folder / "s", study)
    with sqlite3.connect(study / "study.db") as database:
        database.execute("UPDATE sessions SET source = 'person'")
    database.close()
    if frozen_in:
        freeze(load_study(study), study, datetime(frozen_in, 1, 1, tzinfo=UTC))
    result = json.loads(invoke("report", study, "--format", "html", "--resamples", 100, "--json"))
    assert result["provenance"]["declared_analysis"] == words
    page = (study / "report" / "index.html").read_text(encoding="utf-8")
    assert f"declared in the study file ({words})" in page


@pytest.mark.parametrize("is_frozen", [True, False])
def test_only_what_is_not_frozen_yet_is_to_be_frozen(is_frozen, folder, tmp_path):
    study = tmp_path / "s"
    shutil.copytree(folder / "s", study)
    if is_frozen:
        freeze(load_study(study), study, datetime(2020, 1, 1, tzinfo=UTC))
    done = dialometer("report", "s", "--format", "json", "--resamples", "100", cwd=tmp_path)
    assert "These are simulated raters." in done.stdout
    assert ("freeze it" in done.stdout) != is_frozen


def test_raters_of_two_languages_are_compared(tmp_path):
    study = tmp_path / "s"
    invoke("new", "likert", study)
    path = study / "study.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("language: en", "languages: [en, de]", 1), encoding="utf-8"
    )
    invoke("simulate", study, "--raters", 10)
    invoke("report", study, "--by", "language", "--format", "json", "--resamples", 100)
    report = json.loads((study / "report" / "report.json").read_text(encoding="utf-8"))
    (section,) = (section for section in report["sections"] if section["title"].startswith("Language"))
    groups = r"Raters are split by the language in which they take part \(en: \d raters and de: \d raters\)\."
    assert re.fullmatch(groups, section["paragraphs"][0])


def test_what_is_wrong_is_said(folder, tmp_path):
    unknown = dialometer("report", "s", "--format", "pdf", cwd=folder, code=1)
    assert "unknown report format 'pdf'" in unknown.stderr
    dialometer("new", "likert", "empty", cwd=tmp_path)
    nothing = dialometer("report", "empty", cwd=tmp_path, code=1)
    assert "nothing has been collected" in nothing.stderr
    assert "dialometer simulate empty" in nothing.stderr
