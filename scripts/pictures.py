"""Every picture of the documentation, anew: ``python scripts/pictures.py`` (``make pictures``).

The scripts beside this one take those of the raters' pages, of the dashboard and of the avatar; reports are made by the same
commands as in the demo and taken here. ``PICTURES`` of each script names what it makes; a test holds docs/images to them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import screenshots
from playwright.sync_api import sync_playwright

from chromium import CHROMIUM_ARGS, chromium
from dialometer.cli.demo._studies import DEMO_REPORTS

SCRIPTS = ("screenshots.py", "dashboard_screenshots.py", "avatar_screenshots.py")
IMAGES = screenshots.ROOT / "docs" / "images"
REPORTS = {"report-desktop.png": "strategies", "evaluator-report-desktop.png": "evaluator"}
PICTURES = tuple(REPORTS)
SCREEN = {"width": 1440, "height": 900}


def make_reports(folder: Path) -> dict[str, Path]:
    """The reports of the demo that are shown, by picture."""
    pages = {}
    for picture, name in REPORTS.items():
        line = next(line for line in DEMO_REPORTS if line.name == name)
        for step in line.steps(Path(name), Path(f"{name}-report")):
            subprocess.run([sys.executable, "-m", "dialometer", *step], cwd=folder, check=True, capture_output=True)
        pages[picture] = folder / f"{name}-report" / "index.html"
    return pages


def main() -> None:
    """All pictures."""
    for script in SCRIPTS:
        subprocess.run([sys.executable, str(Path(__file__).parent / script)], check=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        for picture, page_file in make_reports(Path(folder)).items():
            page = browser.new_context(viewport=SCREEN, color_scheme="light").new_page()  # type: ignore[arg-type]
            page.goto(page_file.resolve().as_uri())
            screenshots.save(page, IMAGES / picture, whole=False)
            print(picture)
        browser.close()


if __name__ == "__main__":
    main()
