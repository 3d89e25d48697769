from __future__ import annotations

from dataclasses import replace

import pytest
from storage_cases import CONDITIONS, ITEMS, MINUTE, T0, arrive, judgment, places, register, screen, snapshot_of

from dialometer.errors import AssignmentError, StorageError
from dialometer.model.session import Draw, Session, Snapshot
from dialometer.storage import Store
from dialometer.storage.sessions import Patience, SessionElsewhere, TooManyArrivals, load_session


def test_an_arrival_is_drawn_counted_and_given_back_whole(store: Store) -> None:
    session = arrive(store, "P1", platform="prolific", params={"PROLIFIC_PID": "P1", "n": 3})
    assert session.ordinal == 1
    assert session.condition == CONDITIONS[0]
    assert session.draw == Draw(1, 0, ("main",), {"main": ITEMS[:3]})
    assert (session.state, session.step, session.started_at_ms, session.last_seen_at_ms) == ("active", 0, T0, T0)
    assert store.sessions.get(session.id) == session
    assert places(store) == dict.fromkeys(ITEMS[:3], 1)
    person = store.sessions.person(session.id)
    assert person is not None
    assert (person.platform, person.external_id, person.params) == ("prolific", "P1", {"PROLIFIC_PID": "P1", "n": 3})
    assert person.rater_id == session.rater_id
    assert "P1" not in session.rater_id


def test_the_snapshot_shows_all_that_is_taken(store: Store) -> None:
    for _ in range(3):
        arrive(store)
    snapshot = snapshot_of(store)
    assert snapshot.ordinal == 4
    assert snapshot.cell_counts == {0: 1, 1: 1, 2: 1}
    assert snapshot.item_counts == {**dict.fromkeys(ITEMS[:3], 2), **dict.fromkeys(ITEMS[3:], 1)}
    assert snapshot.cell_item_counts[1, "item3"] == 1
    assert (0, "item3") not in snapshot.cell_item_counts
    assert snapshot.is_open
    assert snapshot.quota is None


def test_places_of_simulated_raters_are_not_those_of_people(store: Store) -> None:
    arrive(store, source="simulated")
    assert snapshot_of(store).cell_counts == {}
    assert snapshot_of(store).item_counts == {}
    assert snapshot_of(store, source="simulated").cell_counts == {0: 1}
    assert arrive(store).ordinal == 2


def test_a_person_who_comes_back_gets_the_same_session_and_a_new_token(store: Store) -> None:
    first = arrive(store, "P1", token="old")
    again = arrive(store, "P1", token="new", at_ms=T0 + 5)
    assert again == replace(first, last_seen_at_ms=T0 + 5)
    assert len(store.sessions.all()) == 1
    assert store.sessions.by_token("old") is None
    opened = store.sessions.by_token("new")
    assert opened is not None
    assert opened.id == first.id
    assert arrive(store, "P1", platform="other").id != first.id


@pytest.mark.parametrize("external_id", [None, ""])
def test_without_an_identifier_everybody_is_new(store: Store, external_id: str | None) -> None:
    assert arrive(store, external_id).id != arrive(store, external_id).id


def test_tokens_are_stored_only_as_a_hash(store: Store) -> None:
    arrive(store, token="open sesame")
    with store.database.reading() as connection:
        hashes = connection.exec_driver_sql("SELECT token_hash FROM sessions").scalars().all()
    assert len(hashes) == 1
    assert "sesame" not in hashes[0]
    assert len(hashes[0]) == 64


def test_a_refused_arrival_leaves_nothing(store: Store) -> None:
    def full(snapshot: Snapshot) -> Draw:
        raise AssignmentError("the study is full")

    left = arrive(store, at_ms=T0 - 500 * MINUTE)
    with pytest.raises(AssignmentError):
        arrive(store, "P9", choose=full)
    assert store.sessions.get(left.id).state == "active"
    assert [session.id for session in store.sessions.all()] == [left.id]
    assert arrive(store, "P9").ordinal == 2


def test_a_draw_for_another_ordinal_or_an_unknown_study_is_refused(store: Store) -> None:
    def wrong(snapshot: Snapshot) -> Draw:
        return Draw(snapshot.ordinal + 5, 0, (), {})

    with pytest.raises(StorageError, match="ordinal 6, this session is 1"):
        arrive(store, choose=wrong)
    with pytest.raises(StorageError, match="refused a row"):
        arrive(store, study_version=77)
    assert store.sessions.all() == []


def test_a_session_that_was_left_gives_back_what_it_has_not_used(store: Store) -> None:
    left = arrive(store)
    store.submissions.record([screen(left, 0, [judgment(left, "item0")], done_item="item0")], T0)
    seen = arrive(store, at_ms=T0)
    store.sessions.touch(seen.id, T0 + 60 * MINUTE)
    store.sessions.touch(seen.id, T0 + 30 * MINUTE)  # a late message does not turn the clock back

    snapshot = snapshot_of(store, stale_before_ms=T0 + 60 * MINUTE)
    assert snapshot.item_counts == {"item0": 1, **dict.fromkeys(ITEMS[3:], 1)}
    assert snapshot.cell_counts == {1: 1}
    assert store.sessions.get(left.id).state == "active"  # that rater went away again: nothing was written

    arrive(store, stale_before_ms=T0 + 60 * MINUTE)
    assert store.sessions.get(left.id).state == "stale"
    assert store.sessions.get(seen.id).state == "active"
    receipt = store.submissions.record([screen(left, 1, [judgment(left, "item1")])], T0)[0]
    assert (receipt.outcome, receipt.state) == ("ended", "stale")


def test_the_clock_of_simulated_raters_takes_nothing_from_people(store: Store) -> None:
    person, earlier = arrive(store), arrive(store, source="simulated")
    far = T0 + 1_000_000 * MINUTE
    arrive(store, source="simulated", at_ms=far, stale_before_ms=far - 120 * MINUTE)
    assert store.sessions.get(earlier.id).state == "stale", "programs have their own clock"
    assert store.sessions.get(person.id).state == "active"
    assert snapshot_of(store).cell_counts == {0: 1}
    assert sum(snapshot_of(store).item_counts.values()) == 3


def test_slots_wait_only_briefly_for_the_first_answer(store: Store) -> None:
    silent, answering = arrive(store, "P1"), arrive(store, "P2")
    for session, steps in ((silent, 1), (answering, 2)):
        for step in range(steps):
            store.submissions.record([screen(session, step)], T0)
    patience = Patience(stale_before_ms=T0 - 120 * MINUTE, idle_before_ms=T0 + 10 * MINUTE, n_opening=1)
    arrive(store, patience=patience, at_ms=T0 + 20 * MINUTE)
    assert store.sessions.get(silent.id).state == "stale"
    assert store.sessions.get(answering.id).state == "active"
    assert store.sessions.revive(silent.id, T0 + 21 * MINUTE).state == "active", "who comes back goes on"


def test_a_name_alone_takes_over_no_session(store: Store) -> None:
    patience = Patience(stale_before_ms=T0 - 120 * MINUTE, idle_before_ms=T0 - 10 * MINUTE, n_opening=1)
    alice = arrive(store, "alice", token="hers", patience=patience)
    assert store.sessions.has_session("link", "alice", patience)
    with pytest.raises(SessionElsewhere):
        arrive(store, "alice", token="theirs", patience=patience, is_proven=False)
    assert store.sessions.by_token("hers") is not None
    assert store.sessions.by_token("theirs") is None
    # Left without an answer, the session holds nothing, and its rater may begin in another browser.
    later = replace(patience, idle_before_ms=T0 + 1)
    assert arrive(store, "alice", token="new", patience=later, is_proven=False).id == alice.id
    for step in range(2):
        store.submissions.record([screen(alice, step)], T0)
    with pytest.raises(SessionElsewhere):
        arrive(store, "alice", patience=later, is_proven=False)
    assert arrive(store, "alice", token="shown", patience=later).id == alice.id


def test_only_so_many_raters_arrive_in_a_minute(store: Store) -> None:
    for n in range(3):
        arrive(store, at_ms=T0 + n, per_minute=3)
        arrive(store, at_ms=T0 + n, source="simulated")
    with pytest.raises(TooManyArrivals) as refused:
        arrive(store, at_ms=T0 + 20_000, per_minute=3)
    assert refused.value.retry_after_s == 40
    assert arrive(store, at_ms=T0 + 60_000, per_minute=3)


def test_a_stale_session_can_always_go_on(store: Store) -> None:
    left = arrive(store)
    store.submissions.record([screen(left, 0, [judgment(left, "item0")], done_item="item0")], T0)
    arrive(store, stale_before_ms=T0 + 1)
    assert "item1" not in places(store) or store.counts.item_counts()[0, "item1"]["released"] == 1
    revived = store.sessions.revive(left.id, T0 + 5 * MINUTE)
    assert (revived.state, revived.step, revived.last_seen_at_ms) == ("active", 1, T0 + 5 * MINUTE)
    assert store.sessions.revive(left.id, T0 + 6 * MINUTE).last_seen_at_ms == T0 + 5 * MINUTE
    assert store.counts.item_counts()[0, "item0"] == {"reserved": 0, "done": 1, "released": 0}
    assert store.counts.item_counts()[0, "item1"]["released"] == 0
    receipt = store.submissions.record([screen(left, 1, [judgment(left, "item1")], next_state="completed")], T0)[0]
    assert receipt.outcome == "stored"
    with pytest.raises(StorageError, match="is completed"):
        store.sessions.revive(left.id, T0)


def test_a_session_can_get_more_items(store: Store) -> None:
    def more(session: Session, snapshot: Snapshot) -> Draw:
        assert snapshot.ordinal == session.ordinal
        assert snapshot.seen_items == set(ITEMS[:3])
        assert snapshot.item_counts == dict.fromkeys(ITEMS[:3], 1)
        return replace(session.draw, items={"main": (*session.draw.items["main"], "item5", "item0")})

    session = arrive(store)
    extended = store.sessions.extend(session.id, more, T0 + 3)
    assert extended.draw.items == {"main": (*ITEMS[:3], "item5", "item0")}
    assert extended.last_seen_at_ms == T0 + 3
    assert places(store) == {**dict.fromkeys(ITEMS[:3], 1), "item5": 1}


def test_an_excluded_rater_who_goes_on_takes_no_place(store: Store) -> None:
    session = arrive(store, "P1")
    store.exclusions.exclude(session.id, "rule:gold", "failed", T0 + 1)
    store.sessions.extend(session.id, lambda one, _seen: replace(one.draw, items={"main": ITEMS}), T0 + 2)
    assert {place["reserved"] for place in store.counts.item_counts().values()} == {0}
    store.exclusions.restore(session.id, "ada", "a mistake", T0 + 3)
    assert {place["reserved"] for place in store.counts.item_counts().values()} == {1}


def test_extending_never_takes_items_away_and_needs_an_active_session(store: Store) -> None:
    session = arrive(store)
    for items in ({"main": ("item5",)}, {}, {"main": ("item1", "item0", "item2")}):
        with pytest.raises(StorageError, match="must begin with the items"):
            store.sessions.extend(session.id, lambda one, _seen, items=items: replace(one.draw, items=items), T0)
    store.submissions.record([screen(session, 0, next_state="completed")], T0)
    with pytest.raises(StorageError, match="is completed"):
        store.sessions.extend(session.id, lambda one, _seen: one.draw, T0)


def test_sessions_are_listed_and_counted(store: Store) -> None:
    made = [arrive(store) for _ in range(5)]
    arrive(store, source="model")
    store.submissions.record(
        [screen(made[0], 0, next_state="completed"), screen(made[1], 0, next_state="declined")], T0
    )
    store.exclusions.exclude(made[2].id, "me", "too fast", T0)
    assert [session.ordinal for session in store.sessions.all()] == [1, 2, 3, 4, 5, 6]
    assert [session.ordinal for session in store.sessions.all(state="active", source="person")] == [3, 4, 5]
    assert [session.ordinal for session in store.sessions.all(is_excluded=True)] == [3]
    assert store.counts.session_counts(source="person") == {
        (0, "completed"): 1,
        (0, "active"): 1,
        (1, "declined"): 1,
        (2, "active"): 1,
        (3, "active"): 1,
    }
    assert store.counts.session_counts()[0, "active"] == 2
    with pytest.raises(StorageError, match="no session with this id"):
        store.sessions.get("x")


@pytest.mark.postgres
def test_a_session_that_is_being_written_to_is_not_stale(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        register(store)
        busy, left = arrive(store), arrive(store)
        with store.database.writing() as connection:
            load_session(connection, busy.id, for_update=True)
            arrive(store, stale_before_ms=T0 + 1)
        assert store.sessions.get(busy.id).state == "active"
        assert store.sessions.get(left.id).state == "stale"
