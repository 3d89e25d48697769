"""Bring a database to the revision this code knows: create, upgrade, or refuse, but never guess.

Alembic is imported only when there is something to do, since a database is opened far more often than upgraded.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from dialometer.errors import StorageError
from dialometer.storage.counting.slot_counts import counting_statements
from dialometer.storage.database import Database, use_write_ahead_log
from dialometer.storage.schema import HEAD, VERSION_TABLE, guard_statements, log_guard_statements, metadata

FOLDER = Path(__file__).parent / "migrations"

# Alembic keeps the running migration in a module, so threads of one process take turns.
_one_at_a_time = threading.Lock()


def bring_up_to_date(database: Database, *, create: bool) -> None:
    """Create or upgrade the tables. Of several processes that do it at once, one does the work and the others find it done."""
    with database.reading() as connection:
        revision = revision_of(connection, database.where)
    if revision is None and not create:
        raise StorageError(
            "the database is empty", where=database.where, remedy="check the path, or create a study in it"
        )
    if database.is_read_only:
        return
    if database.is_sqlite:
        use_write_ahead_log(database)
    if revision == HEAD:
        return
    with _one_at_a_time, database.assigning() as connection:
        revision = revision_of(connection, database.where)
        if revision == HEAD:
            return
        if revision is not None and revision not in known_revisions():
            raise StorageError(
                f"the database has revision {revision}, this version of dialometer knows up to {HEAD}",
                where=database.where,
                remedy="install the newer dialometer that wrote it",
            )
        if revision is None:
            create_tables(connection)
        else:
            upgrade(connection)


def create_tables(connection: Connection) -> None:
    """All tables of this version at once: a test holds them to what the revisions would build one after the other."""
    metadata.create_all(connection, checkfirst=False)
    dialect = connection.dialect.name
    for statement in (*guard_statements(dialect), *log_guard_statements(dialect), *counting_statements(dialect)):
        connection.exec_driver_sql(statement)
    connection.execute(
        text(
            f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY)"
        )
    )
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES ('{HEAD}')"))  # nosec B608  # constants


def revision_of(connection: Connection, where: str) -> str | None:
    """The revision of a database, None for an empty one; a database of something else is refused untouched."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        revision = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()  # nosec B608
        return None if revision is None else str(revision)
    if tables:
        raise StorageError(
            f"this database belongs to something else (it holds the table '{min(tables)}')",
            where=where,
            remedy="use an empty database or a new file",
        )
    return None


def known_revisions() -> list[str]:
    """All revisions, the newest first."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - slow, and rarely needed

    return [script.revision for script in ScriptDirectory(str(FOLDER)).walk_revisions()]


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the revisions up to the given one inside the caller's transaction."""
    from alembic import command  # noqa: PLC0415 - slow, and rarely needed
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
