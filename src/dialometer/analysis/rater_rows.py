"""One row per rater: condition, mean ratings, minutes, group. Between-rater questions are answered on these alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dialometer.analysis.data import StudyData
from dialometer.analysis.measures import Measure, Measures
from dialometer.model.estimate import Estimate
from dialometer.model.study import Factor, Study
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.summary import bootstrap_mean

FEW_RATERS = 10
"""Below this, a bootstrap interval of a mean is known to be too narrow, and the report says so."""


@dataclass(frozen=True)
class RaterRows:
    """Raters in the order of ``Book.raters``; ``nan`` where a rater has nothing of that kind."""

    study: Study
    names: tuple[str, ...]
    cell: Ints
    minutes: Floats
    raw: dict[str, Floats]
    """Mean of what raters gave, by measure."""
    y: dict[str, Floats]
    """Mean on the analysed footing, each judgment relative to its target's mean: raters with easier items gain nothing."""

    @property
    def n(self) -> int:
        """How many raters."""
        return len(self.names)

    def level(self, factor: Factor) -> Ints:
        """The number of each rater's level of a factor."""
        order = [level.name for level in factor.levels]
        of_cell = np.array([order.index(cell[factor.name]) for cell in self.study.cells])
        return np.asarray(of_cell[self.cell])


def rater_rows(data: StudyData, measures: Measures) -> RaterRows:
    """The rows of all raters whose numeric judgments count."""
    book = measures.book
    done = data.completed_sessions().filter(pl.col("duration_s") > 0)
    minutes_by_name = dict(zip(done["rater"].to_list(), (done["duration_s"] / 60).to_list(), strict=True))
    minutes = np.array([minutes_by_name.get(name, np.nan) for name in book.raters], dtype=np.float64)
    raw, y = {}, {}
    for measure in measures.all:
        raw[measure.name] = _means(measure.raw, measure.rater, len(book.raters))
        y[measure.name] = adjusted_means(measure, len(book.raters))
    return RaterRows(data.study, book.raters, book.cell_of_rater, minutes, raw, y)


def _means(values: Floats, rater: Ints, n: int) -> Floats:
    count = np.bincount(rater, minlength=n)
    sums = np.bincount(rater, weights=values, minlength=n)
    return np.asarray(np.divide(sums, count, out=np.full(n, np.nan), where=count > 0))


def adjusted_means(measure: Measure, n: int) -> Floats:
    """As ``stats.permutation.rater_means`` with items, but with a place for every rater of the study."""
    of_target = _means(measure.y, measure.target, measure.n_targets)
    return _means(measure.y - of_target[measure.target] + measure.y.mean(), measure.rater, n)


def mean_over_raters(values: Floats, *, confidence: float, n_resamples: int, seed: int, label: str = "") -> Estimate:
    """The mean of raters' means with a bootstrap interval over raters; few raters come with a warning."""
    found = bootstrap_mean(values, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)
    found = replace(
        found, method="mean over raters", interval_method=found.interval_method.replace("over values", "over raters")
    )
    if found.has_interval and int(np.sum(~np.isnan(values))) < FEW_RATERS:
        found = found.with_note(f"fewer than {FEW_RATERS} raters: bootstrap intervals of so few are too narrow")
    return found
