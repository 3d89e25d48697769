"""Simpler models that a critic might prefer: one number for each rater or each item, or all judgments as independent.

Each takes differences (or values with a null) as arrays with their raters and items, and gives an estimate that can be
tested like the declared one. None of them replaces it: a model of raters alone speaks of these items only, a model of items
alone of these raters only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import stats

from dialometer.analysis.base.family import Options
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.clustered.two_way import two_way_linear
from dialometer.stats.observations import Floats, Ints

OneSample = Callable[[Floats, Ints, Ints, float, float], Estimate]
"""Values, raters, items, the null and the confidence to an estimate of the mean."""


def by_raters(values: Floats, raters: Ints, items: Ints, null: float, confidence: float) -> Estimate:  # noqa: ARG001
    """The mean of raters' own means, Student's t over raters."""
    return _over("raters", values, raters, null, confidence)


def by_items(values: Floats, raters: Ints, items: Ints, null: float, confidence: float) -> Estimate:  # noqa: ARG001
    """The mean of items' own means, Student's t over items."""
    return _over("items", values, items, null, confidence)


def _over(of: str, values: Floats, clusters: Ints, null: float, confidence: float) -> Estimate:
    """Clusters of one value each: what is robust to clusters is then the plain t-test, and is called so."""
    method = f"mean of {of}' means, t-test of {null:g}"
    given = ~np.isnan(values)
    names, place = np.unique(clusters[given], return_inverse=True)
    if len(names) < 2:
        return unknown(method, f"fewer than two {of}: no test")
    means = np.bincount(place, weights=values[given]) / np.bincount(place)
    tested = clustered_mean(means, np.arange(len(means)), null=null, confidence=confidence)
    same = tuple(f"all {of} have the same mean: no confidence interval" for _ in tested.notes)
    return replace(tested, method=method, notes=same)


def by_both(values: Floats, raters: Ints, items: Ints, null: float, confidence: float) -> Estimate:
    """The mean of all, two-way jackknife over raters and items."""
    given = ~np.isnan(values)
    y, rater, item = values[given], raters[given], items[given]
    if min(len(np.unique(rater)), len(np.unique(item))) < 2:
        return unknown("mean, two-way jackknife", "fewer than two raters or items: no test")
    mean, variance = two_way_linear(y, np.ones((len(y), 1)), rater, item)
    error, df = variance.contrast([1.0])
    return t_test(float(mean[0]), error, df, n=len(y), null=null, confidence=confidence)


def t_test(value: float, error: float, df: float, *, n: int, null: float, confidence: float) -> Estimate:
    """An estimate with Student's interval and test from its standard error and degrees of freedom."""
    if not error > 0 or not df > 0:
        return unknown("two-way jackknife", "no variation between raters and items: no test", n=n)
    half = float(stats.t.isf((1 - confidence) / 2, df)) * error
    return Estimate(
        value,
        n,
        "two-way jackknife over raters and items",
        low=value - half,
        high=value + half,
        confidence=confidence,
        interval_method="Student's t",
        statistic=(value - null) / error,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(value - null) / error, df)),
        details={"standard_error": error},
    )


def simpler_models(options: Options) -> list[tuple[str, OneSample, str]]:
    """The models with their names, and what their claim is about where the declared one is about something else."""
    these, others = ("", "other items too") if options.has_fixed_items else ("these items only", "")
    return [
        ("raters' means, t-test", by_raters, these),
        ("items' means, t-test", by_items, "these raters only"),
        ("two-way jackknife over raters and items", by_both, others),
    ]


def rescaled(estimate: Estimate, factor: float) -> Estimate:
    """An estimate of a difference in another unit, which its details name; tests stay as they are."""
    details = dict(estimate.details) if math.isclose(factor, 1.0) else {**estimate.details, "rescaled_by": factor}
    if "standard_error" in details:
        details["standard_error"] = factor * float(details["standard_error"])
    ends = {"low": factor * estimate.low, "high": factor * estimate.high}
    return replace(estimate, value=factor * estimate.value, details=details, low=ends["low"], high=ends["high"])
