"""Shares, means and preferences when raters answer more than once, so that answers of one rater do not count as independent.

A generalised estimating equation with an intercept only, solved in closed form. With rater means m_g and weights w_g
that sum to one, the estimate is the weighted mean and its sandwich variance is the sum of f_g w_g^2 (m_g - mean)^2, where

===== ================ ===========================================================================
CR0   f = 1            plain sandwich (Liang and Zeger 1986); too small for few raters
CR1   f = G / (G - 1)  scaled by the number of raters
CR2   f = 1 / (1-w)    unbiased under the working model (Bell and McCaffrey 2002); the default
CR3   f = 1 / (1-w)^2  Mancl and DeRouen (2001); errs on the safe side
===== ================ ===========================================================================

Tests use Student's t with Bell and McCaffrey's degrees of freedom. When all raters answer equally often, CR2 is exactly
the one-sample t-test on rater means. The interval of a share is Wilson's with the effective number of answers, and its
test is the matching score test, so the two never contradict each other. Preferences follow the rules for ties of
:mod:`dialometer.stats.clustered.preference`.

Checked against ``statsmodels.api.GEE(y, ones, groups, family=Binomial(), cov_struct=Independence() | Exchangeable())``
with ``cov_type="robust"`` (CR0) and ``"bias_reduced"`` (CR3), and against ``scipy.stats.ttest_1samp`` on rater means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.preference import NO_DECISIVE, TieRule, binomial_test, with_rules
from dialometer.stats.clustered.proportion import clopper_pearson_interval, wilson_interval
from dialometer.stats.observations import Floats, check_confidence, codes, missing_note, numbers, same_length

Working = Literal["independence", "exchangeable"]
Sandwich = Literal["CR0", "CR1", "CR2", "CR3"]

ONE_RATER = "one rater only: nothing can be said about other raters; recruit more for an interval and a test"
NO_ANSWERS = "no answers: collect at least one judgment"


@dataclass(frozen=True, slots=True)
class _Marginal:
    """The weighted mean over raters with what its uncertainty is made of."""

    mean: float
    variance: float
    df: float
    n: int
    n_raters: int
    correlation: float
    notes: tuple[str, ...]


def clustered_proportion(
    answers: ArrayLike,
    raters: ArrayLike,
    *,
    null: float = 0.5,
    working: Working = "independence",
    sandwich: Sandwich = "CR2",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Share of "yes" over all answers (0 to 1; a tie may be 0.5) with a test that respects repeated raters.

    ``working="independence"`` weighs every answer alike; ``"exchangeable"`` weighs a rater less for each further
    answer, by the correlation of answers within raters that the data show.
    """
    y = numbers(answers)
    if np.any((y < 0) | (y > 1)):
        raise DialometerError("an answer lies outside 0 to 1", remedy="use clustered_mean for ratings")
    marginal = _marginal(y, raters, working, sandwich)
    method = f"proportion, cluster-robust by rater ({sandwich}, {working} working correlation)"
    if marginal is None:
        return unknown(method, NO_ANSWERS, label=label)
    if marginal.variance == 0 or marginal.n_raters < 2:
        return _without_spread(marginal, null, method, confidence, label)
    p = marginal.mean
    n_effective = p * (1 - p) / marginal.variance
    quantile = float(stats.t.isf((1 - check_confidence(confidence)) / 2, marginal.df))
    low, high = wilson_interval(p * n_effective, n_effective, quantile=quantile)
    statistic = (p - null) / math.sqrt(null * (1 - null) / n_effective)
    return Estimate(
        value=p,
        n=marginal.n,
        method=f"{method}, score t-test of {null:g}",
        low=low,
        high=high,
        confidence=confidence,
        interval_method="Wilson with effective number of answers and Student's t",
        statistic=statistic,
        df=(marginal.df,),
        p_value=float(2 * stats.t.sf(abs(statistic), marginal.df)),
        label=label,
        notes=marginal.notes,
        details={**_spread_details(marginal), "n_effective": n_effective, "design_effect": marginal.n / n_effective},
    )


def clustered_mean(
    values: ArrayLike,
    raters: ArrayLike,
    *,
    null: float | None = None,
    working: Working = "independence",
    sandwich: Sandwich = "CR2",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Mean rating with a t interval that respects repeated raters, and a test where a null value is given."""
    marginal = _marginal(numbers(values), raters, working, sandwich)
    method = f"mean, cluster-robust by rater ({sandwich}, {working} working correlation)"
    if marginal is None:
        return unknown(method, "no ratings: collect at least one judgment", label=label)
    is_testable = marginal.n_raters > 1 and marginal.variance > 0
    why = (
        ()
        if is_testable
        else (ONE_RATER if marginal.n_raters < 2 else "all raters have the same mean: no confidence interval",)
    )
    se = math.sqrt(marginal.variance) if is_testable else math.nan
    half = float(stats.t.isf((1 - check_confidence(confidence)) / 2, marginal.df)) * se
    statistic = math.nan if null is None else (marginal.mean - null) / se
    return Estimate(
        value=marginal.mean,
        n=marginal.n,
        method=method if null is None else f"{method}, t-test of {null:g}",
        low=marginal.mean - half,
        high=marginal.mean + half,
        confidence=confidence,
        interval_method="Student's t" if is_testable else "",
        statistic=statistic,
        df=(marginal.df,) if is_testable else (),
        p_value=math.nan if math.isnan(statistic) else float(2 * stats.t.sf(abs(statistic), marginal.df)),
        label=label,
        notes=(*marginal.notes, *why),
        details=_spread_details(marginal),
    )


def _marginal(y: Floats, raters: ArrayLike, working: Working, sandwich: Sandwich) -> _Marginal | None:
    """The weighted mean over raters, its sandwich variance and Bell and McCaffrey's degrees of freedom."""
    ids = np.asarray(raters)
    same_length(answers=y, raters=ids)
    is_given = ~np.isnan(y)
    y = y[is_given]
    if len(y) == 0:
        return None
    rater, levels = codes(ids[is_given])
    n_by_rater = np.bincount(rater, minlength=len(levels)).astype(np.float64)
    mean_by_rater = np.bincount(rater, weights=y, minlength=len(levels)) / n_by_rater
    n_raters = len(levels)
    correlation = 0.0
    weights = n_by_rater / len(y)
    if working == "exchangeable" and n_raters > 1:
        weights, correlation = _exchangeable_weights(y, n_by_rater, mean_by_rater)
    mean = float(weights @ mean_by_rater) if np.ptp(mean_by_rater) > 0 else float(mean_by_rater[0])
    if n_raters < 2:
        return _Marginal(mean, math.nan, math.nan, len(y), n_raters, math.nan, missing_note(int(np.sum(~is_given))))
    factor = {
        "CR0": np.ones(n_raters),
        "CR1": np.full(n_raters, n_raters / (n_raters - 1)),
        "CR2": 1 / (1 - weights),
        "CR3": 1 / (1 - weights) ** 2,
    }[sandwich]
    deviation = mean_by_rater - mean
    deviation[np.abs(deviation) < 1e-14 * max(1.0, abs(mean))] = 0.0
    leverage = weights**2 / (1 - weights)
    df = 1 / float(np.sum(leverage**2 * ((1 / weights - 1) ** 2 - 1)) + leverage.sum() ** 2)
    return _Marginal(
        mean=mean,
        variance=float(np.sum(factor * weights**2 * deviation**2)),
        df=df,
        n=len(y),
        n_raters=n_raters,
        correlation=correlation,
        notes=missing_note(int(np.sum(~is_given))),
    )


def _exchangeable_weights(y: Floats, n: Floats, mean_by_rater: Floats) -> tuple[Floats, float]:
    """Weights n / (1 + (n - 1) rho) with the moment estimate of rho, both iterated until they agree (Liang and Zeger).

    A negative estimate is taken as zero: it is noise here, and would hand nearly all weight to the busiest rater.
    """
    n_pairs = float(np.sum(n * (n - 1) / 2))
    weights = n / n.sum()
    rho = 0.0
    if n_pairs <= 1 or n.max() == 1:
        return weights, rho
    for _ in range(200):
        mean = float(weights @ mean_by_rater)
        squares = float(np.sum((y - mean) ** 2))
        if squares == 0:
            return weights, 0.0
        products = (float(np.sum((n * (mean_by_rater - mean)) ** 2)) - squares) / 2
        new = products / (n_pairs - 1) / (squares / (len(y) - 1))
        new = min(max(new, 0.0), 0.999999)
        weights = n / (1 + (n - 1) * new)
        weights = weights / weights.sum()
        if abs(new - rho) < 1e-13:
            break
        rho = new
    return weights, new


def _without_spread(marginal: _Marginal, null: float, method: str, confidence: float, label: str) -> Estimate:
    """Raters who do not differ leave the sandwich empty; each rater then counts as one answer, the careful reading."""
    if marginal.n_raters < 2:
        return Estimate(
            marginal.mean, marginal.n, method, confidence=confidence, label=label, notes=(*marginal.notes, ONE_RATER)
        )
    if marginal.mean in (0.0, 1.0):
        successes = round(marginal.mean) * marginal.n_raters
        low, high = clopper_pearson_interval(successes, marginal.n_raters, confidence=confidence)
        p_value = binomial_test(successes, marginal.n_raters, null=null).p_value
        note = "all answers are equal: each rater counts as one answer in the interval and the test"
        interval_method = "Clopper-Pearson over raters"
    else:
        low, high = wilson_interval(marginal.mean * marginal.n_raters, marginal.n_raters, confidence=confidence)
        deviation = (marginal.mean - null) / math.sqrt(null * (1 - null) / marginal.n_raters)
        p_value = float(2 * stats.norm.sf(abs(deviation)))
        note = "all raters have the same share: each rater counts as one answer in the interval and the test"
        interval_method = "Wilson over raters"
    return Estimate(
        value=marginal.mean,
        n=marginal.n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=interval_method,
        p_value=p_value,
        label=label,
        notes=(*marginal.notes, note),
        details=_spread_details(marginal),
    )


def _spread_details(marginal: _Marginal) -> dict[str, float | int]:
    return {
        "standard_error": math.sqrt(marginal.variance) if marginal.variance >= 0 else math.nan,
        "n_raters": marginal.n_raters,
        "working_correlation": marginal.correlation,
    }


def clustered_preference(
    signed: ArrayLike,
    raters: ArrayLike,
    *,
    ties: TieRule = "drop",
    cannot_tell: TieRule = "drop",
    working: Working = "independence",
    sandwich: Sandwich = "CR2",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Preference from +1 (for), -1 (against), 0 (tie), nan (cannot tell) when raters answer more than once.

    The rules are those of ``dialometer.stats.clustered.preference``. Where undecided answers are reported as answers of their
    own, the test asks whether answers for and against balance, by the cluster-robust mean of the signs.
    """
    choice = numbers(signed)
    ids = np.asarray(raters)
    same_length(signed=choice, raters=ids)
    is_unknown, is_tie = np.isnan(choice), choice == 0
    is_kept = ~((is_unknown & (cannot_tell == "drop")) | (is_tie & (ties == "drop")))
    is_half = (is_unknown & (cannot_tell == "half")) | (is_tie & (ties == "half"))
    is_reported = (is_unknown & (cannot_tell == "report")) | (is_tie & (ties == "report"))
    counts = {
        "n_for": int(np.sum(choice == 1)),
        "n_against": int(np.sum(choice == -1)),
        "n_ties": int(np.sum(is_tie)),
        "n_cannot_tell": int(np.sum(is_unknown)),
    }
    if counts["n_for"] + counts["n_against"] == 0:
        method = with_rules("preference, cluster-robust by rater", ties, cannot_tell, counts)
        return unknown(method, NO_DECISIVE, n=int(is_kept.sum()), label=label)
    score = np.where(is_half, 0.5, np.where(choice == 1, 1.0, 0.0))
    share = clustered_proportion(
        score[is_kept], ids[is_kept], working=working, sandwich=sandwich, confidence=confidence, label=label
    )
    tested = share
    if is_reported.any():
        signs = np.where(is_unknown, 0.0, choice)[is_kept]
        tested = clustered_mean(signs, ids[is_kept], null=0.0, working=working, sandwich=sandwich)
    undecided = (("ties", is_tie, ties), ("cannot tell", is_unknown, cannot_tell))
    dropped = [f"{int(kind.sum())} {name} excluded" for name, kind, rule in undecided if rule == "drop" and kind.any()]
    return Estimate(
        value=share.value,
        n=share.n,
        method=with_rules(share.method, ties, cannot_tell, counts),
        low=share.low,
        high=share.high,
        confidence=confidence,
        interval_method=share.interval_method,
        statistic=tested.statistic,
        df=tested.df,
        p_value=tested.p_value,
        label=label,
        notes=(*dropped, *share.notes, *(note for note in tested.notes if note not in share.notes)),
        details={**share.details, **counts},
    )
