"""One ranking of systems from votes: strengths, ranks, records and tests, with whole raters resampled."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from scipy import stats
from scipy.special import expit

from dialometer.analysis.base.family import Options
from dialometer.analysis.shared.comparisons import corrected_by_name
from dialometer.analysis.shared.ranking import (
    EXPANDED,
    STUDENT,
    Lead,
    adjusted_pairs,
    expanded_confidence,
    lead,
    n_resampled,
    resampled_raters,
)
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.clustered import clustered_preference
from dialometer.stats.clustered.homogeneity import homogeneity_clustered
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.bradley_terry import BradleyTerry, Ties, bradley_terry
from dialometer.stats.ranking.bradley_terry_bootstrap import BradleyTerryBootstrap
from dialometer.stats.ranking.elo import EloRatings, elo_shuffled
from dialometer.stats.ranking.head_to_head import WinRecord, head_to_head, overall_records
from dialometer.stats.ranking.rank_intervals import RankIntervals
from dialometer.stats.ranking.votes import FIRST, TIE, Votes, WinMatrix, win_matrix

MOST_ELO_VOTES = 1_000_000  # votes times orders: what shuffled Elo ratings may cost
MOST_ORDERS = 500
MOST_PAIRED = 100  # with more systems, only the first is compared with each of the others
FEWEST_ORDERS = 3


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """Everything about one ranking. Without resampled raters (one rater only) ``ranks`` is None and intervals are Wald's."""

    label: str
    votes: Votes
    matrix: WinMatrix
    fit: BradleyTerry
    strengths: dict[str, Estimate]
    wins: dict[str, Estimate]
    """Expected share of choices won against the other systems, a tie counting half."""
    ranks: RankIntervals | None
    records: dict[str, WinRecord]
    elo: EloRatings
    pairs: dict[tuple[str, str], Estimate]
    """Direct votes: share of decisive votes for the first, with ``wins``, ``losses`` and ``ties`` in the details."""
    contrasts: dict[tuple[str, str], Estimate]
    """Differences of strengths by the model of all votes, corrected as one family; empty without resampled raters."""
    differ: Estimate
    position: Estimate | None
    tie: Estimate | None
    notes: tuple[str, ...]

    @property
    def ranked(self) -> tuple[str, ...]:
        """Systems, strongest first."""
        return self.fit.ranked

    def leader(self) -> Lead:
        """Who is first, and of whom that can be said after correction."""
        leader = lead(self.strengths, self.contrasts, confidence=self.differ.confidence)
        return leader or Lead(self.ranked[0], (), self.ranked[1:])

    def rivals(self) -> tuple[str, ...]:
        """Systems that do not differ significantly from the first, strongest first."""
        leader = self.leader()
        return tuple(name for name in self.ranked if name in (*leader.level, *leader.untested))


def rank_systems(votes: Votes, label: str, options: Options, *, is_order_drawn: bool) -> SystemRanking:
    """The ranking that a set of votes makes."""
    if votes.n == 0:
        raise NotEnoughData("no votes yet", where=label, remedy="collect judgments on this question")
    matrix = win_matrix(votes)
    boot, fit = _fit(votes, matrix, options, is_order_drawn=is_order_drawn)
    strengths = dict(boot.strengths if boot else fit.strengths)
    return SystemRanking(
        label=label,
        votes=votes,
        matrix=matrix,
        fit=fit,
        strengths=strengths,
        wins={name: _wins(fit, boot, name, options) for name in matrix.systems},
        ranks=boot.ranks if boot else None,
        records={record.a: record for record in overall_records(matrix, confidence=options.confidence)},
        elo=_elo(votes, options),
        pairs=head_to_head_by_rater(votes, matrix, options),
        contrasts=strength_differences(boot, options) if boot else {},
        differ=systems_differ(votes),
        position=boot.position_effect if boot else fit.position_effect,
        tie=boot.tie_parameter if boot else fit.tie_parameter,
        notes=_notes(boot, fit),
    )


def _fit(
    votes: Votes, matrix: WinMatrix, options: Options, *, is_order_drawn: bool
) -> tuple[BradleyTerryBootstrap | None, BradleyTerry]:
    """The richest model that the votes can carry: tie and position parameters go where they alone have no finite value."""
    ties: Ties = "davidson" if matrix.tied.any() else "half"
    has_position = is_order_drawn and _both_orders(matrix)
    fit = bradley_terry(matrix, ties=ties, position_effect=has_position, confidence=options.confidence)
    if fit.is_penalised and len(fit.groups) == 1 and (has_position or ties == "davidson"):
        ties, has_position = "half", False
        fit = bradley_terry(matrix, ties=ties, position_effect=False, confidence=options.confidence)
    if len(votes.raters) < 2:
        return None, fit
    return resampled_raters(votes, options, ties=ties, position_effect=has_position), fit


def _both_orders(matrix: WinMatrix) -> bool:
    """Whether some two systems were shown in either order."""
    seen = matrix.first_won + matrix.second_won + matrix.tied > 0
    return bool((seen & seen.T).any())


def _wins(fit: BradleyTerry, boot: BradleyTerryBootstrap | None, name: str, options: Options) -> Estimate:
    """The model's chance of winning against the others; the interval comes from resampled raters where there are any."""
    plain = fit.beats_average[name]
    if not plain.is_known or boot is None:
        return plain
    shown = [k for k, other in enumerate(fit.systems) if fit.strengths[other].is_known]
    own = fit.systems.index(name)
    strengths = boot.replicates[:, shown]
    gap = boot.replicates[:, [own]] - strengths
    tie = fit.tie_parameter.value if fit.tie_parameter is not None and fit.tie_parameter.is_known else 0.0
    points = _points(gap, tie)
    against_others = (points.sum(axis=1) - _points(np.zeros(1), tie)[0]) / (len(shown) - 1)
    tail = (1 - expanded_confidence(options.confidence, n_resampled(boot.ranks))) / 2
    low, high = np.quantile(against_others, [tail, 1 - tail]).tolist()
    return replace(
        plain,
        low=min(low, plain.value),
        high=max(high, plain.value),
        interval_method=EXPANDED,
        seed=options.seed,
        n_resamples=len(against_others),
        details={**plain.details, "null": 0.5},
    )


def _points(gap: Floats, tie: float) -> Floats:
    """Expected points (a win 1, a tie ½) at a difference of strengths, under Davidson's model (plain where ``tie`` is 0)."""
    if tie == 0:
        return np.asarray(expit(gap))
    up, down = np.exp(gap / 2), np.exp(-gap / 2)
    return np.asarray((up + tie / 2) / (up + down + tie))


def _elo(votes: Votes, options: Options) -> EloRatings:
    n_orders = max(FEWEST_ORDERS, min(MOST_ORDERS, MOST_ELO_VOTES // votes.n))
    return elo_shuffled(votes, n_orders=n_orders, confidence=options.confidence, seed=options.seed)


def head_to_head_by_rater(votes: Votes, matrix: WinMatrix, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every pair that met: exact where each rater voted once on it, else with each rater as one cluster; one family."""
    records = {(r.a, r.b): r for r in head_to_head(matrix, confidence=options.confidence)}
    n = len(votes.systems)
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    signed = np.where(votes.first == low, votes.outcome, -votes.outcome).astype(np.float64)
    order = np.argsort(low * n + high, kind="stable")
    keys, starts = np.unique((low * n + high)[order], return_index=True)
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    shares: dict[tuple[str, str], Estimate] = {}
    for key, rows in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
        pair = (votes.systems[key // n], votes.systems[key % n])
        share = records[pair].share
        if len(np.unique(rater[rows])) < len(rows):
            share = clustered_preference(signed[rows], rater[rows], confidence=options.confidence, label=share.label)
        counts = {"wins": records[pair].wins, "losses": records[pair].losses, "ties": records[pair].ties}
        shares[pair] = replace(share, unit="share", details={**share.details, **counts, "null": 0.5})
    return corrected_by_name(shares, options)


def strength_differences(boot: BradleyTerryBootstrap, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every two systems: difference of strengths, with the spread over resampled raters and Student's t; one family."""
    names = [name for name in boot.fit.systems if boot.strengths[name].is_known]
    n_raters = n_resampled(boot.ranks)
    quantile = float(stats.t.isf((1 - options.confidence) / 2, n_raters - 1))
    differences = {}
    pairs = combinations(names, 2) if len(names) <= MOST_PAIRED else product(boot.fit.ranked[:1], boot.fit.ranked[1:])
    for a, b in pairs:
        drawn = boot.replicates[:, boot.fit.systems.index(a)] - boot.replicates[:, boot.fit.systems.index(b)]
        value = boot.strengths[a].value - boot.strengths[b].value
        se = float(drawn.std(ddof=1)) * math.sqrt(n_raters / (n_raters - 1))
        t = value / se if se > 0 else math.nan
        differences[a, b] = Estimate(
            value=value,
            n=round(boot.fit.n_votes),
            method=f"difference of strengths, {boot.fit.method}, t-test with the spread over resampled raters",
            low=value - quantile * se,
            high=value + quantile * se,
            confidence=options.confidence,
            interval_method=STUDENT,
            statistic=t,
            df=(float(n_raters - 1),),
            p_value=float(2 * stats.t.sf(abs(t), n_raters - 1)) if not math.isnan(t) else math.nan,
            seed=options.seed,
            n_resamples=len(drawn),
            label=f"{a} - {b}",
            unit="log odds",
        )
    return adjusted_pairs(differences, options.correction)


def systems_differ(votes: Votes) -> Estimate:
    """Whether the systems' shares of points differ at all, each rater as one cluster; no model of strengths is assumed."""
    points = np.where(votes.outcome == TIE, 0.5, np.where(votes.outcome == FIRST, 1.0, 0.0))
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    return homogeneity_clustered(
        np.concatenate([points, 1 - points]),
        np.concatenate([votes.first, votes.second]),
        np.concatenate([rater, rater]),
        label=f"{len(votes.systems)} systems",
    )


def _notes(boot: BradleyTerryBootstrap | None, fit: BradleyTerry) -> tuple[str, ...]:
    if boot is None:
        return (*fit.notes, "one rater only: intervals are the model's own and say nothing about other raters")
    return fit.notes
