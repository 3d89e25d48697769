"""The chat page of an avatar and the pooled study in a real Chromium: talked to by mouse and keyboard, with and without script."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from avatar_server import served
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from retrieval_files import DIALOGUES, KB
from walking import DESKTOP, PHONE, Rater, serving

from dialometer.errors import FlowError
from dialometer.retrieval.avatar import Avatar
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.training.train_retriever import calibrate_on
from dialometer.web.rater.avatar import MAX_EXCHANGES, MAX_TALKS, Talks

pytestmark = pytest.mark.browser
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
UNKNOWN = "Which football club plays in Lisbon?"


@pytest.fixture(scope="module")
def address(kb: Any, asked: Any) -> Iterator[str]:
    fitted = make_retriever("tfidf").fit(kb)
    with served(Avatar(fitted, calibrate_on(fitted, asked)), "Maren <Tveit>") as url:
        yield url


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Any]:
    """A page of its own; a failing script, a breach of the policy or a request to another host fails the test."""
    problems: list[str] = []
    contexts = []

    def open_one(**options: Any) -> Page:
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"script: {error}"))
        page.on(
            "console",
            lambda m: problems.append(m.text) if m.type == "error" and "Failed to load" not in m.text else None,
        )
        page.on("request", lambda r: None if r.url.startswith("http://127.0.0.1:") else problems.append(r.url))
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not problems, problems


def ask(page: Page, text: str) -> Any:
    n = page.locator("#log .turn").count()
    page.fill("#message", text)
    page.keyboard.press("Enter")
    line = page.locator("#log .turn").nth(n + 1)
    line.wait_for()
    expect(page.locator("#typing")).to_be_hidden()
    return line


def test_a_conversation_with_confidence(open_page, address):
    page = open_page(**DESKTOP)
    response = page.goto(address)
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert page.inner_text("h1") == "Maren <Tveit>"
    page.locator(".suggestion").first.click()  # a recorded question is known word for word
    expect(page.locator("#log .turn")).to_have_count(2)
    expect(page.locator("#begin")).to_be_hidden()
    line = ask(page, "What's your name?")
    expect(line.locator(".said")).to_have_text("My name is Maren. Maren Tveit.")
    expect(line.locator(".sure")).to_contain_text("% sure")
    declined = ask(page, UNKNOWN)
    expect(declined).to_have_class("turn declined")
    expect(declined.locator(".said")).to_contain_text("something else")
    expect(declined.locator(".sure")).to_contain_text("so it did not answer")
    declined.locator("summary").click()
    expect(declined.locator(".others li").first).to_be_visible()
    page.reload()
    expect(page.locator("#log .turn")).to_have_count(6)  # the server remembers


def test_the_threshold_can_be_moved_and_the_conversation_begun_anew(open_page, address):
    page = open_page(**DESKTOP)
    page.goto(address)
    assert page.locator(".curve-narrow svg, .curve-wide svg").locator("visible=true").count() == 1
    expect(ask(page, UNKNOWN)).to_have_class("turn declined")
    with page.expect_response("**/threshold"):
        page.locator("#threshold").fill("0")
    expect(page.locator("#shown")).to_have_text("0%")
    expect(ask(page, UNKNOWN)).to_have_class("turn")
    page.get_by_role("button", name="Start over").click()
    expect(page.locator("#log .turn")).to_have_count(0)
    expect(page.locator("#begin")).to_be_visible()


def test_without_script_plain_forms_do(open_page, address):
    page = open_page(**PHONE, java_script_enabled=False)
    page.goto(address)
    page.fill("#message", "What's your name?")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#log .said").last).to_have_text("My name is Maren. Maren Tveit.")
    expect(page.locator("#log .sure")).to_have_count(1)
    page.get_by_role("button", name="Start over").click()
    expect(page.locator("#log .turn")).to_have_count(0)


def test_what_visitors_type_is_only_ever_text(open_page, address):
    page = open_page(**DESKTOP)
    page.goto(address)
    ask(page, "<img src=x onerror=alert(1)>")
    expect(page.locator("#log .said").first).to_have_text("<img src=x onerror=alert(1)>")
    page.reload()
    assert page.locator("#log img").count() == 0


@pytest.mark.parametrize(
    "look", [{**DESKTOP}, {**PHONE}, {**DESKTOP, "color_scheme": "dark"}], ids=["desk", "phone", "dark"]
)
def test_the_page_can_be_used_by_everybody(open_page, address, look):
    page = open_page(**look, reduced_motion="reduce")
    page.goto(address)
    ask(page, "What's your name?")
    ask(page, UNKNOWN)
    page.locator("summary").last.click()
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": TAGS}}).response
    assert [(v["id"], [node["target"] for node in v["nodes"]]) for v in found["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_strangers_and_nonsense_are_refused(open_page, address):
    page = open_page(**DESKTOP)
    page.goto(address)
    csrf = page.get_attribute("body", "data-csrf")

    def post(path: str, body: str, mark: str) -> Any:
        headers = {"content-type": "application/json", "x-csrf-token": mark}
        return page.request.post(f"{address}{path}", headers=headers, data=body)

    assert post("say", json.dumps({"text": "Hello"}), "forged").status == 403
    assert post("say", json.dumps({"text": 5}), csrf).status == 400
    assert post("say", "{", csrf).status == 400
    assert post("say", json.dumps({"text": " "}), csrf).status == 409
    assert post("say", json.dumps({"text": "x" * 5000}), csrf).status == 409
    assert post("say", json.dumps({"text": "x" * 50_000}), csrf).status == 413
    assert post("threshold", json.dumps({"threshold": 7}), csrf).status == 400
    assert page.request.get(f"{address}nowhere").status == 404
    assert post("say", json.dumps({"text": "Hello"}), csrf).status == 200


def test_looking_at_the_page_takes_nobodys_place(kb):
    talks = Talks(Avatar(make_retriever("tfidf").fit(kb)))
    talks.say("first", "Hello!")
    for number in range(MAX_TALKS + 50):
        assert talks.look(f"visitor-{number}").exchanges == []
    assert len(talks.look("first").exchanges) == 1
    for number in range(MAX_TALKS):
        talks.open(f"visitor-{number}")
    assert talks.look("first").exchanges == []  # room was needed
    with pytest.raises(FlowError, match="start over"):
        for _ in range(MAX_EXCHANGES + 1):
            talks.say("endless", "Hello!")


def test_an_avatar_that_was_never_calibrated_says_so(open_page, kb):
    with served(Avatar(make_retriever("tfidf").fit(kb)), "Maren") as url:
        page = open_page(**DESKTOP)
        page.goto(url)
        expect(page.locator(".when")).to_contain_text("never calibrated")
        assert ask(page, "What's your name?").locator(".sure").count() == 0


@pytest.mark.slow
def test_the_pooled_study_is_judged_in_a_browser(open_page, type_in, tmp_path):
    """From the start page to the end, gold included; what the rater gave reaches ``retrieval evaluate --crowd``."""
    arguments = ("--out", "pooled", "-r", "tfidf", "--depth", 2, "--seed", 2)
    type_in("retrieval", "pool", KB, DIALOGUES, *arguments, cwd=tmp_path)
    folder = tmp_path / "pooled"
    with serving(folder, folder / "study.db") as study:
        rater = Rater(open_page(**PHONE), right={"fit": "5"}, n_sets=2)
        heading = rater.walk(study.url, at_most=80)
        assert "thank" in heading.lower()
        items = [key for key in rater.seen if key.startswith("item")]
        assert len(items) == 2 * 16  # two batches of fifteen, each with one gold answer more
    found = json.loads(
        type_in(
            *("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--crowd", folder, "--json", "--resamples", 100),
            cwd=tmp_path,
        ).stdout
    )
    crowd = next(judge for judge in found["judges"] if judge["name"] == "crowd")
    assert 1 <= crowd["n_judged"] <= 32
