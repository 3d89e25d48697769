"""Parquet, Arrow and folders as the datasets library writes them, under any reader."""

import json
from datetime import datetime

import polars as pl
import pytest

from dialometer.errors import ReadError
from dialometer.readers import read_dialogues
from dialometer.readers.containers import columnar
from dialometer.readers.containers.columnar import is_columnar

CHATS = pl.DataFrame(
    {
        "id": ["c1", "c2"],
        "messages": [[{"role": "user", "content": "Hé"}, {"role": "assistant", "content": "Ja"}]] * 2,
        "at": [datetime(2024, 5, 1), None],
        "picture": [b"\x89PNG", None],
        "share": [0.5, float("nan")],
        "label": [1, 0],
    }
)


def texts(dialogues):
    return [(dialogue.id, [turn.text for turn in dialogue.turns]) for dialogue in dialogues]


EXPECTED = [("c1", ["Hé", "Ja"]), ("c2", ["Hé", "Ja"])]


@pytest.mark.parametrize("form", ["parquet", "file.arrow", "stream.arrow", "feather"])
def test_every_form_is_read_and_values_become_json(tmp_path, form):
    path = tmp_path / f"chats.{form}"
    if form == "parquet":
        CHATS.write_parquet(path)
    elif form == "stream.arrow":
        CHATS.write_ipc_stream(path)
    else:
        CHATS.write_ipc(path)
    dialogues = list(read_dialogues(path))
    assert texts(dialogues) == EXPECTED
    assert dialogues[0].metadata == {"at": "2024-05-01T00:00:00", "picture": "(4 bytes)", "share": 0.5, "label": 1}
    assert dialogues[1].metadata["share"] is None


def saved(folder, frame, names=None):
    """As ``Dataset.save_to_disk`` writes a split."""
    folder.mkdir(parents=True)
    half = len(frame) // 2
    files = [f"data-{n:05d}-of-00002.arrow" for n in range(2)]
    for file, part in zip(files, (frame[:half], frame[half:]), strict=True):
        part.write_ipc_stream(folder / file)
    frame.write_ipc_stream(folder / "cache-1234.arrow")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": file} for file in files]}))
    features = {"label": {"names": names, "_type": "ClassLabel"}} if names else {}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))


def test_a_folder_of_datasets_with_its_labels(tmp_path):
    saved(tmp_path / "saved", CHATS.drop("picture"), ["bad", "good"])
    reading = read_dialogues(tmp_path / "saved")
    dialogues = list(reading)
    assert texts(dialogues) == EXPECTED
    assert [dialogue.metadata["label"] for dialogue in dialogues] == ["good", "bad"]
    assert [str(warning).partition(": ")[2] for warning in reading.warnings] == ["read from 2 Arrow files"]


def test_splits_are_read_in_their_order_and_kept(tmp_path):
    other = CHATS.with_columns(id=pl.col("id") + "-test")
    saved(tmp_path / "saved" / "test", other)
    saved(tmp_path / "saved" / "train", CHATS)
    (tmp_path / "saved" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    dialogues = list(read_dialogues(tmp_path / "saved"))
    assert [(d.id, d.metadata["split"]) for d in dialogues] == [
        ("c1", "train"),
        ("c2", "train"),
        ("c1-test", "test"),
        ("c2-test", "test"),
    ]


def test_a_folder_of_parquet_files_as_repositories_hold_them(tmp_path):
    (tmp_path / "repo" / "data").mkdir(parents=True)
    for split in ("train", "test"):
        named = CHATS.with_columns(id=pl.col("id") + split)
        named.write_parquet(tmp_path / "repo" / "data" / f"{split}-00000-of-00001.parquet")
    dialogues = list(read_dialogues(tmp_path / "repo"))
    assert {dialogue.id: dialogue.metadata["split"] for dialogue in dialogues}["c1train"] == "train"
    assert len(dialogues) == 4


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_a_damaged_file_says_so(tmp_path, name):
    path = tmp_path / name
    (CHATS.write_parquet if name == "x.parquet" else CHATS.write_ipc_stream)(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ReadError, match="cannot be read"):
        list(read_dialogues(path, "messages"))


def test_other_folders_are_none(tmp_path):
    (tmp_path / "notes.txt").write_text("User: hi\n")
    assert not is_columnar(tmp_path)
    with pytest.raises(ReadError, match="a folder"):
        read_dialogues(tmp_path)


def test_one_process_tries_all_files_and_is_replaced_when_it_ends(tmp_path):
    for number in range(4):
        pl.DataFrame({"text": [f"row {number}"]}).write_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    trial = columnar._Trial()
    try:
        assert trial.of(str(tmp_path / "0.parquet")) == ""
        first = trial._process
        assert trial.of(str(tmp_path / "damaged.parquet"))
        assert trial.of(str(tmp_path / "1.parquet")) == ""
        assert trial._process is first
        first.kill()
        assert trial.of(str(tmp_path / "2.parquet")) == ""
        assert trial._process is not first
    finally:
        trial.end()
