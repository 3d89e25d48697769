"""The answer so far, computed aside by a program of its own: raters' pages never wait for statistics.

A result stays for a while; it is made anew when somebody looks, something has happened, and the last one is old enough
for its cost. Each new result that somebody looks at is kept in the study as a look.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.model.report import Report
from dialometer.storage.watching import Look
from dialometer.web.dashboard.running_studies import Running
from dialometer.web.server.logs import log_failure

TIMEOUT_S = 900.0
REST_S = 15.0
"""Between two analyses of a study at least so long, and several times what one takes."""
REST_FACTOR = 4.0
PAGE_FILE, JSON_FILE = "index.html", "report.json"


@dataclass(frozen=True)
class Result:
    """A report, the state of the study it was made from, and when."""

    report: Report
    page: bytes
    pulse: str
    at_ms: int
    took_s: float


@dataclass
class _Work:
    """What is known about one study's results."""

    result: Result | None = None
    problem: str = ""
    is_busy: bool = False
    rest_until: float = 0.0


@dataclass(frozen=True)
class Seen:
    """What can be shown now: the newest result, whether a newer one is on its way, and what went wrong if it did."""

    result: Result | None
    is_busy: bool
    is_newest: bool
    problem: str


class Results:
    """Results by study. ``command`` is run with ``{folder}``, ``{out}`` and, if it asks, ``{database}`` filled in."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._works: dict[str, _Work] = {}
        self._guard = threading.Lock()
        self._one_at_a_time = threading.Semaphore(1)
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False

    def peek(self, running: Running) -> Seen:
        """The newest result, without starting a new analysis: for pages that are open all day."""
        with self._guard:
            work = self._works.get(running.name)
            if work is None:
                return Seen(None, False, False, "")
            return Seen(work.result, work.is_busy, False, work.problem)

    def see(self, running: Running, by: str) -> Seen:
        """The newest result; starts a new analysis where one is due. Never waits for it."""
        if not self.command:
            return Seen(None, False, False, "this server computes no results")
        pulse = running.store.pulse()
        with self._guard:
            work = self._works.setdefault(running.name, _Work())
            is_newest = work.result is not None and work.result.pulse == pulse
            if not is_newest and not work.is_busy and time.monotonic() >= work.rest_until:
                work.is_busy = True
                name = f"results of {running.name}"
                threading.Thread(target=self._run, args=(work, running, pulse, by), name=name, daemon=True).start()
            return Seen(work.result, work.is_busy, is_newest, work.problem)

    def _run(self, work: _Work, running: Running, pulse: str, by: str) -> None:
        began = time.monotonic()
        result, problem = None, ""
        try:
            with self._one_at_a_time:
                result = self._compute(running, pulse)
            if not self._is_closed:
                running.store.note_look(_look(result, by))
        except DialometerError as error:
            problem = str(error)
        except Exception as error:
            problem = f"The analysis failed (reference {log_failure(error)})."
        with self._guard:
            work.result = result or work.result
            work.problem = problem
            work.is_busy = False
            work.rest_until = time.monotonic() + max(REST_S, REST_FACTOR * (time.monotonic() - began))

    def _compute(self, running: Running, pulse: str) -> Result:
        from dialometer.report.coding import report_from_json  # noqa: PLC0415 - brings the drawing program along

        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dialometer-results-") as out:
            fill = {"folder": str(running.folder), "database": str(running.database), "out": out}
            self._call([part.format(**fill) for part in self.command], str(running.database))
            report = report_from_json((Path(out) / JSON_FILE).read_text(encoding="utf-8"))
            page = (Path(out) / PAGE_FILE).read_bytes()
        return Result(report, page, pulse, time.time_ns() // 1_000_000, time.monotonic() - began)

    def _call(self, command: list[str], database: str) -> None:
        """Runs the command to its end. The database goes by the environment too: other users can read commands."""
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
        settings = {**os.environ, **one_thread, "NO_COLOR": "1", "DIALOMETER_DATABASE": database}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=pipe, text=True, env=settings
        ) as process:
            self._process = process
            try:
                if self._is_closed:
                    process.kill()
                _, told = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise DialometerError(
                    "the analysis takes too long to be shown here", remedy="run 'dialometer report' by hand"
                ) from error
            finally:
                self._process = None
        if process.returncode:
            errors = [line for line in told.splitlines() if line.startswith("error:")]
            raise DialometerError(errors[-1].removeprefix("error:").strip() if errors else "the analysis failed")

    def close(self) -> None:
        """Ends what is being computed, since nobody will look at it any more."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()


def _look(result: Result, by: str) -> Look:
    facts = result.report.provenance
    seen = [
        {
            "label": headline.label,
            "value": _plain(headline.estimate.value),
            "low": _plain(headline.estimate.low),
            "high": _plain(headline.estimate.high),
        }
        for headline in result.report.summary.headlines
        if headline.estimate is not None
    ]
    n_judgments, n_raters = int(facts.get("n_judgments", 0)), int(facts.get("n_raters", 0))
    return Look(by, n_judgments, n_raters, seen, result.at_ms)


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None
