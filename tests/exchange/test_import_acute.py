"""Results of ACUTE-Eval with their pairings become a study of transcript pairs."""

import json

import polars as pl
import pytest

from dialometer.design.load import load_study
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store


def talk(bot, text):
    said = [{"id": "human_evaluator", "text": "Hi"}, {"id": bot, "text": text}]
    return {"speakers": [bot, "human_evaluator"], "dialogue": said}


PAIRINGS = [
    {"speakers_to_eval": ["bot_b", "bot_a"], "dialogue_dicts": [talk("bot_b", f"Ho {n}"), talk("bot_a", f"Hello {n}")]}
    for n in range(2)
]


def row(worker, pairing, winner, **changes):
    loser = "bot_b" if winner == "bot_a" else "bot_a"
    known = {"worker": worker, "question": "Who is kinder?", "winner": winner, "loser": loser, "pairing_id": pairing}
    known |= {"eval_choice_0": "bot_a", "eval_choice_1": "bot_b", "is_onboarding": False, "correct": -1}
    return {**known, "task_start": 1600000000.0 + pairing, "reason": "so", **changes}


ROWS = [
    row("w1", 0, "bot_a"),
    row("w1", 1, "bot_b"),
    row("w2", 0, "bot_a", is_onboarding=True, correct=0),
    row("w2", 1, "bot_b"),
    row("w1", 0, "bot_b"),
]


@pytest.mark.parametrize("place", ["beside", "in the rows", "nowhere"])
def test_choices_and_dialogues(tmp_path, place):
    folder = tmp_path / "run"
    folder.mkdir()
    rows = [dict(entry) for entry in ROWS]
    if place == "beside":
        (folder / "pairings.jsonl").write_text("\n".join(map(json.dumps, PAIRINGS)))
    elif place == "in the rows":
        for entry in rows:
            sides = dict(zip(("bot_b", "bot_a"), PAIRINGS[entry["pairing_id"]]["dialogue_dicts"], strict=True))
            entry |= {f"{which}_dialogue": str(sides[entry[which]]) for which in ("winner", "loser")}
    pl.DataFrame(rows).write_csv(folder / "results.csv")
    done = import_files(tmp_path / "study", [folder / "results.csv"], tmp_path / "in.db", at_ms=1)
    assert done.files[0].format == "acute"
    assert done.files[0].left_out == {
        "answers of the onboarding": 1,
        "later answers of a rater to the same question about a pairing": 1,
    }
    study = load_study(tmp_path / "study")
    item = study.items_by_id["pairing-0"]
    sides = {side.system: [turn.text for turn in side.turns] for side in (item.a, item.b)}
    if place != "nowhere":
        assert sides == {"bot_a": ["Hi", "Hello 0"], "bot_b": ["Hi", "Ho 0"]}
        assert [turn.role for turn in item.a.turns] == ["user", "agent"]
    assert study.spec.criteria[0].label == "Who is kinder?"
    with Store.open(tmp_path / "in.db") as store:
        assert sorted((judgment.item_id, judgment.value) for judgment in store.records.judgments()) == [
            ("pairing-0", "bot_a"),
            ("pairing-1", "bot_b"),
            ("pairing-1", "bot_b"),
        ]
        assert sum(session.is_excluded for session in store.sessions.all()) == 1
