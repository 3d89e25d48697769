"""The demo: a page within seconds, a study, a dashboard without an account, reports that come; and nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from commands import invoke as dialometer
from dialometer.cli.demo import _studies
from dialometer.cli.demo._page import home_page
from dialometer.cli.demo._studies import DEMO_REPORTS, STUDIES, DemoReport, ReportMaker, report_page


@pytest.fixture
def running(tmp_path):
    """A demo at work; gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dialometer", "demo", "--no-browser"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address
    process.address = address[0]
    yield process
    process.kill()
    process.wait(120)
    process.stdout.close()


@pytest.mark.parametrize("is_awaited", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_everything_is_one_click_away_and_gone_afterwards(running, tmp_path, is_awaited):
    """With and without waiting for the first report."""
    with httpx.Client(base_url=running.address, follow_redirects=True, timeout=120) as browser:
        until = time.monotonic() + 300
        while True:
            try:
                home = browser.get("/").raise_for_status()
                break
            except httpx.TransportError:
                assert time.monotonic() < until
                time.sleep(0.2)
        assert all(line.title in home.text for line in DEMO_REPORTS)
        typed = [re.sub(r"<[^>]+>", "", line) for line in re.findall(r"<code>.*?</code>", home.text)]
        assert "dialometer new anchoring anchoring" in typed
        assert typed == [" ".join(parts) for line in DEMO_REPORTS for parts in line.shown()]
        assert browser.get("/reports/anchoring/index.html").url.path == "/", "what is not made yet leads back"
        assert browser.get("/live/").raise_for_status().text.count("<form") >= 1
        assert browser.get("/dashboard/").url.path == "/dashboard/login", (
            "an outsider does not get in without the demo's door"
        )
        desk = browser.get("/show-dashboard").raise_for_status()
        assert desk.url.path == "/dashboard/studies/live/"
        assert desk.url.query == b"source=simulated", "also when a visitor has taken part"
        assert "Raters over time" in desk.text
        until = time.monotonic() + 600
        while is_awaited and 'href="/reports/' not in browser.get("/").text:
            assert time.monotonic() < until, "no report came"
            time.sleep(1)
        if is_awaited:
            report = browser.get(re.search(r'href="(/reports/[^"]+)"', browser.get("/").text)[1]).raise_for_status()
            assert "<svg" in report.text
    assert list(tmp_path.glob("dialometer-demo-*"))
    running.send_signal(signal.SIGINT)
    assert running.wait(120) in (0, 130)
    assert not list(tmp_path.glob("dialometer-demo-*"))


@pytest.mark.parametrize("kept", [None, "kept"])
def test_reports_made_once_are_left_where_the_command_says(tmp_path, monkeypatch, kept):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    nothing_to_do = tuple(replace(line, commands=()) for line in DEMO_REPORTS)
    monkeypatch.setattr(_studies, "DEMO_REPORTS", nothing_to_do)
    options = ("--keep", tmp_path / kept) if kept else ()
    printed = dialometer("demo", "--once", "--no-browser", *options)
    index = re.search(r"The reports start at (\S+)", printed)[1]
    assert DEMO_REPORTS[0].title in Path(index).read_text(encoding="utf-8")
    if kept:
        assert Path(index).parent == tmp_path / kept


def test_the_page_says_what_is_missing_and_what_failed():
    page = home_page(
        lambda line: "x" if line.name == "avatar" else "",
        {"anchoring": "no <space>"},
        live=[("A", "/a/", "b")],
    )
    assert page.count("Waits for its turn") == len(DEMO_REPORTS) - 2
    assert "no &lt;space&gt;" in page
    assert 'http-equiv="refresh"' in page
    done = home_page(lambda line: "x", {})
    assert "refresh" not in done
    assert "Being made" not in done
    assert "Waits" not in done
    at_work = home_page(lambda line: "", {}, n_done={"strategies": 2})
    assert at_work.count("Being made") == 1
    assert at_work.count("<li class=now>") == 1
    assert re.search(r"<li class=now><code>.*?simulate", at_work)


@pytest.mark.slow
def test_the_evaluator_is_trained_and_its_pages_are_linked(tmp_path):
    line = next(line for line in DEMO_REPORTS if line.name == "evaluator")
    maker = ReportMaker(tmp_path)
    maker.make(line)
    assert not maker.failed
    assert maker.n_done == {"evaluator": len(line.commands)}
    report = report_page(line, tmp_path)
    assert "Simulated dialogues whose truth is known" in report.read_text(encoding="utf-8")
    assert (tmp_path / STUDIES / "evaluator" / "evaluator.json").is_file()
    for _, file in line.pages:
        assert (report.parent / file).is_file()
        assert f'href="there/{file}"' in home_page(lambda one: "there" if one is line else "", {})


def test_a_command_that_fails_is_told_by_its_last_line(tmp_path):
    maker = ReportMaker(tmp_path)
    maker.make(DemoReport("lost", "Lost", "", (("report", "{study}"), ("new", "chat", "{study}"))))
    assert "lost" in maker.failed["lost"]
    assert not (tmp_path / STUDIES / "lost").exists(), "nothing is done after a failure"
