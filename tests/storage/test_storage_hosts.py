"""What the hosts of one study share: wizards with their conversations, and limits; on both databases."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select
from storage_cases import T0, arrive

from dialometer.errors import FlowError
from dialometer.storage import Store
from dialometer.storage.access.limits import SECRET_MS, WINDOW_MS
from dialometer.storage.schema import request_counts
from dialometer.storage.wizards import MAX_WIZARDS


def test_wizards_have_names_of_their_own(store: Store) -> None:
    wizards = store.wizards
    assert [wizards.sign_in(secret, T0 + n) for n, secret in enumerate("ab")] == ["Wizard 1", "Wizard 2"]
    assert wizards.name_of("nobody") == ""
    wizards.rename("a", "Ann")
    with pytest.raises(FlowError, match="another wizard"):
        wizards.rename("b", "Ann")
    assert (wizards.name_of("a"), wizards.name_of("b")) == ("Ann", "Wizard 2")
    for n in range(MAX_WIZARDS - 1):
        wizards.sign_in(f"more{n}", T0 + 10 + n)
    assert wizards.name_of("a") == "", "who came first is forgotten"
    assert wizards.name_of("b") == "Wizard 2"


def test_a_conversation_has_one_wizard_at_a_time(store: Store) -> None:
    session = arrive(store)
    wizards = store.wizards
    wizards.sign_in("a", T0)
    key = wizards.open(session.id, "item0", 1, T0)
    assert wizards.open(session.id, "item0", 1, T0 + 5) == key
    (chat,) = wizards.chats(T0 + 5)
    assert (chat.id, chat.session_id, chat.item_id, chat.step, chat.holder) == (key, session.id, "item0", 1, "")
    assert (chat.opened_at_ms, chat.seen_at_ms) == (T0, T0 + 5)
    assert wizards.take(key, "Wizard 1") == "Wizard 1"
    assert wizards.take(key, "Eve") == "Wizard 1"
    wizards.release(key, "Eve")
    wizards.rename("a", "Ann")
    assert wizards.chat(key).holder == "Ann"
    wizards.release(key, "Ann")
    assert wizards.take(key, "Eve") == "Eve"
    assert wizards.chats(T0 + 6) == []
    assert wizards.chat("unknown") is None


def test_limits_hold_over_hosts_and_end_with_the_minute(store: Store, study_url: str) -> None:
    start = T0 - T0 % WINDOW_MS
    with Store.open(study_url) as other:
        hosts = (store.limits, other.limits)
        waits = [hosts[n % 2].take("login", "203.0.113.9", 4, start + n) for n in range(6)]
        assert waits[:4] == [0.0] * 4
        assert waits[4:] == [pytest.approx(60.0, abs=0.1)] * 2
        assert other.limits.take("login", "198.51.100.7", 4, start) == 0.0, "another client"
        assert other.limits.take("arrival", "203.0.113.9", 4, start) == 0.0, "another kind"
        assert other.limits.take("login", "203.0.113.9", 4, start + WINDOW_MS) == 0.0, "another minute"


def test_addresses_are_not_kept(store: Store) -> None:
    store.limits.take("login", "203.0.113.9", 4, T0)
    with store.database.reading() as connection:
        (row,) = connection.execute(select(request_counts))
    assert re.fullmatch("[0-9a-f]{32}", row.key), "a hash, and nothing of the address"
    store.limits.take("login", "203.0.113.9", 4, T0 + SECRET_MS + WINDOW_MS)
    with store.database.reading() as connection:
        (later,) = connection.execute(select(request_counts))
    assert later.key != row.key, "a new secret: yesterday's hashes match nobody"
