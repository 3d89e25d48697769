"""How fast screens are stored and judgments read back: ``python -m bench.storage [database URL]``.

The yardstick is the naive way, one commit for each screen: the ratio says what storing in batches is worth on this disk.

With ``--growth 10000 100000 1000000`` it measures instead how costs grow with a study (``make load``): an arrival, the
dashboard's items and raters, the report and the import, in seconds of processor time, and the memory of the last two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench._large_study import fill, make_large_study
from bench.server import cpu_s
from dialometer.flow.engine import Flow
from dialometer.model.session import Draw, Judgment, ScreenVisit, Snapshot, Submission
from dialometer.storage import ImportedSession, Store
from dialometer.storage.sessions import Patience
from dialometer.storage.table import long_table
from dialometer.web.dashboard.numbers import count_study
from dialometer.web.dashboard.pages import items as items_page
from dialometer.web.dashboard.pages import raters as raters_page

N_SESSIONS = 256
N_SCREENS = 40
N_PER_BATCH = 64
N_ONE_BY_ONE = 1000
N_JUDGMENTS = 1_000_000


def open_sessions(store: Store, prefix: str, n_sessions: int) -> list[str]:
    version = store.studies.register("bench", "fingerprint", "{}", 0)
    ids = [f"{prefix}-{n:06d}" for n in range(n_sessions)]

    def choose(snapshot: Snapshot) -> Draw:
        items = {"main": tuple(f"item-{n:03d}" for n in range(N_SCREENS))}
        return Draw(ordinal=snapshot.ordinal, cell=snapshot.ordinal % 4, blocks=("main",), items=items)

    for session_id in ids:
        store.sessions.arrive(
            session_id=session_id,
            token=session_id,
            platform="link",
            external_id=None,
            params={},
            source="simulated",
            study_version=version,
            at_ms=1,
            patience=Patience(0),
            choose=choose,
            conditions=[{"anchor": str(cell)} for cell in range(4)],
        )
    return ids


def judgment(session_id: str, step: int, criterion: str) -> Judgment:
    return Judgment(
        session_id=session_id,
        item_id=f"item-{step:03d}",
        criterion=criterion,
        value=step % 7 + 1,
        scale="likert7",
        system="system-a",
        position=step + 1,
        side=1,
        shown_at_ms=1_700_000_000_000 + step,
        answered_at_ms=1_700_000_004_000 + step,
    )


def submission(session_id: str, step: int) -> Submission:
    """One screen with one or two judgments in turn."""
    visit = ScreenVisit(
        session_id=session_id, screen=f"item:{step}", shown_at_ms=1_700_000_000_000, submitted_at_ms=1_700_000_004_000
    )
    return Submission(
        token=f"{session_id}:{step:04d}",
        session_id=session_id,
        step=step,
        next_step=step + 1,
        visit=visit,
        judgments=[judgment(session_id, step, criterion) for criterion in ("coherence", "fluency")[: step % 2 + 1]],
        done_item=f"item-{step:03d}",
    )


def screens(ids: list[str]) -> list[Submission]:
    return [submission(session_id, step) for step in range(N_SCREENS) for session_id in ids]


def recording(store: Store) -> None:
    batched = screens(open_sessions(store, "batched", N_SESSIONS))
    batches = [batched[start : start + N_PER_BATCH] for start in range(0, len(batched), N_PER_BATCH)]
    start = time.perf_counter()
    for batch in batches:
        assert all(receipt.outcome == "stored" for receipt in store.submissions.record(batch, 2))
    per_s = len(batched) / (time.perf_counter() - start)

    single = screens(open_sessions(store, "single", 25))[:N_ONE_BY_ONE]
    start = time.perf_counter()
    for one in single:
        assert store.submissions.record([one], 2)[0].outcome == "stored"
    single_per_s = len(single) / (time.perf_counter() - start)
    print(f"batches of {N_PER_BATCH}:            {per_s:10,.0f} submissions/s")
    print(f"one commit per submission: {single_per_s:10,.0f} submissions/s   (ratio {per_s / single_per_s:.1f})")


def arrivals(store: Store) -> None:
    start = time.perf_counter()
    n = 200
    open_sessions(store, "late", n)
    print(f"arrivals (40 items each):  {n / (time.perf_counter() - start):10,.0f} /s")


def reading(store: Store) -> None:
    per_session = 1000

    def sessions() -> Iterator[ImportedSession]:
        for n in range(N_JUDGMENTS // per_session):
            session_id = f"imported-{n:06d}"
            entries = [judgment(session_id, step, "coherence") for step in range(per_session)]
            yield ImportedSession(id=session_id, rater=str(n), condition={"anchor": "both"}, judgments=entries)

    start = time.perf_counter()
    store.imports.add(sessions(), file_name="bench", sha256="bench", format="bench", study_version=1, at_ms=3)
    print(f"import of {N_JUDGMENTS:,}:      {time.perf_counter() - start:10.1f} s")
    start = time.perf_counter()
    n = sum(len(columns["id"]) for columns in store.records.judgment_batches())
    print(f"{n:,} judgments as columns:{time.perf_counter() - start:8.1f} s")
    start = time.perf_counter()
    n = sum(1 for _ in store.records.judgments())
    print(f"{n:,} judgments as objects:{time.perf_counter() - start:8.1f} s")


def cpu_of(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def command(*arguments: str) -> tuple[float, float]:
    """Seconds of processor time and MB of memory that a command took."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dialometer", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"dialometer {' '.join(arguments)} failed")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit


def dashboard_costs(study: Any, store: Store) -> dict[str, float]:
    """The pages of items and raters: the first look after a start, which reads the study once, and the next."""
    running = SimpleNamespace(study=study, store=store, name="large")
    looked: list[Any] = []

    def page(make: Callable[[Any, str, Any], object], of: Callable[[Any], Any]) -> Callable[[], None]:
        def work() -> None:
            looked.append(count_study(study, store, time.time_ns() // 1_000_000))
            make(running, "", of(looked[-1]))

        return work

    items = page(items_page._grid, lambda numbers: numbers)
    raters = page(raters_page._grid, lambda numbers: numbers.marks)
    return {"items_first_s": cpu_of(items), "items_s": cpu_of(items), "raters_s": cpu_of(raters)}


N_ARRIVALS = 40


def arrival_ms(study: Any, store: Store, n: int = N_ARRIVALS, n_rounds: int = 3) -> float:
    """Processor time of one arrival of a rater who is given a hundred items."""
    flow = Flow(study, store)

    def arrive_all() -> None:
        for number in range(n):
            flow.arrive(platform="bench", external_id=f"late-{time.time_ns()}-{number}")

    arrive_all()
    return 1000 * min(cpu_of(arrive_all) for _ in range(n_rounds)) / n


def postgres_arrivals(sizes: list[int]) -> list[dict[str, float]]:
    """Processor time of an arrival on a PostgreSQL of our own as its study grows, the database's own processes included."""
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is measured

    from bench.chaos.processes import PostgresServer  # noqa: PLC0415

    server = PostgresServer()
    server.start()
    rows = []
    try:
        with tempfile.TemporaryDirectory(dir=".") as place:
            study = make_large_study(Path(place) / "study")
            url, n_now = server.create("growth"), 0
            print(f"{'judgments':>14}  {'arrival ms':>14}  {'of it database':>14}", flush=True)
            for size in sorted(sizes):
                with Store.open(url) as store:
                    fill(store, study, size - n_now)
                    n_now = size
                    with psycopg.connect(url, autocommit=True) as connection:
                        connection.execute("VACUUM ANALYZE")  # as its own vacuum does in time
                    of_database = lambda: sum(  # noqa: E731
                        sum(cpu_s(pid).values()) for pid in server.backends()
                    )
                    best, inside = float("inf"), 0.0
                    for _ in range(4):
                        before = of_database()
                        own = arrival_ms(study, store, n_rounds=1)
                        more = 1000 * (of_database() - before) / N_ARRIVALS / 2
                        best, inside = min((best, inside), (own + more, more))
                rows.append({"judgments": size, "arrival_ms": best, "database_ms": inside})
                print(f"{size:14,}  {best:14.2f}  {inside:14.2f}", flush=True)
    finally:
        server.close()
    return rows


def growth(size: int) -> dict[str, float]:
    """What a study of so many judgments costs."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder, copy, table = Path(place) / "study", Path(place) / "copy", Path(place) / "ratings.csv"
        study = make_large_study(folder)
        with Store.open(folder / "study.db") as store:
            n_sessions = fill(store, study, size)
            row: dict[str, float] = {"judgments": size, "sessions": n_sessions, **dashboard_costs(study, store)}
            columns = ["rater", "item", "system", "criterion", "value", "shown_at", "answered_at"]
            long_table(store.records.judgment_batches()).select(columns).write_csv(table)
        row["report_s"], row["report_mb"] = command("report", str(folder), "--format", "html", "--format", "csv")
        row["import_s"], row["import_mb"] = command("import", str(copy), str(table), "--format", "long")
        with Store.open(folder / "study.db") as store:
            row["arrival_ms"] = arrival_ms(study, store)
        row["database_mb"] = (folder / "study.db").stat().st_size / 1e6
    return row


GROWTH_COLUMNS = {
    "judgments": "judgments",
    "arrival_ms": "arrival ms",
    "items_first_s": "items, first s",
    "items_s": "items s",
    "raters_s": "raters s",
    "report_s": "report s",
    "report_mb": "report MB",
    "import_s": "import s",
    "import_mb": "import MB",
    "database_mb": "database MB",
}


def print_growth(sizes: list[int]) -> list[dict[str, float]]:
    """One line for each size; times are processor time, which a busy machine changes little."""
    print("  ".join(f"{label:>14}" for label in GROWTH_COLUMNS.values()), flush=True)
    rows = []
    for size in sizes:
        rows.append(growth(size))
        cells = (
            f"{rows[-1][name]:14,.0f}" if name == "judgments" else f"{rows[-1][name]:14,.2f}" for name in GROWTH_COLUMNS
        )
        print("  ".join(cells), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", nargs="?", default="", help="a database URL; by default a SQLite file")
    parser.add_argument("--growth", type=int, nargs="+", default=[], help="sizes of studies, in judgments")
    parser.add_argument("--postgres-arrivals", type=int, nargs="+", default=[], help="sizes, in judgments")
    parser.add_argument("--json", type=Path, help="where the figures go too")
    arguments = parser.parse_args()
    if arguments.postgres_arrivals:
        rows = postgres_arrivals(arguments.postgres_arrivals)
        if arguments.json:
            arguments.json.write_text(json.dumps({"postgres": rows}, indent=1) + "\n", encoding="utf-8")
        return
    if arguments.growth:
        rows = print_growth(arguments.growth)
        if arguments.json:
            arguments.json.write_text(json.dumps({"growth": rows}, indent=1) + "\n", encoding="utf-8")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(arguments.database or str(Path(folder) / "bench.db")) as store,
    ):
        recording(store)
        arrivals(store)
        reading(store)


if __name__ == "__main__":
    main()
