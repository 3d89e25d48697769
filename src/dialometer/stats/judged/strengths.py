"""Bradley-Terry strengths from people's votes, corrected by a judge who voted on every comparison; covariates may count too.

PPI++ for logistic models (Angelopoulos, Duchi and Zrnic 2023, section 5): the log odds that the first system is preferred are
``strength(first) - strength(second) + x · b``, and people's log likelihood is corrected by the judge's likelihood on the comparisons
without people minus that on those with people, times a tuned weight within 0 and 1. Ties are half a vote for each side.

With independent votes, parameters and weight are those of ``ppi_py.ppi_logistic_pointestimate``, standard errors those of
``ppi_py.ppi_logistic_ci`` (``tests/stats/test_judged.py``). Here votes of one rater or on one item are dependent, as in
:mod:`dialometer.stats.judged.means`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import expit

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.judged.means import METHOD, NO_WEIGHT, Corrected, times_worth
from dialometer.stats.observations import Floats, Ints, check_confidence, codes

_MOST_STEPS, _CLOSE, _RUNAWAY = 60, 1e-11, 15.0


@dataclass(frozen=True, eq=False)
class JudgedVotes:
    """Votes of people with the judge's on the same comparisons (``judge``), and the judge's on the rest of them.

    ``rows`` and ``rest_rows`` are the designs (comparisons by parameters), votes lie within 0 and 1.
    """

    rows: Floats
    vote: Floats
    judge: Floats
    rest_rows: Floats
    rest_judge: Floats
    item: Ints
    rest_item: Ints
    rater: Ints | None = None
    weight: Floats | None = None

    @property
    def weights(self) -> Floats:
        """Of people's votes, with mean 1."""
        w = np.ones(len(self.vote)) if self.weight is None else self.weight
        return np.asarray(w / w.mean())


def fit_logistic(votes: JudgedVotes, weight: float, start: Floats | None = None) -> Floats:
    """Parameters with this weight of the judge; 0 is people alone."""
    theta = np.zeros(votes.rows.shape[1]) if start is None else start.copy()
    w, n, n_rest = votes.weights, len(votes.vote), max(len(votes.rest_judge), 1)
    for _ in range(_MOST_STEPS):
        chance, rest = expit(votes.rows @ theta), expit(votes.rest_rows @ theta)
        own = votes.rows.T @ (w * ((1 - weight) * chance - votes.vote + weight * votes.judge)) / n
        gradient = own + weight * votes.rest_rows.T @ (rest - votes.rest_judge) / n_rest
        information = (1 - weight) * (votes.rows.T * (w * chance * (1 - chance))) @ votes.rows / n
        information += weight * (votes.rest_rows.T * (rest * (1 - rest))) @ votes.rest_rows / n_rest
        step = np.linalg.lstsq(information, gradient, rcond=1e-12)[0]
        theta = theta - step * min(1.0, 4 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(theta).max() > _RUNAWAY:
            break
        if np.abs(step).max() < _CLOSE:
            return np.asarray(theta)
    raise NotEnoughData(
        "a system won or lost all of its comparisons, so its strength has no end", remedy="collect more votes"
    )


def tuned_weight(votes: JudgedVotes, theta: Floats) -> float:
    """The weight of the judge that makes the sum of the parameters' variances smallest, within 0 and 1."""
    own, judged, rest = _gradients(votes, theta)
    inverse = _inverse(votes, theta)
    n, n_rest = len(np.unique(votes.item)), len(rest)
    if n_rest < 2:
        return 0.0
    centred, judged_centred = own - own.mean(0), judged - judged.mean(0)
    cross = (centred.T @ judged_centred + judged_centred.T @ centred) / len(own)
    spread = np.atleast_2d(np.cov(np.concatenate([judged, rest]).T))
    below = 2 * (1 + n / n_rest) * float(np.trace(inverse @ spread @ inverse))
    return float(np.clip(np.trace(inverse @ cross @ inverse) / below, 0, 1)) if below > 0 else 0.0


def logistic_covariance(votes: JudgedVotes, theta: Floats, weight: float) -> Floats:
    """Covariance of the parameters over items and raters."""
    own, judged, rest = _gradients(votes, theta)
    rows = own - weight * judged
    rows = (rows - rows.mean(0)) / len(rows)
    n_items = int(max(votes.item.max(initial=0), votes.rest_item.max(initial=0))) + 1
    sums = _clustered(rows, votes.item, n_items)
    if weight and len(rest) > 1:
        sums += _clustered(weight * (rest - rest.mean(0)) / len(rest), votes.rest_item, n_items)
    middle = sums.T @ sums
    if votes.rater is not None:
        of_raters = _clustered(rows, votes.rater, int(votes.rater.max()) + 1)
        meeting, levels = codes(votes.rater * n_items + votes.item)
        of_meetings = _clustered(rows, meeting, len(levels))
        middle = _at_least(middle + of_raters.T @ of_raters - of_meetings.T @ of_meetings, middle)
    inverse = _inverse(votes, theta)
    return np.asarray(inverse @ middle @ inverse)


def _at_least(matrix: Floats, least: Floats) -> Floats:
    """The matrix with no variance below the other's, in any direction."""
    values, vectors = np.linalg.eigh(matrix - least)
    return np.asarray(least + (vectors * np.maximum(values, 0)) @ vectors.T)


def _clustered(rows: Floats, cluster: Ints, n: int) -> Floats:
    sums = np.stack([np.bincount(cluster, weights=column, minlength=n) for column in rows.T], axis=1)
    n_clusters = len(np.unique(cluster))
    return np.asarray(sums * math.sqrt(n_clusters / max(n_clusters - 1, 1)))


def _gradients(votes: JudgedVotes, theta: Floats) -> tuple[Floats, Floats, Floats]:
    chance, rest, w = expit(votes.rows @ theta), expit(votes.rest_rows @ theta), votes.weights
    own, judged = (votes.rows * (w * (chance - outcome))[:, None] for outcome in (votes.vote, votes.judge))
    return own, judged, votes.rest_rows * (rest - votes.rest_judge)[:, None]


def _inverse(votes: JudgedVotes, theta: Floats) -> Floats:
    """The inverse information of one vote, from all comparisons."""
    rows, w = (
        np.concatenate([votes.rows, votes.rest_rows]),
        np.concatenate([votes.weights, np.ones(len(votes.rest_rows))]),
    )
    chance = expit(rows @ theta)
    return np.linalg.pinv((rows.T * (w * chance * (1 - chance))) @ rows / len(rows), hermitian=True)


def judged_strengths(
    votes: JudgedVotes, contrasts: Mapping[str, Floats], *, confidence: float = 0.95
) -> dict[str, Corrected]:
    """Combinations of the parameters (such as each strength minus their mean) by people, by the judge, and by both."""
    level = check_confidence(confidence)
    if votes.rater is not None and len(np.unique(votes.rater)) < 2:
        raise NotEnoughData("one rater says nothing about others", remedy="recruit more")
    alone = fit_logistic(votes, 0.0)
    try:
        tuned = tuned_weight(votes, fit_logistic(votes, 1.0, alone)) if len(votes.rest_judge) > 1 else 0.0
        both = fit_logistic(votes, tuned, alone)
    except NotEnoughData:
        tuned, both = 0.0, alone
    n, of_items = len(votes.vote), max(len(np.unique(votes.item)) - votes.rows.shape[1], 2)
    of_raters = math.inf if votes.rater is None else max(len(np.unique(votes.rater)) - 1, 1)
    df = min(of_items, of_raters)
    of_people, of_both = logistic_covariance(votes, alone, 0.0), logistic_covariance(votes, both, tuned)
    judge, of_judge, n_judged = _judge_alone(votes)
    n_rest = len(np.unique(votes.rest_item))
    share_rest = n_rest / (n_rest + len(np.unique(votes.item)))
    results = {}
    for name, contrast in contrasts.items():
        before, after = (float(contrast @ matrix @ contrast) for matrix in (of_people, of_both))
        is_used = tuned > 0 and after < before
        people = _wald(float(contrast @ alone), before, df, n, "raters alone", level, name)
        if is_used:
            slack = of_items / (of_items - 1)  # the estimated weight costs a degree of freedom, as in regression
            corrected = _wald(
                float(contrast @ both), after * slack, min(of_items - 1, of_raters), n, METHOD, level, name
            )
        else:
            corrected = _wald(float(contrast @ alone), before, df, n, METHOD, level, name).with_note(NO_WEIGHT)
        spread = float(contrast @ of_judge @ contrast)
        only = _wald(float(contrast @ judge), spread, n_judged - 1, n_judged, "judge alone", level, name)
        times = (1.0, math.nan, math.nan)
        if is_used:
            times = times_worth(before, after, share_rest, 1 / (1 / of_items + 1 / of_raters), level)
        results[name] = Corrected(
            people, _without_test(only), corrected, tuned if is_used else 0.0, *(n * factor for factor in times)
        )
    return results


def _judge_alone(votes: JudgedVotes) -> tuple[Floats, Floats, int]:
    """The judge's own strengths from all comparisons, with their covariance over items."""
    key, first = np.unique(votes.item, return_index=True)
    rows = np.concatenate([votes.rows[first], votes.rest_rows])
    judged = np.concatenate([votes.judge[first], votes.rest_judge])
    item = np.concatenate([key, votes.rest_item])
    empty = np.empty((0, rows.shape[1]))
    whole = JudgedVotes(rows, judged, judged, empty, np.empty(0), item, np.empty(0, dtype=np.int64))
    try:
        theta = fit_logistic(whole, 0.0)
    except NotEnoughData:
        return np.full(rows.shape[1], math.nan), np.zeros((rows.shape[1],) * 2), len(key)
    return theta, logistic_covariance(whole, theta, 0.0), len(np.unique(item))


def _wald(value: float, variance: float, df: float, n: int, method: str, level: float, label: str) -> Estimate:
    error = math.sqrt(max(variance, 0.0))
    margin = float(stats.t.isf((1 - level) / 2, max(df, 1))) * error
    statistic = value / error if error > 0 else math.nan
    p_value = float(2 * stats.t.sf(abs(statistic), max(df, 1))) if error > 0 else math.nan
    return Estimate(
        value, n, method, low=value - margin, high=value + margin, confidence=level, label=label, statistic=statistic, df=(df,),
        p_value=p_value, interval_method="Student's t over raters and items", details={"standard_error": error},
    )  # fmt: skip


def _without_test(estimate: Estimate) -> Estimate:
    """A judge's numbers are no sample of raters: there is nothing to test."""
    return Estimate(
        estimate.value, estimate.n, estimate.method, low=estimate.low, high=estimate.high, confidence=estimate.confidence,
        label=estimate.label, interval_method="Student's t over items; the judge's error is not in it",
    )  # fmt: skip


def pair_design(first: Ints, second: Ints, n_systems: int) -> Floats:
    """Rows of comparisons: strengths of all systems but the first."""
    rows = np.zeros((len(first), n_systems))
    rows[np.arange(len(first)), first] += 1
    rows[np.arange(len(first)), second] -= 1
    return rows[:, 1:]


def strength_contrasts(names: Sequence[str], n_covariates: int = 0) -> dict[str, Floats]:
    """Each system's strength minus the mean of all, as combinations of the parameters of :func:`pair_design`."""
    n = len(names)
    centre = np.eye(n) - 1 / n
    return {name: np.concatenate([centre[i, 1:], np.zeros(n_covariates)]) for i, name in enumerate(names)}
