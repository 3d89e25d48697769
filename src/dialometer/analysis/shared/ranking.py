"""Which system is ahead of which: the same tests and words wherever systems are ranked."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, p_words
from dialometer.analysis.shared.comparisons import CORRECTIONS, p_adjusted
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Claim, Column, ColumnKind
from dialometer.stats.effects.multiplicity import Correction, adjust_estimates
from dialometer.stats.ranking.bradley_terry import Ties
from dialometer.stats.ranking.bradley_terry_bootstrap import BradleyTerryBootstrap, bradley_terry_bootstrap
from dialometer.stats.ranking.rank_intervals import RankIntervals
from dialometer.stats.ranking.votes import Votes

_NOTHING = 1e-12

Pairs = Mapping[tuple[str, str], Estimate]
"""Differences (first minus second) between systems, with ``p_adjusted`` in their details."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The system with the highest score; those that are significantly behind it after correction, and those that are not.

    ``shared`` are further systems with the very same score; the first in file order is called the best.
    """

    best: str
    behind: tuple[str, ...]
    level: tuple[str, ...]
    untested: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """All systems with the highest score."""
        return (self.best, *self.shared)

    @property
    def is_clear(self) -> bool:
        """Whether every other system is significantly behind the first."""
        return not self.level and not self.untested and bool(self.behind)


def adjusted_pairs(pairs: Pairs, correction: Correction) -> dict[tuple[str, str], Estimate]:
    """The pairs as one family of tests."""
    adjusted = adjust_estimates([_tidy(gap) for gap in pairs.values()], correction)
    return dict(zip(pairs, adjusted, strict=True))


def _tidy(estimate: Estimate) -> Estimate:
    """Ends that are zero but for rounding, which would be written as 4.4e-17."""
    value, low, high = (0.0 if abs(end) < _NOTHING else end for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def difference(pairs: Pairs, first: str, second: str) -> Estimate | None:
    """First minus second, whichever way round the pair was computed."""
    if (first, second) in pairs:
        return pairs[first, second]
    other = pairs.get((second, first))
    if other is None:
        return None
    return replace(
        other,
        value=-other.value,
        low=-other.high,
        high=-other.low,
        statistic=-other.statistic,
        label=f"{first} - {second}",
    )


def lead(scores: Mapping[str, Estimate], pairs: Pairs, *, confidence: float) -> Lead | None:
    """Who leads; None where nobody has a score. Equal scores go to the first in file order and count as level."""
    known = [name for name, score in scores.items() if score.is_known]
    if not known:
        return None
    best = max(known, key=lambda name: scores[name].value)
    behind: list[str] = []
    level: list[str] = []
    untested: list[str] = []
    shared = [name for name in known if name != best and math.isclose(scores[name].value, scores[best].value)]
    for name in known:
        if name == best:
            continue
        gap = difference(pairs, best, name)
        p = math.nan if gap is None else p_adjusted(gap)
        if math.isnan(p):
            (level if name in shared else untested).append(name)
        elif p <= 1 - confidence and gap is not None and gap.value > 0:
            behind.append(name)
        else:
            level.append(name)
    return Lead(best, tuple(behind), tuple(level), tuple(untested), tuple(shared))


def lead_words(leader: Lead, pairs: Pairs, correction: str) -> str:
    """From whom the first differs significantly and from whom not, with the p-values that decide it."""

    def told(names: Sequence[str]) -> str:
        items = []
        for name in names:
            gap = difference(pairs, leader.best, name)
            p = math.nan if gap is None else p_adjusted(gap)
            items.append(name if math.isnan(p) else f"{name} ({p_words(p)})")
        return listed(items)

    parts = []
    if leader.behind:
        parts.append(f"{leader.best} is ahead of {told(leader.behind)}")
    if leader.level:
        verb = f"{'it' if parts else leader.best} does not differ significantly from"
        parts.append(f"{verb} {told(leader.level)}")
    if leader.untested:
        parts.append(f"there is no test against {listed(leader.untested)}")
    text = "; ".join(parts)
    n_tests = len([gap for gap in pairs.values() if not math.isnan(p_adjusted(gap))])
    if n_tests > 1 and correction in CORRECTIONS and (leader.behind or leader.level):
        text += f". p-values are corrected for {n_tests} comparisons ({CORRECTIONS[correction]})"
    return f"{text}." if text else f"{leader.best} is the only one with a score."


def pair_columns(correction: str, *, value: str = "Difference", kind: ColumnKind = "estimate") -> tuple[Column, ...]:
    """The columns of a table of differences between systems."""
    columns = [
        Column("first", "System"),
        Column("second", "compared with"),
        Column("difference", value, kind),
        Column("n", "n", "count"),
        Column("p", "p", "p_value"),
    ]
    if correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[correction]})", "p_value"))
    return tuple(columns)


def pair_rows(pairs: Pairs, correction: str) -> tuple[tuple[Cell, ...], ...]:
    """The rows of that table; the system that is ahead comes first in each."""
    rows: list[tuple[Cell, ...]] = []
    for (first, second), gap in pairs.items():
        names, shown = (first, second), gap
        if gap.is_known and gap.value < 0:
            names, shown = (second, first), difference(pairs, second, first) or gap
        cells: list[Cell] = [*names, shown, gap.n, None if math.isnan(gap.p_value) else gap.p_value]
        if correction in CORRECTIONS:
            corrected = p_adjusted(gap)
            cells.append(None if math.isnan(corrected) else corrected)
        rows.append(tuple(cells))
    return tuple(rows)


def every_pair(names: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs in file order."""
    return list(combinations(names, 2))


# Whole raters are resampled: intervals are wide enough for few raters and cheap to compute for many.


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

    def named(estimate: Estimate) -> Estimate:
        return (
            replace(estimate, confidence=options.confidence, interval_method=EXPANDED)
            if estimate.has_interval
            else estimate
        )

    ranks = replace(boot.ranks, ranks={name: named(estimate) for name, estimate in boot.ranks.ranks.items()})
    position = boot.position_effect
    if position is not None:
        se, df = float(position.details["bootstrap_se"]), n_resampled(ranks) - 1
        t = position.value / se if se > 0 else math.nan
        p = float(2 * stats.t.sf(abs(t), df)) if not math.isnan(t) else math.nan
        position = replace(named(position), statistic=t, df=(float(df),), p_value=p)
    return replace(
        boot,
        strengths={name: named(estimate) for name, estimate in boot.strengths.items()},
        ranks=ranks,
        position_effect=position,
        tie_parameter=None if boot.tie_parameter is None else named(boot.tie_parameter),
    )


def n_resampled(ranks: RankIntervals) -> int:
    """How many raters were resampled."""
    return next((rank.n for rank in ranks.ranks.values() if rank.is_known), 2)


def lead_claims(ranked: Sequence[str], rivals: Collection[str], *, is_primary: bool = True) -> tuple[Claim, ...]:
    """What an answer claims that names the first of these and those that may be as good: the others are behind it."""
    behind = [name for name in ranked[1:] if name not in rivals]
    return tuple(Claim(f"{ranked[0]} is ahead of {name}", is_primary=is_primary) for name in behind)
