"""One process that reads hostile files, with limits, and the parent that hands out numbers and notices what dies or hangs.

An input is a number: seed and number decide which kind of file is spoilt and how, so that every failure can be made again.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import Any

from bench.fuzz.changes import changed
from bench.fuzz.kinds import Kind, kinds
from bench.fuzz.valid_files import Files
from dialometer.errors import DialometerError

LIMIT_S = 2.0
"""Processor time that one input may take; the machine may be busy with other things."""
SILENT_S = 300.0
"""After so long at one input a process is taken to hang in a way that no signal reaches; a busy machine may be slow."""
MORE_MEMORY = 2**30
"""What the process may take beyond what it has when everything is imported."""
CHUNK = 250
STARTING = -1
"""In place of an input's number, while a process makes all valid files and reads them once."""


class TooSlow(BaseException):
    """The limit of time has passed; not an Exception, so that nothing under test catches it."""


@dataclass(slots=True)
class Failure:
    """One input that was neither read nor refused in our own words."""

    number: int
    kind: str
    what: str
    where: str
    text: str


@dataclass(slots=True)
class Chunk:
    """What became of some inputs."""

    start: int
    end: int = 0
    n_read: int = 0
    n_refused: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    peak_mib: int = 0
    slowest_s: float = 0.0


@dataclass(slots=True)
class Lost:
    """A process that died or fell silent: the input it was at, and the chunk of which nothing is known then."""

    failure: Failure
    chunk: tuple[int, int]


def rounds(all_kinds: Sequence[Kind]) -> list[Kind]:
    """The kinds in the order in which inputs go through them, each as often as its weight, well mixed."""
    order = [kind for kind in all_kinds for _ in range(kind.weight)]
    random.Random(0).shuffle(order)
    return order


def write_input(order: Sequence[Kind], seed: int, number: int, folder: Path) -> Kind:
    """The files of one input, all of them, written into an empty folder."""
    kind, files, spoilt, content = drawn(order, seed, number)
    write_files({**files, spoilt: content}, folder)
    return kind


def drawn(order: Sequence[Kind], seed: int, number: int) -> tuple[Kind, Files, str, bytes]:
    """The kind of an input, its valid files, which of them is spoilt, and how it reads then."""
    kind = order[number % len(order)]
    rng = random.Random(f"{seed}:{number}")
    files = kind.files()
    spoilt = rng.choice([name for name in (kind.spoil or files) if name in files])
    return kind, files, spoilt, changed(spoilt, files[spoilt], rng)


def write_files(files: Files, folder: Path) -> None:
    """Files by their names in a folder, which is made where it is missing."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Scratch:
    """A folder for each kind in which the valid files lie: an input exchanges one of them and puts it back.

    Writing all files of a study for every input would take longer than reading them.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._folders: dict[str, tuple[Path, list[str]]] = {}

    @contextmanager
    def input(self, order: Sequence[Kind], seed: int, number: int) -> Iterator[tuple[Kind, Path]]:
        """The kind and the folder of one input, as long as the block lasts."""
        kind, files, spoilt, content = drawn(order, seed, number)
        if kind.name not in self._folders:
            folder = self.place / f"k{len(self._folders)}"
            write_files(files, folder)
            self._folders[kind.name] = folder, sorted(os.listdir(folder))  # noqa: PTH208 - one call for each input
        folder, names = self._folders[kind.name]
        path = folder / spoilt
        path.write_bytes(content)
        try:
            yield kind, folder
        finally:
            if path.is_file() and sorted(os.listdir(folder)) == names:  # noqa: PTH208
                path.write_bytes(files[spoilt])
            else:  # what was read has left something behind
                shutil.rmtree(folder, ignore_errors=True)
                write_files(files, folder)


def read_input(order: Sequence[Kind], seed: int, number: int, scratch: Scratch, chunk: Chunk) -> None:
    """One input, read with the limit of time; what becomes of it is added to the chunk."""
    with scratch.input(order, seed, number) as (kind, folder):
        chunk.by_kind[kind.name] += 1
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            kind.read(folder)
            chunk.n_read += 1
        except DialometerError as error:
            str(error).encode("utf-8", "backslashreplace")
            chunk.n_refused += 1
        except TooSlow as error:
            chunk.failures.append(_failure(number, kind, "hang", error))
        except MemoryError as error:
            chunk.failures.append(_failure(number, kind, "memory", error))
        except BaseException as error:
            chunk.failures.append(_failure(number, kind, "traceback", error))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        chunk.slowest_s = max(chunk.slowest_s, time.process_time() - started)


def _failure(number: int, kind: Kind, what: str, error: BaseException) -> Failure:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/dialometer/" in frame.filename] or frames
    where = f"{ours[-1].filename.rpartition('/dialometer/')[2]}:{ours[-1].lineno}"
    text = "".join(traceback.format_exception(error)[-12:])
    return Failure(number, kind.name, f"{what} {type(error).__name__}", where, text[-4000:])


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow


def work(seed: int, orders: Connection, current: Any, names: Sequence[str]) -> None:
    """The loop of a process: takes the start of a chunk, answers with what became of it, ends on None."""
    order = prepared(names)
    signal.signal(signal.SIGPROF, _stop)
    limit_memory()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:  # noqa: PTH112
        os.chdir(place)
        tempfile.tempdir = place  # in memory, like the inputs
        scratch = Scratch(Path(place))
        while (task := orders.recv()) is not None:
            start, end = task
            chunk = Chunk(start, end)
            for number in range(start, end):
                current.value = number
                read_input(order, seed, number, scratch, chunk)
            chunk.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            orders.send(chunk)


def prepared(names: Sequence[str] = ()) -> list[Kind]:
    """The order of kinds, with all valid files made and everything imported that a first reading would import."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    chosen = [kind for kind in kinds() if not names or any(name in kind.name for name in names)]
    for kind in chosen:
        with tempfile.TemporaryDirectory() as place:
            write_files(kind.files(), Path(place))
            kind.read(Path(place))  # a valid file that is refused is a mistake in valid_files.py
    return rounds(chosen)


def limit_memory() -> None:
    """A gigabyte more than what there is now; more is a MemoryError, and a failure."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MORE_MEMORY, resource.RLIM_INFINITY))


class Workers:
    """Processes that read chunks; one that dies or falls silent is replaced, and its input counts as a failure."""

    def __init__(self, n: int, seed: int, names: Sequence[str]) -> None:
        self.context = multiprocessing.get_context("spawn")  # polars does not survive a fork
        self.seed = seed
        self.names = names
        self.busy: dict[Connection, tuple[Any, Any, tuple[int, int]]] = {}
        self.seen: dict[Connection, tuple[int, float]] = {}
        """The input at which each busy process was seen, and since when."""
        self.idle = [self._start() for _ in range(n)]

    def _start(self) -> tuple[Connection, Any, Any]:
        ours, theirs = self.context.Pipe()
        current = self.context.Value("q", STARTING, lock=False)
        process = self.context.Process(target=work, args=(self.seed, theirs, current, self.names), daemon=True)
        process.start()
        theirs.close()
        return ours, process, current

    def give(self, chunk: tuple[int, int]) -> None:
        """Hands a chunk to an idle process."""
        connection, process, current = self.idle.pop()
        connection.send(chunk)
        self.busy[connection] = (process, current, chunk)

    def results(self) -> list[Chunk | Lost]:
        """What is done by now, and what was lost."""
        done: list[Chunk | Lost] = []
        for connection in wait(list(self.busy), timeout=1.0):
            assert isinstance(connection, Connection)
            process, current, chunk = self.busy.pop(connection)
            try:
                done.append(connection.recv())
                self.idle.append((connection, process, current))
            except (EOFError, OSError):
                done.append(self._lost(process, current, chunk, "died"))
        for connection, (process, current, chunk) in list(self.busy.items()):
            number, since = self.seen.get(connection, (STARTING, 0.0))
            if number != current.value:
                self.seen[connection] = int(current.value), time.monotonic()
            elif number != STARTING and time.monotonic() - since > SILENT_S:
                del self.busy[connection]
                process.kill()
                done.append(self._lost(process, current, chunk, "hang"))
        return done

    def _lost(self, process: Any, current: Any, chunk: tuple[int, int], what: str) -> Lost:
        process.join(5)
        number = int(current.value)
        if number == STARTING:
            raise SystemExit(f"a process ended before its first input (exit code {process.exitcode})")
        self.idle.append(self._start())
        failure = Failure(number, "", what, f"exit code {process.exitcode}", "the process was lost")
        return Lost(failure, chunk)

    def stop(self) -> None:
        """Ends all processes."""
        for connection, process, _ in self.idle:
            connection.send(None)
            process.join(5)
        for process, *_ in self.busy.values():
            process.kill()
