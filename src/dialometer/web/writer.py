"""The one writer of a process: whatever arrives while it works is done together in the next round.

A commit that waits for the disk costs the same for one screen as for a hundred, so the more raters there are, the more
of them share one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from dialometer.errors import DialometerError

J = TypeVar("J")
R = TypeVar("R")

MAX_BATCH = 256
"""Jobs done in one round: enough to share a commit, few enough that the first does not wait for long."""
MAX_WAITING = 10_000


class ServerBusy(DialometerError):
    """More was sent than can be stored; nothing of it was, and it may be sent again."""


class Writer(Generic[J, R]):
    """Runs ``work`` on batches of jobs in a thread of its own. ``work`` gives a result or an error for each job."""

    def __init__(self, work: Callable[[Sequence[J]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._jobs: deque[tuple[J, asyncio.Future[R]]] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_stopping = False
        self._busy_since: float | None = None

    def put(self, job: J) -> asyncio.Future[R]:
        """The result of a job, once it is done; the thread starts with the first one."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        with self._wake:
            if self._is_stopping or len(self._jobs) >= MAX_WAITING:
                why = "is stopping" if self._is_stopping else "has more to store than it can"
                raise ServerBusy(f"the server {why}", remedy="send it again in a moment")
            self._jobs.append((job, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
                self._thread.start()
            elif len(self._jobs) == 1:
                self._wake.notify()
        return future

    @property
    def n_waiting(self) -> int:
        """Jobs that no round has taken yet."""
        return len(self._jobs)

    @property
    def busy_s(self) -> float:
        """How long the present round has taken so far; 0 between rounds."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def stop(self) -> None:
        """Does what is waiting, then ends; later jobs are refused."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._is_stopping:
                    self._wake.wait()
                if not self._jobs:
                    return
                taken = [self._jobs.popleft() for _ in range(min(len(self._jobs), MAX_BATCH))]
            self._busy_since = time.monotonic()
            try:
                results = self._work([job for job, _ in taken])
            except Exception as error:
                results = [error] * len(taken)
            self._busy_since = None
            _deliver([future for _, future in taken], results)


def _deliver(futures: Sequence[asyncio.Future[R]], results: Sequence[R | Exception]) -> None:
    """Hands results over to the event loops that wait for them, one call for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[R], R | Exception]]] = {}
    for future, result in zip(futures, results, strict=True):
        by_loop.setdefault(future.get_loop(), []).append((future, result))
    for loop, pairs in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, pairs)


def _resolve(pairs: Sequence[tuple[asyncio.Future[R], R | Exception]]) -> None:
    for future, result in pairs:
        if future.done():  # the client went away; what was stored stays
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
