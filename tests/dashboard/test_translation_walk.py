"""A study translated in Chromium, and taken part in by a rater who switches to Arabic on the first page."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from dashboard_serving import serving_site
from playwright.sync_api import expect
from test_dashboard_walk import come_in, examine, open_page  # noqa: F401

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.design.translations import translations_yaml, with_texts

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_study_is_translated_and_a_rater_switches_to_arabic(tmp_path, open_page):  # noqa: F811
    folder = tmp_path / "travel"
    copy_template("likert", folder)
    with serving_site(tmp_path) as site:
        page = open_page()
        come_in(page, site.owner_link())
        page.goto(f"{site.url}/dashboard/studies/travel/languages")
        examine(page, "languages")
        page.get_by_label("Code of the language").fill("ar")
        page.get_by_role("button", name="Add it").click()
        expect(page.get_by_role("heading", name="From English into العربية")).to_be_visible()
        field = page.get_by_role("textbox", name="Translation of title")
        assert field.evaluate("element => getComputedStyle(element).direction") == "rtl"
        field.fill("تقييم ردود مساعد السفر")
        page.locator("section", has=field).get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 of 63 texts")).to_be_visible()
        examine(page, "translations")
        study = load_study(folder)
        texts = {"texts.consent": "# موافقة\n\nمشاركتك طوعية.", "criteria.relevance.question": "ما مدى صلة هذا الرد؟"}
        content = translations_yaml(study, "ar", with_texts(study, "ar", texts))
        (folder / "translations.ar.yaml").write_text(content, encoding="utf-8")
        page.goto(f"{site.url}/dashboard/studies/travel/preview?lang=ar")
        inside = page.frame_locator("iframe.preview")
        expect(inside.get_by_role("heading", name="موافقة")).to_be_visible()
        page.goto(f"{site.url}/dashboard/studies/travel/freeze")
        page.get_by_role("checkbox").check()
        page.get_by_role("button", name="Freeze it for good").click()
        page.get_by_role("button", name="Start").first.click()
        expect(page.get_by_role("heading", name="The study is running")).to_be_visible()

        rater = open_page()
        rater.goto(f"{site.url}/travel/")
        expect(rater.locator("html")).to_have_attribute("dir", "ltr")
        rater.get_by_role("link", name="العربية").click()
        expect(rater.locator("html")).to_have_attribute("dir", "rtl")
        examine(rater, "first page in Arabic")
        rater.get_by_role("button", name="ابدأ").click()
        expect(rater.get_by_role("heading", name="موافقة")).to_be_visible()
        rater.locator("button[value=agree]").click()
        expect(rater.locator("button[value=agree]")).to_have_count(0)
        expect(rater.locator("html")).to_have_attribute("lang", "ar")
        session = site.app.studies.running("travel").store.sessions.all()[0]
        assert session.language == "ar"
