"""ICC from variance components: the forms of agreement and consistency for designs with holes.

With item, rater and residual variances i, r, e: ICC(A,1) = i / (i + r + e), ICC(C,1) = i / (i + e), and the average forms divide
r and e by k. Validated against R ``lme4`` 1.1.31 components of the RankME ratings; on complete data the values are those of
the ANOVA (as long as no component is negative there).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.icc.forms import IccForm, form_named, spearman_brown
from dialometer.stats.icc.variance_components import CrossedLikelihood, VarianceComponents, fit, variance_components
from dialometer.stats.observations import as_judgments

CrossedInterval = Literal["auto", "profile", "wald", "none"]

_MOST_PROFILED = 200  # levels of the smaller factor
_PRECISE = 1e-10  # ends of profile intervals
_MOST = 1 - 1e-9  # the largest ICC looked at when an interval is searched


def icc_from(components: VarianceComponents, form: str, k: float | None = None) -> float:
    """The value of a two-way form; ``k`` is the number of raters averaged, the harmonic mean of the data by default."""
    chosen = _two_way(form)
    noise = components.residual + (components.rater if chosen.model == "agreement" else 0.0)
    total = components.item + noise
    single = components.item / total if total > 0 else math.nan
    average = (components.judgments_per_item if k is None else k) if chosen.is_average else 1.0
    return spearman_brown(single, average)


def icc_crossed(
    values: ArrayLike,
    items: ArrayLike,
    raters: ArrayLike,
    form: str = "ICC(2,1)",
    *,
    k: float | None = None,
    interval: CrossedInterval = "auto",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """A two-way ICC of judgments in rows, from all of them, by REML.

    ``profile`` holds every ICC whose profiled restricted likelihood is not worse than chi-square allows; it respects the
    borders 0 and 1. ``wald`` takes the curvature on the logit scale: a fraction of the time, and the same where levels are
    many. ``auto`` takes profile up to 200 levels of the smaller factor. The p-value is the likelihood-ratio test of no item
    variance (half of chi-square with one degree of freedom, as the null lies on the border; Self & Liang 1987).
    """
    chosen = _two_way(form)
    label = label or chosen.label()
    components = variance_components(values, items, raters)
    if not components.is_known:
        return unknown(chosen.name, components.notes[0], n=components.n_items, label=label)
    if chosen.model == "consistency" and not components.is_rater_separable:
        why = f"{components.notes[0]}; use ICC(1,1) or ICC(2,1), or let raters judge several items"
        return unknown(chosen.name, why, n=components.n_items, label=label)
    average = (components.judgments_per_item if k is None else k) if chosen.is_average else 1.0
    numbers, (item, rater), _ = as_judgments(values, items, raters)
    likelihood = CrossedLikelihood(numbers, item, rater)
    without, _ = fit(likelihood, is_item_zero=True, is_rater_zero=not components.is_rater_separable)
    statistic = max(likelihood.deviance(*without) - components.deviance, 0.0)
    result = Estimate(
        value=icc_from(components, chosen.name, average),
        n=components.n_items,
        method=f"{chosen.name} by REML",
        confidence=confidence,
        statistic=statistic,
        df=(1.0,),
        p_value=float(special.chdtrc(1, statistic)) / 2 if statistic > 0 else 1.0,
        label=label,
        notes=components.notes,
        details={**_described(components), "k": average},
    )
    if interval == "none":
        return result
    if interval == "auto":
        interval = "profile" if min(components.n_items, components.n_raters) <= _MOST_PROFILED else "wald"
    search = _profile_interval if interval == "profile" else _wald_interval
    low, high = (spearman_brown(end, average) for end in search(likelihood, components, chosen, confidence))
    method = "profile of the restricted likelihood" if interval == "profile" else "Wald on the logit scale"
    return replace(result, low=low, high=high, interval_method=method)


def _described(components: VarianceComponents) -> dict[str, float]:
    return {
        "variance_item": components.item,
        "variance_rater": components.rater,
        "variance_residual": components.residual,
        "n_raters": components.n_raters,
        "n_judgments": components.n_judgments,
    }


def _two_way(form: str) -> IccForm:
    chosen = form_named(form)
    if chosen.model == "one_way":
        raise NotEnoughData(f"{chosen.name} does not use raters", remedy="use icc_one_way")
    return chosen


def _profile(likelihood: CrossedLikelihood, components: VarianceComponents, form: IccForm) -> Callable[[float], float]:
    """The deviance as a function of the single-rating ICC, the share of raters fitted anew for each value."""
    is_agreement = form.model == "agreement"

    def deviance(icc: float, rater_share: float) -> float:
        by_rater = rater_share / (1 - rater_share)  # rater variance over residual
        by_item = icc / (1 - icc) * (1 + (by_rater if is_agreement else 0.0))
        return likelihood.deviance(by_item, by_rater)

    def profile(icc: float) -> float:
        if not components.is_rater_separable:
            return deviance(icc, 0.0)
        best = optimize.minimize_scalar(
            lambda share: deviance(icc, share), bounds=(0.0, 0.999), method="bounded", options={"xatol": 1e-7}
        )
        return min(float(best.fun), deviance(icc, 0.0))

    return profile


def _profile_interval(
    likelihood: CrossedLikelihood, components: VarianceComponents, form: IccForm, confidence: float
) -> tuple[float, float]:
    value = icc_from(components, form.name, 1.0)
    profile = _profile(likelihood, components, form)
    limit = components.deviance + float(special.chdtri(1, 1 - confidence))

    def excess(icc: float) -> float:
        return profile(icc) - limit

    if not excess(min(value, _MOST)) < 0:  # raters explain nearly everything: more than the profile looks at
        return math.nan, math.nan
    low, high = 0.0, 1.0
    if value > 0 and excess(0.0) > 0:
        low = float(optimize.brentq(excess, 0.0, min(value, _MOST), xtol=_PRECISE))
    if value < _MOST and excess(_MOST) > 0:
        high = float(optimize.brentq(excess, value, _MOST, xtol=_PRECISE))
    return low, high


def _wald_interval(
    likelihood: CrossedLikelihood, components: VarianceComponents, form: IccForm, confidence: float
) -> tuple[float, float]:
    """Delta method for logit(ICC) with the observed information, a variance at the border held there."""
    by_item, by_rater = (part / components.residual for part in (components.item, components.rater))
    if by_item == 0:
        return math.nan, math.nan
    is_free = np.array([True, by_rater > 0])
    step = 1e-3 * np.array([by_item, by_rater if by_rater > 0 else 1.0])
    hessian = np.eye(2)
    for axis in np.flatnonzero(is_free):
        move = np.where(np.arange(2) == axis, step, 0.0)
        above = likelihood.evaluate(by_item + move[0], by_rater + move[1])[1]
        below = likelihood.evaluate(by_item - move[0], by_rater - move[1])[1]
        hessian[axis] = (above - below) / (2 * step[axis])
    slope = np.array([1 / by_item, -1 / (1 + by_rater) if form.model == "agreement" else 0.0])
    variance = slope[is_free] @ np.linalg.solve(hessian[np.ix_(is_free, is_free)] / 2, slope[is_free])
    value = icc_from(components, form.name, 1.0)
    reach = float(special.ndtri((1 + confidence) / 2)) * math.sqrt(max(float(variance), 0.0))
    centre = float(special.logit(value))
    return float(special.expit(centre - reach)), float(special.expit(centre + reach))
