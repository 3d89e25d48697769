"""Every kind of page against WCAG 2.2 AA: axe in light and dark, right to left, at phone width and at 200 % zoom."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_checks import ALL_RULES, CONTRAST, TARGETS, complaints
from playwright.sync_api import Page, Route
from walking import DESKTOP, Rater, Served, copy_study, shorten

from dialometer.design.load import load_study
from dialometer.web.rater.pages import ENDINGS, MESSAGES, Pages

pytestmark = pytest.mark.browser

NARROW = {"width": 360, "height": 740}
ZOOMED = {"width": 640, "height": 400}  # 1280 x 800 at 200 %
STILL = {**DESKTOP, "reduced_motion": "reduce"}  # a colour on its way from light to dark is neither
RIGHT = {"who_is_judged": "Speaker 2 in each conversation", "look": "No"}


def examine(page: Page, where: str) -> None:
    """The page as it stands, in both colour schemes and in narrow windows; afterwards it is as before."""
    assert complaints(page, ALL_RULES) == [], f"{where}, light"
    page.emulate_media(color_scheme="dark")
    assert complaints(page, CONTRAST) == [], f"{where}, dark"
    page.emulate_media(color_scheme="light")
    for size in (NARROW, ZOOMED):
        page.set_viewport_size(size)
        too_wide = page.evaluate(
            """() => document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
              [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
                || e.getBoundingClientRect().left < -1).map(e => `${e.tagName}.${e.className}`)"""
        )
        assert too_wide == [], f"{where}, {size['width']} px wide"
        assert complaints(page, TARGETS) == [], f"{where}, {size['width']} px wide"
    page.set_viewport_size(DESKTOP["viewport"])


def with_anchor(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    shorten(spec, items)
    spec["design"]["factors"] = []
    spec["analysis"] = {}
    spec["presentation"] |= {"anchor": "both", "deadline_s": 40}


def in_arabic(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    spec["language"] = "ar"


def in_short_arabic(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    shorten(spec, items)
    spec["language"] = "ar"


def in_german(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    shorten(spec, items)
    spec["language"] = "de"


CASES: dict[str, tuple[str, Callable[[dict[str, Any], list[dict[str, Any]]], None]]] = {
    "anchor": ("anchoring", with_anchor),
    "pair": ("strategies", shorten),
    "candidate": ("avatar", shorten),
    "best-worst in German": ("best-worst", in_german),
    "chat": ("chat", shorten),
    "arena": ("arena", shorten),
    "rubric": ("rubric", shorten),
    "marks in Arabic": ("mqm", in_short_arabic),
    "turns": ("turns", lambda spec, items: None),
    "all scales in Arabic": ("replies", in_arabic),
    "pair in Arabic": ("arabic", lambda spec, items: None),
}


ALIKE = {"start", "consent", "instructions", "end"}
"""Pages that differ between studies by their texts alone: examined with anchors, and in every other language."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case == "pair" else pytest.mark.slow) for case in CASES],
)
def test_axe_finds_nothing_on_any_screen(
    case: str, tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    name, change = CASES[case]
    page = open_page(**STILL)
    kinds: set[str] = set()
    left_out = set() if case == "anchor" or " in " in case else ALIKE

    def look(page: Page, kind: str) -> None:
        if kind in kinds:
            return
        kinds.add(kind)
        if kind in left_out:
            return
        examine(page, f"{case}: {kind}")
        if kind in ("pre", "post", "item", "chat"):
            with page.expect_navigation():
                page.click("#answers .actions button[type=submit]")
            page.locator(".summary").wait_for()
            examine(page, f"{case}: {kind} with errors")

    served = serve(copy_study(name, tmp_path, change))
    page.goto(served.url)
    if "start" not in left_out:
        examine(page, f"{case}: start")
    rater = Rater(page, right=RIGHT, on_screen=look)
    rater.walk(served.url)
    assert not page.query_selector("#answers")
    assert kinds >= {"consent", "instructions", "item"}
    if "end" not in left_out:
        examine(page, f"{case}: end")


def show(html: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8")


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.slow
def test_axe_finds_nothing_on_other_pages(
    language: str, tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    """Ends and explanations, most of which need a server in trouble; they are shown as it would show them."""

    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        spec["language"] = language

    folder = copy_study("replies", tmp_path, change)
    served = serve(folder)
    pages = Pages(load_study(folder))
    page = open_page(**STILL)
    for kind in [*MESSAGES, *ENDINGS]:
        html = pages.render_message(kind, return_url="https://example.org/back" if kind == "completed" else "")
        page.route(f"**/shown/{kind}", show(html))
        page.goto(f"{served.url}/shown/{kind}")
        assert complaints(page, ALL_RULES) == [], kind
        page.emulate_media(color_scheme="dark")
        assert complaints(page, CONTRAST) == [], f"{kind}, dark"
        page.emulate_media(color_scheme="light")


@pytest.mark.slow
def test_the_wizard_console(tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]) -> None:
    """With a conversation that waits, and without one."""

    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        shorten(spec, items)
        for system in spec["systems"]:
            system["agent"] = {"type": "wizard", "options": {"canned": ["Good question!", "Goodbye."]}}

    served = serve(copy_study("chat", tmp_path, change), wizard_key="open-sesame", pending_s=1.0)
    console = open_page(**STILL)
    console.goto(f"{served.url}/wizard?key=open-sesame")
    console.locator("#console-none").wait_for()
    examine(console, "an empty console")
    rater = Rater(open_page(**STILL))
    rater.begin(served.url)
    while not rater.page.query_selector("#chat"):
        rater.one_screen()
    rater.say("Hello, are you there?")
    console.locator(".console-open.waits").click()
    console.locator("#console-log .turn").nth(1).wait_for()
    console.locator("#console-suggestions p").wait_for()
    examine(console, "a console with a conversation")
    assert json.loads(console.locator("#console").get_attribute("data-new") or "")["other"]
