"""Every picture of the documentation is made by a script, shown on a page, and small enough to be looked at on the way."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SCRIPTS = ("screenshots", "dashboard_screenshots", "builder_screenshots", "avatar_screenshots", "pictures")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_BYTES = 250_000
WIDEST = 1500


@pytest.fixture(scope="module")
def made():
    """Which script makes which picture."""
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        found = {name: importlib.import_module(name).PICTURES for name in SCRIPTS}
    finally:
        sys.path[:] = before
    return {picture: script for script, pictures in found.items() for picture in pictures}


def test_every_picture_has_a_script_that_makes_it(made):
    there = {path.name for path in IMAGES.iterdir()}
    assert there - set(made) == set(), "no script makes these; add them to one, or delete them"
    assert set(made) - there == set(), "run: make pictures"


def test_every_picture_is_shown_and_every_one_that_is_shown_is_ours(made):
    shown = {
        Path(target).name
        for page in PAGES
        for target in re.findall(r"[\w./-]+\.(?:png|jpe?g|gif|webp|svg)", page.read_text(encoding="utf-8"))
        if "images/" in target
    }
    assert shown == set(made)


def test_every_script_of_pictures_is_run_with_the_others():
    scripts = {path.stem for path in (ROOT / "scripts").glob("*_screenshots.py")} | {"screenshots"}
    assert scripts - {"report_screenshots"} | {"pictures"} == set(SCRIPTS), "report_screenshots is for looking only"


def test_pictures_are_light(made):
    from PIL import Image

    for name in made:
        assert (IMAGES / name).stat().st_size < MOST_BYTES, name
        with Image.open(IMAGES / name) as picture:
            assert picture.width < WIDEST, name


def test_the_readme_has_one_picture():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"!\[[^\]]+\]\([^)]+\)", text)) == 1
