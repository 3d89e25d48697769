"""The processes of a server: started, watched, and replaced one by one without a refused connection.

They share one listening socket, which the first process keeps. A new process takes connections before the old one is told to
end, and connections that come in between wait in the socket's queue. So an update costs raters nothing: ``SIGHUP`` brings in
processes that load the code and the studies as they are on disk now.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait

from dialometer.web.server.logs import log

_spawn = multiprocessing.get_context("spawn")

RETIRE = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""Tells a process that another one has taken its place."""
REPLACE = getattr(signal, "SIGHUP", None)
"""Tells the first process to replace the others."""
READY_S = 120.0
"""How long a new process may take to start."""
STOP_S = 60.0
"""How long a process may take to end; it finishes its requests in half of that."""
PAUSE_S = 1.0
"""Before a process that ended by itself is replaced, so that one that cannot start does not take the whole machine."""

Target = Callable[[str, socket.socket, Connection], None]
"""What a process runs: its settings as text, the socket, and where to say that it is ready."""


class Worker:
    """One process that answers requests."""

    def __init__(self, target: Target, settings: str, sock: socket.socket) -> None:
        self.pipe, said = _spawn.Pipe(duplex=False)
        self.process = _spawn.Process(target=target, args=(settings, sock, said))
        self.process.start()
        said.close()
        self.is_ready = False
        self.since = time.monotonic()
        """When the process was started or, later, told to end."""

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.is_alive()

    def look(self) -> bool:
        """Whether the process has said by now that it answers requests."""
        if not self.is_ready:
            with contextlib.suppress(EOFError, OSError):
                self.is_ready = self.pipe.poll() and bool(self.pipe.recv())
        return self.is_ready

    def send_signal(self, number: int) -> None:
        """Sends a signal, if the process still runs."""
        if self.process.is_alive() and self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def end(self) -> None:
        """Waits for the process to finish its requests; one that hangs is killed."""
        self.process.join(STOP_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


class Supervisor:
    """Keeps a number of workers running until a signal ends it."""

    def __init__(self, start: Callable[[], Worker], workers: list[Worker], *, replaces: bool) -> None:
        self._start = start
        self.workers = workers
        self._replaces = replaces and REPLACE is not None
        self._incoming: Worker | None = None
        self._outgoing: list[Worker] = []
        """Workers still to be replaced."""
        self._retired: list[Worker] = []
        self._signals: list[int] = []
        self._is_to_replace = False
        self._has_answered = False
        self.is_stopping = False
        self.has_failed = False

    def run(self) -> None:
        """Runs until SIGTERM or SIGINT; then every worker finishes its requests."""
        with self._hearing() as wake:
            try:
                while not self.is_stopping:
                    self._wait(wake)
                    self._hear()
                    self._keep_running()
                    self._replace_next()
            finally:
                for worker in self._all():
                    worker.send_signal(signal.SIGTERM)
                for worker in self._all():
                    worker.end()

    def _wait(self, wake: socket.socket) -> None:
        """Until there is a signal, a worker is ready or one has ended."""
        pipes = [worker.pipe for worker in self._all() if not worker.is_ready and worker.is_alive]
        wait([wake, *pipes, *(worker.process.sentinel for worker in self._all())], timeout=5.0)
        with contextlib.suppress(BlockingIOError):
            wake.recv(4096)

    def _all(self) -> list[Worker]:
        return [*self.workers, *self._retired, *([self._incoming] if self._incoming else [])]

    @contextlib.contextmanager
    def _hearing(self) -> Iterator[socket.socket]:
        """Signals wake the loop up."""
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        numbers = [signal.SIGTERM, signal.SIGINT, *([REPLACE] if self._replaces and REPLACE else [])]
        before = {number: signal.signal(number, lambda n, _frame: self._signals.append(n)) for number in numbers}
        earlier = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        try:
            yield wake
        finally:
            signal.set_wakeup_fd(earlier)
            for number, handler in before.items():
                signal.signal(number, handler)
            wake.close()
            woken.close()

    def _hear(self) -> None:
        while self._signals:
            if self._signals.pop(0) == REPLACE:
                self._is_to_replace = True
            else:
                self.is_stopping = True

    def _keep_running(self) -> None:
        """Takes leave of workers that ended; those that should not have are started anew."""
        for worker in list(self._retired):
            if worker.is_alive and time.monotonic() - worker.since > STOP_S:
                worker.process.kill()
            elif not worker.is_alive:
                self._retired.remove(worker)
                worker.end()
        for index, worker in enumerate(self.workers):
            self._has_answered |= worker.look()
            if worker.is_alive or self.is_stopping:
                continue
            worker.end()
            if not self._has_answered:  # it would fail in the same way again
                log("worker_failed", level=logging.ERROR, exit_code=worker.process.exitcode)
                self.has_failed = self.is_stopping = True
                return
            log("worker_died", level=logging.ERROR, exit_code=worker.process.exitcode)
            time.sleep(max(0.0, PAUSE_S - (time.monotonic() - worker.since)))
            if worker in self._outgoing:
                self._outgoing.remove(worker)
            self.workers[index] = self._start()

    def _replace_next(self) -> None:
        """One step further: a worker that has come to answer takes the place of an old one, which finishes its requests."""
        if self.is_stopping:
            return
        if self._is_to_replace and self._incoming is None and not self._outgoing:
            self._is_to_replace = False
            self._outgoing = list(self.workers)
        incoming = self._incoming
        if incoming is not None:
            if incoming.look():
                old = self._outgoing.pop(0) if self._outgoing else incoming  # the old one may have died meanwhile
                self.workers = [incoming if worker is old else worker for worker in self.workers]
                self._incoming = None
                old.send_signal(RETIRE)
                self._retired.append(old)
                log("worker_replaced", seconds=round(time.monotonic() - incoming.since, 1))
                old.since = time.monotonic()
            elif not incoming.is_alive or time.monotonic() - incoming.since > READY_S:
                log("worker_not_replaced", level=logging.ERROR, exit_code=incoming.process.exitcode)
                incoming.process.kill()
                incoming.end()
                self._incoming = None
                self._outgoing = []
        if self._outgoing and self._incoming is None:
            self._incoming = self._start()
