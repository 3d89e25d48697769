"""Do shares or means differ between groups: strategies, questions, or subgroups of raters?

``homogeneity`` is Pearson's chi-square for answers of different raters. ``homogeneity_clustered`` is for raters who
answer in several groups or several times in one: group means with a CR2 sandwich by rater and the approximate Hotelling
T-squared test of Pustejovsky and Tipton (2018, "HTZ"). When every rater answers once in every group it is exactly
Hotelling's test on the raters' differences. A few raters who happen to agree would seem certain, so a group in which all
do has the mean variance of all groups. The value of both is the square root of the share of variance that lies between the
groups, which for yes/no answers is Cramer's V.

Checked against ``scipy.stats.chi2_contingency(table, correction=False)``, ``pingouin.multivariate_ttest`` on
differences, ``scipy.stats.ttest_ind(equal_var=False)`` for two groups of different raters, the homogeneity tests of
Table 2 in Guerini, Falcone and Magnini (SCAI 2018), and, for the level with small groups that agree, by simulation in
tests/stats/test_preference_clustered.py.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, check_confidence, codes, missing_note, numbers, same_length

CLUSTERED = "cluster-robust by rater (CR2)"
TOO_FEW = "a group has answers of fewer than two raters: recruit more raters or merge groups"
AGREED = "a group whose raters all answered alike is tested with the mean variance of all groups"
_ROUNDING = 1e-12
"""Relative size of what is nothing but rounding: its last digits differ between processors, and a test of them would, too."""


def homogeneity(successes: ArrayLike, n: ArrayLike) -> Estimate:
    """Are the shares of several groups of independent answers equal? Pearson's chi-square on the groups-by-two table."""
    yes, total = numbers(successes), numbers(n)
    n_groups = same_length(successes=yes, n=total)
    method = "chi-square test of homogeneity"
    if n_groups < 2:
        raise DialometerError("homogeneity of fewer than two groups", remedy="give counts of at least two groups")
    if np.any((yes < 0) | (yes > total)):
        raise DialometerError("successes outside 0 to n", remedy="give successes and answers of each group")
    n_all = round(float(total.sum()))
    if np.any(total == 0):
        return unknown(method, "a group has no answers: leave it out or collect judgments for it", n=n_all)
    pooled = yes.sum() / total.sum()
    if pooled in (0.0, 1.0):
        return unknown(method, "all answers are equal, there is nothing to compare: collect more answers", n=n_all)
    expected = np.concatenate([total * pooled, total * (1 - pooled)])
    statistic = float(np.sum((yes - total * pooled) ** 2 / (total * pooled * (1 - pooled))))
    notes = ("an expected count is below 5: the chi-square is rough",) if expected.min() < 5 else ()
    return Estimate(
        value=math.sqrt(statistic / n_all),
        n=n_all,
        method=method,
        statistic=statistic,
        df=(float(n_groups - 1),),
        p_value=float(stats.chi2.sf(statistic, n_groups - 1)),
        notes=notes,
        details={"shares": (yes / total).tolist(), "effect": "Cramer's V"},
    )


@dataclass(frozen=True, slots=True)
class _GroupMeans:
    """Means of K groups with their CR2 covariance and what the small-sample degrees of freedom need."""

    levels: tuple[str, ...]
    means: Floats
    covariance: Floats
    counts: Floats
    pair_moments: Floats
    effect: float
    n_raters: int
    notes: tuple[str, ...]

    def degrees(self, contrasts: Floats) -> float:
        """Degrees of freedom for q contrasts; for one contrast they are Bell and McCaffrey's."""
        q = len(contrasts)
        working = (contrasts / self.counts) @ contrasts.T
        projector = contrasts.T @ np.linalg.solve(working, contrasts)
        diagonal = np.diag(projector)
        return q * (q + 1) / float(np.sum(self.pair_moments * (np.outer(diagonal, diagonal) + projector**2)))


def _group_means(answers: ArrayLike, groups: ArrayLike, raters: ArrayLike) -> _GroupMeans | str:
    """Means and covariance, or the reason why there are none."""
    y, group_ids, rater_ids = numbers(answers), np.asarray(groups), np.asarray(raters)
    same_length(answers=y, groups=group_ids, raters=rater_ids)
    group, levels = codes(group_ids)
    if len(levels) < 2:
        return "fewer than two groups: nothing to compare; give answers of at least two"
    is_given = ~np.isnan(y)
    y, group = y[is_given], group[is_given]
    rater, rater_levels = codes(rater_ids[is_given])
    n_groups, n_raters = len(levels), len(rater_levels)
    n_total = np.bincount(group, minlength=n_groups).astype(np.float64)
    if np.any(n_total == 0):
        return "a group has no answers: leave it out or collect judgments for it"
    cell = rater * n_groups + group
    n_cell = np.bincount(cell, minlength=n_raters * n_groups).reshape(n_raters, n_groups).astype(np.float64)
    if np.any(np.sum(n_cell > 0, axis=0) < 2):
        return TOO_FEW
    means = np.bincount(group, weights=y, minlength=n_groups) / n_total
    residual = y - means[group]
    between = float(np.sum(n_total * (means - y.mean()) ** 2))
    overall = float(np.sum((y - y.mean()) ** 2))
    if np.ptp(y) == 0:
        return "all answers are equal, there is nothing to compare: collect more answers"
    sums = np.bincount(cell, weights=residual, minlength=n_raters * n_groups).reshape(n_raters, n_groups)
    sums[np.abs(sums) <= _ROUNDING * np.abs(y).max()] = 0.0
    scale = 1 / (n_total * np.sqrt(1 - n_cell / n_total))
    influence = sums * scale
    covariance, notes = _without_false_certainty(influence.T @ influence, n_total)
    own, shared = scale**2 * n_cell, scale * n_cell / np.sqrt(n_total)
    cross = own.T @ shared**2
    return _GroupMeans(
        levels=tuple(str(level) for level in levels),
        means=means,
        covariance=covariance,
        counts=n_total,
        pair_moments=own.T @ own - cross - cross.T + (shared.T @ shared) ** 2,
        effect=math.sqrt(between / overall),
        n_raters=n_raters,
        notes=(*missing_note(int(np.sum(~is_given))), *notes),
    )


def _without_false_certainty(covariance: Floats, counts: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Groups in which all raters agree get the mean variance of an answer over all groups, these included.

    A few raters agree by chance now and then. With a variance of zero such a group would differ from every other: of two
    equal groups of 4 and 34 raters in up to 24 % of studies, with this in fewer than 1 %.
    """
    variance = np.diag(covariance)
    agrees = variance == 0
    if not agrees.any() or agrees.all():
        return covariance, ()
    mean = float(variance @ counts**2 / counts.sum())
    return covariance + np.diag(np.where(agrees, mean / counts, 0.0)), (AGREED,)


def homogeneity_clustered(answers: ArrayLike, groups: ArrayLike, raters: ArrayLike, *, label: str = "") -> Estimate:
    """Are group means (or shares of 0/1 answers) equal, when raters answer more than once?"""
    method = f"homogeneity of group means, {CLUSTERED}, HTZ test"
    fitted = _group_means(answers, groups, raters)
    n = int(np.sum(~np.isnan(numbers(answers))))
    if isinstance(fitted, str):
        return unknown(method, fitted, n=n, label=label)
    q = len(fitted.levels) - 1
    contrasts = np.column_stack([-np.ones(q), np.eye(q)])
    difference = contrasts @ fitted.means
    spread = contrasts @ fitted.covariance @ contrasts.T
    degrees = fitted.degrees(contrasts)
    problem = ""
    statistic = p_value = math.nan
    df: tuple[float, ...] = ()
    if fitted.n_raters <= q or degrees - q + 1 <= 0:
        problem = f"no test: {fitted.n_raters} raters are too few for {q + 1} groups; recruit more"
    elif not fitted.covariance.any():
        problem = "no test: in every group all raters answered alike"
    elif np.linalg.matrix_rank(spread, hermitian=True, tol=_ROUNDING * np.diag(fitted.covariance).max()) < q:
        problem = "no test: raters' answers do not vary between some groups"
    else:
        quadratic = float(difference @ np.linalg.solve(spread, difference))
        df = (float(q), degrees - q + 1)
        statistic = quadratic * (degrees - q + 1) / (degrees * q)
        p_value = float(stats.f.sf(statistic, *df))
    return Estimate(
        value=fitted.effect,
        n=n,
        method=method,
        statistic=statistic,
        df=df,
        p_value=p_value,
        label=label,
        notes=(*(note for note in fitted.notes if note != AGREED), problem) if problem else fitted.notes,
        details={
            "means": dict(zip(fitted.levels, fitted.means.tolist(), strict=True)),
            "n_raters": fitted.n_raters,
            "effect": "square root of the share of variance between groups",
        },
    )


def pairwise_clustered(
    answers: ArrayLike, groups: ArrayLike, raters: ArrayLike, *, confidence: float = 0.95
) -> dict[tuple[str, str], Estimate]:
    """Difference of means (first minus second) for every two groups, each with a cluster-robust t-test.

    P-values are not corrected for their number: pass the values to ``multiplicity.adjust_estimates``.
    """
    fitted = _group_means(answers, groups, raters)
    method = f"difference of group means, {CLUSTERED}, t-test"
    if isinstance(fitted, str):
        names = [str(level) for level in codes(np.asarray(groups))[1]]
        return {pair: unknown(method, fitted) for pair in itertools.combinations(names, 2)}
    result = {}
    for first, second in itertools.combinations(range(len(fitted.levels)), 2):
        contrast = np.zeros((1, len(fitted.levels)))
        contrast[0, first], contrast[0, second] = 1.0, -1.0
        value = float(contrast[0] @ fitted.means)
        variance = float(contrast[0] @ fitted.covariance @ contrast[0])
        degrees = fitted.degrees(contrast)
        is_tested = variance > _ROUNDING * float(contrast[0] ** 2 @ np.diag(fitted.covariance))
        se = math.sqrt(variance) if is_tested else math.nan
        half = float(stats.t.isf((1 - check_confidence(confidence)) / 2, degrees)) * se
        pair = (fitted.levels[first], fitted.levels[second])
        result[pair] = Estimate(
            value=value,
            n=round(float(fitted.counts[first] + fitted.counts[second])),
            method=method,
            low=value - half,
            high=value + half,
            confidence=confidence,
            interval_method="Student's t with Bell-McCaffrey degrees of freedom",
            statistic=value / se,
            df=(degrees,),
            p_value=float(2 * stats.t.sf(abs(value / se), degrees)),
            label=f"{pair[0]} - {pair[1]}",
            notes=fitted.notes if is_tested else (*fitted.notes, "no test: the difference is the same for all raters"),
            details={"standard_error": se, "n_raters": fitted.n_raters},
        )
    return result
