from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text
from storage_cases import CONDITIONS, T0, answer, arrive, judgment, places, screen, snapshot_of

from dialometer.errors import StorageError
from dialometer.model.quality import Finding
from dialometer.model.session import Draw, Receipt, ScreenVisit
from dialometer.storage import Store, SubmissionRefused

VALUES = [3, 2.5, "Ünïcødé \u2603 'quoted' \\ %s \x00", ["b", "a"], {"best": "a", "worst": "b"}, True, ""]


def test_everything_of_a_screen_is_stored_and_read_back(store: Store) -> None:
    session = arrive(store)
    visit = ScreenVisit(
        session_id=session.id,
        screen="item:1",
        shown_at_ms=T0,
        submitted_at_ms=T0 + 2500,
        first_input_at_ms=T0 + 800,
        focus_lost_n=2,
        focus_lost_s=1.25,
        device="phone",
        is_late=True,
    )
    judged = [
        judgment(session, "item0", turn=3, block="b", is_late=True, side=1, order=("b", "a")),
        judgment(session, "item0", 1, system="", is_practice=True),
    ]
    answered = [answer(session, "age", 33, shown_at_ms=T0, answered_at_ms=T0 + 4)]
    finding = Finding("speed", "flag", "faster than reading", {"s": 0.4})
    sent = screen(
        session, 0, judged, answered, visit=visit, findings=[finding], consent_version="v2", done_item="item0"
    )
    assert store.submissions.record([sent], T0 + 3000) == [Receipt(sent.token, "stored", 1, "active")]

    record = store.records.of_session(session.id)
    assert [replace(found, id=None) for found in record.judgments] == judged
    assert [replace(found, id=None) for found in record.answers] == answered
    assert record.visits == [visit]
    assert [(f.session_id, f.finding, f.at_ms) for f in store.records.findings()] == [(session.id, finding, T0 + 3000)]
    now = store.sessions.get(session.id)
    assert (now.step, now.consent_version, now.last_seen_at_ms, now.finished_at_ms) == (1, "v2", T0 + 3000, None)
    assert store.counts.item_counts()[0, "item0"] == {"reserved": 0, "done": 1, "released": 0}
    assert store.counts.item_counts()[0, "item1"] == {"reserved": 1, "done": 0, "released": 0}


def test_values_come_back_as_they_went_in(store: Store) -> None:
    session = arrive(store)
    judged = [judgment(session, f"item{n}", value) for n, value in enumerate(VALUES)]
    store.submissions.record([screen(session, 0, judged)], T0)
    found = [one.value for one in store.records.judgments()]
    assert found == VALUES
    assert [type(value) for value in found] == [type(value) for value in VALUES]


@pytest.mark.parametrize(
    ("value", "message"), [(float("nan"), "as JSON"), (object(), "as JSON"), ("\ud800", "cannot be stored")]
)
def test_what_cannot_be_stored_is_refused(store: Store, value: object, message: str) -> None:
    session = arrive(store)
    with pytest.raises(StorageError, match=message):
        store.submissions.record([screen(session, 0, [judgment(session, "item0", value)])], T0)
    assert store.sessions.get(session.id).step == 0


def test_the_same_token_is_stored_once(store: Store) -> None:
    session = arrive(store)
    sent = screen(session, 0, [judgment(session, "item0")])
    first, second = store.submissions.record([sent, sent], T0)
    assert (first.outcome, second.outcome) == ("stored", "repeated")
    store.submissions.record([screen(session, 1)], T0)
    third = store.submissions.record([sent], T0)[0]
    assert third == Receipt(sent.token, "repeated", 1, "active")
    assert store.submissions.receipt(session.id, sent.token) == third
    assert store.submissions.receipt(session.id, "never sent") is None
    assert store.submissions.receipt(arrive(store).id, sent.token) is None
    assert len(list(store.records.judgments())) == 1
    assert len(list(store.records.visits())) == 2


def test_a_screen_from_another_place_is_outdated(store: Store) -> None:
    session = arrive(store)
    store.submissions.record([screen(session, 0)], T0)
    receipts = store.submissions.record(
        [screen(session, 0, [judgment(session, "item0")], token="t"), screen(session, 5)], T0
    )
    assert receipts == [Receipt("t", "outdated", 1, "active"), Receipt(f"{session.id}/5", "outdated", 1, "active")]
    assert list(store.records.judgments()) == []
    # It was not stored, so the same token may still be sent for the right place.
    assert store.submissions.record([screen(session, 1, token="t")], T0)[0].outcome == "stored"


def test_screens_of_one_session_in_one_batch_follow_each_other(store: Store) -> None:
    session = arrive(store)
    batch = [
        screen(session, 0, [judgment(session, "item0")], done_item="item0"),
        screen(session, 1, [judgment(session, "item1")], next_state="completed"),
        screen(session, 2, [judgment(session, "item2")]),
    ]
    receipts = store.submissions.record(batch, T0 + 9)
    assert [(receipt.outcome, receipt.step, receipt.state) for receipt in receipts] == [
        ("stored", 1, "active"),
        ("stored", 2, "completed"),
        ("ended", 2, "completed"),
    ]
    now = store.sessions.get(session.id)
    assert (now.state, now.step, now.finished_at_ms) == ("completed", 2, T0 + 9)
    assert len(list(store.records.judgments())) == 2


def test_a_batch_may_be_longer_than_one_query(store: Store) -> None:
    session = arrive(store)
    receipts = store.submissions.record([screen(session, step) for step in range(1203)], T0)
    assert {receipt.outcome for receipt in receipts} == {"stored"}
    again = store.submissions.record([screen(session, step) for step in range(1203)], T0)
    assert [(receipt.outcome, receipt.step) for receipt in again] == [("repeated", n + 1) for n in range(1203)]
    assert store.submissions.record([], T0) == []


@pytest.mark.parametrize(
    ("end", "counts"),
    [("completed", {"item0": 1}), ("declined", {}), ("screened_out", {})],
)
def test_a_session_that_ends_frees_its_places(store: Store, end: str, counts: dict[str, int]) -> None:
    session = arrive(store)
    store.submissions.record([screen(session, 0, done_item="item0"), screen(session, 1, next_state=end)], T0)
    assert {item: n for item, n in places(store).items() if n} == counts
    assert snapshot_of(store).cell_counts == ({0: 1} if end == "completed" else {})


def test_a_finding_can_exclude_and_then_others_get_the_places(store: Store) -> None:
    session = arrive(store)
    finding = Finding("attention", "exclude", "failed twice")
    batch = [
        screen(session, 0, done_item="item0"),
        screen(session, 1, findings=[finding, finding]),
        screen(session, 2, [judgment(session, "item2")], done_item="item2"),
    ]
    assert {receipt.outcome for receipt in store.submissions.record(batch, T0)} == {"stored"}
    assert store.sessions.get(session.id).is_excluded
    assert not any(places(store).values())
    assert snapshot_of(store).cell_counts == {}
    log = [(one.is_excluded, one.made_by, one.reason) for one in store.exclusions.log(session.id)]
    assert log == [(True, "rule:attention", "failed twice")]
    assert len(list(store.records.findings(session.id))) == 2


def test_refusals_name_the_submission_and_write_nothing(store: Store) -> None:
    good, bad = arrive(store), arrive(store)
    fine = screen(good, 0, [judgment(good, "item0")])
    stranger = screen("nobody", 0)
    mixed = screen(bad, 0, [judgment(good, "item0")], token="mixed")
    borrowed = screen(bad, 0, token=fine.token)
    withdrawn = screen(bad, 0, next_state="withdrawn", token="w")
    for wrong, message in (
        (stranger, "there is no session with this id"),
        (mixed, "entries of another session"),
        (borrowed, "used by another session"),
        (withdrawn, "cannot make a session withdrawn"),
    ):
        with pytest.raises(SubmissionRefused, match=message) as caught:
            store.submissions.record([fine, wrong], T0)
        assert caught.value.token == wrong.token
    assert list(store.records.visits()) == []
    assert store.sessions.get(good.id).step == 0


def test_one_refused_submission_does_not_hold_up_the_others(store: Store) -> None:
    good, bad = arrive(store), arrive(store)
    store.submissions.record([screen(bad, 0, [judgment(bad, "item0")])], T0)
    batch = [
        screen(good, 0, [judgment(good, "item0")]),
        screen(bad, 1, [judgment(bad, "item0")]),
        screen(good, 1, [judgment(good, "item1")]),
    ]
    outcomes = store.submissions.record_each(batch, T0)
    assert isinstance(outcomes[1], SubmissionRefused)
    assert "must name the first one in 'replaces'" in str(outcomes[1])
    assert [one.outcome for one in outcomes if isinstance(one, Receipt)] == ["stored", "stored"]
    assert store.sessions.get(bad.id).step == 1
    assert store.sessions.get(good.id).step == 2


def test_practice_may_be_repeated_and_turns_are_told_apart(store: Store) -> None:
    session = arrive(store)
    judged = [
        judgment(session, "item0", is_practice=True),
        judgment(session, "item0", is_practice=True),
        judgment(session, "item0"),
        judgment(session, "item0", turn=0),
        judgment(session, "item0", turn=1),
    ]
    store.submissions.record([screen(session, 0, judged)], T0)
    assert [(one.is_practice, one.turn) for one in store.records.judgments()] == [(True, None)] * 2 + [
        (False, None),
        (False, 0),
        (False, 1),
    ]
    with pytest.raises(SubmissionRefused, match="already there"):
        store.submissions.record([screen(session, 1, [judgment(session, "item0", turn=1)])], T0)
    with pytest.raises(SubmissionRefused, match="already there"):
        store.submissions.record(
            [screen(session, 1, answers=[answer(session, "age", 1), answer(session, "age", 2)])], T0
        )


def test_the_order_of_blocks_and_items_survives(store: Store) -> None:
    draw = Draw(1, 3, ("late", "early"), {"late": ("z", "a"), "early": ("m", "z")})
    session = arrive(store, choose=lambda _snapshot: draw)
    found = store.sessions.get(session.id)
    assert found.draw == draw
    assert list(found.draw.items) == ["late", "early"]
    assert found.condition == CONDITIONS[3]
    with store.database.reading() as connection:
        blocks = dict(connection.execute(text("SELECT item_id, block FROM slots")).all())
    assert blocks == {"z": "late", "a": "late", "m": "early"}
