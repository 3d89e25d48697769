"""Any format: telling it from the file, damaged files, bounded errors, lenient readings."""

from __future__ import annotations

import gzip
import json
import logging

import pytest

from dialometer.errors import DialometerError, ReadError, UnknownName
from dialometer.readers import READERS, read_dialogues

TURNS = [{"speaker": "User", "text": "hi"}]


def line(dialogue_id: str, **changes: object) -> str:
    return json.dumps({"id": dialogue_id, "turns": TURNS, **changes}) + "\n"


def test_every_format_is_found_in_its_file():
    assert READERS.names() == [
        "battles",
        "convai2",
        "crsarena",
        "csv",
        "inspect",
        "jsonl",
        "mdc",
        "messages",
        "parlai",
        "preferences",
        "self_dialogue",
        "text",
        "thred",
    ]


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("x.jsonl", line("a"), "jsonl"),
        ("x.dat", line("a"), "jsonl"),
        ("x.jsonl", '{"messages": [{"role": "user", "content": "x"}]}', "messages"),
        ("x.json", '[{"conversations": [{"from": "human", "value": "x"}]}]', "messages"),
        ("x.jsonl", '{"id": "a", "turns": ["hi"]}', "self_dialogue"),
        ("x.json", '[{"dialog_id": "a", "dialog": [{"sender": "participant1", "text": "x"}]}]', "convai2"),
        ("x.jsonl", '{"dialog_id": "a", "dialog": [{"sender": "participant1", "text": "x"}]}', "convai2"),
        ("x", '{"dialog": [[{"id": "human", "text": "x"}]]}', "parlai"),
        ("x.csv", "text;speaker;dialogue_id\nhi;User;a\n", "csv"),
        ("x.txt", "User: hi\n", "text"),
        ("x", "# a\nUser: hi\n", "text"),
        ("x.txt", "\n\nUser: hi\n", "text"),
    ],
)
def test_the_format_is_told_from_the_content_also_when_gzipped(a_file, name, content, format):
    for path in (a_file(name, content), a_file(f"{name}.gz", content)):
        reading = read_dialogues(path)
        assert reading.format == format
        assert len(list(reading)) == 1


def test_gzip_is_told_by_content_not_by_name(a_file):
    assert next(read_dialogues(a_file("x.jsonl", gzip.compress(line("a").encode())))).id == "a"
    plain = a_file("y.jsonl.gz", line("a"))
    plain.write_text(line("b"))
    assert next(read_dialogues(plain)).id == "b"


@pytest.mark.parametrize(("name", "content"), [("x.json", '{"foo": 1}'), ("x", "no colon"), ("x.yaml", "a: b\n")])
def test_what_cannot_be_told_says_how_to_name_it(a_file, name, content):
    with pytest.raises(ReadError) as caught:
        read_dialogues(a_file(name, content))
    (problem,) = caught.value.problems
    assert problem.message == "the format cannot be recognised from the file"
    assert "format='jsonl'; known: battles, convai2, crsarena, csv" in problem.remedy


def test_an_unknown_format_suggests_a_known_one(a_file):
    with pytest.raises(UnknownName, match=r"unknown dialogue format 'json1' — did you mean 'jsonl'\?"):
        read_dialogues(a_file("x.jsonl", line("a")), "json1")


def test_a_missing_file_or_a_folder_fails_at_once(tmp_path):
    for path, why in ((tmp_path / "none.jsonl", "No such file"), (tmp_path, "this is a folder")):
        for format in (None, "jsonl"):
            with pytest.raises(ReadError, match=why):
                read_dialogues(path, format)


@pytest.mark.parametrize(
    ("name", "content"), [("x.jsonl", ""), ("x.jsonl", "\n\n"), ("x.csv", "dialogue_id,speaker,text\n")]
)
def test_a_file_without_dialogues_is_an_error(a_file, problems_in, name, content):
    (problem,) = problems_in(a_file(name, content))
    assert problem.message == "there are no dialogues in the file"
    assert "format" in problem.remedy


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        (
            "x.jsonl",
            line("a").encode().replace(b"hi", "hé".encode()) + line("b").encode().replace(b"hi", b"caf\xe9!"),
            (2, 55),
        ),
        ("x.csv", "dialogue_id,speaker,text\na,User,é".encode() + b"\xff\n", (2, 9)),
        ("x.txt", b"A: ok\nB: \x81\n", (2, 4)),
        ("x.json", b'[{"dialog_id": "a", "dialog": [\n{"sender": "participant1", "text": "\xff"}]}]', (2, 37)),
    ],
)
def test_bytes_that_are_not_utf8_are_placed(a_file, problems_in, name, content, place):
    problem = problems_in(a_file(name, content))[0]
    assert "is not UTF-8" in problem.message
    assert (problem.line, problem.column) == place
    assert problem.remedy == "save the file as UTF-8"


def test_bytes_that_are_not_utf8_are_never_let_pass(a_file, problems_in):
    path = a_file("x.jsonl", line("a").encode() + b"\xff\n")
    assert "0xFF" in problems_in(path, lenient=True)[0].message


def test_a_byte_order_mark_is_no_text(a_file):
    assert next(read_dialogues(a_file("x.txt", "\ufeffUser: hi\n"))).turns[0].speaker == "User"


def test_a_truncated_gzip_file_says_so_with_the_line(a_file, problems_in):
    path = a_file("x.jsonl.gz", "".join(line(str(n)) for n in range(2000)))
    path.write_bytes(path.read_bytes()[:-200])
    problem = problems_in(path, "jsonl")[-1]
    assert problem.message.startswith("damaged gzip data")
    assert problem.line > 1


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('[{"dialog_id": "a",\n "dialog": [}]', (2, 13), "broken JSON: Expecting value"),
        ('[{"dialog_id": "a", "dialog": []},\n\n', (2, 1), "does not end"),
        ('[{"dialog_id": "a", "dialog": []}', (1, 34), "does not end"),
        ('[{"dialog_id": "a", "dialog": []}\n{}]', (2, 1), "unexpected text"),
        ('[{"dialog_id": "a", "dialog": []}]\n]', (2, 1), "unexpected text"),
        ('[{"dialog_id": "a", "dialog": [], "x": NaN}]', (1, 2), "broken JSON: NaN is not JSON"),
    ],
)
def test_broken_arrays_are_placed(a_file, problems_in, text, place, message):
    problem = problems_in(a_file("x.json", text), "convai2")[-1]
    assert message in problem.message
    assert (problem.line, problem.column) == place


@pytest.mark.parametrize("text", ["[]", " [ ] \n\n", ""])
def test_an_empty_array_holds_no_dialogues(a_file, problems_in, text):
    (problem,) = problems_in(a_file("x.json", text), "convai2")
    assert problem.message == "there are no dialogues in the file"


def test_the_list_of_problems_is_bounded_and_counts_the_rest(a_file):
    path = a_file("x.jsonl", "".join(line(str(n), turns=[]) for n in range(500)))
    with pytest.raises(ReadError) as caught:
        list(read_dialogues(path))
    assert (len(caught.value.problems), caught.value.n_problems) == (50, 500)
    head, told = str(caught.value).split("\n")
    assert head == "500 problems in the dialogues"
    assert told.startswith("  500 rows, the first of them ")


def test_a_lenient_reading_leaves_faulty_dialogues_out_and_reports_each(a_file, caplog):
    bad = [{"speaker": "User", "text": "x"}, {"speaker": "Zoe", "text": "y"}]
    path = a_file("x.jsonl", line("a") + line("b", turns=bad) + "{\n" + line("a") + line("c"))
    reading = read_dialogues(path, lenient=True)
    with caplog.at_level(logging.WARNING, "dialometer.readers"):
        assert [dialogue.id for dialogue in reading] == ["a", "c"]
    assert [(warning.line, warning.severity) for warning in reading.warnings] == [(n, "warning") for n in (2, 3, 4)]
    assert all(warning.message.startswith("left out: ") for warning in reading.warnings)
    assert "3 warnings while reading, the first: " in caplog.text


def test_a_lenient_reading_of_nothing_good_is_still_an_error(a_file, problems_in):
    (problem,) = problems_in(a_file("x.jsonl", line("a", turns=[])), lenient=True)
    assert problem.message.startswith("no dialogue could be read: ")


def test_warnings_are_bounded_too(a_file):
    path = a_file("x.jsonl", line("good") + "".join(line(str(n), turns=[]) for n in range(80)))
    reading = read_dialogues(path, lenient=True)
    assert len(list(reading)) == 1
    assert (len(reading.warnings), reading.n_warnings) == (50, 80)


def test_empty_turns_can_be_left_out_of_any_format_with_a_note(a_file):
    turns = [*TURNS, {"speaker": "Agent", "text": ""}]
    path = a_file("x.jsonl", line("a", turns=turns, metadata={"left_out_turns": [{"turn": 9}]}))
    (dialogue,) = read_dialogues(path, empty_turns="leave_out")
    assert dialogue.metadata["left_out_turns"] == [{"turn": 9}, {"turn": 2, "speaker": "Agent", "reason": "empty"}]


def test_a_dialogue_of_only_empty_turns_is_a_problem_even_so(a_file, problems_in):
    path = a_file("x.jsonl", line("a", turns=[{"speaker": "Agent", "text": ""}]))
    (problem,) = problems_in(path, empty_turns="leave_out")
    assert problem.message == "the dialogue has no turns with text"


def test_arguments_are_checked_at_once(a_file):
    path = a_file("x.jsonl", line("a"))
    with pytest.raises(DialometerError, match="unknown empty_turns 'drop'"):
        read_dialogues(path, empty_turns="drop")  # type: ignore[arg-type]
    with pytest.raises(DialometerError, match=r"unknown role 'agnet' — did you mean 'agent'\?"):
        read_dialogues(path, speakers={"X": "agnet"})  # type: ignore[dict-item]
    with pytest.raises(DialometerError, match="the format 'jsonl' has no option 'strict' — known: none"):
        read_dialogues(path, strict=True)
