"""Each rater against all the others: does this person judge the same thing as the rest?

Checked in ``tests/stats/test_raters_quality.py`` against ``scipy.stats.pearsonr`` and ``spearmanr`` on each rater's items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.proportion import wilson_interval
from dialometer.stats.ratings import as_matrix

Array = npt.NDArray[np.float64]
Correlation = Literal["pearson", "spearman"]


def correlation_with_rest(
    ratings: npt.ArrayLike, raters: Sequence[str], *, kind: Correlation = "pearson", confidence: float = 0.95
) -> dict[str, Estimate]:
    """Correlation of each rater (column) with the mean of the others on the same items (rows); ``nan`` is a missing cell.

    Interval by Fisher's z (widened for ranks after Bonett and Wright 2000).
    """
    matrix = _checked(ratings, raters)
    rest = _mean_of_others(matrix)
    method = f"{kind} correlation with the mean of the other raters"
    return {
        name: _correlation(matrix[:, k], rest[:, k], method, kind, confidence, name) for k, name in enumerate(raters)
    }


def bias_from_rest(ratings: npt.ArrayLike, raters: Sequence[str], *, confidence: float = 0.95) -> dict[str, Estimate]:
    """How much higher (or lower) each rater rates than the mean of the others on the same items; Student's t interval."""
    matrix = _checked(ratings, raters)
    differences = matrix - _mean_of_others(matrix)
    method = "mean difference from the other raters"
    bias = {}
    for k, name in enumerate(raters):
        own = differences[:, k][~np.isnan(differences[:, k])]
        if len(own) < 2:
            bias[name] = unknown(method, f"{len(own)} items shared with other raters", n=len(own), label=name)
            continue
        se = float(own.std(ddof=1)) / math.sqrt(len(own))
        half = float(stats.t.isf((1 - confidence) / 2, len(own) - 1)) * se
        value = float(own.mean())
        bias[name] = Estimate(
            value=value,
            n=len(own),
            method=method,
            low=value - half,
            high=value + half,
            confidence=confidence,
            interval_method="Student's t",
            statistic=value / se if se else math.nan,
            df=(float(len(own) - 1),),
            p_value=float(2 * stats.t.sf(abs(value / se), len(own) - 1)) if se else math.nan,
            label=name,
            details={"se": se},
        )
    return bias


def exact_agreement_with_rest(
    ratings: npt.ArrayLike, raters: Sequence[str], *, confidence: float = 0.95
) -> dict[str, Estimate]:
    """Share of the others who gave the same answer as this rater, averaged over shared items; for labels coded as numbers.

    Wilson's interval with items as the cases, since answers of several others on one item are not independent.
    """
    matrix = _checked(ratings, raters)
    method = "share of the other raters who gave the same answer"
    agreement = {}
    for k, name in enumerate(raters):
        others = np.delete(matrix, k, axis=1)
        is_shared = ~np.isnan(matrix[:, k]) & ~np.isnan(others).all(axis=1)
        n = int(is_shared.sum())
        if not n:
            agreement[name] = unknown(method, "no item shared with other raters", label=name)
            continue
        same = (others[is_shared] == matrix[is_shared, k][:, None]).sum(axis=1)
        share = same / (~np.isnan(others[is_shared])).sum(axis=1)
        low, high = wilson_interval(float(share.sum()), n, confidence=confidence)
        agreement[name] = Estimate(
            value=float(share.mean()), n=n, method=method, low=low, high=high, confidence=confidence,
            interval_method="wilson over items", label=name,
        )  # fmt: skip
    return agreement


def _checked(ratings: npt.ArrayLike, raters: Sequence[str]) -> Array:
    matrix = as_matrix(ratings)
    if matrix.shape[1] != len(raters):
        raise DialometerError(
            f"{matrix.shape[1]} columns for {len(raters)} raters", where="agreement", remedy="one column for each rater"
        )
    return matrix


def _mean_of_others(matrix: Array) -> Array:
    """Mean of each row without the cell itself; ``nan`` where the row holds nobody else."""
    is_given = ~np.isnan(matrix)
    filled = np.where(is_given, matrix, 0.0)
    total = filled.sum(axis=1, keepdims=True) - filled
    count = is_given.sum(axis=1, keepdims=True) - is_given
    return np.asarray(np.divide(total, count, out=np.full(matrix.shape, np.nan), where=count > 0))


def _correlation(own: Array, rest: Array, method: str, kind: Correlation, confidence: float, name: str) -> Estimate:
    is_shared = ~np.isnan(own) & ~np.isnan(rest)
    x, y, n = own[is_shared], rest[is_shared], int(is_shared.sum())
    if n < 3:
        return unknown(method, f"{n} items shared with other raters; at least 3 are needed", n=n, label=name)
    if np.ptp(x) == 0:
        return unknown(method, f"gave {x[0]:g} to every shared item", n=n, label=name)
    if np.ptp(y) == 0:
        return unknown(method, "the others' mean is the same on every shared item", n=n, label=name)
    result = stats.pearsonr(x, y) if kind == "pearson" else stats.spearmanr(x, y)
    value = float(np.clip(result.statistic, -1, 1))
    low = high = math.nan
    notes: tuple[str, ...] = ("no interval: fewer than 4 items",)
    if n > 3:
        widen = 1.0 if kind == "pearson" else 1 + value**2 / 2
        half = float(stats.norm.isf((1 - confidence) / 2)) * math.sqrt(widen / (n - 3))
        z = math.atanh(min(max(value, -1 + 1e-15), 1 - 1e-15))
        low, high, notes = math.tanh(z - half), math.tanh(z + half), ()
    return Estimate(
        value=value,
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method="Fisher's z",
        p_value=float(result.pvalue),
        label=name,
        notes=notes,
    )
