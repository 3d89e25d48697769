"""Bootstrap of the Bradley-Terry model: what the ranking would have been with other votes, or other raters.

Votes are never drawn one by one: the counts of a resample follow a multinomial distribution over the observed outcomes, so
that a million votes cost no more than a thousand. All resamples are fitted together by Newton's method, starting at the
estimate itself, from which two or three steps remain. A resample is treated as the data were: maximum likelihood where it
exists, the penalised fit where it does not.

Multinomial counts are drawn about twice as fast as cell after cell: independent Poisson counts, given their sum, are
multinomial, so most cases are drawn as Poisson counts with a sum kept just below the total (a draw that overshoots is repeated,
which conditions on the sum only), and the few that are missing one by one; the two parts together are multinomial again.

Checked in ``tests/stats/test_ranking_bootstrap.py`` against ``evalica.bradley_terry`` resample by resample, and against
independent rank intervals of published votes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.bradley_terry import DEFAULT_PRIOR, BradleyTerry, Ties, bradley_terry, penalised_note
from dialometer.stats.ranking.paired_newton import PairCells, PairedModel, cells_of, newton
from dialometer.stats.ranking.rank_intervals import RankIntervals, rank_intervals
from dialometer.stats.ranking.votes import FIRST, SECOND, Votes, WinGraph, WinMatrix, win_matrix

Integers = npt.NDArray[np.int64]

_LEAST_PER_CELL = 50  # with fewer cases in a cell, on average, the plain way is as fast
_MOST_CASES = 20_000_000  # the table of cases takes four bytes for each
_MARGIN = 2.0  # standard deviations between the mean of the Poisson sum and the total


def resampled_counts(counts: Integers) -> Callable[[int, np.random.Generator], Integers]:
    """Counts of cases drawn with repeats from those counted here; gives resamples by cells, each row with the same sum."""
    total, n_cells = int(counts.sum()), len(counts)
    shares = counts / total
    if not _LEAST_PER_CELL * n_cells <= total <= _MOST_CASES:
        return lambda n_resamples, rng: rng.multinomial(total, shares, size=n_resamples)
    cell_of_case = np.repeat(np.arange(n_cells, dtype=np.int32), counts)
    rate = (total - _MARGIN * np.sqrt(total)) * shares

    def draw(n_resamples: int, rng: np.random.Generator) -> Integers:
        drawn = rng.poisson(rate, size=(n_resamples, n_cells))
        missing = total - drawn.sum(axis=1)
        while len(over := np.flatnonzero(missing < 0)):
            drawn[over] = rng.poisson(rate, size=(len(over), n_cells))
            missing[over] = total - drawn[over].sum(axis=1)
        for row, n_missing in enumerate(missing.tolist()):
            drawn[row] += np.bincount(cell_of_case[rng.integers(0, total, n_missing)], minlength=n_cells)
        return drawn

    return draw


Draw = Callable[[int, np.random.Generator], PairCells]
"""Takes a number of resamples, gives the cells with that many data sets."""


def draw_votes(cells: PairCells) -> Draw:
    """Resample single votes; right where every vote comes from another rater."""
    flat = np.concatenate([cells.first_won, cells.second_won, cells.tied])[:, 0]
    if not np.array_equal(flat, flat.round()):
        raise DialometerError("weighted votes cannot be resampled", where="bootstrap", remedy="count every vote once")
    seen = np.flatnonzero(flat)
    counts_of_seen = resampled_counts(flat[seen].astype(np.int64))

    def draw(n_resamples: int, rng: np.random.Generator) -> PairCells:
        counts = np.zeros((len(flat), n_resamples))
        counts[seen] = counts_of_seen(n_resamples, rng).T
        return _filled(cells, counts)

    return draw


def draw_raters(votes: Votes, cells: PairCells, shown: list[int], *, keep_order: bool) -> Draw:
    """Resample whole raters with all their votes; ``shown`` are the systems that the cells are about, in their order."""
    if votes.rater is None:
        raise DialometerError(
            "the votes do not name their raters", where="bootstrap by rater", remedy="pass rater=… to code_votes"
        )
    n_raters = len(votes.raters)
    if n_raters < 2:
        raise NotEnoughData(
            f"{n_raters} rater", where="bootstrap by rater", remedy="at least two are needed to resample"
        )
    renumber = np.full(len(votes.systems), -1)
    renumber[shown] = np.arange(len(shown))
    first, second, outcome = renumber[votes.first], renumber[votes.second], votes.outcome
    if not keep_order:
        is_turned = first > second
        first, second = np.where(is_turned, second, first), np.where(is_turned, first, second)
        outcome = np.where(is_turned, -outcome, outcome)
    number = np.full((cells.n_systems, cells.n_systems), -1)
    number[cells.first, cells.second] = np.arange(len(cells.first))
    block = np.where(outcome == FIRST, 0, np.where(outcome == SECOND, 1, 2))
    row = block * len(cells.first) + number[first, second]
    by_rater = csr_array((np.ones(votes.n), (row, votes.rater)), shape=(3 * len(cells.first), n_raters))

    def draw(n_resamples: int, rng: np.random.Generator) -> PairCells:
        times = rng.multinomial(n_raters, np.full(n_raters, 1 / n_raters), size=n_resamples).T
        return _filled(cells, by_rater @ times.astype(np.float64))

    return draw


def _filled(cells: PairCells, counts: Floats) -> PairCells:
    first_won, second_won, tied = np.split(counts, 3)
    return replace(cells, first_won=first_won, second_won=second_won, tied=tied)


Flags = npt.NDArray[np.bool_]

_CHUNK_NUMBERS = 200_000  # cells times resamples handled at a time, so that they stay in the processor's cache
_MOST_SYSTEMS_SIDE_BY_SIDE = 100  # larger systems of equations are already spread over the processors by the library
_TOLERANCE = 5e-4  # the last step leaves an error of about its square (under 1e-6), far below the spread of resamples


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerryBootstrap:
    """The fit with percentile intervals in place of analytic ones, and the intervals of the ranks."""

    fit: BradleyTerry
    strengths: Mapping[str, Estimate]
    ranks: RankIntervals
    tie_parameter: Estimate | None
    position_effect: Estimate | None
    share_penalised: float
    """Share of resamples that were fitted with the penalty."""
    replicates: Floats = field(repr=False)
    """Strengths, resamples by systems; ``nan`` for systems that nobody voted on."""


def bradley_terry_bootstrap(
    votes: Votes | WinMatrix,
    *,
    ties: Ties = "half",
    position_effect: bool = False,
    prior: float | None = None,
    by_rater: bool = False,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> BradleyTerryBootstrap:
    """Resample votes, or whole raters with ``by_rater`` (the right choice where raters vote more than once)."""
    matrix = win_matrix(votes) if isinstance(votes, Votes) else votes
    fit = bradley_terry(matrix, ties=ties, position_effect=position_effect, prior=prior, confidence=confidence)
    shown = [k for k, name in enumerate(matrix.systems) if fit.strengths[name].is_known]
    cells = cells_of(matrix.part(shown), keep_order=position_effect, all_pairs=False)
    if not by_rater:
        draw, n_units, resampled = draw_votes(cells), round(matrix.n_votes), "votes"
    elif isinstance(votes, Votes):
        draw = draw_raters(votes, cells, shown, keep_order=position_effect)
        n_units, resampled = len(votes.raters), "raters"
    else:
        raise DialometerError("a win matrix does not name raters", where="bootstrap by rater", remedy="pass the votes")
    parameters, is_penalised = _replicate(cells, fit, draw, n_resamples, seed)
    replicates = np.full((n_resamples, len(matrix.systems)), np.nan)
    replicates[:, shown] = parameters[: len(shown)].T
    values = [fit.strengths[name].value for name in matrix.systems]
    ranks = rank_intervals(
        matrix.systems, values, replicates, n=n_units, resampled=resampled, confidence=confidence, seed=seed
    )
    notes = fit.notes
    if is_penalised.any() and not fit.is_penalised:
        notes = (*notes, penalised_note(int(is_penalised.sum()), n_resamples))
    interval = Percentiles(resampled, confidence, seed, notes)
    tie, position = fit.tie_parameter, fit.position_effect
    return BradleyTerryBootstrap(
        fit=fit,
        strengths={name: interval.of(fit.strengths[name], replicates[:, k]) for k, name in enumerate(matrix.systems)},
        ranks=ranks,
        tie_parameter=interval.of(tie, np.exp(parameters[len(shown)])) if tie and tie.is_known else tie,
        position_effect=interval.of(position, parameters[-1]) if position else None,
        share_penalised=float(is_penalised.mean()),
        replicates=replicates,
    )


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Puts percentile intervals in the place of analytic ones."""

    resampled: str
    confidence: float
    seed: int
    notes: tuple[str, ...]

    def of(self, estimate: Estimate, values: Floats) -> Estimate:
        if not estimate.is_known:
            return estimate
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(values, [tail, 1 - tail]).tolist()
        return replace(
            estimate,
            low=low,
            high=high,
            interval_method=f"percentile bootstrap over {self.resampled}",
            seed=self.seed,
            n_resamples=len(values),
            notes=self.notes,
            details={**estimate.details, "bootstrap_se": float(values.std())},
        )


def _replicate(cells: PairCells, fit: BradleyTerry, draw: Draw, n_resamples: int, seed: int) -> tuple[Floats, Flags]:
    """Parameters by resamples, and which resamples needed the penalty.

    Parts of the resamples run side by side, each with a generator of its own, so that the numbers do not depend on how
    many processors there are.
    """
    graph = WinGraph(
        cells.n_systems, np.concatenate([cells.first, cells.second]), np.concatenate([cells.second, cells.first])
    )
    size = max(1, _CHUNK_NUMBERS // max(len(cells.first), cells.n_systems**2 // 2))
    sizes = [min(size, n_resamples - begin) for begin in range(0, n_resamples, size)]
    generators = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(len(sizes))]

    def part(n: int, rng: np.random.Generator) -> tuple[Floats, Flags]:
        return _fit_resamples(draw(n, rng), fit, graph)

    if len(sizes) < 2 or cells.n_systems > _MOST_SYSTEMS_SIDE_BY_SIDE:
        parts = [part(n, rng) for n, rng in zip(sizes, generators, strict=True)]
    else:
        with ThreadPoolExecutor(max_workers=min(len(sizes), os.cpu_count() or 1)) as pool:
            parts = list(pool.map(part, sizes, generators))
    return np.concatenate([values for values, _ in parts], axis=1), np.concatenate([flags for _, flags in parts])


def _fit_resamples(drawn: PairCells, fit: BradleyTerry, graph: WinGraph) -> tuple[Floats, Flags]:
    """Maximum likelihood where it exists and was used for the data, the penalised fit elsewhere."""
    model, n_sets = fit.fitted.model, drawn.first_won.shape[1]
    start = fit.fitted.parameters[:, None]
    values, todo = np.empty((len(start), n_sets)), np.ones(n_sets, dtype=bool)
    if not fit.is_penalised:
        wins_or_ties = np.concatenate([drawn.first_won + drawn.tied, drawn.second_won + drawn.tied])
        is_fitting = graph.is_connected(wins_or_ties)
        if model.has_ties:
            is_fitting &= drawn.tied.any(axis=0)
        chosen = np.flatnonzero(is_fitting)
        likeliest = newton(
            drawn if is_fitting.all() else drawn.chosen(chosen),
            model,
            start=start,
            tolerance=_TOLERANCE,
        )
        values[:, chosen] = likeliest.parameters
        todo[chosen[likeliest.is_converged]] = False
    if todo.any():
        values[:, todo] = _penalised(drawn.chosen(todo), model, fit.prior or DEFAULT_PRIOR, start)
    return values, todo


def _penalised(cells: PairCells, model: PairedModel, prior: float, start: Floats) -> Floats:
    """Penalised fits; the cells are widened to all pairs, for the penalty reaches those never compared too."""
    n, n_sets = cells.n_systems, cells.first_won.shape[1]
    is_pair = ~np.eye(n, dtype=bool) if model.has_position else np.triu(np.ones((n, n), dtype=bool), 1)
    first, second = np.nonzero(is_pair)
    number = np.full((n, n), -1)
    number[first, second] = np.arange(len(first))
    place = number[cells.first, cells.second]

    def widen(counts: Floats) -> Floats:
        wide = np.zeros((len(first), n_sets))
        wide[place] = counts
        return wide

    wide = PairCells(n, first, second, widen(cells.first_won), widen(cells.second_won), widen(cells.tied))
    wide = wide.with_pseudo_wins(prior, keep_order=model.has_position)
    if not model.has_ties:
        return newton(wide, model, start=start, tolerance=_TOLERANCE, max_iterations=200).parameters
    # Without a single tie Davidson's parameter is 0 (minus infinity here) and the plain model remains.
    values = np.full((n + model.n_extra, n_sets), -np.inf)
    has_tie = np.asarray(wide.tied.any(axis=0))
    values[:, has_tie] = newton(wide.chosen(has_tie), model, start=start, max_iterations=200).parameters
    rows = [*range(n), *([n + 1] if model.has_position else [])]
    plain_model = PairedModel(has_position=model.has_position)
    plain = newton(wide.chosen(~has_tie), plain_model, start=start[rows], max_iterations=200).parameters
    values[np.ix_(rows, np.flatnonzero(~has_tie))] = plain
    return values
