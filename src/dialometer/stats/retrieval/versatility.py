"""Questions that go with many answers, and questions that go with few (Chierici and Habash 2021, section 6.4).

The coefficient of variation (CoV) of the ratings of one question-answer pair says how far raters disagree on it. Pairs above
the 75th percentile mark their questions as A, pairs below the median mark theirs as B; a question can carry both marks, since
it has several pairs. Versatile questions carry only A, one-sided questions only B. The same is done for answers.

The standard deviation is the sample's (n - 1): with three ratings it gives the published median 0.25 (ratings 3, 4, 5) and
75th percentile 0.50 (1, 2, 3), which the population's does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.stats.observations import Floats

_EQUAL = 1e-12  # the same ratings in another order give a CoV that differs in its last digit


@dataclass(frozen=True, slots=True)
class VersatileSets:
    """Marks at the level of questions (or of answers)."""

    high: frozenset[str]
    """A: some pair above the 75th percentile."""
    low: frozenset[str]
    """B: some pair below the median."""
    mean_cov: dict[str, float]
    """Mean CoV over the pairs of each question (or answer)."""

    @property
    def both(self) -> frozenset[str]:
        """Carry both marks."""
        return self.high & self.low

    @property
    def versatile(self) -> frozenset[str]:
        """Only A: go well with many answers, raters disagree."""
        return self.high - self.low

    @property
    def one_sided(self) -> frozenset[str]:
        """Only B: go with few answers, raters agree."""
        return self.low - self.high


@dataclass(frozen=True, slots=True, eq=False)
class Versatility:
    """The CoV of every pair, the two thresholds, and the sets of questions and of answers."""

    pairs: tuple[tuple[str, str], ...]
    cov: Floats = field(repr=False)
    """By pair; ``nan`` where a pair has one rating only, or ratings that average 0 or less."""
    median: float
    percentile_75: float
    questions: VersatileSets
    answers: VersatileSets
    n_unusable: int
    """Pairs without a CoV."""


def coefficient_of_variation(ratings: npt.ArrayLike) -> float:
    """Standard deviation over mean; ``nan`` for fewer than two ratings or a mean of 0 or less, where it says nothing."""
    values = np.asarray(ratings, dtype=np.float64)
    values = values[~np.isnan(values)]
    if len(values) < 2 or values.mean() <= 0:
        return float("nan")
    return float(values.std(ddof=1) / values.mean())


def versatility(question: Sequence[str], answer: Sequence[str], rating: Sequence[float]) -> Versatility:
    """One entry for each rating of a question-answer pair. Percentiles are taken over pairs."""
    if not len(question) == len(answer) == len(rating):
        raise DialometerError(
            f"{len(question)} questions, {len(answer)} answers, {len(rating)} ratings",
            where="versatility",
            remedy="give one of each for every rating",
        )
    by_pair: dict[tuple[str, str], list[float]] = {}
    for asked_question, answered, value in zip(question, answer, rating, strict=True):
        by_pair.setdefault((asked_question, answered), []).append(float(value))
    pairs = tuple(sorted(by_pair))
    cov = np.array([coefficient_of_variation(by_pair[pair]) for pair in pairs])
    usable = cov[~np.isnan(cov)]
    if not len(usable):
        raise NotEnoughData(
            "no pair has two ratings with a mean above 0",
            where="versatility",
            remedy="collect several ratings of each pair",
        )
    median, percentile_75 = (float(value) for value in np.percentile(usable, [50, 75]))
    return Versatility(
        pairs=pairs,
        cov=cov,
        median=median,
        percentile_75=percentile_75,
        questions=_sets([asked_question for asked_question, _ in pairs], cov, median, percentile_75),
        answers=_sets([answered for _, answered in pairs], cov, median, percentile_75),
        n_unusable=len(cov) - len(usable),
    )


def _sets(names: list[str], cov: Floats, median: float, percentile_75: float) -> VersatileSets:
    own: dict[str, list[float]] = {}
    for name, value in zip(names, cov.tolist(), strict=True):
        if not np.isnan(value):
            own.setdefault(name, []).append(value)
    return VersatileSets(
        high=frozenset(name for name, values in own.items() if max(values) > percentile_75 + _EQUAL),
        low=frozenset(name for name, values in own.items() if min(values) < median - _EQUAL),
        mean_cov={name: float(np.mean(values)) for name, values in own.items()},
    )
