"""Work done ahead of time by another thread, in order: batches are put together while the device computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
_N_AHEAD = 4


def made_ahead(make: Callable[[A], B], wanted: Sequence[A]) -> Iterator[B]:
    """``make`` of each, a few ahead of the one that is asked for."""
    waiting: deque[Future[B]] = deque()
    with ThreadPoolExecutor(max_workers=2) as pool:
        try:
            for position in range(len(wanted) + _N_AHEAD):
                if position < len(wanted):
                    waiting.append(pool.submit(make, wanted[position]))
                if position >= _N_AHEAD and waiting:
                    yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
