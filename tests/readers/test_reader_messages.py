"""Chats with language models: OpenAI-style messages and ShareGPT's conversations."""

import json
import random

import pytest

from dialometer.errors import ReadError
from dialometer.model.dialogue import Media, ToolCall
from dialometer.readers import read_dialogues
from dialometer.readers.json_records import first_record


def read(tmp_path, *records, name="chats.jsonl", **options):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    reading = read_dialogues(path, **options)
    return list(reading), reading


def turns_of(dialogue):
    return [(turn.role, turn.text) for turn in dialogue.turns]


def test_messages_become_turns_and_the_prompt_is_kept(tmp_path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Capital of Peru?"},
        {"role": "assistant", "content": "Lima."},
    ]
    (dialogue,), reading = read(tmp_path, {"id": "p-1", "model": "small-7b", "messages": messages})
    assert reading.format == "messages"
    assert dialogue.id == "p-1"
    assert turns_of(dialogue) == [("user", "Capital of Peru?"), ("agent", "Lima.")]
    assert dialogue.metadata == {"model": "small-7b"}
    assert dialogue.system_prompt == "Be brief."


def test_conversations_of_sharegpt(tmp_path):
    said = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello!"}, {"from": "system", "value": "Note"}]
    (dialogue,), reading = read(tmp_path, {"id": 7, "conversations": said})
    assert reading.format == "messages"
    assert dialogue.id == "7"
    assert turns_of(dialogue) == [("user", "Hi"), ("agent", "Hello!")]
    assert dialogue.system_prompt == "Note"


def test_calls_of_tools_stay_with_the_answer_they_led_to(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"role": "user", "content": "Rain in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "4 mm"},
        {"role": "assistant", "content": "Yes, a little."},
    ]
    (dialogue,), reading = read(tmp_path, {"messages": messages})
    assert turns_of(dialogue) == [("user", "Rain in Oslo?"), ("agent", "Yes, a little.")]
    assert dialogue.turns[1].tool_calls == (ToolCall("weather", '{"city": "Oslo"}', "4 mm"),)
    assert not dialogue.metadata
    assert any("tool calls and their results" in str(warning) for warning in reading.warnings)


def test_a_chat_that_ends_with_a_call_keeps_it(tmp_path):
    said = [
        {"from": "human", "value": "Book it."},
        {"from": "gpt", "value": "I will."},
        {"from": "function_call", "value": "book()"},
        {"from": "observation", "value": "done"},
    ]
    (dialogue,), _ = read(tmp_path, {"conversations": said})
    assert turns_of(dialogue)[-1] == ("agent", "")
    assert dialogue.turns[-1].tool_calls == (ToolCall("tool", "book()", "done"),)


def test_results_find_their_call_and_calls_in_parts_are_read(tmp_path):
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("first", "second")]
    messages = [
        {"role": "user", "content": "Both, please."},
        {"role": "assistant", "content": "Looking …", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "second", "content": "2"},
        {"role": "tool", "tool_call_id": "first", "content": "1"},
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "third", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "3 \x1b[0m"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Three."}]},
    ]
    (dialogue,), _ = read(tmp_path, {"messages": messages})
    assert turns_of(dialogue) == [
        ("user", "Both, please."),
        ("agent", "Looking …"),
        ("user", "And?"),
        ("agent", "Three."),
    ]
    assert dialogue.turns[1].tool_calls == (ToolCall("first", "{}", "1"), ToolCall("second", "{}", "2"))
    assert dialogue.turns[3].tool_calls == (ToolCall("third", '{"x": 1}', "3 ␛[0m"),)
    assert dialogue.metadata["turn_fields"][3] == {"parts": [{"type": "thinking", "thinking": "hm"}]}


def test_parts_that_are_no_text_are_named_and_kept(tmp_path):
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]},
    ]
    (dialogue,), _ = read(tmp_path, {"messages": messages})
    assert turns_of(dialogue) == [("user", "What is this?\n[image]"), ("agent", "A cat.")]
    assert dialogue.metadata["turn_fields"][0] == {"parts": [image]}


def test_images_beside_the_file_are_media_of_the_turn(tmp_path):
    parts = [{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "media/cat.png"}}]
    (dialogue,), _ = read(tmp_path, {"messages": [{"role": "user", "content": parts}]})
    assert turns_of(dialogue) == [("user", "And this?")]
    assert dialogue.turns[0].media == (Media("image", "media/cat.png"),)


def test_an_array_of_chats_and_empty_replies(tmp_path):
    path = tmp_path / "chats.json"
    chats = [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ""}]} for _ in range(2)]
    path.write_text(json.dumps(chats))
    first, second = read_dialogues(path)
    assert (first.id, second.id) == ("chats-1", "chats-2")
    assert first.metadata["left_out_turns"]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"messages": [{"role": "user", "content": "x"}, "y"]}, r"must be an object, not a string \[messages\[1\]\]"),
        ({"messages": [{"role": "user", "content": 4}]}, "a text or a list of parts, not a number"),
        ({"messages": [{"role": "oracle", "content": "x"}]}, "oracle"),
        ({"messages": [{"role": "user", "content": [5]}]}, "a part must be"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path, record, words):
    with pytest.raises(ReadError, match=words):
        read(tmp_path, {"messages": [{"role": "user", "content": "ok"}]}, record)


STRANGE = (None, True, -1, 1.5, "", [], {}, "x", ["x"], {"type": ["x"]}, "\x00", "tool", [None], "\ud800", 10**30)


def changed(value, rng):
    """The value with some of its parts replaced by others that do not belong there."""
    if rng.random() < 0.08:
        return rng.choice(STRANGE)
    if isinstance(value, dict):
        return {key: changed(inner, rng) for key, inner in value.items()}
    return [changed(inner, rng) for inner in value] if isinstance(value, list) else value


def test_whatever_a_message_holds_is_read_or_refused_in_words(tmp_path):
    rng = random.Random(4)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts = [{"type": "image_url", "image_url": {"url": "a.png"}}, {"type": "tool_use", "name": "n", "input": {}}]
    messages = [
        {"role": "user", "content": [*parts, {"type": "text", "text": "x"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, "y"]},
    ]
    n_refused = 0
    for _ in range(150):
        try:
            read(tmp_path, {"messages": changed(messages, rng)}, format="messages")
        except ReadError:
            n_refused += 1
    assert 20 < n_refused < 150


@pytest.mark.parametrize("end", ["", "\\", '", "x": [1, {"y', '"}], "z": 1'])
def test_a_chat_is_recognised_whatever_the_length_of_its_first_line(tmp_path, end):
    """A tool result of 10 MB in the first line: the file was taken for another format, and refused."""
    long = 'a "word" \\ [{ ' * 90_000 + end
    messages = [
        {"role": "user", "content": "Hi?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": long},
        {"role": "assistant", "content": "Yes."},
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"id": "1", "messages": messages}) + "\n")
    (dialogue,) = read_dialogues(path)
    assert dialogue.turns[1].tool_calls[0].result == long.strip()
    assert [turn.text for turn in dialogue.turns] == ["Hi?", "Yes."]


@pytest.mark.parametrize("n", range(40, 110, 3))
def test_a_record_is_told_from_its_beginning(monkeypatch, n):
    monkeypatch.setattr("dialometer.readers.json_records.LONG_RECORD", 1)
    text = json.dumps(
        {"messages": [{"role": "user", "content": 'a\\"b{'}, {"role": "x", "n": [1, 2.5, True]}], "id": 7}
    )
    record = first_record(text[:n])
    assert record["messages"][0]["role"] == "user"
    assert json.dumps(record)[:30] == text[:30]
