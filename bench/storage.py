"""How fast screens are stored and judgments read back: ``python -m bench.storage [database URL]``.

The yardstick is the naive way, one commit for each screen: the ratio says what storing in batches is worth on this disk.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dialometer.model.session import Draw, Judgment, ScreenVisit, Snapshot, Submission
from dialometer.storage import ImportedSession, Store
from dialometer.storage.sessions import Patience

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
    columns = store.records.judgment_columns()
    print(f"{len(columns['id']):,} judgments as columns:{time.perf_counter() - start:8.1f} s")
    start = time.perf_counter()
    n = sum(1 for _ in store.records.judgments())
    print(f"{n:,} judgments as objects:{time.perf_counter() - start:8.1f} s")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "bench.db")
        with Store.open(target) as store:
            recording(store)
            arrivals(store)
            reading(store)


if __name__ == "__main__":
    main()
