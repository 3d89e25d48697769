"""Public data sets: small files of their forms, and the sets themselves with their known counts."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import read_dialogues, write_dialogues

CONVAI2 = {
    "dialog_id": "0x1",
    "dialog": [{"id": 0, "sender": "participant2", "text": "Hey"}, {"id": 1, "sender": "participant1", "text": "Hi"}],
    "bot_profile": ["i bake."],
    "user_profile": ["i sing."],
    "eval_score": 4,
    "profile_match": 1,
}
ARENA = {
    "conversation ID": "crs_1",
    "agent": {"id": "crs", "type": "AGENT"},
    "user": {"id": "u1", "type": "USER"},
    "conversation": [
        {"participant": "USER", "utterance": "a film?", "utterance ID": "crs-u1_0"},
        {"participant": "AGENT", "utterance": "", "utterance ID": "crs-u1_1"},
        {"participant": "USER", "utterance": "hello?", "utterance ID": "crs-u1_2"},
    ],
    "metadata": {"sentiment": "frustrated"},
}
MDC = """Mode,Conversation,Exchange,Experiment,Q,A,Notes,BA1,BA2
PER,1,1,TRAIN,Hello.,Hi.,,Hello!,Hey!
EDU,1,1,TRAIN,What now?,Who knows.,BrokenExchange,,
PER,1,3,TRAIN,"Who, then?",Me.,,I did.,
"""


def test_convai2_keeps_rating_personas_file_and_day(a_file):
    path = a_file("export_2018-07-06.json.gz", [CONVAI2])
    assert list(read_dialogues(path)) == [
        Dialogue(
            "0x1",
            (Turn("Agent", "Hey", "agent"), Turn("User", "Hi", "user")),
            {
                "rating": 4,
                "profile_match": 1,
                "bot_profile": ["i bake."],
                "user_profile": ["i sing."],
                "file": "export_2018-07-06.json.gz",
                "day": "2018-07-06",
            },
        )
    ]


@pytest.mark.parametrize("not_given", [None, "", -1])
def test_convai2_without_a_rating_is_not_rated_rather_than_zero(a_file, not_given):
    path = a_file("e.json", [{**CONVAI2, "eval_score": not_given, "profile_match": not_given}])
    metadata = next(read_dialogues(path)).metadata
    assert (metadata["rating"], metadata["profile_match"]) == (None, None)
    assert "day" not in metadata


def test_convai2_later_releases_name_the_bot_at_each_turn_and_say_more(a_file):
    dialog = [
        {"id": 0, "sender": "participant1", "sender_class": "Bot", "text": "Hey", "evaluation_score": 1},
        {"id": 1, "sender": "participant2", "sender_class": "Human", "text": ""},
        {"id": 2, "sender": "participant2", "sender_class": "Human", "text": "Hi"},
    ]
    (dialogue,) = read_dialogues(a_file("e.json", [{**CONVAI2, "dialog": dialog, "user_id": "u9"}]))
    assert [turn.role for turn in dialogue.turns] == ["agent", "user"]
    assert dialogue.metadata["turn_fields"] == [{"evaluation_score": 1}, {}]
    assert dialogue.metadata["user_id"] == "u9"
    assert dialogue.metadata["left_out_turns"] == [{"turn": 2, "speaker": "User", "reason": "empty"}]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"eval_score": 6}, "eval_score", "must be 1 to 5 or null, not 6"),
        ({"eval_score": True}, "eval_score", "must be 1 to 5 or null, not True"),
        ({"profile_match": "x"}, "profile_match", "must be 0 to 1 or null, not 'x'"),
        ({"dialog": None}, "dialog", "must be a list, not null"),
        ({"dialog": [5, CONVAI2["dialog"][0]]}, "dialog[0]", "must be an object, not a number"),
        ({"dialog": [{"sender": "participant3", "text": "x"}]}, "dialog[0].sender", "'participant3' has no known role"),
        ({"dialog": [{"sender": "participant1", "text": 1}]}, "dialog[0].text", "must be a string"),
        ({"dialog_id": "first"}, "id", "the id 'first' was used before (line 2)"),
    ],
)
def test_convai2_mistakes_are_placed_in_the_array(a_file, problems_in, change, field, message):
    text = "[\n" + json.dumps({**CONVAI2, "dialog_id": "first"}) + ",\n  " + json.dumps({**CONVAI2, **change}) + "\n]"
    (problem,) = problems_in(a_file("e.json", text), "convai2")
    assert (problem.line, problem.column, problem.field) == (3, 3, field)
    assert message in problem.message


def test_crs_arena_leaves_silent_turns_out_and_says_so(a_file, caplog):
    path = a_file("arena.json", json.dumps([ARENA], indent=4))
    reading = read_dialogues(path)
    assert list(reading) == [
        Dialogue(
            "crs_1",
            (Turn("User", "a film?", "user"), Turn("User", "hello?", "user")),
            {
                "system": "crs",
                "user_id": "u1",
                "sentiment": "frustrated",
                "left_out_turns": [{"turn": 2, "speaker": "Agent", "reason": "empty"}],
            },
        )
    ]
    (warning,) = reading.warnings
    assert (warning.severity, warning.line, warning.field) == ("warning", 2, "conversation[1].utterance")
    assert "turn 2 of 'crs_1' is empty and was skipped" in caplog.text


def test_crs_arena_can_be_read_strictly(a_file, problems_in):
    (problem,) = problems_in(a_file("arena.json", [ARENA]), empty_turns="error")
    assert problem.message == "turn 2 is empty"


def test_crs_arena_mistakes_are_placed(a_file, problems_in):
    bad = {
        "conversation ID": "x",
        "agent": "crs",
        "user": {},
        "conversation": [[], {"participant": "X", "utterance": "y"}],
    }
    found = problems_in(a_file("arena.json", [bad]))
    assert [(problem.field, problem.message) for problem in found][:2] == [
        ("agent", "'agent' must be an object, not a string"),
        ("conversation[0]", "'conversation[0]' must be an object, not a list"),
    ]
    assert found[-1].message == "turn 2: speaker 'X' has no known role"


def test_mdc_groups_exchanges_and_keeps_the_right_answers(a_file):
    assert list(read_dialogues(a_file("dialogues.csv", MDC))) == [
        Dialogue(
            "PER-1",
            (
                Turn("User", "Hello.", "user"),
                Turn("Agent", "Hi.", "agent"),
                Turn("User", "Who, then?", "user"),
                Turn("Agent", "Me.", "agent"),
            ),
            {
                "mode": "PER",
                "conversation": "1",
                "exchanges": [
                    {"exchange": 1, "answers": ["Hello!", "Hey!"], "part": "TRAIN", "note": None},
                    {"exchange": 3, "answers": ["I did."], "part": "TRAIN", "note": None},
                ],
            },
        ),
        Dialogue(
            "EDU-1",
            (Turn("User", "What now?", "user"), Turn("Agent", "Who knows.", "agent")),
            {
                "mode": "EDU",
                "conversation": "1",
                "exchanges": [{"exchange": 1, "answers": [], "part": "TRAIN", "note": "BrokenExchange"}],
            },
        ),
    ]


@pytest.mark.parametrize("number", ["3", "2", "x"])
def test_mdc_exchanges_must_rise(a_file, problems_in, number):
    (problem,) = problems_in(a_file("dialogues.csv", MDC + f"PER,1,{number},TRAIN,a,b,,,\n"))
    assert (problem.line, problem.field) == (5, "Exchange")


def test_self_dialogues_alternate_even_where_a_turn_is_left_out(a_file):
    record = {"id": "action-0", "topic": "action", "turns": ["a", "b", " ", "d"]}
    (dialogue,) = read_dialogues(a_file("d.jsonl", json.dumps(record)), speakers={"B": "agent"})
    assert dialogue.turns == (Turn("A", "a", "person"), Turn("B", "b", "agent"), Turn("B", "d", "agent"))
    assert dialogue.metadata == {
        "topic": "action",
        "left_out_turns": [{"turn": 3, "speaker": "A", "reason": "empty"}],
    }


def test_self_dialogue_mistakes_are_placed(a_file, problems_in):
    records = [{"id": "a", "turns": ["x"]}, {"id": "b", "turns": ["x", 4]}, {"id": "c"}]
    found = problems_in(a_file("d.jsonl", "\n".join(map(json.dumps, records))))
    assert [(problem.line, problem.field) for problem in found] == [(2, "turns[1]"), (3, "turns")]


# The sets themselves


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("DIALOMETER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("DIALOMETER_DATA does not name the folder of public data sets")
    return Path(folder)


@pytest.mark.realdata
def test_all_of_convai2(data):
    paths = sorted((data / "convai2").glob("export_*.json.gz"))
    readings = [read_dialogues(path) for path in paths]
    dialogues = [dialogue for reading in readings for dialogue in reading]
    assert {reading.format for reading in readings} == {"convai2"}
    assert [reading.n_dialogues for reading in readings] == [427, 438, 723, 1417]
    assert len({dialogue.id for dialogue in dialogues}) == 3005
    assert sum(reading.n_warnings for reading in readings) == 0
    assert Counter(turn.role for dialogue in dialogues for turn in dialogue.turns) == {"agent": 19888, "user": 18641}
    ratings = Counter(dialogue.metadata["rating"] for dialogue in dialogues)
    assert ratings == {1: 1324, 2: 427, 3: 453, 4: 353, 5: 362, None: 86}
    assert Counter(dialogue.metadata["profile_match"] for dialogue in dialogues) == {1: 1810, 0: 1078, None: 117}
    assert sum("bot_profile" in dialogue.metadata for dialogue in dialogues) == 723 + 1417
    days = {dialogue.metadata["day"] for dialogue in dialogues}
    assert days == {"2018-07-04", "2018-07-05", "2018-07-06", "2018-07-07"}


@pytest.mark.realdata
def test_all_of_crs_arena(data):
    reading = read_dialogues(data / "crs_arena" / "crs_arena_dial_open.json.gz")
    dialogues = list(reading)
    assert (reading.format, len(dialogues), reading.n_warnings) == ("crsarena", 254, 3)
    assert Counter(turn.role for dialogue in dialogues for turn in dialogue.turns) == {"user": 1037, "agent": 1026}
    assert [len(dialogue.metadata.get("left_out_turns", [])) for dialogue in dialogues].count(1) == 3
    assert len({dialogue.metadata["system"] for dialogue in dialogues}) == 9


@pytest.mark.realdata
def test_all_of_mdc(data):
    reading = read_dialogues(data / "mdc" / "dialogues_dev.csv")
    dialogues = list(reading)
    assert (reading.format, len(dialogues), reading.n_warnings) == ("mdc", 10, 0)
    exchanges = [exchange for dialogue in dialogues for exchange in dialogue.metadata["exchanges"]]
    assert len(exchanges) == 340
    assert sum(len(dialogue.said_by("user")) for dialogue in dialogues) == 340
    assert sum(len(dialogue.said_by("agent")) for dialogue in dialogues) == 340
    assert Counter(len(exchange["answers"]) for exchange in exchanges) == {1: 246, 2: 65, 3: 23, 4: 4, 5: 1, 6: 1}
    assert Counter(exchange["note"] for exchange in exchanges) == {None: 330, "BrokenExchange": 10}


@pytest.mark.realdata
@pytest.mark.slow
def test_all_of_the_self_dialogues(data):
    reading = read_dialogues(data / "self_dialogue" / "dialogues.jsonl.gz")
    n_turns, topics = 0, set()
    for dialogue in reading:
        n_turns += len(dialogue.turns)
        topics.add(dialogue.metadata["topic"])
    assert (reading.format, reading.n_dialogues, n_turns, len(topics)) == ("self_dialogue", 23988, 373728, 22)


@pytest.mark.realdata
@pytest.mark.parametrize(
    "file", ["convai2/export_2018-07-06.json.gz", "crs_arena/crs_arena_dial_open.json.gz", "mdc/dialogues_dev.csv"]
)
def test_real_dialogues_survive_our_own_form(data, tmp_path, file):
    dialogues = list(read_dialogues(data / file))
    assert write_dialogues(tmp_path / "d.jsonl.gz", dialogues) == len(dialogues)
    assert list(read_dialogues(tmp_path / "d.jsonl.gz")) == dialogues
