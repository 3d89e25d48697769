"""How consistent raters are with each other: the form of the ICC follows from who judged what.

All raters judged everything: two-way random effects (analysis of variance). Raters share part of the items: two-way from
variance components. Raters differ from item to item, or there are too many of both: one-way, where differences in level
between raters count as error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dialometer.analysis.measures import Measure
from dialometer.analysis.random_effects import MOST_LEVELS
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.icc import icc
from dialometer.stats.icc_crossed import icc_crossed
from dialometer.stats.icc_forms import spearman_brown
from dialometer.stats.icc_one_way import icc_one_way
from dialometer.stats.observations import Floats, Ints

Crossing = Literal["complete", "partly", "one_way", "none"]
REASONS = {
    "complete": "every rater judged everything in the condition, so raters are a random factor of a two-way design",
    "partly": "raters judged overlapping parts, so variance components (REML) use every judgment of the two-way design",
    "one_way": "raters differ from item to item, so differences between raters cannot be told from error",
}
FORM_NAMES = {
    "complete": "ICC(2,1) and ICC(2,k), two-way random effects, absolute agreement",
    "partly": "ICC(2,1) and ICC(2,k) from variance components by REML",
    "one_way": "ICC(1,1) and ICC(1,k), one-way random effects",
}


@dataclass(frozen=True, slots=True)
class Scores:
    """Judgments laid out for reliability: score, what was rated, who rated."""

    y: Floats
    target: Ints
    rater: Ints

    def of(self, rows: np.ndarray) -> Scores:
        """Only these judgments."""
        return Scores(self.y[rows], self.target[rows], self.rater[rows])


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability of one rating and of the mean of all ratings that a target got."""

    crossing: Crossing
    single: Estimate
    average: Estimate
    n_raters: int
    n_targets: int


def scores(measure: Measure) -> Scores:
    """Magnitudes relative to the rater's geometric mean (Bard et al. 1996); other scales as they are."""
    y = measure.y
    if measure.is_log:
        n = len(measure.book.raters)
        count = np.maximum(np.bincount(measure.rater, minlength=n), 1)
        y = y - (np.bincount(measure.rater, weights=y, minlength=n) / count)[measure.rater]
    return Scores(y, measure.target, measure.rater)


def crossing(data: Scores) -> Crossing:
    """Who judged what."""
    if not len(data.y):
        return "none"
    per_rater, per_target = (counts[counts > 0] for counts in (np.bincount(data.rater), np.bincount(data.target)))
    n_raters, n_targets = len(per_rater), len(per_target)
    if n_raters < 2 or n_targets < 2:
        return "none"
    if len(data.y) == n_raters * n_targets:
        return "complete"
    is_shared = np.median(per_rater) >= 2 and np.median(per_target) >= 2
    return "partly" if is_shared and min(n_raters, n_targets) <= MOST_LEVELS else "one_way"


def matrix(data: Scores) -> Floats:
    """Targets by raters, ``nan`` where a rater did not judge a target."""
    targets, target = np.unique(data.target, return_inverse=True)
    raters, rater = np.unique(data.rater, return_inverse=True)
    table = np.full((len(targets), len(raters)), np.nan)
    table[target, rater] = data.y
    return table


def reliability(data: Scores, *, confidence: float, label: str = "") -> Reliability:
    """The ICC in the form that the design asks for; analytic intervals, or the likelihood's profile."""
    kind = crossing(data)
    n_raters, n_targets = (len(np.unique(codes)) for codes in (data.rater, data.target))
    if kind == "none":
        why = f"{n_raters} raters and {n_targets} things rated: at least two of each are needed; collect more"
        nothing = unknown("ICC", why, n=n_targets, label=label)
        return Reliability(kind, nothing, nothing, n_raters, n_targets)
    if kind == "complete":
        table = matrix(data)
        single, average = (icc(table, form, confidence=confidence, label=label) for form in ("ICC(2,1)", "ICC(2,k)"))
    elif kind == "partly":
        single = icc_crossed(data.y, data.target, data.rater, "ICC(2,1)", confidence=confidence, label=label)
        average = _averaged(single, data)
    else:
        single, average = (
            icc_one_way(data.y, data.target, form, confidence=confidence, label=label)
            for form in ("ICC(1,1)", "ICC(1,k)")
        )
    return Reliability(kind, single, average, n_raters, n_targets)


def _averaged(single: Estimate, data: Scores) -> Estimate:
    """The average form from the single one: the same fit, stepped up to the typical number of raters per target."""
    if not single.is_known:
        return single
    counts = np.bincount(data.target)
    counts = counts[counts > 0]
    k = len(counts) / float(np.sum(1 / counts))
    value, low, high = (spearman_brown(part, k) for part in (single.value, single.low, single.high))
    return replace(
        single, value=value, low=low, high=high, method="ICC(2,k) by REML", details={**single.details, "k": k}
    )


def raters_needed(single: float, wanted: float = 0.8) -> int | None:
    """How many raters' mean reaches the wanted reliability (Spearman-Brown); None where no number would."""
    if not 0 < single < 1:
        return None
    return max(1, int(np.ceil(round(wanted * (1 - single) / (single * (1 - wanted)), 9))))
