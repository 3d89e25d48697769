"""Counts of judgments are the same however they came about: read at once, followed as they grow, corrected, excluded."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
from storage_cases import T0, arrive, judgment, screen

from dialometer.storage.counting import counts, tally
from dialometer.storage.counting.counts import JudgmentCounts, does_count
from dialometer.storage.store import Store

PEOPLE = ("person",)


def counted_slowly(store: Store) -> tuple[dict[str, JudgmentCounts], dict[str, int], Counter[tuple[object, ...]]]:
    """The same numbers, judgment by judgment."""
    sessions = {session.id: session for session in store.sessions.all()}
    by_session: dict[str, JudgmentCounts] = {}
    raters: dict[str, set[str]] = {}
    values: Counter[tuple[object, ...]] = Counter()
    for one in store.records.judgments():
        session = sessions[one.session_id]
        more = JudgmentCounts(0, 0, 1) if one.is_practice else JudgmentCounts(1, int(does_count(session)))
        by_session[session.id] = by_session.get(session.id, JudgmentCounts()) + more
        if not one.is_practice and does_count(session) and session.source in PEOPLE:
            raters.setdefault(one.item_id, set()).add(session.rater_id)
            values[(one.item_id, one.criterion, one.system, json.dumps(one.value))] += 1
    return by_session, {item: len(names) for item, names in raters.items()}, values


def agrees(store: Store) -> bool:
    by_session, raters, values = counted_slowly(store)
    assert store.counts.judgments_by_session() == by_session
    assert {key: store.counts.judgments_by_session(key)[key] for key in by_session} == by_session
    assert store.counts.raters_by_item(PEOPLE) == raters
    found = {(*row[:3], json.dumps(row[4])): row[5] for row in store.counts.value_counts(PEOPLE)}
    assert found == values
    return bool(values)


def test_counts_follow_a_study_as_it_grows(store: Store) -> None:
    one, two, three = (arrive(store) for _ in range(3))
    machine = arrive(store, source="simulated")
    assert store.counts.value_counts(PEOPLE) == []
    for session in (one, two, three, machine):
        first = [judgment(session, "item0", 2), judgment(session, "item0", 5, criterion="sense", is_practice=True)]
        store.submissions.record([screen(session, 0, first)], T0)
    assert agrees(store)
    store.submissions.record([screen(one, 1, [judgment(one, "item1", "b"), judgment(one, "item2", 2.5)])], T0)
    assert agrees(store)
    wrong = next(store.records.judgments(two.id))
    store.submissions.correct(replace(wrong, id=None, value=7, replaces=wrong.id, corrected_by="tester", reason="slip"))
    assert agrees(store)
    store.exclusions.exclude(three.id, "tester", "too quick", T0)
    assert agrees(store)
    store.withdrawals.withdraw(one.id, T0)
    assert agrees(store)


def test_rows_that_may_lack_neighbours_are_read_again(store: Store, monkeypatch) -> None:
    """On PostgreSQL a row may appear behind later ones: nothing counts as settled before a minute has passed."""
    session = arrive(store)
    for step in range(3):
        store.submissions.record([screen(session, step, [judgment(session, f"item{step}")])], T0)
        assert agrees(store)
    monkeypatch.setattr(tally, "SETTLED_AFTER_S", 0.0)
    for step in range(3, 6):
        store.submissions.record([screen(session, step, [judgment(session, f"item{step}")])], T0)
        assert agrees(store)


def test_judgments_are_read_ahead_in_bites(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(counts, "N_PER_BITE", 1)
    monkeypatch.setattr(counts, "PAUSE_S", 0.0)
    session = arrive(store)
    for step in range(12):
        store.submissions.record([screen(session, step, [judgment(session, f"item{step}")])], T0)
    store.counts.read_ahead(lambda: True)
    assert len(store.counts._tally.ids) == 0, "a server that stops reads nothing more"
    store.counts.read_ahead()
    assert len(store.counts._tally.ids) == 12
    assert agrees(store)


def test_a_row_that_appears_behind_later_ones_is_counted(store: Store) -> None:
    session = arrive(store)
    for step in range(4):
        store.submissions.record([screen(session, step, [judgment(session, f"item{step}")])], T0)
    assert agrees(store)
    if store.database.is_sqlite:
        return  # rows become visible in the order of their numbers
    known = store.counts._tally
    for name in ("ids", "session", "key", "value", "is_practice", "is_current"):
        setattr(known, name, np.delete(getattr(known, name), 1))
    assert agrees(store)
