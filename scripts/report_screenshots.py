"""Pictures of a report as people see it: desk light and dark, phone, paper. For looking at changes of its appearance.

    python scripts/report_screenshots.py FOLDER [report.json]

Without a report.json the example of the tests is drawn, which holds one of everything.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from dialometer.model.report import Report
from dialometer.report import read_report, render

EXAMPLE = Path(__file__).parent.parent / "tests" / "report" / "rich_report.py"
VIEWS = {
    "desk-light": (1440, 900, "light"),
    "desk-dark": (1440, 900, "dark"),
    "tablet": (820, 1100, "light"),
    "phone-light": (390, 844, "light"),
    "phone-dark": (390, 844, "dark"),
}


def example() -> Report:
    """The report of the tests."""
    sys.path.insert(0, str(EXAMPLE.parent))
    module = importlib.import_module(EXAMPLE.stem)
    report: Report = module.rich_report()
    return report


def take(browser: Browser, page_file: Path, folder: Path) -> None:
    """One picture of the first screen and one of the whole page for each view, and the page on paper."""
    for name, (width, height, scheme) in VIEWS.items():
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.screenshot(path=folder / f"{name}.png")
        page.screenshot(path=folder / f"{name}-all.png", full_page=True)
        context.close()
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    page.pdf(path=folder / "paper.pdf", prefer_css_page_size=True, print_background=False)


def main() -> None:
    """Render, then take the pictures."""
    folder = Path(sys.argv[1])
    report = read_report(Path(sys.argv[2])) if len(sys.argv) > 2 else example()
    began = time.perf_counter()
    files = render(report, folder / "report")
    print(f"{len(files)} files in {time.perf_counter() - began:.1f} s")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        take(browser, (folder / "report" / "index.html").resolve(), folder)
        browser.close()
    print(folder)


if __name__ == "__main__":
    main()
