"""The choice model of best-worst data: a rater picks the pair (best, worst) that lies farthest apart.

P(best = b, worst = w | set) is proportional to exp(u_b - u_w) over all ordered pairs of the set ("maxdiff", Marley and
Louviere 2005). Where some systems never lose or never win, the fit is penalised by pseudo-wins as in
:mod:`dialometer.stats.bradley_terry` and says so.

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
from dialometer.stats.best_worst import BestWorstChoices
from dialometer.stats.comparison_graph import WinGraph, describe_groups, strong_groups
from dialometer.stats.maxdiff_newton import MaxdiffModel
from dialometer.stats.paired_newton import covariance
from dialometer.stats.penalty import DEFAULT_PRIOR, choose_penalty, fitting_name, penalised_note
from dialometer.stats.rank_intervals import RankIntervals, rank_intervals

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

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
    replicates: Array = field(repr=False)


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

    def estimate(self, name: str, value: float, se: float, n: int, replicates: Array) -> Estimate:
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
    model: MaxdiffModel, edges: csr_array, start: Array, prior: float, n_raters: int, n_resamples: int, seed: int
) -> tuple[Array, Flags]:
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
