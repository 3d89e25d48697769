"""An experimenter in Chromium, from the first login to the export; and every page against WCAG 2.2 AA."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from axe_checks import ALL_RULES, CONTRAST, complaints
from dashboard_serving import API_KEY, serving_site
from playwright.sync_api import Browser, Page, expect
from walking import DESKTOP, PHONE

from commands import result_of
from dialometer.design.load import load_study
from dialometer.flow.engine import now_ms
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.server_client import ServerClient
from dialometer.simulate.truth import draw_truth

pytestmark = pytest.mark.browser

PASSWORD = "correct horse battery"


@pytest.fixture
def open_page(browser: Browser):
    """Pages that complain when a script fails, something is refused by the policy, or another host is asked."""
    problems, contexts = [], []

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: problems.append(f"script failed: {error}"))
        page.on("console", lambda message: note(message.type, message.text))

    def note(kind: str, text: str) -> None:
        if kind == "error" and "Failed to load resource" not in text:
            problems.append(f"console: {text}")

    def open_one(**options) -> Page:
        context = browser.new_context(**{**DESKTOP, "reduced_motion": "reduce", **options})
        context.set_default_timeout(60_000)
        context.on("page", watch)
        context.on(
            "request",
            lambda request: (
                None
                if request.url.startswith("http://127.0.0.1:")
                else problems.append(f"asked another host: {request.url}")
            ),
        )
        contexts.append(context)
        return context.new_page()

    yield open_one
    for context in contexts:
        context.close()
    assert not problems, problems


def examine(page: Page, where: str) -> None:
    """The page as it stands: axe in light and dark, and nothing wider than a phone."""
    assert complaints(page, ALL_RULES) == [], f"{where}, light"
    page.emulate_media(color_scheme="dark")
    assert complaints(page, CONTRAST) == [], f"{where}, dark"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 360, "height": 740})
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert too_wide <= 0, f"{where}, on a phone: {too_wide} px too wide"
    page.set_viewport_size(DESKTOP["viewport"])


def come_in(page: Page, link: str) -> None:
    page.goto(link)
    examine(page, "join")
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()


def few_items(folder: Path) -> bytes:
    lines = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    special = [x for x in lines if x.get("metadata", {}).get("practice") or x.get("metadata", {}).get("gold")]
    plain = [x for x in lines if x not in special]
    return "".join(json.dumps(x) + "\n" for x in special + plain[:10]).encode()


def raters_come(folder: Path, url: str, n: int, seed: int) -> dict[str, int]:
    """``dialometer simulate --url`` without the command line."""
    study = load_study(folder)
    habits = Habits(careless_share=0.3)
    with ServerClient(url, API_KEY) as door:
        done = simulate(study, door, draw_truth(study, 1), n_raters=n, seed=seed, start_ms=now_ms(), habits=habits)
    return {"arrived": done.n_arrived, "refused": done.n_refused, "judgments": done.n_judgments}


def number(page: Page, name: str) -> int:
    text = page.locator(f".facts.big div:has(dt:text-is('{name}')) dd").inner_text()
    return int(text.split()[0].replace(",", ""))


@pytest.mark.slow
def test_from_the_first_login_to_the_export(tmp_path, open_page):
    parent = tmp_path / "studies"
    parent.mkdir()
    with serving_site(parent) as served:
        page = open_page()
        come_in(page, served.owner_link())

        # A study from a template, its items, its texts
        page.get_by_role("link", name="New study").click()
        examine(page, "new study")
        page.get_by_role("textbox", name="Name").fill("travel")
        page.get_by_role("textbox", name="Title").fill("Answers of a travel assistant")
        page.get_by_role("radio", name="likert").check()
        page.get_by_role("button", name="Make the study").click()
        expect(page.get_by_role("status").filter(has_text="Made the study travel")).to_be_visible()
        folder = parent / "travel"

        # By its form: a title, a criterion more and gone again
        examine(page, "the form")
        page.get_by_label("Contact").fill("Ada, ada@example.org")
        page.get_by_role("button", name="Save and continue").click()
        expect(page.get_by_role("heading", name="Systems and items")).to_be_visible()
        page.get_by_role("link", name="Criteria and scales").click()
        page.locator("button[value='add criteria']").click()
        expect(page.get_by_text("'question' is empty").first).to_be_visible()
        expect(page.locator("[name='criteria.3.name']")).to_be_focused()
        examine(page, "the form with an error")
        page.get_by_role("button", name="Undo the last change").click()
        expect(page.get_by_text("No errors.", exact=True)).to_be_visible()
        expect(page.frame_locator("iframe").get_by_role("heading", level=1)).to_be_visible()
        assert "contact: Ada, ada@example.org" in (folder / "study.yaml").read_text(encoding="utf-8")
        assert load_study(folder).spec.contact == "Ada, ada@example.org"
        page.get_by_role("link", name="Files", exact=True).first.click()
        page.get_by_role("link", name="saved versions").click()
        examine(page, "versions")
        page.get_by_role("link", name="2", exact=True).click()
        examine(page, "a version")
        page.get_by_role("link", name="Files", exact=True).first.click()
        upload = {"name": "mine.jsonl", "mimeType": "application/jsonl", "buffer": few_items(folder)}
        page.get_by_label("Items (JSON Lines)").set_input_files(files=[upload])
        page.get_by_role("button", name="Upload items").click()
        expect(page.get_by_role("status")).to_contain_text("Saved items.jsonl. No errors.")
        page.get_by_role("link", name="study.yaml").click()
        editor = page.get_by_label("study.yaml")
        text = editor.input_value()
        assert text == (folder / "study.yaml").read_text(encoding="utf-8")
        editor.fill(text.replace("scale: agreement_5", "scale: agreement_6", 1))
        page.get_by_role("button", name="Save and check").click()
        expect(page.locator(".problems .is-error").first).to_contain_text("agreement_6")
        expect(page.get_by_text("Fix the errors, then the study can be frozen")).to_be_visible()
        examine(page, "files with an error")
        page.locator(".problems a").first.click()
        # The line of the problem is chosen once the page is there.
        page.wait_for_function(
            """() => { const text = document.querySelector("textarea[data-lines]");
              return text && text.value.slice(text.selectionStart, text.selectionEnd).includes("agreement_6"); }"""
        )
        n_lines = len(text.splitlines())
        assert str(n_lines) in page.locator(".gutter").inner_text().split()
        page.get_by_label("study.yaml").fill(text)
        page.get_by_role("button", name="Save and check").click()
        expect(page.get_by_text("No errors.", exact=True)).to_be_visible()

        # As raters see it
        page.get_by_role("link", name="Preview").click()
        frame = page.frame_locator("iframe")
        expect(frame.get_by_role("heading", level=1)).to_be_visible()
        expect(frame.get_by_text("Preview: nothing is stored")).to_be_visible()
        frame.get_by_role("button", name="I agree").click()
        expect(frame.locator("form.answers")).to_have_attribute("data-screen", "pre")
        examine(page, "preview")
        assert not (folder / "study.db").exists()

        # Freeze and start
        page.get_by_role("link", name="Files").click()
        page.get_by_role("link", name="Freeze the study …").click()
        expect(page.get_by_text("It cannot be undone")).to_be_visible()
        examine(page, "freeze")
        page.get_by_role("checkbox", name="I have looked at the pages").check()
        page.get_by_role("button", name="Freeze it for good").click()
        expect(page.get_by_role("heading", name="The study has not started yet")).to_be_visible()
        expect(page.locator(".one-time")).to_have_text(f"{served.url}/travel/")
        page.get_by_text("QR code", exact=True).click()
        expect(page.get_by_role("img", name="QR code of")).to_be_visible()
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("heading", name="The study is running")).to_be_visible()
        examine(page, "control")

        # Raters arrive, and the page shows it by itself
        page.get_by_role("link", name="Overview").click()
        assert number(page, "arrived") == 0
        examine(page, "overview, nobody there")
        page.evaluate("window.isTheSamePage = true")
        come = threading.Thread(target=raters_come, args=(folder, f"{served.url}/travel", 8, 1))
        come.start()
        deadline = time.monotonic() + 300
        while number(page, "finished") < 5:
            assert time.monotonic() < deadline, page.locator(".facts.big").inner_text()
            page.wait_for_timeout(250)
        come.join()
        assert page.evaluate("window.isTheSamePage"), "the page was not loaded again"
        assert number(page, "arrived") >= 5
        assert page.locator("svg.chart.wide polyline").count() >= 3
        examine(page, "overview")

        # One rater is excluded with a reason
        page.get_by_role("link", name="Raters", exact=True).click()
        examine(page, "raters")
        page.get_by_label("Analysis").select_option("counts")
        page.wait_for_url("**only_excluded=counts**")
        expect(page.locator("tbody tr")).not_to_have_count(0)
        n_counting = page.locator("tbody tr").count()
        page.locator("tbody th a").first.click()
        examine(page, "one rater")
        page.get_by_label("Reason").fill("told us that a child had answered")
        page.get_by_role("button", name="Exclude from the analysis").click()
        expect(page.get_by_text("by ada: told us that a child had answered")).to_be_visible()
        expect(page.locator(".state-excluded")).to_be_visible()
        page.go_back()
        page.go_back()
        page.reload()
        assert page.locator("tbody tr").count() == n_counting - 1

        # The other pages
        for name in ("Items", "Texts", "Quality"):
            page.get_by_role("link", name=name, exact=True).click()
            examine(page, name)
        page.get_by_role("link", name="Items", exact=True).click()
        page.get_by_role("link", name="Raters", exact=True).nth(1).click()
        expect(page.locator("th[aria-sort=ascending]")).to_have_text("Raters")
        page.locator("tbody th a").first.click()
        examine(page, "one item")

        # The answer comes by itself
        page.get_by_role("link", name="Results", exact=True).click()
        expect(page.get_by_text("Interim results are not a valid test.")).to_be_visible()
        expect(page.get_by_role("heading", name="The answer", exact=True)).to_be_visible(timeout=600_000)
        expect(page.get_by_role("heading", name="What the quality rules changed")).to_be_visible()
        examine(page, "results")

        # Pause: nobody new
        page.get_by_role("link", name="Control", exact=True).click()
        page.get_by_label("Reason").first.fill("looking at the first answers")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("heading", name="The study is paused")).to_be_visible()
        assert raters_come(folder, f"{served.url}/travel", 9, 2)["arrived"] == 0

        # Export
        page.get_by_role("link", name="Overview").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Export the data").click()
        with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
            table = archive.read("travel-export/judgments.csv").decode()
            sessions = archive.read("travel-export/sessions.csv").decode()
        store = served.app.studies.running("travel").store
        assert len(table.splitlines()) - 1 == sum(not j.is_practice for j in store.records.judgments())
        assert "told us that a child had answered" in sessions

        for path in ("", "accounts", "me", "nothing"):
            page.goto(f"{served.url}/dashboard/{path}")
            examine(page, path or "studies")
        page.goto(f"{served.url}/dashboard/")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        examine(page, "login")

    # The archive gives the same tables as the study itself
    few = ("--resamples", "100")
    dialometer("archive", folder, "--out", tmp_path / "travel.zip", *few)
    dialometer("report", folder, "--out", tmp_path / "own", "--format", "csv", *few)
    dialometer("report", tmp_path / "travel.zip", "--out", tmp_path / "archived", "--format", "csv", *few)
    own, archived = tables_in(tmp_path / "own"), tables_in(tmp_path / "archived")
    assert any("rule_counts" in name for name in own)
    assert any("sensitivity" in name for name in own)
    assert own == archived


def dialometer(*arguments: object) -> None:
    """A command, in this process: what a fresh process does is tested in ``tests/cli``."""
    done = result_of(*arguments)
    assert done.exit_code == 0, done.output


def tables_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.csv"))}


def test_a_phone_without_scripts_can_do_it_too(tmp_path, open_page):
    """No script: pages do not renew themselves, but everything else works."""
    parent = tmp_path / "studies"
    parent.mkdir()
    with serving_site(parent) as served:
        page = open_page(**PHONE, java_script_enabled=False)
        page.goto(served.owner_link())
        page.get_by_label("Name").fill("Ada")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Repeat the password").fill(PASSWORD)
        page.get_by_role("button", name="Create account").tap()
        page.get_by_role("link", name="New study").tap()
        page.get_by_role("textbox", name="Name").fill("travel")
        page.get_by_role("radio", name="acute").check()
        page.get_by_role("button", name="Make the study").tap()
        page.get_by_label("Contact").fill("Ada")
        page.get_by_role("button", name="Save", exact=True).last.tap()
        expect(page.get_by_role("status").first).to_contain_text("Saved.")
        page.get_by_role("link", name="Files", exact=True).first.tap()
        page.get_by_role("link", name="Freeze the study …").tap()
        page.get_by_role("checkbox", name="I have looked at the pages").check()
        page.get_by_role("button", name="Freeze it for good").tap()
        page.get_by_role("button", name="Start").tap()
        expect(page.get_by_role("heading", name="The study is running")).to_be_visible()
        raters_come(parent / "travel", f"{served.url}/travel", 3, 1)
        page.get_by_role("link", name="Raters", exact=True).tap()
        page.get_by_label("Search").fill("R0002")
        page.get_by_role("button", name="Show").tap()
        expect(page.locator("tbody tr")).to_have_count(1)
