"""How many screens a server stores, and how long raters wait: ``python -m bench.server [--workers 1 2] [--database URL]``.

With ``--humans 1000`` that many raters fill in pages at human pace instead (``make load``).

Two hundred simulated raters send their screens at once, each the next one as soon as the last is acknowledged; who
finishes begins another session. What they send was made beforehand, so that this program takes little of the machine it
shares with the server. Beside the
result stands what the same database can do without a server: one commit for each row, and the study's own rows in
batches.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import yaml

from bench._human_pace import page_requests, send_at_pace
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.screens import build_screen
from dialometer.flow.simulated import view_of
from dialometer.flow.steps import Path as Path_
from dialometer.flow.submissions import Timing
from dialometer.model.session import Session, Submission
from dialometer.model.study import Study
from dialometer.simulate.answering import answer_screen
from dialometer.simulate.rater import Habits, draw_rater
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

STORED = b'"outcome": "stored"'
END = b"\r\n\r\n"


@dataclass(frozen=True)
class Result:
    """What the raters saw."""

    n_sent: int
    n_stored: int
    seconds: float
    waits_s: list[float]
    client_cpu_s: float

    @property
    def per_s(self) -> float:
        return self.n_sent / self.seconds

    def wait_ms(self, share: float) -> float:
        return 1000 * self.waits_s[min(len(self.waits_s) - 1, int(share * len(self.waits_s)))]


def make_study(folder: Path, template: str) -> Study:
    """A template without limits on how many take part."""
    copy_template(template, folder)
    file = folder / "study.yaml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["recruitment"].pop("quota", None)
    spec["design"].pop("judgments_per_item", None)
    file.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return load_study(folder)


@contextmanager
def serving(
    folder: Path, database: str, workers: int, log_level: str
) -> Iterator[tuple[str, str, subprocess.Popen[bytes]]]:
    """A server in its own processes; gives its address and key."""
    word = folder / ".serving.json"
    command = [sys.executable, "-m", "dialometer", "serve", str(folder), "--port", "0", "--workers", str(workers)]
    command += ["--log-level", log_level, *(["--database", database] if database else [])]
    command += ["--connections-per-address", "20000"]  # all raters come from this machine
    with (folder / "server.log").open("ab") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until = time.monotonic() + 300
            while True:
                if time.monotonic() > until or server.poll() is not None:
                    raise SystemExit(f"the server did not start:\n{(folder / 'server.log').read_text()[-3000:]}")
                try:
                    left = json.loads(word.read_text())
                    httpx.get(f"{left['url']}healthz").raise_for_status()
                    break
                except (OSError, ValueError, httpx.HTTPError):
                    time.sleep(0.1)
            yield left["url"], left["api_key"], server
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def arrive(url: str, key: str, n_raters: int) -> list[tuple[str, str]]:
    """Sessions with their tokens."""
    with httpx.Client(base_url=f"{url}api/v1", timeout=60) as client:
        sessions = []
        for n in range(n_raters):
            body = {
                "platform": "bench",
                "external_id": f"bench-{os.getpid()}-{time.time_ns()}-{n}",
                "source": "simulated",
            }
            opened = (
                client.post("/sessions", json=body, headers={"Authorization": f"Bearer {key}"})
                .raise_for_status()
                .json()
            )
            sessions.append((opened["session_id"], opened["session_token"]))
        return sessions


def answers_of(study: Study, path: Path_, number: int, seed: int) -> list[tuple[str, dict[str, object]]]:
    """What a simulated rater sends for every step of a path, by screen."""
    truth, rater = draw_truth(study, seed), draw_rater(number, seed, Habits(careless_share=0))
    views = [view_of(build_screen(study, path, index)) for index in range(len(path.steps))]
    return [(view.key, answer_screen(study, truth, rater, view)) for view in views]


def walk_ahead(flow: Flow, walks: list[tuple[Session, list[tuple[str, dict[str, object]]]]]) -> None:
    """Stores the first screens of sessions directly, so that raters are not all at the same place."""
    for index in range(max(len(screens) for _, screens in walks)):
        batch = []
        for session, screens in walks:
            if index < len(screens):
                key, answers = screens[index]
                timing = Timing(flow.clock(), flow.clock())
                prepared = flow.prepare(replace(session, step=index), key, answers, timing, f"ahead/{session.id}/{key}")
                assert isinstance(prepared, Submission)
                batch.append(prepared)
        assert all(receipt.outcome == "stored" for receipt in flow.store.submissions.record(batch, flow.clock()))


def write_requests(
    study: Study, store: Store, url: str, sessions: list[tuple[str, str]], n_screens: int
) -> list[list[bytes]]:
    """The requests of every connection, ready to send: the rest of one session, then the next one.

    The first sessions stand at places drawn at random, so that raters finish one after the other, as they do in life.
    """
    flow = Flow(study, store)
    host = urlsplit(url).netloc
    rng = random.Random(1)
    n_raters = len(sessions) // 2
    requests: list[list[bytes]] = [[] for _ in range(n_raters)]
    ahead = []
    for number, (session_id, token) in enumerate(sessions):
        session = store.sessions.get(session_id)
        screens = answers_of(study, flow.path(session), number + 1, seed=1)
        n_ahead = rng.randrange(len(screens)) if number < n_raters else 0
        ahead.append((session, screens[:n_ahead]))
        for key, answers in screens[n_ahead:]:
            body = {"screen": key, "token": f"{session_id}/{key}", "answers": answers, "shown_at_ms": flow.clock()}
            requests[number % n_raters].append(json_request(host, token, json.dumps(body).encode()))
    walk_ahead(flow, ahead)
    return [own[:n_screens] for own in requests]


def json_request(host: str, token: str, body: bytes) -> bytes:
    head = (
        f"POST /api/v1/session/submissions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """One rater's connection."""

    def __init__(self, address: tuple[str, int], requests: list[bytes]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.left = iter(requests)
        self.sent_at = 0.0
        self.got = b""

    def send_next(self) -> bool:
        following = next(self.left, None)
        if following is None:
            return False
        self.sent_at = time.perf_counter()
        if self.socket.send(following) != len(following):
            raise SystemExit("a request did not fit into the socket's buffer")
        return True

    def answer(self) -> bytes | None:
        """A whole answer, once it is there."""
        data = self.socket.recv(65536)
        if not data:
            raise SystemExit("the server closed a connection")
        self.got += data
        head, found, body = self.got.partition(END)
        length = re.search(rb"content-length: (\d+)", head) if found else None
        if length is None or len(body) < int(length[1]):
            return None
        self.got = b""
        return body


def look_first(url: str, sessions: list[tuple[str, str]]) -> None:
    """Each rater sees the screen before sending it, as everybody does."""
    with httpx.Client(base_url=f"{url}api/v1", timeout=60) as client:
        for _, token in sessions:
            client.get("/session/screen", headers={"Authorization": f"Bearer {token}"}).raise_for_status()


def send_all(url: str, requests: list[list[bytes]]) -> Result:
    """All raters at once; each sends the next screen when the last is acknowledged."""
    parts = urlsplit(url)
    assert parts.hostname
    connections = {}
    poll = select.epoll()
    for own in requests:
        connection = Connection((parts.hostname, parts.port or 80), own)
        connections[connection.socket.fileno()] = connection
        poll.register(connection.socket.fileno(), select.EPOLLIN)
    waits: list[float] = []
    n_stored = 0
    cpu, began = time.process_time(), time.perf_counter()
    n_left = sum(connection.send_next() for connection in connections.values())
    while n_left:
        for number, _ in poll.poll():
            connection = connections[number]
            body = connection.answer()
            if body is None:
                continue
            waits.append(time.perf_counter() - connection.sent_at)
            n_stored += STORED in body
            n_left -= not connection.send_next()
    seconds = time.perf_counter() - began
    result = Result(len(waits), n_stored, seconds, sorted(waits), time.process_time() - cpu)
    for connection in connections.values():
        connection.socket.close()
    return result


def raw_commits(folder: Path, seconds: float = 2.0) -> float:
    """Commits of one small row each, as SQLite does them by itself with the same settings on the same disk."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content TEXT)")
    n, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        connection.execute("INSERT INTO rows (content) VALUES (?)", ("x" * 200,))
        n += 1
    connection.close()
    return n / (time.perf_counter() - began)


def raw_postgres(url: str, seconds: float = 2.0) -> float:
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is measured

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE rows (id SERIAL PRIMARY KEY, content TEXT)")
        n, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            connection.execute("INSERT INTO rows (content) VALUES (%s)", ("x" * 200,))
            n += 1
        return n / (time.perf_counter() - began)


def batches(study: Study, store: Store, n_raters: int = 200, n_screens: int = 20) -> float:
    """The study's own screens in batches of as many as there are raters, without a server before the database."""
    flow = Flow(study, store)
    sessions = [
        flow.arrive(platform="raw", external_id=f"raw-{n}", source="simulated").session for n in range(n_raters)
    ]
    walks = [(s, answers_of(study, flow.path(s), n + 1, seed=2)) for n, s in enumerate(sessions)]
    n, seconds = 0, 0.0
    for index in range(n_screens):
        batch = []
        for session, screens in walks:
            key, answers = screens[index]
            timing = Timing(flow.clock(), flow.clock())
            prepared = flow.prepare(replace(session, step=index), key, answers, timing, f"raw/{session.id}/{key}")
            assert isinstance(prepared, Submission)
            batch.append(prepared)
        began = time.perf_counter()
        receipts = store.submissions.record(batch, flow.clock())
        seconds += time.perf_counter() - began
        n += sum(receipt.outcome == "stored" for receipt in receipts)
    return n / seconds


def cpu_s(pid: int) -> dict[str, float]:
    """Processor time of a process and its children so far, by name of thread; empty where the system does not tell."""
    ticks = os.sysconf("SC_CLK_TCK")
    used: dict[str, float] = {}
    for process in [pid, *_children(pid)]:
        for task in Path(f"/proc/{process}/task").glob("*/stat"):
            name, _, rest = task.read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            used[name] = used.get(name, 0.0) + (int(fields[11]) + int(fields[12])) / ticks
    return used


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def measure(study: Study, folder: Path, arguments: argparse.Namespace, workers: int) -> Result:
    with serving(folder, arguments.database, workers, arguments.log_level) as (url, key, server):
        sessions = arrive(url, key, 2 * arguments.raters)
        with Store.open(arguments.database or folder / "study.db") as store:
            requests = write_requests(study, store, url, sessions, arguments.screens)
        look_first(url, sessions * workers)
        before = cpu_s(server.pid)
        result = send_all(url, requests)
        used = {name: seconds - before.get(name, 0.0) for name, seconds in cpu_s(server.pid).items()}
        counted = httpx.get(f"{url}metrics").text
    screens = re.search(r"dialometer_commit_screens_sum (\S+)", counted)
    commits = re.search(r"dialometer_commit_screens_count (\S+)", counted)
    assert screens
    assert commits
    size = float(screens[1]) / float(commits[1])
    print(
        f"{workers} process{'es' if workers > 1 else '  '}  {result.per_s:7,.0f} submissions/s   "
        f"p50 {result.wait_ms(0.5):5.0f} ms   p99 {result.wait_ms(0.99):5.0f} ms   max {result.wait_ms(1):5.0f} ms   "
        f"{result.n_stored:,} of {result.n_sent:,} stored   {size:.0f} a commit   "
        f"server {1e6 * sum(used.values()) / result.n_sent:.0f} µs of a core each   "
        f"client {100 * result.client_cpu_s / result.seconds:.0f}% of a core   load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return result


def humans(arguments: argparse.Namespace, n_raters: int, workers: int) -> dict[str, float]:
    """Raters at human pace: what they waited, and what a request cost the server."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = Path(place) / "study"
        study = make_study(folder, "likert")
        with serving(folder, arguments.database, workers, arguments.log_level) as (url, key, server):
            sessions = arrive(url, key, n_raters)
            with Store.open(arguments.database or folder / "study.db") as store:
                flow = Flow(study, store)
                held = store.sessions.several([session_id for session_id, _ in sessions])
                screens = [
                    answers_of(study, flow.path(held[session_id]), number + 1, seed=1)
                    for number, (session_id, _) in enumerate(sessions)
                ]
                requests = page_requests(flow, url, sessions, screens)
            before = sum(cpu_s(server.pid).values())
            waits = send_at_pace(url, requests, arguments.seconds)
            used = sum(cpu_s(server.pid).values()) - before
    return {
        "raters": n_raters,
        "workers": workers,
        "requests": waits.n_requests,
        "failed": waits.n_failed,
        "requests_per_cpu_s": waits.n_requests / used if used else float("nan"),
        **{
            f"{what}_p{round(100 * share)}_ms": waits.ms(what, share)
            for what in ("submission", "page")
            for share in (0.5, 0.95, 0.99)
        },
    }


def print_humans(rows: list[dict[str, float]]) -> None:
    print(
        f"{'raters':>7} {'workers':>8} {'requests':>9} {'failed':>7} {'per CPU-second':>15}   "
        "submission p50 / p95 / p99 ms   page p50 / p95 / p99 ms"
    )
    for row in rows:
        waits = ["".join(f"{row[f'{what}_p{p}_ms']:8.0f}" for p in (50, 95, 99)) for what in ("submission", "page")]
        print(
            f"{row['raters']:>7,} {row['workers']:>8} {row['requests']:>9,} {row['failed']:>7} "
            f"{row['requests_per_cpu_s']:>15,.0f}   {waits[0]:>29} {waits[1]:>25}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--humans", type=int, nargs="*", default=[], help="raters at human pace, instead of the rest")
    parser.add_argument("--seconds", type=float, default=50, help="how long they take part")
    parser.add_argument("--json", type=Path, help="where the figures go too")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--raters", type=int, default=200)
    parser.add_argument("--screens", type=int, default=60, help="how many each rater sends")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--database", default="", help="a PostgreSQL URL; by default a SQLite file")
    parser.add_argument("--template", default="anchoring")
    parser.add_argument("--log-level", default="info")
    arguments = parser.parse_args()
    if arguments.humans:
        rows = [humans(arguments, n, workers) for n in arguments.humans for workers in arguments.workers]
        print_humans(rows)
        if arguments.json:
            arguments.json.write_text(json.dumps({"humans": rows}, indent=1) + "\n", encoding="utf-8")
        return
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = Path(place) / "study"
        study = make_study(folder, arguments.template)
        print(
            f"{arguments.raters} raters, study '{study.spec.name}', {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        raw = raw_postgres(arguments.database) if arguments.database else raw_commits(folder)
        with Store.open(arguments.database or folder / "batches.db") as store:
            alone = batches(study, store)
        print(f"the database alone: {raw:,.0f} commits/s of one row; {alone:,.0f} submissions/s in batches", flush=True)
        rates: dict[int, list[float]] = {}
        for _ in range(arguments.repeat):
            for workers in arguments.workers:
                rates.setdefault(workers, []).append(measure(study, folder, arguments, workers).per_s)
        for workers, of_run in rates.items():
            median = sorted(of_run)[len(of_run) // 2]
            print(
                f"{workers}: median {median:,.0f} submissions/s = {median / raw:.1f} x one commit each, {median / alone:.2f} x batches"
            )


if __name__ == "__main__":
    main()
