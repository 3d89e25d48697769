"""Accounts, one-time links, sign-ins, failures and looks, on both databases."""

from __future__ import annotations

import pytest
from storage_cases import T0, arrive

from dialometer.errors import StorageError
from dialometer.storage import Store
from dialometer.storage.watching import Look

DAY_MS = 24 * 3600 * 1000


def make(store: Store, name: str, role: str = "owner", token: str = "t") -> int:
    store.make_link(token, role, by="test", expires_at_ms=T0 + DAY_MS)
    return store.use_link(token, name, "hash", T0).id


def test_a_link_makes_one_account(store: Store) -> None:
    store.make_link("one", "editor", by="server", expires_at_ms=T0 + 10)
    assert store.link("one", T0).role == "editor"
    assert store.link("one", T0 + 10) is None
    assert store.link("other", T0) is None
    account = store.use_link("one", " Ada ", "hash", T0)
    assert (account.name, account.role, account.is_active) == ("ada", "editor", True)
    with pytest.raises(StorageError, match="used already"):
        store.use_link("one", "eve", "hash", T0)
    assert [found.name for found in store.accounts()] == ["ada"]
    assert store.account_named("ADA") == account


def test_a_new_link_of_the_server_ends_the_old_one(store: Store) -> None:
    store.make_link("one", "owner", by="server", expires_at_ms=T0 + 10)
    store.make_link("two", "owner", by="server", expires_at_ms=T0 + 10, replaces=True)
    assert store.link("one", T0) is None
    assert store.link("two", T0) is not None


def test_names_are_given_once(store: Store) -> None:
    make(store, "ada")
    store.make_link("two", "viewer", by="ada", expires_at_ms=T0 + 10)
    with pytest.raises(StorageError, match="already"):
        store.use_link("two", "ADA", "hash", T0)
    assert store.link("two", T0) is not None, "a refused name does not use the link up"


def test_a_sign_in_ends_with_time_password_or_account(store: Store) -> None:
    ada, bob = make(store, "ada"), make(store, "bob", "viewer", "u")
    store.sign_in("a", ada, T0, expired_before_ms=0)
    store.sign_in("b", bob, T0, expired_before_ms=0)
    assert store.signed_in("a", seen_since_ms=T0, began_since_ms=0)[0].name == "ada"
    assert store.signed_in("a", seen_since_ms=T0 + 1, began_since_ms=0) is None
    assert store.signed_in("a", seen_since_ms=0, began_since_ms=T0 + 1) is None
    assert store.signed_in("unknown", seen_since_ms=0, began_since_ms=0) is None
    store.see_again("a", T0 + 5)
    assert store.signed_in("a", seen_since_ms=T0 + 1, began_since_ms=0)[1] == T0 + 5
    store.change_account(bob, is_active=False)
    assert store.signed_in("b", seen_since_ms=0, began_since_ms=0) is None
    store.change_account(ada, password_hash="new")
    assert store.signed_in("a", seen_since_ms=0, began_since_ms=0) is None
    store.sign_in("c", ada, T0, expired_before_ms=0)
    store.sign_out("c")
    assert store.signed_in("c", seen_since_ms=0, began_since_ms=0) is None


def test_the_last_owner_stays(store: Store) -> None:
    ada = make(store, "ada")
    for change in ({"role": "viewer"}, {"is_active": False}):
        with pytest.raises(StorageError, match="last owner"):
            store.change_account(ada, **change)
    assert store.account_named("ada").role == "owner"
    make(store, "bob", "owner", "u")
    store.change_account(ada, role="viewer")
    assert store.account_named("ada").role == "viewer"


def test_a_link_for_an_account_sets_its_password_and_ends_its_sign_ins(store: Store) -> None:
    ada = make(store, "ada")
    store.sign_in("a", ada, T0, expired_before_ms=0)
    store.make_link("reset", "owner", by="ada", expires_at_ms=T0 + 10, account_id=ada)
    assert store.use_link("reset", "", "other", T0).password_hash == "other"
    assert store.signed_in("a", seen_since_ms=0, began_since_ms=0) is None


def test_failures_are_counted_by_name_and_forgotten(store: Store) -> None:
    for n in (1, 2, 3):
        store.note_failure("Ada", T0 + n)
    assert store.failures("ada", T0 + 4) == (3, T0 + 3)
    assert store.failures("ada", T0 + 3 + DAY_MS) == (0, 0)
    store.forget_failures("ADA")
    assert store.failures("ada", T0 + 4) == (0, 0)
    with pytest.raises(StorageError, match="no role"):
        store.make_link("x", "king", by="ada", expires_at_ms=0)


def test_deeds_and_looks_are_kept_in_order(store: Store) -> None:
    store.note_deed("ada", "export", "all", T0)
    store.note_deed("bob", "files", "study.yaml", T0 + 1)
    assert [deed.made_by for deed in store.deeds()] == ["bob", "ada"]
    seen = [{"label": "a", "value": 0.5, "low": None, "high": 1.0}]
    store.note_look(Look("ada", 10, 2, seen, T0))
    assert store.looks() == [Look("ada", 10, 2, seen, T0)]


def test_the_pulse_changes_with_what_happens(store: Store) -> None:
    quiet = store.pulse()
    assert store.pulse() == quiet
    session = arrive(store, "P1")
    arrived = store.pulse()
    assert arrived != quiet
    store.exclude(session.id, "ada", "why", T0)
    excluded = store.pulse()
    assert excluded != arrived
    store.withdraw(session.id, T0)
    assert store.pulse() != excluded
    (mark,) = store.session_marks()
    assert (mark.id, mark.state, store.session_id_of(mark.ordinal)) == (session.id, "withdrawn", session.id)
    assert store.session_id_of(99) is None
