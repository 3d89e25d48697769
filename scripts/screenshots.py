"""Pictures of every kind of page, for the documentation and for looking at them.

Starts its own server on this machine for each study and walks through it with the system's Chromium:

    python scripts/screenshots.py             # the selection in docs/images
    python scripts/screenshots.py --all DIR   # every screen, desktop and phone, light and dark, into a folder
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "browser")]

from walking import DESKTOP, PHONE, Rater, Served, copy_study, serving, shorten  # noqa: E402

from chromium import CHROMIUM_ARGS, chromium  # noqa: E402

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {**DESKTOP, "color_scheme": "light"},
    "phone": {**PHONE, "device_scale_factor": 1, "color_scheme": "light"},
    "dark": {**DESKTOP, "color_scheme": "dark"},
}
RIGHT = {"who_is_judged": "Speaker 2 in each conversation", "look": "No"}
WIZARD_KEY = "look"

Change = Callable[[dict[str, Any], list[dict[str, Any]]], None]


def with_anchor(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """Every rater of the anchoring template sees the anchor."""
    shorten(spec, items)
    levels = next(factor["levels"] for factor in spec["design"]["factors"] if factor["name"] == "anchor")
    spec["presentation"] |= next(level["set"] for level in levels if level["name"] == "both")
    spec["design"]["factors"] = []
    spec["analysis"] = {}


def with_wizard(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """A person answers in the chat template."""
    shorten(spec, items)
    canned = ["Good question!", "What did you like about it?", "I have to go now. Goodbye!"]
    suggest = [{"type": "scripted", "options": {"otherwise": ["Then you may like The Third Man. Have you seen it?"]}}]
    for system in spec["systems"]:
        system["agent"] = {"type": "wizard", "options": {"canned": canned, "suggest": suggest}}


def with_marks(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """Differences of the transcript pairs are marked."""
    shorten(spec, items)
    spec["presentation"]["highlight_differences"] = True


def as_it_is(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """No change."""


STUDIES: dict[str, tuple[str, Change]] = {
    "compare": ("compare", shorten),
    "pairs": ("pairs", shorten),
    "anchoring": ("anchoring", with_anchor),
    "strategies": ("strategies", with_marks),
    "acute": ("acute", shorten),
    "best-worst": ("best-worst", shorten),
    "avatar": ("avatar", shorten),
    "chat": ("chat", shorten),
    "arena": ("arena", shorten),
    "likert": ("likert", shorten),
    "judged": ("judged", as_it_is),
    "rubric": ("rubric", shorten),
    "mqm": ("mqm", shorten),
    "replies": ("replies", as_it_is),
    "turns": ("turns", as_it_is),
    "arabic": ("arabic", as_it_is),
}
# What is in docs/images: study, look, kind of screen, whether it is filled in, whether only the window is shown.
SELECTION: list[tuple[str, str, str, bool, bool]] = [
    ("compare", "desktop", "item", True, False),
    ("pairs", "desktop", "item", True, False),
    ("anchoring", "desktop", "item", True, False),
    ("acute", "desktop", "item", True, True),
    ("chat", "desktop", "item", True, True),
    ("arena", "desktop", "item", True, False),
    ("strategies", "desktop", "item", True, False),
    ("strategies", "phone", "item", False, True),
    ("best-worst", "desktop", "item", True, False),
    ("best-worst", "phone", "item", True, True),
    ("likert", "dark", "item", True, True),
    ("judged", "desktop", "item", True, False),
    ("rubric", "desktop", "item", True, False),
    ("mqm", "desktop", "item", True, False),
    ("replies", "desktop", "item", True, False),
    ("arabic", "desktop", "item", True, False),
    ("wizard", "desktop", "console", False, True),
]
PICTURES = tuple(f"{study}-{kind}-{look}.png" for study, look, kind, _, _ in SELECTION)


class Photographer(Rater):
    """A rater who takes a picture of every new kind of screen, empty and filled in."""

    def __init__(self, page: Page, take: Callable[[Page, str, bool], None]) -> None:
        super().__init__(page, right=RIGHT)
        self.take = take
        self.kinds: set[str] = set()

    def one_screen(self) -> str:
        key = self.key()
        kind = key.split("/")[0]
        is_new = kind not in self.kinds
        self.kinds.add(kind)
        self.seen.append(key)
        if is_new:
            self.take(self.page, kind, False)
        if kind == "pre" and is_new:
            with self.page.expect_navigation():
                self.page.click(self.sender())
            self.take(self.page, "errors", False)
        self.mark_words()
        self.answer()
        if is_new:
            self.page.evaluate("() => document.activeElement.blur()")
            self.take(self.page, kind, True)
        self.send()
        return key

    def mark_words(self) -> None:
        """Marks two places of a text, where words can be marked."""
        for first, last, kind, grade in ((1, 2, 0, 1), (9, 9, 2, 0)) if self.page.query_selector(".word") else ():
            for n in dict.fromkeys((first, last)):
                self.page.locator(".word").nth(n).click()
            self.page.locator(".mark-option.category").nth(kind).click()
            self.page.locator(".mark-option.severity").nth(grade).click()
            self.page.locator(".mark-panel .button.main").click()


def photograph(browser: Browser, served: Served, study: str, look: str, keep: Callable[..., None]) -> None:
    """Walks through one study in one look."""
    context = browser.new_context(**LOOKS[look], reduced_motion="reduce")
    page = context.new_page()
    rater = Photographer(page, lambda page, kind, is_filled: keep(page, study, look, kind, is_filled))
    page.goto(served.url)
    keep(page, study, look, "start", False)
    rater.walk(served.url)
    keep(page, study, look, "end", False)
    context.close()


def photograph_wizard(browser: Browser, served: Served, keep: Callable[..., None]) -> None:
    """The console with two raters who wait."""
    context = browser.new_context(**LOOKS["desktop"], reduced_motion="reduce")
    console = context.new_page()
    console.goto(f"{served.url}/wizard?key={WIZARD_KEY}")
    for text in (
        "Last week I saw a film about a lighthouse and it stayed with me.",
        "Hello! Do you read crime stories?",
    ):
        rater = Rater(browser.new_context(**LOOKS["desktop"]).new_page())
        rater.begin(served.url)
        while not rater.page.query_selector("#chat"):
            rater.one_screen()
        rater.say(text)
    console.locator(".console-open.waits").nth(1).wait_for()
    console.locator(".console-open.waits").first.click()
    console.locator("#console-suggestions button").click()
    keep(console, "wizard", "desktop", "console", False)


def save(page: Page, path: Path, *, whole: bool) -> None:
    """A picture with few colours, which keeps pages of text small and sharp."""
    page.evaluate("() => scrollTo(0, 0)")
    page.screenshot(path=path, full_page=whole)
    with Image.open(path) as image:
        image.convert("RGB").quantize(colors=128, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Takes the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="DIR", help="every screen of every study in every look")
    parser.add_argument("--study", action="append", help="only this study (may be given again)")
    options = parser.parse_args()
    target = options.all or ROOT / "docs" / "images"
    target.mkdir(parents=True, exist_ok=True)
    wanted = {(study, look, kind, filled): whole for study, look, kind, filled, whole in SELECTION}

    def keep(page: Page, study: str, look: str, kind: str, is_filled: bool) -> None:
        name = f"{study}-{kind}{'-filled' if is_filled and options.all else ''}-{look}.png"
        if options.all:
            save(page, target / name, whole=True)
        elif (study, look, kind, is_filled) in wanted:
            save(page, target / name, whole=not wanted[study, look, kind, is_filled])
            print(f"{name}: {(target / name).stat().st_size / 1024:.0f} KB")

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        for study, (source, change) in {**STUDIES, "wizard": ("chat", with_wizard)}.items():
            if options.study and study not in options.study:
                continue
            place = Path(folder) / study
            place.mkdir()
            with serving(copy_study(source, place, change), place / "pictures.db", wizard_key=WIZARD_KEY) as served:
                if study == "wizard":
                    photograph_wizard(browser, served, keep)
                    continue
                for look in LOOKS:
                    if options.all or any(key[:2] == (study, look) for key in wanted):
                        photograph(browser, served, study, look, keep)
        browser.close()


if __name__ == "__main__":
    main()
