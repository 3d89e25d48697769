"""Accounts of experimenters: who may come in, as what, and until when. Passwords and secrets are known here only as hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import delete, func, insert, select, update

from dialometer.errors import StorageError
from dialometer.storage.database import StorePart
from dialometer.storage.rows import token_hash
from dialometer.storage.schema import account_links, accounts, desk_log, sign_in_failures, sign_ins

Role = Literal["owner", "editor", "viewer"]
ROLES: tuple[Role, ...] = get_args(Role)
FORGOTTEN_AFTER_MS = 24 * 3600 * 1000
"""A failed sign-in counts against a name (with a hash of the address it came from) for so long."""


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who may come in."""

    id: int
    name: str
    role: Role
    password_hash: str
    is_active: bool
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class AccountLink:
    """What a one-time link is for: a new account of that role, or a new password for the account it names."""

    role: Role
    account_id: int | None


@dataclass(frozen=True, slots=True)
class LoggedAction:
    """One entry of the log of what accounts did."""

    made_by: str
    what: str
    detail: str
    at_ms: int


class Accounts(StorePart):
    """Accounts, the browsers signed in to them, and one-time links."""

    def all(self) -> list[Account]:
        """All accounts, the oldest first."""
        with self.database.reading() as connection:
            return [Account(*row) for row in connection.execute(select(accounts).order_by(accounts.c.id))]

    def named(self, name: str) -> Account | None:
        """The account of that name, in whatever letters it is written."""
        with self.database.reading() as connection:
            row = connection.execute(select(accounts).where(accounts.c.name == name.strip().lower())).one_or_none()
        return None if row is None else Account(*row)

    def change(
        self, account_id: int, *, role: Role | None = None, is_active: bool | None = None, password_hash: str = ""
    ) -> None:
        """Change what is given. A new password or a closed account ends its sign-ins; the last owner always stays one."""
        changes: dict[str, object] = {}
        if role is not None:
            changes["role"] = _checked(role)
        if is_active is not None:
            changes["is_active"] = is_active
        if password_hash:
            changes["password_hash"] = password_hash
        with self.database.assigning() as connection:
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(**changes))
            owners = select(func.count()).where(accounts.c.role == "owner", accounts.c.is_active)
            if not connection.scalar(owners):
                raise StorageError("the last owner must stay one", remedy="make somebody else an owner first")
            if password_hash or is_active is False:
                connection.execute(delete(sign_ins).where(sign_ins.c.account_id == account_id))

    # one-time links

    def make_link(
        self,
        token: str,
        role: Role,
        *,
        by: str,
        expires_at_ms: int,
        account_id: int | None = None,
        replaces: bool = False,
    ) -> None:
        """Keep a link that can be used once. ``replaces`` ends the earlier ones by the same maker."""
        row = {
            "token_hash": token_hash(token),
            "role": _checked(role),
            "account_id": account_id,
            "made_by": by,
            "expires_at_ms": expires_at_ms,
        }
        with self.database.writing() as connection:
            if replaces:
                connection.execute(delete(account_links).where(account_links.c.made_by == by))
            connection.execute(insert(account_links), row)

    def link(self, token: str, at_ms: int) -> AccountLink | None:
        """What a link is for, or None when it is unknown, used or too old."""
        query = select(account_links.c.role, account_links.c.account_id).where(
            account_links.c.token_hash == token_hash(token), account_links.c.expires_at_ms > at_ms
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else AccountLink(row.role, row.account_id)

    def use_link(self, token: str, name: str, password_hash: str, at_ms: int) -> Account:
        """Make the account, or set the password, that a link is for; the link is used up in the same transaction."""
        with self.database.assigning() as connection:
            query = select(account_links).where(account_links.c.token_hash == token_hash(token))
            row = connection.execute(query).one_or_none()
            if row is None or row.expires_at_ms <= at_ms:
                raise StorageError("this link was used already or is too old", remedy="ask for a new one")
            connection.execute(delete(account_links).where(account_links.c.token_hash == row.token_hash))
            if row.account_id is not None:
                account_id = row.account_id
                connection.execute(
                    update(accounts).where(accounts.c.id == account_id).values(password_hash=password_hash)
                )
                connection.execute(delete(sign_ins).where(sign_ins.c.account_id == account_id))
            else:
                clean = name.strip().lower()
                if connection.scalar(select(accounts.c.id).where(accounts.c.name == clean)) is not None:
                    raise StorageError(f"there is an account '{clean}' already", remedy="choose another name")
                new = {
                    "name": clean,
                    "role": row.role,
                    "password_hash": password_hash,
                    "is_active": True,
                    "created_at_ms": at_ms,
                }
                key = connection.execute(insert(accounts), new).inserted_primary_key
                assert key is not None
                account_id = int(key[0])
            return Account(*connection.execute(select(accounts).where(accounts.c.id == account_id)).one())

    # sign-ins

    def sign_in(self, token: str, account_id: int, at_ms: int, *, expired_before_ms: int) -> None:
        """Remember a browser by its secret; those not seen since ``expired_before_ms`` are forgotten."""
        row = {"token_hash": token_hash(token), "account_id": account_id, "began_at_ms": at_ms, "seen_at_ms": at_ms}
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.seen_at_ms < expired_before_ms))
            connection.execute(insert(sign_ins), row)

    def signed_in(self, token: str, *, seen_since_ms: int, began_since_ms: int) -> tuple[Account, int] | None:
        """The active account behind a browser's secret and when it was last seen; None for strangers and expired ones."""
        query = (
            select(accounts, sign_ins.c.seen_at_ms)
            .join(sign_ins, sign_ins.c.account_id == accounts.c.id)
            .where(
                sign_ins.c.token_hash == token_hash(token),
                sign_ins.c.seen_at_ms >= seen_since_ms,
                sign_ins.c.began_at_ms >= began_since_ms,
                accounts.c.is_active,
            )
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else (Account(*row[:-1]), row[-1])

    def see_again(self, token: str, at_ms: int) -> None:
        """A signed-in browser is still in use."""
        with self.database.writing() as connection:
            connection.execute(
                update(sign_ins).where(sign_ins.c.token_hash == token_hash(token)).values(seen_at_ms=at_ms)
            )

    def sign_out(self, token: str) -> None:
        """Forget a browser."""
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.token_hash == token_hash(token)))

    # failed sign-ins

    def failures(self, name: str, at_ms: int) -> tuple[int, int]:
        """How often somebody failed to sign in under a name lately, and when last."""
        query = select(sign_in_failures.c.n_failures, sign_in_failures.c.last_at_ms).where(
            sign_in_failures.c.name == name.strip().lower(),
            sign_in_failures.c.last_at_ms > at_ms - FORGOTTEN_AFTER_MS,
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return (0, 0) if row is None else (row.n_failures, row.last_at_ms)

    def note_failure(self, name: str, at_ms: int) -> None:
        """Count a failure; names are counted whether they exist or not, so that counting tells nothing."""
        clean = name.strip().lower()
        of_name = sign_in_failures.c.name == clean
        with self.database.assigning() as connection:
            old = sign_in_failures.c.last_at_ms <= at_ms - FORGOTTEN_AFTER_MS
            connection.execute(delete(sign_in_failures).where(old))
            n = connection.scalar(select(sign_in_failures.c.n_failures).where(of_name))
            if n is None:
                connection.execute(insert(sign_in_failures), {"name": clean, "n_failures": 1, "last_at_ms": at_ms})
            else:
                connection.execute(update(sign_in_failures).where(of_name).values(n_failures=n + 1, last_at_ms=at_ms))

    def forget_failures(self, name: str) -> None:
        """The right password makes up for the wrong ones."""
        with self.database.writing() as connection:
            connection.execute(delete(sign_in_failures).where(sign_in_failures.c.name == name.strip().lower()))

    # what accounts did

    def log_action(self, by: str, what: str, detail: str, at_ms: int) -> None:
        """Add to the log."""
        with self.database.writing() as connection:
            connection.execute(insert(desk_log), {"made_by": by, "what": what, "detail": detail, "at_ms": at_ms})

    def actions(self, n_newest: int = 200) -> list[LoggedAction]:
        """The newest entries of the log, the newest first."""
        query = select(desk_log).order_by(desk_log.c.id.desc()).limit(n_newest)
        with self.database.reading() as connection:
            return [LoggedAction(row.made_by, row.what, row.detail, row.at_ms) for row in connection.execute(query)]


def _checked(role: Role) -> Role:
    if role not in ROLES:
        raise StorageError(f"there is no role '{role}'", remedy=f"one of {', '.join(ROLES)}")
    return role
