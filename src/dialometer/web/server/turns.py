"""A fair lock for writers, between threads and between processes.

SQLite has one write lock and no queue: a writer that finds it taken sleeps and tries again, so two busy processes spend
their time asleep. Here threads queue in order, and processes take turns. The system releases the locks of a process that
has died, so a crash never blocks the others.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dialometer.storage.database import Database, DatabaseFails
from dialometer.storage.safety.acknowledged import AcknowledgementLog
from dialometer.storage.store import Store

fcntl: Any
try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: one process only, where the threads' queue is enough
    fcntl = None

HAS_PROCESS_LOCKS = fcntl is not None
"""Whether several processes can take turns on this system."""

_NEXT, _TURN = 0, 1
"""The two bytes of the file that are locked: being the next in line, and having the turn."""


class WriteLock:
    """A lock that is fair. Use it as ``with lock.turn(wait_s):``."""

    def __init__(self, file: Path) -> None:
        self._path = str(file)
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        self._guard = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def turn(self, wait_s: float) -> Iterator[None]:
        """Waits for its turn among the threads; raises :class:`DatabaseFails` when it takes longer than this.

        Among processes only the first thread of each waits, and not for long: every turn is limited in time.
        """
        self._wait_for_threads(wait_s)
        try:
            if fcntl is not None:
                # The next one holds this lock while waiting, so a process cannot take two turns in a row.
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _NEXT)
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _TURN)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _NEXT)
            try:
                yield
            finally:
                if fcntl is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TURN)
        finally:
            self._pass_on()

    def _wait_for_threads(self, wait_s: float) -> None:
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        if gate.acquire(timeout=wait_s):
            return
        with self._guard:
            if gate not in self._waiting:  # its turn has come just now
                return
            self._waiting.remove(gate)
        raise DatabaseFails("locked", "too many wait to write", where=self._path, remedy="try again in a moment")

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False

    def close(self) -> None:
        """Gives the file back."""
        os.close(self._file)


class TurnTakingStore(Store):
    """A store whose writers queue before SQLite's lock; PostgreSQL needs no help. Nobody waits long, since raters wait too."""

    wait_s = 5.0

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._turns: WriteLock | None = None
        self._log: AcknowledgementLog | None = None
        if database.is_sqlite:
            self._turns = WriteLock(Path(f"{database.where}-turns"))
            database.turns = self._turns.turn

    def log_acknowledged(self, folder: Path) -> None:
        """Note every screen that is stored from now on in the study's folder."""
        self._log = AcknowledgementLog.beside(folder)
        if self._log is not None:
            self.database.log_stored = self._log.add

    def close(self) -> None:
        super().close()
        self.database.log_stored = None
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._turns is not None:
            self._turns.close()
            self._turns = None
