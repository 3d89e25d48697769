"""A database that is locked, full, deleted or replaced: nothing is acknowledged, nobody waits for long, health says so."""

import shutil
import sqlite3
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import create_engine
from taking_part import form_answers, running

from dialometer.storage import health
from dialometer.storage.database import Database, DatabaseFails
from dialometer.storage.health import check_writable
from dialometer.storage.store import Store
from dialometer.web.server import health as web_health
from dialometer.web.server.turns import TurnTakingStore, WriteLock


@pytest.fixture
def quick(monkeypatch):
    """Servers that give up soon, so that tests need not wait."""
    monkeypatch.setattr(TurnTakingStore, "wait_s", 0.3)
    monkeypatch.setattr(health, "WAIT_S", 0.2)
    monkeypatch.setattr(web_health, "FRESH_S", 0.0)


@contextmanager
def locked(path):
    """Another program that writes and does not come to an end."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


def state(client):
    response = client.get("/healthz")
    return response.status_code, response.json().get("reason", "")


def first_item(there):
    """A browser at an item, with answers that fit."""
    browser = there.browser()
    browser.start()
    screen = browser.walk_to(there, "item")
    browser.get("/s")
    return browser, form_answers(there.study, screen)


def test_sixty_arrivals_on_a_locked_database_do_not_hold_up_health(quick, site, tmp_path, monkeypatch):
    """Were they to wait one after the other, it would take a minute."""
    monkeypatch.setattr(TurnTakingStore, "wait_s", 1.0)
    there = site()
    statuses, waits, after = [], [], []

    def arrive():
        began = time.monotonic()
        answer = client.post(f"{url}/start", data={"csrf": csrf})
        statuses.append(answer.status_code)
        after.append(answer.headers.get("retry-after"))
        waits.append(time.monotonic() - began)

    many = httpx.Limits(max_connections=100)
    with running(there.app) as url, httpx.Client(timeout=120, limits=many) as client:
        csrf = client.get(f"{url}/").text.split('name="csrf" value="')[1].split('"')[0]
        with locked(tmp_path / "study.db"):
            threads = [threading.Thread(target=arrive) for _ in range(60)]
            for thread in threads:
                thread.start()
            began = time.monotonic()
            answer = client.get(f"{url}/healthz")
            health_s = time.monotonic() - began
            for thread in threads:
                thread.join(120)
        assert (answer.status_code, answer.json()["reason"]) == (503, "locked")
        assert health_s < 45
    assert statuses == [503] * 60
    assert set(after) == {"5"}
    assert max(waits) < 45
    assert 'dialometer_not_stored_total{reason="locked"}' in there.client.get("/metrics").text
    assert there.store.sessions.all() == []


def test_health_writes_and_leaves_nothing(quick, site, tmp_path):
    there = site()
    wal = tmp_path / "study.db-wal"
    before = wal.stat().st_size
    assert state(there.client) == (200, "")
    assert wal.stat().st_size - before > health.N_BYTES / 2
    with sqlite3.connect(tmp_path / "study.db") as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'health_check'").fetchall()
    with locked(tmp_path / "study.db"):
        assert state(there.client) == (503, "locked")
    assert state(there.client) == (200, "")


def test_a_rater_keeps_the_answers_while_the_database_is_locked(quick, site, tmp_path):
    there = site()
    browser, answers = first_item(there)
    with locked(tmp_path / "study.db"):
        browser.send(answers)
        assert browser.status == 503
        assert browser.response.headers["retry-after"] == "5"
        assert browser.heading == "Not saved yet"
        kept = dict(browser.fields)
        assert {name: kept[name] for name in answers} == {name: str(value) for name, value in answers.items()}
        assert not list(there.store.records.judgments())
    browser.post("/s", kept)
    assert browser.status == 200
    assert len(list(there.store.records.judgments())) == len(answers)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_nothing_is_acknowledged_once_the_file_is_gone(how, quick, site, tmp_path):
    there = site()
    browser, answers = first_item(there)
    program = there.open_api()
    if how == "deleted":
        (tmp_path / "study.db").unlink()
    else:
        shutil.copy(tmp_path / "study.db", tmp_path / "copy.db")
        (tmp_path / "copy.db").replace(tmp_path / "study.db")
    browser.send(answers)
    assert (browser.status, browser.heading) == (503, "Not saved yet")
    refused = program.answer(there.study)
    assert refused.status_code == 503
    assert "gone" in refused.json()["error"]
    assert state(there.client) == (503, "gone")
    assert there.client.post("/api/v1/sessions", json={}, headers={"Authorization": "Bearer x"}).status_code != 201


def test_a_file_that_goes_during_the_transaction_is_not_acknowledged(tmp_path):
    failing = pytest.raises(DatabaseFails, match="deleted, moved or replaced")
    with Store.open(tmp_path / "s.db") as store, failing, store.database.writing():
        (tmp_path / "s.db").unlink()


def test_a_full_disk_is_unhealthy(quick, site, monkeypatch):
    there = site()
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _path: usage._replace(free=1_000_000))
    assert state(there.client) == (503, "full")


def test_an_endless_check_is_unhealthy_too(quick, site, monkeypatch):
    there = site()
    monkeypatch.setattr(web_health, "PATIENCE_S", 0.1)
    release = threading.Event()
    monkeypatch.setattr(web_health, "check_writable", lambda _database: release.wait(120))
    assert state(there.client) == (503, "failing")
    assert state(there.client) == (503, "failing")  # no second check beside the first
    assert sum(thread.name == "health" for thread in threading.enumerate()) == 1
    release.set()


def test_a_busy_database_is_not_a_locked_one(quick, tmp_path):
    with TurnTakingStore.open(tmp_path / "s.db") as store, locked(tmp_path / "s.db"):
        with pytest.raises(DatabaseFails):
            check_writable(store.database)
        store.database.wrote_at = time.monotonic() + 60  # the server's own writers get through
        check_writable(store.database)


def test_once_a_database_is_known_to_be_locked_writers_wait_only_briefly(monkeypatch, tmp_path):
    monkeypatch.setattr(TurnTakingStore, "wait_s", 1.5)
    with TurnTakingStore.open(tmp_path / "s.db") as store:
        with locked(tmp_path / "s.db"):
            waits = []
            for _ in range(3):
                began = time.monotonic()
                with pytest.raises(DatabaseFails) as failed, store.database.writing():
                    raise AssertionError("the database is locked")
                assert failed.value.reason == "locked"
                waits.append(time.monotonic() - began)
            assert waits[0] > 1.4
            assert max(waits[1:]) < 1.4
        with store.database.writing():
            pass
        assert not store.database.is_locked


def test_a_turn_that_does_not_come_is_given_up(tmp_path):
    lock = WriteLock(tmp_path / "turns")

    def hold():
        with lock.turn(1):
            held.set()
            release.wait(120)

    held, release = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    with pytest.raises(DatabaseFails, match="too many wait"), lock.turn(0.05):
        raise AssertionError
    assert not lock._waiting
    release.set()
    holder.join()
    with lock.turn(0.05):
        pass
    lock.close()


@pytest.mark.postgres
def test_postgresql_that_is_locked_or_gone(monkeypatch, postgres_url):
    import psycopg

    monkeypatch.setattr(TurnTakingStore, "wait_s", 0.3)
    monkeypatch.setattr(health, "WAIT_S", 0.3)
    with TurnTakingStore.open(postgres_url) as store:
        check_writable(store.database)
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
            for work in (lambda: check_writable(store.database), store.sessions.all):
                began = time.monotonic()
                with pytest.raises(DatabaseFails) as failed:
                    work()
                assert failed.value.reason == "locked"
                assert time.monotonic() - began < 30
            other.rollback()
        check_writable(store.database)
        nowhere = create_engine(store.database.engine.url.set(database="no_such_database"))
        with pytest.raises(DatabaseFails) as failed:
            check_writable(Database(nowhere, "nowhere"))
        assert failed.value.reason == "failing"
