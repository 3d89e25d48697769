"""Login: passwords, signing in, one-time links, and which account a browser belongs to."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from dialometer.errors import DialometerError
from dialometer.flow.engine import now_ms
from dialometer.storage.access.accounts import Account, AccountLink, Accounts, Role
from dialometer.storage.access.audit_log import AuditLog
from dialometer.web.dashboard.second_factor import clean_code, matching_step
from dialometer.web.server.security import TooOften

MIN_LENGTH = 12
MAX_LENGTH = 200
N_FREE = 3
"""Wrong passwords before waiting is required."""
MAX_WAIT_S = 300

_hasher = PasswordHasher()
# Hashing uses much memory on purpose, so only a few run at a time.
_few_at_a_time = threading.Semaphore(2)


@cache
def _of_nobody() -> str:
    return _hasher.hash("nobody has this password")


class WeakPassword(DialometerError):
    """A password that is too easy to guess; the message says why."""


def hash_password(password: str, name: str) -> str:
    """The hash to store; raises :class:`WeakPassword`. Only length is required, since that is what counts."""
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise WeakPassword(f"a password has at least {MIN_LENGTH} characters", remedy="a few words together are good")
    if len(set(password)) < 5 or (name and name.lower() in password.lower() and len(password) < len(name) + 8):
        raise WeakPassword("this password is easy to guess", remedy="a few words together are good")
    with _few_at_a_time:
        return _hasher.hash(password)


def is_right(password: str, password_hash: str | None) -> bool:
    """Whether a password matches its hash. Without a hash (nobody, or an account of a provider) it takes as long and is never
    right."""
    with _few_at_a_time:
        try:
            right = _hasher.verify(password_hash or _of_nobody(), password[:MAX_LENGTH])
        except (Argon2Error, InvalidHashError):
            return False
    return right and bool(password_hash)


def wait_s(n_failures: int, last_at_ms: int, now_ms: int) -> float:
    """How long to wait before the next attempt; it doubles with every failure after the first few."""
    if n_failures < N_FREE:
        return 0.0
    wait = min(MAX_WAIT_S, 2.0 ** (n_failures - N_FREE + 1))
    return max(0.0, wait - (now_ms - last_at_ms) / 1000)


IDLE_MS = 12 * 3600 * 1000
"""A browser that was idle for this long must sign in again."""
LONGEST_MS = 7 * 24 * 3600 * 1000
"""After this time everybody must sign in again."""
SEEN_EVERY_MS = 60_000
LINK_MS = 3 * 24 * 3600 * 1000
CODE_MS = 10 * 60_000
"""For so long after the password the second factor can be given."""
LINKING = "link with the provider"
"""What the link on one's own page signs, so that nobody else can begin to link an account with a provider."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._@+\-]{1,63}")


class NotSignedIn(DialometerError):
    """A request without a valid login."""


class NotAllowed(DialometerError):
    """An account without the role that is needed."""


class DeadLink(DialometerError):
    """A one-time link that was used, has expired or never existed."""


class WrongPassword(DialometerError):
    """Name and password do not match; the message does not say which is wrong."""


class WrongCode(DialometerError):
    """The second factor is wrong, or was used already."""


class Login:
    """Signing in and out, one-time links, and which account a browser belongs to."""

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        self.audit = AuditLog(accounts.database)

    def account_of(self, secret: str, at_ms: int) -> Account:
        """The account behind a browser's secret; raises :class:`NotSignedIn`."""
        known = None
        if secret:
            known = self.accounts.signed_in(secret, seen_since_ms=at_ms - IDLE_MS, began_since_ms=at_ms - LONGEST_MS)
        if known is None:
            raise NotSignedIn("please sign in", remedy="open the dashboard's address")
        account, seen_at_ms = known
        if at_ms - seen_at_ms > SEEN_EVERY_MS:
            self.accounts.see_again(secret, at_ms)
        return account

    def sign_in(self, name: str, password: str, at_ms: int, address: str = "") -> tuple[str, Account]:
        """A new secret for a browser; raises :class:`WrongPassword`, or :class:`TooOften` after several from this address.

        A name is slowed for one address only: a stranger who guesses passwords must not lock the owner out. Where the account
        has a second factor, the secret opens nothing but the page that asks for it.
        """
        clean = name.strip().lower()[:64]
        guessing = self._slow_down(clean, at_ms, address)
        account = self.accounts.named(clean)
        is_known = account is not None and account.is_active
        if not is_right(password, account.password_hash if account is not None and is_known else None):
            self.accounts.note_failure(guessing, at_ms)
            if account is not None:  # what was typed as a name can be a password: only names of accounts are logged
                self.audit.add(account.name, "failed to sign in", "wrong password" if is_known else "closed", at_ms)
            raise WrongPassword("the name or the password is wrong")
        assert account is not None
        self.accounts.forget_failures(guessing)
        if not account.has_second_factor:
            self.audit.add(account.name, "signed in", "", at_ms)
        return self._remember(account, at_ms, needs_code=account.has_second_factor), account

    def _slow_down(self, name: str, at_ms: int, address: str) -> str:
        """Raises :class:`TooOften` after several failures; what a failure is counted under."""
        guessing = f"{name} {hashlib.blake2b(address.encode(), digest_size=8).hexdigest()}"
        wait = wait_s(*self.accounts.failures(guessing, at_ms), at_ms)
        if wait:
            raise TooOften(wait)
        return guessing

    def asked_for_code(self, secret: str, at_ms: int) -> Account:
        """The account whose password was right a moment ago and whose second factor is still to come."""
        since = at_ms - CODE_MS
        known = (
            self.accounts.signed_in(secret, seen_since_ms=since, began_since_ms=since, needs_code=True)
            if secret
            else None
        )
        if known is None:
            raise NotSignedIn("please sign in", remedy="open the dashboard's address")
        return known[0]

    def give_code(self, secret: str, code: str, at_ms: int, address: str = "") -> Account:
        """The second factor: six digits of the app, or a recovery code. Each is good once; wrong ones are slowed like passwords."""
        account = self.asked_for_code(secret, at_ms)
        guessing = self._slow_down(f"code of {account.name}", at_ms, address)
        if not self._is_right_code(account, code, at_ms):
            self.accounts.note_failure(guessing, at_ms)
            self.audit.add(account.name, "failed to sign in", "wrong code", at_ms)
            raise WrongCode(
                "this code is wrong or was used already", remedy="wait for the next one, and check the clock"
            )
        self.accounts.forget_failures(guessing)
        self.accounts.complete_sign_in(secret)
        return account

    def _is_right_code(self, account: Account, code: str, at_ms: int) -> bool:
        step = matching_step(account.totp_secret or "", code[:20], at_ms)
        if step is not None:
            is_new = self.accounts.use_step(account.id, step)
            if is_new:
                self.audit.add(account.name, "signed in", "with the second factor", at_ms)
            return is_new
        if self.accounts.use_recovery_code(account.id, clean_code(code[:40])):
            left = self.accounts.n_recovery_codes(account.id)
            self.audit.add(account.name, "signed in with a recovery code", f"{left} left", at_ms)
            return True
        return False

    def sign_out(self, secret: str, at_ms: int) -> None:
        """Forgets a browser."""
        try:
            account = self.account_of(secret, at_ms)
        except NotSignedIn:
            return
        self.accounts.sign_out(secret)
        self.audit.add(account.name, "signed out", "", at_ms)

    def _remember(self, account: Account, at_ms: int, *, needs_code: bool = False) -> str:
        secret = secrets.token_urlsafe(32)
        expired = at_ms - IDLE_MS
        self.accounts.sign_in(secret, account.id, at_ms, expired_before_ms=expired, needs_code=needs_code)
        return secret

    def link(self, token: str, at_ms: int) -> AccountLink | None:
        """What a one-time link is for."""
        return self.accounts.link(token, at_ms) if token else None

    def join(self, token: str, name: str, password: str, at_ms: int) -> tuple[str, Account]:
        """Uses a one-time link: a new account, or a new password; signed in at once."""
        link = self.link(token, at_ms)
        if link is None:
            raise DeadLink("this link was used already or is too old", remedy="ask an owner for a new one")
        clean = name.strip().lower() if link.account_id is not None else self.checked_name(name)
        account = self.accounts.use_link(token, clean, hash_password(password, clean), at_ms)
        what = "made the account" if link.account_id is None else "set a new password"
        self.audit.add(account.name, what, account.role, at_ms)
        return self._remember(account, at_ms, needs_code=account.has_second_factor), account

    def checked_name(self, name: str) -> str:
        """A name as accounts have it; raises where it cannot be one."""
        clean = name.strip().lower()
        if not _NAME.fullmatch(clean):
            raise DialometerError("a name has 2 to 64 letters, digits or . _ - @ +", remedy="an e-mail address is fine")
        return clean

    def sign_in_at_provider(self, account: Account, at_ms: int) -> str:
        """A new secret for the browser of somebody whom a provider has proven; a second factor is the provider's matter."""
        return self._remember(account, at_ms)

    def invite(
        self, role: Role, *, by: str, at_ms: int, account_id: int | None = None, study: str | None = None
    ) -> str:
        """The token of a new one-time link."""
        token = secrets.token_urlsafe(24)
        expires_at_ms = at_ms + LINK_MS
        self.accounts.make_link(token, role, by=by, expires_at_ms=expires_at_ms, account_id=account_id, study=study)
        return token


def first_owner_token(accounts: Accounts, *, is_asked: bool = False) -> str:
    """The token of a one-time link for an owner, where there is no account yet or one is asked for; else empty."""
    if accounts.all() and not is_asked:
        return ""
    token = secrets.token_urlsafe(24)
    accounts.make_link(token, "owner", by="the server's start", expires_at_ms=now_ms() + LINK_MS, replaces=True)
    return token
