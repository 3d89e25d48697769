"""An avatar as a system of a chat study: declared in the study file, checked, spoken to, its confidence kept."""

import shutil

import pytest
import yaml
from retrieval_files import DIALOGUES, KB

from dialometer.agents import AGENTS
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import AgentError
from dialometer.flow.agents import agent_problems, build_agent
from dialometer.flow.chat import Chats
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.simulated import EngineAccess
from dialometer.model.dialogue import Turn
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store


@pytest.fixture(scope="module")
def trained(type_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    type_in(
        "retrieval", "train", KB, "--out", "maren", "-r", "tfidf", "--calibrate-on", DIALOGUES, "--folds", 0, cwd=folder
    )
    return folder / "maren"


@pytest.fixture
def folder(trained, tmp_path):
    """The chat template with the avatar in place of one partner; its folder stands in the study's."""
    copy_template("chat", tmp_path / "s")
    shutil.copytree(trained, tmp_path / "s" / "maren")
    path = tmp_path / "s" / "study.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    spec["systems"][0]["agent"] = {"type": "retriever", "options": {"folder": "maren"}}
    path.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return tmp_path / "s"


def test_the_folder_is_looked_up_in_the_study(folder, type_in, tmp_path):
    assert agent_problems(load_study(folder)) == []
    type_in("check", "s", cwd=tmp_path)
    shutil.rmtree(folder / "maren")
    problem = agent_problems(load_study(folder))[0]
    assert "holds no trained retriever" in problem.message
    lines = (folder / "study.yaml").read_text(encoding="utf-8").splitlines()
    assert "folder: maren" in lines[problem.line - 1]


def test_it_answers_and_tells_how_sure_it_is(folder):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        agent = Chats(study, store).agent(study.spec.systems[0].name)
        reply = agent.reply([Turn("You", "What's your name?", "user")])
        assert reply.text == "My name is Maren. Maren Tveit."
        assert reply.details["answer"] == "a03"
        assert 0 < reply.details["confidence"] <= 1
        declined = agent.reply([Turn("You", "Which football club plays in Lisbon?", "user")])
        assert declined.details["has_declined"]
        assert declined.details["answer"] is None


def test_a_whole_study_with_simulated_raters(folder):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store)
        simulate(study, EngineAccess(flow), draw_truth(study, 1), n_raters=2, seed=1, start_ms=now_ms())
        assert sum(store.counts.session_counts().values()) == 2


def test_a_broken_avatar_is_an_error_of_the_agent(folder):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        agent = Chats(study, store).agent(study.spec.systems[0].name)
        (folder / "maren" / "knowledge_base.jsonl").write_text("", encoding="utf-8")
        with pytest.raises(AgentError, match="the avatar cannot answer"):
            agent.reply([Turn("You", "What's your name?", "user")])


def test_an_avatar_of_the_studys_folder_suggests_to_a_wizard(folder):
    options = {"suggest": [{"type": "retriever", "options": {"folder": "maren"}}]}
    wizard = build_agent("wizard", options, folder)
    assert wizard.suggestions([Turn("You", "What's your name?", "user")]) == ["My name is Maren. Maren Tveit."]


def test_an_agent_that_nobody_connected_says_so(folder):
    agent = AGENTS.get("retriever").model_validate({"folder": str(folder / "maren")})
    with pytest.raises(AgentError, match="no retrieval is connected"):
        agent.reply([Turn("You", "What's your name?", "user")])
