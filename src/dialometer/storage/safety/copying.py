"""A consistent copy of a database while others write it, always as one SQLite file, and back into either kind of database.

One form for both kinds means that a copy can be checked without a server, and that a study can move from a file to PostgreSQL
or back. A PostgreSQL database is copied row by row from one snapshot; ``pg_dump`` would need programs of the server's own
version on this machine, and what it writes could only be checked by restoring it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, select, text

from dialometer.errors import StorageError
from dialometer.storage.counting.slot_counts import rebuild
from dialometer.storage.database import Database, insert_many, open_database, translated
from dialometer.storage.migrate import create_tables, revision_of
from dialometer.storage.schema import HEAD, VERSION_TABLE, metadata, slot_changes, slot_counts

N_PER_FETCH = 2000
NUMBERED = ("judgments", "answers")
"""Tables whose numbers are never given twice, even after rows were erased."""
COUNTS = (slot_counts, slot_changes)
"""What the database counts by itself while rows come in; counted anew in a copy."""


def copy_to_file(source: Database, target: Path) -> None:
    """Copy a database, as it is at one moment, into a new SQLite file without a log. Writers are not stopped."""
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it names raters
    os.close(handle)
    if source.is_sqlite:
        _copy_pages(source, target)
    else:
        copy = open_database(target, create=True)
        try:
            with copy.writing() as writing:
                copy_rows(source, writing)
        finally:
            copy.close()
    with translated(str(target)), closing(sqlite3.connect(target)) as made:
        made.execute("PRAGMA journal_mode = DELETE")
        made.execute("PRAGMA synchronous = FULL")


def _copy_pages(source: Database, target: Path) -> None:
    """SQLite's own way. All pages in one step: in several, each commit of a server would begin the copy anew."""
    with translated(source.where), source.engine.connect() as connection, closing(sqlite3.connect(target)) as copy:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.backup(copy, pages=-1)


def copy_rows(source: Database, writing: Connection) -> None:
    """Copy all rows, from one moment, into a database without tables; both sides may be SQLite or PostgreSQL."""
    with source.reading() as reading:
        revision = revision_of(reading, source.where)
        if revision != HEAD:
            raise StorageError(
                f"the database has revision {revision}, this version of dialometer copies {HEAD}",
                where=source.where,
                remedy="make the backup with the version that wrote it, or let this one upgrade the study first",
            )
        create_tables(writing)
        copied = [table for table in metadata.sorted_tables if table not in COUNTS]
        for table in copied:
            for rows in _batches(reading, table):
                insert_many(writing, table, rows)
        for table in copied:
            _continue_numbers(reading, writing, table)
        rebuild(writing)


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    """The rows of a table in the order of their keys, so that a correction comes after what it replaces."""
    query = select(table).order_by(*table.primary_key.columns)
    streamed = connection.execution_options(stream_results=True, yield_per=N_PER_FETCH).execute(query)
    for rows in streamed.mappings().partitions():
        yield [dict(row) for row in rows]


def _continue_numbers(reading: Connection, writing: Connection, table: Table) -> None:
    """Numbers go on after the highest that was ever given."""
    key = table.primary_key.columns.values()
    if len(key) != 1 or key[0].name != "id" or key[0].type.python_type is not int:
        return
    last = _last_number(reading, table)
    if not last:
        return
    if writing.dialect.name != "sqlite":
        sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
        writing.execute(text(f"SELECT setval({sequence}, :last)"), {"last": last})
    elif table.name in NUMBERED:
        writing.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        writing.execute(text("INSERT INTO sqlite_sequence VALUES (:name, :last)"), {"name": table.name, "last": last})


def _last_number(connection: Connection, table: Table) -> int:
    """The highest number of a table that was ever given, as far as the database knows; 0 where none was."""
    present = connection.scalar(text(f"SELECT max(id) FROM {table.name}")) or 0  # nosec B608  # our own table
    if connection.dialect.name == "sqlite":
        number = connection.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
    else:
        sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": table.name})
        last = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"  # nosec B608  # from the database
        number = connection.scalar(text(last))
    return max(int(present), int(number or 0))


def refuse_while_connected(database: Database) -> None:
    """Refuse what would pull a PostgreSQL database from under a server."""
    query = (
        "SELECT string_agg(DISTINCT coalesce(nullif(application_name, ''), 'a client') || coalesce(' at ' || "
        "host(client_addr), ''), ', ') FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with database.reading() as connection:
        n_others = connection.scalar(text(query))
    if n_others:
        raise StorageError(
            f"the database is in use by {n_others}", where=database.where, remedy="stop the server, then try again"
        )


def set_tables_aside(connection: Connection, at: datetime) -> str:
    """Move our tables of a PostgreSQL database into a schema of their own; gives its name, empty where there were none."""
    schema = str(connection.scalar(text("SELECT current_schema()")))
    names = connection.scalars(
        text("SELECT table_name FROM information_schema.tables WHERE table_schema = :schema"), {"schema": schema}
    ).all()
    ours = [name for name in names if name in metadata.tables or name == VERSION_TABLE]
    if not ours:
        return ""
    aside = f"before_restore_{at:%Y%m%d_%H%M%S}"
    connection.execute(text("SET LOCAL lock_timeout = '10s'"))
    connection.execute(text(f"CREATE SCHEMA {aside}"))
    for name in ours:
        connection.execute(text(f'ALTER TABLE "{schema}"."{name}" SET SCHEMA {aside}'))
    # The functions of their triggers go along; the new tables bring their own.
    functions = text(
        "SELECT DISTINCT p.proname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE c.relnamespace = CAST(:aside AS regnamespace) AND p.pronamespace = CAST(:schema AS regnamespace)"
    )
    for name in connection.scalars(functions, {"aside": aside, "schema": schema}).all():
        connection.execute(text(f'ALTER FUNCTION "{schema}"."{name}"() SET SCHEMA {aside}'))
    return aside
