from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from storage_cases import T0, answer, arrive, judgment, screen

from dialometer.errors import StorageError
from dialometer.model.session import Session, SessionRecord
from dialometer.storage import Store
from dialometer.storage.database import CACHE_KIB, SCAN_CACHE_KIB
from dialometer.storage.records import Columns


@pytest.fixture
def two(store: Store) -> list[Session]:
    """Two sessions; the first corrects its first judgment."""
    sessions = [arrive(store), arrive(store, source="simulated")]
    for session in sessions:
        judged = [
            judgment(session, "item0", 1, turn=2),
            judgment(session, "item1", ["b", "a"], is_practice=True, is_late=True),
        ]
        store.submissions.record([screen(session, 0, judged, [answer(session, "age", 20)])], T0)
    store.submissions.record(
        [screen(sessions[0], 1, [judgment(sessions[0], "item0", 9, turn=2, replaces=1, corrected_by="rater")])], T0
    )
    store.exclusions.exclude(sessions[1].id, "ana", "", T0)
    return sessions


def test_reading_everything_keeps_few_pages(store: Store, two: list[Session]) -> None:
    """A connection goes back to its usual cache, also where the stream is left early."""
    if not store.database.is_sqlite:
        pytest.skip("PostgreSQL has a cache of its own")
    batches = store.records.judgment_batches(n_rows=1)
    next(batches)
    batches.close()
    with store.database.reading_all() as connection:
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar() == -SCAN_CACHE_KIB
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar() == -CACHE_KIB


def test_streams_over_all_sessions_and_over_one(store: Store, two: list[Session]) -> None:
    assert [(one.session_id, one.value) for one in store.records.judgments()] == [
        (two[0].id, ["b", "a"]),
        (two[1].id, 1),
        (two[1].id, ["b", "a"]),
        (two[0].id, 9),
    ]
    assert [one.value for one in store.records.judgments(two[0].id)] == [["b", "a"], 9]
    assert len(list(store.records.judgments(include_corrected=True))) == 5
    assert len(list(store.records.visits())) == 3
    assert [one.screen for one in store.records.visits(two[0].id)] == ["screen0", "screen1"]
    assert [one.duration_s for one in store.records.visits(two[1].id)] == [7.0]
    assert [one.session_id for one in store.records.answers()] == [two[0].id, two[1].id]
    assert list(store.records.answers("nobody")) == []


def test_an_empty_session_has_an_empty_record(store: Store) -> None:
    assert store.records.of_session(arrive(store).id) == SessionRecord([], [], [])


def test_a_stream_may_be_left_early_and_written_beside(store: Store, two: list[Session]) -> None:
    stream = store.records.judgments()
    next(stream)
    store.submissions.record([screen(two[0], 2, [judgment(two[0], "item5")])], T0)
    assert len(list(stream)) == 3  # as it stood when the reading began
    stream = store.records.judgments()
    next(stream)
    del stream
    assert len(list(store.records.judgments())) == 5


def in_one(batches: Iterable[Columns]) -> dict[str, list[Any]]:
    whole: dict[str, list[Any]] = defaultdict(list)
    for batch in batches:
        for name, column in batch.items():
            whole[name].extend(column)
    return whole


@pytest.mark.parametrize("include_corrected", [False, True])
def test_columns_hold_what_the_stream_holds(store: Store, two: list[Session], include_corrected: bool) -> None:
    columns = in_one(store.records.judgment_batches(include_corrected=include_corrected, n_rows=3))
    judged = list(store.records.judgments(include_corrected=include_corrected))
    assert {len(values) for values in columns.values()} == {len(judged)}
    for name in ("id", "session_id", "item_id", "criterion", "system", "turn", "scale", "block", "position", "side"):
        assert columns[name] == [getattr(one, name) for one in judged], name
    for name in ("shown_at_ms", "answered_at_ms", "is_late", "is_practice", "replaces", "corrected_by", "reason"):
        assert columns[name] == [getattr(one, name) for one in judged], name
    assert [json.loads(text) for text in columns["value"]] == [one.value for one in judged]
    by_id = {session.id: store.sessions.get(session.id) for session in two}
    owners = [by_id[one.session_id] for one in judged]
    for name in ("rater_id", "ordinal", "source", "state", "is_excluded", "study_version"):
        assert columns[name] == [getattr(owner, name) for owner in owners], name
    assert columns["cell"] == [owner.draw.cell for owner in owners]
    assert [json.loads(text) for text in columns["condition"]] == [owner.condition for owner in owners]
    assert {type(value) for name in ("is_late", "is_practice", "is_excluded") for value in columns[name]} == {bool}


def test_columns_come_in_parts_of_the_size_asked_for(store: Store) -> None:
    session = arrive(store)
    store.submissions.record([screen(session, step, [judgment(session, f"i{step}", step)]) for step in range(1300)], T0)
    parts = list(store.records.judgment_batches(n_rows=600))
    assert [len(part["id"]) for part in parts] == [600, 600, 100]
    assert [value for part in parts for value in part["value"]] == [str(step) for step in range(1300)]


def test_no_judgments_are_empty_columns(store: Store) -> None:
    assert list(store.records.judgment_batches()) == []


def test_several_sessions_are_read_at_once_and_an_unknown_one_is_named(store: Store, two: list[Session]) -> None:
    ids = [session.id for session in two]
    assert store.sessions.several(ids) == {session: store.sessions.get(session) for session in ids}
    assert store.sessions.several([]) == {}
    with pytest.raises(StorageError, match="there is no session with this id"):
        store.sessions.several([*ids, "nobody"])
