"""The difference between two retrievers' first answers, for other raters and other questions.

Every question counts alike. Raters judge answers of several questions, and other raters judge other answers, so both raters
and questions are left out in turn (two-way jackknife, as in :mod:`dialometer.stats.clustered.two_way`). Questions to which both
give the same answer say nothing about the difference: they count in its mean, but not in the degrees of freedom. Where the
questions are all that the claim is about, raters alone are left out.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dialometer.analysis.base.scale_units import difference_within
from dialometer.analysis.base.wording import n_of
from dialometer.analysis.families.candidates.pool import Marks, Pool
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats

METHOD = "mean difference over questions, two-way jackknife over raters and questions"
METHOD_FIXED = "mean difference over questions, jackknife over raters"
FEWEST_QUESTIONS = 3
"""Questions with different answers below which there is no test."""


def answer_difference(
    pool: Pool,
    first: Marks,
    second: Marks,
    *,
    confidence: float,
    has_fixed_questions: bool = False,
    label: str = "",
) -> Estimate:
    """First minus second, with a t test and interval; unknown where no question was judged for both."""
    method = METHOD_FIXED if has_fixed_questions else METHOD
    gaps = pool.per_question(first) - pool.per_question(second)
    is_shared = ~np.isnan(gaps)
    n = int(is_shared.sum())
    if not n:
        return unknown(method, "no question has a rated first answer of both", label=label)
    value = float(gaps[is_shared].mean())
    weight = (_weights(pool, first, is_shared) - _weights(pool, second, is_shared)) / n
    n_different = len(np.unique(pool.question[(weight != 0) & pool.is_judged]))
    n_raters = len(np.unique(pool.rater[weight[pool.candidate] != 0]))
    details = {"n_different": n_different, "n_raters": n_raters}
    if n_different < (1 if has_fixed_questions else FEWEST_QUESTIONS) or n_raters < 2:
        counted = f"{n_of(n_different, 'question')} by {n_of(n_raters, 'rater')}"
        why = f"different first answers to {counted}: too few for a test"
        return Estimate(value, n, method, confidence=confidence, label=label, notes=(why,), details=details)
    deviations = None if has_fixed_questions else gaps[is_shared] - value
    error, df = _uncertainty(pool, weight, deviations, n_different)
    if not error > 0:
        why = f"no variation between {'raters' if has_fixed_questions else 'raters and questions'}: no confidence interval"
        return Estimate(value, n, method, confidence=confidence, label=label, notes=(why,), details=details)
    half = float(stats.t.isf((1 - confidence) / 2, df)) * error
    gap = Estimate(
        value=value,
        n=n,
        method=f"{method}, t-test",
        low=value - half,
        high=value + half,
        confidence=confidence,
        interval_method="Student's t, effective number of raters"
        if has_fixed_questions
        else "Student's t, the fewer of raters and questions with different answers",
        statistic=value / error,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(value / error), df)),
        label=label,
        details={**details, "standard_error": error},
    )
    return difference_within(gap, *pool.scale.bounds())


def _weights(pool: Pool, chosen: Marks, is_shared: Marks) -> Floats:
    """How much each candidate counts in its question's mean."""
    used = chosen & pool.is_judged & is_shared[pool.question]
    n_here = np.bincount(pool.question[used], minlength=len(pool.questions))
    return np.where(used, 1 / np.maximum(n_here[pool.question], 1), 0.0)


def _uncertainty(pool: Pool, weight: Floats, deviations: Floats | None, n_different: int) -> tuple[float, float]:
    """Standard error and degrees of freedom; without the questions' deviations for these questions only."""
    n_ratings = pool.n_ratings[pool.candidate]
    own = weight[pool.candidate]
    # The mean of a candidate without one of its ratings; a single rating is compared with all others of its kind.
    centre = np.where(n_ratings > 1, pool.mean[pool.candidate], np.average(pool.value, weights=np.abs(own)))
    changes = own * (centre - pool.value) / np.maximum(n_ratings - 1, 1)
    by_rater = np.bincount(pool.rater, weights=changes)
    n_raters = len(np.unique(pool.rater[own != 0]))
    of_raters = (n_raters - 1) / n_raters * float(by_rater @ by_rater)
    share = np.bincount(pool.rater, weights=(own / n_ratings) ** 2)
    effective = float(share.sum()) ** 2 / float(share @ share)
    if deviations is None:
        return math.sqrt(of_raters), max(effective - 1, 1.0)
    n = len(deviations)
    of_questions = (n - 1) / n * float(np.sum((deviations / (n - 1)) ** 2)) if n > 1 else 0.0
    alone = own * (pool.value - centre) / np.sqrt(np.maximum(n_ratings * (n_ratings - 1), 1))
    variance = max(of_questions + of_raters - float(alone @ alone), of_questions, of_raters)
    return math.sqrt(variance), max(min(n_different - 1, effective - 1), 1.0)
