"""Connections, transactions and writing many rows at once; what differs between SQLite and PostgreSQL ends here."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Dialect, Engine, Insert, Table, Update, create_engine, event, insert, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError

from dialometer.errors import StorageError
from dialometer.storage.safety.files import is_writable, log_of, n_bytes_in_log, refuse_orphaned_log
from dialometer.storage.schema import HEAD, VERSION_TABLE

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another one before giving up; a server, whose raters wait with it, gives up sooner."""
BRIEF_WAIT_S = 0.25
"""How long it waits while the database is known to be locked."""
CONNECTIONS_VARIABLE = "DIALOMETER_CONNECTIONS"
N_CONNECTIONS = 10
ASSIGNMENT_LOCK = 0x6469616C6F
"""Key of PostgreSQL's advisory lock under which slots are assigned and revisions are run."""


class DatabaseFails(StorageError):
    """Nothing can be stored now, through no fault of the request. ``reason`` is one of :data:`REASONS`."""

    def __init__(self, reason: str, message: str, *, where: str = "", remedy: str = "") -> None:
        self.reason = reason
        super().__init__(message, where=where, remedy=remedy)


CACHE_KIB, SCAN_CACHE_KIB = 65536, 2048
"""Pages of a SQLite file that a connection keeps in memory, and while it reads a whole table once."""
REASONS = ("locked", "full", "gone", "failing")
"""Locked by another program, no room on the disk, the file deleted or replaced, and everything else."""


class Database:
    """One database and its three kinds of transaction: reading, writing, and assigning (one at a time, everywhere)."""

    def __init__(self, engine: Engine, where: str, wait_s: float = BUSY_TIMEOUT_S) -> None:
        self.where = where
        self.engine = engine
        self.is_read_only = False
        """Whether the file or its folder cannot be written; all that reads works then."""
        self.own_copy: TemporaryDirectory[str] | None = None
        """Where the file is read from if it cannot be read in place; removed when the database is closed."""
        self.log_stored: Callable[[Sequence[tuple[str, str]]], None] | None = None
        """Told sessions and tokens of screens once they are on disk; a server sets its log of acknowledged screens here."""
        self.wait_s = wait_s
        self.turns: Callable[[float], AbstractContextManager[None]] = lambda _wait_s: nullcontext()
        """Entered before each writing transaction, with how long to wait; a server sets a queue here, so that its writers
        take turns."""
        self.is_locked = False
        """Whether the last writer has waited in vain. Others then wait only briefly, so that they do not all wait."""
        self.wrote_at = float("-inf")
        """When a transaction was last written, by the monotonic clock."""
        self._file: tuple[int, int] | None = None
        # SQLite's readers always see one state of the file; PostgreSQL has to be asked for it.
        is_server = engine.dialect.name != "sqlite"
        one_view = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True} if is_server else {}
        self._reader = engine.execution_options(**one_view)
        self._writer = engine.execution_options(is_writing=True)
        self._brief_writer = engine.execution_options(is_writing=True, wait_s=BRIEF_WAIT_S)

    def remember_file(self) -> None:
        """From now on writing fails where the file is not the one that is there now."""
        self._file = self._present_file()

    def check_file(self) -> None:
        """Raises where the file was deleted, moved or replaced: what is written to it then, nobody finds again."""
        if self._file is not None and self._present_file() != self._file:
            raise DatabaseFails(
                "gone",
                "the database file was deleted, moved or replaced",
                where=self.where,
                remedy="put it back, or start the server again with the new one",
            )

    def _present_file(self) -> tuple[int, int] | None:
        if not self.is_sqlite:
            return None
        try:
            status = os.stat(self.where)  # noqa: PTH116 - before and after each commit, and a Path costs more than the call
        except OSError:
            return None
        return status.st_dev, status.st_ino

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file and not a server."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view; writers are not kept waiting."""
        with translated(self.where), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def reading_all(self) -> Iterator[Connection]:
        """As ``reading``, for one who goes through a whole table: SQLite keeps few of the pages, none is needed again."""
        with self.reading() as connection:
            if not self.is_sqlite:
                yield connection
                return
            connection.exec_driver_sql(f"PRAGMA cache_size = {-SCAN_CACHE_KIB}")
            try:
                yield connection
            finally:
                connection.exec_driver_sql(f"PRAGMA cache_size = {-CACHE_KIB}")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """All or nothing. SQLite takes its one write lock at once, so that a reader never has to become a writer.

        When the database is locked, gone or full, :class:`DatabaseFails` says so within a bounded time.
        """
        if self.is_read_only:
            raise StorageError(
                "the database can only be read", where=self.where, remedy="check who may write the file and its folder"
            )
        is_brief = self.is_locked
        writer = self._brief_writer if is_brief else self._writer
        try:
            with self.turns(BRIEF_WAIT_S if is_brief else self.wait_s), translated(self.where):
                self.check_file()
                with writer.begin() as connection:
                    yield connection
                self.check_file()
        except DatabaseFails as error:
            self.is_locked = error.reason == "locked"
            raise
        self.is_locked = False
        self.wrote_at = time.monotonic()

    @contextmanager
    def assigning(self) -> Iterator[Connection]:
        """A writing transaction that no other assigning one overlaps, in any process: what it counts stays true."""
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ASSIGNMENT_LOCK})")
            yield connection

    def close(self) -> None:
        """Give all connections back; what was committed is on disk already."""
        self.engine.dispose()
        if self.own_copy is not None:
            self.own_copy.cleanup()


class StorePart:
    """One subject of the store. All parts share the store's database."""

    def __init__(self, database: Database) -> None:
        self.database = database


def open_database(target: str | Path, *, create: bool, wait_s: float = BUSY_TIMEOUT_S) -> Database:
    """The database behind a path or URL, with its settings in place; its tables are not looked at yet.

    ``wait_s`` is how long a transaction waits for another one.
    """
    url = _url(target)
    where = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        where = str(path)
        if not create and not path.exists():
            raise StorageError("there is no such database", where=where, remedy="check the path")
        if not path.parent.is_dir():
            raise StorageError(f"there is no folder {path.parent}", where=where, remedy="create the folder first")
        refuse_orphaned_log(path)
        if not create and not is_writable(path):
            return _open_unwritable(path)
        return Database(_sqlite_engine(url, wait_s), where, wait_s)
    try:
        engine = create_engine(
            url, pool_pre_ping=True, connect_args={"connect_timeout": 10}, **_pool(n_connections(), wait_s)
        )
    except ImportError as error:
        raise StorageError(
            "the driver for PostgreSQL is not installed", where=where, remedy="pip install 'dialometer[postgres]'"
        ) from error
    event.listen(engine, "connect", partial(_set_up_postgres, wait_s))
    event.listen(engine, "begin", _begin_postgres)
    return Database(engine, where, wait_s)


def n_connections() -> int:
    """How many connections to PostgreSQL one process may hold for one study: the budget of a host is this times its processes.

    PostgreSQL allows 100 by default, for all hosts together; what needs a connection waits for one of these.
    """
    text = os.environ.get(CONNECTIONS_VARIABLE, "").strip()
    if not text:
        return N_CONNECTIONS
    if not (text.isascii() and text.isdigit() and 2 <= int(text[:4]) <= 500):
        raise StorageError(
            f"{CONNECTIONS_VARIABLE} is '{text[:20]}'", remedy="a number of connections for each process, 2 to 500"
        )
    return int(text)


def _pool(n: int, wait_s: float) -> dict[str, float]:
    """Half of the connections stay open, the others come and go."""
    kept = max(1, n // 2)
    return {"pool_size": kept, "max_overflow": n - kept, "pool_timeout": min(20.0, 2 * wait_s)}


def _sqlite_engine(url: URL, wait_s: float = BUSY_TIMEOUT_S) -> Engine:
    engine = create_engine(url, connect_args={"timeout": wait_s}, pool_size=8, max_overflow=32, pool_timeout=wait_s)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", partial(_begin_sqlite, wait_s))
    return engine


def _open_unwritable(path: Path) -> Database:
    """A SQLite file that can only be read, such as one on a DVD or in another account's folder.

    It is read in place where that is possible. A log that SQLite cannot index there, or tables of an earlier version, are
    read from a copy of our own.
    """
    # Nobody can be writing a file without a log, so SQLite may take it as it is.
    options = {"mode": "ro"} if n_bytes_in_log(path) else {"mode": "ro", "immutable": "1"}
    name = f"file:{quote(str(path.resolve()))}"
    try:
        address = f"{name}?{'&'.join(f'{key}={value}' for key, value in options.items())}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            revision = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()  # nosec B608  # our own name
        is_readable = revision is not None and revision[0] == HEAD
    except sqlite3.Error:
        is_readable = False
    if is_readable:
        database = Database(
            _sqlite_engine(URL.create("sqlite", database=name, query={**options, "uri": "true"})), str(path)
        )
        database.is_read_only = True
        return database
    copy = TemporaryDirectory(prefix="dialometer-")
    for file in (path, log_of(path)):
        if file.exists():
            shutil.copyfile(file, Path(copy.name) / file.name)
    database = Database(_sqlite_engine(URL.create("sqlite", database=str(Path(copy.name) / path.name))), str(path))
    database.own_copy = copy
    return database


def _url(target: str | Path) -> URL:
    if isinstance(target, Path) or "://" not in target:
        if str(target) in ("", ":memory:"):
            raise StorageError("a study needs a database that lasts", remedy="give the path of a file or a URL")
        return URL.create("sqlite", database=str(Path(target).expanduser()))
    try:
        url = make_url(target)
    except (ArgumentError, ValueError) as error:
        raise StorageError(
            "the address of the database cannot be read", remedy="postgresql://user@host/name"
        ) from error
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise StorageError("a study needs a database that lasts", remedy="give the path of a file")
        return url
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    raise StorageError(
        f"databases of kind '{url.drivername}' are not supported",
        remedy="use the path of a SQLite file or postgresql://user@host/name",
    )


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # Python's driver would begin transactions by itself, and too late; _begin_sqlite does it instead.
    connection.isolation_level = None
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
        f"cache_size = {-CACHE_KIB}",
        "wal_autocheckpoint = 8000",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(wait_s: float, connection: Connection) -> None:
    options = connection.get_execution_options()
    timeout_s = options.get("wait_s", wait_s)
    if connection.info.get("wait_s", wait_s) != timeout_s:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(1000 * timeout_s)}")
        connection.info["wait_s"] = timeout_s
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("is_writing", False) else "BEGIN")


def _set_up_postgres(wait_s: float, connection: Any, _record: Any) -> None:
    connection.execute(f"SET lock_timeout = {int(1000 * wait_s)}")
    connection.commit()


def _begin_postgres(connection: Connection) -> None:
    wait_s = connection.get_execution_options().get("wait_s")
    if wait_s is not None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(1000 * wait_s)}")


def use_write_ahead_log(database: Database) -> None:
    """Put a SQLite file into WAL mode, where readers and the writer do not stop each other.

    The mode stays with the file. Changing it needs the file for itself and does not wait for its turn, so the wait is here.
    """
    until = time.monotonic() + BUSY_TIMEOUT_S
    with translated(database.where), database.engine.connect() as connection:
        driver = connection.connection.cursor()
        while driver.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                driver.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the database as :class:`StorageError`, each with what to do about it."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        cause = str(error.orig if isinstance(error, DBAPIError) else error).strip().split("\n")[0]
        if isinstance(error, IntegrityError):
            message = f"the database refused a row ({cause})"
        else:
            message = f"the database: {cause}"
            reason = _reason(error, cause)
            if reason:
                raise DatabaseFails(reason, message, where=where, remedy=_remedy(cause)) from error
        raise StorageError(message, where=where, remedy=_remedy(cause)) from error
    except UnicodeEncodeError as error:
        raise StorageError(f"a text cannot be stored: {error.reason}", where=where, remedy="clean the text") from error


_SIGNS = {
    "locked": "locked",
    "lock timeout": "locked",
    "QueuePool limit": "locked",
    "disk is full": "full",
    "No space left": "full",
    "disk I/O error": "failing",
    "readonly database": "failing",
    "read-only transaction": "failing",
    "unable to open database": "failing",
}


def _reason(error: Exception, cause: str) -> str:
    """Why the database itself fails, by the words of its driver; empty where it does not."""
    known = next((reason for sign, reason in _SIGNS.items() if sign in cause), "")
    if known:
        return known
    is_cut = isinstance(error, DBAPIError) and (error.connection_invalidated or "connection" in cause)
    return "failing" if is_cut else ""


def _remedy(cause: str) -> str:
    remedies = {
        "malformed": "the file is damaged; go back to a backup",
        "not a database": "this file was not written by dialometer; check the path",
        "locked": "another process is writing for a long time; try again",
        "lock timeout": "another process is writing for a long time; try again",
        "disk is full": "make room on the disk",
        "unable to open": "check that the file and its folder may be read and written",
        "QueuePool": f"all connections are in use; allow more with {CONNECTIONS_VARIABLE}, or start fewer processes",
        "too many clients": f"PostgreSQL has no connection left; lower {CONNECTIONS_VARIABLE} on all hosts or raise max_connections",
        "connection": "check that the server runs and the address is right",
        "read-only": "the file or its folder may not be written; check the rights",
        "readonly": "the file or its folder may not be written; check the rights",
    }
    return next((remedy for sign, remedy in remedies.items() if sign in cause), "")


# Writing many rows with one statement. SQLAlchemy looks at every value of every row before the driver does. Our columns hold
# only numbers, texts and truth values, which both drivers take as they are, so the statement is compiled once and the rows
# go straight to the driver.

Values = dict[str, Any]
"""The columns of one row, by name."""


def insert_many(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows that all have the same columns."""
    execute_many(connection, _insert(table), rows)


def execute_many(connection: Connection, statement: Insert | Update, rows: Sequence[Values]) -> None:
    """Run one statement, kept at module level by the caller, for every row; none, if there is no row."""
    if not rows:
        return
    text, order = _compiled(statement, connection.dialect, tuple(rows[0]))
    if not order:
        connection.exec_driver_sql(text, list(rows))
    elif len(order) == 1:
        connection.exec_driver_sql(text, [(row[order[0]],) for row in rows])
    else:
        connection.exec_driver_sql(text, list(map(itemgetter(*order), rows)))


@lru_cache
def _insert(table: Table) -> Insert:
    return insert(table)


@lru_cache(maxsize=256)
def _compiled(statement: Insert | Update, dialect: Dialect, columns: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The statement as the driver reads it, and the order of its values where it takes them by place."""
    keys = list(columns) if isinstance(statement, Insert) else None
    compiled = statement.compile(dialect=dialect, column_keys=keys, for_executemany=True)
    return compiled.string, tuple(compiled.positiontup or ()) if compiled.positional else ()
