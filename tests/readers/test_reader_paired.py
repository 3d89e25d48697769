"""Rows with two conversations: battles of arenas, MT-Bench, chosen and rejected responses."""

import csv
import gzip
import json

import polars as pl
import pytest

from dialometer.readers import read_dialogues


def chat(*texts):
    return [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, texts, strict=False)]


BATTLES = [
    {
        "question_id": f"q{n}",
        "model_a": "small",
        "model_b": "large",
        "winner": winner,
        "judge": f"u{n}",
        "conversation_a": chat("Hi?", f"Hm {n}."),
        "conversation_b": chat("Hi?", f"Hello {n}!"),
        "language": "English",
    }
    for n, winner in enumerate(["model_b", "tie (bothbad)"])
]


def as_python(value):
    """As pandas prints a column of arrays into CSV: Python's notation, without commas between the objects."""
    return "[" + "\n ".join(map(repr, value)) + "]" if isinstance(value, list) else value


@pytest.mark.parametrize("form", ["json", "jsonl", "jsonl.gz", "csv", "tsv", "pandas.csv", "parquet", "arrow"])
def test_battles_give_two_dialogues_each_whatever_the_file(tmp_path, form):
    path = tmp_path / f"battles.{form}"
    if form == "json":
        path.write_text(json.dumps(BATTLES))
    elif form == "jsonl":
        path.write_text("\n".join(map(json.dumps, BATTLES)))
    elif form == "jsonl.gz":
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, BATTLES)).encode()))
    elif form == "parquet":
        pl.DataFrame(BATTLES).write_parquet(path)
    elif form == "arrow":
        pl.DataFrame(BATTLES).write_ipc_stream(path)
    else:
        written = (
            as_python if form == "pandas.csv" else lambda value: json.dumps(value) if isinstance(value, list) else value
        )
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, BATTLES[0], delimiter="\t" if form == "tsv" else ",")
            writer.writeheader()
            writer.writerows({name: written(value) for name, value in row.items()} for row in BATTLES)
    reading = read_dialogues(path)
    dialogues = list(reading)
    assert reading.format == "battles"
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    assert [dialogue.id for dialogue in dialogues] == [f"{stem}-{n}.{side}" for n in (1, 2) for side in "ab"]
    assert [turn.text for turn in dialogues[1].turns] == ["Hi?", "Hello 0!"]
    known = dialogues[3].metadata
    assert (known["system"], known["side"], known["winner"]) == ("large", "b", "tie (bothbad)")
    assert (known["language"], known["pairing"]) == ("English", f"{stem}-2")


def test_the_layout_of_55k_battles(tmp_path):
    path = tmp_path / "train.csv"
    row = {
        "id": 30192,
        "model_a": "x",
        "model_b": "y",
        "prompt": json.dumps(["One?", "Two?"]),
        "response_a": '["1 \\ud83d", null]',
        "response_b": json.dumps(["I", "II"]),
        "winner_model_a": 0,
        "winner_model_b": 1,
        "winner_tie": 0,
    }
    pl.DataFrame([row]).write_csv(path)
    a, b = reading = list(read_dialogues(path))
    assert [turn.text for turn in a.turns] == ["One?", "1 �", "Two?"]
    assert [turn.text for turn in b.turns] == ["One?", "I", "Two?", "II"]
    assert a.metadata["winner"] == "model_b"
    assert {dialogue.metadata["id"] for dialogue in reading} == {"30192"}


HH = "\n\nHuman: Why?\n\nAssistant: Because.\n\nHuman: Really?\n\nAssistant: {}"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"chosen": HH.format("Yes."), "rejected": HH.format("No.")}, ["Why?", "Because.", "Really?", "Yes."]),
        ({"prompt": "Why?", "chosen": "So.", "rejected": "No."}, ["Why?", "So."]),
        ({"prompt": "Why?", "chosen": "[1] So.", "rejected": "[2, 3]"}, ["Why?", "[1] So."]),
        ({"prompt": "Why?", "chosen": chat("Why?", "So."), "rejected": chat("Why?", "No.")}, ["Why?", "So."]),
        ({"prompt": chat("Why?"), "chosen": chat("", "So.")[1:], "rejected": chat("", "No.")[1:]}, ["Why?", "So."]),
        ({"prompt": "\n\nHuman: Why?\n\nAssistant:", "chosen": " So.", "rejected": " No."}, ["Why?", "So."]),
    ],
)
def test_chosen_and_rejected(tmp_path, row, expected):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({**row, "score_chosen": 4.5}))
    reading = read_dialogues(path)
    chosen, rejected = reading
    assert reading.format == "preferences"
    assert [turn.text for turn in chosen.turns] == expected
    assert len(rejected.turns) == len(expected)
    assert (chosen.id, rejected.id) == ("pairs-1.chosen", "pairs-1.rejected")
    assert (chosen.metadata["is_chosen"], rejected.metadata["is_chosen"]) == (True, False)
    assert chosen.metadata["score_chosen"] == 4.5
