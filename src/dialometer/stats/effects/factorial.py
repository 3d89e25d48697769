"""Effects of between-rater factors (such as anchor by layout) on ratings, raters and items both random.

The model has one mean per cell of the design; main effects and interactions are sum-to-zero contrasts of those means, so
every cell counts alike however many raters it has (type III). With two levels an effect is the difference of the second
level from the first, and an interaction the difference of differences. The variance of raters is that within cells, which
is what a between-rater effect is tested against. Ratings by magnitude estimation enter as logarithms (``is_log``); their
differences are then ratios of geometric means.

Checked against two-way analysis of variance of rater means for balanced designs and ``statsmodels`` ``MixedLM``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.effects.mixed import CrossedFit, fit_crossed
from dialometer.stats.observations import (
    LARGEST_LOG,
    Floats,
    Ints,
    check_confidence,
    codes,
    missing_note,
    numbers,
    same_length,
)

METHOD = "linear mixed model, REML, crossed random raters and items"
DF_METHOD = "Student's t with Satterthwaite's degrees of freedom"


@dataclass(frozen=True)
class FactorialFit:
    """A fitted factorial design; ask it for effects, comparisons of conditions and means."""

    levels: Mapping[str, tuple[str, ...]]
    confidence: float
    is_log: bool
    n: int
    fit: CrossedFit | None
    n_by_cell: Ints
    why: str = ""
    notes: tuple[str, ...] = ()
    by_item: Floats | None = None
    """What each item adds to the mean of each filled cell beyond raters, items and cells (items by cells), where known."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of all main effects and interactions, such as ``anchor``, ``layout`` and ``anchor:layout``."""
        names = list(self.levels)
        sizes = range(1, len(names) + 1)
        return tuple(":".join(chosen) for size in sizes for chosen in itertools.combinations(names, size))

    def effects(self) -> dict[str, Estimate]:
        """Every term of the design with its test."""
        return {term: self.effect(term) for term in self.terms}

    def effect(self, term: str) -> Estimate:
        """One main effect or interaction: a difference where it has one degree of freedom, else a root mean square."""
        chosen = self._factors(term)
        parts = []
        for name, levels in self.levels.items():
            k = len(levels)
            parts.append(np.eye(k)[1:] - np.eye(k)[0] if name in chosen else np.full((1, k), 1 / k))
        contrasts = reduce(np.kron, parts)
        if len(contrasts) == 1:
            return self._difference(contrasts[0], term)
        problem = self._problem(contrasts)
        if problem or self.fit is None:
            return unknown(f"{METHOD}, F-test", problem, n=self.n, label=term)
        f, q, df = self.fit.f_test(contrasts[:, self._filled])
        return Estimate(
            value=self._root_mean_square(chosen),
            n=self.n,
            method=f"{METHOD}, F-test with Fai-Cornelius degrees of freedom",
            confidence=self.confidence,
            statistic=f,
            df=(float(q), df),
            p_value=float(stats.f.sf(f, q, df)),
            label=term,
            unit="log" if self.is_log else "",
            notes=self.notes,
            details={"effect": "root mean square of the term's deviations", "variances": self.fit.variances},
        )

    def compare(self, first: Mapping[str, str], second: Mapping[str, str]) -> Estimate:
        """Mean of the conditions that match ``first`` minus those that match ``second``, every cell counting alike.

        Factors that are not named are averaged over: ``compare({"anchor": "both"}, {"anchor": "none"})`` is a main
        effect, naming the layout on both sides too makes it a simple effect.
        """
        label = f"{_condition(first)} - {_condition(second)}"
        return self._difference(self._average(first) - self._average(second), label)

    def mean(self, where: Mapping[str, str] | None = None) -> Estimate:
        """Mean of the matching conditions; its interval speaks for other raters and, if items are random, other items."""
        levels = where or {}
        return self._difference(self._average(levels), _condition(levels) or "all conditions", is_mean=True)

    @property
    def _filled(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return self.n_by_cell > 0

    def _factors(self, term: str) -> set[str]:
        chosen = set(term.split(":"))
        if not chosen <= set(self.levels):
            raise DialometerError(f"unknown term {term!r}", remedy=f"use one of {', '.join(self.terms)}")
        return chosen

    def _average(self, where: Mapping[str, str]) -> Floats:
        parts = []
        for name, levels in self.levels.items():
            if name not in where:
                parts.append(np.full(len(levels), 1 / len(levels)))
            elif where[name] in levels:
                parts.append(np.array([float(level == where[name]) for level in levels]))
            else:
                raise DialometerError(f"{name} has no level {where[name]!r}", remedy=f"use one of {', '.join(levels)}")
        unknown_names = set(where) - set(self.levels)
        if unknown_names:
            raise DialometerError(
                f"no factor {', '.join(sorted(unknown_names))}", remedy=f"use {', '.join(self.levels)}"
            )
        return np.asarray(reduce(np.kron, parts))

    def _problem(self, contrasts: Floats) -> str:
        """Why these contrasts cannot be estimated; empty if they can."""
        if self.fit is None:
            return self.why
        is_needed = np.any(np.atleast_2d(contrasts) != 0, axis=0)
        cells = list(itertools.product(*self.levels.values()))
        empty = [", ".join(cells[index]) for index in np.flatnonzero(is_needed & ~self._filled)]
        return f"no judgments in {'; '.join(empty)}: recruit raters there or compare other conditions" if empty else ""

    def _root_mean_square(self, chosen: set[str]) -> float:
        parts = []
        for name, levels in self.levels.items():
            k = len(levels)
            mean = np.full((k, k), 1 / k)
            parts.append(np.eye(k) - mean if name in chosen else mean)
        assert self.fit is not None
        deviations = reduce(np.kron, parts)[:, self._filled] @ self.fit.coefficients
        return float(np.sqrt(np.mean(deviations**2)))

    def _with_items(self, contrast: Floats, error: float, df: float) -> tuple[float, float]:
        """Standard error and degrees of freedom where an effect may differ from item to item.

        The model has one effect for all items. If the effects of single items vary more than the residuals explain, the
        excess is added, because other items would give another mean effect.
        """
        if self.by_item is None or self.fit is None:
            return error, df
        effects = self.by_item @ contrast
        n = len(effects)
        seen = float(effects @ effects) / (n - 1) / n
        counts = self.n_by_cell[self._filled]
        expected = float(self.fit.variances["residual"]) * float(np.sum(contrast**2 / counts))
        if seen <= expected * (1 + 1e-9):
            return error, df
        total = error**2 + seen - expected
        return math.sqrt(total), total**2 / (error**4 / df + seen**2 / (n - 1))

    def _difference(self, contrast: Floats, label: str, *, is_mean: bool = False) -> Estimate:
        method = f"{METHOD}{'' if is_mean else ', t-test'}"
        problem = self._problem(contrast)
        if problem or self.fit is None:
            return unknown(method, problem, n=self.n, label=label)
        value, se, df = self.fit.contrast(contrast[self._filled])
        if not is_mean:
            se, df = self._with_items(contrast[self._filled], se, df)
        half = float(stats.t.isf((1 - self.confidence) / 2, df)) * se
        low, high = value - half, value + half
        if self.is_log and max(-low, high) > LARGEST_LOG:
            why = "hardly any data: the interval has no bounds; collect more"
            return unknown(method, why, n=self.n, label=label)
        details: dict[str, object] = {"standard_error": se, "variances": self.fit.variances}
        if self.is_log:
            name = "geometric_mean" if is_mean else "ratio"
            details |= {name: math.exp(value), f"{name}_low": math.exp(low), f"{name}_high": math.exp(high)}
        return Estimate(
            value=value,
            n=self.n,
            method=method,
            low=low,
            high=high,
            confidence=self.confidence,
            interval_method=DF_METHOD,
            statistic=math.nan if is_mean else value / se,
            df=(df,),
            p_value=math.nan if is_mean else float(2 * stats.t.sf(abs(value / se), df)),
            label=label,
            unit="log" if self.is_log else "",
            notes=self.notes,
            details=details,
        )


def _item_deviations(y: Floats, rater: Ints, item: Ints, cell: Ints, clusters: Ints) -> Floats | None:
    """Cell means of every cluster of items without raters' and items' own means; None where a cluster lacks a cell."""
    rest = y - (np.bincount(rater, weights=y) / np.bincount(rater))[rater]
    rest = rest - (np.bincount(item, weights=rest) / np.bincount(item))[item]
    n, n_cells = int(clusters.max()) + 1, int(cell.max()) + 1
    place = clusters * n_cells + cell
    count = np.bincount(place, minlength=n * n_cells)
    if n < 2 or not count.all():
        return None
    return np.asarray((np.bincount(place, weights=rest, minlength=n * n_cells) / count).reshape(n, n_cells))


def factorial_effects(
    values: ArrayLike,
    factors: Mapping[str, ArrayLike],
    raters: ArrayLike,
    items: ArrayLike | None = None,
    *,
    levels: Mapping[str, Sequence[str]] | None = None,
    clusters: ArrayLike | None = None,
    has_fixed_items: bool = False,
    is_log: bool = False,
    confidence: float = 0.95,
) -> FactorialFit:
    """Fit a factorial design to judgments (one entry per judgment in every array; values already logs if ``is_log``).

    ``levels`` gives the order of a factor's levels (the first is the baseline); alphabetical by default. ``is_log``
    only says what the numbers are, so that ratios are reported. ``clusters`` names the item where ``items`` are several
    responses to one. Unless items are fixed, differences between levels allow for effects that vary from item to item.
    """
    y = numbers(values)
    is_given = np.isfinite(y)
    rater = np.asarray(raters)[is_given]
    item = None if items is None else np.asarray(items)[is_given]
    names, cell = _cells(factors, levels or {}, is_given)
    n_by_cell = np.bincount(cell, minlength=math.prod(len(known) for known in names.values()))
    y = y[is_given]
    same_length(values=y, raters=rater, **({} if item is None else {"items": item}))
    check_confidence(confidence)
    notes = missing_note(int(np.sum(~is_given)))
    why, fit, by_item = "", None, None
    if len(y) == 0:
        why = "no judgments: collect some in every condition"
    elif np.ptp(y) == 0:
        why = "all judgments are equal: there is no variation to attribute to anything; collect more"
    else:
        notes = (*notes, *_nesting_notes(rater, cell))
        design = np.zeros((len(y), len(n_by_cell)))
        design[np.arange(len(y)), cell] = 1.0
        design = design[:, n_by_cell > 0]
        n_raters = len(codes(rater)[1])
        if n_raters <= design.shape[1]:
            why = f"{n_raters} raters for {design.shape[1]} conditions: at least one condition needs a second rater"
        else:
            try:
                fit = fit_crossed(y, design, rater, item)
                if item is not None and not has_fixed_items:
                    filled = np.cumsum(n_by_cell > 0) - 1
                    grouped = item if clusters is None else np.asarray(clusters)[is_given]
                    by_item = _item_deviations(y, codes(rater)[0], codes(item)[0], filled[cell], codes(grouped)[0])
            except NotEnoughData as error:
                why = str(error)
    return FactorialFit(
        levels=names,
        confidence=confidence,
        is_log=is_log,
        n=len(y),
        fit=fit,
        n_by_cell=n_by_cell,
        why=why,
        notes=(*notes, *(fit.notes if fit else ())),
        by_item=by_item,
    )


def _cells(
    factors: Mapping[str, ArrayLike],
    order: Mapping[str, Sequence[str]],
    is_given: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> tuple[dict[str, tuple[str, ...]], Ints]:
    """The levels of each factor in order, and the cell number of every judgment."""
    if not factors:
        raise DialometerError("a factorial design without factors", remedy="give at least one factor")
    names: dict[str, tuple[str, ...]] = {}
    cell = np.zeros(int(is_given.sum()), dtype=np.int64)
    for name, labels in factors.items():
        code, observed = codes(labels)
        same_length(**{"values": is_given, name: code})
        known = [str(level) for level in observed]
        levels = [str(level) for level in order.get(name, known)]
        strange = set(known) - set(levels)
        if strange:
            raise DialometerError(f"{name} has levels {', '.join(sorted(strange))}", remedy=f"levels are {levels}")
        if len(levels) < 2:
            raise DialometerError(f"factor {name} has one level", remedy="leave it out or name all its levels")
        names[name] = tuple(levels)
        place = np.array([levels.index(level) for level in known], dtype=np.int64)
        cell = cell * len(levels) + place[code[is_given]]
    return names, cell


def _nesting_notes(rater: np.ndarray[tuple[int], np.dtype[np.generic]], cell: Ints) -> tuple[str, ...]:
    code, known = codes(rater)
    first = np.zeros(len(known), dtype=np.int64)
    first[code] = cell
    if np.array_equal(first[code], cell):
        return ()
    return ("raters appear in several conditions: their effects there are compared without random slopes",)


def _condition(where: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={level}" for name, level in where.items())
