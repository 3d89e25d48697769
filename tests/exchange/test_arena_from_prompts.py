"""An arena from a folder of prompts: complete, neutral, and refused in words where something is missing."""

import json

import pytest

from commands import invoke
from dialometer.design.load import load_study

SYSTEMS = """
systems:
  - {name: one, agent: {type: scripted, options: {otherwise: [Yes.]}}}
  - {name: two, agent: {type: scripted, options: {otherwise: ["No, **rather** not."]}}}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "Rice cooking.txt").write_text("How do I\ncook rice?\n")
    (tmp_path / "prompts" / "basil.md").write_text("\ufeffHow do I keep basil alive?")
    (tmp_path / "systems.yaml").write_text(SYSTEMS)
    return tmp_path


def test_a_folder_of_prompts_becomes_a_study(here):
    invoke("new", "arena", "s", "--prompts", "prompts", "--agents", "systems.yaml")
    study = load_study(here / "s")
    assert [item.metadata["prompt"] for item in study.items] == ["How do I cook rice?", "How do I keep basil alive?"]
    assert study.spec.design.items_per_rater == 2
    assert study.spec.arena.pairs == "balanced"
    assert [c.levels for c in study.spec.analysis.comparisons] == [["one", "two"]] * 2
    texts = " ".join(study.texts.values())
    assert not any(word in texts for word in ("Maple", "Haze", "plant", "situation"))
    assert "2 questions" in texts
    invoke("simulate", "s", "--raters", 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("systems.yaml", SYSTEMS.replace("  - {name: two", "  - {name: one")), "one"),
        (("systems.yaml", SYSTEMS.replace("scripted", "scriptet")), "unknown agent 'scriptet'"),
        (
            ("systems.yaml", "systems:\n  - {name: one, agent: {type: scripted}}\n"),
            "add 'options:', and below it 'otherwise:'",
        ),
        (("prompts/basil.md", " \n"), "the file is empty"),
        (("prompts/rice-cooking.md", "How long?"), "two files are called 'rice_cooking'"),
    ],
)
def test_what_is_missing_is_said(here, change, message):
    (here / change[0]).write_text(change[1])
    refused = invoke("new", "arena", "s", "--prompts", "prompts", "--agents", "systems.yaml", fails=True)
    assert message in refused
    assert not (here / "s").exists()


def test_prompts_and_agents_belong_together(here):
    refused = invoke("new", "arena", "s", "--prompts", "prompts", fails=True)
    assert "--agents systems.yaml" in " ".join(refused.split())
    both = ("new", "arena", "s", "--prompts", "prompts", "--agents", "systems.yaml", "--items", 3)
    assert "leave --responses, --systems and --items out" in " ".join(invoke(*both, fails=True).split())
    talk = [{"role": role, "content": "Hello."} for role in ("user", "assistant", "user")]
    (here / "talks.jsonl").write_text(json.dumps({"messages": talk}))
    refused = invoke("new", "arena", "s", "--prompts", "talks.jsonl", "--agents", "systems.yaml", fails=True)
    assert "has several turns" in refused
    lines = [json.dumps({"prompt": "What is new?"})]
    (here / "prompts.jsonl").write_text("\n".join(lines))
    invoke("new", "arena", "from-file", "--prompts", "prompts.jsonl", "--agents", "systems.yaml")
