"""Copies of a database, files that do not belong together, files that can only be read, and the log of acknowledged screens."""

import os
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from storage_cases import T0, answer, arrive, judgment, register, screen

from dialometer.errors import StorageError
from dialometer.storage import Store
from dialometer.storage.database import open_database
from dialometer.storage.erasing import erase_left_before_consent
from dialometer.storage.safety import start
from dialometer.storage.safety.acknowledged import ACKNOWLEDGED_FILE, AcknowledgementLog, compare
from dialometer.storage.safety.checks import check_acknowledged, check_database
from dialometer.storage.safety.copying import copy_rows, copy_to_file, set_tables_aside
from dialometer.storage.safety.files import is_open_elsewhere, log_mismatch


def fill(store, n=3, first=0):
    for number in range(first, first + n):
        session = arrive(store, f"P{number}")
        one = [judgment(session, "item0"), judgment(session, "item1")]
        sent = screen(session, 0, one, [answer(session, "age", number)], token=f"random-{number}")
        store.submissions.record([sent], T0)
    return session


def problems(store):
    return [check for check in check_database(store) if check.state == "problem"]


def test_a_copy_holds_everything_and_goes_back_into_either_database(store, tmp_path):
    session = fill(store)
    store.withdrawals.withdraw(session.id, T0)
    copy_to_file(store.database, tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("copy")) == ["copy.db"]
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    with Store.open(tmp_path / "copy.db", create=False) as copy:
        assert problems(copy) == []
        assert list(copy.records.judgments()) == list(store.records.judgments())
        assert copy.sessions.all() == store.sessions.all()
        if not store.database.is_sqlite:  # back again, beside the old tables
            with store.database.writing() as writing:
                aside = set_tables_aside(writing, datetime(2026, 1, 2, tzinfo=UTC))
                copy_rows(copy.database, writing)
            with store.database.reading() as reading:
                assert reading.scalar(text(f"SELECT count(*) FROM {aside}.judgments")) == 4
        new = fill(store if not store.database.is_sqlite else copy, 1, first=9)
        into = store if not store.database.is_sqlite else copy
        # Numbers of erased rows are not given again.
        assert [one.id for one in into.records.judgments(new.id)] == [7, 8]
        assert problems(into) == []


def test_missing_and_doubled_rows_are_found(tmp_path):
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        register(store)
        fill(store)
        assert problems(store) == []
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER judgments_no_delete")
        connection.execute("DELETE FROM judgments WHERE id = 1")
        connection.execute("DROP INDEX uq_answers_first")
        columns = "session_id, part, question, value, shown_at_ms, answered_at_ms, corrected_by, reason"
        connection.execute(f"INSERT INTO answers ({columns}) SELECT {columns} FROM answers WHERE id = 1")
        connection.execute("UPDATE sessions SET ordinal = 9 WHERE ordinal = 3")
    connection.close()
    with Store.open(path) as store:
        found = {check.name: check.text for check in problems(store)}
    assert found["judgments"] == "6 were stored, 0 erased on request, 5 are left"
    assert "two answers" in found["duplicate answers"]
    assert found["sessions"] == "6 of 9 sessions are missing"


# files


def test_a_log_without_its_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "study.db"
    (tmp_path / "study.db-wal").write_bytes(b"x" * 100)
    for what in ("is missing", "is empty"):
        with pytest.raises(StorageError, match=f"the database {what}, but its write-ahead log"):
            Store.open(path)
        assert (tmp_path / "study.db-wal").stat().st_size == 100
        path.write_bytes(b"")


def copy_files(path, folder):
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copyfile(f"{path}{end}", folder / f"study.db{end}")
    return folder / "study.db"


def test_an_older_file_beside_a_newer_log_is_refused(tmp_path):
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        register(store)
        fill(store, 5)
        killed = copy_files(path, tmp_path / "killed")  # as a kill would leave it
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        fill(store, 15, first=5)
        newer = copy_files(path, tmp_path / "newer")
        assert is_open_elsewhere(path) is False  # this very process does not count
    assert log_mismatch(killed) == ""
    assert log_mismatch(newer) == ""
    start.refuse_foreign_log(newer)
    shutil.copyfile(killed, newer)  # a restore by cp
    with pytest.raises(StorageError, match="the database is older than its log"):
        start.refuse_foreign_log(newer)


@pytest.mark.parametrize("has_log", [False, True])
@pytest.mark.parametrize("can_be_opened", [False, True])
def test_what_cannot_be_written_can_be_read(has_log, can_be_opened, tmp_path, monkeypatch):
    with Store.open(tmp_path / "study.db") as store:
        register(store)
        fill(store)
        path = copy_files(tmp_path / "study.db", tmp_path / "medium") if has_log else None
    if path is None:
        path = shutil.copyfile(tmp_path / "study.db", tmp_path / "medium.db")
    before = {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}
    monkeypatch.setattr("dialometer.storage.database.is_writable", lambda _: False)
    if not can_be_opened:  # as on a medium where SQLite cannot make its index
        monkeypatch.setattr("dialometer.storage.database.HEAD", "another revision")
    with Store.open(path, create=False) as store:
        assert len(list(store.records.judgments())) == 6
        assert problems(store) == []
        with pytest.raises(StorageError, match="can only be read"):
            arrive(store)
    assert {name: (path.parent / name).read_bytes() for name in before} == before


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_noticed(tmp_path):  # pragma: no cover - not for root
    folder = tmp_path / "medium"
    folder.mkdir()
    with Store.open(folder / "study.db") as store:
        register(store)
        fill(store)
    folder.chmod(0o555)
    try:
        with Store.open(folder / "study.db", create=False) as store:
            assert store.database.is_read_only
            assert len(list(store.records.judgments())) == 6
    finally:
        folder.chmod(0o755)


# the log of acknowledged screens


@pytest.fixture
def logged(store, tmp_path):
    log = AcknowledgementLog(tmp_path / ACKNOWLEDGED_FILE)
    store.database.log_stored = log.add
    yield store
    log.close()


def test_every_stored_screen_is_in_the_log_once(logged, tmp_path):
    session = fill(logged)
    again = screen(session, 0, [judgment(session, "item0")], token="random-2")
    assert logged.submissions.record([again], T0)[0].outcome == "repeated"
    found = compare(tmp_path, logged.database)
    assert (found.n_logged, found.n_stored, found.lost) == (3, 3, [])
    assert session.id not in (tmp_path / ACKNOWLEDGED_FILE).read_text()
    start.refuse_lost_answers(tmp_path, logged.database)


def test_what_a_rater_withdrew_is_not_lost(logged, tmp_path):
    logged.withdrawals.withdraw(fill(logged).id, T0)
    found = compare(tmp_path, logged.database)
    assert (found.n_stored, found.n_erased, found.lost) == (2, 1, [])
    assert check_acknowledged(found).state == "ok"


def test_raters_who_left_before_consent_are_not_lost(logged, tmp_path):
    session = arrive(logged, "P1")
    logged.submissions.record([screen(session, 0, answers=[answer(session, "age", 1)], token="t")], T0)
    with logged.database.writing() as writing:
        writing.execute(text("UPDATE sessions SET state = 'stale'"))
        assert erase_left_before_consent(writing, T0 + 1)
    assert compare(tmp_path, logged.database).n_erased == 1
    assert problems(logged) == []
    start.refuse_lost_answers(tmp_path, logged.database)


def test_a_line_that_was_cut_is_not_a_loss(logged, tmp_path):
    fill(logged)
    file = tmp_path / ACKNOWLEDGED_FILE
    file.write_bytes(file.read_bytes()[:-5])
    fill(logged, 2, first=5)  # the next line continues the cut one
    found = compare(tmp_path, logged.database)
    assert (found.n_stored, found.n_unreadable, found.lost) == (3, 1, [])


def test_an_older_or_emptied_database_does_not_start(logged, tmp_path):
    fill(logged)
    copy_to_file(logged.database, tmp_path / "older.db")
    fill(logged, 2, first=5)
    older = open_database(tmp_path / "older.db", create=False)
    with pytest.raises(StorageError, match="lacks 2 of the last 5 screens that were acknowledged"):
        start.refuse_lost_answers(tmp_path, older)
    older.close()
    with Store.open(tmp_path / "empty.db") as empty:
        with pytest.raises(StorageError, match=r"collected in this study before.*--start-empty"):
            start.refuse_lost_answers(tmp_path, empty.database)
        with pytest.raises(StorageError, match="holds 5 sessions, so it cannot start empty"):
            start.start_empty(tmp_path, logged.database, datetime(2026, 1, 2, tzinfo=UTC))
        start.start_empty(tmp_path, empty.database, datetime(2026, 1, 2, tzinfo=UTC))
        start.refuse_lost_answers(tmp_path, empty.database)
    assert (tmp_path / "acknowledged-until-20260102-000000.log").exists()


def test_only_the_newest_lines_are_read_at_a_start(logged, tmp_path):
    fill(logged, 7)
    assert compare(tmp_path, logged.database, 4).n_logged == 4
    assert compare(tmp_path, logged.database, 100).n_logged == 7
