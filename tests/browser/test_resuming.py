"""Reloads, lost connections, double clicks, second tabs, going back: nothing typed is lost and nothing is stored twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from walking import DESKTOP, STUDIES, Rater, Served, copy_study, shorten

pytestmark = pytest.mark.browser

RIGHT = {"look": "No"}


@pytest.fixture
def replies(serve: Callable[..., Served]) -> Served:
    return serve(STUDIES / "replies")


def at_questions(page: Page, served: Served) -> Rater:
    """A rater in front of the first questionnaire."""
    rater = Rater(page, right=RIGHT)
    rater.begin(served.url)
    rater.one_screen()
    assert rater.key() == "pre"
    return rater


def test_a_reload_brings_everything_back_from_the_server(replies: Served, open_page: Callable[..., Page]) -> None:
    """Also on a browser that keeps nothing itself."""
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    rater.answer()
    page.fill("#f10-1", "Half a stor")
    # An earlier draft may be saved already: the one that is waited for holds the last change.
    with page.expect_response(lambda response: "__other__" in (response.request.post_data or "")):
        page.check('input[name="gender"][value="__other__"]')
    expect(page.locator("[data-saved-note]")).to_have_text("Draft saved")
    before = page.evaluate("() => [...new FormData(document.getElementById('answers'))].slice(8)")
    page.evaluate("() => localStorage.clear()")
    page.reload()
    assert page.evaluate("() => [...new FormData(document.getElementById('answers'))].slice(8)") == before
    assert page.input_value("#f10-1") == "Half a stor"
    assert page.is_checked('input[name="gender"][value="__other__"]')
    assert page.locator(".slider-value").first.inner_text() == page.input_value('input[name="mood"]')


def test_typing_survives_a_lost_connection(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    page.context.set_offline(True)
    page.fill("#f2-1", "51")
    page.fill("#f10-1", "written in a tunnel")
    expect(page.locator("[data-saved-note]")).to_contain_text("No connection")
    page.click("#answers .actions button")
    expect(page.locator("[data-notices]")).to_contain_text("There is no connection")
    assert page.input_value("#f10-1") == "written in a tunnel"
    # The browser is closed before a draft can be sent: only its own copy knows what was typed.
    page.route("**/s/draft", lambda route: route.abort())
    page.context.set_offline(False)
    page.reload()
    expect(page.locator("[data-notices]")).to_contain_text("What you had entered is back")
    assert page.input_value("#f2-1") == "51"
    rater.answer()
    rater.send()
    (session,) = replies.store.sessions.all()
    answers = {answer.question: answer.value for answer in replies.store.records.of_session(session.id).answers}
    assert answers["age"] == 51
    assert answers["story"] == "written in a tunnel"
    assert answers["device"] == "Yes"


def test_a_double_click_and_a_resent_form_count_once(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    rater.answer()
    body = page.evaluate("() => new URLSearchParams(new FormData(document.getElementById('answers'))).toString()")
    with page.expect_navigation():
        page.dblclick("#answers .actions button")
    assert rater.key() == "instructions"
    again = page.evaluate(
        """async body => (await fetch('/s', {method: 'POST', body: new URLSearchParams(body), redirect: 'manual'})).type""",
        body,
    )
    assert again == "opaqueredirect"
    page.reload()
    assert rater.key() == "instructions"
    (session,) = replies.store.sessions.all()
    record = replies.store.records.of_session(session.id)
    assert [visit.screen for visit in record.visits].count("pre") == 1
    assert len(record.answers) == len({answer.question for answer in record.answers})


def test_a_tab_left_behind_says_so(replies: Served, open_page: Callable[..., Page]) -> None:
    """And what it still sends changes nothing."""
    rater = at_questions(open_page(**DESKTOP), replies)
    behind = rater.page
    ahead = Rater(behind.context.new_page(), right=RIGHT)
    ahead.page.goto(f"{replies.url}/s")
    ahead.one_screen()
    expect(behind.locator("[data-notices]")).to_contain_text("in another tab")
    rater.answer()
    with behind.expect_navigation():
        behind.click("#answers .actions button")
    assert rater.key() == ahead.key() == "instructions"
    (session,) = replies.store.sessions.all()
    assert session.step == 2


def test_going_back_shows_and_corrects_the_earlier_answers(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    while rater.key() != f"item/{replies.study.shown_ids['r2']}":
        rater.one_screen()
    with page.expect_navigation():
        page.click("a[href*='step=']")
    assert rater.key() == f"item/{replies.study.shown_ids['r1']}"
    assert "earlier page" in page.inner_text("main")
    assert page.is_checked('input[name="clarity.1"][value="4"]')
    assert page.locator("[data-ranking] .rank-place").all_inner_texts() == ["1", "2", "3"]
    (session,) = replies.store.sessions.all()
    before = replies.store.records.of_session(session.id).judgments
    page.locator('label:has(input[name="clarity.1"][value="6"])').click()
    rater.send()
    assert rater.key() == f"item/{replies.study.shown_ids['r2']}"
    after = replies.store.records.of_session(session.id).judgments
    changed = [j for j in after if j.replaces is not None]
    assert [(j.item_id, j.criterion, j.value) for j in changed] == [("r1", "clarity", 6)]
    assert len(after) == len(before)


def test_errors_stand_at_their_fields_and_in_a_list_above(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    page.fill("#f2-1", "seventeen")
    page.fill("#f10-1", "x" * 61)
    expect(page.locator("#f10-1 ~ .counter")).to_have_text("1 character too many")
    with page.expect_navigation():
        page.click("#answers .actions button")
    page.locator(".summary").wait_for()
    assert page.title().startswith("Error:")
    expect(page.locator(".summary")).to_be_focused()
    assert page.input_value("#f2-1") == "seventeen"
    described = page.get_attribute("#f2-1", "aria-describedby") or ""
    assert "f2-error" in described
    assert page.inner_text("#f2-error").endswith("Please enter a whole number.")
    assert page.inner_text("#f10-error").endswith("Please keep your answer under 60 characters.")
    page.click(".summary a[href='#f7-1']")
    expect(page.locator("input#f7-1[type=range]")).to_be_focused()
    # What is optional or may be empty is not complained about.
    assert page.locator(".summary li").count() == 8


@pytest.mark.slow
def test_a_late_answer_is_kept_as_late(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        spec["presentation"]["deadline_s"] = 2

    served = serve(copy_study("replies", tmp_path, change))
    page = open_page(**DESKTOP)
    # What a page says first, however long it takes until somebody looks at it.
    page.add_init_script(
        """addEventListener("DOMContentLoaded", () => {
          window.saidFirst = document.querySelector(".countdown-time")?.textContent; })"""
    )
    rater = at_questions(page, served)
    while rater.key() != f"item/{served.study.shown_ids['r1']}":
        rater.one_screen()
    assert "second" in page.evaluate("() => window.saidFirst")
    expect(page.locator(".countdown-time")).to_contain_text("The time is up")
    page.reload()  # does not give the time back
    assert "The time is up" in page.evaluate("() => window.saidFirst")
    rater.answer()
    rater.send()
    (session,) = served.store.sessions.all()
    record = served.store.records.of_session(session.id)
    assert {j.is_late for j in record.judgments if j.item_id == "r1"} == {True}
    (visit,) = [visit for visit in record.visits if visit.screen == "item/r1"]
    assert visit.is_late
    assert visit.duration_s > 2


def test_lost_focus_is_counted(replies: Served, open_page: Callable[..., Page]) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    for _ in range(2):
        page.evaluate("() => window.dispatchEvent(new Event('blur'))")
        page.wait_for_timeout(120)
        page.evaluate("() => window.dispatchEvent(new Event('focus'))")
    rater.answer()
    rater.send()
    (session,) = replies.store.sessions.all()
    (visit,) = [visit for visit in replies.store.records.of_session(session.id).visits if visit.screen == "pre"]
    assert visit.focus_lost_n == 2
    assert visit.focus_lost_s >= 0.2
    assert visit.first_input_at_ms is not None
    assert visit.shown_at_ms <= visit.first_input_at_ms <= visit.submitted_at_ms


def test_declining_ends_politely(replies: Served, open_page: Callable[..., Page]) -> None:
    page = open_page(**DESKTOP)
    Rater(page).begin(replies.url)
    with page.expect_navigation():
        page.click("button[value=decline]")
    assert page.inner_text("h1") == "You are not taking part"
    (session,) = replies.store.sessions.all()
    assert session.state == "declined"
    assert not replies.store.records.of_session(session.id).answers


def test_a_second_attempt_is_told_kindly_and_a_third_does_not_follow(
    replies: Served, open_page: Callable[..., Page]
) -> None:
    rater = at_questions(open_page(**DESKTOP), replies)
    page = rater.page
    rater.right["who"] = "No"
    while not rater.key().startswith("comprehension"):
        announced = page.inner_text("main")
        rater.one_screen()
    assert "First comes one question about these instructions. You have 2 attempts." in announced
    rater.one_screen()
    assert "that is no problem" in page.inner_text(".notice")
    assert "last attempt" in page.inner_text(".notice")
    assert page.locator("details[open]").count() == 1
    rater.one_screen()
    assert page.inner_text("h1") == "Your session ends here"
    assert "about the instructions" in page.inner_text("main")
    assert "requirements" not in page.inner_text("main")
    assert page.inner_text("#code") == "OUT-7"


def test_the_way_back_carries_code_and_parameters(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        spec["recruitment"] |= {"return_url": "https://example.org/done?cc={code}"}

    served = serve(copy_study("turns", tmp_path, change))
    rater = Rater(open_page(**DESKTOP))
    rater.walk(served.url)
    assert rater.page.get_attribute("main a.button", "href") == "https://example.org/done?cc=DONE-8"
    assert rater.page.inner_text("#code") == "DONE-8"
    rater.page.reload()
    assert rater.page.inner_text("#code") == "DONE-8"
    assert rater.page.evaluate("() => localStorage.length + sessionStorage.length") == 0


def test_the_study_works_under_a_path(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    """As a proxy shows it: every address that the pages and their scripts use begins with the path."""
    served = serve(copy_study("best-worst", tmp_path, shorten), root_path="/films")
    rater = Rater(open_page(**DESKTOP))
    rater.walk(served.url)
    assert rater.page.url.endswith("/films/s")
    (session,) = served.store.sessions.all()
    assert session.state == "completed"
