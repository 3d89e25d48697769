"""Squared Euclidean distances in blocks of bounded size: the common ground of smoothing and Shapley values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]
DEFAULT_BLOCK_BYTES = 256 * 2**20


def standardise(features: NDArray[np.floating], reference: NDArray[np.floating] | None = None) -> Features:
    """Features with mean 0 and deviation 1 in each dimension of ``reference`` (themselves if left out).

    Dimensions that hardly vary are left centred, not divided: dividing by almost nothing would let noise decide who is near.
    """
    base = np.asarray(features if reference is None else reference, dtype=np.float64)
    mean, deviation = base.mean(axis=0), base.std(axis=0)
    alive = deviation > 1e-6 * max(float(deviation.max(initial=0.0)), 1e-12)
    return np.asarray((features - mean) / np.where(alive, deviation, 1.0), dtype=np.float32)


def distance_blocks(
    queries: NDArray[np.floating], points: NDArray[np.floating], block_bytes: int = DEFAULT_BLOCK_BYTES
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Blocks of rows of the squared-distance matrix, each with the number of its first query.

    The queries' own norms are left out: they shift a row by a constant and change neither order nor neighbours.
    """
    points = np.ascontiguousarray(points, dtype=np.float32)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    norms = np.einsum("ij,ij->i", points, points)
    n_rows = max(1, block_bytes // max(1, 4 * len(points)))
    for start in range(0, len(queries), n_rows):
        block = queries[start : start + n_rows] @ points.T
        block *= -2.0
        block += norms
        yield start, block
