"""Raters use their own ranges; these transforms put their numbers on one footing before raters are compared.

Magnitude estimates are ratios, so they are taken to logarithms and each rater's mean logarithm is subtracted, that is, every
estimate is divided by the rater's geometric mean (Bard, Robertson & Sorace 1996). The logarithm has no value at zero: what
happens there is declared, counted and reported, never silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.registry import did_you_mean
from dialometer.stats.observations import Floats, Ints, codes

Normalisation = Literal["raw", "ln", "ln_center", "ln_z", "raw_center", "raw_z", "minmax"]
ZeroRule = Literal["exclude", "half_minimum", "error"]


@dataclass(frozen=True)
class Normalised:
    """Normalised values in the order given (``nan`` = missing or excluded) and an account of what was done to get them."""

    values: Floats
    method: Normalisation
    zeros: ZeroRule
    n: int
    n_missing: int
    n_zero: int
    n_negative: int
    n_replaced: int
    n_excluded: int
    constant_raters: tuple[Any, ...]
    """Raters who gave one value only (or one judgment): they carry no information after z or min-max, where they get 0."""
    raters_without_positive: tuple[Any, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The account in sentences, for a report."""
        sentences = []
        if self.n_replaced:
            counts = f"{self.n_zero} zero and {self.n_negative} negative"
            sentences.append(
                f"{self.n_replaced} of {counts} estimates replaced by half of the rater's smallest positive one"
            )
        if self.n_excluded:
            sentences.append(f"{self.n_excluded} zero or negative estimates excluded, because they have no logarithm")
        if self.raters_without_positive:
            sentences.append(f"no positive estimate by: {_listed(self.raters_without_positive)}")
        if self.constant_raters:
            sentences.append(f"always the same value by: {_listed(self.constant_raters)}")
        if self.n_missing:
            sentences.append(f"{self.n_missing} missing estimates")
        return tuple(sentences)


def normalise(
    values: ArrayLike,
    raters: ArrayLike,
    method: Normalisation = "ln_center",
    *,
    zeros: ZeroRule = "half_minimum",
    modulus: float | None = None,
) -> Normalised:
    """Normalise each rater's values over all judgments given.

    ``raw`` as given; ``ln`` logarithm (of the ratio to ``modulus`` where one is given); ``ln_center`` minus the rater's mean
    logarithm; ``ln_z`` that over the rater's standard deviation (n - 1); ``raw_center``, ``raw_z`` the same without
    logarithm; ``minmax`` the rater's range to 0..1. A rater without spread gets 0 from z and min-max and is named.
    Checked against the independent values for the RankME ratings (R psych 2.2.9 on the same transforms).
    """
    if method not in get_args(Normalisation):
        raise UnknownName(
            f"unknown normalisation '{method}'", remedy=did_you_mean(method, list(get_args(Normalisation)))
        )
    if zeros not in get_args(ZeroRule):
        raise UnknownName(f"unknown rule for zeros '{zeros}'", remedy=did_you_mean(zeros, list(get_args(ZeroRule))))
    if modulus is not None and not modulus > 0:
        raise NotEnoughData(
            f"a modulus of {modulus:g} has no logarithm", remedy="give the positive number shown to raters"
        )
    numbers = np.asarray(values, dtype=np.float64).ravel().copy()
    ids = np.asarray(raters).ravel()
    if len(ids) != len(numbers):
        raise NotEnoughData(f"{len(numbers)} values but {len(ids)} raters", remedy="give one rater for every value")
    if ids.dtype.kind in "iu":
        rater, names = codes(ids)
    else:  # names keep their type, which codes() would turn into text
        names, rater = np.unique(ids, return_inverse=True)
    n_missing = int(np.isnan(numbers).sum())
    n_zero, n_negative = int(np.sum(numbers == 0)), int(np.sum(numbers < 0))
    n_replaced = n_excluded = 0
    without: tuple[Any, ...] = ()
    if method.startswith("ln"):
        numbers, n_replaced, n_excluded, lacking = _make_positive(numbers, rater, len(names), zeros)
        without = tuple(names[lacking].tolist())
        numbers = np.log(numbers) - (np.log(modulus) if modulus is not None else 0.0)
    constant = _constant(numbers, rater, len(names))
    return Normalised(
        values=_transform(numbers, rater, len(names), method, constant),
        method=method,
        zeros=zeros,
        n=len(numbers),
        n_missing=n_missing,
        n_zero=n_zero,
        n_negative=n_negative,
        n_replaced=n_replaced,
        n_excluded=n_excluded,
        constant_raters=tuple(names[constant].tolist()),
        raters_without_positive=without,
    )


def _make_positive(numbers: Floats, rater: Ints, n_raters: int, zeros: ZeroRule) -> tuple[Floats, int, int, Ints]:
    """Zeros and negatives replaced or made ``nan`` by the rule; the raters who have nothing positive."""
    bad = numbers <= 0
    if zeros == "error" and bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise NotEnoughData(
            f"{int(bad.sum())} estimates are zero or negative (the first is number {first + 1}: {numbers[first]:g})",
            remedy="declare the rule for zeros: exclude or half_minimum",
        )
    smallest = np.full(n_raters, np.inf)
    positive = numbers > 0
    np.minimum.at(smallest, rater[positive], numbers[positive])
    has_any = np.bincount(rater[bad | positive], minlength=n_raters) > 0
    lacking = np.flatnonzero(np.isinf(smallest) & has_any)
    mended = numbers.copy()
    if zeros == "half_minimum":
        smallest[np.isinf(smallest)] = np.nan
        mended[bad] = smallest[rater[bad]] / 2
    else:
        mended[bad] = np.nan
    n_excluded = int(np.isnan(mended[bad]).sum())
    return mended, int(bad.sum()) - n_excluded, n_excluded, lacking


def _extremes(numbers: Floats, rater: Ints, n_raters: int) -> tuple[Floats, Floats]:
    is_rated = ~np.isnan(numbers)
    low, high = np.full(n_raters, np.inf), np.full(n_raters, -np.inf)
    np.minimum.at(low, rater[is_rated], numbers[is_rated])
    np.maximum.at(high, rater[is_rated], numbers[is_rated])
    return low, high


def _constant(numbers: Floats, rater: Ints, n_raters: int) -> Ints:
    low, high = _extremes(numbers, rater, n_raters)
    return np.flatnonzero(low == high)


def _transform(numbers: Floats, rater: Ints, n_raters: int, method: Normalisation, constant: Ints) -> Floats:
    if method in ("raw", "ln"):
        return numbers
    if method == "minmax":
        low, high = _extremes(numbers, rater, n_raters)
        spread = high - low
        centre = low
    else:
        is_rated = ~np.isnan(numbers)
        count = np.bincount(rater[is_rated], minlength=n_raters)
        centre = np.bincount(rater[is_rated], weights=numbers[is_rated], minlength=n_raters) / np.maximum(count, 1)
        deviation = (numbers - centre[rater])[is_rated]
        square = np.bincount(rater[is_rated], weights=deviation**2, minlength=n_raters)
        spread = np.sqrt(square / np.maximum(count - 1, 1)) if method.endswith("_z") else np.ones(n_raters)
    result = (numbers - centre[rater]) / np.where(spread > 0, spread, 1.0)[rater]
    is_flat = np.isin(rater, constant) & ~np.isnan(numbers)
    result[is_flat] = 0.0  # exactly, where rounding of the mean would leave a trace for the spread to blow up
    return np.asarray(result)


def _listed(ids: tuple[Any, ...], most: int = 10) -> str:
    shown = ", ".join(str(rater) for rater in ids[:most])
    return f"{shown} and {len(ids) - most} more" if len(ids) > most else shown
