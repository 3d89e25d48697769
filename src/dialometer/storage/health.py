"""Whether a database can be written, tried on a connection of its own: a write that is rolled back.

The connections of the store may all be waiting for a lock, and reading works on a full disk and on a deleted file, so
neither of them says anything about whether the next screen can be stored.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

from sqlalchemy import NullPool, create_engine

from dialometer.storage.database import Database, DatabaseFails, translated
from dialometer.storage.schema import VERSION_TABLE, judgments, sessions, submissions

WAIT_S = 1.5
"""How long the check waits for a lock."""
N_BYTES = 256 * 1024
"""How much is written."""
MIN_FREE_BYTES = 16 * 1024 * 1024
"""With less than this the disk counts as full: the log of SQLite needs room to be written back."""


def check_writable(database: Database) -> None:
    """Raises :class:`DatabaseFails` when nothing can be stored."""
    began = time.monotonic()
    try:
        if database.is_sqlite:
            _write_to_file(database)
        else:
            _write_to_server(database)
    except DatabaseFails as error:
        # Where the server's own transactions get through, the database is busy and not locked.
        if error.reason != "locked" or database.wrote_at < began:
            raise


def _write_to_file(database: Database) -> None:
    database.check_file()
    free = shutil.disk_usage(Path(database.where).parent).free
    if free < MIN_FREE_BYTES:
        raise DatabaseFails("full", f"only {free // 1024} KiB are left on the disk", where=database.where)
    with database.turns(WAIT_S), translated(database.where):
        uri = f"{Path(database.where).absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
        try:
            # A cache this small does not hold the row: SQLite has to write it, and finds out whether the disk has room.
            connection.execute("PRAGMA cache_size = 8")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE health_check (content BLOB)")
            connection.execute("INSERT INTO health_check VALUES (randomblob(?))", (N_BYTES,))
            connection.execute("ROLLBACK")
        finally:
            connection.close()


def _write_to_server(database: Database) -> None:
    """Takes the locks that storing a screen takes, and writes to the smallest table."""
    engine = create_engine(database.engine.url, poolclass=NullPool, connect_args={"connect_timeout": 3})
    with translated(database.where), engine.connect() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(1000 * WAIT_S)}")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(2000 * WAIT_S)}")
        tables = ", ".join(table.name for table in (sessions, submissions, judgments))
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN ROW EXCLUSIVE MODE")
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = version_num")  # nosec B608  # our own name
        connection.rollback()
