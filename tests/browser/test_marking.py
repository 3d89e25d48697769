"""Marking words in a dialogue: with the mouse, a finger, the keyboard, and without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from walking import DESKTOP, PHONE, Rater, Served, copy_study, shorten

pytestmark = pytest.mark.browser


def only_lawn(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """One dialogue, whose words are known, with characters beyond the first plane of Unicode before them."""
    shorten(spec, items)
    items[:] = [item for item in items if item["id"] in ("tomatoes_1", "tomatoes_2")]
    for item in items:
        item["turns"][1]["text"] = "🌱🌱 Sow the seeds in may. Then then water them, please."
    spec["design"] |= {"n_practice_items": 0, "items_per_rater": 1}
    spec["quality"] = []
    spec["pre_questionnaire"] = []


def at_item(served: Served, page: Page) -> Rater:
    rater = Rater(page)
    rater.begin(served.url)
    while not rater.key().startswith("item"):
        rater.one_screen()
    return rater


def stored(served: Served) -> dict[str, Any]:
    (session,) = served.store.sessions.all()
    (judgment,) = served.store.records.of_session(session.id).judgments
    value: dict[str, Any] = judgment.value  # type: ignore[assignment]
    for mark in value["marks"]:
        text = "🌱🌱 Sow the seeds in may. Then then water them, please."
        assert mark["turn"] != 1 or text[mark["start"] : mark["end"]] == mark["text"]
    return value


def word(page: Page, words: str, turn: int = 1) -> Any:
    return page.locator(f'[data-passage="{turn}"] .word').filter(has_text=re.compile(f"^{words}$")).first


def settle(page: Page, category: str, severity: str) -> None:
    page.locator(".mark-option.category", has_text=category).click()
    page.locator(".mark-option.severity", has_text=severity).click()
    page.locator(".mark-panel .button.main").click()


def test_words_are_marked_changed_and_removed_with_the_mouse(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(copy_study("mqm", tmp_path, only_lawn))
    page = open_page(**DESKTOP)
    rater = at_item(served, page)
    page.locator(rater.sender()).click()
    expect(page.locator(".summary")).to_contain_text("Please mark what is wrong, or say that you found nothing")
    expect(page.locator(".summary")).to_be_focused()  # which scrolls to it: only now the words stay where they are
    # Dragging from word to word.
    word(page, "then").scroll_into_view_if_needed()
    first, last = word(page, "Then").bounding_box(), word(page, "then").bounding_box()
    assert first is not None
    assert last is not None
    page.mouse.move(first["x"] + 5, first["y"] + 5)
    page.mouse.down()
    page.mouse.move(last["x"] + 5, last["y"] + 5, steps=4)
    page.mouse.up()
    page.locator(".mark-panel .button.main").click()
    expect(page.locator(".mark-panel .error")).to_be_visible()
    settle(page, "Language", "Minor")
    # The first and the last word, one after the other; then the mark is changed and another one removed.
    word(page, "in").click()
    word(page, r"may\.").click()
    settle(page, "Not true", "Major")
    word(page, "water").click()
    settle(page, "Harmful", "Critical")
    expect(page.locator(".mark-line")).to_have_count(3)
    page.get_by_role("button", name="Remove the mark “water”").click()
    page.get_by_role("button", name="Change the mark “in may.”").click()
    settle(page, "Does not fit", "Minor")
    page.reload()
    expect(page.locator(".mark-line")).to_have_count(2)  # kept by the draft
    rater.send()
    assert [(m["text"], m["category"], m["severity"]) for m in stored(served)["marks"]] == [
        ("in may.", "relevance", "minor"),
        ("Then then", "language", "minor"),
    ]


@pytest.mark.slow
def test_words_are_marked_with_a_finger(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(copy_study("mqm", tmp_path, only_lawn))
    page = open_page(**PHONE)
    rater = at_item(served, page)
    word(page, "Then").tap()
    word(page, "then").tap()
    settle(page, "Language", "Minor")
    word(page, "Sow").tap()
    page.locator(".mark-panel .button", has_text="whole turn").tap()
    settle(page, "Does not fit", "Major")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    rater.send()
    value = stored(served)
    assert [m["text"] for m in value["marks"]] == [
        "🌱🌱 Sow the seeds in may. Then then water them, please.",
        "Then then",
    ]
    assert value["n_words"] > 10


@pytest.mark.slow
def test_words_are_marked_with_the_keyboard_alone(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(copy_study("mqm", tmp_path, only_lawn))
    page = open_page(**DESKTOP)
    rater = at_item(served, page)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.classList.contains('word')"):
            break
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowRight")  # the second category
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the first severity
    page.keyboard.press("Tab")
    page.keyboard.type("Which seeds?")
    page.keyboard.press("Enter")
    expect(page.locator(".mark-line")).to_contain_text("Does not fit · Minor · Which seeds?")
    rater.send()
    (mark,) = stored(served)["marks"]
    assert (mark["text"], mark["comment"]) == ("the seeds", "Which seeds?")


@pytest.mark.slow
def test_marks_are_entered_without_scripts(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(copy_study("mqm", tmp_path, only_lawn))
    page = open_page(**DESKTOP, java_script_enabled=False)
    rater = Rater(page)
    rater.begin(served.url)
    page.locator("button[name=consent][value=agree]").click()
    page.locator("#answers .actions button[type=submit]").click()  # instructions
    row = page.locator("[data-row]").first
    row.locator("[name$='.turn']").select_option("1")
    row.locator("[name$='.quote']").fill("then then")
    row.locator("[name$='.category']").select_option("language")
    page.locator(rater.sender()).click()
    expect(page.locator(".summary")).to_contain_text(
        "Please choose what is wrong with “then then” and how serious it is"
    )
    page.locator("[data-row]").first.locator("[name$='.severity']").select_option("minor")
    page.locator(rater.sender()).click()
    (mark,) = stored(served)["marks"]
    assert (mark["text"], mark["severity"]) == ("Then then", "minor")
