"""What pages promise to raters holds: late answers, complaints that go, the field of a chat on a phone, times left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from walking import DESKTOP, PHONE, STUDIES, Rater, Served, copy_study, serving, shorten

pytestmark = pytest.mark.browser

RIGHT = {"who": "Yes", "look": "No"}


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of this file; each has its own session."""
    with serving(STUDIES / "replies", tmp_path_factory.mktemp("served") / "study.db") as served:
        yield served


def at_questions(page: Page, served: Served) -> Rater:
    rater = Rater(page, right=RIGHT)
    rater.begin(served.url)
    rater.one_screen()
    return rater


def test_answers_of_a_tab_left_behind_are_said_not_to_be_kept(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    behind = rater.page.context.new_page()
    behind.goto(f"{replies.url}/s")
    rater.one_screen()
    expect(behind.locator("[data-notices]")).to_contain_text("What you enter on this page is no longer kept")
    with behind.expect_response("**/s/draft") as refused:
        behind.fill("#f2-1", "77")
    assert refused.value.status == 409
    expect(behind.locator("[data-notices]")).to_contain_text("no longer kept")
    assert "No connection" not in behind.inner_text("#answers"), "the draft is refused, and that is no lost connection"
    late = Rater(behind, right=RIGHT)
    late.answer()
    late.send()
    expect(behind.get_by_role("alert")).to_contain_text("What you just sent was not kept")
    assert late.key() == rater.key() == "instructions"
    late.page.reload()
    assert behind.get_by_role("alert").count() == 0, "it is said once"
    late.send()
    assert behind.get_by_role("alert").count() == 0


def test_a_complaint_goes_when_its_question_is_answered(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    page.fill("#f2-1", "44")
    with page.expect_navigation():
        page.click("#answers .actions button[type=submit]")
    n = page.locator(".summary li").count()
    expect(page.locator(".field.has-error")).to_have_count(n)
    page.locator('input[name="answer.device"][value="Yes"]').locator("xpath=ancestor::label").click()
    expect(page.locator(".field.has-error")).to_have_count(n - 1)
    expect(page.locator(".summary h2")).to_have_text(f"Please look at {n - 1} answers again")
    assert page.locator("fieldset:has(input[name='answer.device']) .error").count() == 0
    assert page.locator("fieldset:has(input[name='answer.device'])").get_attribute("aria-describedby") is None
    rater.answer()
    expect(page.locator(".summary")).to_have_count(0)
    expect(page.locator(".error")).to_have_count(0)
    rater.send()


def test_the_field_of_a_chat_stays_in_view_on_a_phone(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    """Also with half of the screen under a keyboard, which leaves a small viewport."""
    with serving(copy_study("chat", tmp_path, shorten), tmp_path / "study.db") as served:
        rater = Rater(open_page(**PHONE))
        rater.begin(served.url)
        while not rater.page.query_selector("#chat"):
            rater.one_screen()
        page = rater.page
        for height in (844, 480):
            page.set_viewport_size({"width": 390, "height": height})
            rater.say("A long thought about films. " * 12)
            rater.may_send()
            expect(page.locator("#message")).to_be_in_viewport(ratio=1)
            expect(page.locator("#log .turn").last).to_be_in_viewport()
            field, last = page.locator("#message").bounding_box(), page.locator("#log .turn").last.bounding_box()
            assert field is not None
            assert last is not None
            assert last["y"] < field["y"]
