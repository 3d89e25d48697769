"""The faults, one after the other, each on a study of its own with raters at work all the time."""

from __future__ import annotations

import errno
import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.chaos.load import Load
from bench.chaos.preloaded import CLOCK_FILE
from bench.chaos.processes import KEY, PostgresServer, Preloaded, StudyServer, kill
from bench.server import make_study
from dialometer.exchange.backups.packing import opened_backup
from dialometer.flow.stored_screens import unfinished_screens
from dialometer.model.study import Study
from dialometer.storage.safety.acknowledged import compare
from dialometer.storage.safety.checks import check_acknowledged, check_database
from dialometer.storage.store import Store

N_BETWEEN = 25
"""Screens that must be acknowledged between two kills: otherwise only an idle server would be killed."""
SHARE_OF_WORKERS = 0.12
"""How many of the kills hit a server of two workers; one that starts takes several times as long."""
DAY_MS = 24 * 3600 * 1000


@dataclass
class Figures:
    """What one fault came to."""

    fault: str
    database: str
    what: str = ""
    n_acknowledged: int = 0
    n_lost: int = 0
    n_doubled: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        return not (self.n_lost or self.n_doubled or self.problems) and self.n_acknowledged > 0


@contextmanager
def under_load(figures: Figures, server: StudyServer, study: Study, database: str, n_raters: int) -> Iterator[Load]:
    """A running server with raters at work; afterwards all that was acknowledged is looked up."""
    began = time.monotonic()
    try:
        server.start()
        with Load(study, server.url, KEY, n_raters) as load:
            yield load
            if not load.wait_for(N_BETWEEN, 60):
                figures.problems.append("nothing was stored any more after the fault")
    finally:
        server.stop()
        server.log.unlink(missing_ok=True)
    look_up(figures, load, study, database or server.folder / "study.db")
    figures.seconds = time.monotonic() - began


def look_up(figures: Figures, load: Load, study: Study, target: str | Path) -> None:
    """Compare what raters were told with what is stored, and check the database as ``dialometer verify`` does."""
    assert study.folder is not None
    with Store.open(target, create=False) as store:
        with store.database.reading() as connection:
            rows = connection.exec_driver_sql("SELECT token, session_id, screen FROM submissions").fetchall()
        stored = {token: (session, screen) for token, session, screen in rows}
        figures.n_acknowledged = len(load.acknowledged)
        figures.n_lost = sum(stored.get(one.token) != (one.session, one.screen) for one in load.acknowledged)
        twice = Counter((session, screen) for session, screen in stored.values())
        figures.n_doubled = sum(n - 1 for n in twice.values())
        log = compare(study.folder, store.database)
        checks = [*check_database(store), check_acknowledged(log)]
        figures.problems += [f"{check.name}: {check.text}" for check in checks if check.state == "problem"]
        unfinished, _, _ = unfinished_screens(study, store)
        figures.problems += unfinished[:3]


# kills


def kills(
    preloaded: Preloaded,
    folder: Path,
    n_kills: int,
    n_raters: int,
    postgres: PostgresServer | None,
    rng: random.Random,
    minutes: float,
) -> Figures:
    """``kill -9`` of workers and first processes of a server of two workers, then of whole servers, PostgreSQL and its backends."""
    study = make_study(folder, "best-worst")
    database = postgres.create("kills") if postgres else ""
    figures = Figures("kill -9", "PostgreSQL" if postgres else "SQLite")
    server = StudyServer(preloaded, folder, database, n_workers=2)
    single = ["server", "PostgreSQL", "a backend of PostgreSQL"] if postgres else ["server"]
    n_several = round(n_kills * SHARE_OF_WORKERS)
    kinds = [("worker", "first process", "worker", "server of two workers")[n % 4] for n in range(n_several)]
    kinds += [single[n % len(single)] for n in range(n_kills - n_several)]
    done: Counter[str] = Counter()
    until = time.monotonic() + 60 * minutes
    with under_load(figures, server, study, database, n_raters) as load:
        for number, kind in enumerate(kinds):
            if time.monotonic() > until:
                break
            if number == n_several:
                server.stop()
                server.n_workers = 1
                server.start()
            if not load.wait_for(N_BETWEEN, 180):
                figures.problems.append(f"nothing was stored any more after kill {number}")
                break
            time.sleep(rng.random() * 0.2)
            _kill(kind, server, postgres, rng)
            done[kind] += 1
    figures.what = f"{sum(done.values())} kills: " + ", ".join(f"{n} {kind}" for kind, n in done.items())
    return figures


def _kill(kind: str, server: StudyServer, postgres: PostgresServer | None, rng: random.Random) -> None:
    if kind == "worker":
        kill(_one_of(server.workers, rng))
    elif kind in ("server", "server of two workers"):
        server.kill_all()
        server.start()
    elif kind == "first process":
        server.kill_first()
        server.start()
    else:
        assert postgres is not None
        if kind == "PostgreSQL":
            kill(postgres.pid())
            postgres.start()
        else:
            kill(_one_of(postgres.backends, rng))


def _one_of(processes: Callable[[], list[int]], rng: random.Random) -> int:
    """One of the processes, as soon as there is one; 0 would be all of them, so a minute without any is an error."""
    until = time.monotonic() + 60
    while not (found := processes()):
        if time.monotonic() > until:
            raise SystemExit("there is no process left to kill")
        time.sleep(0.05)
    return rng.choice(found)


# a full disk


def disk_full(preloaded: Preloaded, folder: Path, n_raters: int) -> Figures:
    """No room for a while: what cannot be stored is not acknowledged, and afterwards everything goes on."""
    figures = Figures("full disk", "SQLite")
    folder.mkdir()
    is_mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=False, capture_output=True
    ).returncode == 0  # fmt: skip
    try:
        inside = folder / "s"
        study = make_study(inside, "best-worst")
        server = StudyServer(preloaded, inside)
        with under_load(figures, server, study, "", n_raters) as load:
            load.wait_for(100, 60)
            free = _fill(folder) if is_mounted else _limit(server)
            before, until = len(load.acknowledged), time.monotonic() + 8
            states = set()
            while time.monotonic() < until:
                states.add(server.health())
                time.sleep(0.5)
            n_during = len(load.acknowledged) - before
            free()
        how = "a tmpfs of 24 MB, filled" if is_mounted else "a limit on the size of files"
        refused = sum(n for outcome, n in load.outcomes.items() if outcome.startswith("status 5"))
        figures.what = (
            f"{how} for 8 s; {refused:,} screens refused, {n_during:,} stored meanwhile, /healthz {_listed(states)}"
        )
        if not refused:
            figures.problems.append("the disk was never full")
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)
    return figures


def _listed(states: set[int]) -> str:
    return " and ".join(str(state or "without answer") for state in sorted(states))


def _fill(folder: Path) -> Callable[[], None]:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return ballast.unlink


def _limit(server: StudyServer) -> Callable[[], None]:
    """Where nothing can be mounted: the server's files may not grow any more."""
    pid = server.pid
    largest = max(path.stat().st_size for path in server.folder.glob("study.db*"))
    usual = resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    return lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, usual) and None


# a wrong clock


def clock_jumps(preloaded: Preloaded, folder: Path, n_raters: int) -> Figures:
    """The server's clock jumps by hours, days and weeks, forwards and backwards."""
    figures = Figures("clock jumps", "SQLite")
    study = make_study(folder, "best-worst")
    clock = folder / CLOCK_FILE
    clock.write_text("0")
    jumps = [3600_000, -2 * 3600_000, DAY_MS, -3 * DAY_MS, 30 * DAY_MS, -400 * DAY_MS, 0]
    server = StudyServer(preloaded, folder)
    n_stuck = 0
    with under_load(figures, server, study, "", n_raters) as load:
        for offset in jumps:
            n_stuck += load.wait_for(60, 60) < 60
            part = clock.with_name("part")
            part.write_text(str(offset))
            part.replace(clock)
        n_stuck += load.wait_for(60, 60) < 60
    figures.what = f"{len(jumps)} jumps of an hour to 400 days"
    if n_stuck:
        figures.problems.append(f"after {n_stuck} jumps raters could not go on")
    return figures


# a locked database


def locked(preloaded: Preloaded, folder: Path, n_raters: int, postgres: PostgresServer | None) -> Figures:
    """Another program keeps the database for itself for some seconds, several times."""
    figures = Figures("locked database", "PostgreSQL" if postgres else "SQLite")
    study = make_study(folder, "best-worst")
    database = postgres.create("locked") if postgres else ""
    server = StudyServer(preloaded, folder, database)
    n_during, slowest = 0, 0.0
    with under_load(figures, server, study, database, n_raters) as load:
        for seconds in (2, 5, 8):
            load.wait_for(60, 60)
            with _held(folder / "study.db", database):
                before = len(load.acknowledged)
                began = time.monotonic()
                server.health()
                slowest = max(slowest, time.monotonic() - began)
                time.sleep(seconds)
                n_during += len(load.acknowledged) - before
    figures.what = f"2, 5 and 8 s; {n_during} screens stored meanwhile, /healthz answered within {slowest:.1f} s"
    return figures


@contextmanager
def _held(file: Path, database: str) -> Iterator[None]:
    if database:
        import psycopg  # noqa: PLC0415

        with psycopg.connect(database) as connection:
            connection.execute("LOCK TABLE sessions, submissions, judgments IN ACCESS EXCLUSIVE MODE")
            yield
        return
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


# backups and restores


def restore_under_load(preloaded: Preloaded, folder: Path, n_raters: int, postgres: PostgresServer | None) -> Figures:
    """Backups while raters answer hold all that was acknowledged before; a restore waits for the server to stop."""
    figures = Figures("backup and restore", "PostgreSQL" if postgres else "SQLite")
    study = make_study(folder, "best-worst")
    database = postgres.create("restored") if postgres else ""
    options = ["--database", database] if database else []
    server = StudyServer(preloaded, folder, database)
    held: list[tuple[Path, int]] = []
    with under_load(figures, server, study, database, n_raters) as load:
        for number in range(3):
            load.wait_for(60, 60)
            known = [one.token for one in load.acknowledged]
            backup = folder.with_name(f"{folder.name}-{number}.zip")
            _command("backup", str(folder), "--to", str(backup), *options)
            n_missing = _n_missing(backup, folder.parent, known)
            if n_missing:
                figures.problems.append(f"backup {number} lacks {n_missing} of {len(known)} acknowledged screens")
            held.append((backup, len(known)))
        refused = _command("restore", str(held[0][0]), str(folder), "--yes", *options, may_fail=True)
        if refused.returncode == 0 or "stop" not in refused.stderr:
            figures.problems.append(f"a restore under the running server was not refused: {refused.stderr}")
        load.wait_for(60, 60)
    # Then a kill leaves a log behind, and the first backup comes back exactly.
    killed = StudyServer(preloaded, folder, database)
    killed.start()
    with Load(study, killed.url, KEY, n_raters) as later:
        later.wait_for(40, 60)
        killed.kill_all()
    killed.log.unlink(missing_ok=True)
    time.sleep(1)  # PostgreSQL closes the connections of the killed processes
    answer = json.loads(_command("restore", str(held[0][0]), str(folder), "--yes", "--json", *options).stdout)
    problems = [check["text"] for check in answer["checks"] if check["state"] == "problem"]
    figures.problems += problems
    figures.what = (
        f"3 backups under load, each with all that was acknowledged before ({', '.join(f'{n:,}' for _, n in held)} screens); "
        f"a restore refused while the server ran; after a kill the first came back exactly ({answer['holds']['screens']:,} screens)"
    )
    return figures


def _n_missing(backup: Path, near: Path, tokens: list[str]) -> int:
    with opened_backup(backup, near) as (unpacked, _), closing(sqlite3.connect(unpacked / "study.db")) as connection:
        stored = {token for (token,) in connection.execute("SELECT token FROM submissions")}
    return len(set(tokens) - stored)


def _command(*words: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "dialometer", *words], check=False, capture_output=True, text=True)
    if done.returncode and not may_fail:
        raise SystemExit(f"dialometer {' '.join(words)}: {done.stderr}")
    return done


def temporary_folder() -> Path:
    """A folder for all studies of a run."""
    return Path(tempfile.mkdtemp(prefix="chaos-"))


def remove(folder: Path) -> None:
    """The studies of a run that went well."""
    shutil.rmtree(folder, ignore_errors=True)
