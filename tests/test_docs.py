"""What the documentation tells people to type works: every shell and Python block of a page runs, in order, in a new folder.

Blocks marked ``console`` or ``text`` only show something; the lines of an ``output`` block must be in what the commands
before it printed (``…`` stands for anything). Lines that set up (make, pip, cd, git) are for people and passed
over; a page's files are the blocks with a ``title``.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_server import command_server

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?[^\n]*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
SET_UP = ("make ", "pip ", "cd ", "git ")


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def needs_data(page):
    return any("DIALOMETER_DATA" in text for language, _, text in blocks(page) if language in ("sh", "python"))


# Pages whose commands need files that a test of their own lays out first.
OWN_TESTS = {
    "docs/how-to/export.md": "tests/exchange/test_exchange_docs.py",
    "docs/how-to/import.md": "tests/exchange/test_exchange_docs.py",
    "docs/explanation/reports.md": "tests/report/test_report_docs.py",
    "docs/reference/api.md": "tests/web/test_web_documented.py",
}
RUNNABLE = [
    page
    for page in PAGES
    if any(language in ("sh", "python") for language, _, _ in blocks(page))
    and str(page.relative_to(ROOT)) not in OWN_TESTS
]


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Where the commands of the pages are found: programs that start at once."""
    with command_server(tmp_path_factory.mktemp("commands")) as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_tells_to_type_works(page, tmp_path, programs):
    if needs_data(page) and not os.environ.get("DIALOMETER_DATA"):
        pytest.skip("realdata: the page works on public data, and DIALOMETER_DATA names no folder")
    environment = {
        **os.environ,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "80",
    }
    for _, title, text in blocks(page):
        if title:
            (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / title).write_text(text, encoding="utf-8")
    printed = ""
    for language, title, text in blocks(page):
        if title:
            continue
        if language == "output":
            assert_printed(text, printed, page)
        elif language == "sh":
            lines = [line for line in text.splitlines() if not line.startswith(SET_UP)]
            command = ["bash", "-e", "-c", "\n".join(lines)]
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
            )
            assert done.returncode == 0, f"{page.name}:\n{text}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            printed = done.stdout
        elif language == "python":
            (tmp_path / "_block.py").write_text(text, encoding="utf-8")
            command = [str(programs / "python"), "_block.py"]
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
            )
            expects_error = "dialogues.md" in page.name and "broken" in text
            assert done.returncode == 0 or expects_error, f"{page.name}:\n{text}\n{done.stderr[-2000:]}"


def assert_printed(shown, printed, page):
    words = " ".join(printed.split())
    for line in shown.splitlines():
        for part in line.split("…"):
            wanted = " ".join(part.split())
            assert wanted in words, f"{page.name} shows what was not printed: {wanted}\n{printed[-3000:]}"


def test_output_that_was_not_printed_is_found():
    assert_printed(
        "Raters  10\n… judgments stored", "Raters needed 10\nRaters   10\n448 judgments\nstored", Path("page")
    )
    with pytest.raises(AssertionError, match="shows what was not printed: Raters 11"):
        assert_printed("Raters  11", "Raters 10", Path("page"))


@pytest.mark.parametrize(("page", "test"), OWN_TESTS.items())
def test_pages_with_a_test_of_their_own_have_it(page, test):
    assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_no_block_has_an_unknown_language():
    known = {
        "sh",
        "python",
        "console",
        "text",
        "yaml",
        "json",
        "csv",
        "jsonl",
        "toml",
        "html",
        "ini",
        "nginx",
        "bash",
        "sql",
        "mermaid",
        "dockerfile",
        "output",
    }
    for page in PAGES:
        assert {language for language, _, _ in blocks(page)} <= known - {"bash"}, page


def test_the_site_builds_without_a_warning_and_asks_nobody_else(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        asked = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(https?://[^\">]+)", page.read_text("utf-8")
        )
        assert asked == [], page
    assert (tmp_path / "site" / "reference" / "formulas.html").read_text("utf-8").count("<math") > 20
