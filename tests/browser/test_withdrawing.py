"""A person withdraws in Chromium with the code on the last page; both pages hold to WCAG 2.2 AA."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from test_accessibility import examine
from walking import DESKTOP, Rater, Served, copy_study, shorten

pytestmark = pytest.mark.browser


def test_the_code_on_the_last_page_withdraws(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    served = serve(copy_study("best-worst", tmp_path / "study", shorten))
    page = open_page(**{**DESKTOP, "reduced_motion": "reduce"})
    Rater(page, right={"look": "No"}).walk(served.url)
    code = page.locator(".withdraw .code-value").inner_text()
    assert re.fullmatch(r"[0-9A-Z]{4}(-[0-9A-Z]{4}){3}", code)
    examine(page, "the last page")
    page.get_by_role("link", name="Withdraw from the study").click()
    expect(page.get_by_label("Your withdrawal code")).to_have_value(code)
    page.get_by_label("Your withdrawal code").fill("0000-0000-0000-0000")
    page.get_by_role("button", name="Erase my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("No session has this withdrawal code")
    expect(page.get_by_label("Your withdrawal code")).to_have_value("0000-0000-0000-0000")
    examine(page, "the form after a wrong code")
    page.get_by_label("Your withdrawal code").fill(code.lower())
    page.get_by_role("button", name="Erase my answers").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("withdrawn")
    (session,) = served.store.sessions.all()
    assert (session.state, session.rater_id) == ("withdrawn", "")
    assert not [cookie for cookie in page.context.cookies() if cookie["name"] == "dialometer_session"]
    page.goto(f"{served.url}/s")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
