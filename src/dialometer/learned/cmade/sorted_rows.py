"""Compiled loops over rows of products: order of distance and Shapley values, or the nearest few, row by row.

A row holds the products of one query with all points; with the points' squared norms it becomes squared distances as it is
read, so that the matrix of distances is never written. Rows are put in order by a radix sort of the distances' bits, which
is stable: of points equally far away the one that comes first counts as nearer. Threads may run these at the same time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_LOW_HALF = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(255)


@njit(cache=True, nogil=True)
def _sort_by_distance(products: Any, norms: Any, first: Any, second: Any, counts: Any) -> None:
    """Numbers of the points in order of distance, into the low halves of ``first``; four passes of one byte each."""
    n = len(products)
    counts[:] = 0
    distance = np.empty(1, dtype=np.float32)
    bits = distance.view(np.uint32)
    for i in range(n):
        distance[0] = norms[i] - np.float32(2.0) * products[i]
        # Bits of floating-point numbers order like integers once the sign is turned and negative ones are reversed.
        turned = bits[0] ^ (np.uint32(0xFFFFFFFF) if bits[0] >> np.uint32(31) else np.uint32(0x80000000))
        first[i] = (np.uint64(turned) << np.uint64(32)) | np.uint64(i)
        for place in range(4):
            counts[place, (turned >> np.uint32(8 * place)) & np.uint32(255)] += np.uint32(1)
    for place in range(4):
        shift = np.uint64(32 + 8 * place)
        before = np.uint32(0)
        for value in range(256):
            n_here = counts[place, value]
            counts[place, value] = before
            before += n_here
        source, target = (first, second) if place % 2 == 0 else (second, first)
        for i in range(n):
            key = source[i]
            value = (key >> shift) & _BYTE
            target[counts[place, value]] = key
            counts[place, value] += np.uint32(1)


@njit(cache=True, nogil=True)
def add_row_values(products: Any, norms: Any, weights: Any, ratings: Any, shares: Any, values: Any) -> None:
    """Adds to ``values`` the weighted Shapley values for every row of a block of products, row after row."""
    n = products.shape[1]
    first, second = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    counts = np.empty((4, 256), dtype=np.uint32)
    for row in range(products.shape[0]):
        _sort_by_distance(products[row], norms, first, second, counts)
        # s_m = s_{m+1} + (y_m - y_{m+1}) min(K, m) / (K m), from the farthest to the nearest
        farther, value = 0.0, 0.0
        for m in range(n - 1, -1, -1):
            i = first[m] & _LOW_HALF
            value += (ratings[i] - farther) * shares[m]
            farther = ratings[i]
            values[i] += weights[row] * value


@njit(cache=True, nogil=True)
def nearest_of_rows(products: Any, norms: Any, own: Any, numbers: Any, distances: Any) -> None:
    """The nearest points of every row, nearest first, without the point that is the query itself.

    ``own`` names that point for each row, or -1. Distances lack the query's own norm.
    """
    n, k = products.shape[1], numbers.shape[1]
    for row in range(products.shape[0]):
        n_found = 0
        for i in range(n):
            distance = norms[i] - np.float32(2.0) * products[row, i]
            if i == own[row] or (n_found == k and distance >= distances[row, k - 1]):
                continue
            place = n_found if n_found < k else k - 1
            while place > 0 and distances[row, place - 1] > distance:
                distances[row, place] = distances[row, place - 1]
                numbers[row, place] = numbers[row, place - 1]
                place -= 1
            distances[row, place] = distance
            numbers[row, place] = i
            n_found += n_found < k
