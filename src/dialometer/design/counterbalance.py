"""Williams squares: orders in which every condition follows every other equally often.

E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments, Australian Journal of
Scientific Research A 2 (1949).
"""

from __future__ import annotations


def williams(n: int) -> list[tuple[int, ...]]:
    """The rows of a Williams design for ``n`` conditions: ``n`` rows if ``n`` is even, ``2 n`` if it is odd.

    Over all rows each condition stands equally often at each place, and each ordered pair of neighbours occurs equally
    often (once for even ``n``, twice for odd), so first-order carry-over cancels.
    """
    if n < 1:
        raise ValueError("a Williams design needs at least one condition")
    first = [0]
    low, high = 1, n - 1
    while len(first) < n:
        first.append(low)
        low += 1
        if len(first) < n:
            first.append(high)
            high -= 1
    rows = [tuple((x + shift) % n for x in first) for shift in range(n)]
    if n % 2 and n > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return rows
