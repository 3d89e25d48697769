"""Pairwise votes as coded arrays, the one input of every ranking method, and what follows from counting them.

Coding once, with all checks in one place, keeps the methods themselves free of names and spellings. Counts keep the order of
presentation. Votes that one rater cast twice on the same pair are listed: they count double, or contradict each other.

Strengths have a finite maximum-likelihood estimate only if, however the systems are split in two, someone in each part has
beaten (or tied with) someone in the other: the graph of wins is strongly connected (Ford 1957). Where it is not, the
groups are named, so that the reader sees which comparisons the votes cannot carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from dialometer.errors import DialometerError
from dialometer.registry import did_you_mean
from dialometer.stats.observations import Floats

Codes = npt.NDArray[np.intp]

FIRST, TIE, SECOND = 1, 0, -1


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes between two systems each, in the order they were cast.

    ``first`` and ``second`` are numbers of systems, ``outcome`` is 1 (first won), 0 (tie) or -1 (second won); ``row`` is the
    place of the vote in the input, since votes that set a system against itself are left out (``n_self`` of them).
    ``rater`` and ``item`` are numbers too, in the order of their names; empty where they were not given.
    ``prompt`` and ``text`` say which items are no separate draws (see :attr:`drawn`).
    """

    systems: tuple[str, ...]
    first: Codes
    second: Codes
    outcome: Codes
    row: Codes
    raters: tuple[str, ...] = ()
    rater: Codes | None = None
    items: tuple[str, ...] = ()
    item: Codes | None = None
    n_self: int = 0
    weight: Floats | None = None
    """How much each vote counts, where pairs were drawn with unequal probabilities; all count 1 by default."""
    prompt: Codes | None = None
    """The number of each vote's prompt, where items have prompts in common."""
    text: Codes | None = None
    """The numbers of the two texts (votes × 2), where texts are shown in several items."""

    @property
    def drawn(self) -> Codes | None:
        """What was drawn when items were: one number a vote (its prompt or its item), or two (its texts); None if not known."""
        has_texts = self.prompt is None and self.text is not None and self.item is not None
        return self.text if has_texts else self.prompt_or_item

    @property
    def prompt_or_item(self) -> Codes | None:
        """The prompt of each vote where items have prompts in common, else its item."""
        return self.item if self.prompt is None else self.prompt

    @property
    def n(self) -> int:
        """How many votes count."""
        return len(self.outcome)


def code_votes(
    first: Sequence[str] | npt.NDArray[np.str_],
    second: Sequence[str] | npt.NDArray[np.str_],
    winner: Sequence[str] | npt.NDArray[np.str_],
    *,
    rater: Sequence[str] | npt.NDArray[np.str_] | None = None,
    item: Sequence[str] | npt.NDArray[np.str_] | None = None,
    systems: Sequence[str] | None = None,
    tie: str = "tie",
) -> Votes:
    """Votes from names: who was shown first, who second, and the winner's name (or the word for a tie).

    ``systems`` fixes the order and may hold systems that nobody voted on; left out, the names are sorted.
    """
    names_first, names_second = np.asarray(first, dtype=np.str_), np.asarray(second, dtype=np.str_)
    names_winner = np.asarray(winner, dtype=np.str_)
    for column, values in (("second", second), ("winner", winner), ("rater", rater), ("item", item)):
        if values is not None and len(values) != len(names_first):
            raise DialometerError(
                f"the column '{column}' has {len(values)} entries, 'first' has {len(names_first)}",
                where="votes",
                remedy="give one entry for every vote",
            )
    known = (
        tuple(systems)
        if systems is not None
        else tuple(np.unique(np.concatenate([names_first, names_second])).tolist())
    )
    if len(set(known)) != len(known):
        raise DialometerError("a system is listed twice", where="votes", remedy="list every system once")
    if tie in known:
        raise DialometerError(
            f"'{tie}' is both a system and the word for a tie", where="votes", remedy="pass another word as tie=…"
        )
    code_first, code_second = _codes(names_first, known), _codes(names_second, known)
    won_first, won_second, is_tie = names_winner == names_first, names_winner == names_second, names_winner == tie
    _check_winners(names_first, names_second, names_winner, won_first | won_second | is_tie, tie)
    outcome = np.where(is_tie, TIE, np.where(won_first, FIRST, SECOND)).astype(np.intp)
    keep = code_first != code_second
    raters, rater_codes = _own_codes(rater, keep)
    items, item_codes = _own_codes(item, keep)
    return Votes(
        systems=known,
        first=code_first[keep],
        second=code_second[keep],
        outcome=outcome[keep],
        row=np.flatnonzero(keep),
        raters=raters,
        rater=rater_codes,
        items=items,
        item=item_codes,
        n_self=int((~keep).sum()),
    )


def _check_winners(
    first: npt.NDArray[np.str_],
    second: npt.NDArray[np.str_],
    winner: npt.NDArray[np.str_],
    is_known: npt.NDArray[np.bool_],
    tie: str,
) -> None:
    """A vote for a system that was not shown is an error, never a tie."""
    if is_known.all():
        return
    row = int(np.flatnonzero(~is_known)[0])
    raise DialometerError(
        f"the winner '{winner[row]}' is neither '{first[row]}' nor '{second[row]}' nor '{tie}'",
        where=f"vote {row + 1}",
        remedy="the winner is one of the two systems shown, or a tie",
    )


def _codes(names: npt.NDArray[np.str_], known: tuple[str, ...]) -> Codes:
    """Numbers of names in a given list; a name outside it is an error."""
    if not len(names):
        return np.zeros(0, dtype=np.intp)
    order = np.argsort(known)
    ordered = np.asarray(known, dtype=np.str_)[order]
    if not len(ordered):
        raise DialometerError(f"unknown system '{names[0]}'", where="votes", remedy="known: none")
    place = np.minimum(np.searchsorted(ordered, names), len(ordered) - 1)
    stray = ordered[place] != names
    if stray.any():
        name = str(names[stray][0])
        raise DialometerError(f"unknown system '{name}'", where="votes", remedy=did_you_mean(name, sorted(known)))
    return order[place]


def _own_codes(
    names: Sequence[str] | npt.NDArray[np.str_] | None, keep: npt.NDArray[np.bool_]
) -> tuple[tuple[str, ...], Codes | None]:
    """Distinct names of the votes that count, in order, and each vote's number among them."""
    if names is None:
        return (), None
    distinct, codes = np.unique(np.asarray(names, dtype=np.str_)[keep], return_inverse=True)
    return tuple(distinct.tolist()), codes.astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class WinMatrix:
    """Counts of votes for ordered pairs: the row's system was shown first, the column's second.

    These counts are all that Bradley-Terry models need, so a million votes shrink to a few thousand numbers.
    """

    systems: tuple[str, ...]
    first_won: Floats
    second_won: Floats
    tied: Floats
    n_self: int = 0

    @property
    def wins(self) -> Floats:
        """``wins[a, b]``: votes for a over b, in either order of presentation."""
        return self.first_won + self.second_won.T

    @property
    def ties(self) -> Floats:
        """``ties[a, b]``: ties between a and b; symmetric."""
        return self.tied + self.tied.T

    @property
    def half_wins(self) -> Floats:
        """Wins with every tie as half a win for both sides."""
        return self.wins + self.ties / 2

    @property
    def n_votes(self) -> float:
        """How many votes the matrix holds (a whole number unless votes were weighted)."""
        return float(self.first_won.sum() + self.second_won.sum() + self.tied.sum())

    @property
    def votes_per_system(self) -> npt.NDArray[np.float64]:
        """In how many votes each system was shown."""
        total = self.first_won + self.second_won + self.tied
        return np.asarray(total.sum(axis=0) + total.sum(axis=1))

    def part(self, chosen: Sequence[int]) -> WinMatrix:
        """The matrix of some of the systems, among themselves."""
        grid = np.ix_(chosen, chosen)
        return WinMatrix(
            systems=tuple(self.systems[k] for k in chosen),
            first_won=self.first_won[grid],
            second_won=self.second_won[grid],
            tied=self.tied[grid],
            n_self=self.n_self,
        )


def win_matrix(votes: Votes, *, is_weighted: bool = False) -> WinMatrix:
    """The votes, counted; with ``is_weighted`` each by its weight."""
    n = len(votes.systems)
    cell = votes.first * n + votes.second
    weight = votes.weight if is_weighted else None

    def count(outcome: int) -> Floats:
        chosen = votes.outcome == outcome
        own = None if weight is None else weight[chosen]
        return np.bincount(cell[chosen], weights=own, minlength=n * n).reshape(n, n).astype(np.float64)

    return WinMatrix(
        systems=votes.systems,
        first_won=count(FIRST),
        second_won=count(SECOND),
        tied=count(TIE),
        n_self=votes.n_self,
    )


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
    repeats = []
    for k in np.flatnonzero(counts > 1).tolist():
        members = order[starts[k] : starts[k] + counts[k]]
        first = members[0]
        repeats.append(
            RepeatedVote(
                rater=votes.raters[votes.rater[first]],
                systems=(votes.systems[low[first]], votes.systems[high[first]]),
                item=votes.items[item[first]] if votes.item is not None else "",
                rows=tuple(votes.row[members].tolist()),
                is_same=bool((choice[members] == choice[first]).all()),
                is_turned=bool((votes.first[members] != votes.first[first]).any()),
            )
        )
    return tuple(sorted(repeats, key=lambda repeat: repeat.rows))


def strong_groups(at_least_as_good: Floats) -> list[list[int]]:
    """Groups of systems joined by chains of wins or ties in both directions, in the order of their first member.

    ``at_least_as_good[a, b]`` is positive where a was preferred to b, or tied with it, at least once.
    """
    if not len(at_least_as_good):
        return []
    _, label = connected_components(csr_array(at_least_as_good > 0), directed=True, connection="strong")
    groups: dict[int, list[int]] = {}
    for system, group in enumerate(label.tolist()):
        groups.setdefault(group, []).append(system)
    return list(groups.values())


def describe_groups(groups: Sequence[Sequence[int]], at_least_as_good: Floats, systems: Sequence[str]) -> list[str]:
    """One phrase for each group that is cut off from the rest, naming its members; none where all are joined.

    A group of more than half of the systems is "the rest" itself and needs no phrase.
    """
    if len(groups) < 2:
        return []
    phrases = []
    for group in groups:
        rest = [k for other in groups if other is not group for k in other]
        if len(group) > len(rest):
            continue
        beats_rest = bool((at_least_as_good[np.ix_(group, rest)] > 0).any())
        loses_to_rest = bool((at_least_as_good[np.ix_(rest, group)] > 0).any())
        names = ", ".join(systems[k] for k in group)
        if not beats_rest and not loses_to_rest:
            phrases.append(f"never compared with the rest: {names}")
        elif not beats_rest:
            phrases.append(f"never preferred to, nor tied with, any of the rest: {names}")
        elif not loses_to_rest:
            phrases.append(f"always preferred to the rest: {names}")
    return phrases


class WinGraph:
    """The graph of wins of many resamples of the same votes: which of them are still strongly connected.

    Two spanning trees of the full graph (from one system and towards it) prove it cheaply for almost every resample; only
    those that lost an edge of a tree are looked at one by one.
    """

    def __init__(self, n_systems: int, winner: Codes, loser: Codes) -> None:
        """``winner`` and ``loser`` name the two ends of every row of counts that will be given; rows may repeat an edge."""
        self._n = n_systems
        edges, row_edge = np.unique(winner * n_systems + loser, return_inverse=True)
        self._winner, self._loser = edges // n_systems, edges % n_systems
        n_rows = len(winner)
        self._sum_rows = csr_array((np.ones(n_rows), (row_edge, np.arange(n_rows))), shape=(len(edges), n_rows))
        self._tree = self._spanning_edges()

    def _graph(self, is_seen: npt.NDArray[np.bool_] | None = None) -> csr_array:
        chosen = slice(None) if is_seen is None else is_seen
        ends = (self._winner[chosen], self._loser[chosen])
        return csr_array((np.ones(len(ends[0])), ends), shape=(self._n, self._n))

    def _spanning_edges(self) -> list[int] | None:
        """Numbers of edges that together keep the full graph strongly connected; None where it is not."""
        number = {edge: k for k, edge in enumerate(zip(self._winner.tolist(), self._loser.tolist(), strict=True))}
        graph, tree = self._graph(), set()
        for is_reversed in (False, True):
            reached, parent = breadth_first_order(graph.T.tocsr() if is_reversed else graph, 0, directed=True)
            if len(reached) < self._n:
                return None
            for system in reached[1:].tolist():
                above = int(parent[system])
                tree.add(number[(system, above) if is_reversed else (above, system)])
        return sorted(tree)

    def is_connected(self, counts: Floats) -> npt.NDArray[np.bool_]:
        """For counts of wins or ties (rows by resamples): whether a finite estimate of the strengths exists."""
        if self._tree is None:
            return np.zeros(counts.shape[1], dtype=bool)
        answer: npt.NDArray[np.bool_] = (self._sum_rows[self._tree] @ counts > 0).all(axis=0)
        doubtful = np.flatnonzero(~answer)
        if len(doubtful):
            is_seen = self._sum_rows @ counts[:, doubtful] > 0
            for column, resample in enumerate(doubtful.tolist()):
                n_groups, _ = connected_components(self._graph(is_seen[:, column]), directed=True, connection="strong")
                answer[resample] = n_groups == 1
        return answer
