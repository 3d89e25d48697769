"""What is past its promised time is found and erased; codes find sessions; people have one number. On both databases."""

from __future__ import annotations

import pytest
from storage_cases import T0, answer, arrive, judgment, register, screen

from dialometer.errors import StorageError
from dialometer.storage import Store
from dialometer.storage.access.codes import withdrawal_code
from dialometer.storage.erasing import DAY_MS
from dialometer.storage.imports import ImportedSession
from dialometer.storage.sessions import Patience
from dialometer.storage.withdrawals import Due

NOW = T0 + 100 * DAY_MS


def test_names_go_before_answers_and_programs_have_none(store: Store) -> None:
    register(store)
    old = arrive(store, "PID-old", params={"SESSION_ID": "x"})
    store.submissions.record([screen(old, 0, [judgment(old, "item0")])], T0)
    fresh = arrive(store, "PID-fresh", at_ms=NOW - DAY_MS, stale_before_ms=0)
    model = arrive(store, "some-model#1", source="model")
    due = store.withdrawals.due(identifiers_days=30, answers_days=None, at_ms=NOW)
    assert due == Due(raters=(old.rater_id,))
    store.withdrawals.erase(due, NOW)
    person = store.sessions.person(old.id)
    assert person is not None
    assert (person.external_id, dict(person.params)) == ("", {})
    assert len(list(store.records.judgments(old.id))) == 1
    kept = [store.sessions.person(session.id) for session in (fresh, model)]
    assert [one.external_id for one in kept if one] == ["PID-fresh", "some-model#1"]
    assert not store.withdrawals.due(identifiers_days=30, answers_days=None, at_ms=NOW)
    assert arrive(store, "PID-old", at_ms=NOW, stale_before_ms=0).id != old.id, "who is forgotten is new"
    due = store.withdrawals.due(identifiers_days=None, answers_days=60, at_ms=NOW)
    assert due == Due(sessions=(old.id,))
    store.withdrawals.erase(due, NOW)
    assert store.sessions.get(old.id).state == "withdrawn"
    assert list(store.records.judgments()) == []


def test_imported_sessions_without_times_count_from_the_import(store: Store) -> None:
    version = register(store)
    sessions = [ImportedSession(id="i0", rater="ann"), ImportedSession(id="i1", rater="bob", started_at_ms=T0)]
    about = {"file_name": "a.csv", "format": "long", "study_version": version}
    store.imports.add(sessions, sha256="1", at_ms=NOW - DAY_MS, **about)
    due = store.withdrawals.due(identifiers_days=30, answers_days=30, at_ms=NOW)
    assert due.sessions == ("i1",)
    assert due.raters == (store.sessions.get("i1").rater_id,)


def test_one_person_has_one_number(store: Store) -> None:
    version = register(store)
    about = {"format": "long", "study_version": version, "at_ms": NOW}
    for number, names in enumerate((("ann", "bob"), ("bob", "cid"))):
        rows = [ImportedSession(id=f"{number}-{name}", rater=name) for name in names]
        store.imports.add(rows, file_name=f"{number}.csv", sha256=str(number), **about)
    assert store.sessions.rater_numbers() == {"0-ann": 1, "0-bob": 2, "1-bob": 2, "1-cid": 4}
    store.withdrawals.withdraw("1-bob", NOW)
    assert store.sessions.rater_numbers() == {"0-ann": 1, "0-bob": 2, "1-bob": 3, "1-cid": 4}
    assert [one.session_id for one in store.withdrawals.all()] == ["0-bob", "1-bob"]


def test_a_code_finds_its_session_however_it_is_typed(store: Store) -> None:
    register(store)
    codes = {withdrawal_code(f"token{n}"): arrive(store, token=f"token{n}").id for n in range(5)}
    assert len(codes) == 5
    for code, session_id in codes.items():
        assert store.withdrawals.session_of_code(code) == session_id
        assert store.withdrawals.session_of_code(f" {code.lower().replace('-', '')} ") == session_id
        assert store.withdrawals.session_of_code(code[:-1]) is None


def test_who_leaves_before_consenting_leaves_nothing(store: Store) -> None:
    register(store)
    left = arrive(store, "PID-left", token="left")
    store.submissions.record([screen(left, 0, answers=[answer(left, "age", 17, part="screening")])], T0)
    agreed = arrive(store, "PID-agreed", token="agreed")
    store.submissions.record(
        [screen(agreed, 0, answers=[answer(agreed, "age", 30)], consent_version="v1")],
        T0,
    )
    here = arrive(store, "PID-here", at_ms=NOW, stale_before_ms=0)
    store.submissions.record([screen(here, 0, answers=[answer(here, "age", 40)])], NOW)
    with pytest.raises(StorageError, match="append-only"), store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM answers")

    store.sessions.release_left(Patience(NOW - DAY_MS))

    erased, kept, active = (mark for mark in store.sessions.marks())
    assert (erased.state, erased.is_erased, erased.started_at_ms % DAY_MS) == ("stale", True, 0)
    assert (kept.state, kept.is_erased, active.state) == ("stale", False, "active")
    assert {given.question for given in store.records.answers(left.id)} == set()
    assert [given.value for given in store.records.answers()] == [30, 40]
    assert store.sessions.by_token("left") is None
    assert store.sessions.by_token("agreed") is not None
    assert arrive(store, "PID-left", at_ms=NOW, stale_before_ms=0).ordinal == 4
    assert not store.withdrawals.due(identifiers_days=None, answers_days=0, at_ms=T0).sessions
    with pytest.raises(StorageError):
        store.exclusions.exclude(left.id, "me", "gone", NOW)
