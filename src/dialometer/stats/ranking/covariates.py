"""Strengths of systems with covariates of each vote: a Bradley-Terry model in which style (or anything else) counts too.

The log odds that the first system is preferred are ``strength(first) - strength(second) + position + x · b``, where ``x`` are
differences between the two sides (:mod:`dialometer.stats.ranking.style`). A tie counts as half a vote for each side. Votes may
have weights, as after a draw with unequal probabilities. Uncertainty is over raters and items as everywhere in the votes family
(:func:`dialometer.stats.clustered.two_way.two_way_variance`).

Checked in ``tests/stats/test_ranking_covariates.py`` against ``statsmodels.api.GLM(..., family=Binomial())``, with and
without weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import expit

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.two_way import TwoWayVariance, two_way_variance
from dialometer.stats.observations import Floats, from_the_highest
from dialometer.stats.ranking.paired_newton import anchored
from dialometer.stats.ranking.paired_rows import PairedRows
from dialometer.stats.ranking.vote_variance import is_item_per_rater
from dialometer.stats.ranking.votes import FIRST, SECOND, TIE, Codes, Votes

WHERE = "Bradley-Terry with covariates"
_MANY_ITEMS = 100  # beyond, no single item holds all there is on a parameter
_ILL = 1e8
_SAME = 1e-11  # relative size of what is nothing but rounding
_NEW = 1e-3  # share of a covariate's variation that must be its own


@dataclass(frozen=True, eq=False)
class CovariateFit:
    """A fit. ``strengths`` are centred at 0; ``coefficients`` are log odds for one unit of each covariate."""

    systems: tuple[str, ...]
    strengths: tuple[Estimate, ...]
    coefficients: tuple[Estimate, ...]
    position: Estimate | None
    n_votes: int
    parameters: Floats

    @property
    def order(self) -> tuple[str, ...]:
        """Systems from the strongest to the weakest."""
        return tuple(from_the_highest({s: e.value for s, e in zip(self.systems, self.strengths, strict=True)}))


def method_of(votes: Votes) -> str:
    """The model; ties are named where there are any."""
    return f"Bradley-Terry{', ties as half wins' if (votes.outcome == TIE).any() else ''}"


def fit_with_covariates(
    votes: Votes,
    covariates: Floats,
    names: Sequence[str],
    *,
    position_effect: bool = False,
    has_fixed_items: bool = False,
    confidence: float = 0.95,
) -> CovariateFit:
    """Fit the model to votes with their covariates (votes by covariates, none allowed)."""
    paired = covariate_rows(votes, covariates, position_effect=position_effect)
    weight = np.ones(votes.n) if votes.weight is None else votes.weight
    full = likeliest(paired, weight)
    # One column fewer than systems: strengths are differences to the mean of all.
    parameters = np.delete(full, len(votes.systems) - 1)
    rows = _design(votes, covariates, position_effect=position_effect)
    outcome = np.where(votes.outcome == FIRST, 1.0, np.where(votes.outcome == SECOND, 0.0, 0.5))
    chance = expit(rows @ parameters)
    spread = weight * chance * (1 - chance)
    scores = rows * (weight * (outcome - chance))[:, None]
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    if len(np.unique(rater)) < 2:
        raise NotEnoughData("one rater", where=WHERE, remedy="at least two are needed to speak for others")
    has_items = votes.item is not None and not has_fixed_items and not is_item_per_rater(votes)
    if has_items and votes.prompt_or_item is not None:
        _refuse_one_item(rows, spread, votes.prompt_or_item)
    variance = two_way_variance(scores, rows, spread, rater, votes.drawn if has_items else None)
    return _read(votes, names, parameters, variance, position_effect=position_effect, confidence=confidence)


def _design(votes: Votes, covariates: Floats, *, position_effect: bool) -> Floats:
    """Strengths as differences to the mean of all (one column fewer than systems), then position, then covariates."""
    n_systems, index = len(votes.systems), np.arange(votes.n)
    sides = np.zeros((votes.n, n_systems))
    sides[index, votes.first] += 1.0
    sides[index, votes.second] -= 1.0
    centred = sides[:, :-1] - sides[:, -1:]
    return np.hstack([centred, _with_position(votes, covariates, position_effect=position_effect)])


def _with_position(votes: Votes, covariates: Floats, *, position_effect: bool) -> Floats:
    """The covariates, led by a column of ones for the side that was shown first."""
    columns = np.asarray(covariates, dtype=np.float64).reshape(votes.n, -1)
    return np.hstack([np.ones((votes.n, 1)), columns]) if position_effect else columns


def covariate_rows(votes: Votes, covariates: Floats, *, position_effect: bool) -> PairedRows:
    """The votes sorted for fitting, with position as the first covariate; refused where parameters cannot be told apart."""
    paired = PairedRows(votes, _with_position(votes, covariates, position_effect=position_effect))
    gram = paired.gram()
    scale = np.sqrt(np.where(np.diagonal(gram) > 0, np.diagonal(gram), 1.0))
    gram = anchored((gram / np.outer(scale, scale))[None], paired.n_systems)[0]
    if np.linalg.matrix_rank(gram, hermitian=True, rtol=_SAME) < len(gram):
        raise NotEnoughData(
            "the votes cannot tell systems and covariates apart",
            where=WHERE,
            remedy="collect votes on more items, or leave out covariates that never differ",
        )
    return paired


def likeliest(paired: PairedRows, weight: Floats) -> Floats:
    """Strengths, position and coefficients of maximum likelihood, with the weights in the order of the votes."""
    parameters = paired.fit(weight[paired.order])
    if parameters is None:
        raise NotEnoughData("no finite estimate exists", where=WHERE, remedy="collect more votes")
    return parameters


def _refuse_one_item(rows: Floats, spread: Floats, item: Codes) -> None:
    """Where all that is known of a parameter comes from one item, nothing can be said about other items."""
    total = (rows * spread[:, None]).T @ rows
    scale = 1 / np.sqrt(np.diagonal(total))
    numbers = np.unique(item)
    for number in numbers if len(numbers) <= _MANY_ITEMS else ():
        own = item == number
        rest = total - (rows[own] * spread[own, None]).T @ rows[own]
        if np.linalg.cond(rest * np.outer(scale, scale)) > _ILL:
            raise NotEnoughData(
                "only one item separates systems from covariates", where=WHERE, remedy="collect votes on more items"
            )


def distinct_covariates(votes: Votes, covariates: Floats) -> list[int]:
    """The covariates that the votes can tell apart from the systems and from those before them, in order."""
    n = len(votes.systems)
    gram = PairedRows(votes, _with_position(votes, covariates, position_effect=True)).gram()
    base, distinct = list(range(n + 1)), []
    for k in range(n + 1, len(gram)):
        shared = gram[base, k]
        rest = gram[k, k] - shared @ np.linalg.lstsq(gram[np.ix_(base, base)], shared, rcond=None)[0]
        if rest > _NEW * max(gram[k, k], 1e-300):
            distinct.append(k - n - 1)
            base.append(k)
    return distinct


def _read(
    votes: Votes,
    names: Sequence[str],
    parameters: Floats,
    variance: TwoWayVariance,
    *,
    position_effect: bool,
    confidence: float,
) -> CovariateFit:
    n_systems, n = len(votes.systems), len(parameters)
    # Coded against the mean of all: the last strength is minus the sum of the others.
    expand = np.zeros((n_systems, n))
    expand[: n_systems - 1, : n_systems - 1] = np.eye(n_systems - 1)
    expand[-1, : n_systems - 1] = -1.0
    over = "raters" if variance.items is None else "raters and items"

    def estimate(contrast: Floats, label: str, *, is_tested: bool) -> Estimate:
        value = float(contrast @ parameters)
        error, df = variance.contrast(contrast)
        known = df > 1e-9 and error > 0
        width = float(stats.t.isf((1 - confidence) / 2, df)) * error if known else math.nan
        ratio = value / error if known else math.nan
        return Estimate(
            value=value,
            n=votes.n,
            method=method_of(votes),
            low=value - width,
            high=value + width,
            confidence=confidence,
            interval_method=f"two-way jackknife over {over}, Student's t",
            statistic=ratio if is_tested else math.nan,
            df=(df,),
            p_value=float(2 * stats.t.sf(abs(ratio), df)) if known and is_tested else math.nan,
            label=label,
            unit="log odds",
        )

    own = np.eye(n)
    first = n_systems - 1
    position = estimate(own[first], "shown first", is_tested=True) if position_effect else None
    start = first + int(position_effect)
    return CovariateFit(
        systems=votes.systems,
        strengths=tuple(estimate(row, name, is_tested=False) for row, name in zip(expand, votes.systems, strict=True)),
        coefficients=tuple(estimate(own[start + k], name, is_tested=True) for k, name in enumerate(names)),
        position=position,
        n_votes=votes.n,
        parameters=parameters,
    )
