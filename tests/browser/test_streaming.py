"""Responses that come word by word in a real browser, and agents that break off, never end or speak for others."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from test_talking import at_chat
from walking import DESKTOP, PHONE, Rater, Served, copy_study, shorten

from fake_models import FakeModels, Said, fake_models

pytestmark = pytest.mark.browser


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with fake_models() as serving:
        yield serving


@pytest.fixture
def talk(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page], models: FakeModels
) -> Callable[..., tuple[Rater, Served]]:
    """A rater at a chat with a language model that streams."""

    def begin(size: dict[str, Any] = DESKTOP, live: dict[str, Any] | None = None) -> tuple[Rater, Served]:
        def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
            shorten(spec, items)
            options = {**models.options("openai"), "n_retries": 0, "timeout_s": 60}
            for system in spec["systems"]:
                system["agent"] = {"type": "openai", "options": options}
            spec["live"] = live or {}

        served = serve(copy_study("chat", tmp_path, change))
        return at_chat(open_page(**size), served), served

    return begin


def last_said(page: Page) -> Any:
    return page.locator("#log .turn.start .said").last


def test_words_appear_as_they_come_and_a_stream_that_breaks_can_be_asked_again(
    talk: Callable[..., tuple[Rater, Served]], models: FakeModels
) -> None:
    rater, served = talk()
    page = rater.page
    n_before = page.locator("#log .turn").count()
    is_seen = threading.Event()
    breaking = Said(["One ", "two ", "three ", "four"], breaks_after=3, may_break=is_seen)
    models.answers = [breaking, Said(["All ", "well."])]
    page.fill("#message", "Count, please.")
    page.press("#message", "Enter")
    expect(last_said(page)).to_have_text(re.compile("^One( two)?"))
    expect(page.locator("#typing")).to_be_hidden()
    assert page.locator("#log-view").get_attribute("aria-busy") == "true"
    is_seen.set()
    # The connection breaks: the words go, the message stays.
    expect(page.locator("#chat-state")).to_contain_text("could not answer")
    expect(page.locator("#log .turn")).to_have_count(n_before + 1)
    page.click("#retry button")
    expect(last_said(page)).to_have_text("All well.")
    expect(page.locator("#log .turn")).to_have_count(n_before + 2)
    expect(page.locator("#chat-count")).to_contain_text("1 message so far")
    (session,) = served.store.sessions.all()
    turn = served.store.conversations.turns(session.id)[-1]
    assert turn.meta["failed_tries"][0]["text"] == "One two three "


@pytest.mark.slow
def test_endless_markup_and_other_speakers(talk: Callable[..., tuple[Rater, Served]], models: FakeModels) -> None:
    rater, served = talk(PHONE)
    page = rater.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    hostile = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\nUser: I agree.\nAgent: So do I."]
    models.answers = [Said(["and so on "], is_endless=True), Said(hostile, pause_s=0.2)]
    page.fill("#message", "Talk to me.")
    page.click("#say button")
    expect(page.locator("#chat-state")).to_contain_text("could not answer")
    page.click("#retry button")
    expect(last_said(page)).to_contain_text("So do I.")
    assert not dialogs, "nothing ran"
    assert page.locator("#log script, #log img").count() == 0
    assert page.locator("#log .turn.end").count() == 1, "what an agent says for the user is no message of the user"
    (session,) = served.store.sessions.all()
    turn = served.store.conversations.turns(session.id)[-1]
    assert "longer than 20,000 characters" in turn.meta["failed_tries"][0]["reason"]
    assert turn.meta["speaker_labels"] == ["User", "Agent"]


@pytest.mark.slow
def test_a_reload_in_the_middle_waits_for_the_whole(
    talk: Callable[..., tuple[Rater, Served]], models: FakeModels
) -> None:
    rater, _ = talk(live={"first_word_s": 0.5, "characters_per_s": 20})
    page = rater.page
    models.answers = [Said(["Slow ", "and ", "steady."], pause_s=0.2)]
    page.fill("#message", "Hello")
    page.click("#say button")
    expect(last_said(page)).to_have_text(re.compile("^Slow"))
    page.reload()
    expect(last_said(page)).to_have_text("Slow and steady.")
    expect(page.locator("#retry")).to_be_hidden()
    assert len(models.requests) == 1
