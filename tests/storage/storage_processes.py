"""What the other processes of the concurrency tests do; they are started afresh, so it must be importable by name."""

from __future__ import annotations

import itertools
from typing import Any

from storage_cases import arrive, judgment, register, screen

from dialometer.storage import Store

_barrier: Any = None


def join_crew(barrier: Any) -> None:
    """Run once in every process of the crew."""
    global _barrier  # noqa: PLW0603 - a barrier can only be inherited, not sent with the work
    _barrier = barrier


def open_and_register(target: str) -> int:
    _barrier.wait(timeout=300)
    with Store.open(target) as store:
        return register(store)


def arrive_often(target: str, n: int) -> list[tuple[str, int]]:
    with Store.open(target) as store:
        _barrier.wait(timeout=300)
        sessions = [arrive(store) for _ in range(n)]
    return [(session.id, session.ordinal) for session in sessions]


def arrive_as(target: str, external_id: str) -> tuple[str, int]:
    with Store.open(target) as store:
        _barrier.wait(timeout=300)
        session = arrive(store, external_id)
    return session.id, session.ordinal


def record_all(target: str, session_ids: list[str], n_steps: int) -> list[str]:
    """The same screens as every other process sends, in batches over all sessions."""
    outcomes: list[str] = []
    with Store.open(target) as store:
        _barrier.wait(timeout=300)
        for step in range(n_steps):
            batch = [screen(one, step, [judgment(one, f"item{step}")]) for one in session_ids]
            outcomes += [receipt.outcome for receipt in store.submissions.record(batch, step)]
    return outcomes


def record_until_killed(target: str, session_ids: list[str], acknowledge: Any) -> None:
    """Record batches for ever and name each token once it is acknowledged."""
    with Store.open(target) as store:
        for step in itertools.count():
            batch = [
                screen(one, step, [judgment(one, f"item{step}", criterion=name) for name in ("fluency", "sense")])
                for one in session_ids
            ]
            acknowledge.send(
                [receipt.token for receipt in store.submissions.record(batch, step) if receipt.outcome == "stored"]
            )
