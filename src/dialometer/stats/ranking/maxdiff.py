"""The choice model of best-worst data: a rater picks the pair (best, worst) that lies farthest apart.

P(best = b, worst = w | set) is proportional to exp(u_b - u_w) over all ordered pairs of the set ("maxdiff", Marley and
Louviere 2005). Where some systems never lose or never win, the fit is penalised by pseudo-wins as in
:mod:`dialometer.stats.ranking.bradley_terry` and says so.

Newton's method fits many weightings of the same choices at once. All that a weighting changes is how often each distinct set
was shown and how many marks (best less worst) each system got; both are sums over raters, so a resample of raters is two
sparse products away.

Checked in ``tests/stats/test_ranking_best_worst.py`` against
``statsmodels.discrete.conditional_models.ConditionalLogit`` on the expanded pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import ndtri

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.best_worst import BestWorstChoices
from dialometer.stats.ranking.bradley_terry import DEFAULT_PRIOR, choose_penalty, fitting_name, penalised_note
from dialometer.stats.ranking.paired_newton import PairCells, PairedModel, covariance, gradient_and_information
from dialometer.stats.ranking.rank_intervals import RankIntervals, rank_intervals
from dialometer.stats.ranking.votes import WinGraph, describe_groups, strong_groups

Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

_RUNAWAY = 30.0  # as for paired comparisons: no realistic number of choices holds an estimate beyond it


class _SetsOfOneSize:
    """Distinct sets with equally many members, and the sums over them that a Newton step needs."""

    def __init__(self, choices: BestWorstChoices, rows: Codes, size: int) -> None:
        n, n_raters = len(choices.systems), len(choices.raters)
        self.members, which = np.unique(np.sort(choices.shown[rows, :size], axis=1), axis=0, return_inverse=True)
        n_sets = len(self.members)
        self.by_rater = csr_array((np.ones(len(rows)), (which.ravel(), choices.rater[rows])), shape=(n_sets, n_raters))
        n_places, n_pairs = n_sets * size, n_sets * size * size
        pairs = (self.members[:, :, None] * n + self.members[:, None, :]).ravel()
        self.sum_places = csr_array(
            (np.ones(n_places), (self.members.ravel(), np.arange(n_places))), shape=(n, n_places)
        )
        self.sum_pairs = csr_array((np.ones(n_pairs), (pairs, np.arange(n_pairs))), shape=(n * n, n_pairs))

    def moments(self, utilities: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and covariance of the marks in every set (sets, places, …, weightings), and the log of the sum over pairs.

        The sum of exp(u_b - u_w) over different members is (Σ e^u)(Σ e^-u) - size, which spares the pairs themselves.
        """
        u = utilities[self.members]
        u = u - (u.max(axis=1, keepdims=True) + u.min(axis=1, keepdims=True)) / 2
        up, down = np.exp(u), np.exp(-u)
        sum_up, sum_down = up.sum(axis=1, keepdims=True), down.sum(axis=1, keepdims=True)
        total = sum_up * sum_down - u.shape[1]
        best, worst = up * (sum_down - down) / total, down * (sum_up - up) / total
        mean = best - worst
        joint = -(up[:, :, None] * down[:, None] + down[:, :, None] * up[:, None]) / total[:, :, None]
        places = np.arange(u.shape[1])
        joint[:, places, places] = best + worst
        return mean, joint - mean[:, :, None] * mean[:, None], np.log(total[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """One or more weightings of the choices: marks (systems by weightings) and how often each set was shown."""

    marks: Floats
    n_shown: tuple[Floats, ...]

    def chosen(self, columns: Codes | Flags) -> Weighted:
        """Some of the weightings."""
        return Weighted(self.marks[:, columns], tuple(counts[:, columns] for counts in self.n_shown))


class MaxdiffModel:
    """The likelihood of coded choices. ``prior`` adds pseudo-wins of every system over every other one."""

    def __init__(self, choices: BestWorstChoices) -> None:
        n, n_raters = len(choices.systems), len(choices.raters)
        self.n = n
        sizes = (choices.shown >= 0).sum(axis=1)
        self._sets = [_SetsOfOneSize(choices, np.flatnonzero(sizes == size), int(size)) for size in np.unique(sizes)]
        ones = np.ones(choices.n)
        best = csr_array((ones, (choices.best, choices.rater)), shape=(n, n_raters))
        worst = csr_array((ones, (choices.worst, choices.rater)), shape=(n, n_raters))
        self._marks = best - worst
        first, second = np.triu_indices(n, 1)
        self._pairs = (first, second)

    @property
    def n_numbers(self) -> int:
        """Numbers that one weighting needs in memory at a time."""
        return int(max(self.n**2, sum(sets.members.size * sets.members.shape[1] for sets in self._sets)))

    def weighted(self, times: Floats) -> Weighted:
        """Raters' weights (raters by weightings) turned into what the likelihood needs."""
        return Weighted(self._marks @ times, tuple(sets.by_rater @ times for sets in self._sets))

    def log_likelihood(self, data: Weighted, utilities: Floats) -> Floats:
        """Without the penalty."""
        value = (data.marks * utilities).sum(axis=0)
        for sets, n_shown in zip(self._sets, data.n_shown, strict=True):
            value = value - (n_shown * sets.moments(utilities)[2]).sum(axis=0)
        return np.asarray(value)

    def derivatives(self, data: Weighted, utilities: Floats, prior: float) -> tuple[Floats, Floats]:
        """Gradient (systems by weightings) and information (weightings first)."""
        gradient, n_columns = data.marks.copy(), utilities.shape[1]
        information = np.zeros((self.n**2, n_columns))
        for sets, n_shown in zip(self._sets, data.n_shown, strict=True):
            mean, spread, _ = sets.moments(utilities)
            gradient -= sets.sum_places @ (mean * n_shown[:, None]).reshape(-1, n_columns)
            information += sets.sum_pairs @ (spread * n_shown[:, None, None]).reshape(-1, n_columns)
        curvature = np.ascontiguousarray(information.T).reshape(n_columns, self.n, self.n)
        if prior:
            amount = np.full((len(self._pairs[0]), n_columns), prior)
            pseudo = PairCells(self.n, *self._pairs, amount, amount, np.zeros_like(amount))
            more_gradient, more_curvature = gradient_and_information(pseudo, PairedModel(), utilities)
            gradient, curvature = gradient + more_gradient, curvature + more_curvature
        return gradient, curvature

    def fit(
        self, data: Weighted, *, prior: float, start: Floats | None = None, max_iterations: int = 100
    ) -> tuple[Floats, Flags]:
        """Utilities centred at 0, and which weightings converged; steps as in :mod:`dialometer.stats.ranking.paired_newton`."""
        n_columns = data.marks.shape[1]
        utilities = np.zeros((self.n, n_columns)) if start is None else np.tile(start[:, None], n_columns)
        is_converged = np.zeros(n_columns, dtype=bool)
        active, part = np.arange(n_columns), data
        for _ in range(max_iterations):
            if not len(active):
                break
            now = utilities[:, active]
            gradient, information = self.derivatives(part, now, prior)
            level = np.einsum("bkk->bk", information).max(axis=1)
            information += (level / self.n)[:, None, None]
            step = np.linalg.solve(information, gradient.T[:, :, None])[:, :, 0].T
            # A pair's log odds against another pair change by at most twice the range of the step.
            step /= np.maximum(1, 2 * np.ptp(step, axis=0))
            now = now + step
            utilities[:, active] = now
            is_done = np.abs(step).max(axis=0) < 1e-6
            is_lost = np.ptp(now, axis=0) > 2 * _RUNAWAY
            is_converged[active[is_done & ~is_lost]] = True
            stay = ~(is_done | is_lost)
            if not stay.all():
                active, part = active[stay], part.chosen(stay)
        return utilities - utilities.mean(axis=0), is_converged


_CHUNK_NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Maxdiff:
    """Utilities centred at 0 over the systems that were shown, with intervals by bootstrap over raters.

    ``exp(u_a - u_b)`` are the odds of picking a rather than b as the best where all else is equal.
    """

    systems: tuple[str, ...]
    utilities: Mapping[str, Estimate]
    ranks: RankIntervals
    groups: tuple[tuple[str, ...], ...]
    """Systems joined by choices in both directions; with more than one group no finite estimate exists."""
    is_penalised: bool
    prior: float
    log_likelihood: float
    share_penalised: float
    """Share of resamples that were fitted with the penalty."""
    method: str
    notes: tuple[str, ...]
    replicates: Floats = field(repr=False)


def maxdiff(
    choices: BestWorstChoices,
    *,
    prior: float | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Maxdiff:
    """Fit the model. ``prior`` as in ``bradley_terry``: ``None`` is maximum likelihood where it exists, else 0.1."""
    shown = np.unique(choices.shown[choices.shown >= 0])
    if len(shown) < 2:
        raise NotEnoughData("no choices between two systems", where="maxdiff", remedy="collect choices first")
    part = _among(choices, shown)
    names, n_raters = part.systems, len(part.raters)
    model, edges = MaxdiffModel(part), _preferences(part)
    seen = np.asarray(edges.sum(axis=1)).reshape(len(names), len(names))
    groups = strong_groups(seen)
    used, notes = choose_penalty(prior, describe_groups(groups, seen, names), "maxdiff")
    data = model.weighted(np.ones((n_raters, 1)))
    utilities, is_converged = model.fit(data, prior=used)
    if not is_converged[0]:
        raise NotEnoughData(
            "the utilities lie too far apart to be estimated", where="maxdiff", remedy="set a larger prior"
        )
    _, information = model.derivatives(data, utilities, used)
    se = np.sqrt(np.diagonal(covariance(information[0], len(names))))
    method = f"best-worst choice model (maxdiff), {fitting_name(used)}"
    replicates = np.full((n_resamples if n_raters > 1 else 0, len(choices.systems)), np.nan)
    drawn, is_penalised = _replicate(model, edges, utilities[:, 0], used, n_raters, len(replicates), seed)
    replicates[:, shown] = drawn.T
    if n_raters < 2:
        notes.append("one rater: no resampling over raters; the interval is Wald's")
    elif is_penalised.any() and not used:
        notes.append(penalised_note(int(is_penalised.sum()), n_resamples))
    value = np.full(len(choices.systems), np.nan)
    value[shown] = utilities[:, 0]
    n_shown = np.bincount(choices.shown[choices.shown >= 0], minlength=len(choices.systems))
    make = _Reporter(method, tuple(notes), confidence, seed)
    errors = dict(zip(shown.tolist(), se.tolist(), strict=True))
    return Maxdiff(
        systems=choices.systems,
        utilities={
            name: make.estimate(name, float(value[k]), errors.get(k, np.nan), int(n_shown[k]), replicates[:, k])
            for k, name in enumerate(choices.systems)
        },
        ranks=rank_intervals(
            choices.systems, value, replicates, n=n_raters, resampled="raters", confidence=confidence, seed=seed
        ),
        groups=tuple(tuple(names[k] for k in group) for group in groups),
        is_penalised=used > 0,
        prior=used,
        log_likelihood=float(model.log_likelihood(data, utilities)[0]),
        share_penalised=float(is_penalised.mean()) if len(is_penalised) else float(used > 0),
        method=method,
        notes=tuple(notes),
        replicates=replicates,
    )


@dataclass(frozen=True, slots=True)
class _Reporter:
    method: str
    notes: tuple[str, ...]
    confidence: float
    seed: int

    def estimate(self, name: str, value: float, se: float, n: int, replicates: Floats) -> Estimate:
        """Percentile interval over raters, or Wald's where there is but one rater."""
        if np.isnan(value):
            return unknown(self.method, f"'{name}' was never shown", label=name)
        tail = (1 - self.confidence) / 2
        if len(replicates):
            low, high = np.quantile(replicates, [tail, 1 - tail]).tolist()
            interval_method = "percentile bootstrap over raters"
        else:
            half = float(-ndtri(tail)) * se
            low, high, interval_method = value - half, value + half, "Wald"
        return Estimate(
            value=value, n=n, method=self.method, low=low, high=high, confidence=self.confidence,
            interval_method=interval_method, seed=self.seed, n_resamples=len(replicates), label=name, unit="log odds",
            notes=self.notes, details={"se": se},
        )  # fmt: skip


def _among(choices: BestWorstChoices, shown: Codes) -> BestWorstChoices:
    """The same choices with numbers for the shown systems only."""
    number = np.full(len(choices.systems) + 1, -1, dtype=np.intp)  # the last entry answers for the filler -1
    number[shown] = np.arange(len(shown))
    return BestWorstChoices(
        systems=tuple(choices.systems[k] for k in shown.tolist()),
        shown=number[choices.shown],
        best=number[choices.best],
        worst=number[choices.worst],
        raters=choices.raters,
        rater=choices.rater,
    )


def _preferences(choices: BestWorstChoices) -> csr_array:
    """Who was put above whom (pairs by raters): the best above all others of the set, all others above the worst."""
    n = len(choices.systems)
    row, place = np.nonzero(choices.shown >= 0)
    member = choices.shown[row, place]
    above_worst, below_best = member != choices.worst[row], member != choices.best[row]
    pairs = np.concatenate(
        [
            choices.best[row[below_best]] * n + member[below_best],
            member[above_worst] * n + choices.worst[row[above_worst]],
        ]
    )
    rater = choices.rater[np.concatenate([row[below_best], row[above_worst]])]
    return csr_array((np.ones(len(pairs)), (pairs, rater)), shape=(n * n, len(choices.raters)))


def _replicate(
    model: MaxdiffModel, edges: csr_array, start: Floats, prior: float, n_raters: int, n_resamples: int, seed: int
) -> tuple[Floats, Flags]:
    """Utilities by resamples of raters, and which resamples needed the penalty."""
    rng = np.random.default_rng(seed)
    pairs = np.arange(model.n**2)
    is_edge = np.asarray(edges.sum(axis=1)).ravel() > 0
    graph = WinGraph(model.n, pairs[is_edge] // model.n, pairs[is_edge] % model.n)
    seen_edges = edges[is_edge]
    utilities = np.empty((model.n, n_resamples))
    is_penalised = np.zeros(n_resamples, dtype=bool)
    size = max(1, _CHUNK_NUMBERS // model.n_numbers)
    for begin in range(0, n_resamples, size):
        end = min(begin + size, n_resamples)
        times = rng.multinomial(n_raters, np.full(n_raters, 1 / n_raters), size=end - begin).T.astype(np.float64)
        data = model.weighted(times)
        todo = np.ones(end - begin, dtype=bool)
        values = np.empty((model.n, end - begin))
        if not prior:
            chosen = np.flatnonzero(graph.is_connected(seen_edges @ times))
            values[:, chosen], is_converged = model.fit(data.chosen(chosen), prior=0.0, start=start)
            todo[chosen[is_converged]] = False
        if todo.any():
            values[:, todo], _ = model.fit(data.chosen(todo), prior=prior or DEFAULT_PRIOR, start=start)
        utilities[:, begin:end], is_penalised[begin:end] = values, todo
    return utilities, is_penalised
