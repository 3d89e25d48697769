"""Where commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console


class _Quiet(Console):
    """A reader who has seen enough, such as ``head``, is no problem of the command."""

    def on_broken_pipe(self) -> None:
        try:
            super().on_broken_pipe()
        except SystemExit:
            sys.exit(0)


results = _Quiet(highlight=False, emoji=False)
errors = _Quiet(stderr=True, highlight=False, emoji=False)


# How far long work is: a bar on a terminal, a line of JSON now and then elsewhere.


Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0 where nobody knows)."""
PAUSE_S = 10.0


@contextmanager
def progress_bar() -> Iterator[Report]:
    """One bar for each kind of work, named by the words before the first comma; it goes when the work is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    pass

    if not errors.is_terminal:
        yield _Lines().report
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report(what: str, n_done: int, n_total: int) -> None:
            if not what:
                return
            label = what.partition(",")[0]
            total = n_total or None
            if label not in tasks:
                tasks[label] = bar.add_task(what, total=total)
            is_open = total is None or n_done < total
            bar.update(tasks[label], description=what, completed=n_done, total=total, visible=is_open)

        yield report


class _Lines:
    """Progress where no terminal shows a bar."""

    def __init__(self) -> None:
        self.told_at = time.monotonic()

    def report(self, what: str, n_done: int, n_total: int) -> None:
        if what and time.monotonic() - self.told_at > PAUSE_S:
            self.told_at = time.monotonic()
            sys.stderr.write(json.dumps({"doing": what, "done": n_done, "of": n_total}) + "\n")
            sys.stderr.flush()
