"""How long a page with two long responses takes the server: ``python -m bench display``.

Two responses of 4,000 words each, with headings, lists, tables, code and formulas. The first look draws them, later ones find
them drawn. Times are of the processor, so that a busy machine does not change them much; the page is a real screen of a study.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import tempfile
import time
from pathlib import Path

from starlette.testclient import TestClient

from dialometer.design.load import load_study
from dialometer.storage.store import Store
from dialometer.web.run import GARBAGE_THRESHOLDS
from dialometer.web.server.settings import Settings
from dialometer.web.study_app import create_app

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
