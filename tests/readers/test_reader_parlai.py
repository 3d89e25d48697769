"""ParlAI's conversations and ACUTE-Eval's pairings, in the shapes its versions have written."""

from __future__ import annotations

import json

import pytest

from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import read_dialogues

CONVERSATION = {
    "dialog": [
        [
            {"id": "context", "text": ["your persona: i bake.", "your persona: i sing."]},
            {"id": "context", "text": "so do i."},
        ],
        [
            {"id": "bot_a", "text": "hi !", "episode_done": False, "beam_texts": [["hi !", -1.5]]},
            {"id": "human_evaluator", "text": "Hello.", "episode_done": False},
        ],
        [{"id": "bot_a", "text": "bye ."}],
    ],
    "context": [{"id": "context", "text": "a rainy day"}],
    "metadata_path": "logs/bot_a.metadata",
    "metadata": {"rating": 4},
}
PAIRING = {
    "is_onboarding": True,
    "correct_answer": "bot_b",
    "speakers_to_eval": ["bot_a", "bot_b"],
    "dialogue_ids": [17, 40],
    "dialogue_dicts": [
        {
            "speakers": ["bot_a", "tester"],
            "dialogue": [{"id": "bot_a", "text": "Hi"}, {"id": "tester", "text": "Hi back"}],
        },
        {
            "speakers": ["tester", "bot_b"],
            "dialogue": [{"id": "tester", "text": "Hi"}, {"id": "bot_b", "text": "Yes?"}],
        },
    ],
}


def test_conversations_by_exchange_keep_context_and_other_keys(a_file):
    path = a_file("bot_a.jsonl", json.dumps(CONVERSATION) + "\n")
    assert list(read_dialogues(path, speakers={"bot_a": "agent"})) == [
        Dialogue(
            "bot_a-1",
            (
                Turn("bot_a", "hi !", "agent"),
                Turn("human_evaluator", "Hello.", "user"),
                Turn("bot_a", "bye .", "agent"),
            ),
            {
                "rating": 4,
                "metadata_path": "logs/bot_a.metadata",
                "context": ["a rainy day", "your persona: i bake.\nyour persona: i sing.", "so do i."],
            },
        )
    ]


def test_flat_logs_of_the_first_version(a_file):
    record = {
        "speakers": ["modela", "human"],
        "conversation_id": "ABC",
        "dialog": [{"speaker": "model", "text": "Hello?"}, {"speaker": "human_evaluator", "text": "Yes."}],
    }
    (dialogue,) = read_dialogues(a_file("modela.jsonl", json.dumps(record)))
    assert dialogue == Dialogue(
        "ABC",
        (Turn("model", "Hello?", "agent"), Turn("human_evaluator", "Yes.", "user")),
        {"speakers": ["modela", "human"]},
    )


@pytest.mark.parametrize(("name", "indent"), [("pairings.jsonl", None), ("pairings.json", 2)])
def test_a_pairing_gives_both_sides_with_the_evaluated_speaker_as_agent(a_file, name, indent):
    about = {"is_onboarding": True, "correct_answer": "bot_b", "pairing": "pairings-1"}
    assert list(read_dialogues(a_file(name, json.dumps(PAIRING, indent=indent)))) == [
        Dialogue(
            "pairings-1.1",
            (Turn("bot_a", "Hi", "agent"), Turn("tester", "Hi back", "user")),
            {**about, "speakers": ["bot_a", "tester"], "side": 1, "system": "bot_a", "dialogue_id": 17},
        ),
        Dialogue(
            "pairings-1.2",
            (Turn("tester", "Hi", "user"), Turn("bot_b", "Yes?", "agent")),
            {**about, "speakers": ["tester", "bot_b"], "side": 2, "system": "bot_b", "dialogue_id": 40},
        ),
    ]


def test_the_same_conversation_may_stand_in_many_pairings(a_file):
    path = a_file("p.jsonl", "\n".join([json.dumps(PAIRING)] * 3))
    dialogues = list(read_dialogues(path))
    assert [dialogue.id for dialogue in dialogues] == ["p-1.1", "p-1.2", "p-2.1", "p-2.2", "p-3.1", "p-3.2"]
    assert {dialogue.metadata["dialogue_id"] for dialogue in dialogues} == {17, 40}


def test_world_logs_are_arrays_of_exchanges(a_file):
    episode = [[{"id": "human", "text": "a"}, {"id": "model", "text": "b"}], [{"id": "human", "text": "c"}]]
    path = a_file("log.json", [episode, episode])
    dialogues = list(read_dialogues(path))
    assert [dialogue.id for dialogue in dialogues] == ["log-1", "log-2"]
    assert dialogues[1].turns == (Turn("human", "a", "user"), Turn("model", "b", "agent"), Turn("human", "c", "user"))


def test_empty_acts_are_left_out_with_a_note(a_file):
    record = {"dialog": [[{"id": "human", "text": "a"}, {"id": "model", "text": " "}]]}
    reading = read_dialogues(a_file("log.jsonl", json.dumps(record)))
    (dialogue,) = reading
    assert dialogue.metadata["left_out_turns"] == [{"turn": 2, "speaker": "model", "reason": "empty"}]
    assert [(warning.line, warning.field) for warning in reading.warnings] == [(1, "dialog[0][1].text")]


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ({"dialog": "hi"}, "dialog", "must be a list, not a string"),
        ({"dialog": [[3]]}, "dialog[0][0]", "a turn must be an object, not a number"),
        ({"dialog": [[{"id": "Zoe", "text": "x"}]]}, "dialog[0][0].id", "speaker 'Zoe' has no known role"),
        ({"dialog": [[{"id": "human", "text": "x"}]], "metadata": []}, "metadata", "must be an object, not a list"),
        ({**PAIRING, "speakers_to_eval": ["a"]}, "speakers_to_eval", "1 speakers to evaluate for 2 dialogues"),
        ({**PAIRING, "dialogue_dicts": {}}, "dialogue_dicts", "must be a list, not an object"),
        ({"dialogue_dicts": [4]}, "dialogue_dicts[0]", "must be an object"),
        (
            {"dialogue_dicts": [{"dialogue": [{"id": "Zoe", "text": "x"}]}]},
            "dialogue_dicts[0].dialogue[0].id",
            "speaker 'Zoe' has no known role",
        ),
    ],
)
def test_mistakes_are_placed(a_file, problems_in, record, field, message):
    good = json.dumps({"dialog": [[{"id": "human", "text": "x"}]]})
    (problem,) = problems_in(a_file("log.jsonl", f"{good}\n{json.dumps(record)}\n"), "parlai")
    assert (problem.line, problem.field) == (2, field)
    assert message in problem.message
