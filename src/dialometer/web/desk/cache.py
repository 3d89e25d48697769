"""Numbers that are shown again and again, computed seldom: watching a study must not slow its raters down."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")
FRESH_S = 2.0
MAX_SHARE = 0.05
"""Of the time at most so much goes into one number, however many watch."""
N_KEPT = 400


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    until: float = 0.0


class Cache:
    """Values by key. Several who ask at once wait for one computation; slow ones are kept the longer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[object, _Entry] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: object, make: Callable[[], T]) -> T:
        """The value, made anew when it is too old."""
        with self._guard:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > N_KEPT:
                self._entries.popitem(last=False)
        with entry.lock:
            began = self._clock()
            if began >= entry.until:
                entry.value = make()
                ended = self._clock()
                entry.until = ended + max(FRESH_S, (ended - began) / MAX_SHARE)
            return cast(T, entry.value)

    def clear(self) -> None:
        """Forgets everything, for those who have just changed something and want to see it."""
        with self._guard:
            self._entries.clear()
