"""dialometer look: what a file is, in one screen."""

import gzip
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
    assert (shown["kind"], shown["format"], shown["n_problems"]) == ("judgments", "votes", 1)
    assert "--map rater=COLUMN" in result_of("look", votes).stdout
    plain = tmp_path / "plain.csv"
    plain.write_text("x,y\n1,2\n")
    assert json.loads(result_of("look", plain, "--json").stdout) == {
        "kind": "table",
        "format": "",
        "read_as": [],
        "columns": ["x", "y"],
        "ratings": None,
    }
    assert "--format votes" in result_of("look", plain).stdout
    exported = tmp_path / "batch.csv"
    exported.write_text("HITId,WorkerId,Answer.quality\n1,w,4\n")
    assert "1 judgment, format batch" in result_of("look", exported).stdout
    other = tmp_path / "other.dat"
    other.write_text("nothing of use")
    refused = result_of("look", other)
    assert refused.exit_code == 1
    assert "the format cannot be recognised" in str(refused.exception)
    assert "does not give a speaker a role" in str(result_of("look", votes, "--speakers", "x").exception)


def test_of_a_table_of_ratings_the_import_is_named(tmp_path):
    """It was "a table, not a file of dialogues" before, and how it was written was not said."""
    wide = tmp_path / "bewertungen.csv"
    wide.write_bytes(
        "Rater;Item;System;Nähe;Ruhe;Notiz\r\nr1;d1;alt;4;2;schön\r\nr2;d1;alt;;3;gut\r\n".encode("cp1252")
    )
    shown = " ".join(result_of("look", wide).stdout.split())
    assert "Read as: Windows-1252, Windows line ends, semicolons between columns" in shown
    assert f"dialometer import my-study {wide} --format long --criteria Nähe,Ruhe imports" in shown
    known = tmp_path / "known.csv"
    known.write_text("rater,item,score\nr1,d1,4\n")
    assert "known.csv --format long imports it as ratings" in " ".join(result_of("look", known).stdout.split())


def test_where_the_winner_of_arena_55k_stands_is_said(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
        '1,x,y,"[""Hi?""]","[""Ho.""]","[""Hm.""]",1,0,0\n'
    )
    assert "winner ← winner_model_a, winner_model_b, winner_tie" in result_of("look", path).stdout


def test_a_look_leaves_the_log_as_it_was(chats):
    log = logging.getLogger("dialometer.readers")
    before = log.level
    result_of("look", chats)
    assert log.level == before


CALL = {"id": "c", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
BATTLE = {
    "model_a": "x",
    "model_b": "y",
    "winner": "tie (bothbad)",
    "judge": "u",
    "language": "English",
    "full_conversation": [],
    "conversation_a": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "4 mm"},
        {"role": "assistant", "content": "A little."},
    ],
    "conversation_b": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": ""}],
}


def test_a_file_with_judgments_and_dialogues_shows_both(tmp_path):
    path = tmp_path / "battles.jsonl.gz"
    path.write_bytes(gzip.compress("\r\n".join([json.dumps(BATTLE)] * 14).encode()))
    shown = result_of("look", path).stdout
    for words in (
        "14 judgments, format votes",
        "Read as: gzip, Windows line ends",
        "1 rater, 14 items, 2 systems",
        "14 both bad",
        "kept with the item ← language",
        "Ignored: full_conversation",
        "It holds 28 dialogues, too (format battles)",
        "system prompt: Be kind.",
        'assistant calls weather({"city": "Oslo"}) → 4 mm',
        "14 turns, the first of them line 1: turn 2 of 'battles-1.b' is empty and was skipped",
        "dialometer import my-study",
    ):
        assert words in shown, words


def test_folders(tmp_path, chats):
    (tmp_path / "notes.dat").write_text("nothing of use")
    (tmp_path / "votes.csv").write_text("judge;model_a;model_b;winner\nu;x;y;model_a\n")
    found = json.loads(result_of("look", tmp_path, "--json").stdout)
    assert [(file["name"], file["kind"]) for file in found["files"]] == [
        ("chats.jsonl", "dialogues"),
        ("notes.dat", "unknown"),
        ("votes.csv", "judgments"),
    ]
    shown = result_of("look", tmp_path).stdout
    assert "2 dialogues, format messages" in shown
    assert "semicolons between columns" in result_of("look", tmp_path / "votes.csv").stdout
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.yaml").write_text("")
    assert "dialometer check" in result_of("look", tmp_path / "study").stdout


def test_speakers_are_declared_wherever_dialogues_are_read(tmp_path):
    path = tmp_path / "talks.csv"
    path.write_text("dialogue_id,speaker,text\nd1,Ann,Hi\nd1,HAL,Hello\n" * 1)
    refused = result_of("bots", "prepare", path, "--out", tmp_path / "corpus")
    assert "speaker 'Ann' has no known role" in str(refused.exception)
    taken = result_of(
        "bots", "prepare", path, "--out", tmp_path / "c", "--speakers", "Ann=user", "--speakers", "HAL=agent"
    )
    assert "no known role" not in str(taken.exception)
    assert "no known role" in str(result_of("bots", "prepare", path, "--out", tmp_path / "corpus").exception)
