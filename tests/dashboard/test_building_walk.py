"""Every template's study built from nothing in Chromium, by the forms alone, with the pointer and the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from dashboard_serving import serving_site
from playwright.sync_api import Page, expect
from test_building import PageForm, build, differing_parts
from test_dashboard_walk import come_in, examine, open_page  # noqa: F401

from dialometer.design.templates import copy_template, template_names

pytestmark = [pytest.mark.browser, pytest.mark.slow]


class BrowserForm(PageForm):
    """The pages themselves: what is folded is opened, fields are filled, buttons are pressed."""

    def __init__(self, page: Page, url: str, folder: Path) -> None:
        self.page, self.url, self.folder = page, url, folder

    def begin(self):
        self.page.goto(f"{self.url}/dashboard/new")
        self.page.get_by_role("textbox", name="Name").fill(self.folder.name)
        self.page.get_by_role("radio", name="An empty study").check()
        self.page.get_by_role("button", name="Make the study").click()
        expect(self.page.get_by_role("status").first).to_contain_text("Made the study")

    def bring(self, items):
        self._open("systems")
        dropped = {"name": "mine.jsonl", "mimeType": "application/jsonl", "buffer": items}
        self.page.locator("input[name=items]").set_input_files(files=[dropped])
        expect(self.page.get_by_role("heading", name="Your items")).to_be_visible()
        examine(self.page, "items")
        self.page.get_by_role("button", name="Use").click()
        expect(self.page.get_by_text("items saved.")).to_be_visible()

    def upload(self, file, content):
        self.page.goto(f"{self.url}/dashboard/studies/{self.folder.name}/files")
        other = {"name": file, "mimeType": "text/plain", "buffer": content}
        self.page.get_by_label("Any other file of the study").set_input_files(files=[other])
        self.page.get_by_role("button", name="Upload file").click()
        expect(self.page.get_by_role("status").first).to_contain_text(f"Saved {file}")

    def _open(self, step):
        address = f"{self.url}/dashboard/studies/{self.folder.name}/form/{step}"
        if not self.page.url.startswith(address):
            self.page.goto(address)
        self.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")

    def do(self, action, kind=""):
        path = action.partition(" ")[2]
        self._open(self.step_of(path))
        chooser = self.page.locator(f"select[name='{path}._kind']")
        if kind and chooser.count():
            chooser.select_option(kind)
        with self.page.expect_navigation():
            self.page.locator(f"button[value='{action}']").press("Enter")
        return self.page.url.partition("#")[2]

    def take(self, keys, typed):
        self._open(self.step_of(keys[0]))
        for name, text in typed.items():
            self.page.locator(f"[name='{name}']").fill(text)
        self._save()
        return {}

    def fill(self, step, typed):
        self._open(step)
        there = self.page.evaluate(
            "[...document.querySelector('form[data-form]').elements].map((one) => [one.name, one.type])"
        )
        for name, kind in there:
            field = self.page.locator(f"form[data-form] [name='{name}']")
            if kind == "checkbox":
                field.set_checked(typed.get(name) == "yes")
            elif name in typed and kind != "hidden":
                text = typed[name].replace("\r\n", "\n")
                if field.input_value() != text:
                    field.select_option(text) if kind == "select-one" else field.fill(text)
        self._save()

    def _save(self):
        with self.page.expect_navigation():
            self.page.locator("form[data-form] .form-foot").get_by_role("button", name="Save", exact=True).click()
        expect(self.page.get_by_role("status").first).to_contain_text("Saved.")


@pytest.mark.parametrize("name", template_names())
def test_a_study_is_built_in_the_browser(tmp_path, open_page, name):  # noqa: F811
    parent = tmp_path / "studies"
    parent.mkdir()
    with serving_site(parent) as served:
        page = open_page(viewport={"width": 1024, "height": 800})
        come_in(page, served.owner_link())
        build(BrowserForm(page, served.url, parent / "built"), name)
        expect(page.get_by_text("No errors.", exact=True)).to_be_visible()
        assert differing_parts(parent / "built", name) == set()
        if name == "pairs":
            page.goto(f"{served.url}/dashboard/studies/built/pairs/1")
            page.locator("textarea[name='b.1']").fill("Something else altogether.")
            expect(page.locator("[data-looked-content] ins").first).to_contain_text("Something else")
            examine(page, "a pair")


def test_items_are_brought_with_the_keyboard_on_a_small_screen(tmp_path, open_page):  # noqa: F811
    parent = tmp_path / "studies"
    copy_template("likert", parent / "mine")
    header = ",".join(f"column{n}" for n in range(12))
    table = "\n".join([header, *(",".join(f"{row} {n}" for n in range(12)) for row in range(3))])
    with serving_site(parent) as served:
        page = open_page(viewport={"width": 1024, "height": 800})
        come_in(page, served.owner_link())
        page.goto(f"{served.url}/dashboard/studies/mine/form/systems")
        form, seen = (page.locator(f".maker-{part}").bounding_box() for part in ("form", "side"))
        assert seen["x"] > form["x"] + form["width"], "what raters see is beside the form"
        dropped = {"name": "mine.csv", "mimeType": "text/csv", "buffer": table.encode()}
        page.locator("input[name=items]").set_input_files(files=[dropped])
        column = page.get_by_label("column9")
        column.focus()
        for place in ("block", "id"):
            with page.expect_navigation():
                column.press("ArrowUp")
            expect(column).to_have_value(place)
            expect(column).to_be_focused()
        expect(column).to_be_in_viewport()
