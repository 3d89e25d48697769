"""Live agents of a study: what they cost, the budget that stops them, names they give away, and a first message to each."""

import json

import pytest
import yaml

from commands import invoke, result_of
from dialometer.agents.interface import Reply
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import AgentError
from dialometer.flow.agents import agent_problems
from dialometer.flow.chat import Chats
from fake_models import Said, fake_models

PRICES = {"m": {"input": 1000.0, "output": 10_000.0}}
COST = (9 * 1000 + 3 * 10_000) / 1e6


@pytest.fixture
def models():
    with fake_models() as serving:
        yield serving


@pytest.fixture
def folder(tmp_path, models):
    """The template of conversations, with the same model behind both systems."""

    def make(live=None, agent="openai", **options):
        copy_template("chat", tmp_path / "s")
        path = tmp_path / "s" / "study.yaml"
        spec = yaml.safe_load(path.read_text())
        for system in spec["systems"]:
            given = {**models.options(agent), "timeout_s": 60, "n_retries": 0, **options}
            system["agent"] = {"type": agent, "options": given}
        spec["live"] = live or {}
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        return tmp_path / "s"

    return make


@pytest.fixture
def talking(folder, arrive):
    def make(**live):
        person = arrive(load_study(folder(live)))
        person.walk_to("chat")
        chats = Chats(person.flow.study, person.flow.store)
        return chats, lambda text: chats.say(person.session, person.screen.item.id, text, 1)

    return make


def test_every_response_has_its_cost_and_the_budget_stops_them(talking, models):
    chats, say = talking(prices=PRICES, budget=2 * COST, currency="EUR")
    assert say("One").details["cost"] == pytest.approx(COST)
    assert say("Two").details["currency"] == "EUR"
    with pytest.raises(AgentError, match=r"budget for agents is spent: 0\.078 EUR of 0\.078 EUR") as caught:
        say("Three")
    assert "raise it" in caught.value.remedy
    assert len(models.requests) == 2
    # Another process, or the same after a restart, knows it too.
    with pytest.raises(AgentError, match="spent"):
        Chats(chats.study, chats.store).spending.check()
    assert chats.store.conversations.agent_costs() == (pytest.approx(2 * COST), 2)


def test_what_broke_off_has_cost_something_too(folder, arrive, models):
    person = arrive(load_study(folder({"prices": PRICES, "budget": 100})))
    person.walk_to("chat")
    chats = Chats(person.flow.study, person.flow.store)
    item_id = person.screen.item.id
    chats.hear(person.session, item_id, "Hello", 1)
    models.answers = [Said(["x" * 400, "y"], pause_s=0.05, breaks_after=1), Said()]
    with pytest.raises(AgentError, match="broke off") as caught:
        chats.answer(person.session, item_id, on_text=lambda _text: None)
    assert caught.value.where.startswith("system '")
    (failed,) = chats.answer(person.session, item_id).details["failed_tries"]
    n_read = sum(len(turn.text) for turn in chats.history(person.session, item_id)[:-1]) // 4 + 1
    assert failed["cost"] == pytest.approx((n_read * 1000 + 101 * 10_000) / 1e6), "estimated from the lengths"
    assert failed["is_estimated"] is True
    assert chats.store.conversations.agent_costs()[0] == pytest.approx(failed["cost"] + COST)


def test_a_response_that_gives_a_system_away_is_marked(talking, models):
    chats, say = talking()
    name = chats.study.spec.systems[0].name
    models.answers = [Said([f"I am {name.upper()}, not another."]), Said(["I attack."])]
    assert say("Who are you?").details["names_systems"] == [name]
    assert "names_systems" not in say("And?").details


@pytest.mark.parametrize(
    ("live", "words"),
    [
        ({"prices": {"n": PRICES["m"]}}, "no agent has the model 'n'"),
        ({"budget": 5}, "the budget needs the price of the model 'm'"),
    ],
)
def test_prices_are_checked(folder, live, words):
    study = load_study(folder(live))
    (problem,) = agent_problems(study)
    assert words in problem.message
    assert problem.line
    assert problem.remedy


def test_a_first_message_to_each_agent(folder, models):
    place = folder()
    told = json.loads(invoke("check", place, "--call-agents", "--json"))
    assert told["problems"] == []
    first, second = told["agents"]
    assert (first["reply"], first["agent"], first["details"]["model"]) == ("I am well.", "openai", "m-1")
    assert first["message"] == second["message"]
    shown = invoke("check", place, "--call-agents")
    assert "response  I am well." in shown
    assert "model m-1 · 9 tokens read, 3 written" in shown


def test_a_wrong_reply_field_names_system_option_and_keys(tmp_path, models):
    copy_template("chat", tmp_path / "s")
    path = tmp_path / "s" / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    options = {"url": f"{models.url}/v1/chat/completions", "reply_field": "answer", "extra": {"model": "m"}}
    spec["systems"][1]["agent"] = {"type": "http", "options": options}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    told = json.loads(result_of("check", tmp_path / "s", "--call-agents", "--json").stdout)
    (problem,) = told["problems"]
    system = spec["systems"][1]["name"]
    assert f"the system '{system}': the agent's answer holds no text at reply_field 'answer'" in problem["message"]
    assert "choices.0.message.content" in problem["message"]
    assert "usage.prompt_tokens (a number)" in problem["message"]
    assert problem["field"] == "systems.1.agent.options.reply_field"
    assert "reply_field: answer" in path.read_text().splitlines()[problem["line"] - 1]


def test_suggestions_to_a_wizard_are_paid_from_the_budget(folder, arrive, models):
    place = folder({"prices": PRICES, "budget": 2 * COST})
    path = place / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    for system in spec["systems"]:
        system["agent"] = {"type": "wizard", "options": {"suggest": [system["agent"]]}}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    person = arrive(load_study(place))
    person.walk_to("chat")
    chats = Chats(person.flow.study, person.flow.store)
    item = person.flow.study.items_by_id[person.screen.item.id]
    chats.hear(person.session, item.id, "One", 1)
    assert chats.suggestions(person.session, item)
    assert chats.spending._spent() == pytest.approx(COST)
    assert person.flow.store.conversations.agent_costs() == (0.0, 0)
    chats.store_reply(person.session, item.id, 1, Reply("By hand.", {"wizard": "Ann"}), 2)
    assert person.flow.store.conversations.agent_costs() == (pytest.approx(COST), 1)
    chats.hear(person.session, item.id, "Two", 3)
    assert chats.suggestions(person.session, item)
    n_asked = len(models.requests)
    assert chats.suggestions(person.session, item) == [], "the budget is spent"
    assert len(models.requests) == n_asked
