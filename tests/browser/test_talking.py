"""Live conversations: replies, failures, lost connections, and a person in place of the agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from walking import DESKTOP, PHONE, Rater, Served, copy_study, shorten

pytestmark = pytest.mark.browser


def at_chat(page: Page, served: Served) -> Rater:
    rater = Rater(page)
    rater.begin(served.url)
    while not page.query_selector("#chat"):
        rater.one_screen()
    return rater


@pytest.fixture
def chat(tmp_path: Path, serve: Callable[..., Served]) -> Served:
    return serve(copy_study("chat", tmp_path, shorten))


def test_messages_are_counted_and_the_end_waits_for_them(chat: Served, open_page: Callable[..., Page]) -> None:
    rater = at_chat(open_page(**DESKTOP), chat)
    page = rater.page
    expect(page.locator("#chat-count")).to_contain_text("2 more messages needed")
    with page.expect_navigation():
        page.click("#end-chat")
    expect(page.locator(".summary")).to_contain_text("Please write at least 2 messages first (0 so far).")
    rater.say("<b>Hello</b> & good evening")
    expect(page.locator("#log .turn")).to_have_count(3)
    assert page.locator("#log .turn.end .said").inner_text() == "<b>Hello</b> & good evening"
    expect(page.locator("#chat-count")).to_contain_text("1 more message needed")
    page.reload()
    expect(page.locator("#log .turn")).to_have_count(3)
    rater.say("I like slow films")
    expect(page.locator("#chat-count")).to_contain_text("You may go on talking")
    rater.send()
    assert rater.key().startswith("item/")
    assert page.locator(".dialogue .turn").count() == 5


def test_a_conversation_that_is_full_goes_on_to_the_questions(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        for item in items:
            item |= {"min_turns": 1, "max_turns": 2}

    rater = at_chat(open_page(**PHONE), serve(copy_study("chat", tmp_path, change)))
    rater.talk()
    rater.talk()
    expect(rater.page.locator("#chat-count")).to_contain_text("has reached its length")
    expect(rater.page.locator("#say")).to_be_hidden()
    rater.page.reload()
    expect(rater.page.locator("#say")).to_be_hidden()


def test_an_agent_that_fails_is_asked_again(chat: Served, open_page: Callable[..., Page]) -> None:
    rater = at_chat(open_page(**DESKTOP), chat)
    page = rater.page
    failure = {"error": "The reply did not come.", "may_retry": True, "is_pending": False, "n_said": 1}

    def fail(route: Route) -> None:
        # The message reaches the server, the reply does not come back.
        route.fulfill(status=502, body=json.dumps(failure), content_type="application/json")

    page.route("**/s/chat", fail)
    rater.say("Are you there?")
    expect(page.locator("#chat-state")).to_contain_text("could not answer")
    expect(page.locator("#typing")).to_be_hidden()
    assert page.locator("#log .turn.end .said").inner_text() == "Are you there?"
    page.unroute("**/s/chat")
    page.route(
        "**/s/chat/retry",
        lambda route: route.fulfill(
            body=json.dumps({"reply": "Now I am.", "n_said": 1, "may_continue": False, "may_say": True}),
            content_type="application/json",
        ),
    )
    page.click("#retry button")
    expect(page.locator("#log .turn").last).to_contain_text("Now I am.")
    expect(page.locator("#retry")).to_be_hidden()
    expect(page.locator("#chat-count")).to_contain_text("1 message so far")


def test_a_message_sent_into_the_void_can_be_sent_again_and_counts_once(
    chat: Served, open_page: Callable[..., Page]
) -> None:
    rater = at_chat(open_page(**DESKTOP), chat)
    page = rater.page

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/s/chat", lose_the_answer)
    rater.say("Did this arrive?")
    expect(page.locator("#chat-state")).to_contain_text("The connection failed")
    assert page.input_value("#message") == "Did this arrive?"
    page.unroute("**/s/chat")
    page.click("#say button")
    expect(page.locator("#log .turn")).to_have_count(3)
    (session,) = chat.store.sessions.all()
    assert [turn.role for turn in chat.store.conversations.turns(session.id)] == ["user", "agent"]


def test_words_that_are_typed_while_a_message_fails_stay(chat: Served, open_page: Callable[..., Page]) -> None:
    page = at_chat(open_page(**DESKTOP), chat).page
    waiting: list[Route] = []
    page.route("**/s/chat", lambda route: waiting.append(route))  # noqa: PLW0108 - Playwright puts a mark on a handler
    page.fill("#message", "Did this arrive?")
    with page.expect_request("**/s/chat"):
        page.click("#say button")
    page.fill("#message", "I mean my first message.")
    waiting[0].abort()
    expect(page.locator("#chat-state")).to_contain_text("The connection failed")
    expect(page.locator("#message")).to_have_value("Did this arrive?\nI mean my first message.")


def test_unsent_words_survive_a_reload(chat: Served, open_page: Callable[..., Page]) -> None:
    page = at_chat(open_page(**DESKTOP), chat).page
    page.fill("#message", "I was about to s")
    page.reload()
    assert page.input_value("#message") == "I was about to s"


def test_without_scripts_a_conversation_and_all_scales_are_plain_forms(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(copy_study("chat", tmp_path, shorten))
    page = open_page(**DESKTOP, java_script_enabled=False)
    page.goto(served.url)
    page.click("main button")
    page.check('input[name="writes_english"] >> nth=0')
    page.click("#answers .actions button")
    page.click("button[value=agree]")
    for name in ("watches_films", "reads_books"):
        page.check(f'input[name="{name}"] >> nth=1')
    page.click("#answers .actions button")
    page.click("#answers .actions button")
    page.fill("#message", "No scripts here")
    page.click("#say button")
    expect(page.locator("#log .turn")).to_have_count(3)
    expect(page.locator("#chat-count")).to_contain_text("1 message so far")


@pytest.fixture
def wizard_study(tmp_path: Path) -> Path:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        shorten(spec, items)
        suggest = [{"type": "scripted", "options": {"otherwise": ["Have you seen Alien?"]}}]
        for system in spec["systems"]:
            system["agent"] = {"type": "wizard", "options": {"canned": ["Good question!"], "suggest": suggest}}

    return copy_study("chat", tmp_path, change)


@pytest.mark.slow
def test_wizards_answer_several_raters(
    wizard_study: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(wizard_study, wizard_key="open-sesame", pending_s=1.0)
    console = open_page(**DESKTOP)
    console.goto(f"{served.url}/wizard?key=open-sesame")
    assert "key=" not in console.url
    raters = [at_chat(open_page(**DESKTOP), served) for _ in range(2)]
    raters[0].say("First rater here")
    raters[1].say("Second rater here")
    expect(console.locator(".console-open.waits")).to_have_count(2)
    expect(console).to_have_title("(2) Wizard console")
    console.click(".console-open:has-text('First rater')")
    console.click("#console-suggestions button:has-text('Have you seen Alien?')")
    console.fill("#console-text", "Have you seen Alien, by any chance?")
    console.click(".console-open:has-text('Second rater')")
    assert console.input_value("#console-text") == ""
    console.click("#console-canned button")
    console.press("#console-text", "Enter")
    expect(raters[1].page.locator("#log .turn").last).to_contain_text("Good question!")
    console.click(".console-open:has-text('First rater')")
    assert console.input_value("#console-text") == "Have you seen Alien, by any chance?"
    console.click("#console-reply button")
    expect(raters[0].page.locator("#log .turn").last).to_contain_text("by any chance?")
    expect(console.locator(".console-open.waits")).to_have_count(0)
    other = open_page(**DESKTOP)
    other.goto(f"{served.url}/wizard?key=open-sesame")
    expect(other.locator(".console-open .state").first).to_contain_text("with Wizard 1")


def test_the_console_is_locked_without_the_key(
    wizard_study: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(wizard_study, wizard_key="open-sesame")
    page = open_page(**DESKTOP)
    for address in ("/wizard", "/wizard?key=guess"):
        page.goto(served.url + address)
        assert page.inner_text("h1") == "The wizard console is locked"
