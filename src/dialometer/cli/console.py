"""Where commands print: results to standard output, everything else to standard error; and the progress of long work."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from dialometer.neural.work import Work


class _Quiet(Console):
    """A reader who has seen enough, such as ``head``, is no problem of the command."""

    def on_broken_pipe(self) -> None:
        try:
            super().on_broken_pipe()
        except SystemExit:
            sys.exit(0)


results = _Quiet(highlight=False, emoji=False)
errors = _Quiet(stderr=True, highlight=False, emoji=False)


def print_prose(text: str, *, style: str = "") -> None:
    """Sentences: broken between words on a terminal, one line elsewhere, so that other programs can search them."""
    results.print(text, style=style, soft_wrap=not results.is_terminal)


Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0 where nobody knows)."""
PAUSE_S = 10.0


class ProgressBar:
    """How far long work is: a bar on a terminal, a line of JSON now and then elsewhere. The bar goes when the work is done.

    ``unit`` names what is counted. ``pause_s`` is the least time between two lines.
    """

    def __init__(self, unit: str = "", *, pause_s: float = PAUSE_S, is_shown: bool = True) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.is_shown, self.is_bar, self.pause_s = is_shown, is_shown and errors.is_terminal, pause_s
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
        self._bar = Progress(*columns, TimeRemainingColumn(), console=errors, transient=True, disable=not self.is_bar)
        self._tasks: dict[str, Any] = {}
        self._begun: dict[str, tuple[float, int]] = {}
        self._written_at = time.monotonic()

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def report(
        self,
        description: str,
        n_done: int,
        n_total: int,
        *,
        label: str = "",
        line: Mapping[str, Any] | None = None,
        is_due: bool = False,
    ) -> None:
        """One step. Each ``label``, by default the words before the first comma, has a bar of its own.

        ``line`` replaces the usual line of JSON; ``is_due`` has it written without waiting for the pause to be over.
        """
        label = label or description.partition(",")[0]
        self._begun.setdefault(label, (time.monotonic(), n_done))
        if self.is_bar and description:
            total = n_total or None
            if label not in self._tasks:
                self._tasks[label] = self._bar.add_task(description, total=total)
            is_open = total is None or n_done < total
            self._bar.update(
                self._tasks[label], description=description, completed=n_done, total=total, visible=is_open
            )
        elif self.is_shown and description and (is_due or time.monotonic() - self._written_at > self.pause_s):
            self._written_at = time.monotonic()
            usual = {"doing": description, "done": n_done, "of": n_total} | self._minutes_left(label, n_done, n_total)
            sys.stderr.write(json.dumps(line or usual) + "\n")
            sys.stderr.flush()

    def _minutes_left(self, label: str, n_done: int, n_total: int) -> dict[str, float]:
        """At the pace since this work began; nothing before a first step is done."""
        began, n_before = self._begun[label]
        if n_done <= n_before or not n_total:
            return {}
        pace_s = (time.monotonic() - began) / (n_done - n_before)
        return {"minutes_left": round(pace_s * (n_total - n_done) / 60, 1)}


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A progress bar as the function that reports to it."""
    with ProgressBar() as bar:
        yield bar.report


@contextmanager
def working(device: str, cache: Path | None) -> Iterator[Work]:
    """How heavy work is done: on which device, with which cache, and with a progress bar."""
    from dialometer.errors import DialometerError
    from dialometer.neural.device import DEVICES
    from dialometer.neural.work import Work, default_cache

    if device not in DEVICES:
        raise DialometerError(f"unknown device '{device}'", remedy="use auto, cpu, cuda or mps")
    with progress_bar() as report:
        yield Work(device=device, report=report, cache=cache or default_cache())  # type: ignore[arg-type]
