"""Are the raters of one condition more consistent than those of another? The same items, different raters.

The question of anchoring studies: an anchor may pull raters together. Two overlapping intervals do not answer it; the
difference has its own interval and its own test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import batch_sizes, draw_counts, estimate_from
from dialometer.stats.icc.crossed import icc_from
from dialometer.stats.icc.forms import IccForm, form_named, icc_of_counts, spearman_brown
from dialometer.stats.icc.icc import Missing, icc
from dialometer.stats.icc.one_way import OneWay, one_way_icc
from dialometer.stats.icc.variance_components import variance_components
from dialometer.stats.observations import Floats, as_matrix

IccOnCounts = Callable[[Floats, Floats | None, Floats | None], Floats]
"""Ratings (items by raters), counts of items, counts of raters: one ICC per resample."""


@dataclass(frozen=True)
class _Settings:
    form: IccForm
    n_resamples: int
    n_permutations: int
    seed: int
    confidence: float
    label: str


def icc_difference(
    first: ArrayLike,
    second: ArrayLike,
    form: str = "ICC(2,1)",
    *,
    missing: Missing = "refuse",
    n_resamples: int = 2000,
    n_permutations: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """ICC of the first condition minus that of the second; both are items by raters with the items in the same order.

    The interval draws items (the same for both) and raters of each condition. The p-value is two-sided: how often do random
    divisions of all raters into two groups of these sizes differ at least as much? Each condition's overall level and
    spread are removed before, as the ICC does not depend on them, so that the test speaks of consistency alone.

    With missing cells and ``missing="model"`` one-way forms use every rating in the same way; two-way forms are fitted by
    REML, where drawing a rater twice makes no sense: the interval then comes from leaving out raters and items in turn.
    """
    chosen = form_named(form)
    a, b = as_matrix(first), as_matrix(second)
    if len(a) != len(b):
        raise NotEnoughData(
            f"{len(a)} items in one condition, {len(b)} in the other", remedy="give the same items in both"
        )
    label = label or f"difference in {chosen.label()}"
    notes: tuple[str, ...] = ()
    has_holes = bool(np.isnan(a).any() or np.isnan(b).any())
    if has_holes and missing == "drop_items":
        complete = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
        notes = (f"{int((~complete).sum())} of {len(a)} items left out as incomplete",)
        a, b, has_holes = a[complete], b[complete], False
    method = f"difference in {chosen.name}"
    parts = [icc(x, chosen.name, missing=missing, confidence=confidence) for x in (a, b)]
    for name, part in zip(("first", "second"), parts, strict=True):
        if not part.is_known:
            return unknown(method, f"{name} condition: {part.notes[0]}", n=len(a), label=label)
    if chosen.is_average and a.shape[1] != b.shape[1]:
        notes = (
            *notes,
            f"averages of {a.shape[1]} and of {b.shape[1]} raters are compared; single forms do not mix that in",
        )
    is_reml = has_holes and missing == "model" and chosen.model != "one_way"
    n_permutations = (500 if is_reml else 2000) if n_permutations is None else n_permutations
    settings = _Settings(chosen, n_resamples, n_permutations, seed, confidence, label)
    if missing == "drop_raters":
        a, b = (x[:, ~np.isnan(x).any(axis=0)] for x in (a, b))
    result = (
        _by_reml(a, b, settings) if is_reml else _by_counts(a, b, settings, has_holes=has_holes and missing == "model")
    )
    details = {**result.details, "icc_first": parts[0].value, "icc_second": parts[1].value}
    return replace(result, method=method, label=label, notes=(*notes, *result.notes), details=details)


def _by_counts(a: Floats, b: Floats, settings: _Settings, *, has_holes: bool) -> Estimate:
    """Everything by matrix products: complete designs, and one-way forms of designs with holes."""
    form = settings.form

    def complete(x: Floats, items: Floats | None, raters: Floats | None) -> Floats:
        return icc_of_counts(x, items, raters)[form.name]

    def holed(x: Floats, items: Floats | None, raters: Floats | None) -> Floats:
        return _one_way_on_counts(x, items, raters, form)

    statistic: IccOnCounts = holed if has_holes else complete
    value = float(statistic(a, None, None)[0] - statistic(b, None, None)[0])
    rng = np.random.default_rng(settings.seed)
    replicates = []
    for size in batch_sizes(len(a) + a.shape[1] + b.shape[1], settings.n_resamples):
        items = draw_counts(rng, len(a), size)
        of_a, of_b = (draw_counts(rng, x.shape[1], size) for x in (a, b))
        replicates.append(statistic(a, items, of_a) - statistic(b, items, of_b))
    pooled = np.hstack([_standard(a), _standard(b)])
    null = []
    for size in batch_sizes(len(a) + pooled.shape[1], settings.n_permutations):
        is_first = _divisions(rng, a.shape[1], pooled.shape[1], size).astype(np.float64)
        null.append(statistic(pooled, None, is_first) - statistic(pooled, None, 1 - is_first))
    result = estimate_from(
        value,
        np.concatenate(replicates),
        n=len(a),
        method="",
        resampled="items and raters",
        seed=settings.seed,
        confidence=settings.confidence,
    )
    return _with_p(result, np.concatenate(null))


def _one_way_on_counts(x: Floats, items: Floats | None, raters: Floats | None, form: IccForm) -> Floats:
    """ICC(1, .) of a matrix with holes; an item nobody judged in a resample does not count there."""
    given = ~np.isnan(x)
    filled = np.where(given, x - np.nanmean(x), 0.0)
    of_raters = np.ones((1, x.shape[1])) if raters is None else raters
    of_items = np.ones((1, len(x))) if items is None else items
    count = of_raters @ given.T
    data = OneWay(count, of_raters @ filled.T, of_raters @ (filled**2).T)
    single = one_way_icc(data, of_items, repeats=of_raters**2 @ given.T)
    if not form.is_average:
        return single
    total = count.sum(axis=1)
    k0 = (total - (count**2).sum(axis=1) / total) / ((count > 0).sum(axis=1) - 1)
    return spearman_brown(single, k0)


def _by_reml(a: Floats, b: Floats, settings: _Settings) -> Estimate:
    """Two-way forms with holes: one REML fit per division of raters and per rater or item left out."""

    def difference(x: Floats, y: Floats) -> float:
        return _reml_icc(x, settings.form) - _reml_icc(y, settings.form)

    value = difference(a, b)
    icc_a, icc_b = _reml_icc(a, settings.form), _reml_icc(b, settings.form)
    left_out = [
        np.array([_reml_icc(np.delete(a, column, axis=1), settings.form) - icc_b for column in range(a.shape[1])]),
        np.array([icc_a - _reml_icc(np.delete(b, column, axis=1), settings.form) for column in range(b.shape[1])]),
        np.array([difference(np.delete(a, row, axis=0), np.delete(b, row, axis=0)) for row in range(len(a))]),
    ]
    error = math.sqrt(sum((len(part) - 1) * float(np.nanvar(part)) for part in left_out))
    reach = float(special.ndtri((1 + settings.confidence) / 2)) * error
    rng = np.random.default_rng(settings.seed)
    pooled = np.hstack([_standard(a), _standard(b)])
    is_first = _divisions(rng, a.shape[1], pooled.shape[1], settings.n_permutations)
    null = np.array([difference(pooled[:, row], pooled[:, ~row]) for row in is_first])
    result = Estimate(
        value=value,
        n=len(a),
        method="",
        low=value - reach,
        high=value + reach,
        confidence=settings.confidence,
        interval_method="jackknife over raters and items",
        seed=settings.seed,
        details={"standard_error": error},
    )
    return _with_p(result, null)


def _reml_icc(matrix: Floats, form: IccForm) -> float:
    item, rater = np.nonzero(~np.isnan(matrix))
    components = variance_components(matrix[item, rater], item, rater)
    return icc_from(components, form.name) if components.is_known else math.nan


def _standard(matrix: Floats) -> Floats:
    """Mean 0 and standard deviation 1 over all ratings of a condition."""
    return np.asarray((matrix - np.nanmean(matrix)) / np.nanstd(matrix))


def _divisions(
    rng: np.random.Generator, n_first: int, n_raters: int, size: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Random choices of ``n_first`` raters (divisions by raters)."""
    return np.asarray(rng.permuted(np.tile(np.arange(n_raters) < n_first, (size, 1)), axis=1))


def _with_p(result: Estimate, null: Floats) -> Estimate:
    """The share of divisions at least as far apart, the observed one counted among them (so that p is never 0)."""
    usable = null[np.isfinite(null)]
    if not len(usable):
        return result.with_note("no p-value: no division of the raters gave an ICC in both groups")
    n_beyond = int(np.sum(np.abs(usable) >= abs(result.value) * (1 - 1e-12)))
    details = {**result.details, "n_permutations": len(usable), "null_sd": float(usable.std())}
    return replace(result, p_value=(n_beyond + 1) / (len(usable) + 1), details=details)
