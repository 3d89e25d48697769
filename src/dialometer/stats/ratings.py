"""Judgments laid out as items by raters, the form that every agreement statistic starts from.

Two layouts are kept apart on purpose. In :func:`cross` a column is a person; in :func:`stack` a column is only "the k-th
judgment of the item", the right reading when every item was judged by other people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialometer.errors import NotEnoughData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Crossed:
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
            remedy="lay the judgments out with dialometer.stats.ratings.cross",
        )
    if np.isinf(matrix).any():
        raise NotEnoughData("ratings hold an infinite value", remedy="leave such judgments out or mend them")
    return matrix


def as_judgments(values: ArrayLike, *ids: ArrayLike) -> tuple[Floats, list[Integers], list[NDArray[Any]]]:
    """One row per judgment: the values, and each id column as codes 0..m-1 beside its distinct ids.

    Judgments whose value is missing (``nan``) are left out; the caller compares lengths to report them.
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    columns = [np.asarray(column).ravel() for column in ids]
    if any(len(column) != len(numbers) for column in columns):
        lengths = ", ".join(str(len(column)) for column in columns)
        raise NotEnoughData(
            f"{len(numbers)} values but ids of length {lengths}", remedy="give one item and one rater for every value"
        )
    if np.isinf(numbers).any():
        raise NotEnoughData("judgments hold an infinite value", remedy="leave such judgments out or mend them")
    is_given = ~np.isnan(numbers)
    codes: list[Integers] = []
    names: list[NDArray[Any]] = []
    for column in columns:
        distinct, code = np.unique(column[is_given], return_inverse=True)
        codes.append(code.astype(np.int64).ravel())
        names.append(distinct)
    return numbers[is_given], codes, names


def cross(values: ArrayLike, items: ArrayLike, raters: ArrayLike) -> Crossed:
    """The matrix of items by raters. A rater who judged an item twice is refused: which one counts is not ours to say."""
    numbers, (item, rater), (item_ids, rater_ids) = as_judgments(values, items, raters)
    cell = item * max(len(rater_ids), 1) + rater
    distinct, counts = np.unique(cell, return_counts=True)
    if (counts > 1).any():
        twice = int(distinct[counts > 1][0])
        raise NotEnoughData(
            f"rater {rater_ids[twice % len(rater_ids)]} judged item {item_ids[twice // len(rater_ids)]} more than once",
            remedy="keep one judgment of each rater and item",
        )
    matrix = np.full((len(item_ids), len(rater_ids)), np.nan)
    matrix[item, rater] = numbers
    return Crossed(matrix, tuple(item_ids.tolist()), tuple(rater_ids.tolist()))


def stack(values: ArrayLike, items: ArrayLike, *, n_columns: int | None = None) -> Crossed:
    """The k-th judgment of an item, in the order given, in column k; judgments beyond ``n_columns`` are left out.

    ``raters`` of the result are column numbers from 1, because the columns are not persons.
    """
    numbers, (item,), (item_ids,) = as_judgments(values, items)
    order = np.argsort(item, kind="stable")
    counts = np.bincount(item, minlength=len(item_ids))
    position = np.empty(len(item), dtype=np.int64)
    position[order] = np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(counts.max(initial=0)) if n_columns is None else n_columns
    matrix = np.full((len(item_ids), width), np.nan)
    is_kept = position < width
    matrix[item[is_kept], position[is_kept]] = numbers[is_kept]
    return Crossed(matrix, tuple(item_ids.tolist()), tuple(range(1, width + 1)))


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
