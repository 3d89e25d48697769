"""Commands without the seconds in which Python loads libraries.

A server process has everything loaded; each command runs in a process forked from it, with its own arguments, folder,
environment and streams. Run as a script this is that server; ``write_programs`` puts programs called ``dialometer`` and
``python`` into a folder that hand their work to it. What a fresh process does is tested in ``tests/cli/test_command_line.py``.
"""

from __future__ import annotations

import array
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLIENT = """#!{python} -IS
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
call = json.dumps([{kind!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
server.sendmsg([len(call).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(call)
sys.exit(int(server.makefile().read() or 1))
"""
CORE = (
    "polars, scipy.stats, scipy.optimize, scipy.sparse, sqlalchemy, alembic.command, fastapi, jinja2, rich.traceback,"
    "typer.rich_utils, dialometer.analysis.base.choose, dialometer.report, dialometer.exchange.exports.archive,"
    "dialometer.exchange.exports.export, dialometer.exchange.importing, dialometer.simulate.server_client, dialometer.web.run"
)
EVERYTHING = (
    f"{CORE}, torch, transformers, numba, sklearn.feature_extraction.text, dialometer.learned.gaussian.training"
)


def write_programs(folder: Path, address: str) -> None:
    """Programs that look like the installed ones."""
    for kind in ("dialometer", "python"):
        program = folder / kind
        program.write_text(CLIENT.format(python=sys.executable, address=address, kind=kind), encoding="utf-8")
        program.chmod(0o755)


@contextmanager
def command_server(folder: Path, loaded: str = EVERYTHING) -> Iterator[Path]:
    """A running server that has these modules loaded; gives the folder whose programs use it."""
    address = str(folder / "commands")
    environment = {**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([sys.executable, __file__, address, loaded], env=environment, stdin=subprocess.PIPE)
    try:
        for _ in range(6000):
            if Path(address).exists() or server.poll() is not None:
                break
            time.sleep(0.05)
        assert server.poll() is None, "the server of commands did not start"
        programs = folder / "programs"
        programs.mkdir()
        write_programs(programs, address)
        yield programs
    finally:
        server.kill()
        server.communicate()


def _receive(caller: socket.socket) -> tuple[list[int], list[object]]:
    head, ancillary, _, _ = caller.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i")
    for _, _, data in ancillary:
        streams.frombytes(data)
    n_left, body = int.from_bytes(head, "big"), b""
    while len(body) < n_left:
        body += caller.recv(n_left - len(body))
    return list(streams), json.loads(body)


def _run(kind: str, arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> int:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
    try:
        if kind == "dialometer":
            from dialometer.cli import main

            sys.argv = ["dialometer", *arguments]
            main()
        else:
            import runpy

            sys.argv = arguments
            sys.path.insert(0, folder)
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _end_with(caller: socket.socket) -> None:
    """Whoever kills the program that a page started (``kill %1``) ends the command behind it."""
    caller.recv(1)
    os._exit(1)


def _load_parts() -> None:
    """What most commands load when they first need it: all verbs, and the parts that studies and reports are made of."""
    from dialometer.analysis.base.family import ALTERNATIVES, ANALYSES
    from dialometer.cli import command_line
    from dialometer.quality import RULES
    from dialometer.recruit.platforms import PLATFORMS
    from dialometer.report.render import FORMATS
    from dialometer.scales import SCALES
    from dialometer.stats import STATISTICS

    command_line()
    for parts in (SCALES, RULES, PLATFORMS, ANALYSES, ALTERNATIVES, STATISTICS, FORMATS):
        parts.names()


def _serve(address: str, loaded: str) -> None:
    """Until the process that started this one has ended."""
    import gc
    import importlib
    import select
    import signal

    for name in loaded.split(","):
        importlib.import_module(name.strip())
    _load_parts()
    # Garbage collection in the commands need not look at what was loaded here, nor copy its memory.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address + ".new")
    listening.listen()
    os.rename(address + ".new", address)  # noqa: PTH104
    while listening in select.select([listening, 0], [], [])[0]:
        caller, _ = listening.accept()
        if os.fork():
            caller.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        streams, (kind, arguments, folder, environment) = _receive(caller)
        threading.Thread(target=_end_with, args=(caller,), daemon=True).start()
        code = _run(kind, arguments, folder, environment, streams)  # type: ignore[arg-type]
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(str(code).encode())
        os._exit(0)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
