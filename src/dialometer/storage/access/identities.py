"""Accounts at a provider of OpenID Connect: which account somebody is, and sign-ins on their way there and back."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from dialometer.errors import StorageError
from dialometer.storage.access.accounts import Account, Role
from dialometer.storage.database import StorePart
from dialometer.storage.rows import token_hash
from dialometer.storage.schema import accounts, identities, provider_requests, sign_ins

NO_PASSWORD = ""
"""The hash of accounts that sign in at a provider only: no password matches it."""


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """What was sent to the provider and must come back, and the page that was wanted.

    ``account_id`` is who was signed in already and wants to link the account with the provider.
    """

    nonce: str
    verifier: str
    next_page: str
    account_id: int | None = None


class Identities(StorePart):
    """Who accounts are at providers."""

    def account(self, issuer: str, subject: str) -> Account | None:
        """The account of somebody at a provider."""
        query = (
            select(accounts)
            .join(identities, identities.c.account_id == accounts.c.id)
            .where(identities.c.issuer == issuer, identities.c.subject == subject)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Account(*row)

    def linked(self) -> set[int]:
        """The accounts that sign in at a provider."""
        with self.database.reading() as connection:
            return set(connection.scalars(select(identities.c.account_id)))

    def make_account(self, issuer: str, subject: str, name: str, role: Role, at_ms: int) -> Account:
        """A new account without a password, which signs in at the provider. A name that is taken is refused: an account
        with a password must not go to whoever has the same address at a provider."""
        with self.database.assigning() as connection:
            if connection.scalar(select(accounts.c.id).where(accounts.c.name == name)) is not None:
                raise StorageError(
                    f"there is an account '{name}' already",
                    remedy="sign in to it with its password and link it on its page, or ask an owner",
                )
            row = {"name": name, "role": role, "password_hash": NO_PASSWORD, "is_active": True, "created_at_ms": at_ms}
            key = connection.execute(insert(accounts), row).inserted_primary_key
            assert key is not None
            connection.execute(insert(identities), {"issuer": issuer, "subject": subject, "account_id": int(key[0])})
            return Account(*connection.execute(select(accounts).where(accounts.c.id == int(key[0]))).one())

    def link(self, issuer: str, subject: str, account_id: int) -> None:
        """Let an account sign in at the provider too."""
        same = (identities.c.issuer == issuer, identities.c.subject == subject)
        with self.database.assigning() as connection:
            holder = connection.scalar(select(identities.c.account_id).where(*same))
            if holder is not None and holder != account_id:
                raise StorageError("this sign-in belongs to another account", remedy="ask an owner")
            if holder is None:
                row = {"issuer": issuer, "subject": subject, "account_id": account_id}
                connection.execute(insert(identities), row)

    def unlink(self, account_id: int) -> None:
        """Take the provider from an account and end its sign-ins; refused where it has no password to sign in with."""
        with self.database.assigning() as connection:
            known = select(accounts.c.password_hash).where(accounts.c.id == account_id)
            if connection.scalar(known) == NO_PASSWORD:
                raise StorageError(
                    "this account has no password and could no longer sign in",
                    remedy="make a link for a new password for it first",
                )
            connection.execute(delete(identities).where(identities.c.account_id == account_id))
            connection.execute(delete(sign_ins).where(sign_ins.c.account_id == account_id))

    # on the way to the provider and back

    def send(self, state: str, browser: str, request: ProviderRequest, at_ms: int, *, expired_before_ms: int) -> None:
        """Remember a sign-in that goes to the provider; those that never came back are forgotten."""
        row = {
            "state_hash": token_hash(state),
            "browser_hash": token_hash(browser),
            "nonce": request.nonce,
            "verifier": request.verifier,
            "next_page": request.next_page,
            "account_id": request.account_id,
            "at_ms": at_ms,
        }
        with self.database.writing() as connection:
            connection.execute(delete(provider_requests).where(provider_requests.c.at_ms < expired_before_ms))
            connection.execute(insert(provider_requests), row)

    def come_back(self, state: str, browser: str, *, sent_since_ms: int) -> ProviderRequest | None:
        """What was sent with a state, once; None where this browser has sent no such sign-in lately."""
        c = provider_requests.c
        same = c.state_hash == token_hash(state)
        with self.database.assigning() as connection:
            row = connection.execute(select(provider_requests).where(same)).one_or_none()
            if row is None or row.browser_hash != token_hash(browser):
                return None
            connection.execute(delete(provider_requests).where(same))
        if row.at_ms < sent_since_ms:
            return None
        return ProviderRequest(row.nonce, row.verifier, row.next_page, row.account_id)
