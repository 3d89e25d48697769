"""Agents behind addresses, with a real server on loopback that answers well, badly, slowly or not at all."""

import gzip
import json
import threading
import time
import tracemalloc
import zlib

import pytest
from pydantic import ValidationError

from dialometer.agents import AGENTS
from dialometer.agents.calling import split_lines
from dialometer.agents.scripted import Rule
from dialometer.agents.tries import retry_after_s
from dialometer.errors import AgentError
from dialometer.flow.spending import cost_of
from dialometer.model.dialogue import Turn
from dialometer.model.live import Live
from loopback import Handler, serving_http

HISTORY = [Turn("Agent", "Hello!", "agent"), Turn("User", "How are you?", "user")]


@pytest.fixture
def system():
    """A server whose answers are a list of (status, body, headers, pause_s); the last one stays. A pause may be an event, too."""

    class Answering(Handler):
        def reply(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.asked.append((self.path, asked, dict(self.headers)))
            answers = self.server.answers
            status, body, headers, pause_s = answers.pop(0) if len(answers) > 1 else answers[0]
            pause_s.wait(120) if isinstance(pause_s, threading.Event) else time.sleep(pause_s)
            self.answer(status, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)

    with serving_http(Answering, asked=[], answers=[]) as server:
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server


def http_agent(system, **options):
    return AGENTS.get("http").model_validate({"url": f"{system.url}/talk", "timeout_s": 30, **options})


def openai_agent(system, **options):
    return AGENTS.get("openai").model_validate(
        {"base_url": f"{system.url}/v1/", "model": "m", "timeout_s": 30, **options}
    )


def ok(body, **headers):
    return (200, body, headers, 0.0)


def completion(content, reason="stop"):
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": reason}
    return ok({"model": "m-1", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})


def test_the_conversation_goes_out_and_the_reply_comes_back(system, monkeypatch):
    monkeypatch.setenv("TALK_KEY", "s3cret")
    system.answers = [ok({"output": [{"text": "  Fine, thanks.\r\n"}]})]
    agent = http_agent(
        system, reply_field="output.0.text", headers={"X-Key": "Key ${TALK_KEY}"}, extra={"persona": "film fan"}
    )
    reply = agent.reply(HISTORY, seed=7)
    assert reply.text == "Fine, thanks."
    assert reply.details["n_tries"] == 1
    assert 0 <= reply.details["latency_s"] < 5
    ((path, body, headers),) = system.asked
    assert path == "/talk"
    assert headers["X-Key"] == "Key s3cret"
    assert body == {
        "persona": "film fan",
        "messages": [{"role": "agent", "text": "Hello!"}, {"role": "user", "text": "How are you?"}],
        "text": "How are you?",
        "seed": 7,
    }


def test_a_chat_model_gets_its_prompt_and_settings(system, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "k")
    system.answers = [completion("I am well.")]
    agent = openai_agent(system, system_prompt="Be brief.", temperature=0.2, max_tokens=50, api_key_env="MODEL_KEY")
    reply = agent.reply(HISTORY, seed=3)
    assert reply.text == "I am well."
    assert reply.details["usage"] == {"prompt_tokens": 9, "completion_tokens": 3}
    assert (reply.details["model"], reply.details["finish_reason"]) == ("m-1", "stop")
    ((path, body, headers),) = system.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer k"
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [m["role"] for m in body["messages"]] == ["system", "assistant", "user"]
    assert (body["temperature"], body["max_tokens"], body["seed"], body["model"]) == (0.2, 50, 3, "m")


def test_without_a_key_none_is_sent(system, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    system.answers = [completion("Hi.")]
    openai_agent(system).reply(HISTORY)
    assert "Authorization" not in system.asked[0][2]


def test_what_may_pass_is_tried_again(system):
    system.answers = [(503, b"", {"Retry-After": "0"}, 0), (500, b"", {"Retry-After": "0"}, 0), ok({"reply": "Now."})]
    reply = http_agent(system, n_retries=2).reply(HISTORY)
    assert reply.text == "Now."
    assert reply.details["n_tries"] == 3
    assert len(system.asked) == 3


def test_what_will_not_pass_is_not_tried_again(system):
    system.answers = [(400, b"", {}, 0)]
    with pytest.raises(AgentError, match="status 400"):
        http_agent(system, n_retries=5).reply(HISTORY)
    assert len(system.asked) == 1


def test_the_limit_holds_for_all_tries_together(system):
    system.answers = [(503, b"", {}, 0)]
    began = time.monotonic()
    with pytest.raises(AgentError, match="status 503"):
        http_agent(system, n_retries=10, timeout_s=0.8).reply(HISTORY)
    assert time.monotonic() - began < 30  # the pauses between ten tries take minutes


def test_a_slow_system_is_not_waited_for(system):
    is_over = threading.Event()
    system.answers = [(200, {"reply": "late"}, {}, is_over)]
    began = time.monotonic()
    with pytest.raises(AgentError, match=r"within 0\.2 s"):
        http_agent(system, timeout_s=0.2).reply(HISTORY)
    assert time.monotonic() - began < 30
    is_over.set()


def dripping(*, begin: bytes, then: bytes):
    """A server that sends the beginning of an answer, and then the same bytes again and again, without an end."""

    class Dripping(Handler):
        def reply(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.close_connection = True
            try:
                self.wfile.write(begin)
                for _ in range(1200):
                    self.wfile.write(then)
                    time.sleep(0.05)
            except OSError:
                pass

    return serving_http(Dripping)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("begin", "then"),
    [
        (OK + b"X: ", b"a"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
        (OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08" + bytes(6), b"a"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"a"),
        (OK + b"\r\n", b" "),
    ],
)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_limit_holds_for_an_answer_that_never_ends(begin, then, is_streamed):
    """Each read is answered in time; only all of them together take too long."""
    with dripping(begin=begin, then=then) as server:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        agent = AGENTS.get("openai").model_validate({"base_url": url, "model": "m", "timeout_s": 0.5, "n_retries": 0})
        began = time.monotonic()
        with pytest.raises(AgentError):
            list(agent.stream(HISTORY)) if is_streamed else agent.reply(HISTORY)
        assert time.monotonic() - began < 30


def test_an_answer_that_unpacks_to_far_more_is_refused(system):
    """A megabyte is the limit of what comes out, not of what is sent, and no more than that is ever held."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(100)) + packer.flush()
    system.answers = [ok(packed, **{"Content-Encoding": "gzip"})]
    tracemalloc.start()
    try:
        with pytest.raises(AgentError, match="too large"):
            http_agent(system).reply(HISTORY)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


def test_packed_answers_are_read(system):
    content = json.dumps({"reply": "Fine." * 3000}).encode()
    for name, packed in (("gzip", gzip.compress(content)), ("deflate", zlib.compress(content)), ("identity", content)):
        system.answers = [ok(packed, **{"Content-Encoding": name})]
        assert http_agent(system).reply(HISTORY).text == "Fine." * 3000
    for name, packed in (("br", content), ("gzip", content), ("gzip", gzip.compress(content)[:-900])):
        system.answers = [ok(packed, **{"Content-Encoding": name})]
        with pytest.raises(AgentError):
            http_agent(system).reply(HISTORY)


def test_a_line_that_comes_in_small_pieces_is_read_at_once():
    began = time.process_time()
    pieces = [b"a"] * 900_000
    assert [len(line) for line in split_lines(iter([*pieces, b"\nb", b"c\r\n", b"d"]))] == [900_000, 2, 1]
    assert time.process_time() - began < 25
    with pytest.raises(AgentError, match="without an end"):
        list(split_lines(iter([b"a" * 600_000] * 3)))


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": 10**4000, "completion_tokens": 1}, {"prompt_tokens": -5}, {"prompt_tokens": True}, [1], "x" * 9],
)
def test_counts_that_cannot_be_are_not_told(usage, system):
    """A negative count would refill the budget, an endless one cannot be multiplied by a price."""
    system.answers = [ok({"model": "m" * 90_000, "choices": [{"message": {"content": "Hi."}}], "usage": usage})]
    reply = openai_agent(system).reply(HISTORY)
    assert "prompt_tokens" not in reply.details.get("usage", {})
    assert len(str(reply.details)) < 2000
    live = Live.model_validate({"prices": {"m": {"input": 1, "output": 1}}})
    assert cost_of(live, "m", reply.details, HISTORY, reply.text)["is_estimated"]


@pytest.mark.parametrize(
    "after", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2030 00:00:00 +9999999999"]
)
def test_a_date_that_cannot_be_says_nothing(after):
    assert retry_after_s(after) is None


def test_a_place_in_an_answer_is_written_in_plain_digits(system):
    for place in ("\u00b2", "9" * 5000, "-1"):
        system.answers = [ok(["a", "b"])]
        with pytest.raises(AgentError, match="reply_field"):
            http_agent(system, reply_field=place).reply(HISTORY)


def test_a_variable_that_no_header_can_hold(system, monkeypatch):
    monkeypatch.setenv("TALK_KEY", "schl\u00fcssel")
    with pytest.raises(AgentError, match="X-Key"):
        http_agent(system, headers={"X-Key": "${TALK_KEY}"}).reply(HISTORY)


def test_nobody_there():
    agent = AGENTS.get("http").model_validate({"url": "http://127.0.0.1:9/", "n_retries": 0})
    with pytest.raises(AgentError, match=r"cannot be reached.*ConnectError"):
        agent.reply(HISTORY)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ok(b""), "not JSON"),
        (ok(b"<p>"), "not JSON"),
        (ok(b"[" * 100_000), "not JSON"),
        (ok({}), "no text"),
        (ok([]), "no text"),
        (ok({"reply": None}), "no text"),
        (ok({"reply": 5}), "no text"),
        (ok({"reply": " \n "}), "empty"),
        (ok({"reply": "\x00\x07"}), "empty"),
        (ok({"reply": "x" * 20_001}), "longer"),
        (ok(b"1" * 1_100_000), "too large"),
        ((302, b"", {"Location": "/x"}, 0), "status 302"),
        ((204, b"", {}, 0), "status 204"),
        ((200, b"no gzip", {"Content-Encoding": "gzip"}, 0), "DecodingError"),
    ],
)
def test_answers_that_cannot_be_shown(answer, words, system):
    system.answers = [answer]
    with pytest.raises(AgentError, match=words) as caught:
        http_agent(system, n_retries=0).reply(HISTORY)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ok({"choices": []}), "no choices"),
        (ok({"error": "x"}), "reports: x"),
        (completion(None), "empty"),
        (completion(""), "empty"),
        (completion("x", "content_filter"), "held"),
        ((401, b"", {}, 0), "status 401"),
    ],
)
def test_models_that_do_not_answer(answer, words, system):
    system.answers = [answer]
    with pytest.raises(AgentError, match=words):
        openai_agent(system, n_retries=0).reply(HISTORY)


def test_control_characters_are_taken_out_and_counted(system):
    system.answers = [ok({"reply": "A\x00B\x1bC\nD"})]
    reply = http_agent(system).reply(HISTORY)
    assert reply.text == "ABC\nD"
    assert reply.details["n_characters_removed"] == 2


def test_a_secret_that_is_not_set_is_named_but_addresses_hide_theirs(system, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    system.answers = [(403, b"", {}, 0)]
    with pytest.raises(AgentError, match="NO_SUCH_KEY"):
        http_agent(system, headers={"X": "${NO_SUCH_KEY}"}).reply(HISTORY)
    agent = AGENTS.get("http").model_validate({"url": f"{system.url}/talk?key=secret"})
    with pytest.raises(AgentError) as caught:
        agent.reply(HISTORY)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://x"},
        {"url": "nothing"},
        {"url": "http://"},
        {},
        {"url": "http://x", "timeout_s": 0},
        {"url": "http://x", "headers": {"A B": "c"}},
        {"url": "http://x", "headers": {"A": "c\nd"}},
        {"url": "http://x", "headers": {"A": "\u00e4"}},
        {"url": "http://x", "headers": {"Content-Length": "5"}},
        {"url": "http://x:99999"},
        {"url": "http://x", "tiemout_s": 3},
    ],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(ValidationError):
        AGENTS.get("http").model_validate(options)


def test_a_wizard_answers_only_at_the_console():
    wizard = AGENTS.get("wizard").model_validate({"canned": ["Yes."]})
    with pytest.raises(AgentError, match="answered by a person"):
        wizard.reply(HISTORY)
    scripted = {"type": "scripted", "options": {"otherwise": ["I see."]}}
    assert AGENTS.get("wizard").model_validate({"suggest": [scripted, scripted]}).suggestions(HISTORY) == ["I see."]
    gone = {"type": "local", "options": {"model": "/removed/since/then.gguf"}}
    left = AGENTS.get("wizard").model_validate({"suggest": [gone, scripted]})
    assert left.suggestions(HISTORY) == ["I see."], "a model that is no longer there suggests nothing"
    with pytest.raises(ValidationError, match="cannot suggest"):
        AGENTS.get("wizard").model_validate({"suggest": [{"type": "wizard"}]})


def test_an_expression_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="is not a regular expression"):
        Rule(match="(" * 5000 + ")" * 5000, say=["Hello."])
