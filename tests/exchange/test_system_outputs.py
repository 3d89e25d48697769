"""Files of outputs, as people keep them, become a study of their own systems."""

from __future__ import annotations

import gzip
import json

import pytest

from commands import invoke
from dialometer.design.load import load_study
from dialometer.errors import DialometerError
from dialometer.exchange.own_systems.study_from_outputs import study_from_outputs
from dialometer.exchange.own_systems.system_outputs import read_outputs

TABLE = """\
id,prompt,Small model,Llama 3,category
1,How do I cook rice?,With water.,In twelve minutes.,food
2,Where is Paris?,Here.,In France.,facts
"""


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_with_a_column_per_system(tmp_path):
    outputs = read_outputs([write(tmp_path / "outputs.csv", TABLE)])
    assert outputs.systems == {"Small_model": "Small model", "Llama_3": "Llama 3"}
    assert outputs.items[1] == {
        "id": "2",
        "context": [{"speaker": "User", "text": "Where is Paris?"}],
        "responses": {"Small_model": "Here.", "Llama_3": "In France."},
        "metadata": {"category": "facts"},
    }
    assert outputs.speakers == {"User": "user"}
    assert any("Small model, Llama 3" in note for note in outputs.notes)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_the_form_of_the_table_does_not_matter(tmp_path, delimiter):
    text = "\ufeff" + TABLE.replace(",", delimiter).replace("\n", "\r\n")
    (tmp_path / "o.csv.gz").write_bytes(gzip.compress(text.encode("utf-8")))
    assert read_outputs([tmp_path / "o.csv.gz"]).items == read_outputs([write(tmp_path / "o.csv", TABLE)]).items


def test_one_file_per_system_is_matched_by_context(tmp_path):
    first = [{"prompt": f"Question {n}?", "output": f"first {n}"} for n in (1, 2, 3)]
    second = [{"question": f"Question {n}?", "response": f"second {n}"} for n in (3, 1, 4)]
    files = [
        write(tmp_path / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        for name, rows in (("a", first), ("b", second))
    ]
    outputs = read_outputs(files)
    assert [item["responses"] for item in outputs.items] == [
        {"a": "first 1", "b": "second 1"},
        {"a": "first 3", "b": "second 3"},
    ]
    assert [item["id"] for item in outputs.items] == ["item-1", "item-2"]
    assert "2 contexts that not all systems answered are excluded" in outputs.notes
    assert "rows are matched by their context" in outputs.notes


def test_messages_are_turns_and_system_prompts_are_not_shown(tmp_path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello!"},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello. What is it?"}]},
        {"role": "user", "content": "Rice?"},
    ]
    row = {"messages": messages, "x": "Yes.", "y": "No."}
    outputs = read_outputs([write(tmp_path / "o.json", json.dumps([row]))])
    assert outputs.items[0]["context"] == [
        {"speaker": "User", "text": "Hello!"},
        {"speaker": "Assistant", "text": "Hello. What is it?"},
        {"speaker": "User", "text": "Rice?"},
    ]
    assert outputs.speakers == {"User": "user", "Assistant": "agent"}
    assert "1 system prompts and tool messages are not shown to raters" in outputs.notes


def test_a_part_is_drawn_at_random_and_always_the_same(tmp_path):
    rows = "".join(f"Question {n}?,a {n},b {n}\n" for n in range(50))
    path = write(tmp_path / "o.csv", "context,a,b\n" + rows)
    drawn = [item["id"] for item in read_outputs([path], n_items=5).items]
    assert len(drawn) == 5
    assert drawn == [item["id"] for item in read_outputs([path], n_items=5).items]
    assert drawn != [f"item-{n:02d}" for n in range(1, 6)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,prompt,a,b\n1,Hi?,x,\n", r"o.csv:2: no response of b"),
        ("id,prompt,a\n1,Hi?,x\n", "which columns are systems is not clear"),
        ("id,a,b\n1,x,y\n", r"o.csv:2: there is no context"),
        ("id,prompt,a,b\n1,Hi?,x,y\n1,Ho?,x,y\n", "the id '1' is given 2 times"),
    ],
)
def test_what_is_ambiguous_is_refused_with_its_line(tmp_path, text, words):
    with pytest.raises(DialometerError, match=words):
        read_outputs([write(tmp_path / "o.csv", text)])


def test_a_system_that_is_no_column_is_named_once(tmp_path):
    path = write(tmp_path / "o.csv", "id,prompt,small,large\n1,Hi?,x,y\n2,Ho?,x,y\n")
    with pytest.raises(DialometerError, match=r"there is no column 'larg'.*did you mean 'large'") as refused:
        read_outputs([path], systems=["small", "larg"])
    assert "no response" not in str(refused.value)


def test_files_that_cannot_be_matched_are_refused(tmp_path):
    one = write(tmp_path / "one.csv", "id,prompt,response\n1,Hi?,x\n")
    other = write(tmp_path / "three.csv", "id,prompt,response\n7,Ho?,x\n")
    twice = write(tmp_path / "four.csv", "id,prompt,response\n1,Hi?,x\n1,Hi?,y\n")
    for file, words in ((other, "no id and no context is in all"), (twice, "given on line 2")):
        with pytest.raises(DialometerError, match=words):
            read_outputs([one, file])


@pytest.mark.parametrize("second", ["prompt,response\nHi?,y\n", "id,prompt,response\n7,Hi?,y\n"])
def test_files_with_other_ids_or_none_are_matched_by_context(tmp_path, second):
    one = write(tmp_path / "one.csv", "id,prompt,response\n1,Hi?,x\n")
    outputs = read_outputs([one, write(tmp_path / "two.csv", second)])
    assert outputs.items[0]["responses"] == {"one": "x", "two": "y"}
    assert "rows are matched by their context" in outputs.notes


def test_ids_with_other_contexts_are_mentioned(tmp_path):
    one = write(tmp_path / "one.csv", "id,prompt,response\n1,Hi?,x\n2,Ho?,x\n")
    two = write(tmp_path / "two.csv", "id,prompt,response\n1,Hi?,y\n2,What?,y\n")
    assert any(note.startswith("1 of 2 ids have other contexts") for note in read_outputs([one, two]).notes)


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}


def whole_chats(word, key="messages", role="role", text="content"):
    """Whole chats that end with this word, as chat platforms write them."""
    said = [("user", "Hi?"), ("assistant", "Yes?"), ("user", "Rice?"), ("assistant", word)]
    turns = [{role: who, text: what} for who, what in said]
    return json.dumps({key: [*turns[:3], *([CALL] if key == "messages" else []), turns[3]]}) + "\n"


def test_of_whole_chats_the_last_response_is_judged(tmp_path):
    """Refused before: there was 'no column of responses'."""
    files = [
        write(tmp_path / "a.jsonl", whole_chats("first")),
        write(tmp_path / "b.jsonl", whole_chats("second", "conversations", "from", "value")),
        write(tmp_path / "c.csv", 'prompt,response\n"[{""role"": ""user"", ""content"": ""Ha?""}]",third\n'),
    ]
    outputs = read_outputs(files[:2])
    assert outputs.items[0]["responses"] == {"a": "first", "b": "second"}
    assert [turn["text"] for turn in outputs.items[0]["context"]] == ["Hi?", "Yes?", "Rice?"]
    assert any(note.startswith("whole chats") for note in outputs.notes)
    with pytest.raises(DialometerError, match="no context is in all"):
        read_outputs(files)


def test_a_column_may_name_the_system_of_each_row(tmp_path):
    """Model and response were taken for two systems before."""
    rows = "".join(f"Question {n}?,{model},{model} {n}\n" for n in (1, 2) for model in ("x-1", "y-2", "z-3"))
    outputs = read_outputs([write(tmp_path / "runs.csv", "prompt,model,response\n" + rows)])
    assert list(outputs.systems.values()) == ["x-1", "y-2", "z-3"]
    assert [list(item["responses"].values()) for item in outputs.items] == [
        ["x-1 1", "y-2 1", "z-3 1"],
        ["x-1 2", "y-2 2", "z-3 2"],
    ]


def test_chats_and_responses_are_compared_below_their_context(tmp_path):
    one = write(tmp_path / "v1.tsv", "user\tassistant\nHi?\tNo.\n")
    said = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Yes."}]
    two = write(tmp_path / "v2.jsonl", json.dumps({"messages": said}) + "\n")
    study_from_outputs("pairs", [one, two], tmp_path / "study")
    item = load_study(tmp_path / "study").items[0]
    assert item.responses == {"v1": "No.", "v2": "Yes."}


def test_the_study_is_ready_and_its_numbers_follow_the_files(tmp_path):
    path = write(tmp_path / "outputs.csv", TABLE)
    copied, notes = study_from_outputs("compare", [path], tmp_path / "study")
    study = load_study(tmp_path / "study")
    assert [system.label for system in study.spec.systems] == ["Small model", "Llama 3"]
    assert study.spec.design.items_per_rater == 2
    assert study.spec.analysis.comparisons[0].levels == ["Small_model", "Llama_3"]
    assert study.spec.recruitment.minutes < 5
    assert len(copied) == 5
    assert notes
    with pytest.raises(DialometerError, match="the texts of the template 'likert' are about its own systems"):
        study_from_outputs("likert", [path], tmp_path / "other")
    assert not (tmp_path / "other").exists()


QUESTIONS = ("How do I cook rice?", "Where is Paris?", "Write a haiku.")


def chats(path, system, order):
    """A log of chats, as programs around language models keep them."""
    rows = [
        {
            "messages": [
                {"role": "system", "content": f"You are {system}."},
                {"role": "user", "content": QUESTIONS[n]},
                {"role": "assistant", "content": f"{system} on {n}"},
            ]
        }
        for n in order
    ]
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_two_files_of_chats_become_pairs(tmp_path):
    first, second = chats(tmp_path / "v1.jsonl", "one", (0, 1, 2)), chats(tmp_path / "v2.jsonl", "two", (2, 0))
    _, notes = study_from_outputs("pairs", [first, second], tmp_path / "study")
    assert notes == ["dialogues are matched by their first turn", "dialogues without a counterpart are excluded: 1"]
    study = load_study(tmp_path / "study")
    assert [system.name for system in study.spec.systems] == ["v1", "v2"]
    assert study.spec.analysis.comparisons[0].levels == ["v1", "v2"]
    assert [(item.a.turns[-1].text, item.b.turns[-1].text) for item in study.items] == [
        ("one on 0", "two on 0"),
        ("one on 2", "two on 2"),
    ]
    assert {turn.speaker for item in study.items for turn in item.a.turns} == {"User", "Assistant"}
    assert study.spec.design.items_per_rater == 2


def test_dialogues_without_anything_in_common_are_paired_at_random(tmp_path):
    first = chats(tmp_path / "v1.jsonl", "one", (0,))
    second = chats(tmp_path / "v2.jsonl", "two", (1, 2))
    _, notes = study_from_outputs("pairs", [first, second], tmp_path / "study")
    assert notes == ["no id and no first turn is in both files, so dialogues are paired at random"]
    assert len(load_study(tmp_path / "study").items) == 1


def test_responses_to_the_same_prompts_are_compared_below_their_context(tmp_path):
    files = []
    for name in ("a", "b"):
        rows = [{"prompt": question, "response": f"{name}: {question}"} for question in QUESTIONS]
        files.append(write(tmp_path / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    study_from_outputs("pairs", files, tmp_path / "study")
    study = load_study(tmp_path / "study")
    assert study.spec.items.kind == "responses"
    assert study.items[0].responses == {"a": "a: How do I cook rice?", "b": "b: How do I cook rice?"}


def test_a_pair_has_two_sides(tmp_path):
    path = write(tmp_path / "o.csv", "prompt,x,y,z\nWhy?,1,2,3\n")
    with pytest.raises(DialometerError, match="a pair has two sides, but there are 3 systems"):
        study_from_outputs("pairs", [path], tmp_path / "study")
    assert "name one file each" in invoke("new", "pairs", tmp_path / "study", "--a", path, fails=True)
