"""The whole server from the command line: one study, several, a folder of them, and several processes."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from commands import run
from dialometer.cli import main
from dialometer.design.templates import copy_template
from dialometer.web.dashboard.running_studies import StudyFolders

START_S = 300


@contextmanager
def serving(*arguments, log):
    command = [
        sys.executable,
        "-m",
        "dialometer",
        "serve",
        *map(str, arguments),
        "--port",
        "0",
        "--log-level",
        "warning",
    ]
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "NO_COLOR": "1"})
    try:
        until = time.monotonic() + START_S
        while True:
            text = log.read_text()
            assert server.poll() is None, text
            assert time.monotonic() < until, text
            found = re.search(r"Dashboard\s+(\S+)/dashboard/", text)
            if found:
                try:
                    httpx.get(f"{found[1]}/dashboard/login", timeout=60).raise_for_status()
                    break
                except httpx.HTTPError:
                    pass
            time.sleep(0.1)
        token = re.search(r"join\?token=(\S+)", text)
        yield found[1], token[1] if token else "", text
    finally:
        server.terminate()
        server.wait(120)
    assert server.returncode == 0, log.read_text()
    assert "failure" not in log.read_text()


def join(client, base, token, name="ada"):
    page = client.get(f"{base}/dashboard/join", params={"token": token}).text
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
    form = {"csrf": csrf, "token": token, "name": name, "password": "many good words", "again": "many good words"}
    done = client.post(f"{base}/dashboard/join", data=form, follow_redirects=True)
    assert f"{name} (owner)" in done.text
    return re.search(r'name="csrf" value="([0-9a-f]+)"', done.text)[1]


@pytest.mark.slow
def test_one_study_prints_the_first_owners_link_until_it_was_used(tmp_path):
    copy_template("likert", tmp_path / "films")
    with (
        serving(tmp_path / "films", log=tmp_path / "1.txt") as (base, token, told),
        httpx.Client(timeout=120) as client,
    ):
        assert "Raters open" in told
        join(client, base, token)
        assert client.get(f"{base}/dashboard/studies/films/").status_code == 200
        assert "Start" in client.get(f"{base}/").text
    with serving(tmp_path / "films", log=tmp_path / "2.txt") as (_, token, _):
        assert token == ""
    with (
        serving(tmp_path / "films", "--owner-link", log=tmp_path / "3.txt") as (base, token, _),
        httpx.Client(timeout=120) as client,
    ):
        join(client, base, token, "bob")


def test_several_studies_by_name(tmp_path):
    for name in ("one", "two"):
        copy_template("likert", tmp_path / name)
    with (
        serving(tmp_path / "one", tmp_path / "two", log=tmp_path / "log.txt") as (base, token, _),
        httpx.Client(timeout=120) as client,
    ):
        join(client, base, token)
        for name in ("one", "two"):
            assert "Start" in client.get(f"{base}/{name}/").text
            assert client.get(f"{base}/{name}/healthz").json()["status"] == "ok"
            left = json.loads((tmp_path / name / ".serving.json").read_text())
            assert left["url"] == f"{base}/{name}/"
        assert client.get(f"{base}/dashboard/").text.count("state-running") == 2
        assert client.get(f"{base}/", follow_redirects=False).headers["location"] == "/dashboard/"
        assert client.get(f"{base}/healthz").json()["status"] == "ok"
        assert client.get(f"{base}/nothing/").status_code == 404


@pytest.mark.skipif(not hasattr(os, "fork"), reason="several processes need file locks")
@pytest.mark.slow
def test_a_study_made_in_one_process_is_open_in_all(tmp_path):
    """Made, frozen and started in the browser; simulated raters then come over HTTP to whichever process answers."""
    parent = tmp_path / "studies"
    parent.mkdir()
    with serving(parent, "--workers", "2", log=tmp_path / "log.txt") as (base, token, _):
        with httpx.Client(timeout=120, follow_redirects=True) as client:
            csrf = join(client, base, token)

            def post(path, **form):
                return client.post(f"{base}/dashboard{path}", data={"csrf": csrf, **form})

            assert post("/new", name="films", title="Films", **{"from": "template:acute"}).status_code == 200
            assert "Frozen" in post("/studies/films/freeze").text
            assert "running" in post("/studies/films/control", what="start", reason="go").text
        done = run("simulate", parent / "films", "--raters", "6", "--json", "--url", f"{base}/films")
        n_judgments = json.loads(done.stdout)["n_judgments"]
        with httpx.Client(timeout=120, follow_redirects=True) as client:
            page = client.get(f"{base}/dashboard/login").text
            csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
            form = {"csrf": csrf, "name": "ada", "password": "many good words", "next": ""}
            assert "ada (owner)" in client.post(f"{base}/dashboard/login", data=form).text
            counted = f"<dt>judgments</dt><dd>{n_judgments:,}</dd>"
            until = time.monotonic() + 300  # numbers are kept for some seconds, longer where they took long
            while counted not in client.get(f"{base}/dashboard/studies/films/").text:
                assert time.monotonic() < until, "the dashboard does not show what the raters gave"
                time.sleep(0.5)


@pytest.mark.parametrize(
    ("prepare", "arguments", "told"),
    [
        (lambda path: (path / "x").mkdir(), ["x", "--database", "postgresql:///one"], "cannot share one database"),
        (lambda path: None, ["missing"], "no folder"),
        (
            lambda path: [shutil.copytree(path / "a", path / n / "a") for n in ("p", "q")],
            ["p/a", "q/a"],
            "name of its own",
        ),
        (lambda path: copy_template("likert", path / "desk"), ["desk", "a"], "cannot name one"),
        (
            lambda path: (path / "full").mkdir() or (path / "full" / "letter.txt").write_text("x"),
            ["full"],
            "no study.yaml",
        ),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path, prepare, arguments, told, monkeypatch, capsys):
    copy_template("likert", tmp_path / "a")
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dialometer", "serve", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert told in capsys.readouterr().err


def test_links_to_the_earlier_address_of_the_dashboard_still_lead_there(site):
    client = site.visitor().client
    moved = client.get("/desk/join?token=a%26b", follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (308, "/dashboard/join?token=a%26b")
    assert client.get("/desk", follow_redirects=False).headers["location"] == "/dashboard"
    assert client.get("/desktop", follow_redirects=False).status_code == 404


def test_a_link_for_raters_works_without_its_last_slash(site):
    moved = site.client.get("/likert?PROLIFIC_PID=a%26b", follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (308, "/likert/?PROLIFIC_PID=a%26b")
    assert site.client.get("/likert").status_code == 200
    assert site.client.get("/likert-2", follow_redirects=False).status_code == 404


@pytest.mark.parametrize("root", ["", "/lab"])
def test_addresses_of_the_dashboard_work_without_or_with_a_last_slash(studies_folder, make_site, root):
    site = make_site(StudyFolders(parent=str(studies_folder)), root_path=root)
    stranger = site.visitor().client
    for wrong, right in (
        ("", "/"),
        ("/studies/likert?source=people&a=b%26c", "/studies/likert/?source=people&a=b%26c"),
        ("/studies/likert/control/", "/studies/likert/control"),
        ("/studies/a%20b/raters/", "/studies/a%20b/raters"),
        ("/login/?next=", "/login?next="),
        ("/join/?token=x", "/join?token=x"),
        ("/review/x/", "/review/x"),
    ):
        moved = stranger.get(f"{root}/dashboard{wrong}", follow_redirects=False)
        assert (moved.status_code, moved.headers.get("location")) == (308, f"{root}/dashboard{right}")


def test_only_addresses_of_pages_lose_or_gain_their_last_slash(site):
    ada = site.owner()
    assert ada.get("/studies/likert").page == ada.get("/studies/likert/").page
    for path in ("/studies/", "/what", "/what/", "/static"):
        assert ada.client.get(f"/dashboard{path}", follow_redirects=False).status_code == 404, path


def test_what_the_whole_server_refused_is_counted_at_one_address(site, studies_folder, make_site):
    """A sum over all targets of Prometheus counts each refused connection once."""
    refused, sessions = "dialometer_refused_total{", "dialometer_sessions{"
    alone = make_site(StudyFolders((str(studies_folder / "likert"),))).client.get("/metrics").text
    assert refused in alone
    assert sessions in alone
    whole, study = (site.client.get(path).text for path in ("/metrics", "/likert/metrics"))
    assert (refused in whole, sessions in whole) == (True, False)
    assert (refused in study, sessions in study) == (False, True)
    assert "dialometer_not_stored_total" not in study
