"""Tool calls, media and system prompts in items and in files of dialogues."""

from __future__ import annotations

import json
import zlib

import pytest

from dialometer.design.items import ItemReader
from dialometer.model.dialogue import Dialogue, Media, ToolCall, Turn
from dialometer.model.item import turns_of
from dialometer.readers import read_dialogues, write_dialogues

ROLES = {"User": "user", "Agent": "agent"}
CALL = {"name": "search", "arguments": {"query": "ferns"}, "result": "Two pages."}
AS_CALL = ToolCall("search", '{"query": "ferns"}', "Two pages.")
IMAGE = {"path": "media/fern.png", "alt": "A fern"}
AS_IMAGE = Media("image", "media/fern.png", "A fern")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 30 + b"\0\0\0\0IEND" + zlib.crc32(b"IEND").to_bytes(4, "big")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "fern.png").write_bytes(PNG)
    return tmp_path


def read(kind, record, folder=None):
    reader = ItemReader(kind, ROLES, ["x", "y"], "items.jsonl", folder)
    return reader.read(json.dumps({"id": "a", **record}).encode()), reader.problems


def side(system, **more):
    return {"system": system, "turns": [{"speaker": "Agent", "text": "b", **more}], "system_prompt": f"Be {system}."}


QUESTION = [{"speaker": "User", "text": "q"}]
PARTS = {"tool_calls": [CALL], "media": [IMAGE]}
KINDS = {
    "responses": {"context": QUESTION, "responses": {"x": {"text": "b", **PARTS}, "y": "c"}},
    "transcript_pair": {"a": side("x", **PARTS), "b": side("y")},
    "dialogue": {"system": "x", "turns": [{"speaker": "Agent", "text": "b", **PARTS}]},
    "candidate": {"context": QUESTION, "candidate": {"speaker": "Agent", "text": "b", **PARTS}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_item_holds_tool_calls_media_and_a_system_prompt(kind, folder):
    items, problems = read(kind, {**KINDS[kind], "system_prompt": "Be brief."}, folder)
    assert not problems
    assert items[0].system_prompt == "Be brief."
    turn = next(turn for turn in turns_of(items[0]) if turn.text == "b")
    assert (turn.tool_calls, turn.media) == ((AS_CALL,), (AS_IMAGE,))


def test_prompts_of_one_side_or_system(folder):
    pair = read("transcript_pair", KINDS["transcript_pair"], folder)[0][0]
    assert (pair.a.system_prompt, pair.b.system_prompt) == ("Be x.", "Be y.")
    responses = {"x": {"text": "b", "system_prompt": "Rhyme."}, "y": "c"}
    item = read("responses", {"context": QUESTION, "responses": responses})[0][0]
    assert item.system_prompts == {"x": "Rhyme."}
    assert item.responses == {"x": "b", "y": "c"}


def test_a_turn_with_a_step_or_an_image_needs_no_text(folder):
    items, problems = read("dialogue", {"system": "x", "turns": [{"speaker": "Agent", "text": "", **PARTS}]}, folder)
    assert items[0].turns[0].text == ""
    assert not problems
    _, problems = read("dialogue", {"system": "x", "turns": [{"speaker": "Agent", "text": "", "media": []}]}, folder)
    assert "'text' is empty" in problems[0].message


FAULTY = {
    "no image": (
        {"media": ["media/text.png"]},
        "'text.png' is not a valid image of the kind .png",
        "turns[0].media[0].path",
    ),
    "cut off": ({"media": ["media/cut.png"]}, "'cut.png' is cut off", "turns[0].media[0].path"),
    "missing": ({"media": ["media/none.png"]}, "'media/none.png' is missing", "turns[0].media[0].path"),
    "outside": ({"media": ["../fern.png"]}, "lies outside the folder", "turns[0].media[0].path"),
    "address": ({"media": ["https://example.org/a.png"]}, "is an address", "turns[0].media[0].path"),
    "svg": ({"media": ["media/a.svg"]}, "is of no kind that browsers", "turns[0].media[0].path"),
    "kind": ({"media": [{**IMAGE, "kind": "audio"}]}, "is of the kind 'image'", "turns[0].media[0]"),
    "key": ({"media": [{**IMAGE, "altt": "x"}]}, "unknown key 'altt'", "turns[0].media[0].altt"),
    "no name": ({"tool_calls": [{"arguments": {}}]}, "has no name", "turns[0].tool_calls[0].name"),
    "no list": ({"tool_calls": CALL}, "must be a list", "turns[0].tool_calls"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_faulty_parts_are_refused_with_line_and_field(case, folder):
    (folder / "media" / "text.png").write_text("<svg onload=alert(1)>")
    (folder / "media" / "cut.png").write_bytes(PNG[:20])
    parts, message, field = FAULTY[case]
    items, problems = read("dialogue", {"system": "x", "turns": [{"speaker": "Agent", "text": "b", **parts}]}, folder)
    assert not items
    assert (problems[0].line, problems[0].field) == (1, field)
    assert message in problems[0].message
    assert problems[0].remedy


def test_terminal_output_and_other_forms_of_calls():
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"n":1}'}, "result": "\x1b[1mok"},
        {"name": "list", "result": [1, 2]},
    ]
    items, problems = read(
        "dialogue", {"system": "x", "turns": [{"speaker": "Agent", "text": "", "tool_calls": calls}]}
    )
    assert items[0].turns[0].tool_calls == (ToolCall("run", '{"n":1}', "␛[1mok"), ToolCall("list", "", "[1, 2]"))
    assert [problem.severity for problem in problems] == ["warning"]


def test_files_of_dialogues_write_and_read_them_back(tmp_path):
    turns = (
        Turn("User", "q", "user"),
        Turn("Agent", "", "agent", (AS_CALL, ToolCall("run", '{"n":1}'), ToolCall("t", "no JSON")), (AS_IMAGE,)),
    )
    dialogue = Dialogue("d", turns, {"rating": 4}, "Be brief.")
    write_dialogues(tmp_path / "d.jsonl", [dialogue])
    assert list(read_dialogues(tmp_path / "d.jsonl")) == [dialogue]
    written = json.loads((tmp_path / "d.jsonl").read_text())
    assert written["turns"][1]["tool_calls"][0] == CALL
