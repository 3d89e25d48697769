"""The files of a SQLite database: which belong together, who has them open, and whether they can be written.

Newest answers are in the write-ahead log (``study.db-wal``) until SQLite moves them into ``study.db``. The two are one
database: a log without its file, or beside an older copy of it, is lost data, and SQLite itself does not say so. It deletes
a log beside an empty file, and mixes one with an older copy.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialometer.errors import StorageError

fcntl: Any
try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where an open file cannot be moved anyway
    fcntl = None

LOG, INDEX, TURNS = "-wal", "-shm", "-turns"
"""What SQLite, and our writers' queue, keep beside a database file."""
_OPEN_LOCK = 128
"""The byte of the ``-shm`` file that every open connection holds locked (SQLite's "dead man switch")."""
_HEADER = 100
_LOG_HEADER, _FRAME_HEADER = 32, 24


def log_of(path: Path) -> Path:
    """The write-ahead log of a database file."""
    return Path(f"{path}{LOG}")


def files_of(path: Path) -> list[Path]:
    """The files of a database that are there, the main one first."""
    return [file for file in (path, *(Path(f"{path}{end}") for end in (LOG, INDEX, TURNS))) if file.exists()]


def n_bytes_in_log(path: Path) -> int:
    """How much is in the write-ahead log; a copy of the main file alone lacks it."""
    log = log_of(path)
    return log.stat().st_size if log.exists() else 0


def refuse_orphaned_log(path: Path) -> None:
    """Refuse a log whose database is missing or empty: SQLite would delete it with all that it holds."""
    if n_bytes_in_log(path) and not (path.exists() and path.stat().st_size):
        problem = "is empty" if path.exists() else "is missing"
        raise StorageError(
            f"the database {problem}, but its write-ahead log {log_of(path).name} holds {n_bytes_in_log(path):,} bytes",
            where=str(path),
            remedy="bring the database back with 'dialometer restore', or move the log away to start without it",
        )


def log_mismatch(path: Path) -> str:
    """Why the log does not belong to this file, in a sentence; empty where it does. Only for a file that nobody has open.

    Two rules that hold for every pair that belongs together. Pages behind the end of the file must be in the log. And the
    file's change counter is at most one behind the first that the log holds, since a log begins only after all that was in it
    before had been moved into the file.
    """
    if n_bytes_in_log(path) <= _LOG_HEADER:
        return ""
    with path.open("rb") as file:
        header = file.read(_HEADER)
    size, pages, counter, n_pages = _read_log(log_of(path))
    if not n_pages or len(header) < _HEADER:
        return ""
    n_missing = sum(page not in pages for page in range(path.stat().st_size // size + 1, n_pages + 1))
    if n_missing:
        return f"its write-ahead log continues a newer file: {n_missing:,} of {n_pages:,} pages are in neither of them"
    if counter is not None and int.from_bytes(header[24:28], "big") < counter - 1:
        return "its write-ahead log continues a newer file"
    return ""


def _read_log(log: Path) -> tuple[int, set[int], int | None, int]:
    """Page size, numbers of the committed pages, the first change counter, and how many pages the database then has."""
    with log.open("rb") as file:
        head = file.read(_LOG_HEADER)
        if len(head) < _LOG_HEADER:
            return 1, set(), None, 0
        size, salt = int.from_bytes(head[8:12], "big"), head[16:24]
        pages: set[int] = set()
        pending: set[int] = set()
        counter, n_pages = None, 0
        for page, n_after, first_bytes in _frames(file.fileno(), size, salt):
            pending.add(page)
            if page == 1 and counter is None:
                counter = int.from_bytes(first_bytes[24:28], "big")
            if n_after:  # a commit
                n_pages = n_after
                pages |= pending
                pending.clear()
    return size, pages, counter, n_pages


def _frames(handle: int, size: int, salt: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The frames of this round of the log; what an earlier round left behind has another salt."""
    at = _LOG_HEADER
    while len(frame := os.pread(handle, _FRAME_HEADER + 28, at)) == _FRAME_HEADER + 28 and frame[8:16] == salt:
        page, n_after = struct.unpack(">II", frame[:8])
        yield page, n_after, frame[_FRAME_HEADER:]
        at += _FRAME_HEADER + size


def is_open_elsewhere(path: Path) -> bool:
    """Whether another process has the database open, a server above all; a process that was killed does not count."""
    index = Path(f"{path}{INDEX}")
    if fcntl is None or not index.exists():
        return False
    try:
        handle = os.open(index, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _OPEN_LOCK)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def is_writable(path: Path) -> bool:
    """Whether the database and its folder can be written; SQLite needs both, even for reading what is in the log."""
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
