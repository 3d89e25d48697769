"""Conversations word by word: pieces as they come, one pace for all systems, streams that break, pages that are closed."""

import json
import time

import pytest
from taking_part import running

from dialometer.web.rater.live_text import end_of_blocks
from fake_models import Said, fake_models

ACCEPT = "application/x-ndjson, application/json"


@pytest.fixture
def models():
    with fake_models() as serving:
        yield serving


@pytest.fixture
def talk(make_study, site, models):
    """A site whose rater is at a conversation with a streaming model; ``live`` is that part of the study file."""

    def make(presentation=None, **live):
        options = {"base_url": f"{models.url}/v1", "model": "m", "timeout_s": 30, "n_retries": 0}
        systems = [{"name": name, "agent": {"type": "openai", "options": options}} for name in ("juno", "tak")]
        there = site(make_study("chat", n_items=2, systems=systems, live=live, presentation=presentation or {}))
        browser = there.browser().start()
        browser.walk_to(there, "chat")
        return there, browser

    return make


def post(browser, text="Hello", path="/s/chat", **more):
    headers = {"X-CSRF-Token": browser.fields["csrf"], "Accept": ACCEPT}
    return browser.client.post(path, json={"text": text, **more}, headers=headers)


def lines(answer):
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["x-accel-buffering"] == "no"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_pieces_come_and_the_outcome_is_last(talk, models):
    there, browser = talk()
    models.answers = [Said(["I ", "am ", "well."], pause_s=0.4)]
    *pieces, outcome = lines(post(browser, n_said=0))
    assert len(pieces) >= 2
    assert "".join(piece["text"] for piece in pieces) == "I am well."
    assert outcome["reply"] == "I am well."
    assert outcome["n_said"] == 1
    said, answered = there.store.conversations.turns()
    assert (said.text, answered.text) == ("Hello", "I am well.")
    meta = answered.meta
    assert (meta["model"], meta["usage"]["completion_tokens"]) == ("m-1", 3)
    assert meta["first_token_s"] < meta["latency_s"]
    assert meta["conversation_id"] == models.requests[0][1]["user"]
    assert said.session_id not in meta["conversation_id"]
    # The same message again gets what is stored, as a whole.
    again = post(browser, n_said=0)
    assert again.headers["content-type"] == "application/json"
    assert again.json()["reply"] == "I am well."
    assert len(models.requests) == 1


def test_the_second_message_is_in_the_same_conversation(talk, models):
    _, browser = talk()
    post(browser, "One")
    post(browser, "Two")
    first, second = (body for _, body, _ in models.requests)
    assert first["user"] == second["user"]
    assert [message["content"] for message in second["messages"]][-3:] == ["One", "I am well.", "Two"]


def test_a_stream_that_breaks_keeps_the_message_and_what_was_seen(talk, models):
    there, browser = talk()
    models.answers = [Said(["I am ", "so", "!"], pause_s=0.1, breaks_after=2), Said(["Well."])]
    *pieces, outcome = lines(post(browser))
    assert "".join(piece["text"] for piece in pieces) == "I am so"
    assert outcome["may_retry"] is True
    assert [turn.role for turn in there.store.conversations.turns()] == ["user"]
    *_, outcome = lines(post(browser, path="/s/chat/retry"))
    assert outcome["reply"] == "Well."
    (failed,) = there.store.conversations.turns()[-1].meta["failed_tries"]
    assert failed["text"] == "I am so"
    assert "broke off" in failed["reason"]


def test_refusals_stay_what_they_are(talk, models):
    _, browser = talk()
    assert post(browser, "").status_code == 409
    models.answers = [Said(status=401)]
    answer = post(browser)
    assert answer.status_code == 502
    assert answer.json()["may_retry"] is True
    assert post(browser, "Another").status_code == 409


def test_one_pace_for_all(talk, models):
    there, browser = talk(first_word_s=0.8, characters_per_s=40)
    models.answers = [Said(["x" * 20])]
    began = time.monotonic()
    *pieces, outcome = lines(post(browser))
    took_s = time.monotonic() - began
    assert took_s >= 0.8 + 20 / 40
    assert outcome["reply"] == "x" * 20
    assert len(pieces) > 2
    turn = there.store.conversations.turns()[-1]
    assert turn.meta["pace"] == {"first_word_s": 0.8, "characters_per_s": 40.0, "is_late": False}
    assert turn.meta["latency_s"] < 0.8, "what the system took itself is recorded"
    # Without a script, and where the study shows responses whole, the same time passes.
    began = time.monotonic()
    browser.post("/s/chat", {"csrf": browser.fields["csrf"], "text": "Again"})
    assert time.monotonic() - began >= 0.8 + 20 / 40
    models.answers = [Said(["y"], first_pause_s=0.9)]
    lines(post(browser))
    assert there.store.conversations.turns()[-1].meta["pace"]["is_late"] is True


def test_blocks_of_markdown_are_drawn_when_they_are_whole(talk, models):
    _, browser = talk(presentation={"text": "markdown"})
    said = ["A **list**:\n\n- one\n", "- two\n\n", "```python\nx = 1\n\n", "y = 2\n```\n", "\nEnd <b>"]
    models.answers = [Said(said, pause_s=0.12)]
    *pieces, outcome = lines(post(browser))
    html = "".join(piece.get("html", "") for piece in pieces)
    assert "<strong>list</strong>" in html
    assert html.count("<li>") == 2
    assert "<code" in html
    assert pieces[-1]["text"].endswith("End <b>"), "the last block is text until the end"
    assert "<b>" not in html
    assert "End &lt;b&gt;" in outcome["html"]
    assert outcome["reply"] == "".join(said)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("one", ""),
        ("one\n\n", "one\n\n"),
        ("one\n\ntwo\n", "one\n\n"),
        ("```\na\n\nb", ""),
        ("```\na\n\nb\n```\n\nc", "```\na\n\nb\n```\n\n"),
        ("~~~\n```\n\n", ""),
    ],
)
def test_where_blocks_end(text, whole):
    assert text[: end_of_blocks(text, 0)] == whole


def test_a_study_may_show_responses_whole(talk, models):
    _, browser = talk(streaming=False)
    answer = post(browser)
    assert answer.json()["reply"] == "I am well."
    assert "stream" not in models.requests[0][1]


def test_a_closed_page_loses_nothing(talk, models, http):
    there, browser = talk()
    models.answers = [Said(["I ", "am ", "well."], pause_s=0.15)]
    with running(there.app) as url:
        http.cookies.set("dialometer_session", browser.client.cookies["dialometer_session"])
        headers = {"X-CSRF-Token": browser.fields["csrf"], "Accept": ACCEPT}
        with http.stream("POST", f"{url}/s/chat", json={"text": "Hello"}, headers=headers) as answer:
            assert next(answer.iter_lines()).startswith('{"text": "I ')
        waited = http.post(f"{url}/s/chat/retry", json={}, headers=headers).json()
    assert waited["reply"] == "I am well."
    assert len(models.requests) == 1
    assert [turn.text for turn in there.store.conversations.turns()] == ["Hello", "I am well."]
