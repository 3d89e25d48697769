"""The labelling page in a real browser: by keys alone, with a search, and against WCAG 2.2 AA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from test_accessibility import STILL, examine

from dialometer.design.templates import template_folder
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.labels.labelling import AnswerFinder, MakerLabels, open_labels
from dialometer.retrieval.retriever import make_retriever
from dialometer.web.rater.labelling import create_labelling_app
from loopback import serving_app

pytestmark = pytest.mark.browser


@pytest.fixture
def labelling(tmp_path: Path) -> Iterator[tuple[str, MakerLabels]]:
    """The address of a page for the avatar template's dialogues, and its labels."""
    folder = template_folder("avatar")
    kb = read_knowledge_base(folder / "knowledge_base.jsonl")
    labels = open_labels(kb, folder / "dialogues.jsonl", tmp_path / "labelled.jsonl", begin_again=True)
    app = create_labelling_app(labels, AnswerFinder(make_retriever("tfidf").fit(kb)))
    with serving_app(app) as port:
        yield f"http://127.0.0.1:{port}", labels
    labels.close()


def test_questions_are_labelled_by_keys_alone(
    labelling: tuple[str, MakerLabels], open_page: Callable[..., Page]
) -> None:
    address, labels = labelling
    page = open_page(**STILL)
    page.goto(address)
    buttons = page.locator("#suggested .answer")
    page.keyboard.press("2")
    expect(buttons.nth(1)).to_have_attribute("aria-pressed", "true")
    assert labels.right[0] == {int(buttons.nth(1).get_attribute("value") or "")}
    page.keyboard.press("j")
    expect(buttons.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("Space")
    expect(buttons.nth(1)).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("k")
    page.keyboard.press("Space")
    expect(buttons.nth(0)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#status")).to_contain_text("1 marked, stored")
    page.keyboard.press("Enter")
    expect(page.locator("#question-title")).to_contain_text("Question 2 of")
    expect(buttons.nth(0)).to_have_attribute("aria-keyshortcuts", "1")  # the page's keys work from now on
    assert labels.is_done[:2] == [True, False]
    page.keyboard.press("u")
    expect(page.locator("#question-title")).to_contain_text("Question 1 of")
    expect(buttons.nth(0)).to_have_attribute("aria-keyshortcuts", "1")
    assert not labels.is_done[0]
    page.keyboard.press("u")
    expect(page.locator("#suggested .answer").nth(0)).to_have_attribute("aria-pressed", "false")


def test_a_search_covers_all_answers_and_takes_over_the_digits(
    labelling: tuple[str, MakerLabels], open_page: Callable[..., Page]
) -> None:
    address, labels = labelling
    page = open_page(**STILL)
    page.goto(address)
    suggested = {int(button.get_attribute("value") or "") for button in page.locator("#suggested .answer").all()}
    other = next(number for number in range(len(labels.kb.answers)) if number not in suggested)
    page.keyboard.press("/")
    page.keyboard.type(labels.kb.answers[other].text[:60])
    expect(page.locator("#found .answer").first).to_contain_text(labels.kb.answers[other].text[:40])
    page.keyboard.press("Enter")
    expect(page.locator("#found .answer").first).to_be_focused()
    page.keyboard.press("1")
    expect(page.locator("#others .answer")).to_have_attribute("aria-pressed", "true")
    assert labels.right[0] == {other}
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("#results")).to_be_hidden()
    page.reload()
    expect(page.locator("#others .answer")).to_have_attribute("aria-pressed", "true")


def test_a_search_that_is_answered_late_takes_nothing_away(
    labelling: tuple[str, MakerLabels], open_page: Callable[..., Page]
) -> None:
    """What is typed is searched for after a moment, and once more by Enter: the first answer may come last."""
    address, labels = labelling
    page = open_page(**STILL)
    page.goto(address)
    searches: list[Route] = []
    page.route("**/search?**", lambda route: searches.append(route))  # noqa: PLW0108 - Playwright puts a mark on a handler
    with page.expect_request("**/search?**"):
        page.fill("#words", labels.kb.answers[0].text[:40])
    with page.expect_request("**/search?**"):
        page.press("#words", "Enter")
    first, second = searches
    second.continue_()
    expect(page.locator("#found .answer").first).to_be_focused()
    with page.expect_response("**/search?**") as late:
        first.continue_()
    late.value.finished()
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    expect(page.locator("#found .answer").first).to_be_focused()


def test_keys_can_be_turned_off(labelling: tuple[str, MakerLabels], open_page: Callable[..., Page]) -> None:
    """WCAG 2.1.4: shortcuts of one character can be turned off."""
    address, labels = labelling
    page = open_page(**STILL)
    page.goto(address)
    page.locator("summary").click()
    page.locator("#use-keys").uncheck()
    page.locator("h1").click()
    page.keyboard.press("1")
    page.reload()
    page.keyboard.press("1")
    expect(page.locator("#suggested .answer").first).to_have_attribute("aria-pressed", "false")
    assert labels.right[0] == set()


def test_axe_finds_nothing_on_the_labelling_page(
    labelling: tuple[str, MakerLabels], open_page: Callable[..., Page]
) -> None:
    address, labels = labelling
    labels.mark(0, len(labels.kb.answers) - 1, fits=True)
    labels.finish(0)
    page = open_page(**STILL)
    page.goto(f"{address}/q/1?search=i")
    page.locator("summary").click()
    examine(page, "labelling")
    page.goto(f"{address}/q/{len(labels)}")
    examine(page, "labelling, last question")
