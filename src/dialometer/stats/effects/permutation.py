"""Permutation tests on rater means: what a mixed model claims, checked without its assumptions.

Raters, not judgments, are exchangeable, so each rater enters with one mean. Permutations are drawn with a seed and their
p-value counts the observed arrangement among them, (1 + hits) / (1 + permutations), which keeps the test valid (Phipson
and Smyth 2010); where all arrangements are few they are enumerated instead.

In a factorial between-rater design, main effects permute the raters within each combination of the other factors' levels,
which is exact when the factor has no effect in any of them. Interactions have no exact permutation; they permute the residuals
of the model without the interaction (Freedman and Lane 1983).

Checked against ``scipy.stats.permutation_test`` with ``permutation_type="independent" | "samples"``; the statistics of
factorial designs against ``statsmodels.stats.anova.anova_lm(..., typ=3)`` with sum contrasts, and their p-values against those
of its F-tests where the normal theory holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, Ints, codes, missing_note, numbers, same_length, two_samples

BATCH_CELLS = 4_000_000
MOST_DRAWS = 40_000_000
TOLERANCE = 1e-9
"""By how much an arrangement may fall short of the one observed and still count as equal: sums in another order differ by rounding."""


def rater_means(
    values: ArrayLike, raters: ArrayLike, items: ArrayLike | None = None
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.generic]]]:
    """One mean per rater, with the raters in sorted order; with ``items`` each judgment is first taken relative to its
    item's mean (plus the overall mean), so raters who happened to get better items are not taken for generous ones.
    """
    y, ids = numbers(values), np.asarray(raters)
    same_length(values=y, raters=ids)
    is_given = ~np.isnan(y)
    y = y[is_given]
    if items is not None and len(y):
        item, levels = codes(np.asarray(items)[is_given])
        means = np.bincount(item, weights=y, minlength=len(levels)) / np.bincount(item, minlength=len(levels))
        y = y - means[item] + y.mean()
    rater, known = codes(ids[is_given])
    return np.bincount(rater, weights=y, minlength=len(known)) / np.bincount(rater, minlength=len(known)), known


def permutation_two_groups(
    first: ArrayLike, second: ArrayLike, *, n_permutations: int = 10_000, seed: int = 0, label: str = ""
) -> Estimate:
    """Difference of two groups' means (first minus second), each entry one rater, tested by moving raters across."""
    a, b, notes = two_samples(first, second)
    n_a, n = len(a), len(a) + len(b)
    method = "two-sided permutation test of the difference of means"
    if not n_a or n_a == n:
        return unknown(method, "one of the two groups is empty: recruit raters for both", n=n, label=label)
    pooled = np.concatenate([a, b])
    if np.ptp(pooled) == 0:
        return unknown(method, "all values are equal: no arrangement differs from another", n=n, label=label)
    observed = float(a.mean() - b.mean())
    centred = pooled - pooled.mean()
    bound = abs(observed) * n_a * (n - n_a) / n - TOLERANCE * float(np.abs(centred).sum())
    n_all = math.comb(n, n_a)
    if n_all <= n_permutations:
        chosen = np.array(list(itertools.combinations(range(n), n_a)))
        p_value = float(np.mean(np.abs(centred[chosen].sum(axis=1)) >= bound))
        return _permuted(observed, n, f"{method}, all {n_all} arrangements", p_value, n_all, None, label, notes)
    rng = np.random.default_rng(seed)
    hits = 0
    for size in batches(n, n_permutations):
        drawn = rng.permuted(np.broadcast_to(centred, (size, n)), axis=1)
        hits += int(np.sum(np.abs(drawn[:, :n_a].sum(axis=1)) >= bound))
    return _permuted(observed, n, method, (1 + hits) / (1 + n_permutations), n_permutations, seed, label, notes)


def permutation_paired(
    first: ArrayLike, second: ArrayLike, *, n_permutations: int = 10_000, seed: int = 0, label: str = ""
) -> Estimate:
    """Mean of paired differences (first minus second) tested by flipping signs, as for two systems on one question set.

    Equal absolute differences are drawn together by their binomial count, so measures with few distinct values stay
    cheap over many thousands of questions. Where thousands of distinct values would take too many draws, the permutation
    distribution, a sum of that many independent terms, is replaced by its normal limit.
    """
    a, b = numbers(first), numbers(second)
    same_length(first=a, second=b)
    difference = a - b
    is_given = ~np.isnan(difference)
    difference = difference[is_given]
    n = len(difference)
    notes = missing_note(int(np.sum(~is_given)))
    method = "two-sided paired permutation test of the mean difference"
    if n == 0:
        return unknown(method, "no pairs: both sides are needed for at least one entry", label=label)
    sizes, counts = np.unique(np.abs(difference), return_counts=True)
    is_moving = sizes > 0
    sizes, counts = sizes[is_moving], counts[is_moving]
    if len(sizes) == 0:
        return unknown(method, "no pair differs: the test needs at least one that does", n=n, label=label)
    total = float(difference.sum())
    bound = abs(total) - TOLERANCE * float(counts @ sizes)
    n_moving = int(counts.sum())
    if 2**n_moving <= n_permutations:
        each = np.repeat(sizes, counts)
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n_moving)))
        p_value = float(np.mean(np.abs(signs @ each) >= bound))
        return _permuted(total / n, n, f"{method}, all sign flips", p_value, len(signs), None, label, notes)
    if len(sizes) * n_permutations > MOST_DRAWS:
        p_value = math.erfc(abs(total) / math.sqrt(2 * float(np.sum(counts * sizes**2))))
        return _permuted(total / n, n, f"{method}, normal limit", p_value, 0, None, label, notes)
    rng = np.random.default_rng(seed)
    hits = 0
    for size in batches(len(sizes), n_permutations):
        ups = rng.binomial(counts, 0.5, size=(size, len(counts)))
        hits += int(np.sum(np.abs((2 * ups - counts) @ sizes) >= bound))
    p_value = (1 + hits) / (1 + n_permutations)
    return _permuted(total / n, n, method, p_value, n_permutations, seed, label, notes)


def batches(width: int, n_permutations: int) -> Iterator[int]:
    """Sizes of batches of permutations that fit in memory, ``width`` numbers each."""
    size = max(1, BATCH_CELLS // max(width, 1))
    for start in range(0, n_permutations, size):
        yield min(size, n_permutations - start)


def _permuted(
    value: float,
    n: int,
    method: str,
    p_value: float,
    n_resamples: int,
    seed: int | None,
    label: str,
    notes: tuple[str, ...] = (),
) -> Estimate:
    return Estimate(
        value, n, method, statistic=value, p_value=p_value, seed=seed, n_resamples=n_resamples, label=label, notes=notes
    )


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
        hits += int(np.sum(f_statistic(rows) >= observed * (1 - TOLERANCE) - TOLERANCE))
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

    def contrasts(name: str) -> Floats:
        code, size = grouped[name]
        return np.asarray(np.vstack([np.eye(size - 1), -np.ones(size - 1)])[code])

    def product(left: Floats, right: Floats) -> Floats:
        return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))

    return reduce(product, (contrasts(name) for name in term))


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
