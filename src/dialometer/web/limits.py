"""How often somebody may do something: a bucket for each that fills with time."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from dialometer.errors import DialometerError

N_KEPT = 50_000
"""Buckets remembered; the one unused for longest goes first, and is full again if it comes back."""


class TooOften(DialometerError):
    """Somebody did something more often than is sensible; ``retry_after_s`` says when to try again."""

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("too many requests", remedy=f"try again in {retry_after_s:.0f} s")


class Buckets:
    """A limit per key: ``per_minute`` on average, and that many at once after a pause. 0 is no limit.

    Each process counts for itself, so with several of them the limit is looser.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_s = per_minute / 60
        self.size = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, key: str) -> float:
        """Takes one from the bucket and gives 0, or says how long to wait for one."""
        if not self.size:
            return 0.0
        now = self._clock()
        left, at = self._buckets.pop(key, (self.size, now))
        left = min(self.size, left + (now - at) * self.per_s)
        is_allowed = left >= 1
        self._buckets[key] = (left - 1 if is_allowed else left, now)
        if len(self._buckets) > N_KEPT:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - left) / self.per_s

    def take(self, key: str) -> None:
        """Takes one from the bucket; raises :class:`TooOften` when it is empty."""
        wait = self.wait_s(key)
        if wait:
            raise TooOften(wait)


def is_local(address: str) -> bool:
    """Whether a client is on this machine: a person at the keyboard, a test, or a proxy that does not tell for whom."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("", "localhost", "testclient")
