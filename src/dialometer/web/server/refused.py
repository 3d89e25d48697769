"""What the server refused of strangers and slow clients, counted for Prometheus and logged at most once a minute.

A line for each refused connection would fill the disk while somebody attacks, and would hide everything else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from dialometer.web.server.logs import log
from dialometer.web.server.metrics import Metrics

REASONS = (
    "header_size",
    "header_time",
    "body_time",
    "slow_reader",
    "malformed",
    "connection_limit",
    "address_limit",
)
"""Why a connection was refused or closed."""
FAILURES = ("locked", "full", "gone", "failing")
"""Why something could not be stored, as :mod:`dialometer.storage.database` tells them apart."""
LOG_EVERY_S = 60.0


class Refusals:
    """Counts of one process. There is one for all studies of a server, since a connection belongs to none of them."""

    def __init__(self, folder: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since: Counter[str] = Counter()
        self._logged_at = float("-inf")
        self.count_in(folder)

    def count_in(self, folder: str) -> None:
        """Counts together with the other processes that use this folder."""
        self.metrics = Metrics(folder)
        self.metrics.counter("dialometer_refused_total", "Connections refused or closed.", "reason", REASONS)
        self.metrics.counter(
            "dialometer_not_stored_total", "Requests refused because the database failed.", "reason", FAILURES
        )

    def connection(self, reason: str) -> None:
        """One more connection that was refused."""
        self._count("dialometer_refused_total", reason)

    def not_stored(self, reason: str) -> None:
        """One more request that could not be stored."""
        self._count("dialometer_not_stored_total", reason)

    def _count(self, name: str, reason: str) -> None:
        self.metrics.add(name, label="reason", value=reason)
        with self._lock:
            self._since[reason] += 1
        self.log_if_due()

    @property
    def is_unlogged(self) -> bool:
        """Whether something was counted that no line has told yet."""
        return bool(self._since)

    def log_if_due(self) -> None:
        """Writes one line about everything since the last one, if that was a minute ago."""
        with self._lock:
            now = self._clock()
            if not self._since or now - self._logged_at < LOG_EVERY_S:
                return
            counted = dict(self._since)
            self._since.clear()
            self._logged_at = now
        log("refused", level=logging.WARNING, **counted)


refusals = Refusals()
"""Of this process; a server with several processes names their folder when it starts."""
