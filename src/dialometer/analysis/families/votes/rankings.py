"""One ranking of systems from votes: strengths, ranks, shares of wins and direct votes, all read from one model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import percent
from dialometer.analysis.families.votes.vote_model import Contrasts, VoteModel, outward, tie_of, vote_model
from dialometer.analysis.shared.comparisons import corrected_by_name, is_significant
from dialometer.analysis.shared.effect_words import expected_share
from dialometer.analysis.shared.ranking import Lead, lead
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.two_way import two_way_share
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.bradley_terry import BradleyTerry
from dialometer.stats.ranking.elo import EloRatings, elo_shuffled
from dialometer.stats.ranking.head_to_head import WinRecord, head_to_head, overall_records
from dialometer.stats.ranking.rank_intervals import RankIntervals, ranks_by_tests
from dialometer.stats.ranking.strength_contrasts import StrengthContrasts
from dialometer.stats.ranking.vote_variance import is_item_per_rater
from dialometer.stats.ranking.votes import TIE, Votes, WinMatrix

MOST_ELO_VOTES = 1_000_000  # votes times orders: what shuffled Elo ratings may cost
MOST_ORDERS = 500
FEWEST_ORDERS = 3
N_DRAWS = 10_000
ONE_RATER = "one rater only: nothing can be said about other raters"


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """Everything about one ranking. With one rater only, ``ranks`` is None and nothing is tested."""

    label: str
    model: VoteModel
    strengths: dict[str, Estimate]
    wins: dict[str, Estimate]
    """Expected share of choices won against the other systems, a tie counting half."""
    ranks: RankIntervals | None
    records: dict[str, WinRecord]
    elo: EloRatings
    pairs: dict[tuple[str, str], Estimate]
    """Direct votes: share of decisive votes for the first, with ``wins``, ``losses`` and ``ties`` in the details."""
    contrasts: Contrasts
    """Differences of strengths by the model of all votes, corrected as one family: every claim rests on these."""
    differ: Estimate
    position: Estimate | None
    tie: Estimate | None
    notes: tuple[str, ...]

    @property
    def votes(self) -> Votes:
        """The votes that it was made from."""
        return self.model.votes

    @property
    def matrix(self) -> WinMatrix:
        """The same, counted."""
        return self.model.matrix

    @property
    def fit(self) -> BradleyTerry:
        """The fitted model."""
        return self.model.fit

    @property
    def ranked(self) -> tuple[str, ...]:
        """Systems, strongest first."""
        return self.fit.ranked

    def leader(self, contrasts: Contrasts | None = None) -> Lead:
        """Who is first, and of whom that can be said after correction; by other contrasts where they are given."""
        scores = {name: self.strengths[name] for name in self.ranked}
        pairs = self.contrasts if contrasts is None else contrasts
        leader = lead(scores, pairs, confidence=self.model.options.confidence)
        return leader or Lead(self.ranked[0], (), self.ranked[1:])

    def rivals(self) -> tuple[str, ...]:
        """Systems that do not differ significantly from the first, strongest first."""
        leader = self.leader()
        return tuple(name for name in self.ranked if name in (*leader.level, *leader.untested))

    @property
    def is_tied(self) -> bool:
        """Whether there are only two, level as they are written."""
        return len(self.ranked) == 2 and bool(self.rivals()) and percent(self.wins[self.ranked[0]].value) == "50%"


def rank_systems(votes: Votes, label: str, options: Options, *, is_order_drawn: bool) -> SystemRanking:
    """The ranking that a set of votes makes."""
    model = vote_model(votes, options, is_order_drawn=is_order_drawn, where=label)
    fit, matrix = model.fit, model.matrix
    strengths = _strengths(model)
    contrasts = model.contrasts
    return SystemRanking(
        label=label,
        model=model,
        strengths=strengths,
        wins={name: _wins(fit, name, strengths[name]) for name in matrix.systems},
        ranks=_ranks(model, contrasts),
        records={record.a: record for record in overall_records(matrix, confidence=options.confidence)},
        elo=_elo(votes, options),
        pairs=direct_votes(votes, matrix, options),
        contrasts=contrasts,
        differ=model.differ(contrasts),
        position=_position(model),
        tie=_tie_parameter(model),
        notes=fit.notes if model.strengths is not None else (*fit.notes, ONE_RATER),
    )


def _strengths(model: VoteModel) -> dict[str, Estimate]:
    """Each system against the mean of all, with the interval of that contrast; without one where one rater voted."""
    fit = model.fit
    if model.strengths is None:
        return {name: _without_interval(estimate) for name, estimate in fit.strengths.items()}
    names = fit.fitted.names
    rows = model.strengths.centred_rows()
    sizes = [fit.strengths[name].n for name in names]
    own = model.strengths.estimates(rows, names, n=sizes, is_tested=False)
    return {**fit.strengths, **dict(zip(names, own, strict=True))}


def _without_interval(estimate: Estimate) -> Estimate:
    return replace(estimate, low=math.nan, high=math.nan, interval_method="", p_value=math.nan)


def _wins(fit: BradleyTerry, name: str, strength: Estimate) -> Estimate:
    """The model's chance of winning against the others; its interval moves the system along that of its strength."""
    plain = fit.beats_average[name]
    if not plain.is_known:
        return plain
    names, parameters = fit.fitted.names, fit.fitted.parameters
    others = np.array([k for k, other in enumerate(names) if other != name])
    # Strengths are centred: one that moves by m against the mean of all moves by m·n/(n - 1) against the others.
    stretch = len(names) / (len(names) - 1)
    gap = parameters[names.index(name)] - parameters[others]

    def at(end: float) -> float:
        return float(expected_share(gap + stretch * (end - strength.value), tie_of(fit)).mean())

    low, high = outward(at(strength.low), at(strength.high))
    return replace(
        plain,
        low=low,
        high=high,
        interval_method=strength.interval_method,
        details={**plain.details, "null": 0.5},
    )


def _ranks(model: VoteModel, contrasts: Contrasts) -> RankIntervals | None:
    if model.strengths is None:
        return None
    systems, names = model.matrix.systems, model.fit.fitted.names
    place = {name: k for k, name in enumerate(systems)}
    is_better = np.zeros((len(systems), len(systems)), dtype=bool)
    for (a, b), gap in contrasts.items():
        if is_significant(gap):
            winner, loser = (a, b) if gap.value > 0 else (b, a)
            is_better[place[winner], place[loser]] = True
    draws = np.full((N_DRAWS, len(systems)), math.nan)
    draws[:, [place[name] for name in names]] = model.strengths.draws(N_DRAWS, seed=model.options.seed)
    return ranks_by_tests(
        systems,
        [model.fit.strengths[name].value for name in systems],
        is_better,
        draws,
        n=len(model.votes.raters),
        confidence=model.options.confidence,
    )


def _position(model: VoteModel) -> Estimate | None:
    """The advantage of the first place, with a test over raters and items."""
    plain = model.fit.position_effect
    if plain is None or model.strengths is None:
        return None if plain is None else _without_interval(plain)
    (tested,) = model.strengths.estimates(model.strengths.position_row(), ["shown first"], n=model.votes.n)
    return replace(tested, method=model.fit.method, details={**plain.details, **tested.details})


def _tie_parameter(model: VoteModel) -> Estimate | None:
    """Davidson's parameter; its interval on the logarithmic scale takes raters and items as samples too."""
    plain = model.fit.tie_parameter
    if plain is None or not plain.is_known or model.strengths is None:
        return plain
    (log,) = model.strengths.estimates(_tie_row(model.strengths), ["tie"], n=plain.n, is_tested=False)
    return replace(plain, low=math.exp(log.low), high=math.exp(log.high), interval_method=log.interval_method)


def _tie_row(strengths: StrengthContrasts) -> Floats:
    fitted = strengths.fit.fitted
    row = np.zeros((1, len(fitted.parameters)))
    row[0, len(fitted.names)] = 1.0
    return row


def _elo(votes: Votes, options: Options) -> EloRatings:
    n_orders = max(FEWEST_ORDERS, min(MOST_ORDERS, MOST_ELO_VOTES // votes.n))
    return elo_shuffled(votes, n_orders=n_orders, confidence=options.confidence, seed=options.seed)


def _are_distinct(numbers: NDArray[np.intp]) -> bool:
    ordered = np.sort(numbers)
    return not bool((ordered[1:] == ordered[:-1]).any())


def direct_votes(votes: Votes, matrix: WinMatrix, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every pair that met: the share of decisive votes. Exact where each rater, and each item, gave one vote on it.

    Elsewhere the interval takes raters and items as samples. The shares describe; what the study claims, the model tests.
    """
    records = {(r.a, r.b): r for r in head_to_head(matrix, confidence=options.confidence)}
    n = len(votes.systems)
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    points = np.where(votes.outcome == TIE, math.nan, (votes.outcome == np.where(votes.first == low, 1, -1)) * 1.0)
    order = np.argsort(low * n + high, kind="stable")
    keys, starts = np.unique((low * n + high)[order], return_index=True)
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    item = None if options.has_fixed_items or is_item_per_rater(votes) else votes.drawn
    shares: dict[tuple[str, str], Estimate] = {}
    for key, group in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
        pair = (votes.systems[key // n], votes.systems[key % n])
        rows = group[~np.isnan(points[group])]
        share = records[pair].share
        is_once = all(_are_distinct(by[rows].ravel()) for by in (rater, item) if by is not None)
        if len(rows) and not is_once:
            share = two_way_share(
                points[rows],
                rater[rows],
                None if item is None else item[rows],
                confidence=options.confidence,
                label=share.label,
            )
        counts = {"wins": records[pair].wins, "losses": records[pair].losses, "ties": records[pair].ties}
        shares[pair] = replace(share, unit="share", details={**share.details, **counts, "null": 0.5})
    return corrected_by_name(shares, options)
