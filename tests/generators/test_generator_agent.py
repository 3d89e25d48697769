"""A trained bot as a system of a chat study: declared, checked, spoken to, its details kept."""

import shutil

import pytest
import yaml

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import AgentError
from dialometer.flow.agents import agent_problems
from dialometer.flow.chat import Chats
from dialometer.model.dialogue import Turn
from dialometer.storage.store import Store


@pytest.fixture
def folder(bots, tmp_path):
    copy_template("chat", tmp_path / "s")
    shutil.copytree(bots / "hred", tmp_path / "s" / "hred")
    path = tmp_path / "s" / "study.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    spec["systems"][0]["agent"] = {"type": "generator", "options": {"bot": "hred", "strategy": "sample", "top_p": 0.8}}
    path.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return tmp_path / "s"


def test_the_bot_is_looked_up_in_the_study(folder):
    assert agent_problems(load_study(folder)) == []
    shutil.rmtree(folder / "hred")
    problem = agent_problems(load_study(folder))[0]
    assert "holds no trained bot" in problem.message
    assert "bot: hred" in (folder / "study.yaml").read_text(encoding="utf-8").splitlines()[problem.line - 1]


def test_it_answers_a_conversation_longer_than_its_window(folder):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        agent = Chats(study, store).agent(study.spec.systems[0].name)
        history = [Turn("You", "I like the oven.", "user")]
        said = []
        for _ in range(4):
            reply = agent.reply(history, seed=2)
            assert reply.text
            assert agent.reply(history, seed=2) == reply
            said.append(reply.text)
            history += [Turn("Agent", reply.text, "agent"), Turn("You", "I like the garlic.", "user")]
        assert reply.details["n_turns_read"] == 3
        assert reply.details["model"] == "hred"
        assert reply.details["decoding"]["top_p"] == 0.8
        assert len(reply.details["bot_sha256"]) == 64
        assert len(set(said)) > 1


def test_a_bot_that_broke_is_an_agent_error(folder):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        agent = Chats(study, store).agent(study.spec.systems[0].name)
        (folder / "hred" / "bot.safetensors").write_bytes(b"broken")
        with pytest.raises(AgentError, match="the bot cannot answer"):
            agent.reply([Turn("You", "I like the oven.", "user")])
