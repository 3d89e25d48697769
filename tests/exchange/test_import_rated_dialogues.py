"""Dialogues that their users rated become a study, without a format being named."""

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest

from dialometer.design.load import check_study
from dialometer.errors import ImportFileError
from dialometer.exchange.importing import import_files
from dialometer.exchange.looking import look_at
from dialometer.storage.store import Store


def said(*texts):
    return [{"id": k, "sender": f"participant{k % 2 + 1}", "text": text} for k, text in enumerate(texts)]


CONVAI2 = [
    {"dialog_id": "0x1", "dialog": said("Hi", "Hello", ""), "eval_score": 4, "profile_match": 1},
    {"dialog_id": "0x2", "dialog": said("Hi", "Who?"), "eval_score": 2, "profile_match": 0},
    {"dialog_id": "0x3", "dialog": said("Anybody?"), "eval_score": None, "profile_match": ""},
    {"dialog_id": "0x4", "dialog": said("Anybody there?"), "eval_score": 1, "profile_match": 0},
]
OWN = [
    {
        "id": f"d{k}",
        "turns": [{"speaker": "User", "text": "Hi"}, {"speaker": "Agent", "text": f"Hello {k}"}],
        "metadata": {"rating": 10 * k, "user": f"u{k % 2}", "system": ("small", "large")[k // 2], "gold": "no"},
    }
    for k in range(4)
]


def bring(tmp_path, path):
    done = import_files(tmp_path / "study", [path], tmp_path / "in.db", at_ms=1)
    study, problems = check_study(tmp_path / "study")
    assert problems == []
    with Store.open(tmp_path / "in.db") as store:
        raters = {session.id: store.sessions.person(session.id).external_id for session in store.sessions.all()}
        rated = [(raters[j.session_id], j.item_id, j.system, j.value) for j in store.records.judgments()]
    return done, study, sorted(rated)


def test_exports_of_convai2(tmp_path):
    path = tmp_path / "export_2018-07-04.json.gz"
    path.write_bytes(gzip.compress(json.dumps(CONVAI2).encode()))
    done, study, rated = bring(tmp_path, path)
    (file,) = done.files
    assert file.format == "dialogues"
    assert file.left_out == {"dialogues without a rating": 1, "turns without text": 1}
    assert len(file.assumed) == 2
    assert all("is named" in assumption for assumption in file.assumed)
    assert [(item, system, value) for _, item, system, value in rated] == [
        ("0x1", "system", 4),
        ("0x2", "system", 2),
        ("0x4", "system", 1),
    ]
    assert len({rater for rater, *_ in rated}) == 3
    item = study.items_by_id["0x1"]
    assert [(turn.role, turn.text) for turn in item.turns] == [("user", "Hi"), ("agent", "Hello")]
    assert item.metadata["day"] == "2018-07-04"
    assert (item.metadata["profile_match"], study.items_by_id["0x4"].metadata["profile_match"]) == (1, 0)
    assert [scale.points for scale in study.spec.scales.values()] == [5]
    found = look_at(path)
    assert (found["kind"], found["judgments"], found["dialogues"]["dialogues"]) == ("judgments", 3, 4)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_dialogues_of_ones_own(tmp_path, form):
    path = tmp_path / f"talks.{form}"
    if form == "jsonl":
        path.write_text("\n".join(map(json.dumps, OWN)))
    elif form == "parquet":
        pl.DataFrame(OWN).write_parquet(path)
    else:
        rows = [
            f"{one['id']},{turn['speaker']},{turn['text']},{','.join(map(str, one['metadata'].values()))}"
            for one in OWN
            for turn in one["turns"]
        ]
        path.write_text("\n".join(["dialogue_id,speaker,text,rating,user,system,gold", *rows]))
    done, study, rated = bring(tmp_path, path)
    assert done.files[0].assumed == ()
    assert rated == [
        ("u0", "d0", "small", 0),
        ("u0", "d2", "large", 20),
        ("u1", "d1", "small", 10),
        ("u1", "d3", "large", 30),
    ]
    assert study.items_by_id["d3"].turns[1].text == "Hello 3"
    assert study.items_by_id["d3"].metadata["gold_column"] == "no"


def test_dialogues_without_ratings_are_no_judgments(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(json.dumps({key: one[key] for key in ("id", "turns")}) for one in OWN))
    with pytest.raises(ImportFileError, match="cannot be recognised"):
        import_files(tmp_path / "study", [path], tmp_path / "in.db", at_ms=1)
    assert look_at(path)["kind"] == "dialogues"


@pytest.mark.slow
@pytest.mark.realdata
def test_published_exports_come_in_whole(tmp_path):
    folder = Path(os.environ.get("DIALOMETER_DATA", "")) / "convai2"
    if not folder.is_dir():
        pytest.skip("DIALOMETER_DATA does not name a folder with convai2/")
    path = folder / "export_2018-07-07.json.gz"
    published = json.loads(gzip.decompress(path.read_bytes()))
    _, study, rated = bring(tmp_path, path)
    expected = {one["dialog_id"]: one["eval_score"] for one in published if one["eval_score"] is not None}
    assert {item: value for _, item, _, value in rated} == expected
    assert set(study.items_by_id) == set(expected)
