"""Votes with covariates, sorted by pair, for models in which every vote has numbers of its own.

A vote's log odds are ``strength(first) - strength(second) + x · b``. A table of votes by systems would be nearly all zeros: here the
votes of one pair stand together, so that sums over pairs give all that concerns the strengths, and only the few covariates are kept
vote by vote. Votes are gone through in blocks that stay in the processor's cache, so that a million of them, fitted a thousand
times, need little more memory than the covariates themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dialometer.stats.observations import Floats
from dialometer.stats.ranking.paired_newton import anchored
from dialometer.stats.ranking.votes import FIRST, SECOND, Codes, Votes, WinGraph

_BLOCK = 8192  # votes handled at a time
_MOST_STEPS = 50
_RUNAWAY = 20.0  # log odds beyond which no realistic number of votes holds an estimate


@dataclass(frozen=True, slots=True)
class _Block:
    rows: slice
    cells: slice
    counts: Codes
    starts: Codes


class PairedRows:
    """Parameters are the strengths of all systems (centred at 0), then one for each covariate."""

    def __init__(self, votes: Votes, covariates: Floats) -> None:
        """``covariates`` are votes by covariates."""
        n = self.n_systems = len(votes.systems)
        key = votes.first * n + votes.second
        self.order = np.argsort(key, kind="stable")
        cells, starts, counts = np.unique(key[self.order], return_index=True, return_counts=True)
        self.first, self.second = cells // n, cells % n
        self.x = np.ascontiguousarray(np.asarray(covariates, dtype=np.float64).reshape(votes.n, -1)[self.order].T)
        self.reach = np.abs(self.x).max(axis=1, initial=0.0)
        outcome = votes.outcome[self.order]
        self.outcome = np.where(outcome == FIRST, 1.0, np.where(outcome == SECOND, 0.0, 0.5))
        self.graph = WinGraph(n, np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first]))
        self.blocks = [self._block(begin, starts, counts) for begin in range(0, votes.n, _BLOCK)]

    def _block(self, begin: int, starts: Codes, counts: Codes) -> _Block:
        end = min(begin + _BLOCK, len(self.outcome))
        low = int(np.searchsorted(starts, begin, side="right")) - 1
        high = int(np.searchsorted(starts, end, side="left"))
        here = np.maximum(starts[low:high], begin)
        until = np.minimum(starts[low:high] + counts[low:high], end)
        return _Block(slice(begin, end), slice(low, high), until - here, here - begin)

    @property
    def n_parameters(self) -> int:
        """Strengths and covariates."""
        return self.n_systems + len(self.x)

    def gram(self) -> Floats:
        """Sums of squares and products of the design's columns."""
        sums, products = self._empty()
        for block in self.blocks:
            x = self.x[:, block.rows]
            products += x @ x.T
            sums[1, block.cells] += block.counts
            sums[2:, block.cells] += np.add.reduceat(x, block.starts, axis=1)
        return self._joined(self._by_pair(sums), products)

    def has_finite_strengths(self, weight: Floats) -> bool:
        """Whether, however the systems are split in two, each part won (or tied) a vote of those that weigh anything."""
        counts = np.zeros((2, len(self.first)))
        for block in self.blocks:
            won = weight[block.rows] * self.outcome[block.rows]
            both = np.stack([won, weight[block.rows] - won])
            counts[:, block.cells] += np.add.reduceat(both, block.starts, axis=1)
        return bool(self.graph.is_connected(counts.reshape(-1, 1))[0])

    def fit(self, weight: Floats, start: Floats | None = None, *, tolerance: float = 1e-9) -> Floats | None:
        """The likeliest parameters with these weights of the votes (sorted as here), by Newton's method; None if there are none.

        Steps are shortened as in :func:`~dialometer.stats.ranking.paired_newton.newton`. ``tolerance`` is for the change of a
        vote's log odds; the last step leaves an error of about its square.
        """
        if not self.has_finite_strengths(weight):
            return None
        n = self.n_systems
        parameters = np.zeros(self.n_parameters) if start is None else start.copy()
        for _ in range(_MOST_STEPS):
            gradient, information, most = self._derivatives(parameters, weight)
            if most > _RUNAWAY:
                return None
            try:
                step = np.linalg.solve(anchored(information[None], n)[0], gradient)
            except np.linalg.LinAlgError:
                return None
            change = float(np.ptp(step[:n]) + self.reach @ np.abs(step[n:]))
            parameters += step / max(1.0, change)
            if change < tolerance:
                parameters[:n] -= parameters[:n].mean()
                return parameters
        return None

    def _derivatives(self, parameters: Floats, weight: Floats) -> tuple[Floats, Floats, float]:
        """Gradient and information of the log likelihood, and the largest log odds of a vote."""
        strengths, coefficients = parameters[: self.n_systems], parameters[self.n_systems :]
        difference = strengths[self.first] - strengths[self.second]
        sums, products = self._empty()
        slope, most = np.zeros(len(self.x)), 0.0
        for block in self.blocks:
            x, own = self.x[:, block.rows], weight[block.rows]
            odds = np.repeat(difference[block.cells], block.counts) + coefficients @ x
            most = max(most, float(odds.max()), -float(odds.min()))
            chance = expit(odds)
            parts = np.empty((len(sums), len(own)))
            np.multiply(own, self.outcome[block.rows] - chance, out=parts[0])
            np.multiply(own, chance * (1 - chance), out=parts[1])
            np.multiply(x, parts[1], out=parts[2:])
            sums[:, block.cells] += np.add.reduceat(parts, block.starts, axis=1)
            slope += x @ parts[0]
            products += parts[2:] @ x.T
        table = self._by_pair(sums)
        gradient = np.concatenate([table[0].sum(axis=1) - table[0].sum(axis=0), slope])
        return gradient, self._joined(table, products), most

    def _empty(self) -> tuple[Floats, Floats]:
        """Sums by pair (residuals, spread, spread times each covariate), and products of covariates."""
        q = len(self.x)
        return np.zeros((2 + q, len(self.first))), np.zeros((q, q))

    def _by_pair(self, sums: Floats) -> Floats:
        """The same sums as first systems by second systems."""
        table = np.zeros((len(sums), self.n_systems, self.n_systems))
        table[:, self.first, self.second] = sums
        return table

    def _joined(self, table: Floats, products: Floats) -> Floats:
        """The information (or another sum of squares and products of the design) from its parts."""
        n, spread = self.n_systems, table[1] + table[1].T
        matrix = np.empty((self.n_parameters, self.n_parameters))
        matrix[:n, :n] = np.diag(spread.sum(axis=1)) - spread
        matrix[:n, n:] = (table[2:].sum(axis=2) - table[2:].sum(axis=1)).T
        matrix[n:, :n] = matrix[:n, n:].T
        matrix[n:, n:] = products
        return matrix
