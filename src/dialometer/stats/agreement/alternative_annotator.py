"""Could a judge take a rater's place? The alternative annotator test of Calderon, Reichart and Dror (ACL 2025).

Each rater is left out in turn. On every item the judge and the left-out rater are scored by how well they fit the other raters
(share of equal labels, or minus the root mean squared distance of numbers); each wins an item on which it fits at least as well. The
judge's advantage probability over a rater is the share of items it wins. For each rater it is tested whether the judge wins at most
``epsilon`` less often than the rater does, by a one-sided t-test over items (for raters with at least 30), with Benjamini and
Yekutieli's correction over raters. The winning rate omega is the share of raters for which it is shown; the judge passes at a
half or more. ``epsilon`` is what the judge's lower price is worth: 0.2 for experts, 0.15 for skilled raters, 0.1 for
crowds, by the authors' rule of thumb.

Where raters saw few items each, as in crowds, no single rater can be tested. Then the same differences of all raters together are
tested against ``epsilon``, with uncertainty over raters and items.

Checked in tests/stats/test_alternative_annotator.py against plain loops after the paper with ``scipy.stats.ttest_1samp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.two_way import two_way_linear
from dialometer.stats.observations import Floats, as_matrix, check_confidence

EPSILON = 0.1
MIN_ITEMS, MIN_RATERS = 30, 3
"""Items of a rater at which it is tested by itself, and raters at which the winning rate decides, as the authors advise."""
PASSING = 0.5


@dataclass(frozen=True, slots=True)
class LeftOutRater:
    """One rater beside the judge: how often each wins, and whether the judge is shown to be as good within epsilon."""

    rater: int
    n_items: int
    judge_wins: float
    rater_wins: float
    p_value: float
    p_adjusted: float
    is_beaten: bool


@dataclass(frozen=True, slots=True)
class AlternativeTest:
    """The result: ``omega`` is the winning rate over raters that could be tested, ``advantage`` the judge's mean share of wins."""

    raters: tuple[LeftOutRater, ...]
    omega: float
    advantage: Estimate
    difference: Estimate
    """How much more often the judge wins than the left-out rater, over all raters and items together."""
    epsilon: float

    @property
    def n_tested(self) -> int:
        """Raters that were tested one by one."""
        return sum(not math.isnan(rater.p_value) for rater in self.raters)

    @property
    def is_by_rater(self) -> bool:
        """Whether the verdict is the published one, over raters; else it is that of all raters together."""
        return self.n_tested >= MIN_RATERS

    @property
    def passes(self) -> bool | None:
        """Whether the judge is shown to be as good as a rater within epsilon; None where nothing could be tested."""
        if self.is_by_rater:
            return self.omega >= PASSING
        return None if not self.difference.has_interval else self.difference.low > -self.epsilon


def alternative_annotator_test(
    ratings: ArrayLike,
    judge: ArrayLike,
    *,
    kind: Literal["labels", "numbers"] = "labels",
    epsilon: float = EPSILON,
    confidence: float = 0.95,
) -> AlternativeTest:
    """The test from ratings laid out as items by raters (``nan`` = missing) and the judge's answer to each item.

    Labels are given as numbers. Items that the judge or all but one of the raters left out do not count.
    """
    level = check_confidence(confidence)
    matrix, own = as_matrix(ratings), np.asarray(judge, dtype=np.float64)
    is_given = ~np.isnan(matrix)
    is_used = (is_given.sum(axis=1) >= 2) & ~np.isnan(own)
    matrix, own, is_given = matrix[is_used], own[is_used], is_given[is_used]
    if not len(own):
        raise NotEnoughData(
            "no item was judged by the judge and by two raters", remedy="have some items judged by several raters"
        )
    item, rater = np.nonzero(is_given)
    judge_fit, rater_fit = _fits(matrix, is_given, own, item, rater, kind)
    judge_wins, rater_wins = (judge_fit >= rater_fit).astype(np.float64), (rater_fit >= judge_fit).astype(np.float64)
    raters = _by_rater(judge_wins, rater_wins, rater, matrix.shape[1], epsilon, 1 - level)
    tested = [one for one in raters if not math.isnan(one.p_value)]
    return AlternativeTest(
        tuple(raters),
        float(np.mean([one.is_beaten for one in tested])) if tested else math.nan,
        _over_both(judge_wins, rater, item, level, "share of items on which the judge fits others at least as well"),
        _over_both(judge_wins - rater_wins, rater, item, level, "judge's wins minus the left-out rater's"),
        epsilon,
    )


def _fits(
    matrix: Floats, is_given: np.ndarray, own: Floats, item: np.ndarray, rater: np.ndarray, kind: str
) -> tuple[Floats, Floats]:
    """For each rating: how well the judge, and the rater, fit the other raters of the item."""
    value = matrix[item, rater]
    n_others = is_given.sum(axis=1)[item] - 1.0
    if kind == "labels":
        labels = np.unique(np.concatenate([value, own]))
        code, own_code = np.searchsorted(labels, value), np.searchsorted(labels, own)
        counts = np.zeros((len(own), len(labels)))
        np.add.at(counts, (item, code), 1.0)
        alike = counts[item, code] - 1.0  # not with oneself
        to_judge = counts[item, own_code[item]] - (code == own_code[item])
        return to_judge / n_others, alike / n_others
    total, squares = np.nansum(matrix, axis=1)[item] - value, np.nansum(matrix**2, axis=1)[item] - value**2
    mean, square = total / n_others, squares / n_others

    def fit(guess: Floats) -> Floats:
        """Rounded, since equal distances must be equal whichever way they were added up."""
        return np.asarray(-np.sqrt(np.maximum(square - 2 * mean * guess + guess**2, 0.0)).round(9))

    return fit(own[item]), fit(value)


def _by_rater(
    judge_wins: Floats, rater_wins: Floats, rater: np.ndarray, n_raters: int, epsilon: float, alpha: float
) -> list[LeftOutRater]:
    shares: list[tuple[int, int, float, float]] = []
    p_values: list[float] = []
    for number in range(n_raters):
        is_own = rater == number
        difference = rater_wins[is_own] - judge_wins[is_own]
        n = len(difference)
        of_judge, of_rater = (float(wins[is_own].mean()) if n else math.nan for wins in (judge_wins, rater_wins))
        shares.append((number, n, of_judge, of_rater))
        p_values.append(_p_value(difference, epsilon))
    adjusted = np.array(p_values)
    is_tested = ~np.isnan(adjusted)
    adjusted[is_tested] = stats.false_discovery_control(adjusted[is_tested], method="by")
    return [
        LeftOutRater(number, n, of_judge, of_rater, p, float(q), bool(q <= alpha))
        for (number, n, of_judge, of_rater), p, q in zip(shares, p_values, adjusted, strict=True)
    ]


def _p_value(difference: Floats, epsilon: float) -> float:
    """One-sided: that the rater wins less than epsilon more often than the judge."""
    if len(difference) < MIN_ITEMS:
        return math.nan
    if np.ptp(difference) == 0:
        return 0.0 if difference[0] < epsilon else 1.0
    return float(stats.ttest_1samp(difference, epsilon, alternative="less").pvalue)


def _over_both(values: Floats, rater: np.ndarray, item: np.ndarray, level: float, method: str) -> Estimate:
    """A mean with uncertainty over raters and items."""
    mean = float(values.mean())
    n_raters, n_items = len(np.unique(rater)), len(np.unique(item))
    details = {"n_raters": n_raters, "n_items": n_items}
    if min(n_raters, n_items) < 2:
        return unknown(method, "at least two raters and two items are needed", n=len(values))
    _, variance = two_way_linear(values, np.ones((len(values), 1)), rater, item)
    error, df = variance.contrast([1.0])
    reach = float(stats.t.isf((1 - level) / 2, max(df, 1.0))) * error
    return Estimate(
        mean, len(values), method, low=mean - reach, high=mean + reach, confidence=level,
        interval_method="two-way jackknife over raters and items", details=details,
    )  # fmt: skip
