"""What every statistic does with its arrays first: one length, numbers as float64, labels as small integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialometer.errors import DialometerError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def numbers(values: ArrayLike) -> Floats:
    """One-dimensional float64; ``None`` and missing answers become ``nan`` and are never counted as zero."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DialometerError(
            f"expected one row of numbers, got {array.ndim} dimensions", remedy="flatten the array first"
        )
    return array


def codes(labels: ArrayLike) -> tuple[Ints, NDArray[Any]]:
    """Labels as integers from 0 with the sorted levels; counting sort for small integers keeps a million rows cheap."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise DialometerError(
            f"expected one row of labels, got {array.ndim} dimensions", remedy="flatten the array first"
        )
    if array.dtype.kind in "iu" and array.size and array.min() >= 0 and array.max() < 4 * array.size + 1000:
        is_used = np.bincount(array) > 0
        return (np.cumsum(is_used) - 1)[array].astype(np.int64, copy=False), np.flatnonzero(is_used)
    if array.dtype.kind == "O":
        array = array.astype(str)
    levels, inverse = np.unique(array, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64, copy=False), levels


def same_length(**arrays: NDArray[Any]) -> int:
    """The common length; arrays of different lengths are a fault of the caller, named in the message."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise DialometerError(f"arrays of different lengths: {described}", remedy="give one entry per judgment in each")
    return next(iter(lengths.values()))


def two_samples(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats, tuple[str, ...]]:
    """The given numbers of two independent groups, and the remark on those that are missing."""
    a, b = numbers(first), numbers(second)
    kept_a, kept_b = a[~np.isnan(a)], b[~np.isnan(b)]
    return kept_a, kept_b, missing_note(len(a) + len(b) - len(kept_a) - len(kept_b))


def check_confidence(confidence: float) -> float:
    """A confidence level is a share such as 0.95; 95 is refused rather than guessed at."""
    if not 0 < confidence < 1:
        raise DialometerError(f"confidence is {confidence}", remedy="give a share between 0 and 1, such as 0.95")
    return confidence


def missing_note(n_missing: int) -> tuple[str, ...]:
    """The remark that goes with an estimate when answers were missing, so that none vanish in silence."""
    if not n_missing:
        return ()
    return (f"{n_missing} missing answer{'' if n_missing == 1 else 's'} left out",)
