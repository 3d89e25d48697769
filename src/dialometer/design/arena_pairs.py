"""Which two systems meet in an arena, and how likely every draw was.

``balanced`` gives every pair the same chance at every draw: within an item all pairs come once, in random order, before any
comes again. ``uncertain`` looks at the votes so far and draws a pair more often the more one further vote would narrow the
confidence interval of its win rate. The width goes with ``sqrt(v / n)`` for ``n`` votes of variance ``v``, so that the gain of
a vote is ``sqrt(v / n) - sqrt(v / (n + 1))`` (the active sampling rule of Chiang et al. 2024, *Chatbot Arena*, section 5). Close
and seldom voted pairs win by it. A share of the draws (``floor``) always goes to all pairs alike.

The rule follows the votes, so a pair's number of votes says something about how they fell. An estimate that weights each vote
by one over its probability stays right: in expectation every pair then counts as if all were drawn alike (Horvitz and Thompson
1952). That is why the probability is stored with every draw.
"""

from __future__ import annotations

import numpy as np

from dialometer.model.item import ArenaItem
from dialometer.model.session import DrawnPair, PairVotes, Snapshot
from dialometer.model.study import Arena

Pair = tuple[str, str]
PRIOR_VOTES = 2.0
"""A pair without votes counts as one won and one lost, so that neither its variance nor its number is ever zero."""


def pair_chances(arena: Arena, item: ArenaItem, votes: dict[Pair, PairVotes]) -> dict[Pair, float]:
    """The probability with which each pair of the item is drawn next."""
    even = 1 / len(item.pairs)
    if arena.pairs == "balanced":
        return dict.fromkeys(item.pairs, even)
    gains = np.array([_gain(votes.get(pair, PairVotes())) for pair in item.pairs])
    chances = arena.floor * even + (1 - arena.floor) * gains / gains.sum()
    return dict(zip(item.pairs, chances.tolist(), strict=True))


def _gain(votes: PairVotes) -> float:
    """By how much one further vote narrows the interval of a pair's win rate, up to a constant; ties count half."""
    n = votes.first + votes.second + votes.neither + PRIOR_VOTES
    share = (votes.first + votes.neither / 2 + PRIOR_VOTES / 2) / n
    square = (votes.first + votes.neither / 4 + PRIOR_VOTES / 2) / n
    variance = square - share**2
    return float(np.sqrt(variance / n) - np.sqrt(variance / (n + 1)))


def draw_pair(
    arena: Arena, item: ArenaItem, snapshot: Snapshot, *, rng: np.random.Generator, rounds: np.random.Generator
) -> DrawnPair:
    """The pair that a rater meets in an item.

    ``rng`` is this draw's own; ``rounds`` is the item's, the same for all draws of one round of balanced pairs.
    """
    chances = pair_chances(arena, item, dict(snapshot.pair_votes))
    if arena.pairs == "balanced":
        place = snapshot.item_counts.get(item.id, 0) % len(item.pairs)
        pair = item.pairs[int(rounds.permutation(len(item.pairs))[place])]
    else:
        pair = item.pairs[int(rng.choice(len(item.pairs), p=list(chances.values())))]
    return DrawnPair(pair, round(chances[pair], 9))
