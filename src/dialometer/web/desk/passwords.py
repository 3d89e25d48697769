"""Passwords: kept as argon2 hashes, and tried slower and slower when they are wrong."""

from __future__ import annotations

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from dialometer.errors import DialometerError

MIN_LENGTH = 12
MAX_LENGTH = 200
N_FREE = 3
"""Wrong passwords before the waiting begins: people mistype."""
MAX_WAIT_S = 300

_hasher = PasswordHasher()
# Hashing takes memory on purpose; a few at a time keep a crowd of attempts from taking all of it.
_few_at_a_time = threading.Semaphore(2)


@cache
def _of_nobody() -> str:
    return _hasher.hash("nobody has this password")


class WeakPassword(DialometerError):
    """A password that is too easy to guess; the message says why."""


def hash_password(password: str, name: str) -> str:
    """The hash to keep; raises :class:`WeakPassword`. Length is what counts, so nothing else is asked for."""
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise WeakPassword(f"a password has at least {MIN_LENGTH} characters", remedy="a few words together are good")
    if len(set(password)) < 5 or (name and name.lower() in password.lower() and len(password) < len(name) + 8):
        raise WeakPassword("this password is easy to guess", remedy="a few words together are good")
    with _few_at_a_time:
        return _hasher.hash(password)


def is_right(password: str, password_hash: str | None) -> bool:
    """Whether a password is the one that was hashed. Without a hash it takes as long and is never right."""
    with _few_at_a_time:
        try:
            right = _hasher.verify(password_hash or _of_nobody(), password[:MAX_LENGTH])
        except (Argon2Error, InvalidHashError):
            return False
    return right and password_hash is not None


def wait_s(n_failures: int, last_at_ms: int, now_ms: int) -> float:
    """How long to wait before the next attempt is looked at: doubling with every failure after the first few."""
    if n_failures < N_FREE:
        return 0.0
    wait = min(MAX_WAIT_S, 2.0 ** (n_failures - N_FREE + 1))
    return max(0.0, wait - (now_ms - last_at_ms) / 1000)
