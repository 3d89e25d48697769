"""The reference page on files of dialogues: its files are read, its programs run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dialometer.readers import READERS, read_dialogues

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "dialogues.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', PAGE, flags=re.DOTALL | re.MULTILINE))
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)

READ = {
    "talks.jsonl": ("jsonl", ["hotel-1", "hotel-2", "hotel-3"]),
    "talks.csv": ("csv", ["hotel-1", "hotel-2"]),
    "chats.jsonl": ("messages", ["chat-1", "chat-2"]),
    "battles.jsonl": ("battles", ["battles-1.a", "battles-1.b"]),
    "preferences.jsonl": (
        "preferences",
        [f"preferences-{n}.{which}" for n in (1, 2) for which in ("chosen", "rejected")],
    ),
    "log.json": ("inspect", ["1"]),
    "talks.txt": ("text", ["talks-1", "station"]),
    "bot_a.jsonl": ("parlai", ["bot_a-1"]),
    "pairings.jsonl": ("parlai", ["pairings-1.1", "pairings-1.2"]),
    "export_2018-07-06.json": ("convai2", ["0x1"]),
    "arena.json": ("crsarena", ["crs_1"]),
    "dialogues.csv": ("mdc", ["PER-1"]),
    "self.jsonl": ("self_dialogue", ["action-0"]),
    "reddit.tsv": ("thred", ["reddit-1", "reddit-2"]),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_format_has_its_section_and_example():
    sections = re.findall(r"^## (\w+)$", PAGE, flags=re.MULTILINE)
    assert set(READERS.names()) <= set(sections)
    assert {format for format, _ in READ.values()} == set(READERS.names())
    assert set(FILES) == {*READ, "broken.jsonl"}


@pytest.mark.parametrize("name", READ)
def test_the_example_files_are_told_and_read_as_the_page_says(folder, name):
    reading = read_dialogues(name, speakers={"bot_a": "agent"})
    ids = [dialogue.id for dialogue in reading]
    assert (reading.format, ids) == READ[name]
    assert reading.n_warnings == 0


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_the_programs_run(folder, program):
    exec(compile(program, "dialogues.md", "exec"), {})


def test_the_first_program_prints_what_the_file_holds(folder, capsys):
    exec(compile(PROGRAMS[0], "dialogues.md", "exec"), {})
    assert capsys.readouterr().out == "hotel-1 2 4\nhotel-2 2 None\nhotel-3 2 None\n"
