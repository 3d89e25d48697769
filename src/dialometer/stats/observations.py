"""What statistics do with their arrays first: one length, numbers as float64, labels as small integers, ratings in a matrix.

Two layouts of ratings as items by raters are kept apart on purpose. In :func:`cross` a column is a person; in :func:`stack` a
column is only "the k-th judgment of the item", the right reading when every item was judged by other people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialometer.errors import DialometerError, NotEnoughData

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")
LARGEST_LOG = 700.0
"""Of which a computer can hold the exponential."""
MOST_UNUSED = 8
"""Labels that are whole numbers are counted rather than sorted up to so many possible ones for each that is given."""


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
    is_used = _used(array)
    if is_used is not None:
        number = np.cumsum(is_used, dtype=np.int32)
        number -= 1
        return number[array].astype(np.int64), np.flatnonzero(is_used)
    if array.dtype.kind == "O":
        array = array.astype(str)
    levels, inverse = np.unique(array, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64, copy=False), levels


def n_distinct(labels: NDArray[Any]) -> int:
    """How many different labels there are."""
    is_used = _used(labels)
    return len(np.unique(labels)) if is_used is None else int(np.count_nonzero(is_used))


def _used(array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """For whole numbers from 0 on, which of them occur; None for other labels and where the list would be too long."""
    if array.dtype.kind not in "iu" or not array.size or array.min() < 0:
        return None
    largest = int(array.max())
    if largest >= MOST_UNUSED * array.size + 1000 or largest >= 2**31 - 1:
        return None
    is_used = np.zeros(largest + 1, dtype=bool)
    is_used[array] = True
    return is_used


def from_the_highest(values: Mapping[T, float]) -> list[T]:
    """Names from the highest value to the lowest, those without one last.

    Values that are equal but for rounding keep the order that was given: else the processor would decide who comes first.
    """
    return sorted(values, key=lambda name: (math.isnan(values[name]), -round(values[name], 9)))


def exponential(log: float) -> float:
    """What no computer can hold, from an interval of hardly any data, is infinite."""
    return math.inf if log > LARGEST_LOG else math.exp(log)


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
    return (f"{n_missing} missing answer{'' if n_missing == 1 else 's'} excluded",)


@dataclass(frozen=True)
class RatingMatrix:
    """A matrix of ratings with the ids that its rows (items) and columns (raters) stand for; ``nan`` is a missing cell."""

    ratings: Floats
    items: tuple[Any, ...]
    raters: tuple[Any, ...]


def as_matrix(ratings: ArrayLike) -> Floats:
    """Ratings as floats, items by raters; anything that is not two-dimensional is refused."""
    matrix = np.asarray(ratings, dtype=np.float64)
    if matrix.ndim != 2:
        raise NotEnoughData(
            f"ratings must be a matrix of items by raters, not an array of {matrix.ndim} dimensions",
            remedy="lay the judgments out with dialometer.stats.observations.cross",
        )
    if np.isinf(matrix).any():
        raise NotEnoughData("ratings hold an infinite value", remedy="leave such judgments out or fix them")
    return matrix


def only(kept: NDArray[np.bool_], *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The kept entries of each array; the arrays themselves where all are kept, since a million rows are not copied for nothing."""
    return arrays if kept.all() else tuple(array[kept] for array in arrays)


def as_judgments(values: ArrayLike, *ids: ArrayLike) -> tuple[Floats, list[Ints], list[NDArray[Any]]]:
    """One row per judgment: the values, and each id column as codes 0..m-1 beside its distinct ids.

    Judgments whose value is missing (``nan``) are left out; the caller compares lengths to report them.
    """
    y = np.asarray(values, dtype=np.float64).ravel()
    columns = [np.asarray(column).ravel() for column in ids]
    if any(len(column) != len(y) for column in columns):
        lengths = ", ".join(str(len(column)) for column in columns)
        raise NotEnoughData(
            f"{len(y)} values but ids of length {lengths}", remedy="give one item and one rater for every value"
        )
    if np.isinf(y).any():
        raise NotEnoughData("judgments hold an infinite value", remedy="leave such judgments out or fix them")
    is_given = ~np.isnan(y)
    is_whole = bool(is_given.all())
    code_columns: list[Ints] = []
    names: list[NDArray[Any]] = []
    for column in columns:
        given = column if is_whole else column[is_given]
        # Labels of other kinds keep their type, which codes() would turn into text.
        if given.dtype.kind in "iu":
            code, distinct = codes(given)
        else:
            distinct, code = np.unique(given, return_inverse=True)
        code_columns.append(code.astype(np.int64, copy=False).ravel())
        names.append(distinct)
    return y if is_whole else y[is_given], code_columns, names


def cross(values: ArrayLike, items: ArrayLike, raters: ArrayLike) -> RatingMatrix:
    """The matrix of items by raters. A rater who judged an item twice is refused: which one counts is not ours to say."""
    y, (item, rater), (item_ids, rater_ids) = as_judgments(values, items, raters)
    cell = item * max(len(rater_ids), 1) + rater
    distinct, counts = np.unique(cell, return_counts=True)
    if (counts > 1).any():
        twice = int(distinct[counts > 1][0])
        raise NotEnoughData(
            f"rater {rater_ids[twice % len(rater_ids)]} judged item {item_ids[twice // len(rater_ids)]} more than once",
            remedy="keep one judgment of each rater and item",
        )
    matrix = np.full((len(item_ids), len(rater_ids)), np.nan)
    matrix[item, rater] = y
    return RatingMatrix(matrix, tuple(item_ids.tolist()), tuple(rater_ids.tolist()))


def stack(values: ArrayLike, items: ArrayLike, *, n_columns: int | None = None) -> RatingMatrix:
    """The k-th judgment of an item, in the order given, in column k; judgments beyond ``n_columns`` are left out.

    ``raters`` of the result are column y from 1, because the columns are not persons.
    """
    y, (item,), (item_ids,) = as_judgments(values, items)
    order = np.argsort(item, kind="stable")
    counts = np.bincount(item, minlength=len(item_ids))
    position = np.empty(len(item), dtype=np.int64)
    position[order] = np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(counts.max(initial=0)) if n_columns is None else n_columns
    matrix = np.full((len(item_ids), width), np.nan)
    is_kept = position < width
    matrix[item[is_kept], position[is_kept]] = y[is_kept]
    return RatingMatrix(matrix, tuple(item_ids.tolist()), tuple(range(1, width + 1)))


def positions(ratings: ArrayLike, labels: Sequence[Any]) -> Floats:
    """Each rating as its position in the scale's labels, ``nan`` where missing (None or ``nan``).

    The labels come from the scale, never from the data: a label nobody chose still counts in weights and chance agreement.
    """
    place = {label: position for position, label in enumerate(labels)}
    if len(place) != len(labels):
        raise NotEnoughData("a label is given twice", remedy="give each value of the scale once, in order")
    raw = np.asarray(ratings)
    if raw.dtype.kind in "iufb":  # numbers: look each distinct one up once
        distinct, code = np.unique(raw, return_inverse=True)
    else:
        distinct, code = raw.ravel(), np.arange(raw.size)
    place_of = np.array([_position(value, place) for value in distinct.tolist()], dtype=np.float64)
    return place_of[code.ravel()].reshape(raw.shape)


def _position(value: Any, place: Mapping[Any, int]) -> float:
    if value is None or value != value:  # noqa: PLR0124  (only nan differs from itself)
        return math.nan
    if value not in place:
        raise NotEnoughData(f"rating {value!r} is not a label of the scale", remedy=f"its labels are {list(place)}")
    return float(place[value])
