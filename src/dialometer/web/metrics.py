"""Counters in the text form that Prometheus reads, added up over all processes of a server.

Each process counts in a file of its own that lies in memory; whoever is asked reads all of them. A process that ended
leaves its file, so that counters never go back.
"""

from __future__ import annotations

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from struct import Struct

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_NUMBER = Struct("d")


class Metrics:
    """A fixed set of series, declared before the first count; all processes declare the same ones in the same order."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._names: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._slots: dict[str, int] = {}
        self._headers: dict[str, str] = {}
        self._buffer: bytearray | mmap.mmap | None = None

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
        """Counts; a series that was not declared is an error of the programmer."""
        self._add((self._slots[f'{name}{{{label}="{value}"}}' if label else name], amount))

    def observe(self, name: str, bounds: Sequence[float], amount: float) -> None:
        """One more observation of a histogram with these bounds."""
        first = self._slots[f'{name}_bucket{{le="{bounds[0]:g}"}}']
        counted = [(first + slot, 1.0) for slot in range(bisect_left(bounds, amount), len(bounds) + 1)]
        self._add(*counted, (first + len(bounds) + 1, amount), (first + len(bounds) + 2, 1.0))

    def render(self, gauges: Mapping[str, tuple[str, Iterable[tuple[str, float]]]]) -> str:
        """All series of all processes, then values of the moment: name to its help and its labelled values."""
        totals = self._totals()
        lines: list[str] = []
        told: set[str] = set()
        for (family, series), total in zip(self._names, totals, strict=True):
            if family not in told:
                lines.append(self._headers[family])
                told.add(family)
            lines.append(f"{series} {total:.10g}")
        for name, (help_text, values) in gauges.items():
            lines.append(f"# HELP {name} {help_text}\n# TYPE {name} gauge")
            lines += [f"{name}{labels} {number:.10g}" for labels, number in values]
        return "\n".join(lines) + "\n"

    def _declare(self, family: str, series: str) -> None:
        self._slots[series] = len(self._names)
        self._names.append((family, series))

    def _add(self, *counted: tuple[int, float]) -> None:
        with self._lock:
            buffer = self._own_buffer()
            for slot, amount in counted:
                (old,) = _NUMBER.unpack_from(buffer, slot * 8)
                _NUMBER.pack_into(buffer, slot * 8, old + amount)

    def _own_buffer(self) -> bytearray | mmap.mmap:
        if self._buffer is None:
            size = 8 * len(self._names)
            if self._folder:
                path = Path(self._folder) / f"metrics-{os.getpid()}"
                path.write_bytes(bytes(size))
                with path.open("r+b") as file:
                    self._buffer = mmap.mmap(file.fileno(), size)
            else:
                self._buffer = bytearray(size)
        return self._buffer

    def _totals(self) -> list[float]:
        with self._lock:
            buffers = [bytes(self._own_buffer())]
        if self._folder:
            own = f"metrics-{os.getpid()}"
            others = (path for path in Path(self._folder).glob("metrics-*") if path.name != own)
            buffers += [content for path in others if len(content := path.read_bytes()) == 8 * len(self._names)]
        return [sum(_NUMBER.unpack_from(buffer, 8 * slot)[0] for buffer in buffers) for slot in range(len(self._names))]
