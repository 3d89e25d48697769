"""Accounts, one-time links, sign-ins, failures and looks, on both databases."""

from __future__ import annotations

import pytest
from storage_cases import T0, arrive

from dialometer.errors import StorageError
from dialometer.storage import Store
from dialometer.storage.access.audit_log import AuditLog
from dialometer.storage.looks import Look

DAY_MS = 24 * 3600 * 1000


def make(store: Store, name: str, role: str = "owner", token: str = "t") -> int:
    store.accounts.make_link(token, role, by="test", expires_at_ms=T0 + DAY_MS)
    return store.accounts.use_link(token, name, "hash", T0).id


def test_a_link_makes_one_account(store: Store) -> None:
    store.accounts.make_link("one", "editor", by="server", expires_at_ms=T0 + 10)
    assert store.accounts.link("one", T0).role == "editor"
    assert store.accounts.link("one", T0 + 10) is None
    assert store.accounts.link("other", T0) is None
    account = store.accounts.use_link("one", " Ada ", "hash", T0)
    assert (account.name, account.role, account.is_active) == ("ada", "editor", True)
    with pytest.raises(StorageError, match="used already"):
        store.accounts.use_link("one", "eve", "hash", T0)
    assert [found.name for found in store.accounts.all()] == ["ada"]
    assert store.accounts.named("ADA") == account


def test_a_new_link_of_the_server_ends_the_old_one(store: Store) -> None:
    store.accounts.make_link("one", "owner", by="server", expires_at_ms=T0 + 10)
    store.accounts.make_link("two", "owner", by="server", expires_at_ms=T0 + 10, replaces=True)
    assert store.accounts.link("one", T0) is None
    assert store.accounts.link("two", T0) is not None


def test_names_are_given_once(store: Store) -> None:
    make(store, "ada")
    store.accounts.make_link("two", "viewer", by="ada", expires_at_ms=T0 + 10)
    with pytest.raises(StorageError, match="already"):
        store.accounts.use_link("two", "ADA", "hash", T0)
    assert store.accounts.link("two", T0) is not None, "a refused name does not use the link up"


def test_a_sign_in_ends_with_time_password_or_account(store: Store) -> None:
    ada, bob = make(store, "ada"), make(store, "bob", "viewer", "u")
    store.accounts.sign_in("a", ada, T0, expired_before_ms=0)
    store.accounts.sign_in("b", bob, T0, expired_before_ms=0)
    assert store.accounts.signed_in("a", seen_since_ms=T0, began_since_ms=0)[0].name == "ada"
    assert store.accounts.signed_in("a", seen_since_ms=T0 + 1, began_since_ms=0) is None
    assert store.accounts.signed_in("a", seen_since_ms=0, began_since_ms=T0 + 1) is None
    assert store.accounts.signed_in("unknown", seen_since_ms=0, began_since_ms=0) is None
    store.accounts.see_again("a", T0 + 5)
    assert store.accounts.signed_in("a", seen_since_ms=T0 + 1, began_since_ms=0)[1] == T0 + 5
    store.accounts.change(bob, is_active=False)
    assert store.accounts.signed_in("b", seen_since_ms=0, began_since_ms=0) is None
    store.accounts.change(ada, password_hash="new")
    assert store.accounts.signed_in("a", seen_since_ms=0, began_since_ms=0) is None
    store.accounts.sign_in("c", ada, T0, expired_before_ms=0)
    store.accounts.sign_out("c")
    assert store.accounts.signed_in("c", seen_since_ms=0, began_since_ms=0) is None


def test_the_last_owner_stays(store: Store) -> None:
    ada = make(store, "ada")
    for change in ({"role": "viewer"}, {"is_active": False}):
        with pytest.raises(StorageError, match="last owner"):
            store.accounts.change(ada, **change)
    assert store.accounts.named("ada").role == "owner"
    make(store, "bob", "owner", "u")
    store.accounts.change(ada, role="viewer")
    assert store.accounts.named("ada").role == "viewer"


def test_a_link_for_an_account_sets_its_password_and_ends_its_sign_ins(store: Store) -> None:
    ada = make(store, "ada")
    store.accounts.sign_in("a", ada, T0, expired_before_ms=0)
    store.accounts.make_link("reset", "owner", by="ada", expires_at_ms=T0 + 10, account_id=ada)
    assert store.accounts.use_link("reset", "", "other", T0).password_hash == "other"
    assert store.accounts.signed_in("a", seen_since_ms=0, began_since_ms=0) is None


def test_failures_are_counted_by_name_and_forgotten(store: Store) -> None:
    for n in (1, 2, 3):
        store.accounts.note_failure("Ada", T0 + n)
    assert store.accounts.failures("ada", T0 + 4) == (3, T0 + 3)
    assert store.accounts.failures("ada", T0 + 3 + DAY_MS) == (0, 0)
    store.accounts.forget_failures("ADA")
    assert store.accounts.failures("ada", T0 + 4) == (0, 0)
    with pytest.raises(StorageError, match="no role"):
        store.accounts.make_link("x", "king", by="ada", expires_at_ms=0)


def test_deeds_and_looks_are_kept_in_order(store: Store) -> None:
    log = AuditLog(store.database)
    log.add("ada", "export", "all", T0)
    log.add("bob", "files", "study.yaml", T0 + 1)
    assert [deed.made_by for deed in log.newest(10)] == ["bob", "ada"]
    seen = [{"label": "a", "value": 0.5, "low": None, "high": 1.0}]
    store.looks.add(Look("ada", 10, 2, seen, T0))
    assert store.looks.all() == [Look("ada", 10, 2, seen, T0)]


def test_the_pulse_changes_with_what_happens(store: Store) -> None:
    quiet = store.counts.pulse()
    assert store.counts.pulse() == quiet
    session = arrive(store, "P1")
    arrived = store.counts.pulse()
    assert arrived != quiet
    store.exclusions.exclude(session.id, "ada", "why", T0)
    excluded = store.counts.pulse()
    assert excluded != arrived
    store.withdrawals.withdraw(session.id, T0)
    assert store.counts.pulse() != excluded
    (mark,) = store.sessions.marks()
    assert (mark.id, mark.state, store.sessions.id_of(mark.ordinal)) == (session.id, "withdrawn", session.id)
    assert store.sessions.id_of(99) is None
