"""Pictures of a study being made in the browser: walks through docs/tutorial/without-a-terminal.md and takes them on the way.

python scripts/builder_screenshots.py             # into docs/images
python scripts/builder_screenshots.py DIR         # somewhere else
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dashboard_screenshots import DESKTOP, ROOT, sign_in
from dashboard_serving import serving_site
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from chromium import CHROMIUM_ARGS, chromium
from dialometer.design.templates import copy_template

ANSWERS = """question,old assistant,new assistant,topic
How long do I boil an egg?,Ten minutes.,"Four minutes for a soft yolk, nine for a hard one.",eggs
Can I freeze cooked rice?,Yes.,"Yes. Cool it quickly, freeze it in portions, and heat it through when you eat it.",rice
My soup is too salty.,Add water.,"Add water or stock, or a peeled potato, and taste again.",soup
What goes with lentils?,Carrots go with lentils.,"Carrots, cumin and a little vinegar at the end.",lentils
How do I sharpen a knife?,Use a knife sharpener.,"Draw it over a wet stone at the same angle, both sides in turn.",tools
Is brown sugar healthier?,Brown sugar is sugar.,"Hardly: it is sugar with a little molasses.",baking
"""
PICTURES = tuple(f"builder-{name}-desktop.png" for name in ("items", "library", "power", "freeze", "pair"))


def take(page: Page, out: Path, name: str) -> None:
    """One picture of what is on the screen, with few colours."""
    page.wait_for_timeout(600)
    path = out / f"builder-{name}-desktop.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def walk(page: Page, url: str, out: Path) -> None:
    """The tutorial, step by step."""
    page.goto(f"{url}/dashboard/new")
    page.get_by_role("textbox", name="Name").fill("recipes")
    page.get_by_role("textbox", name="Title").fill("Which answer helps you cook?")
    page.locator("input[value='template:compare']").check()
    page.get_by_role("button", name="Make the study").click()
    page.get_by_label("Contact").fill("Ada Byron, ada@example.org")
    page.get_by_role("button", name="Save and continue").click()
    table = {"name": "answers.csv", "mimeType": "text/csv", "buffer": ANSWERS.encode()}
    page.locator("input[name=items]").set_input_files(files=[table])
    page.get_by_role("heading", name="Your items").wait_for()
    page.get_by_text("What each column is").scroll_into_view_if_needed()
    page.mouse.wheel(0, 420)
    take(page, out, "items")
    page.get_by_role("button", name="Use 6 items").click()
    page.get_by_role("button", name="Save and continue").click()
    page.get_by_text("From the library").click()
    take(page, out, "library")
    page.get_by_role("button", name="Insert Helpfulness of a response").click()
    page.get_by_text("No errors.", exact=True).wait_for()
    page.get_by_role("link", name="Analysis").click()
    page.get_by_label("Numbers of raters to try").fill("10, 20, 40")
    page.get_by_role("button", name="Simulate").click()
    page.locator("[data-live=power] table").wait_for(timeout=600_000)
    page.locator("[data-live=power]").scroll_into_view_if_needed()
    take(page, out, "power")
    page.get_by_role("link", name="Freeze", exact=True).click()
    take(page, out, "freeze")
    page.goto(f"{url}/dashboard/studies/talks/pairs/2")
    page.locator("textarea[name='b.0']").fill("Hello! What have you eaten today?")
    page.locator("[data-looked-content] ins").first.wait_for()
    take(page, out, "pair")


def main() -> None:
    """Takes the pictures."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    out.mkdir(parents=True, exist_ok=True)
    path = chromium()
    if path is None:
        sys.exit("no Chromium or Chrome on the PATH")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        parent = Path(folder) / "studies"
        copy_template("strategies", parent / "talks")
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        with serving_site(parent) as served:
            page = browser.new_context(**DESKTOP).new_page()
            page.on("dialog", lambda dialog: dialog.accept())
            sign_in(page, served)
            walk(page, served.url, out)
        browser.close()


if __name__ == "__main__":
    main()
