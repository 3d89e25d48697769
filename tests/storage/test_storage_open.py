from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from storage_cases import arrive, register
from storage_processes import open_and_register

from dialometer.errors import StorageError
from dialometer.storage import Store
from dialometer.storage.database import n_connections, open_database
from dialometer.storage.migrate import known_revisions, upgrade
from dialometer.storage.schema import HEAD, VERSION_TABLE, metadata


def test_what_was_stored_is_there_when_the_store_is_opened_again(database_url: str) -> None:
    with Store.open(database_url) as store:
        register(store)
        session = arrive(store)
    with Store.open(database_url, create=False) as store:
        assert store.sessions.get(session.id) == session


IN_POSTGRES = """
    SELECT table_name, column_name, data_type, column_default, is_nullable FROM information_schema.columns
    WHERE table_schema = 'public'
    UNION ALL SELECT tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '' FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), '', '' FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT '', proname, prosrc, '', '' FROM pg_proc WHERE pronamespace = 'public'::regnamespace"""


def _described(connection: Connection) -> set[tuple[str, ...]]:
    """Everything that the database knows about its tables, indexes, constraints and triggers."""
    if connection.dialect.name == "postgresql":
        return {tuple(map(str, row)) for row in connection.execute(text(IN_POSTGRES.replace("::", "\\:\\:")))}
    rows = connection.execute(text("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master"))
    entries = {(kind, name, table, " ".join(sql.split())) for kind, name, table, sql in rows}
    for table in [name for kind, name, _, _ in entries if kind == "table"]:
        for about in ("table_info", "foreign_key_list"):
            found = connection.execute(text(f"SELECT * FROM pragma_{about}('{table}')"))
            entries |= {(about, table, *map(str, row[1:])) for row in found}
    return {entry for entry in entries if entry[0] != "table"}


def test_a_new_database_is_what_the_revisions_would_build(database_url: str) -> None:
    with Store.open(database_url) as store, store.database.reading() as connection:
        made = _described(connection)
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
    is_file = "postgresql" not in database_url
    database = open_database(f"{database_url}2" if is_file else database_url, create=True)
    with database.assigning() as connection:
        if not is_file:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        upgrade(connection)
        built = _described(connection)
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
    database.close()
    assert made == built
    assert any("guard" in part or "no_update" in part for entry in made for part in entry)


def test_the_declared_head_is_the_newest_migration() -> None:
    assert known_revisions()[0] == HEAD


def test_several_processes_may_create_the_database_at_once(database_url: str, crew: Any) -> None:
    assert crew.at_once(open_and_register, database_url) == [1] * crew.n


def test_a_database_newer_than_the_code_is_refused(database_url: str) -> None:
    with Store.open(database_url) as store, store.database.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StorageError, match=r"revision 9999.*install the newer"):
        Store.open(database_url)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE albums (id INTEGER)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"belongs to something else.*albums"):
        Store.open(path)
    assert path.read_bytes() == before


@pytest.mark.postgres
def test_a_server_database_of_something_else_is_refused(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE albums (id INTEGER)")
    with pytest.raises(StorageError, match=r"belongs to something else.*albums"):
        Store.open(postgres_url)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are not the rows you are looking for\n" * 50)
    with pytest.raises(StorageError, match=r"notes\.txt.*not written by dialometer"):
        Store.open(path)


def test_damage_inside_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        register(store)
        for _ in range(200):
            arrive(store)
        assert store.check() == []
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(8192, size - 4096, 4096):
            file.seek(place)
            file.write(os.urandom(64))
    with pytest.raises(StorageError, match=r"damaged; go back to a backup"), Store.open(path) as store:
        problems = store.check()
        assert problems
        store.sessions.all()


@pytest.mark.parametrize("is_empty_file", [False, True])
def test_without_create_there_must_be_something(tmp_path: Path, is_empty_file: bool) -> None:
    path = tmp_path / "study.db"
    if is_empty_file:
        path.touch()
    with pytest.raises(StorageError, match=r"no such database|is empty"):
        Store.open(path, create=False)
    assert path.exists() == is_empty_file


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "a database that lasts"),
        (":memory:", "a database that lasts"),
        ("sqlite://", "a database that lasts"),
        ("mysql://me@there/study", "'mysql' are not supported"),
        ("postgresql://me@:wrong:/x", "address of the database cannot be read"),
        ("no/such/folder/study.db", "there is no folder no/such/folder"),
    ],
)
def test_unusable_targets_are_explained(target: str, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        Store.open(target)


def test_a_sqlite_url_is_a_path(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/study.db"):
        assert (tmp_path / "study.db").exists()


def test_an_unreachable_server_is_told_without_the_password() -> None:
    with pytest.raises(StorageError, match="check that the server runs") as caught:
        Store.open("postgresql://me:secret@127.0.0.1:1/study")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError, match=r"pip install 'dialometer\[postgres\]'"):
        Store.open("postgresql://me@127.0.0.1:1/study")


def test_sqlite_waits_for_the_disk_and_checks_references(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store, store.database.reading() as connection:

        def pragma(name: str) -> object:
            return connection.exec_driver_sql(f"PRAGMA {name}").scalar()

        assert pragma("journal_mode") == "wal"
        assert pragma("synchronous") == 2  # FULL
        assert pragma("foreign_keys") == 1
        assert pragma("busy_timeout") == 30_000


def test_a_database_belongs_to_one_study(store: Store) -> None:
    assert store.studies.register("trial", "sha-1", "{}", 9) == 1
    assert store.studies.register("trial", "sha-2", '{"v": 2}', 10) == 2
    assert [(v.id, v.fingerprint, v.spec_json, v.at_ms) for v in store.studies.versions()][1] == (
        2,
        "sha-2",
        '{"v": 2}',
        10,
    )
    with pytest.raises(StorageError, match="holds the study 'trial', not 'other'"):
        store.studies.register("other", "sha-3", "{}", 11)


def test_a_writer_that_waits_too_long_is_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "wait_s", 0.05)
    with Store.open(tmp_path / "study.db") as one, Store.open(tmp_path / "study.db") as other, one.database.writing():
        with pytest.raises(StorageError, match="another process is writing"):
            register(other)
        assert other.sessions.all() == []  # reading goes on


def test_opening_a_database_that_is_up_to_date_runs_no_migrations(tmp_path: Path) -> None:
    Store.open(tmp_path / "study.db").close()
    code = "import sys; from dialometer.storage import Store; Store.open(sys.argv[1]).close(); print('alembic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "study.db"], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "False"


def test_a_process_has_a_budget_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALOMETER_CONNECTIONS", raising=False)
    assert n_connections() == 10
    monkeypatch.setenv("DIALOMETER_CONNECTIONS", "4")
    database = open_database("postgresql://nobody@127.0.0.1:1/none", create=True)
    assert database.engine.pool.size() == 2
    assert database.engine.pool._max_overflow == 2
    for wrong in ("1", "many", "99999"):
        monkeypatch.setenv("DIALOMETER_CONNECTIONS", wrong)
        with pytest.raises(StorageError, match="2 to 500"):
            open_database("postgresql://nobody@127.0.0.1:1/none", create=True)
