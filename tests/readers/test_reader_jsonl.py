"""Our own JSONL form: what it means, and that every mistake is named with its line."""

from __future__ import annotations

import json

import pytest

from dialometer.errors import ReadError
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import read_dialogues

GOOD = {"id": "d", "turns": [{"speaker": "User", "text": "hi"}]}


def lines(*records: object) -> str:
    return "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)


def test_a_line_is_a_dialogue_with_roles_and_metadata(a_file):
    record = {
        "id": "7",
        "turns": [
            {"speaker": "CH1", "text": "  Good morning\r\n"},
            {"speaker": "Andrea", "text": "Ciao"},
            {"speaker": "Narrator", "text": "They met.", "role": "person"},
        ],
        "speakers": {"CH1": "agent", "Andrea": "user"},
        "metadata": {"rating": 4, "tags": ["a", None], "by": {"x": 1.5, "y": True}},
    }
    assert list(read_dialogues(a_file("d.jsonl", lines(record)))) == [
        Dialogue(
            id="7",
            turns=(
                Turn("CH1", "Good morning", "agent"),
                Turn("Andrea", "Ciao", "user"),
                Turn("Narrator", "They met.", "person"),
            ),
            metadata={"rating": 4, "tags": ["a", None], "by": {"x": 1.5, "y": True}},
        )
    ]


@pytest.mark.parametrize(
    ("speaker", "role"), [("User", "user"), ("user", "user"), ("Agent", "agent"), ("agent", "agent")]
)
def test_users_and_agents_need_no_declaration(a_file, speaker, role):
    path = a_file("d.jsonl", lines({"id": "a", "turns": [{"speaker": speaker, "text": "x"}]}))
    assert next(read_dialogues(path)).turns == (Turn(speaker, "x", role),)


def test_the_caller_can_declare_speakers_and_the_line_goes_before_the_caller(a_file):
    turns = [{"speaker": "CH1", "text": "x"}]
    path = a_file(
        "d.jsonl", lines({"id": "a", "turns": turns}, {"id": "b", "turns": turns, "speakers": {"CH1": "user"}})
    )
    roles = [dialogue.turns[0].role for dialogue in read_dialogues(path, speakers={"CH1": "agent"})]
    assert roles == ["agent", "user"]


def test_texts_and_names_become_nfc(a_file):
    decomposed, composed = "Ame\u0301lie", "Am\u00e9lie"
    record = {
        "id": decomposed,
        "turns": [{"speaker": decomposed, "text": decomposed}],
        "speakers": {composed: "agent"},
        "metadata": {decomposed: decomposed},
    }
    (dialogue,) = read_dialogues(a_file("d.jsonl", lines(record)))
    assert dialogue == Dialogue(composed, (Turn(composed, composed, "agent"),), {composed: composed})


def test_an_undeclared_speaker_is_named_with_line_and_remedy(a_file, problems_in):
    bad = {"id": "b", "turns": [{"speaker": "User", "text": "x"}, {"speaker": "CH1", "text": "y"}]}
    (problem,) = problems_in(a_file("d.jsonl", lines(GOOD, bad)))
    assert (problem.line, problem.field) == (2, "turns[1].speaker")
    assert "'CH1' has no known role" in problem.message
    assert '"speakers": {"NAME": "agent"}' in problem.remedy
    assert "speakers={'CH1': 'user'}" in problem.remedy


@pytest.mark.parametrize(
    ("record", "field", "message", "remedy"),
    [
        ({**GOOD, "metdata": {}}, "metdata", "unknown key 'metdata'", "did you mean 'metadata'?"),
        ({"id": "x"}, "turns", "'turns' is missing", "id, turns"),
        ({"id": 3.5, "turns": GOOD["turns"]}, "id", "'id' must be a string, not a number", "quotes"),
        ({"id": "  ", "turns": GOOD["turns"]}, "id", "the id is empty", "id of its own"),
        ({"id": "x", "turns": []}, "", "no turns", "remove"),
        ({"id": "x", "turns": "hi"}, "turns", "must be a list, not a string", ""),
        ({"id": "x", "turns": ["hi", {}]}, "turns[0]", "must be an object, not a string", ""),
        ({"id": "x", "turns": [{"speaker": "User", "text": 5}]}, "turns[0].text", "not a number", "quotes"),
        ({"id": "x", "turns": [{"speaker": "User", "text": True}]}, "turns[0].text", "not true or false", "quotes"),
        ({"id": "x", "turns": [{"speaker": "User", "text": None}]}, "turns[0].text", "is missing", ""),
        ({"id": "x", "turns": [{"speaker": "User"}]}, "turns[0].text", "is missing", ""),
        ({"id": "x", "turns": [{"speaker": "User", "text": " \n"}]}, "turns[0].text", "turn 1 is empty", "leave_out"),
        ({"id": "x", "turns": [{"speaker": "", "text": "a"}]}, "turns[0].speaker", "has no speaker", "name"),
        (
            {"id": "x", "turns": [{"speaker": "User", "text": "a\u0000b"}]},
            "turns[0].text",
            "U+0000 at position 2",
            "remove",
        ),
        ({"id": "x", "turns": [{"speaker": "User", "text": "\ud800"}]}, "turns[0].text", "U+D800", "remove"),
        (
            {"id": "x", "turns": [{"speaker": "User", "txt": "a"}]},
            "turns[0].txt",
            "unknown key",
            "did you mean 'text'?",
        ),
        (
            {"id": "x", "turns": [{"speaker": "P", "text": "a", "role": "usr"}]},
            "turns[0].role",
            "unknown role 'usr'",
            "did you mean 'user'?",
        ),
        ({**GOOD, "speakers": {"User": "agnet"}}, "speakers.User", "unknown role 'agnet'", "did you mean 'agent'?"),
        ({**GOOD, "speakers": ["User"]}, "speakers", "must be an object, not a list", ""),
        ({**GOOD, "metadata": "x"}, "metadata", "must be an object, not a string", ""),
        ({**GOOD, "metadata": {"a": ["\u0007"]}}, "metadata.a[0]", "U+0007", "remove"),
        ({**GOOD, "metadata": {"a": 1, " a": 2}}, "metadata", "twice", "rename"),
        ([1], "", "must be an object, not a list", ""),
    ],
)
def test_each_mistake_is_named_with_its_line_and_field(a_file, problems_in, record, field, message, remedy):
    good = {"id": "first", "turns": GOOD["turns"]}
    found = problems_in(a_file("d.jsonl", lines(good, good | {"id": "second"}, record)), "jsonl")
    hit = [problem for problem in found if problem.field == field and message in problem.message]
    assert len(hit) == 1, found
    assert hit[0].line == 3
    assert remedy in hit[0].remedy


def test_a_repeated_id_names_the_line_of_the_first(a_file, problems_in):
    (problem,) = problems_in(a_file("d.jsonl", lines(GOOD, "", GOOD)))
    assert (problem.line, problem.message) == (3, "the id 'd' was used before (line 1)")


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ('{"id": "x", }', 13, "broken JSON: Expecting property name"),
        ('{"id": "x"', 11, "broken JSON: Expecting ',' delimiter"),
        ('{"id": "x"} {}', 13, "broken JSON: Extra data"),
        ('{"id": "a\tb"}', 10, "broken JSON: Invalid control character"),
        ('{"id": NaN}', 0, "broken JSON: NaN is not JSON"),
        ('{"id": "x", "id": "y"}', 0, "broken JSON: key 'id' is given twice"),
        ("[" * 100_000, 0, "broken JSON: nested too deeply"),
    ],
)
def test_broken_json_costs_its_line_and_is_placed(a_file, problems_in, line, column, message):
    (problem,) = problems_in(a_file("d.jsonl", lines(GOOD, line, {**GOOD, "id": "e"})))
    assert (problem.line, problem.column) == (2, column)
    assert problem.message.startswith(message)


def test_all_problems_of_all_lines_come_in_one_error_after_the_good_dialogues(a_file):
    bad = {"id": 1.5, "turns": [{"speaker": "X", "text": ""}, {"speaker": "User"}], "metadta": 0}
    path = a_file("d.jsonl", lines(bad, GOOD, "{", {**GOOD, "id": "e"}))
    reading = read_dialogues(path)
    assert [next(reading).id, next(reading).id] == ["d", "e"]
    with pytest.raises(ReadError) as caught:
        next(reading)
    assert [problem.line for problem in caught.value.problems] == [1, 1, 1, 1, 1, 3]
    assert str(caught.value).startswith("6 problems in the dialogues\n")
    assert f"{path}:3:2: broken JSON" in str(caught.value)


def test_large_files_stream(tmp_path):
    """The first dialogue comes before the rest is read: the file may even grow behind it."""
    path = tmp_path / "growing.jsonl"
    path.write_text(lines(*({**GOOD, "id": str(n)} for n in range(5000))))
    reading = read_dialogues(path)
    assert next(reading).id == "0"
    with path.open("a") as more:
        more.write(lines({**GOOD, "id": "late"}))
    assert [dialogue.id for dialogue in reading][-1] == "late"
    assert reading.n_dialogues == 5001
