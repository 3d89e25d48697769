"""Every picture of the documentation, anew: ``python scripts/pictures.py`` (``make pictures``).

The scripts beside this one take those of the raters' pages, of the dashboard and of the avatar; reports are made by the
commands of the demo and of the first tutorial and taken here. ``PICTURES`` of each script names what it makes; a test
holds docs/images to them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import screenshots
from playwright.sync_api import sync_playwright

from chromium import CHROMIUM_ARGS, chromium
from dialometer.cli.demo._studies import DEMO_REPORTS

SCRIPTS = (
    "screenshots.py",
    "template_pictures.py",
    "dashboard_screenshots.py",
    "builder_screenshots.py",
    "avatar_screenshots.py",
)
IMAGES = screenshots.ROOT / "docs" / "images"
REPORTS = {"report-desktop.png": "strategies", "evaluator-report-desktop.png": "evaluator"}
TUTORIAL = {"first-report-desktop.png": "carbs/report", "power-desktop.png": "carbs/power"}
"""What the commands of docs/tutorial/first-study.md make, so that readers see their own numbers."""
TUTORIAL_STEPS = (
    "new strategies carbs",
    "freeze carbs",
    "simulate carbs --raters 30 --seed 1",
    "report carbs",
    "power carbs --effect 1 --raters 20,40 --simulations 40",
)
PICTURES = (*REPORTS, *TUTORIAL)
SCREEN = {"width": 1440, "height": 900}


def make_reports(folder: Path) -> dict[str, Path]:
    """The reports of the demo that are shown, by picture."""
    pages = {}
    for picture, name in REPORTS.items():
        line = next(line for line in DEMO_REPORTS if line.name == name)
        for step in line.steps(Path(name), Path(f"{name}-report")):
            run(step, folder)
        pages[picture] = folder / f"{name}-report" / "index.html"
    return pages


def make_tutorial(folder: Path) -> dict[str, Path]:
    """The pages that the first tutorial makes, by picture."""
    for step in TUTORIAL_STEPS:
        run(step.split(), folder)
    return {picture: folder / made / "index.html" for picture, made in TUTORIAL.items()}


def run(step: Sequence[str], folder: Path) -> None:
    """One command of dialometer."""
    subprocess.run([sys.executable, "-m", "dialometer", *step], cwd=folder, check=True, capture_output=True)


def main() -> None:
    """All pictures."""
    for script in SCRIPTS:
        subprocess.run([sys.executable, str(Path(__file__).parent / script)], check=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        pages = make_reports(Path(folder)) | make_tutorial(Path(folder))
        for picture, page_file in pages.items():
            page = browser.new_context(viewport=SCREEN, color_scheme="light").new_page()  # type: ignore[arg-type]
            page.goto(page_file.resolve().as_uri())
            screenshots.save(page, IMAGES / picture, whole=False)
            print(picture)
        browser.close()


if __name__ == "__main__":
    main()
