"""Interim reports, computed by a process of their own so that raters' pages never wait for statistics.

A report is computed again when somebody opens the results, new data have come in, and the last one is old enough for its
cost. The study keeps a log of these looks.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.model.report import Report
from dialometer.storage.looks import Look
from dialometer.web.dashboard.running_studies import RunningStudy
from dialometer.web.server.logs import log_failure

TIMEOUT_S = 900.0
REST_S = 15.0
"""The least time between two analyses of a study; it is also several times what one takes."""
REST_FACTOR = 4.0
PAGE_FILE, JSON_FILE, SHARED_FILE, FIGURES = "index.html", "report.json", "shared.html", "figures"
REPORT_FORMATS = tuple(word for name in ("json", "html", "figures", "shared") for word in ("--format", name))
"""What the command writes, for those who put it together."""
N_KEPT = 60
"""Analyses that are remembered; of parts of the data that somebody explored, the oldest is forgotten first."""

MAX_WAITING = 3
"""Parts of the data that may be computed or wait for it at once, over all studies: who explores much must not hold up the
results and stopping rules of the others, which wait for the same process."""
BUSY = "Other parts of the data are being computed. This one follows as soon as one of them is done."


@dataclass(frozen=True)
class LiveReport:
    """A report, the state of the data it was computed from, and when."""

    report: Report
    page: bytes
    pulse: str
    at_ms: int
    took_s: float
    shared: str = ""
    """The page for others, without raw data; empty where the command did not write it."""
    figures: Mapping[str, bytes] = field(default_factory=dict)
    """Files of the figures by name, such as ``wins.svg``."""


@dataclass
class _Analysis:
    """The state of one study's analysis."""

    newest: LiveReport | None = None
    problem: str = ""
    is_busy: bool = False
    rest_until: float = 0.0


@dataclass(frozen=True)
class ReportStatus:
    """What can be shown now: the newest report, whether a newer one is being computed, and what went wrong if it did."""

    newest: LiveReport | None
    is_busy: bool
    is_newest: bool
    problem: str
    has_begun: bool = False
    """Whether the request that asked began a new analysis."""


class LiveReports:
    """The interim reports of all studies. ``command`` has ``{folder}``, ``{out}`` and, if needed, ``{database}`` filled in.

    Without ``options`` a report is about all data of the study's main group of raters; options of the command choose
    another group or a part of the data.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._analyses: OrderedDict[tuple[str, tuple[str, ...]], _Analysis] = OrderedDict()
        self._guard = threading.Lock()
        self._one_at_a_time = threading.Semaphore(1)
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False

    def peek(self, running: RunningStudy, options: tuple[str, ...] = ()) -> ReportStatus:
        """The newest report, without starting an analysis: for pages that are open all day."""
        with self._guard:
            analysis = self._analyses.get((running.name, options), _Analysis())
            return ReportStatus(analysis.newest, analysis.is_busy, False, analysis.problem)

    def latest(self, running: RunningStudy, by: str, options: tuple[str, ...] = ()) -> ReportStatus:
        """The newest report; starts an analysis where one is due, and never waits for it."""
        if not self.command:
            return ReportStatus(None, False, False, "this server computes no results")
        pulse = running.store.counts.pulse()
        with self._guard:
            analysis = self._analyses.setdefault((running.name, options), _Analysis())
            self._analyses.move_to_end((running.name, options))
            self._forget_old()
            has_begun = False
            is_newest = analysis.newest is not None and analysis.newest.pulse == pulse
            is_due = not is_newest and not analysis.is_busy and time.monotonic() >= analysis.rest_until
            if is_due and options and self._n_waiting() >= MAX_WAITING:
                return ReportStatus(analysis.newest, False, is_newest, BUSY)
            if is_due:
                analysis.is_busy = has_begun = True
                name = f"results of {running.name}"
                args = (analysis, running, pulse, by, options)
                threading.Thread(target=self._run, args=args, name=name, daemon=True).start()
            return ReportStatus(analysis.newest, analysis.is_busy, is_newest, analysis.problem, has_begun)

    def _n_waiting(self) -> int:
        """Parts of the data that are computed or wait for it."""
        return sum(analysis.is_busy for (_, options), analysis in self._analyses.items() if options)

    def _forget_old(self) -> None:
        """Of what was explored the oldest goes; what is being computed stays."""
        idle = [key for key, analysis in self._analyses.items() if key[1] and not analysis.is_busy]
        for key in idle[: max(0, len(self._analyses) - N_KEPT)]:
            del self._analyses[key]

    def _run(self, analysis: _Analysis, running: RunningStudy, pulse: str, by: str, options: tuple[str, ...]) -> None:
        began = time.monotonic()
        result, problem = None, ""
        try:
            with self._one_at_a_time:
                result = self._compute(running, pulse, options)
            if not self._is_closed and not options:  # only the whole of the study's own data is a look at its results
                running.store.looks.add(_look(result, by))
        except DialometerError as error:
            problem = str(error)
        except Exception as error:
            problem = f"The analysis failed (reference {log_failure(error)})."
        with self._guard:
            analysis.newest = result or analysis.newest
            analysis.problem = problem
            analysis.is_busy = False
            analysis.rest_until = time.monotonic() + max(REST_S, REST_FACTOR * (time.monotonic() - began))

    def _compute(self, running: RunningStudy, pulse: str, options: tuple[str, ...]) -> LiveReport:
        from dialometer.report.coding import report_from_json  # noqa: PLC0415 - brings the drawing program along

        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dialometer-results-") as out:
            fill = {"folder": str(running.folder), "database": str(running.database), "out": out}
            self._call([*(part.format(**fill) for part in self.command), *options], str(running.database))
            report = report_from_json((Path(out) / JSON_FILE).read_text(encoding="utf-8"))
            page = (Path(out) / PAGE_FILE).read_bytes()
            shared = Path(out) / SHARED_FILE
            for_others = shared.read_text(encoding="utf-8") if shared.exists() else ""
            folder = Path(out) / FIGURES
            figures = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}
        took_s = time.monotonic() - began
        return LiveReport(report, page, pulse, time.time_ns() // 1_000_000, took_s, for_others, figures)

    def _call(self, command: list[str], database: str) -> None:
        """Runs the command to its end. The database is named in the environment, since other users can read command lines."""
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
                _, stderr = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise DialometerError(
                    "the analysis takes too long to be shown here", remedy="run 'dialometer report' by hand"
                ) from error
            finally:
                self._process = None
        if process.returncode:
            errors = [line for line in stderr.splitlines() if line.startswith("error:")]
            raise DialometerError(errors[-1].removeprefix("error:").strip() if errors else "the analysis failed")

    def close(self) -> None:
        """Stops the analysis that is being computed."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()


def _look(result: LiveReport, by: str) -> Look:
    facts = result.report.provenance
    headlines = [
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
    return Look(by, n_judgments, n_raters, headlines, result.at_ms)


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None
