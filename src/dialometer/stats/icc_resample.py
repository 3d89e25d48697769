"""All six ICCs on many resamples of items and raters at once, as matrix products.

The ANOVA estimators are rewritten in covariances between raters: with ``v`` the mean variance of a rater over items and
``c`` the mean covariance of two different raters, ICC(3,1) = c / v; the forms of agreement add the variance of rater means.
Written so, a rater drawn twice can be kept from counting as two raters who agree perfectly: pairs of a rater with itself are
left out of ``c``. Plain resampling of columns gives replicates far above the estimate when raters are few.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dialometer.stats.bootstrap import batch_sizes, draw_counts
from dialometer.stats.icc_forms import FORMS, spearman_brown
from dialometer.stats.ratings import Floats

Resampled = Literal["items", "raters", "items and raters"]


def icc_of_counts(matrix: Floats, item_counts: Floats | None, rater_counts: Floats | None) -> dict[str, Floats]:
    """Every form, by its name, on resamples given by counts (resamples by items, resamples by raters; None = each once).

    Counts of raters may also be 0 or 1, which makes a subset; with all counts 1 the values are those of the ANOVA.
    """
    x = matrix - matrix.mean()
    n, v = _sizes(x.shape[0], item_counts), _ones(x.shape[1], rater_counts)
    k = v.sum(axis=1)
    distinct = k**2 - (v**2).sum(axis=1)  # ordered pairs of different raters
    mean, variance = _rater_moments(x, item_counts, n)  # (resamples or 1) x raters
    row_mean = _row_means(x, rater_counts, k)  # (resamples or 1) x items
    row_square = _weighted_sum(row_mean**2, item_counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        grand = (v * mean).sum(axis=1) / k
        between = (row_square - n * grand**2) / (n - 1)  # variance of item means
        v_bar = (v * variance).sum(axis=1) / k
        c_bar = (k**2 * between - (v**2 * variance).sum(axis=1)) / distinct
        rater_spread = k * (v * (mean - grand[:, None]) ** 2).sum(axis=1) / distinct
        rater_variance = rater_spread - (v_bar - c_bar) / n
        square = (v * ((n - 1)[:, None] * variance + n[:, None] * mean**2)).sum(axis=1)
        within = square - k * row_square  # sum of squares inside items
        one_way_total = between + within / (k * n)
        one_way_item = one_way_total - k * within / (n * distinct)
        single = {
            "one_way": one_way_item / one_way_total,
            "agreement": c_bar / (v_bar + rater_variance),
            "consistency": c_bar / v_bar,
        }
    return {
        form.name: spearman_brown(single[form.model], k) if form.is_average else single[form.model] for form in FORMS
    }


def _sizes(n: int, counts: Floats | None) -> Floats:
    return np.array([float(n)]) if counts is None else counts.sum(axis=1)


def _ones(k: int, counts: Floats | None) -> Floats:
    return np.ones((1, k)) if counts is None else counts


def _rater_moments(x: Floats, item_counts: Floats | None, n: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of each rater over the items drawn."""
    if item_counts is None:
        return x.mean(axis=0, keepdims=True), x.var(axis=0, ddof=1, keepdims=True)
    sums = item_counts @ np.hstack([x, x**2])
    mean = sums[:, : x.shape[1]] / n[:, None]
    return mean, (sums[:, x.shape[1] :] - n[:, None] * mean**2) / (n - 1)[:, None]


def _row_means(x: Floats, rater_counts: Floats | None, k: Floats) -> Floats:
    if rater_counts is None:
        return np.asarray(x.mean(axis=1)[None, :])
    return np.asarray(rater_counts @ x.T / k[:, None])


def _weighted_sum(rows: Floats, item_counts: Floats | None) -> Floats:
    if item_counts is None:
        return np.asarray(rows.sum(axis=1))
    if len(rows) == 1:
        return np.asarray(item_counts @ rows[0])
    return np.asarray(np.einsum("bi,bi->b", rows, item_counts))


def icc_replicates(
    matrix: Floats, resampled: Resampled, *, n_resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Every form on bootstrap resamples of items, of raters, or of both drawn independently."""
    n, k = matrix.shape
    parts: dict[str, list[Floats]] = {form.name: [] for form in FORMS}
    for size in batch_sizes(n + k, n_resamples):
        items = draw_counts(rng, n, size) if "items" in resampled else None
        raters = draw_counts(rng, k, size) if "raters" in resampled else None
        for name, values in icc_of_counts(matrix, items, raters).items():
            parts[name].append(values)
    return {name: np.concatenate(values) for name, values in parts.items()}
