"""Talking with agents through pages and API, and what happens when an agent fails."""

import itertools
import threading

import pytest
from taking_part import running, says, sends

from dialometer.errors import DialometerError
from dialometer.model.item import ChatItem


@pytest.fixture
def chat_study(make_study):
    """Two conversations; with an address, both systems are behind it."""

    def make(url="", **options):
        if not url:
            return make_study("chat", n_items=2)
        agent = {"type": "http", "options": {"url": url, "timeout_s": 30, "n_retries": 0, **options}}
        return make_study("chat", n_items=2, systems=[{"name": name, "agent": agent} for name in ("juno", "tak")])

    return make


def at_chat(there):
    browser = there.browser().start()
    return browser, browser.walk_to(there, "chat")


def say(browser, text, **more):
    headers = {"X-CSRF-Token": browser.fields["csrf"]}
    return browser.client.post("/s/chat", json={"text": text, **more}, headers=headers)


def retry(browser):
    return browser.client.post("/s/chat/retry", json={}, headers={"X-CSRF-Token": browser.fields["csrf"]})


def said(there):
    return [(turn.role, turn.text) for turn in there.store.conversations.turns()]


def test_a_conversation_by_script_then_the_questions(chat_study, site, database_url):
    there = site(chat_study(), database_url)
    browser, screen = at_chat(there)
    assert screen.item.scenario.split()[0] in browser.page
    assert browser.send().status == 422  # not enough was said
    for n in range(screen.item.min_turns):
        answer = say(browser, f"Hello, message {n}", n_said=n)
        assert answer.status_code == 200
        content = answer.json()
        assert content["reply"]
        assert content["n_said"] == n + 1
        assert content["may_continue"] is (n + 1 >= screen.item.min_turns)
    browser.get("/s")
    assert "Hello, message 0" in browser.page
    browser.send()
    assert browser.status == 200
    assert there.app.service.flow.screen(there.only_session()).kind == "item"
    assert "Hello, message 0" in browser.page, "the conversation stands above the questions"
    # It is over: nobody can go on talking.
    late = say(browser, "One more thing")
    assert late.status_code == 409
    assert late.json()["may_retry"] is False
    turns = there.store.conversations.turns()
    assert [turn.role for turn in turns] == ["user", "agent"] * screen.item.min_turns
    assert all(a.at_ms <= b.at_ms for a, b in itertools.pairwise(turns))


def test_a_conversation_by_plain_forms(chat_study, site):
    there = site(chat_study())
    browser, _ = at_chat(there)
    browser.post("/s/chat", {"csrf": browser.fields["csrf"], "text": "Hello there"})
    assert browser.status == 200
    assert "Hello there" in browser.page
    assert [role for role, _ in said(there)] == ["user", "agent"]
    browser.post("/s/chat", {"csrf": browser.fields["csrf"], "text": "  "})
    assert browser.status == 200
    assert len(said(there)) == 2


def test_messages_that_cannot_be_taken_are_refused_in_words(chat_study, site):
    there = site(chat_study())
    browser, screen = at_chat(there)
    for text in ("", "   ", "x" * 4001, "bell \x07"):
        answer = say(browser, text)
        assert answer.status_code == 409
        assert answer.json()["error"]
    for body in ({}, {"text": 5}, {"text": "x", "n_said": "1"}):
        headers = {"X-CSRF-Token": browser.fields["csrf"]}
        assert browser.client.post("/s/chat", json=body, headers=headers).status_code == 400
    assert said(there) == []
    for n in range(screen.item.max_turns):
        assert say(browser, f"m{n}").status_code in (200, 429)
        there.app.service.messages._buckets.clear()
    full = say(browser, "too much")
    assert full.status_code == 409
    assert "length" in full.json()["error"]


def test_a_message_sent_twice_is_said_once(chat_study, site):
    there = site(chat_study())
    browser, _ = at_chat(there)
    first = say(browser, "Hello", n_said=0)
    again = say(browser, "Hello", n_said=0)
    assert first.json() == again.json()
    assert len(said(there)) == 2
    other_tab = say(browser, "Something else", n_said=0)
    assert other_tab.status_code == 409
    assert "elsewhere" in other_tab.json()["error"]
    assert say(browser, "Hello", n_said=1).json()["n_said"] == 2


FAILURES = {
    "time-out": [says("late", pause_s=3)],
    "500": [sends(b"{}", 500)],
    "empty": [says("   ")],
    "nothing": [sends(b"")],
    "not JSON": [sends(b"<html>")],
    "no text": [sends(b'{"reply": {"a": 1}}')],
    "another field": [sends(b'{"answer": "x"}')],
    "not found": [sends(b"{}", 404)],
    "endless": [sends(b'{"reply": "' + b"x" * 30_000 + b'"}')],
    "huge": [sends(b"[" + b"1," * 600_000 + b"1]")],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_agent_s_failure_keeps_the_message_and_can_be_asked_again(failure, chat_study, site, agent_server):
    limit = 1 if failure == "time-out" else 30
    there = site(chat_study(agent_server.url, timeout_s=limit))
    browser, _ = at_chat(there)
    agent_server.answers[:] = FAILURES[failure] * 2
    answer = say(browser, "Are you there?")
    assert answer.status_code == 502
    content = answer.json()
    assert (content["may_retry"], content["n_said"], content["is_pending"]) == (True, 1, False)
    assert "127.0.0.1" not in content["error"], "raters do not see addresses"
    assert said(there) == [("user", "Are you there?")]
    browser.get("/s")
    assert "Are you there?" in browser.page
    # A second message has to wait for the reply to the first.
    assert say(browser, "Hello?").status_code == 409
    assert retry(browser).status_code == 502
    agent_server.answers[:] = [says("Here I am.")]
    mended = retry(browser)
    assert (mended.status_code, mended.json()["reply"]) == (200, "Here I am.")
    assert said(there) == [("user", "Are you there?"), ("agent", "Here I am.")]
    assert retry(browser).json()["reply"] == "Here I am.", "asking again gives what is stored"
    assert agent_server.asked[-1]["body"]["text"] == "Are you there?"
    counted = there.client.get("/metrics").text
    assert 'dialometer_replies_total{by="failed"} 2' in counted
    assert 'dialometer_replies_total{by="agent"} 1' in counted


def test_a_retry_by_a_plain_form(chat_study, site, agent_server):
    there = site(chat_study(agent_server.url))
    browser, _ = at_chat(there)
    agent_server.answers[:] = [sends(b"", 404), says("Better now.")]
    browser.post("/s/chat", {"csrf": browser.fields["csrf"], "text": "Hello"})
    assert "Better now." not in browser.page
    browser.post("/s/chat/retry", {"csrf": browser.fields["csrf"]})
    assert "Better now." in browser.page
    browser.post("/s/chat/retry", {"csrf": browser.fields["csrf"]})
    assert browser.status == 200


def test_an_agent_that_is_not_there(chat_study, site):
    there = site(chat_study("http://127.0.0.1:9/"))
    browser, _ = at_chat(there)
    assert say(browser, "Hello").status_code == 502


def test_two_tabs_cannot_talk_over_each_other(chat_study, site, agent_server, http):
    there = site(chat_study(agent_server.url))
    is_refused = threading.Event()

    def slowly(body):
        assert is_refused.wait(25), "the other message is refused while this one is answered"
        return says("Slowly.")(body)

    agent_server.answers[:] = [slowly]
    with running(there.app) as url:
        browser = there.browser().start()
        browser.walk_to(there, "chat")
        http.cookies.set("dialometer_session", browser.client.cookies["dialometer_session"])
        headers = {"X-CSRF-Token": browser.fields["csrf"]}
        answers = []

        def talk(text):
            answers.append(http.post(f"{url}/s/chat", json={"text": text}, headers=headers))
            is_refused.set()

        threads = [threading.Thread(target=talk, args=(text,)) for text in ("One", "Two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert [role for role, _ in said(there)] == ["user", "agent"]
    assert len(agent_server.asked) == 1


def test_a_slow_agent_does_not_stop_the_others(chat_study, site, agent_server, http):
    there = site(chat_study(agent_server.url))
    is_asked, may_answer = threading.Event(), threading.Event()

    def slowly(body):
        is_asked.set()
        assert may_answer.wait(25)
        return says("Slowly.")(body)

    agent_server.answers[:] = [slowly]
    with running(there.app) as url:
        browser = there.browser().start()
        browser.walk_to(there, "chat")
        headers = {"X-CSRF-Token": browser.fields["csrf"]}
        http.cookies.set("dialometer_session", browser.client.cookies["dialometer_session"])
        talking = threading.Thread(target=lambda: http.post(f"{url}/s/chat", json={"text": "Hi"}, headers=headers))
        talking.start()
        assert is_asked.wait(60)
        assert http.get(f"{url}/healthz").status_code == 200
        may_answer.set()
        talking.join()


def test_chats_are_limited_per_person(chat_study, site):
    there = site(chat_study(), messages_per_minute=2)
    browser, _ = at_chat(there)
    statuses = [say(browser, f"m{n}").status_code for n in range(3)]
    assert statuses == [200, 200, 429]


def test_a_program_talks(chat_study, site, database_url):
    study = chat_study()
    there = site(study, database_url)
    program = there.open_api()
    shown = program.walk_to(study, "chat")
    item = study.items_by_id[study.own_id(shown["item"]["id"])]
    assert isinstance(item, ChatItem)
    opening = [turn["text"] for turn in shown["chat"]]
    assert opening == ([item.opening] if item.opening else [])
    assert program.submit(shown["screen"], {}).status_code == 422
    assert program.post("/session/chat/retry").status_code == 409
    for n in range(item.min_turns):
        answer = program.post("/session/chat", {"text": f"Hello {n}", "n_said": n})
        assert answer.status_code == 200, answer.text
    assert answer.json()["may_continue"] is True
    assert len(program.screen()["chat"]) == len(opening) + 2 * item.min_turns
    assert program.post("/session/chat", {"text": ""}).status_code == 409
    assert program.post("/session/chat", {"text": 5}).status_code == 422
    assert program.submit(shown["screen"], {}).status_code == 200
    assert program.post("/session/chat", {"text": "more"}).status_code == 409


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"type": "http", "options": {"url": "ftp://x"}}, "juno.*not in order.*ftp"),
        ({"type": "http", "options": {}}, "options.url"),
        ({"type": "parrot"}, "unknown agent 'parrot'"),
    ],
)
def test_options_of_an_agent_are_checked_before_serving(agent, words, make_study, site):
    study = make_study("chat", n_items=2, systems=[{"name": name, "agent": agent} for name in ("juno", "tak")])
    with pytest.raises(DialometerError, match=words):
        site(study)
