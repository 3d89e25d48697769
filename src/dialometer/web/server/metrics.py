"""Counters in the text format of Prometheus, summed over all processes of a server.

Each process counts in its own memory-mapped file, and the process that is asked reads all of them. A process that ended
leaves its file, so that counters never decrease.
"""

from __future__ import annotations

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

METRICS_TYPE = "text/plain; version=0.0.4"
"""How Prometheus names its text format."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ROUTES = (
    "start",
    "screen",
    "submit",
    "draft",
    "chat",
    "wizard",
    "dashboard",
    "api",
    "api_submit",
    "static",
    "health",
    "other",
)
STATUSES = ("2xx", "3xx", "4xx", "5xx")
OUTCOMES = ("stored", "repeated", "outdated", "ended", "rejected", "refused")
REFUSALS = (
    "full",
    "not_started",
    "paused",
    "closed",
    "blocked",
    "elsewhere",
    "crowded",
    "uninvited",
    "unsigned",
    "settled",
)
REPLIES = ("agent", "wizard", "failed")


class Metrics:
    """A fixed set of series, declared before the first count; all processes declare the same ones in the same order."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._names: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._slots: dict[str, int] = {}
        self._headers: dict[str, str] = {}
        self._numbers: memoryview[float] | None = None

    def counter(self, name: str, help_text: str, label: str = "", values: Sequence[str] = ()) -> None:
        """Declares a counter, or one for each value of a label."""
        self._headers[name] = f"# HELP {name} {help_text}\n# TYPE {name} counter"
        for value in values or ("",):
            self._declare(name, f'{name}{{{label}="{value}"}}' if label else name)

    def histogram(self, name: str, help_text: str, bounds: Sequence[float]) -> None:
        """Declares a histogram."""
        self._headers[name] = f"# HELP {name} {help_text}\n# TYPE {name} histogram"
        for bound in bounds:
            self._declare(name, f'{name}_bucket{{le="{bound:g}"}}')
        for series in (f'{name}_bucket{{le="+Inf"}}', f"{name}_sum", f"{name}_count"):
            self._declare(name, series)

    def add(self, name: str, amount: float = 1.0, *, label: str = "", value: str = "") -> None:
        """Adds to a declared series."""
        self.count(((self.slot(name, label=label, value=value), amount),))

    def observe(self, name: str, bounds: Sequence[float], amount: float) -> None:
        """One more observation of a histogram with these bounds."""
        self.count(self.observation(self.slot(f"{name}_bucket", label="le", value=f"{bounds[0]:g}"), bounds, amount))

    def slot(self, name: str, *, label: str = "", value: str = "") -> int:
        """The position of a series, for callers that count often."""
        return self._slots[f'{name}{{{label}="{value}"}}' if label else name]

    @staticmethod
    def observation(first: int, bounds: Sequence[float], amount: float) -> list[tuple[int, float]]:
        """What one observation adds to a histogram whose first bucket is in slot ``first``."""
        n_bounds = len(bounds)
        counted = [(first + slot, 1.0) for slot in range(bisect_left(bounds, amount), n_bounds + 1)]
        return [*counted, (first + n_bounds + 1, amount), (first + n_bounds + 2, 1.0)]

    def count(self, counted: Iterable[tuple[int, float]]) -> None:
        """Adds to several series at once."""
        with self._lock:
            numbers = self._own_numbers()
            for slot, amount in counted:
                numbers[slot] += amount

    def render(self, gauges: Mapping[str, tuple[str, Iterable[tuple[str, float]]]]) -> str:
        """All series of all processes, then values of the moment: name to its help and its labelled values."""
        totals = self._totals()
        lines: list[str] = []
        shown: set[str] = set()
        for (family, series), total in zip(self._names, totals, strict=True):
            if family not in shown:
                lines.append(self._headers[family])
                shown.add(family)
            lines.append(f"{series} {total:.10g}")
        for name, (help_text, values) in gauges.items():
            lines.append(f"# HELP {name} {help_text}\n# TYPE {name} gauge")
            lines += [f"{name}{labels} {number:.10g}" for labels, number in values]
        return "\n".join(lines) + "\n"

    def _declare(self, family: str, series: str) -> None:
        self._slots[series] = len(self._names)
        self._names.append((family, series))

    def _own_numbers(self) -> memoryview[float]:
        if self._numbers is None:
            size = 8 * len(self._names)
            memory: bytearray | mmap.mmap = bytearray(size)
            if self._folder:
                path = Path(self._folder) / f"metrics-{os.getpid()}"
                path.write_bytes(bytes(size))
                with path.open("r+b") as file:
                    memory = mmap.mmap(file.fileno(), size)
            self._numbers = memoryview(memory).cast("d")
        return self._numbers

    def _totals(self) -> list[float]:
        with self._lock:
            totals = list(self._own_numbers())
        if self._folder:
            own = f"metrics-{os.getpid()}"
            for path in Path(self._folder).glob("metrics-*"):
                content = path.read_bytes()
                if path.name != own and len(content) == 8 * len(totals):
                    totals = [mine + theirs for mine, theirs in zip(totals, memoryview(content).cast("d"), strict=True)]
        return totals


def declare_metrics(folder: str = "") -> Metrics:
    """The series of a server."""
    metrics = Metrics(folder)
    metrics.counter("dialometer_requests_total", "Requests by route.", "route", ROUTES)
    metrics.counter("dialometer_responses_total", "Responses by class of status.", "status", STATUSES)
    metrics.counter("dialometer_submissions_total", "Submitted screens by what became of them.", "outcome", OUTCOMES)
    metrics.counter("dialometer_arrivals_total", "Arrivals that got a session.")
    metrics.counter("dialometer_refusals_total", "Arrivals that got none.", "reason", REFUSALS)
    metrics.counter("dialometer_replies_total", "Chat responses by who gave them.", "by", REPLIES)
    metrics.histogram("dialometer_request_seconds", "Time to answer a request.", SECONDS)
    metrics.histogram("dialometer_commit_screens", "Screens stored in one commit.", SIZES)
    return metrics


class RequestCounter:
    """Counts answered requests; it looks the slots of its series up once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._seconds = metrics.slot("dialometer_request_seconds_bucket", label="le", value=f"{SECONDS[0]:g}")
        self._routes = {name: metrics.slot("dialometer_requests_total", label="route", value=name) for name in ROUTES}
        self._statuses = {
            name: metrics.slot("dialometer_responses_total", label="status", value=f"{name}xx") for name in range(2, 6)
        }

    def count(self, route: str, status: int, duration_s: float) -> None:
        """One request that was answered; status 0 is one whose client went away."""
        counted = self._metrics.observation(self._seconds, SECONDS, duration_s)
        counted.append((self._routes[route], 1.0))
        if status // 100 in self._statuses:
            counted.append((self._statuses[status // 100], 1.0))
        self._metrics.count(counted)
