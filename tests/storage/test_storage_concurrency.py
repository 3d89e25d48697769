"""Many processes at once, and one that dies in the middle."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from storage_cases import ITEMS, T0, arrive, judgment, places, screen
from storage_processes import arrive_as, arrive_often, record_all, record_until_killed

from dialometer.storage import Store

N_ARRIVALS = 10


def test_arrivals_from_many_processes_are_numbered_and_balanced(store: Store, study_url: str, crew: Any) -> None:
    arrived = [one for part in crew.at_once(arrive_often, study_url, N_ARRIVALS) for one in part]
    n = crew.n * N_ARRIVALS
    assert sorted(ordinal for _session, ordinal in arrived) == list(range(1, n + 1))
    assert len({session for session, _ordinal in arrived}) == n
    cells = Counter(session.draw.cell for session in store.sessions.all())
    assert sum(cells.values()) == n
    assert max(cells.values()) - min(cells.values()) <= 1
    taken = places(store)
    assert sorted(taken) == sorted(ITEMS)
    assert sum(taken.values()) == 3 * n
    assert max(taken.values()) - min(taken.values()) <= 1


def test_one_person_arriving_many_times_at_once_has_one_session(store: Store, study_url: str, crew: Any) -> None:
    arrived = crew.at_once(arrive_as, study_url, "P1")
    assert len(set(arrived)) == 1
    assert len(store.sessions.all()) == 1


def test_the_same_screens_from_many_processes_are_stored_once(store: Store, study_url: str, crew: Any) -> None:
    ids = [arrive(store).id for _ in range(8)]
    outcomes = Counter(outcome for part in crew.at_once(record_all, study_url, ids, 5) for outcome in part)
    assert outcomes == {"stored": 40, "repeated": 200}
    assert len(list(store.records.judgments())) == 40
    assert {session.step for session in store.sessions.all()} == {5}


def test_threads_share_a_store(store: Store) -> None:
    sessions = [arrive(store) for _ in range(8)]

    def work(session: Any) -> list[str]:
        return [
            store.submissions.record([screen(session, step, [judgment(session, f"i{step}")])], T0)[0].outcome
            for step in range(10)
        ]

    with ThreadPoolExecutor(8) as pool:
        outcomes = [outcome for part in pool.map(work, sessions) for outcome in part]
    assert set(outcomes) == {"stored"}
    assert len(list(store.records.judgments())) == 80


def test_what_was_acknowledged_survives_a_killed_process(store: Store, study_url: str) -> None:
    ids = [arrive(store).id for _ in range(16)]
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=record_until_killed, args=(study_url, ids, sender))
    process.start()
    sender.close()
    acknowledged: list[str] = []
    while len(acknowledged) < 25 * 16:
        acknowledged += receiver.recv()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    try:
        while True:  # what it had already reported when it died
            acknowledged += receiver.recv()
    except EOFError:
        receiver.close()

    assert store.check() == []
    steps = {session.id: session.step for session in store.sessions.all()}
    last = {token.split("/")[0]: int(token.split("/")[1]) + 1 for token in acknowledged}
    judged = Counter(one.session_id for one in store.records.judgments())
    visited = Counter(one.session_id for one in store.records.visits())
    for session_id, step in steps.items():
        # At most the one batch that was committed but not yet reported is ahead of what was acknowledged.
        assert last[session_id] <= step <= last[session_id] + 1
        assert judged[session_id] == 2 * step
        assert visited[session_id] == step
    assert len(set(steps.values())) == 1
    receipts = store.submissions.record([screen(one, step) for one, step in steps.items()], T0)
    assert {receipt.outcome for receipt in receipts} == {"stored"}
