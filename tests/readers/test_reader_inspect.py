"""Logs of Inspect, packed and as JSON."""

import json
import zipfile

import pytest

from dialometer.errors import ReadError
from dialometer.model.dialogue import ToolCall
from dialometer.readers import read_dialogues

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "sums", "model": "openai/small", "created": "2025-02-07T00:00:00+00:00", "run_id": "r1"},
    "plan": {},
    "results": {"scores": [{"metrics": {"mean": {"value": float("nan")}}}]},
}


def sample(name, epoch):
    call = {"id": "c1", "function": "add", "arguments": {"a": 2, "b": 2}, "type": "function"}
    return {
        "id": name,
        "epoch": epoch,
        "input": "2 + 2?",
        "target": "4",
        "messages": [
            {"role": "system", "content": "Use tools."},
            {"role": "user", "content": "2 + 2?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "function": "add", "content": "attachment://5f"},
            {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "…"}, {"type": "text", "text": "4."}]},
        ],
        "scores": {"match": {"value": "C", "answer": "4", "explanation": "as expected"}},
        "attachments": {"5f": "4.0"},
        "events": [{"event": "state"}],
    }


def packed(path, samples, header="header.json"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(header, json.dumps(HEADER))
        for number, entry in enumerate(samples):
            zipped.writestr(f"samples/{number}.json", json.dumps(entry, indent=2))


@pytest.mark.parametrize("form", ["eval", "old eval", "json"])
def test_samples_become_dialogues_with_scores(tmp_path, form):
    samples = [sample(1, 1), sample(1, 2), sample("b", 1)]
    path = tmp_path / f"log.{form.split()[-1]}"
    if form == "json":
        path.write_text(json.dumps({**HEADER, "results": None, "samples": samples}, indent=2))
    else:
        packed(path, samples, "header.json" if form == "eval" else "start.json")
    reading = read_dialogues(path)
    dialogues = list(reading)
    assert reading.format == "inspect"
    assert [dialogue.id for dialogue in dialogues] == ["1", "1.2", "b"]
    first = dialogues[0]
    assert [(turn.role, turn.text) for turn in first.turns] == [("user", "2 + 2?"), ("agent", "4.")]
    assert first.turns[1].tool_calls == (ToolCall("add", '{"a": 2, "b": 2}', "4.0"),)
    assert first.system_prompt == "Use tools."
    known = first.metadata
    assert (known["system"], known["task"], known["target"]) == ("openai/small", "sums", "4")
    assert (known["scores"], known["explanations"]) == ({"match": "C"}, {"match": "as expected"})


def test_a_sample_without_messages_has_its_input_and_output(tmp_path):
    bare = {
        "id": 1,
        "epoch": 1,
        "input": "Hi",
        "output": {"choices": [{"message": {"role": "assistant", "content": "Ho"}}]},
    }
    packed(tmp_path / "log.eval", [bare])
    (dialogue,) = read_dialogues(tmp_path / "log.eval")
    assert [turn.text for turn in dialogue.turns] == ["Hi", "Ho"]


def test_a_log_that_is_cut_says_what_to_do(tmp_path):
    packed(tmp_path / "log.eval", [sample(1, 1)])
    content = (tmp_path / "log.eval").read_bytes()
    (tmp_path / "log.eval").write_bytes(content[:-40])
    with pytest.raises(ReadError, match="inspect log convert"):
        list(read_dialogues(tmp_path / "log.eval", "inspect"))
