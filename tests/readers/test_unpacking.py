"""A small file that unpacks to a huge one is refused early; real data are not."""

import gzip
import json
import zipfile

import pytest

from dialometer.errors import DialometerError, ReadError
from dialometer.exchange.exports import archive
from dialometer.readers.containers import unpacking
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """The same rule with small numbers, so that the test does not write gigabytes."""
    monkeypatch.setattr(unpacking, "FREE_BYTES", 100_000)


def bomb(path, *, manifest):
    content = b"0" * 5_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        if manifest:
            made.writestr(
                archive.MANIFEST, json.dumps({archive.MARK: 1, "files": {"data/a.csv": "", "data/b.csv": ""}})
            )
        made.writestr("data/a.csv", content)
        made.writestr("data/b.csv", content)
    assert path.stat().st_size < 12_000
    return path


@pytest.mark.parametrize(("manifest", "words"), [(True, "unpacks to more than"), (False, "not an archive of a study")])
def test_an_archive_is_refused_before_it_fills_the_disk(tmp_path, monkeypatch, manifest, words):
    written = []
    monkeypatch.setattr(archive, "sha256_of", written.append)
    path = bomb(tmp_path / "bomb.zip", manifest=manifest)
    with pytest.raises(DialometerError, match=words) as caught, archive.opened_archive(path):
        pass
    assert caught.value.remedy
    assert written == []


def test_what_comes_out_of_a_zip_is_counted(tmp_path):
    path = bomb(tmp_path / "bomb.zip", manifest=True)
    with zipfile.ZipFile(path) as packed:
        entry = packed.getinfo("data/a.csv")
        allowance = unpacking.Allowance(path)
        with pytest.raises(DialometerError, match="unpacks to more than"):
            unpacking.read_entry(packed, entry, allowance)
    assert allowance.n_read <= allowance.limit < 5_000_000


def test_a_gzipped_line_without_end_is_a_problem_of_the_file(tmp_path):
    path = tmp_path / "dialogues.jsonl.gz"
    with gzip.open(path, "wb") as out:
        out.write(b'{"id": "a"}\n' + b" " * 8_000_000)
    problems = Problems(str(path))
    lines = list(SourceFile(path).lines(problems))
    assert lines == [(1, '{"id": "a"}')]
    with pytest.raises(ReadError, match=r"jsonl.gz:2.*unpacks to more than .* unpack it yourself"):
        problems.finish()


def test_ordinary_data_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "FREE_BYTES", 0)
    rows = [f'{{"id": "d{i}", "text": "the {i * 7919 % 1000}th sentence about {i}"}}' for i in range(20_000)]
    path = tmp_path / "dialogues.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert [line for _, line in SourceFile(path).lines(Problems(str(path)))] == rows
