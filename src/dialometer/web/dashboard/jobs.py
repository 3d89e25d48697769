"""Long work on a draft: it runs in a thread, its state lies beside the study, so that every process of the server can show it,
and it can be stopped and, after a restart, begun again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dialometer.design.versions import FOLDER, write_whole
from dialometer.errors import DialometerError
from dialometer.web.server.logs import log_failure

JOBS = "jobs"
BEAT_S = 2.0
DEAD_S = 15.0
"""Without a sign of life for so long, the process that did the work is gone."""


class Stopped(Exception):
    """Somebody stopped the work."""


@dataclass(frozen=True, slots=True)
class JobState:
    """How far some work is: running, done, failed, stopped, or left behind by a process that is gone."""

    state: str
    by: str = ""
    beat_s: float = 0.0
    n_done: int = 0
    n_total: int = 0
    said: str = ""
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        return self.state == "running"


class Progress:
    """What the work reports to; raises :class:`Stopped` once it was stopped."""

    def __init__(self, path: Path, state: JobState) -> None:
        self._path = path
        self._state = state
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def report(self, n_done: int, n_total: int, said: str = "") -> None:
        """How much is done of how much, with a few words about it."""
        if self.stopped.is_set():
            raise Stopped
        with self._lock:
            self._state = replace(self._state, n_done=n_done, n_total=n_total, said=said)

    def beat(self) -> None:
        """A sign of life, with how far it is; looks whether somebody asked to stop."""
        if _stop_file(self._path).exists():
            self.stopped.set()
        self._write(beat_s=time.time())

    def end(self, state: str, said: str, result: dict[str, Any]) -> None:
        """The last word."""
        self._write(state=state, said=said or self._state.said, result=result)
        _stop_file(self._path).unlink(missing_ok=True)

    def _write(self, **changes: Any) -> None:
        # Changed within the lock: a sign of life must not take back how far the work is meanwhile.
        with self._lock:
            self._state = replace(self._state, **changes)
            write_whole(self._path, json.dumps(asdict(self._state)).encode())


Work = Callable[[Progress], dict[str, Any]]


class Jobs:
    """The long work of all drafts that this process does."""

    def __init__(self) -> None:
        self._running: list[Progress] = []

    def start(self, folder: Path, name: str, by: str, work: Work) -> None:
        """Begins the work, unless it is being done already."""
        refuse_twice(folder, name)
        path = _state_file(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        _stop_file(path).unlink(missing_ok=True)
        progress = Progress(path, JobState("running", by))
        progress.beat()
        self._running.append(progress)
        threading.Thread(target=self._run, args=(progress, work), name=f"{name} of {folder.name}", daemon=True).start()

    def _run(self, progress: Progress, work: Work) -> None:
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT_S):
                progress.beat()

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        state, said, result = "done", "", {}
        try:
            result = work(progress)
        except Stopped:
            state = "stopped"
        except DialometerError as error:
            state, said = "failed", str(error)
        except Exception as error:
            state, said = "failed", f"This failed (reference {log_failure(error)})."
        ended.set()
        beating.join()
        progress.end(state, said, result)
        self._running.remove(progress)

    def close(self) -> None:
        """Stops everything."""
        for progress in list(self._running):
            progress.stopped.set()


def job_state(folder: Path, name: str) -> JobState:
    """How far some work is; ``none`` where it was never begun, ``interrupted`` where its process is gone."""
    try:
        stored = json.loads(_state_file(folder, name).read_bytes())
        known = {part.name for part in fields(JobState)}  # earlier versions wrote more
        state = JobState(**{key: value for key, value in stored.items() if key in known})
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return JobState("none")
    is_dead = state.is_running and time.time() - state.beat_s > DEAD_S
    return replace(state, state="interrupted") if is_dead else state


def refuse_twice(folder: Path, name: str) -> None:
    """Raises where some work is being done already."""
    if job_state(folder, name).is_running:
        raise DialometerError("this is being done already", remedy="wait for it, or stop it")


def stop_job(folder: Path, name: str) -> None:
    """Asks for an end, whichever process does the work."""
    path = _state_file(folder, name)
    if path.is_file():
        _stop_file(path).touch()


def _state_file(folder: Path, name: str) -> Path:
    return folder / FOLDER / JOBS / f"{name}.json"


def _stop_file(path: Path) -> Path:
    return path.with_suffix(".stop")
