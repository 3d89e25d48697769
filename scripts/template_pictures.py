"""Small pictures of the templates for the dashboard's *New study*: ``python scripts/template_pictures.py``.

Each is the first item as a rater sees it. They lie in the templates' folders and travel with the package.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import dashboard_screenshots as dashboard
from PIL import Image
from playwright.sync_api import sync_playwright

from chromium import CHROMIUM_ARGS, chromium
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.web.dashboard.pages.form import first_screen

SCREEN = {"width": 960, "height": 720}
SIZE = (480, 360)


def main() -> None:
    """One picture for each template."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name in template_names():
            copy_template(name, Path(folder) / name)
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        with dashboard.serving_site(Path(folder)) as site:
            page = browser.new_context(viewport=SCREEN, color_scheme="light").new_page()  # type: ignore[arg-type]
            dashboard.sign_in(page, site)
            for name in template_names():
                step = first_screen(load_study(Path(folder) / name), "item")
                page.goto(f"{site.url}/dashboard/studies/{name}/preview/0/{step}/s")
                picture = Image.open(io.BytesIO(page.screenshot()))
                picture.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS).save(
                    template_folder(name) / "picture.webp", quality=72, method=6
                )
                print(name)
        browser.close()


if __name__ == "__main__":
    main()
