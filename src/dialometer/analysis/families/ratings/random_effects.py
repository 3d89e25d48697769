"""Means and differences whose intervals speak for other raters and other items.

Raters and items are both samples. Up to some hundred levels the linear mixed model with both as random effects is used;
beyond that its matrices grow too large and the two-way cluster-robust variance of Cameron, Gelbach and Miller (2011) takes
its place, which needs many levels and then has them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.effects.mixed import CrossedFit, fit_crossed
from dialometer.stats.observations import Floats, Ints

T = TypeVar("T")
MOST_LEVELS = 250
"""Levels of the smaller of the two random factors up to which the mixed model is fitted."""
MIXED = "linear mixed model, REML, crossed random raters and items"
MIXED_INTERVAL = "Student's t with Satterthwaite's degrees of freedom"
ROBUST = "mean, two-way cluster-robust by rater and item (Cameron, Gelbach and Miller 2011)"


@dataclass(frozen=True, slots=True)
class _Found:
    """A linear combination of means with its standard error and degrees of freedom."""

    value: float
    error: float
    df: float
    method: str
    interval_method: str
    notes: tuple[str, ...] = ()


def fitted(fit: Callable[[], T]) -> T:
    """The result of fitting a model; data on which its likelihood has no maximum are refused in words.

    Very few or very regular judgments leave no residual variance; the optimiser then fails in one of several ways.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return fit()
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, Warning) as error:
        raise NotEnoughData(
            "the judgments are too few or too regular for a mixed model", remedy="collect more"
        ) from error


def crossed_mean(
    values: Floats, raters: Ints, items: Ints, *, confidence: float, label: str = "", is_test: bool = False
) -> Estimate:
    """The mean over raters and items, and the test that it is zero if ``is_test`` (for differences)."""
    n_raters, n_items = _n_levels(raters), _n_levels(items)
    problem = _problem(values, n_raters)
    if problem:
        return _without_interval(values, problem, confidence, label)
    balanced = _balanced(values, raters, items, n_raters, n_items)
    if balanced is not None:
        found = balanced
    elif min(n_raters, n_items) > MOST_LEVELS:
        mean = float(values.mean())
        found = _robust(mean, (values - mean) / len(values), raters, items)
    else:
        try:
            fit = fitted(lambda: fit_crossed(values, np.ones((len(values), 1)), raters, items))
        except NotEnoughData as error:
            return _without_interval(values, str(error), confidence, label)
        found = _Found(*fit.contrast([1.0]), MIXED, MIXED_INTERVAL, _remarks(fit))
    return _estimate(found, len(values), n_raters, n_items, confidence, label, is_test=is_test)


def crossed_differences(
    values: Floats,
    groups: Ints,
    raters: Ints,
    items: Ints,
    pairs: Sequence[tuple[int, int]],
    *,
    confidence: float,
) -> dict[tuple[int, int], Estimate]:
    """Differences of group means (first minus second) where each item belongs to one group and cannot be paired."""
    present, group = np.unique(groups, return_inverse=True)
    place = {int(code): index for index, code in enumerate(present)}
    usable = [pair for pair in pairs if pair[0] in place and pair[1] in place]
    why = "one of the two has no judgments; collect some for both"
    found = {pair: unknown(MIXED, why) for pair in pairs if pair not in usable}
    n_raters, n_items = _n_levels(raters), _n_levels(items)
    problem = _problem(values, n_raters) or ("" if n_items > len(present) else "one item each: rate more items")
    if problem or not usable:
        return found | {pair: unknown(MIXED, problem, n=len(values)) for pair in usable}
    if min(n_raters, n_items) > MOST_LEVELS:
        for pair in usable:
            parts = _robust_difference(values, group, raters, items, place[pair[0]], place[pair[1]])
            found[pair] = _estimate(parts, len(values), n_raters, n_items, confidence, "", is_test=True)
        return found
    design = np.zeros((len(values), len(present)))
    design[np.arange(len(values)), group] = 1.0
    try:
        fit = fitted(lambda: fit_crossed(values, design, raters, items))
    except NotEnoughData as error:
        return found | {pair: unknown(MIXED, str(error), n=len(values)) for pair in usable}
    for pair in usable:
        weights = np.zeros(len(present))
        weights[place[pair[0]]], weights[place[pair[1]]] = 1.0, -1.0
        parts = _Found(*fit.contrast(weights), MIXED, MIXED_INTERVAL, _remarks(fit))
        found[pair] = _estimate(parts, len(values), n_raters, n_items, confidence, "", is_test=True)
    return found


def _remarks(fit: CrossedFit) -> tuple[str, ...]:
    """Notes for readers; that a variance was estimated as zero is no news for a difference, and common."""
    return tuple(note for note in fit.notes if "estimated as zero" not in note)


def _n_levels(codes: Ints) -> int:
    return int(np.count_nonzero(np.bincount(codes))) if len(codes) else 0


def _problem(values: Floats, n_raters: int) -> str:
    if not len(values):
        return "no judgments: collect some"
    if n_raters < 2:
        return "one rater: no interval speaks for others; recruit more"
    if len(values) < 3:
        return f"{len(values)} judgments: at least 3 are needed for an interval; collect more"
    return "all values are equal: no interval" if np.ptp(values) == 0 else ""


def _without_interval(values: Floats, why: str, confidence: float, label: str) -> Estimate:
    if not len(values):
        return unknown(MIXED, why, label=label)
    return Estimate(float(values.mean()), len(values), "mean", confidence=confidence, label=label, notes=(why,))


def _estimate(
    found: _Found, n: int, n_raters: int, n_items: int, confidence: float, label: str, *, is_test: bool
) -> Estimate:
    details = {"standard_error": found.error, "n_raters": n_raters, "n_items": n_items}
    notes = found.notes
    if n_items < 2:
        notes = (*notes, "one item: the interval says nothing about other items")
    if not found.error > 0:
        why = "no variation between raters and items: no interval"
        return Estimate(found.value, n, found.method, confidence=confidence, label=label, notes=(*notes, why))
    half = float(stats.t.isf((1 - confidence) / 2, found.df)) * found.error
    t = found.value / found.error
    return Estimate(
        value=found.value,
        n=n,
        method=f"{found.method}{', t-test' if is_test else ''}",
        low=found.value - half,
        high=found.value + half,
        confidence=confidence,
        interval_method=found.interval_method,
        statistic=t if is_test else math.nan,
        df=(found.df,),
        p_value=float(2 * stats.t.sf(abs(t), found.df)) if is_test else math.nan,
        label=label,
        notes=notes,
        details=details,
    )


def _balanced(values: Floats, raters: Ints, items: Ints, n_raters: int, n_items: int) -> _Found | None:
    """Every rater judged every item once: REML is the analysis of variance, as long as no component is negative."""
    if len(values) != n_raters * n_items or n_items < 2:
        return None
    _, row = np.unique(raters, return_inverse=True)
    _, column = np.unique(items, return_inverse=True)
    table = np.full((n_raters, n_items), np.nan)
    table[row, column] = values
    if np.isnan(table).any():
        return None
    mean = float(table.mean())
    by_rater, by_item = table.mean(axis=1) - mean, table.mean(axis=0) - mean
    df_rater, df_item = n_raters - 1, n_items - 1
    of_rater = n_items * float(by_rater @ by_rater) / df_rater
    of_item = n_raters * float(by_item @ by_item) / df_item
    table -= mean + by_rater[:, None] + by_item[None, :]
    rest = float(np.sum(table**2)) / (df_rater * df_item)
    if min(of_rater, of_item) < rest or rest <= 0:
        return None
    spread = of_rater + of_item - rest
    df = spread**2 / (of_rater**2 / df_rater + of_item**2 / df_item + rest**2 / (df_rater * df_item))
    return _Found(mean, math.sqrt(spread / len(values)), df, MIXED, MIXED_INTERVAL)


def _robust(value: float, influence: Floats, raters: Ints, items: Ints) -> _Found:
    """Squared sums over raters, plus over items, minus over their meetings; each scaled for its number of clusters."""
    meeting = raters * (int(items.max()) + 1) + items
    _, meeting = np.unique(meeting, return_inverse=True)
    variance, fewest = 0.0, math.inf
    for codes, sign in ((raters, 1.0), (items, 1.0), (meeting, -1.0)):
        n = _n_levels(codes)
        sums = np.bincount(codes, weights=influence)
        variance += sign * n / (n - 1) * float(sums @ sums)
        fewest = min(fewest, n)
    return _Found(value, math.sqrt(max(variance, 0.0)), fewest - 1, ROBUST, "Student's t, levels of the smaller factor")


def _robust_difference(values: Floats, group: Ints, raters: Ints, items: Ints, first: int, second: int) -> _Found:
    influence = np.zeros(len(values))
    means = []
    for code, sign in ((first, 1.0), (second, -1.0)):
        inside = group == code
        means.append(float(values[inside].mean()))
        influence[inside] = sign * (values[inside] - means[-1]) / inside.sum()
    return _robust(means[0] - means[1], influence, raters, items)
