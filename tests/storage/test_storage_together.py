"""Comments, shared reports, accounts at a provider, and an audit log that nobody can change."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.exc import DatabaseError
from storage_cases import T0

from dialometer.errors import StorageError
from dialometer.storage import Store
from dialometer.storage.access.audit_log import AuditLog
from dialometer.storage.access.comments import MAX_LENGTH, Comments
from dialometer.storage.access.identities import Identities, ProviderRequest
from dialometer.storage.access.shared_reports import SharedReports
from dialometer.storage.schema import dashboard_log, shared_reports


def test_the_audit_log_takes_no_change(store: Store) -> None:
    log = AuditLog(store.database)
    log.add("ada", "froze the study", "", T0, study="films")
    for change in (update(dashboard_log).values(made_by="eve"), delete(dashboard_log)):
        with pytest.raises((DatabaseError, StorageError)), store.database.writing() as connection:
            connection.execute(change)
    if not store.database.is_sqlite:
        with pytest.raises((DatabaseError, StorageError)), store.database.writing() as connection:
            connection.execute(text("TRUNCATE dashboard_log"))
    (entry,) = log.newest(5)
    assert (entry.made_by, entry.study) == ("ada", "films")


def test_comments_are_answered_resolved_and_opened_again(store: Store) -> None:
    comments = Comments(store.database)
    first = comments.add("films", "form/study", " Is this title too long?\r\n ", "ada", T0)
    reply = comments.add("films", "ignored", "Yes.", "bob", T0 + 1, reply_to=first)
    comments.add("songs", "", "elsewhere", "ada", T0 + 2)
    of_films = comments.of_study("films")
    assert [(one.id, one.part, one.text, one.reply_to) for one in of_films] == [
        (first, "form/study", "Is this title too long?", None),
        (reply, "form/study", "Yes.", first),
    ]
    assert comments.n_open("films") == 1
    comments.resolve("films", first, "bob", T0 + 3, is_resolved=True)
    assert comments.n_open("films") == 0
    assert (comments.of_study("films")[0].resolved_by, comments.of_study("films")[0].is_open) == ("bob", False)
    comments.resolve("films", first, "bob", T0 + 4, is_resolved=False)
    assert comments.of_study("films")[0].is_open
    for wrong in (
        lambda: comments.add("films", "", "  ", "ada", T0),
        lambda: comments.add("films", "", "x" * (MAX_LENGTH + 1), "ada", T0),
        lambda: comments.add("songs", "", "x", "ada", T0, reply_to=first),
        lambda: comments.add("films", "", "x", "ada", T0, reply_to=reply),
        lambda: comments.resolve("songs", first, "ada", T0, is_resolved=True),
        lambda: comments.resolve("films", reply, "ada", T0, is_resolved=True),
    ):
        with pytest.raises(StorageError):
            wrong()


def test_a_revoked_report_is_gone(store: Store) -> None:
    shared = SharedReports(store.database)
    shared.add("token-1", "films", "<p>the answer</p>", {"n_raters": 8}, "ada", T0)
    (link,) = shared.of_study("films")
    assert (shared.page("token-1"), shared.page("token-2"), link.about) == ("<p>the answer</p>", None, {"n_raters": 8})
    with pytest.raises(StorageError):
        shared.revoke("songs", link.id, "ada", T0 + 1)
    shared.revoke("films", link.id, "bob", T0 + 1)
    assert shared.page("token-1") is None
    assert shared.of_study("films")[0].revoked_by == "bob"
    with store.database.reading() as connection:
        rows = connection.execute(shared_reports.select()).all()
    assert "token-1" not in str(rows)
    assert "the answer" not in str(rows)
    with pytest.raises(StorageError):
        shared.revoke("films", link.id, "ada", T0 + 2)


def test_an_identity_belongs_to_one_account(store: Store) -> None:
    identities = Identities(store.database)
    ada = identities.make_account("https://id.example", "s-1", "ada@example.org", "viewer", T0)
    assert identities.account("https://id.example", "s-1") == ada
    assert identities.account("https://other.example", "s-1") is None
    with pytest.raises(StorageError, match="already"):
        identities.make_account("https://id.example", "s-2", "ada@example.org", "owner", T0)
    bob = identities.make_account("https://id.example", "s-3", "bob@example.org", "viewer", T0)
    with pytest.raises(StorageError, match="another account"):
        identities.link("https://id.example", "s-1", bob.id)
    identities.link("https://id.example", "s-4", bob.id)
    assert identities.account("https://id.example", "s-4") == bob
    assert identities.linked() == {ada.id, bob.id}


def test_a_sign_in_comes_back_once_and_to_its_browser(store: Store) -> None:
    identities = Identities(store.database)
    sent = ProviderRequest("nonce", "verifier", "/dashboard/")
    identities.send("state", "browser", sent, T0, expired_before_ms=0)
    assert identities.come_back("state", "another browser", sent_since_ms=0) is None
    assert identities.come_back("state", "browser", sent_since_ms=0) == sent
    assert identities.come_back("state", "browser", sent_since_ms=0) is None
    identities.send("late", "browser", sent, T0, expired_before_ms=0)
    assert identities.come_back("late", "browser", sent_since_ms=T0 + 1) is None
