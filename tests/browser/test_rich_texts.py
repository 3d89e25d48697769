"""Responses in Markdown in a real browser: nothing in them runs, long ones open, and pages hold on every screen."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from test_accessibility import STILL, examine
from walking import DESKTOP, PHONE, Rater, Served

pytestmark = pytest.mark.browser
STUDY = """
dialometer: 1
name: rich
title: Advice
seed: 1
systems: [{name: alpha}, {name: beta}]
items: {kind: responses}
scales: {choice: {type: pairwise}}
criteria: [{name: better, question: Which?, scale: choice}]
presentation: {text: markdown, fold_words: 60, system_prompt: shown, word_count: shown}
design: {system_order: fixed, item_order: fixed}
"""
HOSTILE = """# A <script>window.ran = 1</script>
<img src=x onerror="window.ran = 1"> <svg onload="window.ran = 1"></svg> <style>body { display: none }</style>

[a](javascript:window.ran=1) [b](data:text/html,<script>window.ran=1</script>) ![c](https://evil.example/pixel.png)
![d](//evil.example/pixel.png) ![e](media/none.png) <iframe src="https://evil.example"></iframe>

$\\text{<img src=x onerror="window.ran = 1">}$ `<script>window.ran = 1</script>`

```html
<script>window.ran = 1</script>
```
"""
LONG = "\n\n".join(
    [
        "## A plan",
        "Water **less**, and look at $E = \\frac{g_s D}{P}$ first. " * 6,
        "| Room | Humidity | What to do in the coming weeks |\n|---|--:|---|\n"
        + "| Kitchen | 55 % | keep away |\n" * 3,
        "```python\ndef deficit(temperature: float, humidity: float) -> float:  # a rather long line of code to scroll in its box\n"
        "    return temperature * (1 - humidity)\n```",
        "$$\\sum_{i=1}^{n} \\frac{x_i + y_i + z_i}{n \\cdot m} = \\int_0^1 f(x) \\, dx + \\sqrt{a^2 + b^2 + c^2}$$",
        "![A fern](media/fern.png)",
        "1. One\n2. Two\n   - Three",
    ]
)


def image() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress((b"\0" + b"\x40\x90\x60" * 8) * 8))
        + chunk(b"IEND", b"")
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study = tmp_path / "rich"
    (study / "media").mkdir(parents=True)
    (study / "media" / "fern.png").write_bytes(image())
    (study / "study.yaml").write_text(STUDY)
    calls = [{"name": "search", "arguments": {"query": "ferns"}, "result": "<script>window.ran = 1</script>"}]
    media = [{"path": "media/fern.png", "alt": "A fern"}]
    item: dict[str, Any] = {
        "id": "one",
        "system_prompt": "Be brief. <script>window.ran = 1</script>",
        "context": [{"speaker": "User", "text": "Why?", "media": media}],
        "responses": {"alpha": {"text": HOSTILE, "tool_calls": calls}, "beta": LONG},
    }
    (study / "items.jsonl").write_text(json.dumps(item) + "\n")
    for name in ("consent", "instructions", "debriefing"):
        (study / f"{name}.md").write_text(f"# {name}\n")
    return study


def at_item(page: Page, url: str) -> Rater:
    rater = Rater(page)
    rater.begin(url)
    while not rater.key().startswith("item"):
        rater.one_screen()
    return rater


def opened(served: Served) -> tuple[str, ...]:
    return next(visit.opened for visit in served.store.records.visits() if visit.screen.startswith("item"))


def test_nothing_runs_and_opening_is_stored(
    folder: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(folder)
    page = open_page(**{**STILL, **PHONE})
    rater = at_item(page, served.url)
    assert page.evaluate("() => window.ran") is None
    assert (
        page.evaluate("() => document.querySelectorAll('main :is(script, style, iframe, svg, a[href^=java])').length")
        == 0
    )
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "() => [...document.images].every(image => image.alt && image.src.startsWith(location.origin))"
    )
    switch, box = page.locator(".cut-switch[value='2']"), page.locator(".cut").last
    height = box.bounding_box()["height"]  # type: ignore[index]
    switch.focus()
    page.keyboard.press("Enter")
    expect(switch).to_be_checked()
    assert box.bounding_box()["height"] > height  # type: ignore[index]
    page.keyboard.press("Space")  # closed again; it was open all the same
    rater.answer()
    rater.send()
    assert opened(served) == ("beta",)


def test_a_text_that_fits_has_nothing_to_open(
    folder: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    """More words than are shown at once, in fewer lines: no key and no screen reader finds a switch that does nothing."""
    item = json.loads((folder / "items.jsonl").read_text())
    item["responses"]["beta"] = "so " * 61
    (folder / "items.jsonl").write_text(json.dumps(item) + "\n")
    page = open_page(**DESKTOP)
    at_item(page, serve(folder).url)
    expect(page.locator(".cutting.is-whole .cut-switch[value='2']")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("size", [PHONE, {"viewport": {"width": 1366, "height": 850}}], ids=["phone", "desktop"])
def test_every_part_is_accessible(
    folder: Path, serve: Callable[..., Served], open_page: Callable[..., Page], size: dict[str, Any]
) -> None:
    page = open_page(**{**STILL, **size})
    at_item(page, serve(folder).url)
    for summary in page.locator("main details > summary").all():
        summary.click()
    page.locator(".cut-label").last.click()
    page.evaluate("() => document.querySelectorAll('img').forEach(image => { image.loading = 'eager'; })")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    wide = "e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === 'auto'"
    if size is PHONE:
        assert page.locator(".code-box pre").last.evaluate(wide)
    boxes = page.evaluate("() => [...document.querySelectorAll('.cut')].map(e => e.className)")
    assert boxes
    assert all("cut-10" in name for name in boxes)
    assert page.evaluate("() => window.ran") is None
    examine(page, "rich texts")


@pytest.mark.slow
def test_long_responses_open_without_javascript(
    folder: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(folder)
    page = open_page(**DESKTOP, java_script_enabled=False)
    page.goto(served.url)
    page.click("main button[type=submit]")
    page.click("button[name=consent][value=agree]")
    page.click("#answers .actions button[type=submit]")
    box = page.locator(".cut").last
    height = box.bounding_box()["height"]  # type: ignore[index]
    page.locator(".cut-label").last.click()
    assert box.bounding_box()["height"] > height  # type: ignore[index]
    page.locator("details.step summary").first.click()
    expect(page.locator(".step-text").first).to_be_visible()
    page.locator("label", has_text="Response 1").last.click()
    page.click("#answers .actions button[type=submit]")
    page.wait_for_load_state()
    assert opened(served) == ("beta",)
