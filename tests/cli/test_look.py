"""dialometer look: what a file is, in one screen."""

import json
import logging

import pytest

from commands import result_of

CHATS = (
    {
        "id": "a",
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    },
    {"id": "b", "messages": [{"role": "user", "content": "Bye"}, {"role": "assistant", "content": "x" * 400}] * 5},
    {"id": "c", "messages": [{"role": "oracle", "content": "Hm"}]},
)


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(map(json.dumps, CHATS)))
    return path


def test_a_file_of_dialogues_in_one_screen(chats):
    shown = result_of("look", chats)
    assert shown.exit_code == 0, shown.output
    for words in (
        "2 dialogues, format messages",
        "12 turns, 2 to 10 in a dialogue, median 6",
        "model (1)",
        "assistant: Hello.",
        "line 3: left out: turn 1: speaker 'oracle' has no known role",
        "dialometer learn score",
    ):
        assert words in shown.stdout, words
    assert "x" * 301 not in shown.stdout


def test_the_same_as_json_and_with_declared_speakers(chats):
    found = json.loads(result_of("look", chats, "--json", "--speakers", "oracle=agent").stdout)
    assert (found["format"], found["dialogues"], found["n_warnings"]) == ("messages", 3, 0)
    assert {"name": "oracle", "role": "agent", "turns": 1} in found["speakers"]
    assert found["turns_per_dialogue"] == {"least": 1, "median": 2, "most": 10}


def test_tables_of_judgments_and_files_that_are_neither(tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("model_a,model_b,winner\nx,y,model_a\n")
    shown = json.loads(result_of("look", votes, "--json").stdout)
    assert shown == {"kind": "table", "format": "", "columns": ["model_a", "model_b", "winner"]}
    assert "--format votes" in result_of("look", votes).stdout
    exported = tmp_path / "batch.csv"
    exported.write_text("HITId,WorkerId,Answer.quality\n1,w,4\n")
    assert "judgments, format batch" in result_of("look", exported).stdout
    other = tmp_path / "other.dat"
    other.write_text("nothing of use")
    refused = result_of("look", other)
    assert refused.exit_code == 1
    assert "the format cannot be recognised" in str(refused.exception)
    assert "does not give a speaker a role" in str(result_of("look", votes, "--speakers", "x").exception)


def test_a_look_leaves_the_log_as_it_was(chats):
    log = logging.getLogger("dialometer.readers")
    before = log.level
    result_of("look", chats)
    assert log.level == before
