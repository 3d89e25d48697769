"""Accounts of experimenters: who may come in, as what, and until when. Passwords and secrets are known here only as hashes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import delete, func, insert, or_, select, update

from dialometer.errors import StorageError
from dialometer.storage.database import StorePart
from dialometer.storage.rows import token_hash
from dialometer.storage.schema import (
    account_links,
    accounts,
    recovery_codes,
    sign_in_failures,
    sign_ins,
    study_roles,
)

Role = Literal["owner", "editor", "viewer", "guest"]
ROLES: tuple[Role, ...] = get_args(Role)
"""A guest sees only the studies in which it has a role of its own; the others see all."""
STUDY_ROLES: tuple[Role, ...] = ("editor", "viewer")
"""What an account can be in one study."""
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
    totp_secret: str | None = None
    totp_step: int | None = None
    """The newest period whose digits were used: each is good once."""

    @property
    def has_second_factor(self) -> bool:
        """Whether signing in takes more than the password."""
        return self.totp_secret is not None


@dataclass(frozen=True, slots=True)
class AccountLink:
    """What a one-time link is for: a new account of that role (in one study alone, if it names one), or a new password."""

    role: Role
    account_id: int | None
    study: str | None = None


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
                raise StorageError("the last owner must remain an owner", remedy="make somebody else an owner first")
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
        study: str | None = None,
        replaces: bool = False,
    ) -> None:
        """Keep a link that can be used once. ``replaces`` ends the earlier ones by the same maker."""
        row = {
            "token_hash": token_hash(token),
            "role": _checked(role, STUDY_ROLES if study else ROLES),
            "account_id": account_id,
            "study": study,
            "made_by": by,
            "expires_at_ms": expires_at_ms,
        }
        with self.database.writing() as connection:
            if replaces:
                connection.execute(delete(account_links).where(account_links.c.made_by == by))
            connection.execute(insert(account_links), row)

    def link(self, token: str, at_ms: int) -> AccountLink | None:
        """What a link is for, or None when it is unknown, used or too old."""
        query = select(account_links.c.role, account_links.c.account_id, account_links.c.study).where(
            account_links.c.token_hash == token_hash(token), account_links.c.expires_at_ms > at_ms
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else AccountLink(*row)

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
                    "role": "guest" if row.study else row.role,
                    "password_hash": password_hash,
                    "is_active": True,
                    "created_at_ms": at_ms,
                }
                key = connection.execute(insert(accounts), new).inserted_primary_key
                assert key is not None
                account_id = int(key[0])
                if row.study:
                    role_row = {"account_id": account_id, "study": row.study, "role": row.role}
                    connection.execute(insert(study_roles), role_row)
            return Account(*connection.execute(select(accounts).where(accounts.c.id == account_id)).one())

    # sign-ins

    def sign_in(
        self, token: str, account_id: int, at_ms: int, *, expired_before_ms: int, needs_code: bool = False
    ) -> None:
        """Remember a browser by its secret; those not seen since ``expired_before_ms`` are forgotten."""
        row = {"token_hash": token_hash(token), "account_id": account_id, "began_at_ms": at_ms, "seen_at_ms": at_ms}
        row["needs_code"] = needs_code
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.seen_at_ms < expired_before_ms))
            connection.execute(insert(sign_ins), row)

    def signed_in(
        self, token: str, *, seen_since_ms: int, began_since_ms: int, needs_code: bool = False
    ) -> tuple[Account, int] | None:
        """The active account behind a browser's secret and when it was last seen; None for strangers and expired ones.

        A browser that has yet to give its second factor is a stranger, but for the page that asks for it (``needs_code``).
        """
        query = (
            select(accounts, sign_ins.c.seen_at_ms)
            .join(sign_ins, sign_ins.c.account_id == accounts.c.id)
            .where(
                sign_ins.c.token_hash == token_hash(token),
                sign_ins.c.seen_at_ms >= seen_since_ms,
                sign_ins.c.began_at_ms >= began_since_ms,
                sign_ins.c.needs_code.is_(needs_code),
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

    # second factor

    def set_second_factor(self, account_id: int, secret: str | None, codes: Iterable[str] = (), step: int = 0) -> None:
        """Turn the second factor on with its recovery codes, or off without a secret; browsers signed in stay so."""
        with self.database.assigning() as connection:
            connection.execute(
                update(accounts).where(accounts.c.id == account_id).values(totp_secret=secret, totp_step=step)
            )
            connection.execute(delete(recovery_codes).where(recovery_codes.c.account_id == account_id))
            rows = [{"account_id": account_id, "code_hash": token_hash(code)} for code in codes]
            if rows and secret is not None:
                connection.execute(insert(recovery_codes), rows)

    def use_step(self, account_id: int, step: int) -> bool:
        """Use the digits of a period up; False where they, or later ones, were used before."""
        unused = or_(accounts.c.totp_step.is_(None), accounts.c.totp_step < step)
        with self.database.assigning() as connection:
            changed = connection.execute(
                update(accounts).where(accounts.c.id == account_id, unused).values(totp_step=step)
            )
        return changed.rowcount == 1

    def use_recovery_code(self, account_id: int, code: str) -> bool:
        """Use a recovery code up; False where there is none such."""
        same = (recovery_codes.c.account_id == account_id, recovery_codes.c.code_hash == token_hash(code))
        with self.database.assigning() as connection:
            return connection.execute(delete(recovery_codes).where(*same)).rowcount == 1

    def n_recovery_codes(self, account_id: int) -> int:
        """How many recovery codes are left."""
        with self.database.reading() as connection:
            counted = select(func.count()).where(recovery_codes.c.account_id == account_id)
            return int(connection.scalar(counted) or 0)

    def complete_sign_in(self, token: str) -> None:
        """The second factor was right: the browser is signed in."""
        with self.database.writing() as connection:
            connection.execute(
                update(sign_ins).where(sign_ins.c.token_hash == token_hash(token)).values(needs_code=False)
            )

    # roles in single studies

    def study_roles(self) -> dict[int, dict[str, Role]]:
        """By account, the roles it has in single studies."""
        roles: dict[int, dict[str, Role]] = {}
        query = select(study_roles).order_by(study_roles.c.account_id, study_roles.c.study)
        with self.database.reading() as connection:
            for row in connection.execute(query):
                roles.setdefault(row.account_id, {})[row.study] = row.role
        return roles

    def studies_of(self, account_id: int) -> dict[str, Role]:
        """The roles of one account in single studies."""
        query = select(study_roles.c.study, study_roles.c.role).where(study_roles.c.account_id == account_id)
        with self.database.reading() as connection:
            return {row.study: row.role for row in connection.execute(query)}

    def set_study_role(self, account_id: int, study: str, role: Role | None) -> None:
        """Give an account a role in one study, or take it away."""
        same = (study_roles.c.account_id == account_id, study_roles.c.study == study)
        with self.database.assigning() as connection:
            connection.execute(delete(study_roles).where(*same))
            if role is not None:
                row = {"account_id": account_id, "study": study, "role": _checked(role, STUDY_ROLES)}
                connection.execute(insert(study_roles), row)

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


def _checked(role: Role, known: tuple[Role, ...] = ROLES) -> Role:
    if role not in known:
        raise StorageError(f"there is no role '{role}'", remedy=f"one of {', '.join(known)}")
    return role
