"""A log, outside the database, of every screen that a server reported as stored.

The database alone cannot tell that it is an older copy, or that somebody emptied it. This file can: a screen that is in it
and not in the database is lost. It is written after the commit and never waits for the disk, so it is at most behind the
database, never ahead of it. One line is a checksum, the session as a short hash, and the screen's token, which pages draw at
random; nothing in it names a rater, and a session's id does not follow from its hash.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, or_, select

from dialometer.model.session import ERASED_STATES
from dialometer.storage.database import Database
from dialometer.storage.schema import sessions, submissions

ACKNOWLEDGED_FILE = "acknowledged.log"
N_LAST = 200
"""How many of the newest lines a server compares when it starts; `verify` compares all."""
N_PER_QUERY = 500
_LONGEST_LINE = 400


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One screen that was reported as stored."""

    session: str
    token: str


@dataclass(slots=True)
class LogComparison:
    """The log beside the database."""

    n_logged: int = 0
    n_stored: int = 0
    n_erased: int = 0
    """Of raters who withdrew, declined or left before they consented: their screens are gone on purpose."""
    n_unreadable: int = 0
    lost: list[Acknowledged] = field(default_factory=list)


class AcknowledgementLog:
    """The log of one study, for appending. Safe to use from many threads and processes."""

    def __init__(self, file: Path) -> None:
        self._handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @classmethod
    def beside(cls, folder: Path) -> Self | None:
        """The log in a study's folder; None where the folder cannot be written, since answers matter more than their log."""
        try:
            return cls(folder / ACKNOWLEDGED_FILE)
        except OSError:
            return None

    def add(self, stored: Sequence[tuple[str, str]]) -> None:
        """Add sessions and tokens of stored screens. A full disk is no reason to refuse what is stored already."""
        try:
            os.write(self._handle, "".join(_line(session_hash(session), token) for session, token in stored).encode())
        except OSError:
            return

    def close(self) -> None:
        """Give the file back."""
        os.close(self._handle)


def session_hash(session_id: str) -> str:
    """What the log has of a session's id."""
    return hashlib.sha256(b"dialometer acknowledged\x00" + session_id.encode()).hexdigest()[:16]


def _line(session: str, token: str) -> str:
    content = f"{session} {token}"
    return f"{zlib.crc32(content.encode()):08x} {content}\n"


def read_log(folder: Path, n_last: int | None = None) -> Iterator[Acknowledged | None]:
    """The lines of a study's log as it is now, or the last ones; None for a line that was cut or changed."""
    try:
        file = (folder / ACKNOWLEDGED_FILE).open("rb")
    except FileNotFoundError:
        return
    with file:
        end = file.seek(0, os.SEEK_END)
        start = 0 if n_last is None else max(0, end - n_last * _LONGEST_LINE)
        file.seek(start)
        if start:
            file.readline()
        lines = iter(lambda: file.readline(end - file.tell()), b"")
        yield from map(_entry, lines if n_last is None else list(lines)[-n_last:])


def _entry(line: bytes) -> Acknowledged | None:
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    session, _, token = content.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(content):
        return None
    return Acknowledged(session.decode(), token.decode())


def compare(folder: Path, database: Database, n_last: int | None = None) -> LogComparison:
    """What a study's log says was stored, beside what is stored; all of it, or the newest lines."""
    result = LogComparison()
    missing: list[Acknowledged] = []
    # A server may be writing. The log is measured before the database is opened, so all its lines were stored by then.
    entries = read_log(folder, n_last)
    part = list(islice(entries, N_PER_QUERY))
    if not part:
        return result
    with database.reading() as connection:
        while part:
            known = [entry for entry in part if entry is not None]
            query = select(submissions.c.token).where(submissions.c.token.in_([entry.token for entry in known]))
            stored = set(connection.scalars(query))
            missing += [entry for entry in known if entry.token not in stored]
            result.n_logged += len(known)
            result.n_unreadable += len(part) - len(known)
            part = list(islice(entries, N_PER_QUERY))
        erased = _erased(connection) if missing else set()
    result.lost = [entry for entry in missing if entry.session not in erased]
    result.n_erased = len(missing) - len(result.lost)
    result.n_stored = result.n_logged - len(missing)
    return result


def _erased(connection: Connection) -> set[str]:
    # Erasing takes the rater away, whatever the state: some left before they consented.
    is_erased = or_(sessions.c.rater_id.is_(None), sessions.c.state.in_(ERASED_STATES))
    ids = connection.scalars(select(sessions.c.id).where(is_erased))
    return {session_hash(session_id) for session_id in ids}
