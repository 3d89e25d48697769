"""Agents behind chat items: declared in the study file, checked with their place, scripted without repeating themselves."""

import pytest

from dialometer.agents import AGENTS
from dialometer.agents.scripted import Scripted
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import FlowError
from dialometer.flow.agents import agent_problems
from dialometer.flow.chat import Chats
from dialometer.model.dialogue import Turn


@pytest.fixture
def folder(tmp_path):
    copy_template("chat", tmp_path / "s")
    return tmp_path / "s"


def said(text):
    return [Turn("User", text, "user")]


def test_the_first_rule_that_matches_answers():
    agent = Scripted.model_validate(
        {
            "replies": [{"match": r"\bfilms?\b", "say": ["One.", "Two."]}, {"match": ".", "say": ["Any."]}],
            "otherwise": ["?"],
        }
    )
    assert agent.reply(said("Which FILM?")).text == "One."
    history = [*said("film"), Turn("Agent", "One.", "agent"), *said("another film")]
    assert agent.reply(history).text == "Two."
    assert agent.reply(said("hello")).text == "Any."
    assert agent.reply([]).text == "?"


def test_the_template_is_in_order(folder):
    assert agent_problems(load_study(folder)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type: scripted", "type: scriptd", "unknown agent 'scriptd'"),
        ("otherwise:", "otherwize:", "unknown key 'otherwize'"),
    ],
)
def test_mistakes_have_their_place(folder, old, new, message):
    path = folder / "study.yaml"
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    found = next(p for p in agent_problems(load_study(folder)) if message in p.message)
    lines = path.read_text().splitlines()
    assert new.split(":")[0] in lines[found.line - 1]
    assert found.remedy.startswith("did you mean")


def test_unknown_agents_are_listed():
    assert "scripted" in AGENTS.names()


def test_messages_are_checked_before_they_are_stored(shorten, arrive):
    person = arrive(shorten("chat", 2))
    person.walk_to("chat")
    chats = Chats(person.flow.study, person.flow.store)
    item_id = person.screen.item.id
    for text in ("", "   ", "x" * 4001, "bell\x07"):
        with pytest.raises(FlowError):
            chats.say(person.session, item_id, text, 1)
    assert not any(turn.role == "user" for turn in chats.history(person.session, item_id))
    with pytest.raises(FlowError, match="not a conversation"):
        chats.say(person.session, "nowhere", "hello", 1)
