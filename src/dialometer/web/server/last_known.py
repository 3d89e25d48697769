"""A value that is asked of the database on a thread of its own; who cannot wait gets the last one that is known.

Monitoring must answer just then when everything else waits for a locked database.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE_S = 0.5


class LastKnown(Generic[T]):
    """The newest value, asked for one at a time however many want it."""

    def __init__(self, ask: Callable[[], T], patience_s: float = PATIENCE_S) -> None:
        self._ask = ask
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._asked: Future[None] | None = None
        self._known: tuple[T, float] | None = None

    async def __call__(self) -> tuple[T | None, float]:
        """The value and its age in seconds; None and infinity where none is known yet."""
        with suppress(Exception):  # too slow, or the database fails: /healthz says why
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._running())), self._patience_s)
        known = self._known
        return (None, float("inf")) if known is None else (known[0], time.monotonic() - known[1])

    def _running(self) -> Future[None]:
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked = Future()
                threading.Thread(target=self._run, args=(self._asked,), name="last-known", daemon=True).start()
            return self._asked

    def _run(self, asked: Future[None]) -> None:
        try:
            self._known = (self._ask(), time.monotonic())
            asked.set_result(None)
        except Exception as error:
            asked.set_exception(error)
