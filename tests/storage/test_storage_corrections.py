from __future__ import annotations

import pytest
from sqlalchemy import text
from storage_cases import T0, answer, arrive, judgment, screen

from dialometer.errors import StorageError
from dialometer.model.session import Session
from dialometer.storage import Store, SubmissionRefused


@pytest.fixture
def session(store: Store) -> Session:
    """A session with judgment 1 (item0) and answer 1 (age)."""
    opened = arrive(store)
    store.submissions.record([screen(opened, 0, [judgment(opened, "item0", 2)], [answer(opened, "age", 30)])], T0)
    return opened


def test_a_correction_replaces_without_erasing(store: Store, session: Session) -> None:
    changed = judgment(session, "item0", 6, replaces=1, corrected_by="rater", reason="misread")
    older = answer(session, "age", 31, replaces=1, corrected_by="rater")
    store.submissions.record([screen(session, 1, [changed], [older])], T0)
    store.submissions.record(
        [screen(session, 2, [judgment(session, "item0", 7, replaces=2, corrected_by="rater")])], T0
    )

    assert [one.value for one in store.records.of_session(session.id).judgments] == [7]
    assert [one.value for one in store.records.of_session(session.id).answers] == [31]
    history = list(store.records.judgments(session.id, include_corrected=True))
    assert [(one.id, one.value, one.replaces, one.reason) for one in history] == [
        (1, 2, None, ""),
        (2, 6, 1, "misread"),
        (3, 7, 2, ""),
    ]
    assert [one.value for one in store.records.answers(include_corrected=True)] == [30, 31]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replaces": 99}, "99, which is not there"),
        ({"replaces": 1, "item_id": "item1"}, "about something else"),
        ({"replaces": 1, "turn": 0}, "about something else"),
        ({"replaces": 1, "system": "b"}, "about something else"),
        ({"replaces": 1, "is_practice": True}, "about something else"),
    ],
)
def test_a_correction_must_fit_what_it_replaces(
    store: Store, session: Session, changes: dict[str, object], message: str
) -> None:
    wrong = judgment(session, **{"item": "item0", **changes})
    with pytest.raises(SubmissionRefused, match=message):
        store.submissions.record([screen(session, 1, [wrong])], T0)
    assert store.sessions.get(session.id).step == 1


def test_a_correction_stays_within_its_session(store: Store, session: Session) -> None:
    other = arrive(store)
    with pytest.raises(SubmissionRefused, match="about something else"):
        store.submissions.record([screen(other, 0, [judgment(other, "item0", replaces=1)])], T0)


def test_a_judgment_is_replaced_once(store: Store, session: Session) -> None:
    change = judgment(session, "item0", 5, replaces=1)
    with pytest.raises(SubmissionRefused, match="1 was corrected already"):
        store.submissions.record([screen(session, 1, [change]), screen(session, 2, [change])], T0)
    store.submissions.record([screen(session, 1, [change])], T0)
    with pytest.raises(SubmissionRefused, match="1 was corrected already"):
        store.submissions.record([screen(session, 2, [change])], T0)


def test_the_experimenter_can_correct_after_the_end(store: Store, session: Session) -> None:
    store.submissions.record([screen(session, 1, next_state="completed")], T0)
    number = store.submissions.correct(
        judgment(session, "item0", 1, replaces=1, corrected_by="ana", reason="typing error")
    )
    assert number == 2
    assert store.submissions.correct(answer(session, "age", 29, replaces=1, corrected_by="ana")) == 2
    assert [one.value for one in store.records.judgments()] == [1]
    with pytest.raises(StorageError, match="names what it replaces and who"):
        store.submissions.correct(judgment(session, "item0", 1, replaces=2))
    store.withdrawals.withdraw(session.id, T0)
    with pytest.raises(StorageError, match="was withdrawn"):
        store.submissions.correct(judgment(session, "item0", 1, replaces=2, corrected_by="ana"))


@pytest.mark.parametrize("table", ["judgments", "answers"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {} SET value = '9'",
        "UPDATE {} SET reason = 'x' WHERE id = 1",
        "DELETE FROM {}",
        "DELETE FROM {} WHERE id = 1",
    ],
)
def test_the_database_itself_refuses_to_change_what_was_answered(
    store: Store, session: Session, table: str, statement: str
) -> None:
    with pytest.raises(StorageError, match="append-only"), store.database.writing() as connection:
        connection.execute(text(statement.format(table)))
    assert [one.value for one in store.records.judgments()] == [2]
    assert [one.value for one in store.records.answers()] == [30]


@pytest.mark.postgres
def test_postgresql_refuses_to_empty_the_tables(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        for table in ("judgments", "answers"):
            with pytest.raises(StorageError, match="append-only"), store.database.writing() as connection:
                connection.execute(text(f"TRUNCATE {table} CASCADE"))


def test_numbers_are_not_given_twice(store: Store, session: Session) -> None:
    store.withdrawals.withdraw(session.id, T0)
    other = arrive(store)
    store.submissions.record([screen(other, 0, [judgment(other, "item0")])], T0)
    assert [one.id for one in store.records.judgments()] == [2]
