"""Votes that one rater cast twice on the same pair: they count double in a ranking, or contradict each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialometer.errors import DialometerError
from dialometer.stats.votes import Votes


@dataclass(frozen=True, slots=True)
class RepeatedVote:
    """One rater's votes on one pair (of one item, where items are known). ``rows`` count from 0 in the given votes.

    ``is_same`` tells a repeated vote from a changed mind; ``is_turned`` tells that the pair was shown in both orders, as
    designs do on purpose to measure consistency.
    """

    rater: str
    systems: tuple[str, str]
    item: str
    rows: tuple[int, ...]
    is_same: bool
    is_turned: bool


def repeated_votes(votes: Votes) -> tuple[RepeatedVote, ...]:
    """All of them, by their first row. Which to keep is the study's decision; nothing is dropped here."""
    if votes.rater is None:
        raise DialometerError(
            "the votes do not name their raters", where="duplicates", remedy="pass rater=… to code_votes"
        )
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    # The vote in terms of the pair, whichever was shown first.
    choice = np.where(votes.first == low, votes.outcome, -votes.outcome)
    item = votes.item if votes.item is not None else np.zeros(votes.n, dtype=np.intp)
    key = np.stack([votes.rater, item, low, high])
    _, group, counts = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    found = []
    for k in np.flatnonzero(counts > 1).tolist():
        members = order[starts[k] : starts[k] + counts[k]]
        one = members[0]
        found.append(
            RepeatedVote(
                rater=votes.raters[votes.rater[one]],
                systems=(votes.systems[low[one]], votes.systems[high[one]]),
                item=votes.items[item[one]] if votes.item is not None else "",
                rows=tuple(votes.row[members].tolist()),
                is_same=bool((choice[members] == choice[one]).all()),
                is_turned=bool((votes.first[members] != votes.first[one]).any()),
            )
        )
    return tuple(sorted(found, key=lambda repeat: repeat.rows))
