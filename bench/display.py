"""How long a page with two long responses takes the server, and how it scrolls on a phone: ``python -m bench display``.

Two responses of 4,000 words each, with headings, lists, tables, code and formulas. The first look draws them, later ones find
them drawn. Times are of the processor, so that a busy machine does not change them much; the page is a real screen of a study.

The phone is Chromium at 390 by 844 pixels with its processor slowed down four times (DevTools protocol). All folds are opened,
and a finger swipes from the top to the end at 2,500 pixels a second; what counts is how long the page's thread is busy for each
frame, of which a screen with 60 Hz leaves 16.7 ms. Where there is no Chromium, this part says so.
"""

from __future__ import annotations

import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from starlette.testclient import TestClient

from bench.server import serving
from dialometer.design.load import load_study
from dialometer.storage.store import Store
from dialometer.web.run import GARBAGE_THRESHOLDS
from dialometer.web.server.settings import Settings
from dialometer.web.study_app import create_app

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from chromium import CHROMIUM_ARGS, chromium

N_WORDS = 4_000
N_LOOKS = 12
WORDS = "the of system answer because river window paper light number between through another small long".split()  # noqa: SIM905
STUDY = """
dialometer: 1
name: display
title: Display
seed: 1
systems: [{name: a}, {name: b}]
items: {kind: responses}
scales: {choice: {type: pairwise}}
criteria: [{name: better, question: Which?, scale: choice}]
presentation: {text: TEXT, fold_words: 300, word_count: shown}
design: {item_order: fixed}
"""


def sentence(rng: random.Random, n: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(n)).capitalize() + "."


def response(seed: int) -> str:
    """A response as language models write them."""
    rng = random.Random(seed)
    parts: list[str] = []
    while len(" ".join(parts).split()) < N_WORDS:
        parts += [
            f"## {sentence(rng, 4)}",
            f"{' '.join(sentence(rng, 14) for _ in range(5))} **{sentence(rng, 4)}** and `code`, $x^2_{{{rng.randint(0, 9)}}}$",
            "\n".join(f"- {sentence(rng, 10)}" for _ in range(6)),
            "| a | b |\n|---|---|\n" + "\n".join(f"| {sentence(rng, 4)} | {rng.random():.2f} |" for _ in range(4)),
            "```python\n"
            + "\n".join(f"def f{k}(x):\n    return x + {k}  # {sentence(rng, 5)}" for k in range(4))
            + "\n```",
            f"$$\\sum_{{i=1}}^{{{rng.randint(2, 99)}}} \\frac{{x_i}}{{n}}$$",
        ]
    return "\n\n".join(parts)


def page_ms(folder: Path, text: str) -> tuple[list[float], int]:
    """Milliseconds of the processor for each look at the screen, and the size of the page."""
    (folder / "study.yaml").write_text(STUDY.replace("TEXT", text))
    store = Store.open(folder / f"{text}.db")
    app = create_app(load_study(folder), store, settings=Settings())
    try:
        with TestClient(app) as client:
            take_part(client)
            gc.collect()  # as the server does
            gc.freeze()
            gc.set_threshold(*GARBAGE_THRESHOLDS)
            times = []
            for _ in range(N_LOOKS):
                began = time.process_time()
                page = client.get("/s")
                times.append(1000 * (time.process_time() - began))
            return times, len(page.content)
    finally:
        app.close()
        store.close()


def take_part(client: TestClient) -> None:
    """From the link past a short item, which prepares the templates, to the long one, without drawing that."""
    page = client.get("/")
    for answers in ({}, {"consent": "agree"}, {}, {"better": "1"}):
        fields = dict(part.split('" value="', 1) for part in hidden(page.text))
        action = page.text.split('method="post" action="', 1)[1].split('"', 1)[0]
        page = client.post(action, data={**fields, **answers}, follow_redirects="better" not in answers)


def hidden(page: str) -> list[str]:
    return [
        part.split('"', 3)[0] + '" value="' + part.split('"', 3)[2] for part in page.split('type="hidden" name="')[1:]
    ]


SLOWER, SPEED = 4, 2_500
FRAMES = """() => { window.frames_ms = []; let last = performance.now();
  const next = now => { window.frames_ms.push(now - last); last = now; window.frame = requestAnimationFrame(next); };
  window.frame = requestAnimationFrame(next); }"""


def scroll(folder: Path) -> dict[str, float] | None:
    """Swipes through the page on a slow phone; None where there is no browser."""
    if chromium() is None:
        return None
    with serving(folder, "", 1, "error") as (url, _, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        page = context.new_page()
        devtools = context.new_cdp_session(page)
        page.goto(url)
        while not page.locator(".response").count():
            page.locator("main button[type=submit]").first.click()
        page.locator("input[type=radio]").first.check()
        page.locator("main button[type=submit]").first.click()
        page.locator(".cut-label").first.wait_for()
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        began = time.monotonic()
        page.reload(wait_until="load")
        loaded_s = time.monotonic() - began
        for label in page.locator(".cut-label").all():
            label.click()
        return {"loaded_s": loaded_s, **swipe(page, devtools)}


def swipe(page: Any, devtools: Any) -> dict[str, float]:
    """One swipe from the top to the end."""
    page.evaluate("() => window.scrollTo(0, 0)")
    height = page.evaluate("() => document.documentElement.scrollHeight - innerHeight")
    devtools.send("Performance.enable")
    before = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    page.evaluate(FRAMES)
    began = time.monotonic()
    distance = {"x": 195, "y": 600, "yDistance": -height, "speed": SPEED, "gestureSourceType": "touch"}
    devtools.send("Input.synthesizeScrollGesture", distance)
    took_s = time.monotonic() - began
    after = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    frames = sorted(page.evaluate("() => { cancelAnimationFrame(window.frame); return window.frames_ms.slice(1); }"))
    busy_ms = 1000 * (after["TaskDuration"] - before["TaskDuration"])
    return {
        "height_px": height,
        "took_s": took_s,
        "frames": len(frames),
        "busy_ms": busy_ms / len(frames),
        "median_ms": statistics.median(frames),
        "p95_ms": frames[int(0.95 * (len(frames) - 1))],
        "longest_ms": frames[-1],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        item = {"id": "one", "context": [{"speaker": "User", "text": "Tell me all."}]}
        responses = {"a": response(1), "b": response(2)}
        short = {**item, "id": "short", "responses": {"a": "yes", "b": "no"}}
        lines = (short, {**item, "responses": responses})
        (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for text in ("consent", "instructions", "debriefing"):
            (folder / f"{text}.md").write_text(f"# {text}\n")
        print(
            "| page with two responses of 4,000 words | first look, ms | later looks, ms | size, kB |\n|---|---|---|---|"
        )
        for text in ("plain", "markdown"):
            times, size = page_ms(folder, text)
            print(f"| {text} | {times[0]:.0f} | {statistics.median(times[1:]):.1f} | {size / 1000:.0f} |")
        found = scroll(folder)
        if found is None:
            print("\nScrolling was not measured: there is no Chromium.")
            return
        print(
            f"\nA phone, {SLOWER} times slower (load of the machine {os.getloadavg()[0]:.1f}): loaded in {found['loaded_s']:.1f} s; "
            f"{found['height_px']:,.0f} pixels swiped in {found['took_s']:.1f} s, {found['frames']:,.0f} frames. The page's thread "
            f"was busy {found['busy_ms']:.1f} ms for each frame; from frame to frame it took {found['median_ms']:.1f} ms in the "
            f"median, {found['p95_ms']:.1f} ms at 95 %, {found['longest_ms']:.0f} ms at most"
        )
