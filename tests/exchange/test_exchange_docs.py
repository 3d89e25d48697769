"""The pages on export and import: their commands run, their tables are those of the code."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from commands import result_of
from dialometer.exchange.dialogue_pairs import PAIRS
from dialometer.exchange.exports.export_tables import (
    ADJUDICATIONS,
    ANSWERS,
    CHAT_TURNS,
    DRAWN_SYSTEMS,
    FLAGS,
    SCREENS,
    judgments_table,
    sessions_table,
)
from dialometer.exchange.formats import FORMATS

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = "\n".join((DOCS / "how-to" / name).read_text(encoding="utf-8") for name in ("export.md", "import.md"))
REFERENCE = (DOCS / "reference" / "export.md").read_text(encoding="utf-8")
TABLES = [
    judgments_table([]),
    ANSWERS,
    sessions_table([]),
    SCREENS,
    FLAGS,
    CHAT_TURNS,
    DRAWN_SYSTEMS,
    ADJUDICATIONS,
    PAIRS,
]
DATA = Path(os.environ.get("DIALOMETER_DATA", "missing")) / "rankme"


def section(page: str, title: str) -> str:
    start = page.index(f"### {title}\n")
    end = re.search(r"^##", page[start + 4 :], flags=re.MULTILINE)
    return page[start : start + 4 + end.start()] if end else page[start:]


@pytest.mark.slow
def test_the_commands_of_the_guide_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', GUIDE, flags=re.DOTALL | re.MULTILINE):
        Path(name).write_text(text, encoding="utf-8")
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    lines = [(kind, line) for kind, block in blocks for line in ([block] if kind == "python" else block.splitlines())]
    n_run = 0
    for kind, line in lines:
        if kind == "python":
            exec(compile(line, "export.md", "exec"), {})
            assert "readability" in capsys.readouterr().out
        elif "setup1_" not in line:
            program, *arguments = shlex.split(line)
            assert program == "dialometer"
            result = result_of(*arguments)
            assert result.exit_code == 0, f"{line}: {result.exception!r}"
        n_run += 1
    assert n_run == 25


@pytest.mark.realdata
@pytest.mark.skipif(not DATA.is_dir(), reason="DIALOMETER_DATA names no folder with the public data sets")
def test_the_rankme_command_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = next(line for line in GUIDE.splitlines() if "setup1_likert.csv" in line and line.startswith("dialometer"))
    _, verb, folder, *files = shlex.split(line)
    result = result_of(verb, folder, *(DATA / file for file in files))
    assert result.exit_code == 0, result.exception


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_reference_has_every_column_with_its_meaning(table):
    told = re.findall(r"^\| `(\w+)` \| (.+) \|$", section(REFERENCE, table.name), flags=re.MULTILINE)
    assert told == [(name, meaning.replace("|", "\\|")) for name, (_, meaning) in table.columns.items()]


@pytest.mark.parametrize("name", [name for name in FORMATS.names() if FORMATS.get(name).roles])
def test_the_reference_has_every_role(name):
    told = re.findall(r"^\| `(\w+)`(?: \(needed\))? \| (.+) \| (.+) \|$", section(REFERENCE, name), flags=re.MULTILINE)
    expected = [
        (role, about.meaning, ", ".join(f"`{column}`" for column in (role, *about.usual)))
        for role, about in FORMATS.get(name).roles.items()
    ]
    assert told == expected


@pytest.mark.parametrize("verb", ["export", "import"])
def test_the_reference_has_every_option(verb):
    result = result_of(verb, "--help", env={"COLUMNS": "200", "NO_COLOR": "1"})
    options = set(re.findall(r"--[a-z-]+", result.stdout)) - {"--help"}
    part = REFERENCE[REFERENCE.index(f"## dialometer {verb}") :].split("\n## ", 1)[0]
    assert options <= set(re.findall(r"`(--[a-z-]+)`", part)) | {"--raters"}


def test_every_format_is_in_the_guide():
    assert set(FORMATS.names()) <= set(re.findall(r"^\| `(\w+)` \|", GUIDE, flags=re.MULTILINE))
