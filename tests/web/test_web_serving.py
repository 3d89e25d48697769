"""The server as it runs: from the command line, with signals, several processes, and simulated raters over HTTP."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from taking_part import Program, json_answers, running

from commands import run
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.run import simulate
from dialometer.simulate.server_client import ServerClient, ServerRefused
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store
from dialometer.web.run import Listening, address_of, bind, check_processes

START_S = 300


@contextmanager
def serving(folder, *options, env=None):
    """``dialometer serve`` in a process of its own; gives it, its address and its key."""
    command = [sys.executable, "-m", "dialometer", "serve", str(folder), "--port", "0", *options]
    log = (folder / "out.txt").open("wb")
    server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    try:
        word = folder / ".serving.json"
        until = time.monotonic() + START_S
        while True:
            assert server.poll() is None, (folder / "out.txt").read_text()
            assert time.monotonic() < until, (folder / "out.txt").read_text()
            try:
                left = json.loads(word.read_text())
                httpx.get(f"{left['url']}healthz").raise_for_status()
                break
            except (OSError, ValueError, httpx.HTTPError):
                time.sleep(0.05)
        yield server, left["url"].rstrip("/"), left["api_key"]
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(120)
        log.close()


def join_in(client, url, key, external_id):
    body = {"external_id": external_id, "source": "simulated"}
    opened = client.post(f"{url}/api/v1/sessions", json=body, headers={"Authorization": f"Bearer {key}"}).json()
    return Program(client, opened["session_token"], opened["session_id"], f"{url}/api/v1")


def take_part(study, url, key, number, acknowledged, stop):
    """One rater who sends screens until the server is gone, and remembers what was acknowledged."""
    with httpx.Client(timeout=120) as client:
        try:
            program = join_in(client, url, key, f"rater-{number}")
            while not stop.is_set():
                shown = program.screen()
                if shown["kind"] == "done":
                    number += 100
                    program = join_in(client, url, key, f"rater-{number}")
                    continue
                answer = program.submit(shown["screen"], json_answers(study, shown))
                if answer.status_code == 200:
                    acknowledged.append((program.session_id, shown["screen"], len(shown["fields"]), shown["kind"]))
        except (httpx.HTTPError, AssertionError, KeyError, ValueError):
            return


@pytest.mark.parametrize(
    ("how", "n_processes"), [("SIGTERM", 1), pytest.param("SIGTERM", 2, marks=pytest.mark.slow), ("SIGKILL", 2)]
)
def test_nothing_acknowledged_is_lost_and_nothing_is_half_stored(how, n_processes, make_study):
    study = make_study("best-worst", n_items=4, design={"judgments_per_item": None}, recruitment={"quota": None})
    folder = study.folder
    acknowledged, stop = [], threading.Event()
    with serving(folder, "--workers", str(n_processes)) as (server, url, key):
        raters = [threading.Thread(target=take_part, args=(study, url, key, n, acknowledged, stop)) for n in range(8)]
        for rater in raters:
            rater.start()
        until = time.monotonic() + 300
        while len(acknowledged) < 60 and time.monotonic() < until:
            time.sleep(0.02)
        if how == "SIGTERM":
            server.send_signal(signal.SIGTERM)
            assert server.wait(300) == 0
            assert not (folder / ".serving.json").exists()
        else:
            children = _children(server.pid)
            assert len(children) >= n_processes
            for pid in [*children, server.pid]:
                os.kill(pid, signal.SIGKILL)
            server.wait(120)
        stop.set()
        for rater in raters:
            rater.join(120)
    assert len(acknowledged) >= 60
    with Store.open(folder / "study.db", create=False) as store:
        assert store.check() == []
        stored = {(visit.session_id, visit.screen) for visit in store.records.visits()}
        assert {(session, study.own_key(shown)) for session, shown, _, _ in acknowledged} <= stored
        flow = Flow(study, store)
        for session in store.sessions.all():
            # Every stored screen has all its judgments, and the session stands right after its last screen.
            path = flow.path(session)
            visited = [visit.screen for visit in store.records.visits(session.id)]
            assert visited == [step.key for step in path.steps[: session.step]]
            judged = {(j.item_id, j.criterion, j.is_practice) for j in store.records.judgments(session.id)}
            expected = {
                (step.task.item_id, criterion, step.task.is_practice)
                for step in path.steps[: session.step]
                if step.kind == "item"
                for criterion in step.criteria
            }
            assert judged == expected


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
@pytest.mark.slow
@pytest.mark.parametrize("n_processes", [1, 2])
def test_a_restart_refuses_nobody_and_loses_nothing(n_processes, make_study):
    """Raters submit all the time, on connections that are kept and on new ones, while the processes are replaced."""
    study = make_study("best-worst", n_items=4, design={"judgments_per_item": None}, recruitment={"quota": None})
    acknowledged, failed, stop = [], [], threading.Event()

    def rate(url, key, number, *, is_kept):
        while not stop.is_set():
            program, number = None, number + 100
            client = httpx.Client(timeout=120)
            try:
                program = join_in(client, url, key, f"rater-{number}")
                while not stop.is_set():
                    shown = program.screen()
                    if shown["kind"] == "done":
                        break
                    answer = program.submit(shown["screen"], json_answers(study, shown))
                    assert answer.status_code == 200, answer.text
                    acknowledged.append((program.session_id, shown["screen"]))
                    if not is_kept:
                        client.close()
                        program.client = client = httpx.Client(timeout=120)
            except Exception as error:
                failed.append(repr(error))
            finally:
                client.close()

    with serving(study.folder, "--workers", str(n_processes)) as (server, url, key):
        threads = [
            threading.Thread(target=rate, args=(url, key, n), kwargs={"is_kept": bool(n % 2)}, daemon=True)
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        server.send_signal(signal.SIGHUP)
        until = time.monotonic() + 600
        log = study.folder / "out.txt"
        while log.read_text().count("Finished server process") < n_processes:
            assert time.monotonic() < until, log.read_text()
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        n_then = len(acknowledged)
        while len(acknowledged) < n_then + 10:
            assert time.monotonic() < until, (failed, log.read_text())
            time.sleep(0.05)
        stop.set()
        for thread in threads:
            thread.join(120)
        server.send_signal(signal.SIGTERM)
        assert server.wait(300) == 0
    assert failed == []
    with Store.open(study.folder / "study.db", create=False) as store:
        stored = [(visit.session_id, visit.screen) for visit in store.records.visits()]
    assert {(session, study.own_key(shown)) for session, shown in acknowledged} <= set(stored)
    assert len(stored) == len(set(stored))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_a_restart_that_cannot_start_changes_nothing(make_study):
    study = make_study("best-worst", n_items=3)
    with serving(study.folder) as (server, url, _key):
        good = (study.folder / "study.yaml").read_text()
        (study.folder / "study.yaml").write_text("title: [")
        server.send_signal(signal.SIGHUP)
        until = time.monotonic() + 300
        while "worker_not_replaced" not in (study.folder / "out.txt").read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
        (study.folder / "study.yaml").write_text(good)


def test_a_socket_of_the_service_manager_is_used(monkeypatch):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        given = socket.socket(fileno=os.dup(listening.fileno()))
        monkeypatch.setattr("dialometer.web.run.FIRST_GIVEN", given.detach())
        monkeypatch.setenv("LISTEN_FDS", "1")
        monkeypatch.setenv("LISTEN_PID", "1")  # of another process
        with bind(Listening(port=0)) as own:
            assert own.getsockname() != listening.getsockname()
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        with bind(Listening(port=0)) as taken:
            assert taken.getsockname() == listening.getsockname()
        assert "LISTEN_FDS" not in os.environ
        monkeypatch.setenv("LISTEN_FDS", "2")
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        with pytest.raises(Exception, match="one listening TCP socket"):
            bind(Listening(port=0))


def test_it_says_where_to_go_and_leaves_word_for_programs(make_study):
    agent = {"type": "wizard", "options": {"canned": ["Yes."]}}
    study = make_study("chat", n_items=2, systems=[{"name": name, "agent": agent} for name in ("juno", "tak")])
    with serving(study.folder, "--root-path", "/films/") as (server, url, _key):
        told = (study.folder / "out.txt").read_text()
        assert f"Raters open   {url}/" in told
        link = told.split("Wizards open  ")[1].split()[0]
        assert httpx.get(link, timeout=60).status_code == 303
        assert url.endswith("/films")
        assert httpx.get(f"{url}/", timeout=60).status_code == 200
        assert (study.folder / ".serving.json").stat().st_mode & 0o077 == 0
        server.send_signal(signal.SIGINT)
        server.wait(120)
    assert not (study.folder / ".serving.json").exists()
    for line in (study.folder / "out.txt").read_text().splitlines():
        if line.startswith("{"):
            assert json.loads(line)["event"]


@pytest.mark.slow
def test_two_processes_count_together_and_share_the_work(make_study):
    study = make_study("best-worst", n_items=3, design={"judgments_per_item": None}, recruitment={"quota": None})
    with serving(study.folder, "--workers", "2", "--api-key", "given-key") as (_server, url, key):
        assert key == "given-key"
        for n in range(12):
            with httpx.Client(timeout=120) as client:  # a new connection goes to whichever process is free
                assert join_in(client, url, key, f"r{n}").answer(study).status_code == 200
        for _ in range(3):
            text = httpx.get(f"{url}/metrics", timeout=60).text
            assert 'dialometer_submissions_total{outcome="stored"} 12' in text


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are looked up in /proc")
def test_processes_end_with_the_first_one(make_study):
    """Killed outright, it could not tell them; they would keep the port and the database."""
    with serving(make_study("best-worst", n_items=3).folder, "--workers", "2") as (server, _url, _key):
        children = _children(server.pid)
        assert len(children) >= 2
        server.kill()
        server.wait(120)
        until = time.monotonic() + 120
        while any(Path(f"/proc/{pid}/exe").exists() for pid in children):
            assert time.monotonic() < until
            time.sleep(0.1)


@pytest.mark.parametrize("template", ["best-worst", "avatar", "chat"])
def test_simulated_raters_judge_the_same_over_http(template, make_study, site, tmp_path):
    study = make_study(template, n_items=2 if template == "chat" else 20)
    truth = draw_truth(study, 5)
    there = site(study)
    with running(there.app) as url, ServerClient(url, "the-key-of-the-tests") as door:
        over_http = simulate(study, door, truth, n_raters=3, seed=5, start_ms=1_800_000_000_000)
    with Store.open(tmp_path / "engine.db") as store:
        engine = simulate(
            study, EngineAccess(Flow(study, store)), truth, n_raters=3, seed=5, start_ms=1_800_000_000_000
        )
        assert content(there.store) == content(store)
    assert over_http == engine
    assert over_http.n_judgments > 0


def content(store):
    """Everything about a study that chance of tokens and ids does not decide."""
    ordinals = {session.id: session.ordinal for session in store.sessions.all()}
    plain = ("item_id", "criterion", "value", "system", "turn", "side", "position", "is_practice", "is_late")
    timed = ("shown_at_ms", "answered_at_ms")
    return (
        sorted((s.ordinal, s.state, s.step, s.started_at_ms, str(s.draw)) for s in store.sessions.all()),
        sorted(
            (ordinals[j.session_id], *(str(getattr(j, name)) for name in plain + timed))
            for j in store.records.judgments()
        ),
        sorted((ordinals[a.session_id], a.part, a.question, str(a.value)) for a in store.records.answers()),
        sorted((ordinals[v.session_id], v.screen, v.submitted_at_ms, v.device) for v in store.records.visits()),
        sorted((ordinals[f.session_id], f.finding.rule, f.finding.reason) for f in store.records.findings()),
        sorted((ordinals[t.session_id], t.item_id, t.n, t.text, t.at_ms) for t in store.conversations.turns()),
    )


def test_simulate_by_command_finds_the_key_in_the_folder(make_study):
    study = make_study("best-worst", n_items=3)
    with serving(study.folder, "--log-level", "warning") as (_server, url, _key):
        command = ("simulate", study.folder, "--raters", "2", "--json", "--url", url)
        told = json.loads(run(*command).stdout)
        assert told["states"] == {"completed": 2}
        assert told["n_judgments"] > 0
        assert "key" in run(*command, "--api-key", "wrong", code=1).stderr
    (study.folder / ".serving.json").unlink()  # this server was killed; one that is stopped takes it away
    assert "not known" in run(*command, code=1).stderr


def test_a_door_to_nowhere_says_so(monkeypatch):
    monkeypatch.setattr("dialometer.simulate.server_client.N_TRIES", 1)
    with ServerClient("http://127.0.0.1:9", "key") as door, pytest.raises(ServerRefused, match="does not answer"):
        door.arrive("x", 1)


def test_a_port_in_use_and_impossible_processes_are_told_in_words(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Exception, match="cannot listen"):
            bind(Listening(port=taken.getsockname()[1]))
    check_processes(2)
    monkeypatch.setattr("dialometer.web.run.HAS_PROCESS_LOCKS", False)
    with pytest.raises(Exception, match="cannot share the database"):
        check_processes(2)
    check_processes(1)
    with bind(Listening(port=0)) as sock:
        assert address_of(sock, "/x") == f"http://127.0.0.1:{sock.getsockname()[1]}/x/"
