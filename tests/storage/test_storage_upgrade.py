"""A database of an earlier version, written by that version's own statements, goes on under this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text
from storage_cases import ITEMS, T0, arrive, judgment, screen
from storage_processes import open_and_register

from dialometer.errors import AssignmentError
from dialometer.model.session import Draw, Snapshot
from dialometer.storage import ChatTurn, Store
from dialometer.storage.access.audit_log import AuditLog
from dialometer.storage.database import open_database
from dialometer.storage.migrate import upgrade
from dialometer.storage.migrations.versions.r0005_links_and_codes import earlier_code
from dialometer.storage.rows import token_hash

STUDY = "INSERT INTO study_versions (id, name, fingerprint, spec, at_ms) VALUES (1, 'trial', 'sha-1', '{}', 1)"
PERSON = (
    "INSERT INTO people (rater_id, platform, external_id, params) VALUES ('r1', 'prolific', 'P1', '{\"PID\": \"P1\"}')"
)
SESSION = """INSERT INTO sessions (id, token_hash, rater_id, ordinal, study_version, state, step, cell, condition, draw, source,
 consent_version, started_at_ms, last_seen_at_ms, is_excluded) VALUES ('s1', :token_hash, 'r1', 1, 1, 'active', 1, 2,
 '{"anchor":"both"}', '{"ordinal":1,"cell":2,"blocks":["main"],"items":{"main":["item0","item1"]}}', 'person',
 'v1', :at, :at, false)"""
SLOT = """INSERT INTO slots (session_id, item_id, block, cell, source, reserved_at_ms, done_at_ms, is_released)
 VALUES ('s1', :item, 'main', 2, 'person', 1, :done, false)"""
JUDGMENT = """INSERT INTO judgments (session_id, item_id, criterion, system, turn, value, scale, block, position, side, "order",
 shown_at_ms, answered_at_ms, is_late, is_practice, replaces, corrected_by, reason) VALUES ('s1', 'item0', 'fluency', 'a',
 -1, :value, 'likert', 'main', 1, 1, '["a","b"]', 1, 2, false, false, :replaces, '', '')"""
SUBMISSION = """INSERT INTO submissions (token, session_id, screen, step_after, state_after, at_ms)
 VALUES ('s1/0', 's1', 'screen0', 1, 'active', 1)"""


@pytest.fixture
def old_database(database_url: str) -> str:
    """Revision 0001 with a session that is on its second item, and a judgment that was corrected once."""
    database = open_database(database_url, create=True)
    with database.assigning() as connection:
        upgrade(connection, "0001")
        assert "chat_turns" not in inspect(connection).get_table_names()
        for statement in (STUDY, PERSON):
            connection.execute(text(statement.replace(":", "\\:")))
        session = text(SESSION.replace('":', '"\\:')).bindparams(token_hash=token_hash("secret"), at=T0)
        connection.execute(session)
        for item, done in (("item0", 1), ("item1", None)):
            connection.execute(text(SLOT), {"item": item, "done": done})
        connection.execute(text(JUDGMENT), {"value": "3", "replaces": None})
        connection.execute(text(JUDGMENT), {"value": "5", "replaces": 1})
        connection.execute(text(SUBMISSION))
    database.close()
    return database_url


def test_a_running_session_goes_on_after_an_upgrade(old_database: str) -> None:
    with Store.open(old_database) as store:
        session = store.sessions.by_token("secret")
        assert session is not None
        assert (session.step, session.draw.items, session.condition) == (
            1,
            {"main": ("item0", "item1")},
            {"anchor": "both"},
        )
        assert [found.value for found in store.records.of_session("s1").judgments] == [5]
        assert arrive(store, "P1", platform="prolific").id == "s1"

        again, done = store.submissions.record(
            [screen("s1", 0), screen("s1", 1, [judgment("s1", "item1")], done_item="item1", next_state="completed")],
            T0 + 9,
        )
        assert (again.outcome, again.step) == ("repeated", 1)
        assert (done.outcome, done.state) == ("stored", "completed")
        assert [found.item_id for found in store.records.judgments()] == ["item0", "item1"]


def test_what_the_upgrade_adds_can_be_used(old_database: str) -> None:
    def refuse_when_paused(snapshot: Snapshot) -> Draw:
        if not snapshot.is_open:
            raise AssignmentError("the study is paused")
        return Draw(snapshot.ordinal, 0, ("main",), {"main": ITEMS})

    with Store.open(old_database) as store:
        assert store.control.current().state == "running"
        store.control.set_state("paused", by="me", reason="lunch", at_ms=T0)
        with pytest.raises(AssignmentError):
            arrive(store, choose=refuse_when_paused)
        assert store.conversations.add_turn(ChatTurn("s1", "item0", 0, "user", "hello", T0))


def test_an_upgrade_erases_what_earlier_versions_kept_of_who_declined(database_url: str) -> None:
    database = open_database(database_url, create=True)
    answered = """INSERT INTO answers (session_id, part, question, value, shown_at_ms, answered_at_ms, corrected_by, reason)
     VALUES (:session, 'screening', 'age', '7', 1, 2, '', '')"""
    with database.assigning() as connection:
        upgrade(connection, "0003")
        connection.execute(text(STUDY.replace(":", "\\:")))
        connection.execute(text(PERSON.replace(":", "\\:")))
        session = text(SESSION.replace('":', '"\\:')).bindparams(token_hash=token_hash("secret"), at=T0)
        connection.execute(session)
        connection.execute(text(answered), {"session": "s1"})
        connection.execute(text("UPDATE sessions SET state = 'declined', consent_version = ''"))
    database.close()
    with Store.open(database_url) as store:
        left = store.sessions.get("s1")
        assert (left.state, left.rater_id, left.ordinal) == ("declined", "", 1)
        assert list(store.records.answers()) == []
        assert store.sessions.person("s1") is None


def test_codes_that_raters_noted_before_an_upgrade_stay_valid(old_database: str) -> None:
    with Store.open(old_database) as store:
        assert store.withdrawals.session_of_code("8R2V-FST9-3PWY-7D9B") == "s1", "as that version showed it"
        new = store.withdrawals.code("s1", "secret")
        assert store.withdrawals.session_of_code(new) == "s1"
        later = arrive(store, token="other")
        assert store.withdrawals.session_of_code(earlier_code(later.id)) is None
        store.withdrawals.withdraw("s1", T0)
        assert store.withdrawals.session_of_code("8r2vfst93pwy7d9b") == "s1", "a used code is still known"


def test_an_upgrade_erases_who_left_before_consent_and_keeps_the_log(database_url: str) -> None:
    database = open_database(database_url, create=True)
    with database.assigning() as connection:
        upgrade(connection, "0006")
        connection.execute(text(STUDY.replace(":", "\\:")))
        connection.execute(text(PERSON.replace(":", "\\:")))
        session = text(SESSION.replace('":', '"\\:')).bindparams(token_hash=token_hash("secret"), at=T0)
        connection.execute(session)
        connection.execute(text("UPDATE sessions SET state = 'stale', consent_version = ''"))
        logged = "INSERT INTO desk_log (made_by, what, detail, at_ms) VALUES ('ann', 'export', 'all', :at)"
        connection.execute(text(logged), {"at": T0})
    database.close()
    with Store.open(database_url) as store:
        assert store.sessions.get("s1").rater_id == ""
        log = AuditLog(store.database)
        log.add("ben", "export", "all", T0 + 1)
        assert [action.made_by for action in log.newest(10)] == ["ben", "ann"]


def test_several_processes_may_upgrade_at_once(old_database: str, crew: Any) -> None:
    assert crew.at_once(open_and_register, old_database) == [1] * crew.n
    with Store.open(old_database) as store:
        assert store.control.log() == []


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    old_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(connection: object) -> None:
        upgrade(connection)  # type: ignore[arg-type]
        raise RuntimeError("power cut")

    monkeypatch.setattr("dialometer.storage.migrate.upgrade", break_off)
    with pytest.raises(RuntimeError):
        Store.open(old_database)
    monkeypatch.undo()
    database = open_database(old_database, create=False)
    with database.reading() as connection:
        assert "chat_turns" not in inspect(connection).get_table_names()
    database.close()
    with Store.open(old_database) as store:
        assert store.sessions.get("s1").step == 1


def test_a_percent_sign_in_the_path_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "100% real"
    folder.mkdir()
    with Store.open(folder / "study.db") as store:
        assert store.sessions.all() == []
