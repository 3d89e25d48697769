"""Whole raters resampled: rankings as they would have been with other raters, wide enough for few and cheap for many."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialometer.analysis.family import Options
from dialometer.model.estimate import Estimate
from dialometer.stats.bradley_terry import Ties
from dialometer.stats.bradley_terry_bootstrap import BradleyTerryBootstrap, bradley_terry_bootstrap
from dialometer.stats.rank_intervals import RankIntervals
from dialometer.stats.votes import Votes

EXPANDED = "expanded percentile bootstrap over raters"
STUDENT = "Student's t with the spread over resampled raters"
MOST_RESAMPLED = 2000  # with more raters, this many random groups of them are resampled


def resampled_raters(
    votes: Votes, options: Options, *, ties: Ties = "half", position_effect: bool = False
) -> BradleyTerryBootstrap:
    """The model with whole raters resampled and intervals that are wide enough for few raters."""
    votes = in_groups(votes, options.seed)
    boot = bradley_terry_bootstrap(
        votes,
        ties=ties,
        position_effect=position_effect,
        by_rater=True,
        n_resamples=options.n_resamples,
        confidence=expanded_confidence(options.confidence, len(votes.raters)),
        seed=options.seed,
    )
    return _relabelled(boot, options)


def in_groups(votes: Votes, seed: int) -> Votes:
    """The same votes; of very many raters, random groups of equal size take the place of single ones.

    Groups of independent raters are independent too, so resampling them gives the same spread at a fraction of the cost.
    """
    if votes.rater is None or len(votes.raters) <= MOST_RESAMPLED:
        return votes
    return replace(
        votes,
        rater=random_groups(len(votes.raters), seed)[votes.rater],
        raters=tuple(f"group {k + 1}" for k in range(MOST_RESAMPLED)),
    )


def random_groups(n_raters: int, seed: int) -> NDArray[np.intp]:
    """For each rater the number of a group; groups differ in size by one at most."""
    return (np.random.default_rng([seed, 17]).permutation(n_raters) % MOST_RESAMPLED).astype(np.intp)


def expanded_confidence(confidence: float, n_raters: int) -> float:
    """The share of resamples that an interval must hold so that it is not too narrow for few raters.

    Percentiles of a bootstrap lack the factor n / (n - 1) and Student's t; the expanded percentile interval makes up for
    both (Hesterberg 2015, "What teachers should know about the bootstrap").
    """
    quantile = float(stats.t.isf((1 - confidence) / 2, n_raters - 1)) * math.sqrt(n_raters / (n_raters - 1))
    return min(1 - 1e-9, 1 - 2 * float(stats.norm.sf(quantile)))


def _relabelled(boot: BradleyTerryBootstrap, options: Options) -> BradleyTerryBootstrap:
    """The intervals under the confidence that was asked for, which is what the widened percentiles give."""

    def named(one: Estimate) -> Estimate:
        return replace(one, confidence=options.confidence, interval_method=EXPANDED) if one.has_interval else one

    ranks = replace(boot.ranks, ranks={name: named(one) for name, one in boot.ranks.ranks.items()})
    position = boot.position_effect
    if position is not None:
        se, df = float(position.details["bootstrap_se"]), n_resampled(ranks) - 1
        t = position.value / se if se > 0 else math.nan
        p = float(2 * stats.t.sf(abs(t), df)) if not math.isnan(t) else math.nan
        position = replace(named(position), statistic=t, df=(float(df),), p_value=p)
    return replace(
        boot,
        strengths={name: named(one) for name, one in boot.strengths.items()},
        ranks=ranks,
        position_effect=position,
        tie_parameter=None if boot.tie_parameter is None else named(boot.tie_parameter),
    )


def n_resampled(ranks: RankIntervals) -> int:
    """How many raters were resampled."""
    return next((one.n for one in ranks.ranks.values() if one.is_known), 2)
