"""The dashboard by keyboard and as a screen reader gets it: every page for making, translating, reading and discussing a study."""

from __future__ import annotations

import re
import shutil

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from dashboard_serving import serving_site
from playwright.sync_api import Locator, Page, Route, expect
from test_dashboard_walk import come_in, examine, open_page  # noqa: F401
from walking import DESKTOP, PHONE

from dialometer.design.templates import copy_template
from dialometer.web.dashboard.pages.form import STEPS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DRAFT = [*(f"form/{step}" for step in STEPS), "files/study.yaml", "versions", "languages", "languages/de", "add-items"]
DRAFT += ["pairs", "pairs/1", "preview", "freeze", "comments", "review"]
RUNNING = ["", "raters", "raters/1", "items", "texts", "quality", "results", "control", "pay", "share"]
INTERACTIVE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
REACHABLE = f"""() => [...document.querySelectorAll({INTERACTIVE!r})].filter(one =>
  one.tabIndex >= 0 && !one.matches(':disabled') && one.checkVisibility({{visibilityProperty: true}})
  && !(one.type === 'radio' && one.name && one !== (document.querySelector(`input[name="${{CSS.escape(one.name)}}"]:checked`)
       || document.querySelector(`input[name="${{CSS.escape(one.name)}}"]`))))"""
MAX_INSIDE = 80
"""What can be used inside a preview, which Tab passes through on its way."""
NAMED = re.compile(
    r"^\s*- (?:link|button|textbox|combobox|checkbox|radio|spinbutton|searchbox|slider|region|navigation)\b(.*)$"
)
"""Roles that a screen reader reads by their names; the name follows in quotes."""


def read_out(page: Page, where: str) -> None:
    """The tree that a screen reader gets: one main part, one first heading, a name for everything that can be used."""
    tree = page.locator("body").aria_snapshot().splitlines()
    assert sum(line.strip().startswith("- main") for line in tree) == 1, where
    assert sum("heading" in line and "[level=1]" in line for line in tree) >= 1, where
    nameless = [line for line in tree if (found := NAMED.match(line)) and '"' not in found[1] and "'" not in found[1]]
    assert nameless == [], where


def tab_through(page: Page, where: str) -> None:
    """Tab comes to everything that can be used, in the order of the page, shows where it is, and leaves again."""
    n = page.evaluate(f"() => {{ window.reachable = ({REACHABLE})(); window.reached = []; return reachable.length; }}")
    page.evaluate("() => { document.activeElement?.blur(); window.scrollTo(0, 0); }")
    missing = "() => reachable.filter(one => !reached.includes(one)).map(one => one.outerHTML.slice(0, 160))"
    for pressed in range(n + MAX_INSIDE):
        page.keyboard.press("Tab")
        page.evaluate("() => reached.push(document.activeElement)")
        if pressed >= n - 1 and not page.evaluate(missing):
            break
    assert page.evaluate(missing) == [], where
    unseen = page.evaluate("""() => { const one = document.activeElement; const style = getComputedStyle(one);
      return style.outlineStyle === 'none' && style.boxShadow === 'none' ? one.outerHTML.slice(0, 160) : '' }""")
    assert unseen == "", where


def test_every_page_by_keyboard_and_read_out(tmp_path, answered, open_page):  # noqa: F811
    parent = tmp_path / "studies"
    shutil.copytree(answered, parent)
    copy_template("strategies", parent / "draft")
    with (parent / "draft" / "study.yaml").open("a", encoding="utf-8") as file:
        file.write("\nlanguages: [en, de]\n")
    with serving_site(parent) as served:
        page = open_page()
        come_in(page, served.owner_link())
        # What pages renew by themselves would take away what is counted, wherever the walk takes longer than that.
        page.route("**/*", lambda route: route.abort() if "x-live" in route.request.headers else route.fallback())
        own = ["", "new", "accounts", "audit", "me"]
        places = [*own, *(f"studies/draft/{path}" for path in DRAFT), *(f"studies/likert/{path}" for path in RUNNING)]
        for place in places:
            page.goto(f"{served.url}/dashboard/{place}")
            examine(page, place)
            read_out(page, place)
            tab_through(page, place)


def test_a_part_is_explored_by_keyboard_alone(tmp_path, answered, open_page):  # noqa: F811
    """From the results page to the part that was chosen, its figures and back, without a pointer."""
    parent = tmp_path / "studies"
    shutil.copytree(answered, parent)
    with serving_site(parent) as served:
        page = open_page()
        come_in(page, served.owner_link())
        page.goto(f"{served.url}/dashboard/studies/likert/results")
        reach(page, page.get_by_label("Gender"))
        page.keyboard.press("W")  # a second letter would begin another word where it comes late
        expect(page.get_by_label("Gender")).to_have_value("Woman")
        reach(page, page.get_by_role("button", name="Explore"))
        page.keyboard.press("Enter")
        page.wait_for_url("**/explore?**gender=Woman**")
        waiting = page.get_by_role("status").element_handle()
        assert "in a few seconds" in waiting.inner_text()
        expect(page.get_by_role("heading", name="What this part shows")).to_be_visible(timeout=600_000)
        assert waiting.inner_text() == "The result is here.", (
            "one live region is there all the time: only then it is read out"
        )
        reach(page, page.locator(".scroll").last)
        page.route("**/explore?**", newer)
        expect(page.get_by_role("heading", name="What newer data show")).to_be_visible()
        expect(page.locator(".scroll").last).to_be_focused()
        page.unroute("**/explore?**")
        expect(page.get_by_role("heading", name="What this part shows")).to_be_visible()  # renewed for the last time
        page.set_viewport_size(PHONE["viewport"])
        names = page.locator(".report-table tbody th[scope=row]").evaluate_all("all => all.map(one => one.offsetWidth)")
        assert names, "every row has its name"
        assert min(names) > 120, "on a phone the table scrolls, and words stay whole"
        page.set_viewport_size(DESKTOP["viewport"])
        examine(page, "explore")
        read_out(page, "explore")
        tab_through(page, "explore")
        reach(page, page.get_by_role("link", name="results page"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/studies/likert/results"))


def newer(route: Route) -> None:
    """The same page, as if newer data had come in."""
    page = route.fetch(headers={**route.request.headers, "if-none-match": ""})
    route.fulfill(body=page.text().replace("What this part shows", "What newer data show"), content_type="text/html")


def test_the_review_document_on_paper(tmp_path, open_page):  # noqa: F811
    """Everything that raters read and press is printed; what only the dashboard needs is not."""
    parent = tmp_path / "studies"
    copy_template("acute", parent / "draft")
    with serving_site(parent) as served:
        page = open_page()
        come_in(page, served.owner_link())
        page.goto(f"{served.url}/dashboard/studies/draft/review")
        page.emulate_media(media="print")
        for name in ("I agree and take part", "I do not want to take part", "Begin"):
            expect(page.get_by_role("button", name=name).first).to_be_visible()
        for definition in page.locator(".review-page dd").all():
            expect(definition).to_be_visible()
        make = page.get_by_role("button", name="Make a link")
        expect(make).to_be_hidden()
        page.emulate_media(media="screen")
        make.click()
        stranger = open_page()
        stranger.goto(page.locator(".one-time").inner_text())
        width = stranger.locator(".review").bounding_box()["width"]
        assert width > 0.7 * DESKTOP["viewport"]["width"], "pages are shown as wide as raters see them"
        examine(stranger, "the document by its link")
        read_out(stranger, "the document by its link")
        tab_through(stranger, "the document by its link")


def reach(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    for _ in range(MAX_INSIDE):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    expect(target).to_be_focused()


def test_what_happens_is_announced(tmp_path, open_page):  # noqa: F811
    """Messages are live regions; a mistake is named at its field; the skip link leads to the content. By keyboard alone."""
    parent = tmp_path / "studies"
    copy_template("compare", parent / "draft")
    with serving_site(parent) as served:
        page = open_page()
        come_in(page, served.owner_link())
        page.goto(f"{served.url}/dashboard/studies/draft/form/recruitment")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.get_by_label("Pay cents", exact=True).fill("many")
        page.keyboard.press("Enter")
        wrong = page.get_by_label("Pay cents", exact=True)
        expect(wrong).to_have_attribute("aria-invalid", "true")
        described = wrong.get_attribute("aria-describedby") or ""
        words = [page.locator(f"[id='{one}']").inner_text() for one in described.split()]
        assert any("write a whole number" in one for one in words), "the mistake is read out with its field"
        wrong.fill("24")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
        page.set_viewport_size(PHONE["viewport"])
        covered = """() => [...document.querySelectorAll('.maker-steps li')].filter((one, i, all) => all[i + 1]
          && one.offsetTop === all[i + 1].offsetTop && one.offsetLeft + one.offsetWidth > all[i + 1].offsetLeft - 20).length"""
        assert page.evaluate(covered) == 0, "the number of a step is beside the name of the one before it"
        page.set_viewport_size(DESKTOP["viewport"])
        page.goto(f"{served.url}/dashboard/studies/draft/files/study.yaml?line=4#open-file")
        expect(page.get_by_label("study.yaml")).to_be_focused()  # only then the line of a problem is seen as chosen
