"""No page is wider than its screen, whatever a study's texts hold: one very long word, an address, right-to-left text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, Route
from walking import copy_study, shorten

from dialometer.design.load import load_study
from dialometer.model.dialogue import Turn
from dialometer.web.dashboard.pages.preview import Preview
from dialometer.web.rater.pages import Pages
from dialometer.web.server.static_files import STATIC

pytestmark = pytest.mark.browser

WIDTHS = ((1366, 768), (768, 1024), (390, 844))
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
ADDRESS = "https://example.org/" + "path/" * 3 + "q" * 400
ARABIC = "كلمة" * 120
SITE = "http://127.0.0.1:9"
KEPT = {"speaker", "id", "system", "name", "scale", "type", "kind", "role", "block", "scales", "accept", "answer"}
"""Keys whose texts are names that other parts of the study refer to."""
TOO_WIDE = """() => {
  const wide = document.documentElement.clientWidth;
  const out = [...document.querySelectorAll('main *, header *, footer *')].filter((e) => {
    const box = e.getBoundingClientRect();
    const word = e.closest('.pick-word'); // seen on a phone only
    const isUnseen = e.closest('.unseen, .skip, [hidden], .scroll') || (word && word.offsetWidth < 2);
    return !isUnseen && box.width && (box.right > wide + 1 || box.left < -1);
  });
  return [document.documentElement.scrollWidth, ...out.slice(0, 3).map((e) => e.tagName + '.' + e.className)];
}"""

FAINT = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (/^rgb\\(/.test(colour)) return colour;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  const texts = [...document.querySelectorAll('h1, h2, p, li, label, legend, dd, .turn, button[type=submit]')];
  return texts.filter((e) => {
    if (!e.innerText?.trim() || !e.getClientRects().length || e.closest('.unseen, .skip, [hidden], [disabled]')) return false;
    const [first, second] = [light(getComputedStyle(e).color), light(behind(e))];
    return (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05) < 4.5;
  }).slice(0, 3).map((e) => e.tagName + ' ' + e.innerText.slice(0, 30));
}"""
"""Texts whose contrast is below WCAG's 4.5 in the colours of the moment."""


def lengthened(value: Any, word: str) -> Any:
    """The same with a long word at the end of every text."""
    if isinstance(value, str):
        return f"{value} {word}"
    if isinstance(value, dict):
        return {key: part if key in KEPT else lengthened(part, word) for key, part in value.items()}
    return [lengthened(part, word) for part in value] if isinstance(value, list) else value


def with_long_words(name: str, folder: Path, word: str) -> Path:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        shorten(spec, items)
        spec["title"] += f" {word}"
        for criterion in spec["criteria"]:
            for key in ("question", "definition"):
                criterion[key] = f"{criterion.get(key, '')} {word}"
        for scale in spec["scales"].values():
            if isinstance(scale.get("labels"), dict):
                scale["labels"] = {point: f"{label} {word}" for point, label in scale["labels"].items()}
            for key in ("best_label", "worst_label", "low_label", "high_label"):
                if key in scale:
                    scale[key] += f" {word}"
        for item in items:
            for key in ("context", "turns", "responses", "a", "b", "candidate", "scenario", "opening", "standard"):
                if item.get(key):
                    item[key] = lengthened(item[key], word)

    copied = copy_study(name, folder, change)
    for text in ("consent.md", "instructions.md", "debriefing.md"):
        file = copied / text
        file.write_text(f"{file.read_text(encoding='utf-8')}\n\n{word}\n\n    {word}\n", encoding="utf-8")
    return copied


def screens(folder: Path, word: str) -> Iterator[tuple[str, str]]:
    """Every screen and the last page, as a rater gets them."""
    study = load_study(folder)
    pages, preview = Pages(study), Preview(study, 0)
    seen: set[str] = set()
    for step in range(preview.n_steps):
        session = preview.at(step)
        screen = preview.flow.screen(session)
        if screen.key.split("/")[0] in seen:
            continue
        seen.add(screen.key.split("/")[0])
        said = [Turn("", f"Hello {word}", "user"), Turn("", f"Yes {word}", "agent")] if screen.item else None
        chat = said if screen.item and screen.item.kind == "chat" else None
        errors = {field.name: "Please answer this." for field in screen.fields}
        yield (
            screen.kind,
            pages.render_screen(preview.flow, session, screen, csrf="c", token="t", errors=errors, chat=chat),
        )
    yield "end", pages.render_message("completed", code="CODE", withdrawal_code="AAAA-BBBB-CCCC-DDDD")


@pytest.fixture
def shown(open_page: Callable[..., Page]) -> Callable[[str], Page]:
    """A page with this HTML, its files from the package's folder; nothing is served."""
    page = open_page(reduced_motion="reduce")
    content = {"html": ""}

    def answer(route: Route) -> None:
        name = re.sub(r"\?.*", "", route.request.url).removeprefix(f"{SITE}/")
        if name.startswith("static/"):
            route.fulfill(path=STATIC / name.removeprefix("static/"))
        else:
            route.fulfill(body=content["html"], content_type="text/html; charset=utf-8")

    page.route("**/*", answer)

    def show(html: str) -> Page:
        content["html"] = html
        page.goto(SITE)
        return page

    return show


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("acute", ADDRESS),
        ("likert", ADDRESS),
        ("avatar", ADDRESS),
        ("best-worst", ADDRESS),
        ("chat", ADDRESS),
        ("turns", ADDRESS),
        ("arabic", ARABIC),
    ],
)
def test_no_page_is_wider_than_its_screen(name: str, word: str, tmp_path: Path, shown: Callable[[str], Page]) -> None:
    folder = with_long_words(name, tmp_path, word)
    assert word[:40] in json.dumps(load_study(folder).spec.model_dump(mode="json"), ensure_ascii=False)
    for kind, html in screens(folder, word):
        page = shown(html)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(TOO_WIDE) == [width], (kind, width, scheme)
                assert page.evaluate(FAINT) == [], (kind, width, scheme)
