"""Elo ratings from votes in sequence, and how much they owe to that sequence.

Elo was made for players who change; systems do not, so the order of votes is noise. Ratings over shuffled orders show it.
Checked against ``evalica.elo(xs, ys, winners, k=16)`` 0.4.2 and the published ratings of CRSArena-Dial (Bernard et al. 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, from_the_highest
from dialometer.stats.ranking.votes import Votes

Codes = npt.NDArray[np.intp]

_MOST_PLACES = 10_000_000  # votes times orders held in memory at a time
_FEW_ORDERS = 32  # below this many at a time, one sequence after the other is faster


@dataclass(frozen=True, slots=True)
class EloRule:
    """``k`` is the most one vote can move a rating; ``scale`` points make odds of ``base`` to 1; all begin at ``start``."""

    k: float = 16.0
    scale: float = 400.0
    base: float = 10.0
    start: float = 1000.0

    def describe(self) -> str:
        """For the method line of an estimate."""
        return f"Elo, K={self.k:g}, scale {self.scale:g}, start {self.start:g}"


@dataclass(frozen=True, slots=True, eq=False)
class EloRatings:
    """Ratings by system, best first in ``ranked``; ``replicates`` (orders by systems) where many orders were tried."""

    systems: tuple[str, ...]
    ratings: Mapping[str, Estimate]
    ranked: tuple[str, ...]
    rule: EloRule
    replicates: Floats | None = field(default=None, repr=False)


def elo(votes: Votes, rule: EloRule | None = None) -> EloRatings:
    """Ratings after the votes in the order they were cast; the interval is open, since one sequence says nothing about it."""
    rule = rule or EloRule()
    _check(votes)
    final = _play_one(votes, np.arange(votes.n), rule)
    games = _games(votes)
    method = f"{rule.describe()}, in the order of the votes"
    ratings = {
        name: Estimate(float(final[k]), int(games[k]), method, label=name, unit="Elo")
        if games[k]
        else unknown(method, f"no votes on '{name}'", label=name)
        for k, name in enumerate(votes.systems)
    }
    return EloRatings(votes.systems, ratings, _ranked(ratings), rule)


def elo_shuffled(
    votes: Votes,
    rule: EloRule | None = None,
    *,
    n_orders: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> EloRatings:
    """Mean ratings over random orders of the same votes. The interval is the spread due to order, not sampling error."""
    rule = rule or EloRule()
    _check(votes)
    rng = np.random.default_rng(seed)
    cast = np.arange(votes.n)
    replicates = _play_many(votes, n_orders, rule, lambda size: rng.permuted(np.tile(cast, (size, 1)), axis=1))
    games = _games(votes)
    method = f"{rule.describe()}, mean over {n_orders} random orders"
    tail = (1 - confidence) / 2
    ratings: dict[str, Estimate] = {}
    for k, name in enumerate(votes.systems):
        if not games[k]:
            ratings[name] = unknown(method, f"no votes on '{name}'", label=name)
            continue
        low, high = np.quantile(replicates[:, k], [tail, 1 - tail]).tolist()
        ratings[name] = Estimate(
            value=float(replicates[:, k].mean()),
            n=int(games[k]),
            method=method,
            low=low,
            high=high,
            confidence=confidence,
            interval_method="percentiles over orders of the same votes",
            seed=seed,
            n_resamples=n_orders,
            label=name,
            unit="Elo",
            details={"sd_over_orders": float(replicates[:, k].std(ddof=1)) if n_orders > 1 else float("nan")},
        )
    return EloRatings(votes.systems, ratings, _ranked(ratings), rule, replicates)


def _check(votes: Votes) -> None:
    if votes.n == 0:
        raise NotEnoughData("no votes between two different systems", where="Elo", remedy="collect votes first")


def _games(votes: Votes) -> Codes:
    n = len(votes.systems)
    return np.bincount(votes.first, minlength=n) + np.bincount(votes.second, minlength=n)


def _ranked(ratings: Mapping[str, Estimate]) -> tuple[str, ...]:
    return tuple(from_the_highest({name: rating.value for name, rating in ratings.items() if rating.is_known}))


def _play_many(votes: Votes, n_orders: int, rule: EloRule, draw: Callable[[int], Codes]) -> Floats:
    """Final ratings of many sequences, a part of them at a time so that they fit in memory."""
    size = max(1, _MOST_PLACES // votes.n)
    parts = []
    for begin in range(0, n_orders, size):
        orders = draw(min(size, n_orders - begin))
        is_short = size >= _FEW_ORDERS
        parts.append(
            _play(votes, orders, rule) if is_short else np.array([_play_one(votes, row, rule) for row in orders])
        )
    return np.concatenate(parts)


def _play(votes: Votes, orders: Codes, rule: EloRule) -> Floats:
    """Final ratings for several sequences of votes at once (sequences by systems): one pass over the places of a sequence."""
    ratings = np.full((len(orders), len(votes.systems)), rule.start)
    rows = np.arange(len(orders))
    for place in range(orders.shape[1]):
        vote = orders[:, place]
        first, second = votes.first[vote], votes.second[vote]
        lead = ratings[rows, first] - ratings[rows, second]
        expected = 1 / (1 + rule.base ** (-lead / rule.scale))
        move = rule.k * ((votes.outcome[vote] + 1) / 2 - expected)
        ratings[rows, first] += move
        ratings[rows, second] -= move
    return ratings


def _play_one(votes: Votes, order: Codes, rule: EloRule) -> Floats:
    """The same for one sequence, where plain numbers are much faster than arrays of one."""
    ratings = [rule.start] * len(votes.systems)
    first, second, outcome = (column[order].tolist() for column in (votes.first, votes.second, votes.outcome))
    for a, b, result in zip(first, second, outcome, strict=True):
        expected = 1 / (1 + rule.base ** ((ratings[b] - ratings[a]) / rule.scale))
        move = rule.k * ((result + 1) / 2 - expected)
        ratings[a] += move
        ratings[b] -= move
    return np.array(ratings)
