"""Agents answer prompts for a study: kept, continued after failures, within a budget, with mistakes at their place."""

import json

import pytest
import yaml

from commands import invoke
from fake_models import Said, fake_models


@pytest.fixture
def models():
    with fake_models() as serving:
        serving.answers = [lambda body: Said([f"{body['messages'][0]['content']} → {body['messages'][-1]['content']}"])]
        yield serving


@pytest.fixture
def asked(tmp_path, models):
    """Runs the command on two prompts and one model with two system prompts."""

    def run(*more, live=None, prompts="What is a cat?\n\nName a colour.\n", name="prompts.txt", **kwargs):
        (tmp_path / name).write_text(prompts)
        options = {**models.options("openai"), "n_retries": 0}
        systems = [
            {"name": v, "agent": {"type": "openai", "options": {**options, "system_prompt": p}}}
            for v, p in (("v1", "Be kind."), ("v2", "Be short."))
        ]
        (tmp_path / "systems.yaml").write_text(yaml.safe_dump({"systems": systems, "live": live or {}}))
        words = (tmp_path / name, "--systems", tmp_path / "systems.yaml", "--out", tmp_path / "items.jsonl", *more)
        return invoke("respond", *words, **kwargs)

    return run


def test_every_system_answers_every_prompt(asked, tmp_path, models):
    told = asked("--parallel", 4)
    assert "Wrote 2 items" in told
    first, second = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert first["context"] == [{"speaker": "User", "text": "What is a cat?"}]
    assert first["responses"] == {"v1": "Be kind. → What is a cat?", "v2": "Be short. → What is a cat?"}
    assert second["id"] != first["id"]
    kept = [json.loads(line) for line in (tmp_path / "items.jsonl.replies.jsonl").read_text().splitlines()]
    assert {entry["details"]["model"] for entry in kept} == {"m-1"}
    assert "exists already" in asked(fails=True)
    assert len(models.requests) == 4
    invoke("new", "compare", tmp_path / "study", "--responses", tmp_path / "items.jsonl")
    assert "No errors" in invoke("check", tmp_path / "study")


def test_a_run_that_failed_continues(asked, tmp_path, models):
    say = models.answers[0]
    models.answers = [say, say, Said(status=500), say]
    told = asked(fails=True)
    assert "1 of 4 responses did not come" in told
    assert "status 500" in told
    assert not (tmp_path / "items.jsonl").exists()
    assert json.loads(asked("--json"))["n_asked"] == 1
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 2


def test_a_budget_stops_it(asked, models):
    prices = {"m": {"input": 1000.0, "output": 10_000.0}}
    assert "the budget is spent" in asked(live={"prices": prices, "budget": 0.05}, fails=True)
    assert len(models.requests) == 2
    assert "the budget is spent" in asked(live={"prices": prices, "budget": 0.05}, fails=True), "by the run before"
    assert len(models.requests) == 2
    told = json.loads(asked("--json", live={"prices": prices, "budget": 5}))
    assert told["cost"] == pytest.approx(2 * 0.039)


def test_conversations_are_prompts_too(asked, tmp_path, models):
    talk = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Bye"},
    ]
    asked(prompts=json.dumps({"id": "a", "messages": talk, "topic": "greetings"}) + "\n", name="p.jsonl")
    (item,) = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert (item["id"], item["metadata"]) == ("a", {"topic": "greetings"})
    assert [message["role"] for message in models.requests[0][1]["messages"]] == ["system", "user", "assistant", "user"]


def test_mistakes_have_their_place(tmp_path):
    (tmp_path / "p.txt").write_text("Hello\n")
    (tmp_path / "s.yaml").write_text(
        "systems:\n  - name: a\n    agent:\n      type: ollama\n      options:\n        modle: m\n"
    )
    words = ("respond", tmp_path / "p.txt", "--systems", tmp_path / "s.yaml", "--out", tmp_path / "o.jsonl")
    assert "s.yaml:6" in invoke(*words, fails=True)
    (tmp_path / "p.txt").write_text("\n")
    assert "there are no prompts" in invoke(*words, fails=True)
