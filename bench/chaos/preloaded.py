"""Servers without the seconds in which Python loads its libraries, so that a hundred of them can be killed in minutes.

A process that has everything loaded reads lines of JSON, the arguments of ``dialometer`` and a log file, and forks one process
for each. What is killed is a process of its own that does what ``dialometer serve`` does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

CLOCK_FILE = ".chaos-clock"
"""In a study's folder: the milliseconds by which the server's clock is wrong, read at every look at the clock."""


def _shift_clock(file: Path) -> None:
    from dialometer.flow.engine import Flow  # noqa: PLC0415

    defaults = Flow.__init__.__kwdefaults__
    assert defaults is not None
    defaults["clock"] = lambda: time.time_ns() // 1_000_000 + int(file.read_text())


def _run(arguments: list[str], log: str) -> None:
    """In the forked process, as if it had been started from a shell."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, target in ((nothing, 0), (handle, 1), (handle, 2)):
        os.dup2(stream, target)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # where a limit stands in for a full disk
    from dialometer.cli import main  # noqa: PLC0415

    clock = Path(arguments[1]) / CLOCK_FILE
    if clock.exists():
        _shift_clock(clock)
    sys.argv = ["dialometer", *arguments]
    try:
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    os._exit(0)


def serve_forks() -> None:
    """Until the process that started this one has ended."""
    import dialometer.web.run  # noqa: F401, PLC0415
    from dialometer.cli import build_app  # noqa: PLC0415

    build_app()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        arguments, log = json.loads(line)
        pid = os.fork()
        if not pid:
            _run(arguments, log)
        print(pid, flush=True)


if __name__ == "__main__":
    serve_forks()
