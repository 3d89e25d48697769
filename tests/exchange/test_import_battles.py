"""Battles of arenas, MT-Bench's judgments and preference pairs become items with both conversations, and judgments."""

import json

import polars as pl
import pytest

import dialometer as dm
from dialometer.design.load import load_study
from dialometer.errors import UnknownName
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store

MODELS = ["small", "large", "old"]


def chat(*texts):
    return [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, texts, strict=False)]


def battle(n, winner, **changes):
    a, b = MODELS[n % 3], MODELS[(n + 1) % 3]
    row = {
        "question_id": f"q{n}",
        "model_a": a,
        "model_b": b,
        "winner": winner,
        "judge": f"u{n % 2}",
        "conversation_a": chat("Hi?", f"{a} {n}"),
        "conversation_b": chat("Hi?", f"{b} {n}"),
        "turn": 1,
        "language": "English",
        "moderation": {"flagged": False},
        "tstamp": 1682351591.5 + n,
    }
    return {**row, **changes}


@pytest.fixture
def bring(tmp_path):
    def brought(rows, name="battles.jsonl", **options):
        path = tmp_path / name
        if name.endswith(".parquet"):
            pl.DataFrame(rows).write_parquet(path)
        elif name.endswith(".csv"):
            pl.DataFrame(rows).write_csv(path)
        else:
            path.write_text("\n".join(map(json.dumps, rows)))
        done = import_files(tmp_path / "study", [path], tmp_path / "in.db", at_ms=1, **options)
        with Store.open(tmp_path / "in.db") as store:
            return done, list(store.records.judgments())

    return brought


@pytest.mark.parametrize("name", ["battles.jsonl", "battles.parquet"])
def test_battles_keep_both_conversations_and_every_column(bring, tmp_path, name):
    words = ["model_a", "model_b", "tie", "tie (bothbad)"]
    done, judgments = bring([battle(n, word) for n, word in enumerate(words)], name)
    assert sorted(str(judgment.value) for judgment in judgments) == ["both_bad", "old", "small", "tie"]
    study = load_study(tmp_path / "study")
    item = study.items_by_id["q1"]
    assert [turn.text for turn in item.a.turns] == ["Hi?", "large 1"]
    assert (item.a.system, item.b.system) == ("large", "old")
    assert item.metadata == {"language": "English", "moderation": {"flagged": False}, "turn": 1}
    assert study.spec.scales["pairwise"].allow_both_bad
    assert done.files[0].n_raters == 2
    assert done.files[0].unread == ()
    assert judgments[0].answered_at_ms == 1_682_351_591_500
    table = dm.read_judgments(
        tmp_path / "study", database=f"sqlite:///{tmp_path / 'in.db'}", about=["language", "turn"]
    )
    assert table["language"].to_list() == ["English"] * 4
    assert table["turn"].to_list() == [1] * 4
    with pytest.raises(UnknownName, match="no item has 'langage'"):
        dm.read_judgments(tmp_path / "study", database=f"sqlite:///{tmp_path / 'in.db'}", about=["langage"])


def test_the_turn_of_a_benchmark_is_part_of_the_item(bring, tmp_path):
    talks = {model: chat("One?", f"{model} 1", "Two?", f"{model} 2") for model in MODELS}
    rows = [
        battle(n, winner, question_id=81, turn=turn, judge=judge)
        | {"conversation_a": talks[MODELS[n]], "conversation_b": talks[MODELS[n + 1]]}
        for n, turn, judge, winner in [
            (0, 1, "ann", "model_a"),
            (0, 2, "ann", "model_b"),
            (1, 1, "ann", "tie"),
            (0, 1, "bob", "model_a"),
            (0, 1, "bob", "model_b"),  # the same again
        ]
    ]
    done, judgments = bring(rows)
    items = load_study(tmp_path / "study").items_by_id
    assert set(items) == {"81 turn 1 (large or small)", "81 turn 2 (large or small)", "81 turn 1 (large or old)"}
    assert [turn.text for turn in items["81 turn 1 (large or small)"].a.turns] == ["One?", "small 1"]
    assert len(items["81 turn 2 (large or small)"].a.turns) == 4
    assert items["81 turn 2 (large or small)"].metadata["turn"] == 2
    assert {item.metadata["prompt"] for item in items.values()} == {"81"}
    assert len(judgments) == 4
    assert done.files[0].left_out == {"later votes of a rater on the same item": 1}


def test_the_layout_of_55k_battles_has_no_raters(bring, tmp_path):
    rows = [
        {
            "id": 7 + n,
            "model_a": "x",
            "model_b": "y",
            "prompt": '["One?", "Two?"]',
            "response_a": '["1", null]',
            "response_b": '["I", "II"]',
            "winner_model_a": int(n == 0),
            "winner_model_b": int(n == 1),
            "winner_tie": int(n == 2),
        }
        for n in range(3)
    ]
    done, judgments = bring(rows, "train.csv")
    assert sorted(str(judgment.value) for judgment in judgments) == ["tie", "x", "y"]
    assert done.files[0].n_raters == 3
    assert "every vote counts as a rater of its own" in done.files[0].assumed[0]
    item = load_study(tmp_path / "study").items_by_id["7"]
    assert [turn.text for turn in item.b.turns] == ["One?", "I", "Two?", "II"]
    assert done.files[0].left_out == {"turns without text": 3}


def test_preference_pairs_without_models_are_pairs_of_dialogues(bring, tmp_path):
    rows = [
        {"prompt": f"Q{n}?", "chosen": f"good {n}", "rejected": f"bad {n}", "score_chosen": 4.5, "gold": "x"}
        for n in range(20)
    ]
    _, judgments = bring(rows, "pairs.jsonl")
    study = load_study(tmp_path / "study")
    assert study.spec.items.pairs == "dialogues"
    assert {judgment.value for judgment in judgments} == {"first", "second"}
    for judgment in judgments:
        item = study.items_by_id[judgment.item_id]
        side = item.a if judgment.value == "first" else item.b
        assert side.turns[-1].text.startswith("good")
        assert item.metadata[judgment.value] == f"{item.id}.chosen"
        assert (item.metadata["score_chosen"], item.metadata["gold_column"]) == (4.5, "x")


def test_preference_pairs_with_models_compare_them(bring, tmp_path):
    talks = [chat("Q?", "A"), chat("Q?", "B")]
    names = [("m1", "m2"), ("m2", "m1"), ("m1", "m1")]
    rows = [
        {"id": n, "chosen": talks[0], "rejected": talks[1], "chosen_model": one, "rejected_model": other, "judge": "j"}
        for n, (one, other) in enumerate(names)
    ]
    done, judgments = bring(rows, "pairs.parquet")
    assert [judgment.value for judgment in judgments] == ["m1", "m2"]
    assert done.files[0].left_out == {"pairs of one system with itself": 1}
    assert load_study(tmp_path / "study").spec.items.pairs != "dialogues"
