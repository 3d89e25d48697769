"""Means of several groups of ratings under one bootstrap that draws raters and questions alike.

All groups share every draw, so ratios to a reference, differences and ranks have honest intervals too: what a lenient
rater or an easy question does to one group it does to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap import batch_sizes, draw_counts, estimate_from
from dialometer.stats.observations import Floats, Ints

RESAMPLED = "raters and questions"


@dataclass(frozen=True)
class GroupMeans:
    """Weighted means of groups (nan: no rating) with replicates (resamples by groups)."""

    means: Floats
    replicates: Floats
    n: Ints
    seed: int
    confidence: float
    notes: tuple[str, ...] = ()

    def mean(self, group: int, *, label: str = "") -> Estimate:
        """One group's mean."""
        if np.isnan(self.means[group]):
            return unknown("mean rating", "no ratings: collect at least one judgment", label=label)
        return self._estimate(float(self.means[group]), self.replicates[:, group], group, "mean rating", label)

    def ratio(self, group: int, reference: int, *, label: str = "") -> Estimate:
        """One group's mean over another's."""
        base = self.means[reference]
        if np.isnan(self.means[group]) or np.isnan(base) or base <= 0:
            return unknown("ratio of mean ratings", "one side has no ratings above 0", label=label)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = self.replicates[:, group] / self.replicates[:, reference]
        return self._estimate(float(self.means[group] / base), drawn, group, "ratio of mean ratings", label)

    def _estimate(self, value: float, drawn: Floats, group: int, method: str, label: str) -> Estimate:
        found = estimate_from(
            value,
            drawn,
            n=int(self.n[group]),
            method=f"{method}, every question counted alike",
            resampled=RESAMPLED,
            seed=self.seed,
            confidence=self.confidence,
            label=label,
            notes=self.notes,
        )
        return found if len(drawn) else replace(found, interval_method="", seed=None)


def crossed_means(
    value: Floats,
    rater: Ints,
    question: Ints,
    weights: Sequence[Floats],
    *,
    n_resamples: int,
    seed: int,
    confidence: float,
) -> GroupMeans:
    """A weighted mean for each group, and the same under independent draws of raters and of questions.

    ``weights`` holds one array per group: how much each rating counts in it, 0 for those outside.

    The pigeonhole bootstrap (Owen 2007), a little wide for a mean and not narrow. With equal weights and one group it is
    :func:`dialometer.stats.cluster_bootstrap.bootstrap_mean` with raters and items. With one rater or one question there
    are no replicates and so no interval.
    """
    n_raters, n_questions = int(rater.max(initial=-1)) + 1, int(question.max(initial=-1)) + 1
    sums, totals, n = [], [], []
    for weight in weights:
        inside = np.flatnonzero(weight)
        place, shape = (question[inside], rater[inside]), (n_questions, n_raters)
        sums.append(sparse.coo_array((weight[inside] * value[inside], place), shape=shape).tocsr())
        totals.append(sparse.coo_array((weight[inside], place), shape=shape).tocsr())
        n.append(len(inside))
    means = _ratio(np.array([one.sum() for one in sums]), np.array([one.sum() for one in totals]))
    if n_raters < 2 or n_questions < 2:
        few = "one rater" if n_raters < 2 else "one question"
        why = (f"{few} only: no interval, since nothing is known of others",)
        return GroupMeans(means, np.empty((0, len(weights))), np.array(n), seed, confidence, why)
    rng = np.random.default_rng(seed)
    parts = []
    for size in batch_sizes(n_raters + n_questions, n_resamples):
        by_rater = draw_counts(rng, n_raters, size).T
        by_question = draw_counts(rng, n_questions, size).T
        columns = [
            _ratio(
                np.einsum("qb,qb->b", above @ by_rater, by_question),
                np.einsum("qb,qb->b", below @ by_rater, by_question),
            )
            for above, below in zip(sums, totals, strict=True)
        ]
        parts.append(np.stack(columns, axis=1))
    return GroupMeans(means, np.concatenate(parts), np.array(n), seed, confidence)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0))
