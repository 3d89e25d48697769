"""Health of a study's database, on a thread of its own.

The threads that answer requests may all wait for a locked database; then the check is what tells the administrator, so it must
not wait with them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from starlette.responses import JSONResponse

from dialometer.storage.database import Database, DatabaseFails
from dialometer.storage.health import check_writable
from dialometer.web.server.failures import RETRY_AFTER_S
from dialometer.web.server.logs import log_failure

FRESH_S = 1.0
"""A result this old is good enough: strangers who ask often do not make the disk work."""
PATIENCE_S = 4.0

_SENTENCES = {
    "locked": "another program has locked the database",
    "full": "the disk is full",
    "gone": "the database file was deleted, moved or replaced",
    "failing": "the database cannot be written",
}


class Unhealthy(Exception):
    """Why nothing can be stored, in one word and in a sentence without paths."""

    def __init__(self, reason: str, sentence: str) -> None:
        self.reason = reason
        super().__init__(sentence)


class HealthCheck:
    """Checks a database when asked, one check at a time; everybody who asks meanwhile gets its result."""

    def __init__(self, database: Database, why_stuck: Callable[[], str] = lambda: "") -> None:
        self._database = database
        self._why_stuck = why_stuck
        self._lock = threading.Lock()
        self._latest: Future[None] | None = None
        self._done_at = float("-inf")

    async def __call__(self) -> None:
        """Raises :class:`Unhealthy`, within a bounded time."""
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._check())), PATIENCE_S)
        except TimeoutError:
            raise Unhealthy("failing", f"the database has not answered within {PATIENCE_S:.0f} s") from None

    def _check(self) -> Future[None]:
        with self._lock:
            is_fresh = time.monotonic() - self._done_at < FRESH_S
            if self._latest is None or (self._latest.done() and not is_fresh):
                self._latest = Future()
                threading.Thread(target=self._run, args=(self._latest,), name="health", daemon=True).start()
            return self._latest

    def _run(self, result: Future[None]) -> None:
        error: Exception | None = None
        try:
            check_writable(self._database)
            stuck = self._why_stuck()
            if stuck:
                error = Unhealthy("failing", stuck)
        except DatabaseFails as failure:
            error = Unhealthy(failure.reason, _SENTENCES[failure.reason])
        except Exception as failure:
            error = Unhealthy("failing", f"the check failed (reference {log_failure(failure)})")
        self._done_at = time.monotonic()
        if error is None:
            result.set_result(None)
        else:
            result.set_exception(error)


def as_unhealthy(failing: Unhealthy) -> JSONResponse:
    """The answer of ``/healthz`` where something fails."""
    content = {"status": "failing", "reason": failing.reason, "error": str(failing)}
    return JSONResponse(content, 503, {"retry-after": str(RETRY_AFTER_S)})
