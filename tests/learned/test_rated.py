import json
import os
from pathlib import Path

import pytest

from dialometer.errors import DialometerError, NotEnoughData, ReadError
from dialometer.learned.data.rated import check_rated, clean, clean_dialogue, read_rated, read_ratings, to_five_points
from dialometer.model.dialogue import Dialogue, Turn

REAL = os.environ.get("DIALOMETER_DATA", "")


def record(name, rating, texts=("Hi", "Hello", "How are you?", "Fine"), **metadata):
    turns = [{"speaker": ("User", "Agent")[n % 2], "text": text} for n, text in enumerate(texts)]
    return {"id": name, "turns": turns, "metadata": {"rating": rating, **metadata}}


def write(path: Path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def talk(n):
    return ("Hi", f"Hello {n}", "How are you?", "Fine")


@pytest.fixture
def records():
    return [record(f"d{n}", 1 + n % 5, talk(n), user=f"u{n % 3}", system="bot") for n in range(10)]


def test_reads_our_own_form(tmp_path, records):
    rated = read_rated(write(tmp_path / "talks.jsonl", records))
    assert [one.id for one in rated] == [f"d{n}" for n in range(10)]
    assert rated[3].rating == 4
    assert (rated[3].user, rated[3].bot, rated[3].source) == ("u0", "bot", "talks.jsonl")
    assert rated[3].n_utterances == 4


def test_reads_a_folder_and_a_table(tmp_path, records):
    write(tmp_path / "a.jsonl", records[:5])
    rows = ["dialogue_id,speaker,text,rating"]
    for n in range(5):
        rows += [f"c{n},{who},{text} {n},{1 + n}" for who, text in (("User", "a"), ("Agent", "b")) for _ in range(2)]
    (tmp_path / "b.csv").write_text("\n".join(rows) + "\n")
    rated = read_rated(tmp_path)
    assert {one.source for one in rated} == {"a.jsonl", "b.csv"}
    assert [one.rating for one in rated if one.source == "b.csv"] == [1, 2, 3, 4, 5]


def test_cleaning_is_counted(tmp_path, records):
    records[0]["metadata"]["rating"] = None
    records[1]["turns"] = records[1]["turns"][:3]
    records[2]["turns"] = records[3]["turns"]
    found = read_ratings(write(tmp_path / "talks.jsonl", records))
    assert found.n_left_out == {
        "without a rating": 1,
        "fewer than 2 utterances on a side": 1,
        "exact copy of an earlier dialogue": 1,
    }
    assert "d2" in {one.id for one in found.rated}
    assert "d3" not in {one.id for one in found.rated}


def test_commands_and_error_messages_come_off():
    texts = [
        ("user", "/start"),
        ("agent", "Text is not given. Please try to type /end and /test to reset the state and get text."),
        ("user", "I was at a party and/or asleep"),
        ("agent", "I made an error: sorry"),
        ("agent", "ValueError: bad shape"),
        ("user", "error: you are wrong"),
        ("user", "/sorry, bye"),
    ]
    dialogue = Dialogue("d", tuple(Turn(role.title(), text, role) for role, text in texts))
    kept = [turn.text for turn in clean_dialogue(dialogue).turns]
    assert kept == ["I was at a party and/or asleep", "I made an error: sorry", "error: you are wrong"]


def test_ratings_outside_the_scale_are_refused(tmp_path, records):
    records[4]["metadata"]["rating"] = 7
    with pytest.raises(ReadError, match=r"'d4' is rated 7, outside the scale from 1 to 5"):
        read_rated(write(tmp_path / "talks.jsonl", records))


def test_a_named_scale_is_brought_to_five_points(tmp_path, records):
    for n, one in enumerate(records):
        one["metadata"]["rating"] = 10 * n
    rated = read_rated(write(tmp_path / "talks.jsonl", records), scale=(0, 100))
    assert rated[5].rating == 3.0
    assert to_five_points(100, (0, 100)) == 5.0


def test_a_rating_that_is_no_number_is_refused(tmp_path, records):
    records[4]["metadata"]["rating"] = "good"
    with pytest.raises(ReadError, match=r"'good', which is not a number"):
        read_rated(write(tmp_path / "talks.jsonl", records))


def test_dialogues_without_agent_turns_are_excluded_and_a_file_of_them_is_refused(tmp_path, records):
    for turn in records[4]["turns"]:
        turn["speaker"] = "User"
    ratings = read_ratings(write(tmp_path / "talks.jsonl", records))
    assert "d4" not in {row.id for row in ratings.rated}
    assert ratings.n_left_out["fewer than 2 utterances on a side"] == 1
    for turn in (turn for record in records for turn in record["turns"]):
        turn["speaker"] = "User"
    with pytest.raises(NotEnoughData, match="no dialogue has a turn of an agent"):
        read_ratings(write(tmp_path / "talks.jsonl", records))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: [one["metadata"].update(rating=3) for one in r], "all 10 ratings are equal"),
        (lambda r: r.__delitem__(slice(2, None)), "2 rated dialogues are left"),
        (lambda r: [one["metadata"].update(rating=None) for one in r], "none of the 10 dialogues has a rating"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(tmp_path, records, change, message):
    change(records)
    with pytest.raises(NotEnoughData, match=message):
        read_rated(write(tmp_path / "talks.jsonl", records))


def test_missing_files_and_empty_folders(tmp_path):
    with pytest.raises(DialometerError, match="there is nothing here"):
        read_rated(tmp_path / "none")
    with pytest.raises(DialometerError, match="neither a study nor files"):
        read_rated(tmp_path)


def test_one_id_in_two_files_is_refused(tmp_path, records):
    write(tmp_path / "a.jsonl", records)
    for n, one in enumerate(records):
        one["turns"][0]["text"] = f"another beginning {n}"
    write(tmp_path / "b.jsonl", records)
    with pytest.raises(DialometerError, match="'d0' occurs more than once"):
        read_rated(tmp_path)


def test_several_judgments_of_one_item_are_no_copies(tmp_path, records):
    from dataclasses import replace

    one = read_rated(write(tmp_path / "talks.jsonl", records))[0]
    judged = [
        replace(one, user=rater, dialogue=replace(one.dialogue, id=f"{rater}/i", metadata={"item": "i"}))
        for rater in ("R1", "R2")
    ]
    assert len(clean(judged).rated) == 2
    assert len(clean([one, one]).rated) == 1
    check_rated([*judged, replace(one, rating=5.0)], at_least=2)


def test_users_and_bots_of_later_releases(tmp_path, records):
    for one in records:
        one["metadata"] = {"rating": one["metadata"]["rating"], "participant1_id": {"user_id": "u9"}, "bot_id": 4}
    rated = read_rated(write(tmp_path / "talks.jsonl", records))
    assert (rated[0].user, rated[0].bot) == ("u9", "4")


@pytest.mark.realdata
@pytest.mark.skipif(not REAL, reason="DIALOMETER_DATA names no folder")
def test_convai2():
    found = read_ratings(Path(REAL) / "convai2")
    n_all = len(found.rated) + sum(found.n_left_out.values())
    assert n_all == 3005
    assert len(found.rated) == 1660
    assert not any(turn.text.startswith("/") for one in found.rated for turn in one.dialogue.turns)
