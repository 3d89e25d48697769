"""Permutation tests of a factorial between-rater design, one mean per rater.

Main effects permute the raters within each combination of the other factors' levels, which is exact when the factor has
no effect in any of them. Interactions have no exact permutation; they permute the residuals of the model without the
interaction (Freedman and Lane 1983).

Statistics are checked against ``statsmodels.stats.anova.anova_lm(..., typ=3)`` with sum contrasts, p-values against those
of its F-tests where the normal theory holds, and against ``scipy.stats.permutation_test`` for a single factor.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, Ints, codes, numbers, same_length
from dialometer.stats.permutation import batches

__all__ = ["permutation_factorial"]

TOLERANCE = 1e-9


def permutation_factorial(
    means: ArrayLike, factors: Mapping[str, ArrayLike], *, n_permutations: int = 10_000, seed: int = 0
) -> dict[str, Estimate]:
    """Every main effect and interaction of a between-rater design, one entry per rater in all arrays.

    The statistic is the F of the term with sum-to-zero contrasts, every other term in the model (type III); the value
    is its partial eta squared.
    """
    y = numbers(means)
    coded = {name: codes(labels) for name, labels in factors.items()}
    same_length(means=y, **{name: code for name, (code, _) in coded.items()})
    is_given = ~np.isnan(y)
    y = y[is_given]
    grouped = {name: (code[is_given], len(levels)) for name, (code, levels) in coded.items()}
    if any(size < 2 for _, size in grouped.values()) or not grouped:
        raise DialometerError("a factor has fewer than two levels", remedy="leave it out")
    columns = {term: _term_columns(grouped, term) for term in _terms(tuple(grouped))}
    problem = _problem(y, grouped)
    rng = np.random.default_rng(seed)
    result = {}
    for term, own in columns.items():
        label = ":".join(term)
        kind = "within levels of the other factors" if len(term) == 1 else "of residuals (Freedman-Lane)"
        method = f"permutation of rater means {kind}, F statistic"
        if problem:
            result[label] = unknown(method, problem, n=len(y), label=label)
            continue
        rest = np.column_stack([np.ones(len(y)), *(other for key, other in columns.items() if key != term)])
        strata = _strata(grouped, term)
        tested = _test_term(y, own, rest, strata, n_permutations, rng, is_residual=len(term) > 1)
        result[label] = replace(tested, method=method, label=label, seed=seed)
    return result


def _test_term(
    y: Floats,
    own: Floats,
    rest: Floats,
    strata: Ints,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    is_residual: bool,
) -> Estimate:
    """The F of one term beside its permutation distribution; residuals of the other terms are permuted if asked."""
    base = np.linalg.qr(rest)[0]
    extra = np.linalg.qr(own - base @ (base.T @ own))[0]
    q, df = extra.shape[1], len(y) - base.shape[1] - extra.shape[1]
    centred = y - y.mean()
    permuted = y - base @ (base.T @ y) if is_residual else centred

    def f_statistic(rows: Floats) -> Floats:
        explained = np.sum((rows @ extra) ** 2, axis=1)
        other = np.sum((rows @ base) ** 2, axis=1)
        left = np.maximum(np.sum(rows**2, axis=1) - explained - other, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(explained / q / (left / df))

    observed = float(f_statistic(centred[None, :])[0])
    hits = 0
    for size in batches(len(y), n_permutations):
        rows = np.tile(permuted, (size, 1))
        for stratum in np.unique(strata):
            inside = np.flatnonzero(strata == stratum)
            rows[:, inside] = rng.permuted(rows[:, inside], axis=1)
        hits += int(np.sum(f_statistic(rows) >= observed * (1 - TOLERANCE)))
    return Estimate(
        value=observed * q / (observed * q + df),
        n=len(y),
        method="permutation",
        statistic=observed,
        df=(float(q), float(df)),
        p_value=(1 + hits) / (1 + n_permutations),
        n_resamples=n_permutations,
        details={"effect": "partial eta squared", "parametric_p_value": float(stats.f.sf(observed, q, df))},
    )


def _terms(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [chosen for size in range(1, len(names) + 1) for chosen in itertools.combinations(names, size)]


def _term_columns(grouped: Mapping[str, tuple[Ints, int]], term: tuple[str, ...]) -> Floats:
    """Sum-to-zero columns of a term: products of its factors' deviation contrasts."""

    def one(name: str) -> Floats:
        code, size = grouped[name]
        return np.asarray(np.vstack([np.eye(size - 1), -np.ones(size - 1)])[code])

    def product(left: Floats, right: Floats) -> Floats:
        return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))

    return reduce(product, (one(name) for name in term))


def _strata(grouped: Mapping[str, tuple[Ints, int]], term: tuple[str, ...]) -> Ints:
    """Raters that may be exchanged: those alike in all other factors for a main effect, all raters for residuals."""
    n = len(next(iter(grouped.values()))[0])
    stratum = np.zeros(n, dtype=np.int64)
    if len(term) > 1:
        return stratum
    for name, (code, size) in grouped.items():
        if name not in term:
            stratum = stratum * size + code
    return stratum


def _problem(y: Floats, grouped: Mapping[str, tuple[Ints, int]]) -> str:
    cell = np.zeros(len(y), dtype=np.int64)
    n_cells = 1
    for code, size in grouped.values():
        cell, n_cells = cell * size + code, n_cells * size
    if len(y) == 0 or np.any(np.bincount(cell, minlength=n_cells) == 0):
        return "a condition has no raters: recruit for it or leave the level out"
    if len(y) <= n_cells:
        return "one rater per condition: recruit more, differences between raters cannot be seen"
    return "all rater means are equal: there is nothing to test" if np.ptp(y) == 0 else ""
