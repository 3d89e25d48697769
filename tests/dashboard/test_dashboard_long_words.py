"""No page of the dashboard is wider than its screen, whatever titles, labels, answers and files hold; right-to-left text too."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

import yaml
from dashboard_cases import collect, cut
from playwright.sync_api import Page, Route
from test_long_words import ADDRESS, ARABIC, TOO_WIDE, WIDTHS, lengthened

from dialometer.design.templates import copy_template
from dialometer.storage.store import Store
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.server.static_files import STATIC

pytestmark = pytest.mark.browser

SITE = "http://127.0.0.1:9"
PLACES = ("", "raters", "raters/1", "items", "items/{item}", "texts", "quality", "control", "preview", "files")
STYLES = ("light", "dark")
OUT = TOO_WIDE.replace(".scroll'", ".scroll, .tabs, .code-text'")
"""Tables, tabs and the text of a file scroll within their own box."""


def long_study(folder: Path) -> Path:
    """A study whose titles, labels, questions and items hold an address and a very long Arabic word; raters wrote them too."""
    copy_template("likert", folder)
    cut(folder, 2)
    spec = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    spec["title"] += f" {ADDRESS}"
    for system in spec["systems"]:
        system["label"] = f"{system.get('label', system['name'])} {ADDRESS}"
    for criterion in spec["criteria"]:
        criterion["label"] = f"{criterion['name']} {ARABIC}"
        criterion["question"] += f" {ADDRESS}"
    (folder / "study.yaml").write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    for item in items:
        for key in ("context", "responses"):
            item[key] = lengthened(item[key], ADDRESS)
    lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (folder / "items.jsonl").write_text(lines, encoding="utf-8")
    collect(folder, 3)
    with Store.open(folder / "study.db") as store:
        ids = [session.id for session in store.sessions.all()]
        texts = [answer for answer in store.records.answers(ids[0]) if isinstance(answer.value, str)]
        store.exclusions.exclude(ids[1], "ada", f"because of {ADDRESS}", 1_700_000_000_000)
        for answer in texts:
            store.submissions.correct(replace(answer, value=ADDRESS, replaces=answer.id, corrected_by="ada"))
    return folder


@pytest.fixture
def shown(browser):
    """A page with this HTML, its files from the package's folder; nothing is served."""
    context = browser.new_context()
    page = context.new_page()
    content = {"html": ""}

    def answer(route: Route) -> None:
        path = re.sub(r"\?.*", "", route.request.url).removeprefix(SITE)
        if "/static/" in path:
            route.fulfill(path=STATIC / path.rpartition("/static/")[2])
        elif route.request.is_navigation_request() and route.request.frame == page.main_frame:
            route.fulfill(body=content["html"], content_type="text/html; charset=utf-8")
        else:
            route.fulfill(body="", status=404)

    page.route("**/*", answer)

    def show(html: str) -> Page:
        content["html"] = html
        page.goto(SITE)
        return page

    yield show
    context.close()


@pytest.mark.slow
def test_no_page_of_the_dashboard_is_wider_than_its_screen(tmp_path, make_site, shown):
    folder = long_study(tmp_path / "studies" / "long")
    owner = make_site(StudyFolders((str(folder),))).owner()
    item = json.loads((folder / "items.jsonl").read_text(encoding="utf-8").splitlines()[-1])["id"]
    pages = ["/", "/accounts", *(f"/studies/long/{place.format(item=item)}" for place in PLACES)]
    for place in pages:
        owner.get(place)
        assert owner.status == 200, place
        page = shown(owner.page)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            for style in STYLES:
                page.emulate_media(color_scheme=style)
                assert page.evaluate(OUT) == [width], (place, width, style)
