"""Newton's method for Bradley-Terry models, for many data sets at once.

One kernel serves the plain model, Davidson's model of ties and the effect of position, for one data set (the estimate) or
a thousand (the bootstrap). Arrays are cells by data sets; a cell is a pair of systems that was shown.

With d = strength(first) - strength(second) + position, a vote falls on the first, the second or a tie in the proportions
exp(d/2) : exp(-d/2) : exp(tie). The plain model has no third outcome and counts a tie as half a vote for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dialometer.stats.observations import Floats
from dialometer.stats.ranking.votes import WinMatrix

Codes = npt.NDArray[np.intp]

# Beyond this difference on the logit scale no realistic number of votes can hold an estimate: it is running away.
_RUNAWAY = 30.0
_MOST_HELD_STEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class PairCells:
    """Counts of the three outcomes, cells by data sets, and which two systems each cell sets against each other."""

    n_systems: int
    first: Codes
    second: Codes
    first_won: Floats
    second_won: Floats
    tied: Floats

    @property
    def n(self) -> Floats:
        """Votes in each cell."""
        return self.first_won + self.second_won + self.tied

    def with_pseudo_wins(self, amount: float, *, keep_order: bool) -> PairCells:
        """Each system is given ``amount`` more wins over each other one; the cells must hold all pairs."""
        share = amount / 2 if keep_order else amount
        return replace(self, first_won=self.first_won + share, second_won=self.second_won + share)

    def chosen(self, columns: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> PairCells:
        """Some of the data sets."""
        return replace(
            self,
            first_won=self.first_won[:, columns],
            second_won=self.second_won[:, columns],
            tied=self.tied[:, columns],
        )


def cells_of(matrix: WinMatrix, *, keep_order: bool, all_pairs: bool) -> PairCells:
    """The matrix as one data set; without ``keep_order`` both orders of a pair fall into one cell."""
    n = len(matrix.systems)
    if keep_order:
        first_won, second_won, tied = matrix.first_won, matrix.second_won, matrix.tied
        is_cell = ~np.eye(n, dtype=bool)
    else:
        first_won, second_won, tied = matrix.wins, matrix.wins.T, matrix.ties
        is_cell = np.triu(np.ones((n, n), dtype=bool), 1)
    if not all_pairs:
        is_cell &= first_won + second_won + tied > 0
    first, second = np.nonzero(is_cell)
    columns = [counts[first, second][:, None] for counts in (first_won, second_won, tied)]
    return PairCells(n, first, second, *columns)


@dataclass(frozen=True, slots=True, eq=False)
class PairedModel:
    """Which parameters there are beside the strengths. Their order is: strengths, tie, position."""

    has_ties: bool = False
    has_position: bool = False

    @property
    def n_extra(self) -> int:
        """How many parameters follow the strengths."""
        return int(self.has_ties) + int(self.has_position)

    def differences(self, cells: PairCells, parameters: Floats) -> Floats:
        """Log odds of the first against the second in every cell."""
        difference = parameters[cells.first] - parameters[cells.second]
        return np.asarray(difference + parameters[-1]) if self.has_position else difference

    def tie(self, cells: PairCells, parameters: Floats) -> Floats:
        """The tie parameter of every data set, on the logarithmic scale."""
        return np.asarray(parameters[cells.n_systems])

    def outcome_probabilities(self, cells: PairCells, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """Probabilities of first, second and tie in every cell."""
        d = self.differences(cells, parameters)
        if not self.has_ties:
            small = np.exp(-np.abs(d))
            likely = 1 / (1 + small)
            unlikely = small * likely
            return np.where(d > 0, likely, unlikely), np.where(d > 0, unlikely, likely), np.zeros_like(d)
        tie = self.tie(cells, parameters)
        top = np.maximum(np.abs(d) / 2, tie)
        first, second, tied = np.exp(d / 2 - top), np.exp(-d / 2 - top), np.exp(tie - top)
        total = first + second + tied
        return first / total, second / total, tied / total

    def log_likelihood(self, cells: PairCells, parameters: Floats) -> Floats:
        """Logarithm of the likelihood of every data set."""
        first, second, tied = self.outcome_probabilities(cells, parameters)
        if self.has_ties:
            return np.asarray(
                (cells.first_won * np.log(first) + cells.second_won * np.log(second) + cells.tied * np.log(tied)).sum(
                    axis=0
                )
            )
        half = cells.tied / 2
        return np.asarray(
            ((cells.first_won + half) * np.log(first) + (cells.second_won + half) * np.log(second)).sum(axis=0)
        )


@dataclass(frozen=True, slots=True, eq=False)
class NewtonFit:
    """Parameters by data sets; a data set that did not converge has no finite estimate."""

    parameters: Floats
    is_converged: npt.NDArray[np.bool_]
    n_iterations: int


class _Layout:
    """Sparse matrices that sum cells into gradients and Hessians."""

    def __init__(self, cells: PairCells) -> None:
        n, m = cells.n_systems, len(cells.first)
        self.n = n
        index, ones = np.arange(m), np.ones(m)
        self.incidence = csr_array(
            (np.concatenate([ones, -ones]), (np.concatenate([cells.first, cells.second]), np.tile(index, 2))),
            shape=(n, m),
        )
        rows = [
            cells.first * n + cells.first,
            cells.second * n + cells.second,
            cells.first * n + cells.second,
            cells.second * n + cells.first,
        ]
        self.laplacian = csr_array(
            (np.concatenate([ones, ones, -ones, -ones]), (np.concatenate(rows), np.tile(index, 4))), shape=(n * n, m)
        )


def gradient_and_information(
    cells: PairCells, model: PairedModel, parameters: Floats, layout: _Layout | None = None
) -> tuple[Floats, Floats]:
    """First derivatives of the log likelihood (parameters by data sets) and the negated second ones (data sets first)."""
    layout = layout or _Layout(cells)
    n, n_votes = layout.n, cells.n
    n_sets = n_votes.shape[1]
    first, second, tied = model.outcome_probabilities(cells, parameters)
    lead = (first - second) / 2
    residual = (cells.first_won - cells.second_won) / 2 - n_votes * lead
    # Without ties (first + second)/4 - lead² is first·second; the product keeps its digits near 0 and 1.
    spread = n_votes * (first * second + (tied * (first + second) / 4 if model.has_ties else 0))
    gradient = [layout.incidence @ residual]
    size = n + model.n_extra
    information = np.empty((n_sets, size, size))
    information[:, :n, :n] = (layout.laplacian @ spread).T.reshape(n_sets, n, n)
    at = n
    if model.has_ties:
        gradient.append((cells.tied - n_votes * tied).sum(axis=0)[None])
        joint = -n_votes * tied * lead
        information[:, :n, at] = information[:, at, :n] = (layout.incidence @ joint).T
        information[:, at, at] = (n_votes * tied * (1 - tied)).sum(axis=0)
        if model.has_position:
            information[:, at, at + 1] = information[:, at + 1, at] = joint.sum(axis=0)
        at += 1
    if model.has_position:
        gradient.append(residual.sum(axis=0)[None])
        information[:, :n, at] = information[:, at, :n] = (layout.incidence @ spread).T
        information[:, at, at] = spread.sum(axis=0)
    return np.concatenate(gradient), information


def newton(
    cells: PairCells,
    model: PairedModel,
    *,
    start: Floats | None = None,
    max_iterations: int = 60,
    tolerance: float = 1e-6,
) -> NewtonFit:
    """Maximum-likelihood parameters of every data set, strengths centred at 0.

    Steps are shortened to 1/R where R, the largest change of a cell's log odds, exceeds 1: for these models that already
    guarantees that the likelihood grows (self-concordance, Bach 2010), so no line search is needed. A step below the
    tolerance leaves an error of about its square.
    """
    layout = _Layout(cells)
    n, n_sets = cells.n_systems, cells.first_won.shape[1]
    parameters = (
        np.zeros((n + model.n_extra, n_sets))
        if start is None
        else np.array(np.broadcast_to(start, (n + model.n_extra, n_sets)))
    )
    is_converged = np.zeros(n_sets, dtype=bool)
    active = np.arange(n_sets)
    part = cells
    iteration = 0
    while len(active) and iteration < max_iterations:
        iteration += 1
        now = parameters[:, active]
        gradient, information = gradient_and_information(part, model, now, layout)
        solved = np.linalg.solve(anchored(information, n), gradient.T[:, :, None])
        step = np.asarray(solved[:, :, 0].T, dtype=np.float64)
        change = np.abs(model.differences(part, step))
        if model.has_ties:
            change = np.maximum(change, change / 2 + np.abs(model.tie(part, step)))
        step /= np.maximum(1, change.max(axis=0))
        now = now + step
        parameters[:, active] = now
        is_done = np.abs(step).max(axis=0) < tolerance
        is_converged[active[is_done]] = True
        is_lost = (np.abs(model.differences(part, now)) > _RUNAWAY).any(axis=0)
        is_converged[active[is_lost]] = False
        stay = ~(is_done | is_lost)
        if not stay.all():
            active, part = active[stay], part.chosen(stay)
    parameters[:n] -= parameters[:n].mean(axis=0)
    return NewtonFit(parameters, is_converged, iteration)


def newton_held(
    cells: PairCells, model: PairedModel, contrasts: Floats, values: Floats, start: Floats, *, tolerance: float = 1e-4
) -> Floats:
    """The likeliest parameters (by contrasts) among those for which each contrast has its given value.

    ``cells`` hold one data set, ``contrasts`` are combinations by parameters, ``start`` is the free estimate. Every step is
    Newton's, bent so that the contrast stays where it is held, and shortened as in :func:`newton`; the last one leaves an
    error of about its square.
    """
    layout = _Layout(cells)
    n, n_sets = cells.n_systems, len(contrasts)
    part = cells.chosen(np.zeros(n_sets, dtype=np.intp))
    _, information = gradient_and_information(cells, model, start[:, None], layout)
    along = np.linalg.solve(anchored(information, n)[0], contrasts.T)
    gap = values - contrasts @ start
    parameters = start[:, None] + along * (gap / np.einsum("cp,pc->c", contrasts, along))
    active = np.arange(n_sets)
    for _ in range(_MOST_HELD_STEPS):
        held, now = contrasts[active], parameters[:, active]
        gradient, information = gradient_and_information(part, model, now, layout)
        both = np.stack([gradient.T, held], axis=2)
        free, along = np.moveaxis(np.linalg.solve(anchored(information, n), both), 2, 0)
        share = np.einsum("cp,cp->c", held, free) / np.einsum("cp,cp->c", held, along)
        step = np.ascontiguousarray((free - along * share[:, None]).T)
        change = np.abs(model.differences(part, step))
        if model.has_ties:
            change = np.maximum(change, change / 2 + np.abs(model.tie(part, step)))
        step /= np.maximum(1, change.max(axis=0))
        parameters[:, active] = now + step
        stay = np.abs(step).max(axis=0) >= tolerance
        if not stay.any():
            break
        if not stay.all():
            active, part = active[stay], part.chosen(stay)
    parameters[:n] -= parameters[:n].mean(axis=0)
    return np.asarray(parameters)


def anchored(information: Floats, n: int) -> Floats:
    """The information with its flat direction (adding a constant to all strengths) filled, so that it can be solved."""
    diagonal = np.einsum("bkk->bk", information)
    level = diagonal.max(axis=1)
    information[:, :n, :n] += (level / n)[:, None, None]
    diagonal += 1e-13 * level[:, None]
    return information


def covariance(information: Floats, n: int) -> Floats:
    """Covariance of the parameters of one data set, with the strengths centred at 0."""
    level = float(np.diagonal(information).max())
    anchored = information.copy()
    anchored[:n, :n] += level / n
    inverse = np.linalg.inv(anchored)
    # The filled direction u = 1/sqrt(n) carries level·u·uᵀ, whose inverse is taken out again.
    inverse[:n, :n] -= 1 / (level * n)
    return np.asarray(inverse)
