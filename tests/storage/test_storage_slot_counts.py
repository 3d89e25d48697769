"""Taken slots are counted by the database as they change: always what counting the slots themselves would give."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, select, update
from storage_cases import T0, arrive, screen

from dialometer.storage.counting import slot_counts
from dialometer.storage.schema import slot_changes, slots
from dialometer.storage.schema import slot_counts as kept
from dialometer.storage.store import Store


def n_changes(store: Store) -> int:
    with store.database.reading() as connection:
        return len(connection.scalars(select(slot_changes.c.id)).all())


def test_every_way_a_slot_changes_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_counts, "MOST_CHANGES", 3)
    people = [arrive(store) for _ in range(5)]
    assert store.slot_counts.wrong() == {}
    assert n_changes(store) < 5 * 4  # added up on the way
    one, two, three, four, _ = people
    store.submissions.record([screen(one, 0, [], next_state="completed")], T0)
    store.submissions.record([screen(two, 0, [], next_state="screened_out")], T0)
    store.exclusions.exclude(three.id, "tester", "too quick", T0)
    store.exclusions.restore(three.id, "tester", "a mistake", T0)
    store.exclusions.exclude(three.id, "tester", "too quick after all", T0)
    store.withdrawals.withdraw(four.id, T0)
    assert store.slot_counts.wrong() == {}
    snapshot = store.sessions.snapshot(one.source)
    with store.database.reading() as connection:
        taken = connection.scalars(select(slots.c.item_id).where(slots.c.is_released.is_(False))).all()
    assert snapshot.item_counts == {item: taken.count(item) for item in set(taken)}
    assert sum(snapshot.cell_counts.values()) == 2  # the first, who has finished, and the last, who is under way


def test_what_is_rolled_back_is_not_counted(store: Store) -> None:
    session = arrive(store)
    before = store.sessions.snapshot(session.source)
    with pytest.raises(ZeroDivisionError), store.database.writing() as connection:
        connection.execute(update(slots).values(is_released=True))
        raise ZeroDivisionError
    assert store.sessions.snapshot(session.source) == before
    assert store.slot_counts.wrong() == {}


def test_counts_that_were_damaged_are_found_and_rebuilt(store: Store) -> None:
    session = arrive(store)
    with store.database.writing() as connection:
        connection.execute(delete(slot_changes))
        connection.execute(delete(kept))
    wrong = store.slot_counts.wrong()
    assert (session.source, session.draw.cell, slot_counts.OF_SESSION) in wrong
    assert set(wrong.values()) == {(0, 1)}
    assert any("slots" in problem for problem in store.check())
    assert store.slot_counts.repair()
    assert not store.slot_counts.repair()
    assert store.slot_counts.wrong() == {}
    assert store.check() == []
