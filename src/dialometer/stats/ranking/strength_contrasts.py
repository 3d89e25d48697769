"""Tests and intervals for differences of strengths that hold for other raters and other items, also where votes are sparse.

A contrast is tested by its likelihood ratio: how much less likely the votes are if the contrast is held at zero. Where systems
or votes are so many that likelihoods are parabolas, that is Wald's statistic, which is computed instead. Votes of one rater, or
on one item, go together, so the ratio is divided by the design effect of the contrast (the variance over raters and items,
:mod:`dialometer.stats.ranking.vote_variance`, by that of independent votes; never below 1; Rao and Scott 1984), and its
signed root is read as Student's t with design-based degrees of freedom. The interval holds the values that this test
does not reject (a profile likelihood), so the two never contradict each other. Unlike a strength by its standard error, the
ratio stays meaningful where a system won or lost every vote (Hauck and Donner 1977).

Where all evidence on a pair points one way, its votes cannot show how much raters or items disagree. Each rater, or each
item, whichever are effectively fewer, then counts as one vote, which is a sign test over them (up to the t approximation).

Checked in ``tests/stats/test_ranking_strength_contrasts.py`` against ``statsmodels`` likelihood ratios and profile intervals,
``scipy.stats.binomtest`` over clusters, and by simulation of equal systems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialometer.model.estimate import Estimate
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.bradley_terry import BradleyTerry
from dialometer.stats.ranking.paired_newton import (
    PairCells,
    cells_of,
    covariance,
    gradient_and_information,
    newton_held,
)
from dialometer.stats.ranking.vote_variance import VoteVariance, variances
from dialometer.stats.ranking.votes import WinMatrix

MOST_PROFILED = 50
"""Systems above which contrasts are read by their standard errors, as the profile would take too long."""
AMPLE = 0.1
"""Standard error (of a strength, were votes independent) below which they are too: likelihoods are then parabolas."""
FEWEST_DF = 1e-9
LEAST_DF = 0.5  # of Student's t, where clusters weigh so unequally that less than one and a half remain
ONE_VOTE_EACH = "all votes point one way: each rater, or each item, whichever are fewer, counts as one vote"
NO_END = "the votes rule out no value"
_FARTHEST = 10.0  # log odds from the estimate (odds of 22,000); an interval that is not at its end there has none
_CLOSE = 1e-4
_MOST_STEPS = 40
_CHUNK = 2_000_000  # cells times contrasts that are held at a time
_ON_THE_WAY = (0.1, 0.3, 0.5, 0.7, 0.9)
_EVIDENCE = 2 * math.log(2)  # likelihood ratio of one vote that is sure beforehand


@dataclass(frozen=True, eq=False)
class StrengthTests:
    """Signed roots of scaled likelihood ratios of contrasts, and what they were made from."""

    values: Floats
    roots: Floats
    df: Floats
    p_values: Floats
    scale: Floats
    """What likelihood ratios are divided by: design effects, or more where all votes point one way."""
    standard_errors: Floats
    is_one_way: NDArray[np.bool_]


class StrengthContrasts:
    """The contrasts of one fit. ``variance`` says how sure the parameters are over raters and items."""

    def __init__(self, matrix: WinMatrix, fit: BradleyTerry, variance: VoteVariance, *, confidence: float) -> None:
        self.fit, self.variance, self.confidence = fit, variance, confidence
        self._fitted = fit.fitted
        self._n = len(fit.fitted.names)
        part = matrix.part([matrix.systems.index(name) for name in fit.fitted.names])
        model = fit.fitted.model
        cells = cells_of(part, keep_order=model.has_position, all_pairs=fit.is_penalised)
        self._cells: PairCells = (
            cells.with_pseudo_wins(fit.prior, keep_order=model.has_position) if fit.is_penalised else cells
        )
        self._group = {name: number for number, group in enumerate(fit.groups) for name in group}
        alone = np.diagonal(fit.fitted.covariance)[: self._n]
        self.is_profiled = self._n <= MOST_PROFILED and bool(np.sqrt(alone.max()) > AMPLE)

    def pair_rows(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Each pair as a combination of the parameters: first minus second."""
        rows = np.zeros((len(pairs), len(self._fitted.parameters)))
        names = self._fitted.names
        for row, (a, b) in zip(rows, pairs, strict=True):
            row[names.index(a)], row[names.index(b)] = 1.0, -1.0
        return rows

    def centred_rows(self) -> Floats:
        """Each system against the mean of all."""
        rows = np.zeros((self._n, len(self._fitted.parameters)))
        rows[:, : self._n] = np.eye(self._n) - 1 / self._n
        return rows

    def position_row(self) -> Floats:
        """The effect of being shown first."""
        rows = np.zeros((1, len(self._fitted.parameters)))
        rows[0, -1] = 1.0
        return rows

    def tests(self, rows: Floats) -> StrengthTests:
        """Every contrast against zero."""
        value = rows @ self._fitted.parameters
        error, df = self.variance.contrasts(rows)
        scale = self.variance.design_effect(rows)
        ratio = (
            self._ratios(rows, np.zeros(len(rows)))
            if self.is_profiled
            else value**2 / variances(rows, self.variance.inverse)
        )
        is_one_way = self._is_one_way(rows)
        most = _EVIDENCE * np.maximum(df + 1, 0.0)
        as_few = np.divide(ratio, most, out=np.ones_like(most), where=most > 0)
        scale = np.where(is_one_way, np.maximum(scale, as_few), scale)
        root = np.sign(value) * np.sqrt(ratio / scale)
        p = 2 * stats.t.sf(np.abs(root), np.maximum(df, LEAST_DF))
        p = np.where(df > FEWEST_DF, p, math.nan)
        least = np.sqrt(self.variance.alone(rows))
        return StrengthTests(value, root, df, p, scale, np.maximum(error, least), is_one_way)

    def estimates(
        self,
        rows: Floats,
        labels: Sequence[str],
        *,
        n: Sequence[int] | int,
        is_tested: bool = True,
    ) -> list[Estimate]:
        """Contrasts with their tests and intervals."""
        tests = self.tests(rows)
        low, high = self._intervals(rows, tests)
        is_endless = np.isnan(low) & (tests.df > FEWEST_DF)
        counts = [n] * len(labels) if isinstance(n, int) else list(n)
        over = "raters" if self.variance.items is None else "raters and items"
        how, test = ("profile likelihood", "likelihood ratio") if self.is_profiled else ("Wald", "Wald test")
        return [
            Estimate(
                value=float(tests.values[k]),
                n=counts[k],
                method=f"difference of strengths, {self.fit.method}; {test} by its design effect over {over}",
                low=float(low[k]),
                high=float(high[k]),
                confidence=self.confidence,
                interval_method=f"{how}, design effect over {over}, Student's t",
                statistic=float(tests.roots[k]) if is_tested else math.nan,
                df=(float(tests.df[k]),),
                p_value=float(tests.p_values[k]) if is_tested else math.nan,
                label=label,
                unit="log odds",
                notes=tuple(
                    note for note, holds in ((ONE_VOTE_EACH, tests.is_one_way[k]), (NO_END, is_endless[k])) if holds
                ),
                details={"design_effect": float(tests.scale[k]), "standard_error": float(tests.standard_errors[k])},
            )
            for k, label in enumerate(labels)
        ]

    def _is_one_way(self, rows: Floats) -> NDArray[np.bool_]:
        """Whether a contrast sets systems against each other that no chain of wins joins in both directions."""
        group = np.array([self._group[name] for name in self._fitted.names])
        touched = [set(group[np.abs(row[: self._n]) > 0].tolist()) for row in rows]
        return np.array([len(groups) > 1 for groups in touched], dtype=bool)

    def draws(self, n_draws: int, *, seed: int) -> Floats:
        """Strengths as uncertain as the tests take them to be (draws by systems), from a multivariate t distribution.

        The curvature is averaged on the way from equal strengths to the estimate, as the likelihood ratio does it, so that
        a system that lost every vote stays as far behind in the draws as it is in the tests.
        """
        best, n = self._fitted.parameters, self._n
        total = np.zeros((len(best), len(best)))
        for share in _ON_THE_WAY:
            at = np.concatenate([share * best[:n], best[n:]])
            _, information = gradient_and_information(self._cells, self._fitted.model, at[:, None])
            total += share / sum(_ON_THE_WAY) * information[0]
        rows = self.centred_rows()
        tests = self.tests(rows)
        spread = np.sqrt(tests.scale)
        cov = covariance(total, n)[:n, :n] * np.outer(spread, spread)
        rng = np.random.default_rng([seed, 23])
        df = max(float(tests.df.min()), LEAST_DF)
        shock = rng.multivariate_normal(
            np.zeros(n), (cov + cov.T) / 2, size=n_draws, method="eigh", check_valid="ignore"
        )
        return np.asarray(best[:n] + shock / np.sqrt(rng.chisquare(df, (n_draws, 1)) / df))

    def _ratios(self, rows: Floats, values: Floats) -> Floats:
        """Twice the loss of log likelihood when each contrast is held at its value."""
        model, best = self._fitted.model, self._fitted.parameters
        top = float(model.log_likelihood(self._cells, best[:, None])[0])
        size = max(1, _CHUNK // max(len(self._cells.first), len(best) ** 2))
        parts = []
        for begin in range(0, len(rows), size):
            chosen = slice(begin, begin + size)
            held = newton_held(self._cells, model, rows[chosen], values[chosen], best)
            copies = self._cells.chosen(np.zeros(held.shape[1], dtype=np.intp))
            parts.append(2 * (top - model.log_likelihood(copies, held)))
        return np.maximum(np.concatenate(parts), 0.0)

    def _intervals(self, rows: Floats, tests: StrengthTests) -> tuple[Floats, Floats]:
        """Both ends of each interval: infinite where no value that way is rejected, unknown where none is either way."""
        known = np.maximum(tests.df, LEAST_DF)
        quantile = stats.t.isf((1 - self.confidence) / 2, known)
        width = quantile * tests.standard_errors
        ends = [tests.values - width, tests.values + width]
        if self.is_profiled:
            ends = self._ends(rows, tests, quantile, width)
        is_unknown = (tests.df <= FEWEST_DF) | (np.isinf(ends[0]) & np.isinf(ends[1]))
        low, high = (np.where(is_unknown, math.nan, end) for end in ends)
        return low, high

    def _ends(self, rows: Floats, tests: StrengthTests, quantile: Floats, width: Floats) -> list[Floats]:
        """Where the scaled ratios reach the quantile below and above; secants on their roots, which are nearly straight."""
        rows, values, scale, goal = (np.concatenate([x, x]) for x in (rows, tests.values, tests.scale, quantile))
        away = np.clip(np.concatenate([-width, width]), -_FARTHEST, _FARTHEST)
        before, at = np.zeros(len(rows)), np.zeros(len(rows))
        todo = np.arange(len(rows))
        for _ in range(_MOST_STEPS):
            now = away[todo]
            root = np.sqrt(self._ratios(rows[todo], values[todo] + now) / scale[todo])
            gap = root - goal[todo]
            slope = (root - at[todo]) / (now - before[todo])
            step = np.where(np.abs(slope) > _CLOSE, -gap / np.where(slope == 0, 1.0, slope), 0.0)
            before[todo], at[todo] = now, root
            # No step goes back more than half of the way or more than doubles it.
            moved = np.clip(np.clip((now + step) / now, 0.5, 2.0) * now, -_FARTHEST, _FARTHEST)
            is_reached = np.abs(gap) < _CLOSE
            is_done = is_reached | (moved == now)
            is_endless = ~is_reached & (np.abs(now) == _FARTHEST) & (gap < 0)
            away[todo] = np.where(is_done, np.where(is_endless, np.copysign(math.inf, now), now), moved)
            todo = todo[~is_done]
            if not len(todo):
                break
        return np.split(values + away, 2)
