"""Nearness in a feature space, in blocks of bounded size: the common ground of smoothing and Shapley values."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.neural.engines import THREADS, n_threads_allowed

Features = NDArray[np.float32]
Numbers = NDArray[np.int64]
Report = Callable[[int, int], None]
DEFAULT_BLOCK_BYTES = 512 * 2**20
_MOST_ROWS = 256
"""Queries whose neighbours are looked for together."""


def is_compiled() -> bool:
    """Whether the compiled loops can be used; without numba plain numpy gives the same, more slowly."""
    return importlib.util.find_spec("numba") is not None


def standardise(
    features: NDArray[np.floating], reference: NDArray[np.floating] | None = None, rows_at_a_time: int = 65_536
) -> Features:
    """Features with mean 0 and deviation 1 in each dimension of ``reference`` (themselves by default).

    Dimensions that hardly vary are left centred, not divided: dividing by almost nothing would let noise decide who is near.
    Double precision is used for a block of rows at a time, so that a large memory-mapped file fits.
    """
    base = features if reference is None else reference
    blocks = [slice(start, start + rows_at_a_time) for start in range(0, len(base), rows_at_a_time)]
    mean = sum(np.asarray(base[rows], dtype=np.float64).sum(axis=0) for rows in blocks) / max(1, len(base))
    squares = sum(((base[rows] - mean) ** 2).sum(axis=0) for rows in blocks) / max(1, len(base))
    deviation = np.sqrt(np.asarray(squares, dtype=np.float64))
    alive = deviation > 1e-6 * max(float(deviation.max(initial=0.0)), 1e-12)
    scale = np.where(alive, deviation, 1.0)
    result = np.empty(features.shape, dtype=np.float32)
    for start in range(0, len(features), rows_at_a_time):
        rows = slice(start, start + rows_at_a_time)
        result[rows] = (features[rows] - mean) / scale
    return result


def as_points(features: NDArray[np.floating]) -> Features:
    """Features in the form that the blocks need; memory-mapped files of that form are not copied."""
    return np.ascontiguousarray(features, dtype=np.float32)


def squared_norms(points: Features) -> Features:
    """Squared lengths, which turn products into distances; features that are no numbers are refused here."""
    norms = np.einsum("ij,ij->i", points, points)
    if not np.isfinite(norms).all():
        wrong = int(np.flatnonzero(~np.isfinite(norms))[0])
        raise DialometerError(
            f"the features of dialogue number {wrong + 1} are not finite numbers", remedy="check the encoder"
        )
    return np.asarray(norms)


def product_blocks(
    queries: Features, points: Features, block_bytes: int = DEFAULT_BLOCK_BYTES
) -> Iterator[tuple[int, Features]]:
    """Blocks of rows of the matrix of products, each with the number of its first query."""
    n_rows = max(1, block_bytes // max(1, 4 * len(points)))
    for start in range(0, len(queries), n_rows):
        yield start, queries[start : start + n_rows] @ points.T


def distance_blocks(
    queries: NDArray[np.floating], points: NDArray[np.floating], block_bytes: int = DEFAULT_BLOCK_BYTES
) -> Iterator[tuple[int, Features]]:
    """Blocks of rows of the squared-distance matrix, each with the number of its first query.

    The queries' own norms are left out: they shift a row by a constant and change neither order nor neighbours.
    """
    points = as_points(points)
    norms = squared_norms(points)
    for start, products in product_blocks(as_points(queries), points, block_bytes):
        np.multiply(products, -2.0, out=products)
        yield start, np.add(products, norms, out=products)


def nearest(
    features: NDArray[np.floating],
    k: int,
    *,
    is_self_included: bool = False,
    report: Report | None = None,
) -> tuple[Numbers, Features]:
    """Numbers of the ``k`` points nearest to each point, nearest first, and their Euclidean distances.

    No point is its own neighbour unless ``is_self_included``.
    """
    is_own = not is_self_included
    if len(features) < k + is_own:
        raise NotEnoughData(
            f"{len(features)} rated dialogues are too few for {k} neighbours",
            remedy="use a smaller K or more dialogues",
        )
    points = as_points(features)
    norms = squared_norms(points)
    space = _Space(points, norms, k, is_own)
    n_rows = max(1, min(_MOST_ROWS, DEFAULT_BLOCK_BYTES // n_threads_allowed() // (4 * len(points))))
    parts = [slice(start, min(start + n_rows, len(points))) for start in range(0, len(points), n_rows)]
    numbers = np.empty((len(points), k), dtype=np.int64)
    distances = np.empty((len(points), k), dtype=np.float32)
    for part, (near, far) in zip(parts, THREADS.run(_nearest_of_part, space, parts), strict=True):
        numbers[part], distances[part] = near, far
        if report is not None:
            report(part.stop, len(points))
    distances += norms[:, None]
    return numbers, np.sqrt(np.maximum(distances, 0.0))


@dataclass(frozen=True, slots=True)
class _Space:
    points: Features
    norms: Features
    k: int
    is_own: bool


def _nearest_of_part(space: _Space, part: slice) -> tuple[Numbers, Features]:
    products = space.points[part] @ space.points.T
    own = np.arange(part.start, part.stop) if space.is_own else np.full(len(products), -1)
    numbers = np.empty((len(products), space.k), dtype=np.int64)
    distances = np.empty((len(products), space.k), dtype=np.float32)
    if is_compiled():
        from dialometer.learned.cmade.sorted_rows import nearest_of_rows  # noqa: PLC0415 (an extra)

        nearest_of_rows(products, space.norms, own, numbers, distances)
        return numbers, distances
    block = space.norms - 2 * products
    if space.is_own:
        block[np.arange(len(block)), own] = np.inf
    some = np.sort(np.argpartition(block, space.k - 1, axis=1)[:, : space.k], axis=1)
    order = np.argsort(np.take_along_axis(block, some, axis=1), axis=1, kind="stable")
    numbers = np.take_along_axis(some, order, axis=1)
    return numbers, np.take_along_axis(block, numbers, axis=1)


# Stage 2: ratings smoothed by their nearest neighbours in the feature space (Liang et al. 2020, section 5.2).


Floats = NDArray[np.float64]
DEFAULT_K = 50


def knn_smooth(
    features: NDArray[np.floating],
    ratings: Floats,
    k: int = DEFAULT_K,
    *,
    is_self_included: bool = False,
    report: Report | None = None,
) -> Floats:
    """The mean rating of each dialogue's ``k`` nearest others.

    The paper does not say whether a dialogue is its own neighbour; here it is not, because its own noisy rating is what is
    to be smoothed (``is_self_included`` brings the other reading).
    """
    numbers, _ = nearest(features, k, is_self_included=is_self_included, report=report)
    return np.asarray(np.asarray(ratings, dtype=np.float64)[numbers].mean(axis=1))
