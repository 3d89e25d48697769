"""Results, exploring, sharing, pay, comments and the audit log in Chromium: light, dark, on a phone, without complaints of axe."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from dashboard_serving import serving_site
from playwright.sync_api import Page, expect
from test_dashboard_walk import come_in, examine, open_page  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def picture(page: Page, name: str) -> None:
    """A picture of the page for people to look at, where a folder for them is named."""
    folder = os.environ.get("DIALOMETER_PICTURES", "")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
        page.set_viewport_size({"width": 390, "height": 800})
        page.screenshot(path=str(Path(folder) / f"{name}-phone.png"), full_page=True)
        page.set_viewport_size({"width": 1366, "height": 900})


def test_after_the_first_answers(tmp_path, answered, open_page):  # noqa: F811
    parent = tmp_path / "studies"
    shutil.copytree(answered, parent)
    with serving_site(parent) as served:
        page = open_page()
        come_in(page, served.owner_link())
        study = f"{served.url}/dashboard/studies/anchoring"
        page.goto(f"{study}/results")
        expect(page.get_by_role("heading", name="The answer", exact=True)).to_be_visible(timeout=600_000)
        headings = page.get_by_role("heading", level=2).all_inner_texts()
        assert headings.index("Declared in advance") < headings.index("The answer") < headings.index("Explore")
        expect(page.locator(".report-figure img").first).to_have_js_property("complete", True)
        assert page.locator(".report-figure img").first.evaluate("one => one.naturalWidth") > 100
        with page.expect_download() as download:
            page.get_by_role("link", name="Data (CSV) of").first.click()
        assert download.value.suggested_filename.endswith(".csv")
        examine(page, "results")
        picture(page, "results")
        page.locator("select[name=condition]").select_option(index=1)
        page.get_by_role("button", name="Explore").press("Enter")
        expect(page.get_by_role("heading", name="What this part shows")).to_be_visible(timeout=600_000)
        examine(page, "explore")
        picture(page, "explore")
        page.goto(f"{study}/share")
        page.get_by_label("For whom").fill("the reviewers")
        page.get_by_role("button", name="Make a link").click()
        link = page.locator("code.one-time").inner_text()
        examine(page, "share")
        picture(page, "share")
        outside = open_page()
        outside.goto(link)
        expect(outside.get_by_text("A copy for others")).to_be_visible()
        examine(outside, "the copy")
        picture(outside, "copy")
        page.get_by_role("button", name="Revoke").click()
        outside.goto(link)
        expect(outside.get_by_role("heading", name="This link does not work")).to_be_visible()
        for name, path in (("pay", "pay"), ("comments", "comments")):
            page.goto(f"{study}/{path}")
            examine(page, name)
            picture(page, name)
        page.locator("select[name=part]").select_option("Results")
        page.get_by_role("textbox", name="Comment").fill("Is the interval too wide to say anything?")
        page.get_by_role("textbox", name="Comment").press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Your comment is saved.")).to_be_visible()
        page.get_by_text("Reply to ada").click()
        examine(page, "a comment")
        picture(page, "a-comment")
        page.goto(f"{served.url}/dashboard/audit")
        expect(page.get_by_role("cell", name="made a link to the report").first).to_be_visible()
        examine(page, "audit")
        picture(page, "audit")
