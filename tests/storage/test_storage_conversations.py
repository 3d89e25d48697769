from __future__ import annotations

import pytest
from storage_cases import T0, arrive, screen

from dialometer.errors import StorageError
from dialometer.storage import ChatTurn, Store


def test_a_draft_is_kept_until_a_screen_is_sent(store: Store) -> None:
    session, other = arrive(store), arrive(store)
    assert store.conversations.draft(session.id, "screen0") is None
    store.conversations.save_draft(session.id, "screen0", {"fluency": "3"}, T0)
    store.conversations.save_draft(session.id, "screen0", {"fluency": "4", "note": "ü"}, T0 + 1)
    store.conversations.save_draft(other.id, "screen0", {"fluency": "1"}, T0)
    assert store.conversations.draft(session.id, "screen0") == {"fluency": "4", "note": "ü"}
    assert store.conversations.draft(session.id, "screen1") is None
    store.submissions.record([screen(session, 7)], T0)  # outdated: the rater is still at the draft
    assert store.conversations.draft(session.id, "screen0") is not None
    store.submissions.record([screen(session, 0)], T0)
    assert store.conversations.draft(session.id, "screen0") is None
    assert store.conversations.draft(other.id, "screen0") == {"fluency": "1"}
    with pytest.raises(StorageError, match="no session"):
        store.conversations.save_draft("nobody", "screen0", {}, T0)


def test_chat_turns_are_stored_once_and_in_order(store: Store) -> None:
    session = arrive(store)
    said = [
        ChatTurn(session.id, "item0", 0, "user", "hello", T0),
        ChatTurn(session.id, "item0", 1, "agent", "hi, how are you?", T0 + 5, {"latency_s": 0.4}),
        ChatTurn(session.id, "item1", 0, "user", "and you?", T0 + 9),
    ]
    for turn in (said[1], said[0], said[2]):
        assert store.conversations.add_turn(turn)
    assert not store.conversations.add_turn(said[1])
    assert store.conversations.turns(session.id, "item0") == said[:2]
    assert store.conversations.turns(session.id) == store.conversations.turns() == said
    with pytest.raises(StorageError, match="already says something else"):
        store.conversations.add_turn(ChatTurn(session.id, "item0", 1, "agent", "no", T0))
    with pytest.raises(StorageError, match="no session"):
        store.conversations.add_turn(ChatTurn("nobody", "item0", 1, "agent", "no", T0))
