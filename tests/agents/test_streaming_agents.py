"""Responses of language models word by word, from a scripted server that also breaks off, never ends or speaks for others."""

import itertools
import json
import time
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from dialometer.agents import AGENTS
from dialometer.agents.access import AgentAccess
from dialometer.agents.tries import retry_after_s
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn
from fake_models import Said, fake_models

HISTORY = [Turn("Agent", "Hello!", "agent"), Turn("User", "How are you?", "user")]


@pytest.fixture
def models():
    with fake_models() as serving:
        yield serving


@pytest.fixture(params=["openai", "anthropic", "ollama"])
def kind(request):
    return request.param


@pytest.fixture
def agent(models, kind):
    def make(**options):
        given = {**models.options(kind), "timeout_s": 30, "system_prompt": "Be brief.", **options}
        return AGENTS.get(kind).model_validate(given)

    return make


def heard(agent, **more):
    *deltas, last = agent.stream(HISTORY, seed=3, **more)
    assert last.text == ""
    assert all(delta.reply is None for delta in deltas)
    return [delta.text for delta in deltas], last.reply


def test_words_come_one_by_one_and_the_last_piece_is_the_whole_reply(agent, models, kind):
    models.answers = [Said(["I ", "am ", "wéll."], first_pause_s=0.05, pause_s=0.02)]
    pieces, reply = heard(agent(temperature=0.2, max_tokens=50))
    assert pieces == ["I ", "am ", "wéll."]
    assert reply.text == "I am wéll."
    details = reply.details
    assert details["model"] == "m-1"
    assert details["usage"] == {"prompt_tokens": 9, "completion_tokens": 3}
    sent = details["parameters"]
    assert sent["model"] == "m"
    settings = {
        "openai": {"temperature": 0.2, "max_tokens": 50, "seed": 3},
        "anthropic": {"temperature": 0.2, "max_tokens": 50},
        "ollama": {"options": {"temperature": 0.2, "num_predict": 50, "seed": 3}},
    }[kind]
    assert {**sent, **settings} == sent
    assert len(sent["system_prompt_sha256"]) == 64
    assert "messages" not in sent
    assert 0.05 <= details["first_token_s"] < details["latency_s"]
    assert details["finish_reason"] == ("end_turn" if kind == "anthropic" else "stop")
    body = models.requests[0][1]
    if kind == "anthropic":
        assert body["system"] == "Be brief."
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    else:
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert [message["role"] for message in body["messages"]] == ["system", "assistant", "user"]


def test_a_whole_reply_tells_the_same(agent, models):
    reply = agent().reply(HISTORY, seed=3)
    assert reply.text == "I am well."
    assert reply.details["first_token_s"] == reply.details["latency_s"]
    assert reply.details["usage"]["prompt_tokens"] == 9
    assert not models.requests[0][1].get("stream")


def test_an_agent_that_cannot_stream_gives_all_at_once(models):
    scripted = AGENTS.get("scripted").model_validate({"otherwise": ["I see."]})
    pieces, reply = heard(scripted)
    assert pieces == ["I see."]
    assert reply.text == "I see."
    assert reply.details["latency_s"] == reply.details["first_token_s"] >= 0
    models.answers = [Said(ignores_stream=True)]
    server_without = AGENTS.get("openai").model_validate({"base_url": f"{models.url}/v1", "model": "m"})
    assert heard(server_without)[1].text == "I am well."
    assert heard(server_without.model_copy(update={"streaming": False}))[0] == ["I am well."]
    assert "stream" not in models.requests[-1][1]


def test_a_conversation_has_an_id_of_its_own(agent, models, kind):
    told = agent().in_conversation("c-1")
    assert heard(told)[1].details["conversation_id"] == "c-1"
    heard(agent())
    first, second = (json.dumps(body) for _, body, _ in models.requests)
    assert ("c-1" in first) is (kind != "ollama"), "Ollama has no place for it"
    assert "c-1" not in second


def test_keys_come_from_the_environment(agent, models, kind, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "k-1")
    heard(agent(api_key_env="SOME_KEY"))
    headers = models.requests[0][2]
    if kind == "anthropic":
        assert (headers["x-api-key"], headers["anthropic-version"]) == ("k-1", "2023-06-01")
    else:
        assert headers["authorization"] == "Bearer k-1"
    hidden = agent(api_key_env="SOME_KEY")
    hidden.restrict(AgentAccess((), ("127.0.0.1",), ()))
    assert [option for option, *_ in hidden.refusals(AgentAccess((), ("127.0.0.1",), ()))] == ["api_key_env"]
    with pytest.raises(AgentError, match="may not read the variable SOME_KEY"):
        heard(hidden)
    assert len(models.requests) == 1


def test_what_anthropic_wants_before_it_is_asked():
    with pytest.raises(ValidationError, match="max_tokens"):
        AGENTS.get("anthropic").model_validate({"model": "m"})
    with pytest.raises(ValidationError, match="temperature"):
        AGENTS.get("anthropic").model_validate({"model": "m", "max_tokens": 5, "temperature": 1.5})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(["a", "b"], breaks_after=1), "broke off"),
        (Said(["a", "b"], is_unfinished=True), "broke off"),
        (Said(["a"], error="overloaded"), "reports: overloaded"),
        (Said(["x" * 500], is_endless=True), "longer than 20,000"),
        (Said(["a"], is_endless=True, pause_s=0.02), r"not complete within 0\.3 s"),
        (Said(["a"], finish="content_filter"), "held the response back"),
        (Said([" ", "\n"]), "empty"),
        (Said(["a"], role="user"), "answered as 'user'"),
        (Said([""], finish="tool_calls"), "asks for a tool"),
        (Said(status=401, error="the key sk-secret1 is wrong"), r"status 401 \(the key \*\*\* is wrong\)"),
        (Said(status=429, headers={"Retry-After": "60"}), "asks to wait 60 s"),
    ],
)
def test_streams_that_fail_say_why(agent, models, monkeypatch, said, words):
    monkeypatch.setenv("SOME_KEY", "sk-secret1")
    models.answers = [said]
    timeout_s = 0.3 if "within" in words else 30
    began = time.monotonic()
    with pytest.raises(AgentError, match=words) as caught:
        heard(agent(timeout_s=timeout_s, api_key_env="SOME_KEY"))
    assert caught.value.remedy
    assert time.monotonic() - began < 25


def test_a_busy_provider_is_asked_again_after_the_time_it_names(agent, models):
    models.answers = [
        Said(status=429, headers={"Retry-After": "0.05"}),
        Said(status=529, headers={"Retry-After": "0"}),
        Said(),
    ]
    _, reply = heard(agent())
    assert reply.details["n_tries"] == 3
    assert reply.details["latency_s"] >= 0.05


def test_a_stream_that_breaks_before_its_first_line_is_tried_again(agent, models, monkeypatch):
    monkeypatch.setattr("dialometer.agents.tries.FIRST_PAUSE_S", 0.0)
    tries = itertools.count()
    for form in ("_OpenAI", "_Anthropic", "_Ollama"):
        monkeypatch.setattr(f"fake_models.{form}.begin", lambda said, body: [])
    models.answers = [lambda _body: Said(breaks_after=0) if next(tries) == 0 else Said()]
    assert heard(agent())[1].details["n_tries"] == 2


def test_words_of_the_wait():
    now = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s("3") == 3
    assert retry_after_s("0.25") == 0.25
    assert retry_after_s("Mon, 16 Nov 2026 12:00:07 GMT", now) == 7
    assert retry_after_s("Mon, 16 Nov 2026 11:00:00 GMT", now) == 0
    assert [retry_after_s(text) for text in ("", "soon", "inf", "nan")] == [None] * 4


SPOKEN = ["Assistant: Fine.", "\nUser", ": And you?\nAssistant: Well."]


@pytest.mark.parametrize(
    ("labels", "pieces", "text"),
    [
        ("keep", SPOKEN, "".join(SPOKEN)),
        ("cut", SPOKEN, "Fine."),
        ("cut", ["Fine. User: is a word."], "Fine. User: is a word."),
        ("fail", ["Assistant: Fine."], "Fine."),
    ],
)
def test_a_response_that_speaks_for_others(agent, models, labels, pieces, text):
    models.answers = [Said(pieces)]
    _, reply = heard(agent(speaker_labels=labels))
    assert reply.text == text
    if pieces is SPOKEN:
        assert reply.details["speaker_labels"] == (["Assistant", "User"])
        assert reply.details.get("cut_text", "").startswith("User: And you?" if labels == "cut" else "")
    assert agent(speaker_labels=labels).reply(HISTORY).text == text


@pytest.mark.parametrize("labels", ["cut", "fail"])
def test_a_response_that_is_only_anothers(agent, models, labels):
    models.answers = [Said(["User: I say hello."]) if labels == "cut" else Said(SPOKEN)]
    with pytest.raises(AgentError, match="speaks for another: it has a line of 'User'"):
        heard(agent(speaker_labels=labels))


def test_an_endless_dialogue_is_stopped_where_another_speaks(agent, models):
    models.answers = [Said(["Fine.\n", "User: And?\n"], is_endless=True, pause_s=0.001)]
    assert heard(agent(speaker_labels="cut"))[1].text == "Fine."
