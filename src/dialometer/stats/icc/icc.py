"""Intraclass correlation: how much of the variance of ratings is due to the items.

Values, F tests and analytic intervals follow McGraw & Wong (1996), for the six forms of Shrout & Fleiss (1979). Validated
against ``pingouin.intraclass_corr(data, targets, raters, ratings)`` 0.7.0, R ``psych::ICC(x, lmer=FALSE)`` 2.2.9 and the
worked example of Shrout & Fleiss (their tables 2 and 4).

Estimates of variance can be negative where raters are opposed. A negative ICC is given as it is, with a note: the formulas of
McGraw & Wong are not truncated, nor are pingouin and ``psych::ICC(lmer=FALSE)``. Where even the estimated variance of the items'
means is not positive, the average form of agreement turns round and exceeds 1: pingouin and psych print such a number (5.02 for two
opposed raters of five items); here it is not defined, since no share of a variance is above 1. Variance components by REML, as in
``psych::ICC(lmer=TRUE)`` and in reports of incomplete designs, are never negative and give 0 there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import estimate_from, jackknife
from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.forms import (
    NEGATIVE,
    NO_MEAN,
    IccForm,
    Resampled,
    form_named,
    icc_of_counts,
    icc_replicates,
    spearman_brown,
)
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.observations import Floats, as_matrix

Missing = Literal["refuse", "drop_items", "drop_raters", "model"]
IccInterval = Literal["analytic", "percentile", "bca"]

_ROUNDING = 1e-13  # mean squares below this share of the largest are rounding, not variance


@dataclass(frozen=True)
class MeanSquares:
    """The two-way analysis of variance without replication: between items, between raters, error, and within items."""

    items: float
    raters: float
    error: float
    within: float
    n: int
    k: int


def mean_squares(matrix: Floats) -> MeanSquares:
    """Mean squares of a complete matrix of items by raters; what is only rounding is set to zero."""
    n, k = matrix.shape
    x = matrix - matrix.mean()
    row, column = x.mean(axis=1), x.mean(axis=0)
    residual = x - row[:, None] - column[None, :]
    items = k * float(row @ row) / (n - 1)
    raters = n * float(column @ column) / (k - 1)
    error = float(np.sum(residual**2)) / ((n - 1) * (k - 1))
    within = float(np.sum((x - row[:, None]) ** 2)) / (n * (k - 1))
    floor = _ROUNDING * max(items, raters, error, float(np.max(np.abs(matrix))) ** 2 * 1e-16)
    items, raters, error, within = (0.0 if square <= floor else square for square in (items, raters, error, within))
    return MeanSquares(items, raters, error, within, n, k)


def icc(
    ratings: ArrayLike,
    form: str = "ICC(2,1)",
    *,
    missing: Missing = "refuse",
    interval: IccInterval = "analytic",
    resampled: Resampled = "items",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """One form of the ICC for ratings laid out as items by raters (``nan`` = missing).

    ``missing`` declares what happens to empty cells: ``refuse`` gives an unknown with the reason; ``drop_items`` and
    ``drop_raters`` leave out whatever is incomplete; ``model`` keeps every rating (one-way: unbalanced ANOVA with k0;
    two-way: variance components by REML). ``interval`` is analytic or by bootstrap over ``resampled``.
    The statistic, ``df`` and p-value are those of the F test of no differences between items.
    """
    chosen = form_named(form)
    matrix = as_matrix(ratings)
    label = label or chosen.label()
    is_missing = np.isnan(matrix)
    notes: tuple[str, ...] = ()
    if is_missing.any():
        if missing == "model":
            return _by_model(matrix, chosen, confidence=confidence, label=label)
        kept = _complete(matrix, missing)
        if kept is None:
            why = f"{int(is_missing.sum())} of {matrix.size} cells are missing; declare missing='drop_items' or 'model'"
            return unknown(chosen.name, why, n=len(matrix), label=label)
        noun, n_left_out = _left_out(matrix, kept, missing)
        notes = (f"{n_left_out} of {matrix.shape[0 if missing == 'drop_items' else 1]} {noun} excluded as incomplete",)
        matrix = kept
    why = _not_computable(matrix)
    if why:
        return replace(unknown(chosen.name, why, n=len(matrix), label=label), notes=(why, *notes))
    squares = mean_squares(matrix)
    value = _value(squares, chosen)
    if math.isinf(value):
        return unknown(chosen.name, NO_MEAN, n=len(matrix), label=label)
    if math.isnan(value):
        why = "neither items nor errors vary, so the ratio is not defined; use items that differ"
        return unknown(chosen.name, why, n=len(matrix), label=label)
    if value < -_ROUNDING:
        notes = (*notes, NEGATIVE)
    result = _tested(squares, chosen, value, confidence=confidence, label=label, notes=notes)
    if interval == "analytic":
        return result
    return _bootstrapped(result, matrix, chosen, resampled, interval, n_resamples, seed)


def _complete(matrix: Floats, missing: Missing) -> Floats | None:
    if missing == "drop_items":
        return matrix[~np.isnan(matrix).any(axis=1)]
    if missing == "drop_raters":
        return matrix[:, ~np.isnan(matrix).any(axis=0)]
    return None


def _left_out(matrix: Floats, kept: Floats, missing: Missing) -> tuple[str, int]:
    axis = 0 if missing == "drop_items" else 1
    return ("items", "raters")[axis], matrix.shape[axis] - kept.shape[axis]


def _not_computable(matrix: Floats) -> str:
    n, k = matrix.shape
    if n < 2:
        return f"{n} complete items: at least 2 are needed; rate more items"
    if k < 2:
        return f"{k} complete raters: at least 2 are needed; have items judged by more raters"
    if np.ptp(matrix) == 0:
        return f"every rating is {matrix.flat[0]:g}: without differences between items reliability is not defined"
    return ""


def _value(squares: MeanSquares, form: IccForm) -> float:
    n, k = squares.n, squares.k
    if form.model == "one_way":
        part, whole = squares.items - squares.within, squares.items + (k - 1) * squares.within
    else:
        part, whole = squares.items - squares.error, squares.items + (k - 1) * squares.error
        if form.model == "agreement":
            whole += k * (squares.raters - squares.error) / n
    if whole == 0:
        return math.nan
    single = part / whole
    return spearman_brown(single, k) if form.is_average else single


def _tested(
    squares: MeanSquares, form: IccForm, value: float, *, confidence: float, label: str, notes: tuple[str, ...]
) -> Estimate:
    n, k = squares.n, squares.k
    noise, df2 = (squares.within, n * (k - 1)) if form.model == "one_way" else (squares.error, (n - 1) * (k - 1))
    details = {
        "n_raters": k,
        "mean_square_items": squares.items,
        "mean_square_raters": squares.raters,
        "mean_square_error": squares.error,
        "mean_square_within": squares.within,
    }
    result = Estimate(
        value=value,
        n=n,
        method=form.name,
        confidence=confidence,
        interval_method="analytic (McGraw & Wong 1996)",
        df=(n - 1, df2),
        label=label,
        notes=notes,
        details=details,
    )
    if noise == 0:
        note = "the raters' numbers leave no error variance, so no test and no analytic interval"
        return replace(result, interval_method="").with_note(note)
    ratio = squares.items / noise
    low, high = analytic_interval(squares, form, confidence)
    return replace(result, low=low, high=high, statistic=ratio, p_value=float(stats.f.sf(ratio, n - 1, df2)))


def analytic_interval(squares: MeanSquares, form: IccForm, confidence: float) -> tuple[float, float]:
    """McGraw & Wong's interval: exact under normality for one-way and consistency, Satterthwaite's for agreement."""
    n, k = squares.n, squares.k
    upper = 1 - (1 - confidence) / 2
    if form.model == "agreement":
        single = _value(squares, form_named("ICC(2,1)"))
        bias, rest = squares.raters / squares.error, n * (1 + (k - 1) * single) - k * single
        df = (n - 1) * (k - 1) * (k * single * bias + rest) ** 2
        df /= (n - 1) * k**2 * single**2 * bias**2 + rest**2
        f_low, f_high = special.fdtri(n - 1, df, upper), special.fdtri(df, n - 1, upper)
        noise = k * squares.raters + (k * n - k - n) * squares.error
        low = n * (squares.items - f_low * squares.error) / (f_low * noise + n * squares.items)
        high = n * (f_high * squares.items - squares.error) / (noise + n * f_high * squares.items)
    else:
        noise, df = (squares.within, n * (k - 1)) if form.model == "one_way" else (squares.error, (n - 1) * (k - 1))
        ratio = squares.items / noise
        low, high = ratio / special.fdtri(n - 1, df, upper), ratio * special.fdtri(df, n - 1, upper)
        low, high = (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)
    if form.is_average:
        low, high = spearman_brown(low, k), spearman_brown(high, k)
    return float(low), float(high)


def _bootstrapped(
    result: Estimate,
    matrix: Floats,
    form: IccForm,
    resampled: Resampled,
    interval: IccInterval,
    n_resamples: int,
    seed: int,
) -> Estimate:
    """The same estimate with its interval from resamples instead of the formula."""
    if interval == "bca" and resampled == "items and raters":
        raise NotEnoughData("BCa is not defined when items and raters are drawn", remedy="use interval='percentile'")
    rng = np.random.default_rng(seed)
    replicates = icc_replicates(matrix, resampled, n_resamples=n_resamples, rng=rng)[form.name]
    left_out = None
    if interval == "bca":

        def statistic(counts: Floats) -> Floats:
            pair = (counts, None) if resampled == "items" else (None, counts)
            return icc_of_counts(matrix, *pair)[form.name]

        left_out = jackknife(statistic, matrix.shape[0 if resampled == "items" else 1])
    drawn = estimate_from(
        result.value,
        replicates,
        n=result.n,
        method=result.method,
        resampled=resampled,
        seed=seed,
        confidence=result.confidence,
        left_out=left_out,
        label=result.label,
        notes=result.notes,
        details=result.details,
    )
    return replace(drawn, statistic=result.statistic, df=result.df, p_value=result.p_value)


def _by_model(matrix: Floats, form: IccForm, *, confidence: float, label: str) -> Estimate:
    item, rater = np.nonzero(~np.isnan(matrix))
    values = matrix[item, rater]
    if form.model == "one_way":
        return icc_one_way(values, item, form.name, confidence=confidence, label=label)
    return icc_crossed(values, item, rater, form.name, confidence=confidence, label=label)
