"""Agreement of several raters on labels: as a share of pairs, and beyond chance (Fleiss' kappa).

Fleiss' kappa is that of ``statsmodels.stats.inter_rater.fleiss_kappa(table)``, its test that of R ``irr::kappam.fleiss``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats import statistic
from dialometer.stats.bootstrap.bootstrap import Interval, WeightedStatistic, bootstrap, weighted_sums
from dialometer.stats.clustered.proportion import wilson_interval
from dialometer.stats.observations import Floats, as_matrix, codes, positions

_TOO_FEW = "{n} items with two ratings: at least 2 are needed; have items judged by more raters"


def label_counts(ratings: ArrayLike, labels: Sequence[Any]) -> Floats:
    """How often each item got each label of the scale (items by labels), from ratings laid out as items by raters."""
    places = as_matrix(positions(ratings, labels))
    is_rated = ~np.isnan(places)
    item = np.nonzero(is_rated)[0]
    cells = np.bincount(item * len(labels) + places[is_rated].astype(np.int64), minlength=len(places) * len(labels))
    return cells.reshape(len(places), len(labels)).astype(np.float64)


def percent_agreement(
    ratings: ArrayLike,
    labels: Sequence[Any],
    *,
    within: int = 0,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Share of pairs of raters of the same item who chose the same label, or labels at most ``within`` steps apart.

    Items count alike, however many raters they had; the interval draws items. Agreement by chance is inside this number.
    With one pair per item and every pair in agreement (or none), resampling has nothing to vary: Wilson's interval then.
    """
    return share_of_agreeing_pairs(
        label_counts(ratings, labels),
        within=within,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )


def share_of_agreeing_pairs(
    counts: ArrayLike,
    *,
    within: int = 0,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """The same from how often each item got each label (items by labels)."""
    counts, notes = _pairable(as_matrix(counts))
    method = "percent agreement" + (f" within {within}" if within else "")
    if len(counts) < 2:
        return unknown(method, _TOO_FEW.format(n=len(counts)), n=len(counts), label=label)
    size = counts.sum(axis=1)
    gap = np.abs(np.subtract.outer(np.arange(counts.shape[1]), np.arange(counts.shape[1])))
    close = (gap <= within).astype(np.float64)
    share = (np.einsum("uv,uv->u", counts @ close, counts) - size) / (size * (size - 1))

    def agreement(weights: Floats) -> Floats:
        return np.asarray(weights @ share / weights.sum(axis=1))

    result = bootstrap(
        agreement,
        len(counts),
        method=method,
        resampled="items",
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )
    if np.ptp(share) == 0:
        low, high = wilson_interval(float(share[0]) * len(counts), len(counts), confidence=confidence)
        result = replace(result, low=low, high=high, interval_method="Wilson", seed=None, n_resamples=0)
    return replace(result, notes=(*notes, *result.notes))


@statistic("fleiss_kappa", title="Fleiss' kappa", source="Fleiss 1971")
def fleiss_kappa_of_judgments(
    target: ArrayLike,
    category: ArrayLike,
    *,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Agreement of raters beyond chance on answers without order, from what each judgment was about and what it said."""
    item, items = codes(target)
    answer, answers = codes(category)
    cells = np.bincount(item * len(answers) + answer, minlength=len(items) * len(answers))
    counts = cells.reshape(len(items), len(answers))
    return fleiss_kappa(counts, interval=interval, n_resamples=n_resamples, seed=seed, confidence=confidence)


def fleiss_kappa(
    counts: ArrayLike,
    *,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Agreement beyond chance for labels without order, from how often each item got each label (items by labels).

    Where items have unequally many ratings, the mean agreement of items is set against the pooled shares of labels. The test
    of zero (Fleiss, Nee & Landis 1979) needs equal numbers and is left out otherwise. The interval draws items.
    """
    table, notes = _pairable(as_matrix(counts))
    method = "Fleiss' kappa"
    if len(table) < 2:
        return unknown(method, _TOO_FEW.format(n=len(table)), n=len(table), label=label)
    if (table.sum(axis=0) > 0).sum() < 2:
        why = "every rating is the same label, so chance agreement is complete; report percent agreement"
        return unknown(method, why, n=len(table), label=label)
    result = bootstrap(
        _fleiss(table),
        len(table),
        method=method,
        resampled="items",
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )
    details = {**result.details, "n_ratings": int(table.sum())}
    result = replace(result, notes=(*notes, *result.notes), details=details)
    if np.ptp(table.sum(axis=1)) > 0:
        return result
    z = result.value / _null_error(table)
    return replace(result, statistic=z, p_value=2 * float(special.ndtr(-abs(z))))


def _pairable(counts: Floats) -> tuple[Floats, tuple[str, ...]]:
    enough = counts.sum(axis=1) >= 2
    n_left_out = int((~enough).sum())
    notes = (f"{n_left_out} of {len(counts)} items excluded, they have fewer than two ratings",) if n_left_out else ()
    return counts[enough], notes


def _fleiss(table: Floats) -> WeightedStatistic:
    size = table.sum(axis=1)
    agreement = ((table**2).sum(axis=1) - size) / (size * (size - 1))

    def kappa(weights: Floats) -> Floats:
        label_sums = weighted_sums(weights, table)
        share = label_sums / label_sums.sum(axis=1, keepdims=True)
        chance = (share**2).sum(axis=1)
        mean = weights @ agreement / weights.sum(axis=1)
        is_defined = (label_sums > 0).sum(axis=1) > 1
        return np.asarray(np.divide(mean - chance, 1 - chance, out=np.full(len(mean), np.nan), where=is_defined))

    return kappa


def _null_error(table: Floats) -> float:
    """Standard error of Fleiss' kappa when raters choose independently of the items."""
    n, m = len(table), float(table[0].sum())
    p = table.sum(axis=0) / table.sum()
    q = 1 - p
    spread = float(p @ q)
    return math.sqrt(2 * (spread**2 - float((p * q) @ (q - p))) / (n * m * (m - 1))) / spread
