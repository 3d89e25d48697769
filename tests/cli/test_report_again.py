"""The command under "How to reproduce this" makes the same report again, for a study of every family of analyses."""

import json
import shlex

import pytest

from commands import invoke

SLOW = pytest.mark.slow
STUDIES = [
    pytest.param("best-worst", 6),
    pytest.param("chat", 6, marks=SLOW),
    pytest.param("acute", 6, marks=SLOW),
    pytest.param("avatar", 8, marks=SLOW),
    pytest.param("strategies", 10, marks=SLOW),
    pytest.param("anchoring", 8, marks=SLOW),
    pytest.param("likert", 6, marks=SLOW),
    pytest.param("rubric", 6, marks=SLOW),
    pytest.param("arena", 6, marks=SLOW),
    pytest.param("compare", 6, marks=SLOW),
    pytest.param("pairs", 6, marks=SLOW),
    pytest.param("mqm", 6),
    pytest.param("wizard", 6, marks=SLOW),
    pytest.param("judged", 16, marks=SLOW),
]


@pytest.mark.parametrize(("template", "n_raters"), STUDIES)
def test_every_table_comes_again_byte_for_byte(template, n_raters, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke("new", template, "s")
    invoke("simulate", "s", "--raters", n_raters)
    options = ("--seed", 7, "--resamples", 100, "--source", "simulated")
    invoke("report", "s", "--out", "first", "--format", "csv", "--format", "json", *options)
    written = json.loads((tmp_path / "first" / "report.json").read_text(encoding="utf-8"))
    again = shlex.split(written["provenance"]["command"])
    assert again[:3] == ["dialometer", "report", "s"]
    invoke(*again[1:], "--out", "again", "--format", "csv", "--format", "json")
    files = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*.*"))
    assert len(files) > 10
    different = [
        str(path)
        for path in files
        if (tmp_path / "first" / path).read_bytes() != (tmp_path / "again" / path).read_bytes()
    ]
    assert not different
