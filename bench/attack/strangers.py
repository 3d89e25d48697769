"""Strangers and slow clients: connections that say nothing or never end, and a database that fails."""

from __future__ import annotations

import contextlib
import resource
import shutil
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from bench.attack.target import Hole, Rater, Target, check, make_study, serving
from dialometer.design.load import load_study
from dialometer.storage.store import Store

SECTION = "Strangers and slow clients"
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
QUICK_S = 3.0
"""An answer that a rater would call immediate on a loaded machine."""
HANGS_S = 900.0
"""After so long without another replaced process, none will come; a busy machine takes a minute for each."""


@contextlib.contextmanager
def _watched(target: Target) -> Iterator[list[float]]:
    """How long a rater's page takes while something else goes on; a request that fails counts as 60 s."""
    waits: list[float] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            began = time.monotonic()
            try:
                with httpx.Client(timeout=20) as client:
                    is_well = client.get(f"{target.url}/").status_code == 200
            except httpx.HTTPError:
                is_well = False
            waits.append(time.monotonic() - began if is_well else 60.0)
            time.sleep(0.1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield waits
    finally:
        stop.set()
        thread.join(30)


def endless_headers(work: Path) -> str:
    """Three connections send a header without an end."""
    with serving(make_study(work / "study")) as target, _watched(target) as waits:
        sent = [0, 0, 0]

        def flood(index: int) -> None:
            until = time.monotonic() + 5
            while time.monotonic() < until:
                with contextlib.suppress(OSError), target.connect(f"127.0.0.{index + 2}", HEAD + b"X: ") as client:
                    while time.monotonic() < until:
                        sent[index] += client.send(b"a" * 65536)

        threads = [threading.Thread(target=flood, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        refused = target.counted("dialometer_refused_total").get("header_size", 0)
        figures = f"{sum(sent) / 1e6:.0f} MB of header, refused {refused} times, a page took at most {max(waits, default=60.0):.2f} s"
        return check(refused >= 3 and max(waits, default=60.0) < QUICK_S, figures)


def half_open(work: Path) -> str:
    """1,100 half-sent requests as from one proxy, then as many from one address and from many."""
    with serving(make_study(work / "study"), "--header-time", "5", "--max-connections", "1000") as target:
        figures, is_well = [], True
        for label, source, hold_s in (
            ("one address", lambda _n: "127.0.0.2", 1),
            ("a proxy", lambda _n: "127.0.0.1", 1),
            ("many addresses", lambda n: f"127.0.{n // 250 + 1}.{n % 250 + 1}", 8),
        ):
            is_fine, text = _half_open(target, source, hold_s)
            is_well &= is_fine
            figures.append(f"{label}: a page took at most {text}")
        refused = target.counted("dialometer_refused_total")
        n_lines = target.log.count('"event": "refused"')
        told = ", ".join(f"{reason} {n}" for reason, n in refused.items())
        is_counted = all(
            refused.get(reason, 0) >= least
            for reason, least in (("address_limit", 800), ("connection_limit", 150), ("header_time", 800))
        )
        is_counted &= 1 <= n_lines <= 3
        return check(is_well and is_counted, f"{'; '.join(figures)}; counted: {told}; {n_lines} lines in the log")


def _half_open(target: Target, source: Callable[[int], str], hold_s: float) -> tuple[bool, str]:
    held: list[socket.socket] = []
    try:
        with _watched(target) as waits:
            for n in range(1100):
                with contextlib.suppress(OSError):
                    held.append(target.connect(source(n), HEAD))
            time.sleep(hold_s)
        return max(waits, default=60.0) < QUICK_S, f"{max(waits, default=60.0):.2f} s"
    finally:
        for client in held:
            client.close()


def slow_bodies(work: Path) -> str:
    """200 bodies that come byte by byte."""
    with serving(make_study(work / "study"), "--body-time", "3") as target:
        head = b"POST /start HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n"
        held = [target.connect("127.0.0.2", head) for _ in range(200)]
        began = time.monotonic()
        with _watched(target) as waits:
            while held and time.monotonic() - began < 20:
                time.sleep(0.5)
                held = [client for client in held if _still_open(client)]
        counted = target.counted("dialometer_refused_total").get("body_time", 0)
        seconds = time.monotonic() - began
        figures = f"{counted} of 200 closed after {seconds:.0f} s, a page took at most {max(waits, default=60.0):.2f} s"
        return check(counted == 200 and not held and max(waits, default=60.0) < QUICK_S, figures)


def _still_open(client: socket.socket) -> bool:
    try:
        client.sendall(b"x")
        client.settimeout(0.001)
        return client.recv(1) not in (b"", b"H")
    except TimeoutError:
        return True
    except OSError:
        return False


def locked_database(work: Path) -> str:
    """60 raters arrive while another program has locked the database."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        with httpx.Client(timeout=60, limits=httpx.Limits(max_connections=100)) as client:
            csrf = client.get(f"{target.url}/").text.split('name="csrf" value="')[1].split('"')[0]
            statuses: list[int] = []
            health: list[tuple[int, float]] = []

            def arrive() -> None:
                with contextlib.suppress(httpx.HTTPError):
                    statuses.append(client.post(f"{target.url}/start", data={"csrf": csrf}).status_code)

            other = sqlite3.connect(folder / "study.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            time.sleep(1.2)  # health is checked once a second at most
            threads = [threading.Thread(target=arrive) for _ in range(60)]
            began = time.monotonic()
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) and time.monotonic() - began < 60:
                asked = time.monotonic()
                health.append((httpx.get(f"{target.url}/healthz", timeout=60).status_code, time.monotonic() - asked))
                time.sleep(0.3)
            for thread in threads:
                thread.join(60)
            seconds = time.monotonic() - began
            other.rollback()
            other.close()
            time.sleep(1.5)
            after = client.get(f"{target.url}/healthz").status_code
        slowest = max(wait for _, wait in health)
        n_refused = statuses.count(503)
        figures = f"{n_refused} of 60 got 503 within {seconds:.0f} s, health said 503 in at most {slowest:.1f} s, then {after}"
        is_told = {status for status, _ in health} == {503} and after == 200
        return check(n_refused == 60 and slowest < 6 and seconds < 30 and is_told, figures)


def deleted_database(work: Path) -> str:
    """study.db is deleted while raters answer."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        rater = Rater(target, "one")
        first, _ = rater.answer()
        (folder / "study.db").rename(folder / "moved.db")
        time.sleep(1.2)  # health is checked once a second at most
        later = [rater.answer()[0] for _ in range(5)]
        health = httpx.get(f"{target.url}/healthz", timeout=30)
        acknowledged = sum(answer is not None and answer.status_code == 200 for answer in later)
        is_held = first is not None and first.status_code == 200 and health.status_code == 503 and not acknowledged
        figures = f"{acknowledged} of 5 screens acknowledged afterwards, health {health.status_code}"
        return check(is_held and health.json()["reason"] == "gone", f"{figures} ({health.json().get('reason')})")


def full_disk(work: Path) -> str:
    """No file of the server can grow any more, as on a full disk."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        rater = Rater(target, "one")
        rater.answer()
        resource.prlimit(target.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        time.sleep(1.2)
        health = httpx.get(f"{target.url}/healthz", timeout=30)
        answers = [rater.answer()[0] for _ in range(3)]
        acknowledged = sum(answer is not None and answer.status_code == 200 for answer in answers)
        resource.prlimit(target.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        time.sleep(1.2)
        after = httpx.get(f"{target.url}/healthz", timeout=30).status_code
        again, _ = rater.answer()
        target.process.send_signal(signal.SIGTERM)
        target.process.wait(60)
    with Store.open(folder / "study.db", create=False) as store:
        n_stored, problems = len(list(store.records.visits())), store.check()
    figures = (
        f"health {health.status_code}, {acknowledged} of 3 screens acknowledged; with room again health {after}, "
        f"{n_stored} screens stored of {2 + acknowledged} acknowledged"
    )
    is_back = after == 200 and again is not None and again.status_code == 200 and not problems
    return check(health.status_code == 503 and is_back and n_stored == 2 + acknowledged, figures)


def restart(work: Path) -> str:
    """The processes are replaced three times while eight raters submit without a pause."""
    folder = make_study(work / "study", "best-worst")
    acknowledged: list[tuple[str, str]] = []
    failed: list[str] = []
    stop = threading.Event()
    with serving(folder, "--workers", "2") as target:

        def rate(number: int) -> None:
            while not stop.is_set():
                number += 100
                with httpx.Client(timeout=60) as client:
                    try:
                        rater = Rater(target, f"rater-{number}", source="simulated", client=client)
                        while not stop.is_set():
                            answer, screen = rater.answer()
                            if answer is None:
                                break
                            answer.raise_for_status()
                            acknowledged.append((rater.id, screen))
                    except httpx.HTTPError as error:
                        failed.append(repr(error))

        threads = [threading.Thread(target=rate, args=(n,), daemon=True) for n in range(8)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for n_replaced in (2, 4, 6):
            target.process.send_signal(signal.SIGHUP)
            # The count decides; the time only ends a server that replaces nothing any more.
            until = time.monotonic() + HANGS_S
            while target.log.count('"worker_replaced"') < n_replaced and time.monotonic() < until:
                time.sleep(0.2)
        n_replaced = target.log.count('"worker_replaced"')
        seconds = time.monotonic() - began
        time.sleep(4)
        stop.set()
        for thread in threads:
            thread.join(60)
        target.process.send_signal(signal.SIGTERM)
        target.process.wait(60)
    with Store.open(folder / "study.db", create=False) as store:
        stored = [(visit.session_id, visit.screen) for visit in store.records.visits()]
    study = load_study(folder)
    lost = len({(session, study.own_key(shown)) for session, shown in acknowledged} - set(stored))
    twice = len(stored) - len(set(stored))
    figures = (
        f"{n_replaced} processes replaced in {seconds:.0f} s, {len(acknowledged)} screens acknowledged, "
        f"{len(failed)} requests refused or cut, {lost} screens lost, {twice} stored twice"
    )
    shutil.rmtree(folder, ignore_errors=True)
    return check(n_replaced >= 6 and not failed and not lost and not twice and bool(acknowledged), figures)


HOLES = [
    Hole(SECTION, "three endless headers", endless_headers),
    Hole(SECTION, "1,100 half-open requests", half_open),
    Hole(SECTION, "200 slow bodies", slow_bodies),
    Hole(SECTION, "60 arrivals on a locked database", locked_database),
    Hole(SECTION, "study.db deleted", deleted_database),
    Hole(SECTION, "disk full", full_disk),
    Hole("Restart", "six processes replaced under load", restart),
]
