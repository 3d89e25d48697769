"""Pictures of the avatar's page, of a pooled study and of the labelling page, for the documentation and for looking at them.

Starts its own servers on this machine and talks to them with the system's Chromium:

    python scripts/avatar_screenshots.py         # into docs/images
    python scripts/avatar_screenshots.py DIR     # somewhere else
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "browser"), str(ROOT / "tests" / "retrieval_commands")]

from avatar_server import served  # noqa: E402
from retrieval_files import DIALOGUES, KB  # noqa: E402
from walking import DESKTOP, PHONE, Rater, serving  # noqa: E402

from chromium import CHROMIUM_ARGS, chromium  # noqa: E402
from dialometer.retrieval.avatar import Avatar  # noqa: E402
from dialometer.retrieval.knowledge_base import read_knowledge_base  # noqa: E402
from dialometer.retrieval.labels.labelling import AnswerFinder, open_labels  # noqa: E402
from dialometer.retrieval.queries import read_queries  # noqa: E402
from dialometer.retrieval.retriever import make_retriever  # noqa: E402
from dialometer.retrieval.training.train_retriever import calibrate_on  # noqa: E402
from dialometer.web.rater.labelling import create_labelling_app  # noqa: E402
from loopback import serving_app  # noqa: E402

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {**DESKTOP, "color_scheme": "light"},
    "phone": {**PHONE, "device_scale_factor": 1, "color_scheme": "light"},
    "dark": {**DESKTOP, "color_scheme": "dark"},
}
PICTURES = ("avatar-chat-desktop.png", "avatar-pooled-phone.png", "labelling-desktop.png")
"""What is in docs/images; other folders get the conversation in every look."""
ASKED = ("What's your name?", "Did anything dangerous ever happen out there?", "Can you recommend a dentist in Bergen?")


def keep(page: Page, path: Path) -> None:
    """As few bytes as a picture of text needs."""
    with Image.open(io.BytesIO(page.screenshot(full_page=True))) as picture:
        picture.convert("RGB").quantize(128).save(path, optimize=True)
    print(path)


def talk(browser: Browser, address: str, folder: Path) -> None:
    """A short conversation in every look."""
    for look, options in LOOKS.items():
        page = browser.new_context(**options).new_page()
        page.goto(address)
        for number, text in enumerate(ASKED):
            page.fill("#message", text)
            page.click("#say button")
            page.locator("#log .turn").nth(2 * number + 1).wait_for()
        page.evaluate("document.activeElement.blur()")
        if f"avatar-chat-{look}.png" in PICTURES or folder != IMAGES:
            keep(page, folder / f"avatar-chat-{look}.png")


def judge(browser: Browser, folder: Path, work: Path) -> None:
    """One candidate of a pooled study on a phone."""
    command = [sys.executable, "-m", "dialometer", "retrieval", "pool", KB, DIALOGUES, "--out", work / "pooled"]
    subprocess.run([*command, "-r", "tfidf", "-r", "bm25", "--seed", "4"], check=True, stdout=subprocess.DEVNULL)
    with serving(work / "pooled", work / "pooled.db") as study:
        rater = Rater(browser.new_context(**LOOKS["phone"]).new_page())
        rater.begin(study.url)
        while not rater.key().startswith("item") or rater.page.locator(".turn").count() < 4:
            rater.one_screen()
        keep(rater.page, folder / "avatar-pooled-phone.png")


def label(browser: Browser, folder: Path, work: Path) -> None:
    """A question on the labelling page, with one answer marked."""
    kb = read_knowledge_base(KB)
    labels = open_labels(kb, DIALOGUES, work / "labelled.jsonl", begin_again=True)
    app = create_labelling_app(labels, AnswerFinder(make_retriever("tfidf").fit(kb)))
    with serving_app(app) as port:
        page = browser.new_context(**LOOKS["desktop"]).new_page()
        page.goto(f"http://127.0.0.1:{port}")
        page.locator("#suggested .answer").first.click()
        page.locator("#suggested .answer[aria-pressed=true]").wait_for()
        page.evaluate("document.activeElement.blur()")
        keep(page, folder / "labelling-desktop.png")
    labels.close()


def main() -> None:
    """All pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    kb = read_knowledge_base(KB)
    fitted = make_retriever("mixed").fit(kb)
    avatar = Avatar(fitted, calibrate_on(fitted, read_queries(DIALOGUES, kb)))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as work:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        with served(avatar, "Maren Tveit, lighthouse keeper") as address:
            talk(browser, address, folder)
        judge(browser, folder, Path(work))
        label(browser, folder, Path(work))
        browser.close()


if __name__ == "__main__":
    main()
