"""Putting a backup in the place of what is there: nothing is deleted, nothing of the old state can leak into the new one.

SQLite would mix a write-ahead log that was left behind with the restored file, and bring the old answers back. So all files of
a database are moved aside together, into a folder that says when.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dialometer.errors import DialometerError
from dialometer.exchange.backups.packing import ASIDE, COUNTS, FILES
from dialometer.exchange.exports.export_folder import sha256_of
from dialometer.model.file_names import DATABASE_FILE
from dialometer.storage.database import open_database, translated
from dialometer.storage.migrate import revision_of
from dialometer.storage.safety.acknowledged import ACKNOWLEDGED_FILE
from dialometer.storage.safety.checks import Check, check_database
from dialometer.storage.safety.copying import copy_rows, refuse_while_connected, set_tables_aside
from dialometer.storage.safety.files import files_of, is_open_elsewhere
from dialometer.storage.store import Store

SERVING_FILE = ".serving.json"
"""What a running server leaves in the study's folder: its address and its process."""


@dataclass(frozen=True, slots=True)
class Restored:
    """Where the old state is now (empty where there was none), the check of the new one, and withdrawals done again."""

    aside: str
    checks: list[Check]
    n_withdrawn: int = 0


def refuse_while_served(folder: Path, database: str) -> None:
    """Refuse to restore under a running server."""
    path = _file_of(folder, database)
    if path is None:
        opened = open_database(database, create=True)
        try:
            refuse_while_connected(opened)
        finally:
            opened.close()
        return
    if is_open_elsewhere(path) or _server_process(folder):
        raise DialometerError(
            "a server is running on this study", where=str(folder), remedy="stop it, then restore and start it again"
        )


def _server_process(folder: Path) -> int:
    """The process of a server that left word in the folder and still lives; 0 for none."""
    try:
        pid = int(json.loads((folder / SERVING_FILE).read_text(encoding="utf-8"))["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    # The number of a server that was killed may belong to another program by now.
    command = Path(f"/proc/{pid}/cmdline")
    return pid if not command.exists() or b"serve" in command.read_bytes() else 0


def present(folder: Path, database: str) -> str:
    """What a restore would move aside, in words; empty where there is nothing. It is neither changed nor upgraded."""
    path = _file_of(folder, database)
    if path is not None:
        if not files_of(path):
            return ""
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as connection:
                n = connection.execute(COUNTS["sessions"]).fetchone()[0]
        except sqlite3.Error as error:
            return f"a database that cannot be read ({error})"
        return f"a database with {n:,} sessions"
    opened = open_database(database, create=True)
    try:
        with opened.reading() as connection:
            if revision_of(connection, opened.where) is None:
                return ""
            return f"a database with {connection.exec_driver_sql(COUNTS['sessions']).scalar():,} sessions"
    finally:
        opened.close()


def _file_of(folder: Path, database: str) -> Path | None:
    """The SQLite file of a study; None where the database is a server's."""
    if not database:
        return folder / DATABASE_FILE
    opened = open_database(database, create=True)
    opened.close()
    return Path(opened.where) if opened.is_sqlite else None


def files_to_replace(unpacked: Path, folder: Path) -> list[str]:
    """Files of the folder that differ from those of the backup."""
    inside = unpacked / FILES
    names = [path.relative_to(inside) for path in sorted(inside.rglob("*")) if path.is_file()]
    return [
        name.as_posix()
        for name in names
        if (folder / name).is_file() and sha256_of(folder / name) != sha256_of(inside / name)
    ]


def restore(unpacked: Path, manifest: dict[str, Any], folder: Path, database: str, at: datetime) -> Restored:
    """Move what is there aside, put the backup in its place, and check it."""
    aside = folder / f"{ASIDE}{at:%Y%m%d-%H%M%S}"
    moved = files_to_replace(unpacked, folder)
    if (folder / ACKNOWLEDGED_FILE).exists():
        moved.append(ACKNOWLEDGED_FILE)
    own = _file_of(folder, database)
    old_tables = _restore_server(unpacked, database, at) if own is None else ""
    # The main file goes first: if this stops half way, a log without its file is refused at the next start.
    old_files = [] if own is None else files_of(own)
    if old_files or moved:
        aside.mkdir()
    for file in old_files:
        shutil.move(file, aside / file.name)
    for name in moved:
        (aside / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).rename(aside / name)
    if own is not None:
        (unpacked / DATABASE_FILE).chmod(0o644 if not old_files else (aside / old_files[0].name).stat().st_mode & 0o777)
        shutil.move(unpacked / DATABASE_FILE, own)
        _reach_disk(own, own.parent)
    _copy_files(unpacked / FILES, folder)
    checks = _checked(own or database, manifest)
    old = aside / old_files[0].name if old_files else None
    n_withdrawn = _withdraw_again(own or database, _withdrawn(old, database, old_tables))
    where = f"schema {old_tables}" if old_tables else ""
    return Restored(
        " and ".join(part for part in (str(aside) if aside.exists() else "", where) if part), checks, n_withdrawn
    )


def _reach_disk(*paths: Path) -> None:
    """Wait until files and names are on disk; a folder cannot be asked for it on every system."""
    for path in paths:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _copy_files(source: Path, folder: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_file():
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _restore_server(unpacked: Path, database: str, at: datetime) -> str:
    """The rows into PostgreSQL, the old tables into a schema of their own: both or neither."""
    with Store.open(unpacked / DATABASE_FILE, create=False) as source:
        target = open_database(database, create=True)
        try:
            refuse_while_connected(target)
            with translated(target.where), target.writing() as writing:
                aside = set_tables_aside(writing, at)
                copy_rows(source.database, writing)
        finally:
            target.close()
    return aside


def _withdrawn(old: Path | None, database: str, old_tables: str) -> list[tuple[str, int]]:
    """Sessions that were withdrawn in the old state, with the time; none where it cannot be read."""
    query = "SELECT session_id, at_ms FROM {}withdrawals"
    if old is not None:
        try:
            with closing(sqlite3.connect(f"file:{quote(str(old.resolve()))}?mode=ro", uri=True)) as connection:
                return connection.execute(query.format("")).fetchall()
        except sqlite3.Error:
            return []
    if not old_tables:
        return []
    opened = open_database(database, create=True)
    try:
        with opened.reading() as reading:
            rows = reading.exec_driver_sql(query.format(f"{old_tables}.")).all()
            return [(row[0], row[1]) for row in rows]
    finally:
        opened.close()


def _withdraw_again(target: str | Path, withdrawn: list[tuple[str, int]]) -> int:
    """Erase raters who withdrew after the backup was made: their request outlives it."""
    n = 0
    with Store.open(target, create=False) as store:
        present = {session.id: session.state for session in store.sessions.all()} if withdrawn else {}
        for session_id, at_ms in withdrawn:
            if present.get(session_id, "withdrawn") != "withdrawn":
                store.withdrawals.withdraw(session_id, at_ms)
                n += 1
    return n


def _checked(target: str | Path, manifest: dict[str, Any]) -> list[Check]:
    with Store.open(target, create=False) as store:
        checks = check_database(store)
        with store.database.reading() as connection:
            held = {name: connection.exec_driver_sql(query).scalar() for name, query in COUNTS.items()}
    expected = manifest["holds"]
    is_same = held == expected
    counted = ", ".join(f"{n:,} {name}" for name, n in held.items())
    message = counted if is_same else f"{counted}, but the backup has {expected}"
    return [Check("restored", "ok" if is_same else "problem", message), *checks]
