"""Items as other programs write them: read, with a warning that says what was assumed."""

from __future__ import annotations

import json

from dialometer.design.items import ItemReader

ROLES = {"User": "user", "Agent": "agent"}


def read(*records, encoding="utf-8", kind="dialogue"):
    reader = ItemReader(kind, ROLES, ["x"], "items.jsonl")
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return reader.read(text.encode(encoding)), reader.problems


def item(**more):
    return {
        "id": "a",
        "system": "x",
        "turns": [{"speaker": "User", "text": "é"}, {"speaker": "Agent", "text": "b"}],
        **more,
    }


def test_numbers_and_missing_ids():
    several = [item(id=1), {key: value for key, value in item().items() if key != "id"}]
    items, problems = read(*several)
    assert [one.id for one in items] == ["1", "item-2"]
    assert [(problem.severity, problem.line) for problem in problems] == [("warning", 2)]


def test_speakers_in_other_words_and_letters():
    turns = [{"speaker": name, "text": "a"} for name in ("Human", "assistant", "USER", "bot", "agent")]
    items, problems = read(item(turns=turns))
    assert [turn.role for turn in items[0].turns] == ["user", "agent", "user", "agent", "agent"]
    assert {problem.severity for problem in problems} == {"warning"}
    assert len(problems) == 5


def test_a_mark_at_the_beginning_and_other_encodings():
    for encoding, said in (("utf-8-sig", []), ("utf-16", ["UTF-16"]), ("cp1252", ["Windows-1252"])):
        items, problems = read(item(), encoding=encoding)
        assert items[0].turns[0].text == "é"
        assert [problem.message.rpartition(" ")[2] for problem in problems] == said


def test_further_keys_are_kept_once_said_and_misspelt_ones_refused():
    items, problems = read(item(id="a", topic="music", source=3), item(id="b", topic="film"))
    assert items[0].metadata == {"topic": "music", "source": 3}
    assert [problem.severity for problem in problems] == ["warning", "warning"]
    _, problems = read({**item(), "sistem": "x"} | {"system": "x"}, item(id="c", block="m", metdata={}))
    assert any(problem.severity == "error" and "metdata" in problem.message for problem in problems)


def test_half_a_surrogate_pair_is_refused_with_its_line():
    reader = ItemReader("dialogue", ROLES, ["x"], "items.jsonl")
    assert reader.read(json.dumps(item(metadata={"a": "\ud800"})).encode()) == []
    assert [(problem.line, problem.severity) for problem in reader.problems] == [(1, "error")]
