"""A short part of ``make fuzz``: hostile files of every kind, each read or refused with a message of ours."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from bench.fuzz.chat_files import DIALOGUES, IMPORTS
from bench.fuzz.kinds import format_of, kinds
from bench.fuzz.run import Chunk, Scratch, _stop, prepared, read_input

from dialometer.design.templates import template_names
from dialometer.errors import DialometerError
from dialometer.exchange.import_format import FORMATS
from dialometer.exchange.importing import import_files
from dialometer.folder_files import is_file
from dialometer.readers import read_dialogues
from dialometer.readers.containers import columnar
from dialometer.readers.containers.arrays import read_arrays
from dialometer.readers.reader import READERS

QUICK = (
    "dialogues",
    "import long",
    "import votes",
    "label_studio",
    "potato",
    "pairs",
    "scores",
    "experts",
    "outputs",
    "knowledge",
    "lists",
    "topics",
    "evaluator",
    "queries",
)


@pytest.fixture(scope="module")
def order():
    before = signal.signal(signal.SIGPROF, _stop)
    disabled = logging.root.manager.disable
    yield prepared(QUICK)
    logging.disable(disabled)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_files_are_read_or_refused(order, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chunk = Chunk(0)
    scratch = Scratch(tmp_path)
    for number in range(250):
        read_input(order, seed, number, scratch, chunk)
    assert [failure.text for failure in chunk.failures] == []
    assert chunk.n_read + chunk.n_refused == 250
    assert min(chunk.n_read, chunk.n_refused) > 20, "both happen, or the files are not hostile enough"


def test_every_reader_and_importer_is_fuzzed():
    """A new format without a valid file to spoil would never be read by `make fuzz`."""
    assert {format_of(name, READERS) for name in DIALOGUES} == set(READERS)
    assert {format_of(name, FORMATS) for name in IMPORTS} | {"dialometer"} == set(FORMATS)
    assert {f"study {name}" for name in template_names()} <= {kind.name for kind in kinds()}


def test_a_failure_is_noticed(tmp_path):
    """The guard can fail: a reader with a fault gives a failure with its place, and the input can be made again."""
    from dataclasses import replace

    kind = next(kinds())
    chunk = Chunk(0)
    read_input([replace(kind, read=lambda folder: 1 / 0)], 1, 0, Scratch(tmp_path), chunk)
    assert [(failure.number, failure.what) for failure in chunk.failures] == [(0, "traceback ZeroDivisionError")]


def test_an_array_that_claims_terabytes_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones(3))
    with zipfile.ZipFile(path) as packed:
        content = packed.read("a.npy").replace(b"(3,)", b"(1000000000000,)", 1)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.npy", content)
    with pytest.raises(DialometerError, match="cannot be read"):
        read_arrays(path)


def test_a_file_that_would_end_the_process_is_refused(tmp_path, monkeypatch):
    """Polars stops the whole process where a damaged file asks for more memory than there is."""
    path = tmp_path / "d.parquet"
    path.write_bytes(b"PAR1" + bytes(8) + b"PAR1")
    with pytest.raises(DialometerError, match="cannot be read"):
        list(read_dialogues(path))
    code = "import os, sys\nfor line in sys.stdin:\n    'bad' in line and os._exit(134)\n    print('\"\"', flush=True)"
    started = []

    def start():
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([sys.executable, "-S", "-c", code], stdin=pipe, stdout=pipe))
        return started[-1]

    monkeypatch.setattr(columnar, "_TRIAL", columnar._Trial())
    monkeypatch.setattr(columnar, "_started", start)
    for name in ("good", "bad", "also_good"):
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(DIALOGUES["messages_parquet"]["d.parquet"])
        if name != "bad":
            assert list(read_dialogues(path))
            continue
        with pytest.raises(DialometerError, match="it is damaged"):
            list(read_dialogues(path))
    columnar._TRIAL.end()
    assert [process.poll() for process in started] == [134, 134, -9], "each file that ends a process gets one new try"


FOUND = [  # by `make fuzz`: what is spoilt, and how
    ("messages", {"role": "user", "content": [{"type": {"a": 1}, "x": 1}]}),
    ("messages", {"role": "assistant", "content": [{"type": ["thinking"]}]}),
]


@pytest.mark.parametrize(("format", "message"), FOUND)
def test_types_of_parts_that_are_no_names(tmp_path, format, message):
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}, message]}) + "\n")
    with contextlib.suppress(DialometerError):
        list(read_dialogues(path, format))


def test_half_a_character_in_the_name_of_a_criterion(tmp_path):
    path = tmp_path / "j.json"
    path.write_text(IMPORTS["label_studio"]["j.json"].decode().replace('"quality"', '"\\ud800"'))
    with pytest.raises(DialometerError, match="no study can be drafted from it"):
        import_files(tmp_path / "s", [path], tmp_path / "x.db", format="label_studio", at_ms=1, is_dry_run=True)


def test_a_name_in_an_archive_that_no_file_can_have(tmp_path):
    assert not is_file(tmp_path / ("x" * 5000))
    assert not is_file(tmp_path / "a\0b")
