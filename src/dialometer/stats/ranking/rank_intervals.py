"""How sure a place in a ranking is: from the tests of every two systems, or from bootstrap replicates of any score.

From tests, a system's rank lies between one more than the number of systems that are significantly better and the number of
systems that are not significantly worse. With tests corrected for all pairs these intervals hold for all systems at once
(Al Mohamad, Goeman and van Zwet 2022), and they cannot contradict the tests.

Checked in ``tests/stats/test_ranking_bootstrap.py`` against ``scipy.stats.rankdata`` row by row, and those from tests in
``tests/stats/test_ranking_strength_contrasts.py`` by counting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown


@dataclass(frozen=True, slots=True, eq=False)
class RankIntervals:
    """Each system's rank (1 is best, equals share the mean rank) with its interval, and how often it came out best."""

    systems: tuple[str, ...]
    ranks: Mapping[str, Estimate]
    best_share: Mapping[str, float]
    n_resamples: int


def ranks_by_tests(
    systems: Sequence[str],
    scores: npt.ArrayLike,
    is_better: npt.NDArray[np.bool_],
    draws: npt.ArrayLike,
    *,
    n: int,
    confidence: float = 0.95,
) -> RankIntervals:
    """Ranks of scores; ``is_better[a, b]`` says that a is significantly better than b, all tests being one family.

    How often each came out best is counted in ``draws`` (draws by systems). Systems without a score are not ranked.
    """
    value, drawn = np.asarray(scores, dtype=np.float64), np.asarray(draws, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(value))
    place = dict(zip(known.tolist(), rankdata(-value[known]).tolist(), strict=True))
    top = np.bincount(drawn[:, known].argmax(axis=1), minlength=len(known)) / len(drawn)
    chance = dict(zip(known.tolist(), top.tolist(), strict=True))
    method = "rank by score"
    ranks = {
        name: Estimate(
            value=place[k],
            n=n,
            method=method,
            low=1.0 + int(is_better[:, k].sum()),
            high=float(len(known) - int(is_better[k].sum())),
            confidence=confidence,
            interval_method="systems that are significantly better and worse",
            label=name,
            unit="rank",
            details={"best_share": chance[k]},
        )
        if k in place
        else unknown(method, f"'{name}' has no score", label=name)
        for k, name in enumerate(systems)
    }
    best = {name: chance.get(k, float("nan")) for k, name in enumerate(systems)}
    return RankIntervals(tuple(systems), ranks, best, len(drawn))


def rank_intervals(
    systems: Sequence[str],
    scores: npt.ArrayLike,
    replicates: npt.ArrayLike,
    *,
    n: int,
    resampled: str,
    higher_is_better: bool = True,
    confidence: float = 0.95,
    seed: int | None = None,
) -> RankIntervals:
    """Ranks of scores with percentile intervals from replicates (resamples by systems).

    The ends of an interval are ranks that occurred. Systems without a score are not ranked; a resample in which a ranked
    system has no score is left out, for its ranks mean something else. Checked against ``scipy.stats.rankdata`` per row.
    """
    value = np.asarray(scores, dtype=np.float64)
    drawn = np.asarray(replicates, dtype=np.float64)
    if drawn.ndim != 2 or drawn.shape[1] != len(systems) or value.shape != (len(systems),):
        raise DialometerError(
            f"{value.shape} scores and {drawn.shape} replicates for {len(systems)} systems",
            where="rank intervals",
            remedy="give one score, and one column of replicates, for each system",
        )
    sign = -1.0 if higher_is_better else 1.0
    method = "rank by score"
    known = np.flatnonzero(~np.isnan(value))
    usable = drawn[:, known][~np.isnan(drawn[:, known]).any(axis=1)]
    ranks: dict[str, Estimate] = {}
    best: dict[str, float] = {}
    if len(known):
        place = rankdata(sign * value[known])
        places = rankdata(sign * usable, axis=1) if len(usable) else np.empty((0, len(known)))
        top = places == places.min(axis=1, keepdims=True) if len(usable) else places.astype(bool)
        share = top / top.sum(axis=1, keepdims=True) if len(usable) else places
        tail = (1 - confidence) / 2
        n_lost = len(drawn) - len(usable)
        were = "was" if n_lost == 1 else "were"
        lost = f"{n_lost} of {len(drawn)} resamples gave no score for a system and {were} excluded"
        notes = (lost,) if n_lost else ()
        for column, k in enumerate(known.tolist()):
            low = high = mean = chance = float("nan")
            if len(usable):
                low, high = np.quantile(places[:, column], [tail, 1 - tail], method="inverted_cdf").tolist()
                mean, chance = float(places[:, column].mean()), float(share[:, column].mean())
            ranks[systems[k]] = Estimate(
                value=float(place[column]), n=n, method=method, low=low, high=high, confidence=confidence,
                interval_method=f"percentile bootstrap over {resampled}", seed=seed, n_resamples=len(drawn),
                label=systems[k], unit="rank", notes=notes, details={"mean_rank": mean, "best_share": chance},
            )  # fmt: skip
            best[systems[k]] = chance
    for k in np.flatnonzero(np.isnan(value)).tolist():
        ranks[systems[k]] = unknown(method, f"'{systems[k]}' has no score", label=systems[k])
        best[systems[k]] = float("nan")
    return RankIntervals(
        systems=tuple(systems),
        ranks={name: ranks[name] for name in systems},
        best_share={name: best[name] for name in systems},
        n_resamples=len(drawn),
    )
