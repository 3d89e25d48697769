from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, text
from storage_cases import MINUTE, T0, answer, arrive, judgment, places, screen, snapshot_of

from dialometer.errors import StorageError
from dialometer.model.quality import Finding
from dialometer.storage import ChatTurn, Store, Withdrawal
from dialometer.storage.erasing import DAY_MS, ERASED
from dialometer.storage.schema import metadata, people


def test_exclusion_is_logged_and_can_be_taken_back(store: Store) -> None:
    session = arrive(store)
    store.submissions.record([screen(session, 0, [judgment(session, "item0")], done_item="item0")], T0)
    store.exclusions.exclude(session.id, "ana", "answers at random", T0 + 1)
    store.exclusions.exclude(session.id, "ben", "me too", T0 + 2)
    assert store.sessions.get(session.id).is_excluded
    assert not any(places(store).values())
    assert len(list(store.records.judgments())) == 1

    store.exclusions.restore(session.id, "ana", "looked again", T0 + 3)
    store.exclusions.restore(session.id, "ana", "and again", T0 + 4)
    assert not store.sessions.get(session.id).is_excluded
    assert places(store) == {"item0": 1, "item1": 1, "item2": 1}
    log = [(one.is_excluded, one.made_by, one.reason, one.at_ms) for one in store.exclusions.log()]
    assert log == [(True, "ana", "answers at random", T0 + 1), (False, "ana", "looked again", T0 + 3)]


def test_restoring_a_finished_session_counts_only_what_was_done(store: Store) -> None:
    session = arrive(store)
    store.submissions.record([screen(session, 0, done_item="item0"), screen(session, 1, next_state="completed")], T0)
    store.exclusions.exclude(session.id, "ana", "", T0)
    store.exclusions.restore(session.id, "ana", "", T0)
    assert {item: n for item, n in places(store).items() if n} == {"item0": 1}


def test_restoring_a_screened_out_session_takes_no_place(store: Store) -> None:
    session = arrive(store)
    store.submissions.record([screen(session, 0, done_item="item0", next_state="screened_out")], T0)
    store.exclusions.exclude(session.id, "ana", "", T0)
    store.exclusions.restore(session.id, "ana", "", T0)
    assert not any(places(store).values())


def test_an_excluded_session_that_comes_back_takes_no_place(store: Store) -> None:
    session = arrive(store)
    store.exclusions.exclude(session.id, "ana", "", T0)
    arrive(store, stale_before_ms=T0 + MINUTE, at_ms=T0 + 2 * MINUTE)
    store.sessions.revive(session.id, T0)
    assert store.counts.item_counts()[0, "item0"]["released"] == 1


def test_findings_made_later_are_followed(store: Store) -> None:
    session = arrive(store)
    store.exclusions.add_findings(session.id, [Finding("speed", "flag", "quick")], T0)
    assert not store.sessions.get(session.id).is_excluded
    store.exclusions.add_findings(session.id, [Finding("twin", "exclude", "same as s2", {"twin": "s2"})], T0 + 5)
    store.exclusions.add_findings(session.id, [], T0 + 6)
    assert store.sessions.get(session.id).is_excluded
    assert [one.finding.rule for one in store.records.findings()] == ["speed", "twin"]
    assert [one.made_by for one in store.exclusions.log()] == ["rule:twin"]


@pytest.fixture
def full(store: Store) -> str:
    """A session with something in every table."""
    session = arrive(store, "PID-SECRET", params={"PROLIFIC_PID": "PID-SECRET"})
    finding = Finding("r", "exclude", "wrote SECRET")
    first = screen(session, 0, [judgment(session, "item0", "SECRET one")], [answer(session, "name", "SECRET")])
    change = judgment(session, "item0", "SECRET two", replaces=1)
    store.submissions.record([first], T0)
    store.submissions.record([screen(session, 1, [change], findings=[finding], done_item="item0")], T0)
    store.conversations.save_draft(session.id, "screen2", {"text": "SECRET"}, T0)
    store.conversations.add_turn(ChatTurn(session.id, "item1", 0, "user", "SECRET", T0))
    return session.id


def test_a_withdrawal_erases_everything_but_the_fact(store: Store, full: str) -> None:
    other = arrive(store)
    store.submissions.record([screen(other, 0, [judgment(other, "item3")])], T0)
    before = store.sessions.get(full)

    tombstone = store.withdrawals.withdraw(full, T0 + 9)
    assert tombstone == Withdrawal(full, T0 + 9, 2, 1, 2)
    assert store.withdrawals.withdraw(full, T0 + 99) == tombstone
    assert store.withdrawals.all() == [tombstone]

    left = store.sessions.get(full)
    assert (left.state, left.rater_id, left.ordinal) == ("withdrawn", "", before.ordinal)
    day = T0 - T0 % DAY_MS
    assert (left.started_at_ms, left.last_seen_at_ms, left.finished_at_ms) == (day, day, day), "only the day is left"
    assert store.sessions.person(full) is None
    for table in ERASED:
        with store.database.reading() as connection:
            found = connection.execute(text(f"SELECT count(*) FROM {table.name} WHERE session_id = '{full}'")).scalar()
        assert found == 0, table.name
    assert [one.session_id for one in store.records.judgments()] == [other.id]
    assert snapshot_of(store).cell_counts == {store.sessions.get(other.id).draw.cell: 1}
    assert store.submissions.record([screen(full, 2)], T0)[0].outcome == "ended"
    with pytest.raises(StorageError, match="was withdrawn"):
        store.exclusions.exclude(full, "ana", "", T0)
    with pytest.raises(StorageError, match="was withdrawn"):
        store.conversations.add_turn(ChatTurn(full, "item1", 1, "user", "still here", T0))
    with pytest.raises(StorageError, match="was withdrawn"):
        store.conversations.save_draft(full, "screen2", {}, T0)


def test_who_withdrew_is_forgotten_and_may_come_as_new(store: Store, full: str) -> None:
    store.withdrawals.withdraw(full, T0)
    again = arrive(store, "PID-SECRET")
    assert again.id != full
    assert again.ordinal == 2


def test_nothing_of_a_withdrawn_session_is_left_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        store.studies.register("trial", "f", "{}", T0)
        session = arrive(store, "PID-SECRET")
        store.submissions.record([screen(session, 0, [judgment(session, "item0", "a SECRET text")])], T0)
        assert any(b"SECRET" in file.read_bytes() for file in tmp_path.iterdir())
        store.withdrawals.withdraw(session.id, T0)
        for file in tmp_path.iterdir():
            assert b"SECRET" not in file.read_bytes(), file.name


def test_who_declines_leaves_nothing(store: Store) -> None:
    asked = arrive(store, "PID-SECRET", params={"PROLIFIC_PID": "PID-SECRET"})
    store.submissions.record([screen(asked, 0, answers=[answer(asked, "age", "SECRET")], keeps_visit=False)], T0)
    assert [one.value for one in store.records.answers()] == ["SECRET"]
    assert list(store.records.visits()) == []
    store.conversations.save_draft(asked.id, "screen1", {"text": "SECRET"}, T0)
    (receipt,) = store.submissions.record([screen(asked, 1, next_state="declined")], T0 + 9)
    assert (receipt.outcome, receipt.state) == ("stored", "declined")

    left = store.sessions.get(asked.id)
    day = T0 - T0 % DAY_MS
    assert (left.state, left.rater_id, left.started_at_ms, left.finished_at_ms) == ("declined", "", day, day)
    assert store.sessions.person(asked.id) is None
    with store.database.reading() as connection:
        for table in (*ERASED, people):
            assert connection.execute(select(table)).all() == [], table.name
    assert not store.withdrawals.due(identifiers_days=1, answers_days=1, at_ms=T0 + 99 * DAY_MS)
    with pytest.raises(StorageError, match="was declined"):
        store.conversations.save_draft(asked.id, "screen1", {}, T0)


def test_nothing_else_can_be_deleted(store: Store) -> None:
    """Not by an end that is no end, and not from a session whose rater has agreed."""
    agreed, asked = arrive(store), arrive(store)
    store.submissions.record([screen(agreed, 0, consent_version="v1")], T0)
    store.submissions.record([screen(agreed, 1, [judgment(agreed, "item0")], [answer(agreed, "age", 7)])], T0)
    store.submissions.record([screen(asked, 0, answers=[answer(asked, "age", 8)])], T0)
    store.submissions.record([screen(agreed, 2, next_state="declined")], T0)
    assert len(list(store.records.judgments())) == 1
    for session in (agreed, asked):
        statement = text(f"DELETE FROM answers WHERE session_id = '{session.id}'")
        with pytest.raises(StorageError, match="only a rater who withdrew or declined"), store.database.writing() as c:
            c.execute(statement)
    assert [one.value for one in store.records.answers()] == [7, 8]


def test_nothing_of_who_declined_is_left_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        store.studies.register("trial", "f", "{}", T0)
        session = arrive(store, "PID-SECRET")
        store.submissions.record([screen(session, 0, answers=[answer(session, "age", "a SECRET text")])], T0)
        assert any(b"SECRET" in file.read_bytes() for file in tmp_path.iterdir())
        store.submissions.record([screen(session, 1, next_state="declined")], T0)
        for file in tmp_path.iterdir():
            assert b"SECRET" not in file.read_bytes(), file.name


def test_every_table_that_names_a_session_is_thought_of() -> None:
    naming = {table.name for table in metadata.tables.values() if "session_id" in table.c}
    assert {table.name for table in ERASED} == naming - {"withdrawals", "withdrawal_codes"}
