"""Who beat whom how often, with the order of presentation kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError
from dialometer.stats.votes import FIRST, SECOND, TIE, Votes

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WinMatrix:
    """Counts of votes for ordered pairs: the row's system was shown first, the column's second.

    These counts are all that Bradley-Terry models need, so a million votes shrink to a few thousand numbers.
    """

    systems: tuple[str, ...]
    first_won: Matrix
    second_won: Matrix
    tied: Matrix
    has_order: bool = True
    """False where the matrix was given without the order of presentation; then the row says nothing about who was first."""
    n_self: int = 0

    @property
    def wins(self) -> Matrix:
        """``wins[a, b]``: votes for a over b, in either order of presentation."""
        return self.first_won + self.second_won.T

    @property
    def ties(self) -> Matrix:
        """``ties[a, b]``: ties between a and b; symmetric."""
        return self.tied + self.tied.T

    @property
    def half_wins(self) -> Matrix:
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
            has_order=self.has_order,
            n_self=self.n_self,
        )


def win_matrix(votes: Votes) -> WinMatrix:
    """The votes, counted."""
    n = len(votes.systems)
    cell = votes.first * n + votes.second

    def count(outcome: int) -> Matrix:
        return np.bincount(cell[votes.outcome == outcome], minlength=n * n).reshape(n, n).astype(np.float64)

    return WinMatrix(
        systems=votes.systems,
        first_won=count(FIRST),
        second_won=count(SECOND),
        tied=count(TIE),
        n_self=votes.n_self,
    )


def win_matrix_from_counts(systems: Sequence[str], wins: npt.ArrayLike, ties: npt.ArrayLike | None = None) -> WinMatrix:
    """A matrix whose votes were counted elsewhere: ``wins[a, b]`` for a over b, ``ties`` symmetric (or its upper half).

    The diagonal (a system against itself) is left out and counted in ``n_self``.
    """
    n = len(systems)
    won = np.array(wins, dtype=np.float64)
    tied = np.zeros((n, n)) if ties is None else np.array(ties, dtype=np.float64)
    for name, matrix in (("wins", won), ("ties", tied)):
        if matrix.shape != (n, n):
            raise DialometerError(
                f"'{name}' has the shape {matrix.shape} for {n} systems",
                where="win matrix",
                remedy=f"give {n} by {n} numbers",
            )
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            raise DialometerError(
                f"'{name}' holds negative or missing counts", where="win matrix", remedy="counts are 0 or more"
            )
    upper = np.triu(tied, 1)
    if not (np.array_equal(upper, np.tril(tied, -1).T) or not np.tril(tied, -1).any()):
        raise DialometerError(
            "'ties' is not symmetric", where="win matrix", remedy="a tie of a with b is a tie of b with a"
        )
    n_self = int(np.trace(won) + np.trace(tied))
    np.fill_diagonal(won, 0)
    return WinMatrix(
        systems=tuple(systems),
        first_won=won,
        second_won=np.zeros((n, n)),
        tied=upper,
        has_order=False,
        n_self=n_self,
    )
