"""The six intraclass correlations under both of their usual names, computed on many resamples at once.

The ANOVA estimators are rewritten in covariances between raters: with ``v`` the mean variance of a rater over items and
``c`` the mean covariance of two different raters, ICC(3,1) = c / v; the forms of agreement add the variance of rater means.
Written so, all resamples of items and raters are a few matrix products, and a rater drawn twice can be kept from counting as
two raters who agree perfectly: pairs of a rater with itself are left out of ``c``. Plain resampling of columns gives
replicates far above the estimate when raters are few.

Checked in ``tests/stats/test_reliability_icc.py`` against the ANOVA forms of :mod:`dialometer.stats.icc.icc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from dialometer.errors import UnknownName
from dialometer.registry import did_you_mean
from dialometer.stats.bootstrap.bootstrap import batch_sizes, draw_counts, weighted_sums
from dialometer.stats.observations import Floats

IccModel = Literal["one_way", "agreement", "consistency"]

NEGATIVE = "negative: items differ less than chance alone would make them; read it as no reliability"
"""The note beside every ICC below zero."""


@dataclass(frozen=True)
class IccForm:
    """One ICC: Shrout & Fleiss (1979) write ``ICC(2,1)``, McGraw & Wong (1996) ``ICC(A,1)``.

    ``one_way``: items were judged by different raters. ``agreement``: the same raters judged all items and a rater who is
    higher throughout counts as disagreement. ``consistency``: that shift is forgiven. An average form is the reliability of
    the mean of k ratings, a single form that of one rating.
    """

    name: str
    mcgraw_wong: str
    model: IccModel
    is_average: bool

    def label(self) -> str:
        """Both names, for reports."""
        return f"{self.name} = {self.mcgraw_wong}"


FORMS: tuple[IccForm, ...] = (
    IccForm("ICC(1,1)", "ICC(1)", "one_way", False),
    IccForm("ICC(2,1)", "ICC(A,1)", "agreement", False),
    IccForm("ICC(3,1)", "ICC(C,1)", "consistency", False),
    IccForm("ICC(1,k)", "ICC(k)", "one_way", True),
    IccForm("ICC(2,k)", "ICC(A,k)", "agreement", True),
    IccForm("ICC(3,k)", "ICC(C,k)", "consistency", True),
)


def form_named(name: str) -> IccForm:
    """The form of either name; an unknown one lists what there is."""
    for form in FORMS:
        if name.replace(" ", "") in (form.name, form.mcgraw_wong):
            return form
    known = [name for form in FORMS for name in (form.name, form.mcgraw_wong)]
    raise UnknownName(f"unknown form of ICC '{name}'", remedy=did_you_mean(name, known))


@overload
def spearman_brown(single: float, k: float) -> float: ...
@overload
def spearman_brown(single: Floats, k: float | Floats) -> Floats: ...
def spearman_brown(single: float | Floats, k: float | Floats) -> float | Floats:
    """Reliability of the mean of ``k`` ratings from that of one; every average form follows from its single form.

    The divisor is the variance of the items' means relative to that of single ratings. Towards zero the reliability falls
    without end; where the estimate of that variance is zero or negative there is none, and −∞ takes its place.
    """
    whole = 1 + np.multiply(np.subtract(k, 1), single)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(np.less(whole, LEAST_VARIANCE), -np.inf, np.divide(np.multiply(single, k), whole))
    return float(mean) if np.ndim(mean) == 0 else mean


LEAST_VARIANCE = 1e-9
"""Of means, relative to single ratings; less is rounding."""


NO_MEAN = "raters disagree so completely that the means of items do not differ: their reliability is not defined"


def has_mean_reliability(single: float, k: float) -> bool:
    """Whether the mean of ``k`` ratings has a reliability: at −1 / (k − 1) and below, the means of items do not differ."""
    return spearman_brown(single, k) > -math.inf


Resampled = Literal["items", "raters", "items and raters"]


def icc_of_counts(matrix: Floats, item_counts: Floats | None, rater_counts: Floats | None) -> dict[str, Floats]:
    """Every form, by its name, on resamples given by counts (resamples by items, resamples by raters; None = each once).

    Counts of raters may also be 0 or 1, which makes a subset; with all counts 1 the values are those of the ANOVA.
    """
    x = matrix - matrix.mean()
    n = np.array([float(len(x))]) if item_counts is None else item_counts.sum(axis=1)
    v = np.ones((1, x.shape[1])) if rater_counts is None else rater_counts
    k = v.sum(axis=1)
    distinct = k**2 - (v**2).sum(axis=1)  # ordered pairs of different raters
    sums = _sums_of_all(x, item_counts, n) if rater_counts is None else _sums_of_drawn(x, item_counts, v, n)
    mean, row_square, square, own_variance = sums.mean, sums.row_square, sums.square, sums.own_variance
    with np.errstate(divide="ignore", invalid="ignore"):
        grand = (v * mean).sum(axis=1) / k
        between = (row_square - n * grand**2) / (n - 1)  # variance of item means
        v_bar = (square - n * (v * mean**2).sum(axis=1)) / ((n - 1) * k)
        c_bar = (k**2 * between - own_variance) / distinct
        rater_spread = k * (v * (mean - grand[:, None]) ** 2).sum(axis=1) / distinct
        rater_variance = rater_spread - (v_bar - c_bar) / n
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


@dataclass(frozen=True)
class _Sums:
    """What all forms are made of, one row per resample."""

    mean: Floats  # of each rater over the items drawn
    row_square: Floats  # squared item means, summed over the items drawn
    square: Floats  # squared ratings, summed over everything drawn
    own_variance: Floats  # variances of raters, each as often as it could pair with itself


def _sums_of_all(x: Floats, item_counts: Floats | None, n: Floats) -> _Sums:
    """Every rater once: a single product, with one column per rater and two more."""
    columns = np.column_stack([x, (x**2).sum(axis=1), x.mean(axis=1) ** 2])
    sums = columns.sum(axis=0, keepdims=True) if item_counts is None else weighted_sums(item_counts, columns)
    mean, square = sums[:, :-2] / n[:, None], sums[:, -2]
    return _Sums(mean, sums[:, -1], square, (square - n * (mean**2).sum(axis=1)) / (n - 1))


def _sums_of_drawn(x: Floats, item_counts: Floats | None, v: Floats, n: Floats) -> _Sums:
    """Raters drawn too: item means change with every resample."""
    row_mean = weighted_sums(v, x.T) / v.sum(axis=1)[:, None]
    columns = np.hstack([x, x**2])
    if item_counts is None:
        sums, row_square = columns.sum(axis=0, keepdims=True), (row_mean**2).sum(axis=1)
    else:
        sums, row_square = (
            weighted_sums(item_counts, columns),
            np.einsum("bi,bi,bi->b", item_counts, row_mean, row_mean),
        )
    mean, squares = sums[:, : x.shape[1]] / n[:, None], sums[:, x.shape[1] :]
    variance = (squares - n[:, None] * mean**2) / (n - 1)[:, None]
    return _Sums(mean, row_square, (v * squares).sum(axis=1), (v**2 * variance).sum(axis=1))


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
