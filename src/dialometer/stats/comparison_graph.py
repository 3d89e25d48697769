"""Which systems can be ranked against each other at all.

Strengths have a finite maximum-likelihood estimate only if, however the systems are split in two, someone in each part has
beaten (or tied with) someone in the other: the graph of wins is strongly connected (Ford 1957). Where it is not, the
groups are named, so that the reader sees which comparisons the votes cannot carry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

Matrix = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


def strong_groups(at_least_as_good: Matrix) -> list[list[int]]:
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


def describe_groups(groups: Sequence[Sequence[int]], at_least_as_good: Matrix, systems: Sequence[str]) -> list[str]:
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

    def is_connected(self, counts: Matrix) -> npt.NDArray[np.bool_]:
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
