"""Two conversations side by side in a real browser: one that fails, the tabs of a phone, and a page loaded again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from walking import DESKTOP, PHONE, Rater, Served, copy_study, shorten

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def at_arena(page: Page, served: Served) -> Rater:
    rater = Rater(page)
    rater.begin(served.url)
    while not page.query_selector("#arena"):
        rater.one_screen()
    return rater


@pytest.fixture
def arena(tmp_path: Path, serve: Callable[..., Served]) -> Served:
    def one_is_down(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        shorten(spec, items)
        down = {"type": "http", "options": {"url": "http://127.0.0.1:9/", "n_retries": 0, "timeout_s": 2}}
        spec["systems"] = [{**spec["systems"][0], "agent": down}, spec["systems"][1]]
        spec["analysis"] = {"comparisons": []}

    return serve(copy_study("arena", tmp_path, one_is_down))


def test_one_system_is_down_and_the_rater_goes_on_to_the_vote(arena: Served, open_page: Callable[..., Page]) -> None:
    rater = at_arena(open_page(**DESKTOP), arena)
    page = rater.page
    rater.say("My rice gets mushy. How do I cook it?")
    failed = page.locator(".arena-side", has=page.locator(".arena-retry:visible"))
    expect(failed.locator(".chat-state")).to_contain_text("No response came")
    expect(failed).to_have_count(1)
    expect(page.locator(".arena-side .turn.start")).to_have_count(1)
    failed.get_by_role("button", name="Try again").click()
    expect(failed.locator(".chat-state")).to_contain_text("No response came")
    expect(failed.locator(".typing")).to_be_hidden()
    page.reload()
    expect(page.locator(".arena-side .turn.end")).to_have_count(2)
    rater.say("And how much water?")
    expect(page.locator("#chat-count")).to_contain_text("or vote")
    rater.send()
    (session,) = arena.store.sessions.all()
    turns = arena.store.conversations.turns(session.id)
    assert [turn.role for turn in turns].count("user") == 4
    assert [turn.role for turn in turns].count("agent") == 2


def test_a_message_that_did_not_arrive_goes_back_into_its_field(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    rater = at_arena(open_page(**DESKTOP), serve(copy_study("arena", tmp_path, shorten)))
    page = rater.page

    def lose(route: Route) -> None:
        route.abort()

    page.route("**/s/arena", lose)
    rater.say("My rice gets mushy.")
    expect(page.locator(".chat-state").first).to_contain_text("The connection failed")
    expect(page.locator("#message")).to_have_value("My rice gets mushy.")
    page.unroute("**/s/arena")
    page.click("#say button")
    expect(page.locator(".arena-side .turn.start")).to_have_count(2)
    expect(page.locator("#message")).to_have_value("")


UNTIL_THE_END = """() => {
  const own = window.fetch;
  window.fetch = async (...given) => {
    const response = await own(...given);
    if (!String(given[0]).endsWith("/s/arena")) return response;
    const lines = (await response.text()).trimEnd().split("\\n");
    const coded = (some) => new TextEncoder().encode(`${some.join("\\n")}\\n`);
    return new Response(new ReadableStream({ start(answer) {
      answer.enqueue(coded(lines.slice(0, -1)));
      window.end = () => { answer.enqueue(coded(lines.slice(-1))); answer.close(); };
    } }));
  };
}"""
"""Both replies come at once, and the end of the answer only when the test says so."""


def test_the_next_message_waits_for_the_end_of_the_answer(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    """Sent before, it would be taken for the last one once more, or its replies for those of the last one."""
    served = serve(copy_study("arena", tmp_path, shorten))
    rater = at_arena(open_page(**DESKTOP), served)
    page = rater.page
    page.evaluate(UNTIL_THE_END)
    rater.say("My rice gets mushy. How do I cook it?")
    expect(page.locator(".arena-side .turn.start")).to_have_count(2)
    expect(page.locator(".typing:visible")).to_have_count(0)
    expect(page.locator("#say button")).to_have_attribute("aria-disabled", "true")
    page.fill("#message", "And how much water?")
    page.press("#message", "Enter")
    expect(page.locator(".arena-side .turn.end")).to_have_count(2)
    expect(page.locator("#message")).to_have_value("And how much water?")
    page.evaluate("() => window.end()")
    page.click("#say button")
    expect(page.locator(".arena-side .turn.start")).to_have_count(4)
    page.evaluate("() => window.end()")
    expect(page.locator("#chat-count")).to_contain_text("2 messages so far")
    expect(page.locator(".arena-retry:visible")).to_have_count(0)
    (session,) = served.store.sessions.all()
    turns = served.store.conversations.turns(session.id)
    assert [turn.role for turn in turns].count("user") == 4


def test_a_phone_shows_one_side_at_a_time_with_the_field_in_view(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    rater = at_arena(open_page(**PHONE), serve(copy_study("arena", tmp_path, shorten)))
    page = rater.page
    rater.say("My house plant has yellow leaves, what can I do?")
    first, second = (page.locator(f"[data-side='{place}']") for place in (1, 2))
    expect(first.locator(".turn.start")).to_have_count(1)
    expect(second.locator(".turn.start")).to_have_count(1)
    expect(second).to_be_hidden()
    expect(page.locator("#message")).to_be_in_viewport()
    expect(page.locator("[data-tab='2'] .arena-new")).to_be_visible()
    page.click("[data-tab='2']")
    expect(second).to_be_visible()
    expect(first).to_be_hidden()
    expect(page.locator("[data-tab='2'] .arena-new")).to_be_hidden()
    expect(page.locator("#message")).to_be_in_viewport()
