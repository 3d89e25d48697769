from __future__ import annotations

import pytest
from storage_cases import T0, snapshot_of

from dialometer.errors import StorageError
from dialometer.storage import Controls, Decision, Store


def test_an_untouched_study_is_running(store: Store) -> None:
    assert store.control.current() == Controls()
    assert store.control.log() == []


def test_the_newest_decision_is_in_force_and_all_are_logged(store: Store) -> None:
    store.control.set_state("paused", by="ana", reason="server moves", at_ms=T0)
    store.control.set_quota(80, by="ana", reason="budget", at_ms=T0 + 1)
    store.control.set_cell_quota(1, 20, by="ben", reason="", at_ms=T0 + 2)
    store.control.set_cell_quota(2, 5, by="ben", reason="", at_ms=T0 + 3)
    store.control.set_cell_quota(2, None, by="ben", reason="no limit", at_ms=T0 + 4)
    store.control.set_cell_open(0, False, by="ben", reason="full", at_ms=T0 + 5)
    store.control.set_cell_open(3, False, by="ben", reason="mistake", at_ms=T0 + 6)
    store.control.set_cell_open(3, True, by="ben", reason="", at_ms=T0 + 7)
    assert store.control.current() == Controls("paused", frozenset({0}), {1: 20}, 80)
    snapshot = snapshot_of(store)
    assert not snapshot.is_open
    assert (snapshot.closed_cells, snapshot.cell_quotas, snapshot.quota) == (frozenset({0}), {1: 20}, 80)

    store.control.set_state("running", by="ana", reason="moved", at_ms=T0 + 8)
    store.control.set_quota(None, by="ana", reason="", at_ms=T0 + 9)
    assert snapshot_of(store).is_open
    assert store.control.current().quota is None
    log = store.control.log()
    assert len(log) == 10
    assert log[0] == Decision("study", None, "paused", "ana", "server moves", T0)
    assert log[4] == Decision("cell_quota", 2, None, "ben", "no limit", T0 + 4)


def test_closing_keeps_people_out(store: Store) -> None:
    store.control.set_state("closed", by="ana", reason="enough", at_ms=T0)
    assert not snapshot_of(store).is_open


def test_decisions_that_make_no_sense_are_refused(store: Store) -> None:
    with pytest.raises(StorageError, match="one of running, paused, closed"):
        store.control.set_state("asleep", by="ana", reason="", at_ms=T0)  # type: ignore[arg-type]
    with pytest.raises(StorageError, match="quota of -1"):
        store.control.set_cell_quota(0, -1, by="ana", reason="", at_ms=T0)
    assert store.control.log() == []
