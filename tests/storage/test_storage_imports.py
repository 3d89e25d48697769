from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from storage_cases import T0, answer, arrive, judgment, snapshot_of

from dialometer.errors import StorageError
from dialometer.storage import ImportedSession, Store


def sessions(n: int, prefix: str = "i") -> Iterator[ImportedSession]:
    for number in range(n):
        session_id = f"{prefix}{number}"
        yield ImportedSession(
            id=session_id,
            rater=f"WORKER{number % 300}",
            condition={"anchor": "both"},
            cell=1,
            judgments=[judgment(session_id, "item0", 3), judgment(session_id, "item1", 5)],
            answers=[answer(session_id, "age", 40)],
            started_at_ms=T0,
            finished_at_ms=T0 + 9,
        )


def take_in(store: Store, rows: Any, **changes: Any) -> Any:
    arguments = {"file_name": "old.csv", "sha256": "abc", "format": "csv", "study_version": 1, "at_ms": T0}
    return store.imports.add(rows, **{**arguments, **changes})


def test_a_file_comes_in_whole(store: Store) -> None:
    first = arrive(store)
    entry = take_in(store, sessions(450))
    assert (entry.n_rows, entry.file_name, entry.format) == (450 * 3, "old.csv", "csv")
    assert store.imports.all() == [entry]
    imported = store.sessions.all(source="imported")
    assert [session.ordinal for session in imported] == list(range(2, 452))
    assert {session.state for session in imported} == {"completed"}
    assert imported[0].condition == {"anchor": "both"}
    assert imported[0].finished_at_ms == T0 + 9
    assert sum(1 for _ in store.records.judgments()) == 900
    assert sum(1 for _ in store.records.answers()) == 450
    # 300 raters came twice or once, each under one pseudonym; their names stand only with the person.
    assert len({session.rater_id for session in imported}) == 300
    person = store.sessions.person("i7")
    assert person is not None
    assert (person.platform, person.external_id) == ("import", "WORKER7")
    assert not any("WORKER" in str(session) for session in imported)
    assert snapshot_of(store).cell_counts == {first.draw.cell: 1}
    assert snapshot_of(store).ordinal == 452


def test_the_same_file_is_refused_twice(store: Store) -> None:
    take_in(store, sessions(2))
    with pytest.raises(StorageError, match=r"copy\.csv: this file was imported before, as 'old\.csv'"):
        take_in(store, sessions(2, "j"), file_name="copy.csv")
    assert len(store.sessions.all()) == 2


def test_the_same_raters_in_another_file_are_the_same_people(store: Store) -> None:
    take_in(store, sessions(1))
    take_in(store, sessions(1, "j"), sha256="def")
    take_in(store, sessions(1, "k"), sha256="ghi", platform="elsewhere")
    raters = [session.rater_id for session in store.sessions.all()]
    assert raters[0] == raters[1] != raters[2]
    store.withdrawals.withdraw("i0", T0)
    assert [session.state for session in store.sessions.all()] == ["withdrawn", "withdrawn", "completed"]
    assert store.sessions.person("j0") is None, "who withdraws is gone from all files"
    assert store.sessions.person("k0") is not None


def broken() -> Iterator[ImportedSession]:
    yield from sessions(250)
    raise ValueError("line 251 is no good")


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (broken, ValueError),
        ([*sessions(3), *sessions(1)], StorageError),
        ([ImportedSession(id="x", rater="r", judgments=[judgment("y", "item0")])], StorageError),
        ([ImportedSession(id="x", rater="r", judgments=[judgment("x", "item0", replaces=1)])], StorageError),
        ([ImportedSession(id="x", rater="r", judgments=[judgment("x", "item0")] * 2)], StorageError),
    ],
)
def test_a_file_with_a_fault_leaves_nothing(store: Store, rows: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        take_in(store, rows() if callable(rows) else rows)
    assert store.imports.all() == []
    assert store.sessions.all() == []
    assert list(store.records.judgments()) == []
    take_in(store, sessions(1))
