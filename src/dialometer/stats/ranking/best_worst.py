"""Best-worst scaling by counting: how often a system was picked best less how often worst, per appearance.

Raters who pick a best and a worst of a set say more per screen than a rating does (Louviere et al. 2015; Kiritchenko and
Mohammad 2017). The choice model behind the same data is in :mod:`dialometer.stats.ranking.maxdiff`. Checked in
``tests/stats/test_ranking_best_worst.py`` against counts by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.registry import did_you_mean
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.rank_intervals import RankIntervals, rank_intervals

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class BestWorstChoices:
    """Choices from sets, coded. ``shown`` is choices by places, filled up with -1 where a set is smaller than the largest."""

    systems: tuple[str, ...]
    shown: Codes
    best: Codes
    worst: Codes
    raters: tuple[str, ...]
    rater: Codes

    @property
    def n(self) -> int:
        """How many choices there are."""
        return len(self.best)

    def rater_counts(self) -> csr_array:
        """Raters by choices, 1 where the choice is the rater's."""
        return csr_array((np.ones(self.n), (self.rater, np.arange(self.n))), shape=(len(self.raters), self.n))


def code_best_worst(
    shown: Sequence[Sequence[str]],
    best: Sequence[str],
    worst: Sequence[str],
    *,
    rater: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
) -> BestWorstChoices:
    """Choices from names; without ``rater`` every choice counts as another rater's."""
    known = tuple(systems) if systems is not None else tuple(sorted({name for names in shown for name in names}))
    place = {name: k for k, name in enumerate(known)}
    raters = [str(k) for k in range(len(shown))] if rater is None else list(rater)
    if not len(shown) == len(best) == len(worst) == len(raters):
        raise DialometerError(
            f"{len(shown)} sets, {len(best)} best, {len(worst)} worst, {len(raters)} raters",
            where="best-worst",
            remedy="give one of each for every choice",
        )
    width = max((len(names) for names in shown), default=0)
    coded = np.full((len(shown), width), -1, dtype=np.intp)
    for row, (names, top, bottom) in enumerate(zip(shown, best, worst, strict=True)):
        where = f"choice {row + 1}"
        for name in names:
            if name not in place:
                raise DialometerError(f"unknown system '{name}'", where=where, remedy=did_you_mean(name, list(known)))
        if len(set(names)) != len(names) or len(names) < 2:
            raise DialometerError("a set needs at least two different systems", where=where, remedy="mend the set")
        if top not in names or bottom not in names or top == bottom:
            raise DialometerError(
                f"best '{top}' and worst '{bottom}' of {', '.join(names)}",
                where=where,
                remedy="best and worst are two different systems of the set",
            )
        coded[row, : len(names)] = [place[name] for name in names]
    distinct, codes = np.unique(np.asarray(raters, dtype=np.str_), return_inverse=True)
    return BestWorstChoices(
        systems=known,
        shown=coded,
        best=np.array([place[name] for name in best], dtype=np.intp),
        worst=np.array([place[name] for name in worst], dtype=np.intp),
        raters=tuple(distinct.tolist()),
        rater=codes.astype(np.intp),
    )


@dataclass(frozen=True, slots=True, eq=False)
class BestWorstScores:
    """Scores from -1 (always worst) to 1 (always best) with intervals over raters, and the ranks they make."""

    systems: tuple[str, ...]
    scores: Mapping[str, Estimate]
    ranks: RankIntervals
    replicates: Floats = field(repr=False)


def best_worst_counts(
    choices: BestWorstChoices, *, n_resamples: int = 2000, confidence: float = 0.95, seed: int = 0
) -> BestWorstScores:
    """(best - worst) / appearances of every system; ``details`` hold the three counts."""
    if choices.n == 0:
        raise NotEnoughData("no choices", where="best-worst", remedy="collect choices first")
    n, n_raters = len(choices.systems), len(choices.raters)
    row, _ = np.nonzero(choices.shown >= 0)
    rater, system = choices.rater[row], choices.shown[choices.shown >= 0]
    shape = (n_raters, n)
    appearances = csr_array((np.ones(len(row)), (rater, system)), shape=shape)
    best = csr_array((np.ones(choices.n), (choices.rater, choices.best)), shape=shape)
    worst = csr_array((np.ones(choices.n), (choices.rater, choices.worst)), shape=shape)
    size = n_resamples if n_raters > 1 else 0
    times = np.random.default_rng(seed).multinomial(n_raters, np.full(n_raters, 1 / n_raters), size=size)
    replicates = _ratio(times @ (best - worst), times @ appearances)
    n_best, n_worst, n_shown = (np.asarray(counts.sum(axis=0)) for counts in (best, worst, appearances))
    value = _ratio(n_best - n_worst, n_shown)
    method, tail = "best-worst counts", (1 - confidence) / 2
    notes = () if size else ("one rater: no interval over raters",)
    scores = {}
    for k, name in enumerate(choices.systems):
        if not n_shown[k]:
            scores[name] = unknown(method, f"'{name}' was never shown", label=name)
            continue
        drawn = replicates[:, k][~np.isnan(replicates[:, k])]
        low, high = np.quantile(drawn, [tail, 1 - tail]).tolist() if len(drawn) else (float("nan"), float("nan"))
        scores[name] = Estimate(
            value=float(value[k]), n=int(n_shown[k]), method=method, low=low, high=high, confidence=confidence,
            interval_method="percentile bootstrap over raters", seed=seed, n_resamples=size, label=name, notes=notes,
            details={"best": int(n_best[k]), "worst": int(n_worst[k]), "shown": int(n_shown[k])},
        )  # fmt: skip
    ranks = rank_intervals(
        choices.systems, value, replicates, n=n_raters, resampled="raters", confidence=confidence, seed=seed
    )
    return BestWorstScores(choices.systems, scores, ranks, replicates)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """The quotient, ``nan`` where a system was not shown."""
    return np.asarray(np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=np.asarray(bottom) > 0))
