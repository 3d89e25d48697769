"""Pictures of the experimenter's pages, for the documentation and for looking at them.

Makes a folder of studies with simulated raters, serves it on this machine and walks through it with the system's Chromium:

    python scripts/dashboard_screenshots.py             # the selection in docs/images
    python scripts/dashboard_screenshots.py --all DIR   # every page, desktop and phone, light and dark, into a folder
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "browser")]
sys.path.insert(0, str(ROOT / "tests" / "dashboard"))

from dashboard_serving import ServedSite, serving_site  # noqa: E402
from walking import DESKTOP, PHONE  # noqa: E402

from chromium import CHROMIUM_ARGS, chromium  # noqa: E402
from dialometer.design.load import load_study  # noqa: E402
from dialometer.design.lock import freeze  # noqa: E402
from dialometer.design.templates import copy_template  # noqa: E402
from dialometer.flow.engine import Flow, now_ms  # noqa: E402
from dialometer.flow.simulated import EngineAccess  # noqa: E402
from dialometer.simulate.rater import Habits  # noqa: E402
from dialometer.simulate.run import simulate  # noqa: E402
from dialometer.simulate.truth import draw_truth  # noqa: E402
from dialometer.storage.store import Store  # noqa: E402

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {**DESKTOP, "color_scheme": "light"},
    "phone": {**PHONE, "device_scale_factor": 1, "color_scheme": "light"},
    "dark": {**DESKTOP, "color_scheme": "dark"},
    "phone-dark": {**PHONE, "device_scale_factor": 1, "color_scheme": "dark"},
}
PASSWORD = "correct horse battery"
STUDIES = (("travel", "likert", 24), ("anchors", "anchoring", 20), ("lighthouse", "avatar", 14))
PAGES = {
    "login": "/login",
    "studies": "/",
    "overview": "/studies/anchors/",
    "raters": "/studies/travel/raters?sort=rater",
    "rater": "/studies/travel/raters/{excluded}",
    "items": "/studies/lighthouse/items?sort=-disagreement",
    "item": "/studies/travel/items/t03",
    "texts": "/studies/travel/texts",
    "results": "/studies/travel/results",
    "quality": "/studies/travel/quality",
    "control": "/studies/anchors/control",
    "preview": "/studies/anchors/preview?cell=3&step=4",
    "files": "/studies/draft/files/study.yaml",
    "form": "/studies/replies/form/criteria",
    "new": "/new",
    "accounts": "/accounts",
    "me": "/me",
}
SELECTION = {
    "desktop": ("studies", "overview", "rater", "quality", "results", "control", "preview", "files", "form", "new"),
}
PICTURES = tuple(f"dashboard-{name}-{look}.png" for look, names in SELECTION.items() for name in names)


def make_studies(parent: Path) -> int:
    """Studies with simulated raters; gives the number of a rater who failed a gold item."""
    excluded = 1
    for name, template, n_raters in STUDIES:
        folder = parent / name
        copy_template(template, folder)
        study = load_study(folder)
        freeze(study, folder, datetime.now(UTC))
        with Store.open(folder / "study.db") as store:
            truth, start_ms = draw_truth(study, 1), now_ms() - 3 * 3_600_000
            habits = Habits(careless_share=0.25, drop_out=0.1)
            simulate(
                study,
                EngineAccess(Flow(study, store)),
                truth,
                n_raters=n_raters,
                seed=2,
                start_ms=start_ms,
                habits=habits,
            )
            if name == "travel":
                excluded = next(s.ordinal for s in store.sessions.all() if s.is_excluded)
            store.control.set_quota(24, by="ada", reason="the grant pays for 24", at_ms=now_ms() - 3_000_000)
            if name == "anchors":
                store.control.set_cell_quota(
                    0, 6, by="ada", reason="enough of this condition", at_ms=now_ms() - 2_000_000
                )
    copy_template("strategies", parent / "draft")
    text = (parent / "draft" / "study.yaml").read_text(encoding="utf-8")
    (parent / "draft" / "study.yaml").write_text(text.replace("seed:", "sead:", 1), encoding="utf-8")
    copy_template("likert", parent / "replies")
    return excluded


def come_in(browser: Browser, served: ServedSite) -> Any:
    """Signs the first owner in and waits for the first results; gives the cookies."""
    context = browser.new_context(**DESKTOP)
    page = context.new_page()
    sign_in(page, served)
    for study in ("travel", "anchors"):
        page.goto(f"{served.url}/dashboard/studies/{study}/results")
        page.get_by_role("heading", name="The answer").first.wait_for(timeout=120_000)
    return context.storage_state()


def sign_in(page: Page, served: ServedSite) -> None:
    """Makes the account of the first owner."""
    page.goto(served.owner_link())
    for label, text in (("Name", "ada"), ("Password", PASSWORD), ("Repeat the password", PASSWORD)):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Create account").click()


def take(page: Page, url: str, path: Path, *, is_whole: bool) -> None:
    """One picture with few colours, so that it stays small."""
    page.goto(url)
    page.wait_for_timeout(400)
    page.screenshot(path=path, full_page=is_whole)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--all", type=Path, metavar="DIR", help="every page and look, into this folder")
    given = parser.parse_args()
    out: Path = given.all or ROOT / "docs" / "images"
    out.mkdir(parents=True, exist_ok=True)
    path = chromium()
    if path is None:
        sys.exit("no Chromium or Chrome on the PATH")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        parent = Path(folder) / "studies"
        parent.mkdir()
        excluded = make_studies(parent)
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        with serving_site(parent) as served:
            state = come_in(browser, served)
            for look, options in LOOKS.items():
                page = browser.new_context(**options, storage_state=state).new_page()
                for name in PAGES if given.all else SELECTION.get(look, ()):
                    url = f"{served.url}/dashboard{PAGES[name]}".format(excluded=excluded)
                    take(
                        page,
                        url,
                        out / f"dashboard-{name}-{look}.png",
                        is_whole=bool(given.all) or name not in ("rater", "new"),
                    )
        browser.close()


if __name__ == "__main__":
    main()
