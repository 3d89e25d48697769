"""Best-worst scaling by scores: how often a system was picked best less how often worst, for other raters and items too.

Raters who pick a best and a worst of a set say more per screen than a rating does (Louviere et al. 2015; Kiritchenko and
Mohammad 2017). Each screen gives every system on it 1 (best), -1 (worst) or 0, and the scores are fitted by least squares
with the mean of each screen's company taken out: where all systems are on every screen they are the plain counts, and
where they are not, a system that met strong company is not punished for it. All differences come from this one fit, so
they agree with the order of the scores.

Why this and not another model: scores are bounded, so a system that is always or never best has a finite score, which the
choice model of :mod:`dialometer.stats.ranking.maxdiff` has not. Crossed mixed models of the paired differences found more
true differences with six to twelve raters, but with four raters whose tastes differ they called equal systems different in
59 of 500 simulated studies (the two-way jackknife used here in 13), and their estimates need not agree with one order.

Checked in ``tests/stats/test_ranking_best_worst.py`` against counts by hand and against least squares of ``statsmodels``
with a dummy for each screen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.sparse.csgraph import connected_components

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.two_way_contrasts import TwoWayContrasts
from dialometer.stats.observations import Floats

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
    item: Codes | None = None
    """The item of each choice; None where it is not known, then items count as fixed."""

    @property
    def n(self) -> int:
        """How many choices there are."""
        return len(self.best)

    def marks(self) -> Floats:
        """Choices by systems: 1 where the system was picked best, -1 where worst, 0 where neither, nan where not shown."""
        table = np.full((self.n, len(self.systems)), np.nan)
        row, place = np.nonzero(self.shown >= 0)
        table[row, self.shown[row, place]] = 0.0
        every = np.arange(self.n)
        table[every, self.best] = 1.0
        table[every, self.worst] = -1.0
        return table


METHOD = "best-worst scores"


@dataclass(frozen=True, eq=False)
class _Company:
    """Systems that met each other, directly or through others, with the fit of their scores."""

    systems: tuple[int, ...]
    basis: Floats
    """Systems by parameters; its columns add up to zero, so the scores have mean 0."""
    fit: TwoWayContrasts

    def weights(self, by_system: dict[int, float]) -> Floats:
        by_place = np.array([by_system.get(system, 0.0) for system in self.systems])
        return np.asarray(self.basis.T @ by_place)


class BestWorstScores:
    """Scores from -1 (always worst) to 1 (always best) and their differences, from one fit."""

    def __init__(self, choices: BestWorstChoices, *, has_fixed_items: bool = False, confidence: float = 0.95) -> None:
        if choices.n == 0:
            raise NotEnoughData("no choices", where="best-worst", remedy="collect choices first")
        self.choices = choices
        self.confidence = confidence
        self._items = None if has_fixed_items else choices.item
        self._marks = choices.marks()

    @cached_property
    def _companies(self) -> list[_Company]:
        is_shown = ~np.isnan(self._marks)
        together = is_shown.T.astype(np.float64) @ is_shown
        _, label = connected_components(together > 0, directed=False)
        seen = np.flatnonzero(is_shown.any(axis=0))
        return [self._company(tuple(seen[label[seen] == k].tolist())) for k in np.unique(label[seen])]

    def _company(self, systems: tuple[int, ...]) -> _Company:
        marks = self._marks[:, systems]
        is_shown = ~np.isnan(marks)
        screen, system = np.nonzero(is_shown)
        n = len(systems)
        basis = np.asarray(linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]), mode="economic")[0][:, 1:])
        company = is_shown @ basis / np.maximum(is_shown.sum(axis=1), 1)[:, None]
        fit = TwoWayContrasts(
            marks[screen, system],
            basis[system] - company[screen],
            self.choices.rater[screen],
            None if self._items is None else self._items[screen],
            self.confidence,
        )
        return _Company(systems, basis, fit)

    @cached_property
    def scores(self) -> dict[str, Estimate]:
        """Every system's score against the mean of its company; ``details`` hold how often it was best, worst and shown."""
        return {name: self._score(k, name) for k, name in enumerate(self.choices.systems)}

    def _score(self, system: int, name: str) -> Estimate:
        company = next((company for company in self._companies if system in company.systems), None)
        if company is None:
            return unknown(METHOD, f"'{name}' was never shown", label=name)
        marks = self._marks[:, system]
        counts = {
            "best": int(np.sum(marks == 1)),
            "worst": int(np.sum(marks == -1)),
            "shown": int(np.sum(~np.isnan(marks))),
        }
        score = company.fit.contrast(company.weights({system: 1.0}), limit=1.0, n=counts["shown"], label=name)
        return replace(  # Tests are those of differences: that a system differs from the mean of all is no claim of its own.
            score,
            method=f"{METHOD}, {score.method.removesuffix(', t-test')}",
            statistic=math.nan,
            p_value=math.nan,
            details={**score.details, **counts},
        )

    def difference(self, first: int, second: int) -> Estimate:
        """First minus second, -2 to 2, with its test."""
        names = self.choices.systems
        label = f"{names[first]} - {names[second]}"
        company = next((c for c in self._companies if first in c.systems and second in c.systems), None)
        if company is None:
            return unknown("difference of scores", "never compared, not even through other systems", label=label)
        n = int(np.sum(~np.isnan(self._marks[:, first] - self._marks[:, second])))
        return company.fit.contrast(company.weights({first: 1.0, second: -1.0}), limit=2.0, n=n, label=label)
