"""dialometer report, as a researcher types it."""

import json
import shlex

import pytest

from commands import run as dialometer


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


def test_what_is_wrong_is_said(folder, tmp_path):
    unknown = dialometer("report", "s", "--format", "pdf", cwd=folder, code=1)
    assert "unknown report format 'pdf'" in unknown.stderr
    dialometer("new", "likert", "empty", cwd=tmp_path)
    nothing = dialometer("report", "empty", cwd=tmp_path, code=1)
    assert "nothing has been collected" in nothing.stderr
    assert "dialometer simulate empty" in nothing.stderr
