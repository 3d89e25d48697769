"""Gwet's agreement coefficients: AC1 for labels without order, AC2 with weights for labels with one.

Kappa and alpha fall towards zero where nearly all ratings are alike, although raters agree (Feinstein & Cicchetti's paradox);
Gwet's chance agreement does not grow with such prevalence. Standard errors are those of Gwet (2008; Handbook of Inter-Rater
Reliability, 2014, chapter 5) for any number of raters and missing ratings: over items, raters as they are.

Checked in tests/stats/test_agreement_gwet.py against R irrCAC 1.0 ``gwet.ac1.raw(cac.raw4raters)`` and
``gwet.ac1.table(cont3x3abstractors)`` as its documentation prints them, and for all weights against the Python package irrCAC
0.4 ``CAC(ratings, weights).gwet()``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import UnknownName
from dialometer.model.estimate import Estimate, unknown
from dialometer.registry import did_you_mean
from dialometer.stats import statistic
from dialometer.stats.agreement.fleiss import label_counts
from dialometer.stats.observations import Floats, check_confidence, codes, stack

GwetWeights = Literal["nominal", "ordinal", "linear", "quadratic"]


def gwet_coefficient(
    ratings: ArrayLike,
    labels: Sequence[Any],
    *,
    weights: GwetWeights = "nominal",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """AC1 (``nominal``) or AC2 of ratings laid out as items by raters; ``nan`` or None where a rating is missing.

    ``labels`` are all values of the scale in order, chosen or not. ``ordinal`` weights depend on the order alone, ``linear``
    and ``quadratic`` on the distance; labels that are numbers have their own distances, words are one step apart.
    """
    counts = label_counts(ratings, labels)
    return gwet_of_counts(counts, gwet_weights(labels, weights), weights=weights, confidence=confidence, label=label)


def gwet_weights(labels: Sequence[Any], kind: GwetWeights) -> Floats:
    """How far two labels count as agreement, 1 on the diagonal."""
    if kind not in get_args(GwetWeights):
        raise UnknownName(f"unknown weights '{kind}'", remedy=did_you_mean(kind, list(get_args(GwetWeights))))
    n = len(labels)
    place = np.arange(n)
    apart = np.abs(np.subtract.outer(place, place)).astype(np.float64)
    if kind == "nominal":
        return np.eye(n)
    if kind == "ordinal":
        pairs = (apart + 1) * apart / 2  # ways to choose two of the labels from one to the other
        return np.asarray(1 - pairs / pairs.max()) if n > 1 else np.ones((1, 1))
    values = np.array(labels, dtype=np.float64) if all(isinstance(x, int | float) for x in labels) else place
    distance = np.abs(np.subtract.outer(values, values)) / max(float(np.ptp(values)), 1e-300)
    return np.asarray(1 - (distance if kind == "linear" else distance**2))


def gwet_of_counts(
    counts: Floats, weight: Floats, *, weights: GwetWeights, confidence: float = 0.95, label: str = ""
) -> Estimate:
    """The coefficient from how often each item got each label (items by labels); items without ratings do not count."""
    name = "AC1" if weights == "nominal" else f"AC2, {weights} weights"
    method = f"Gwet's {name}"
    counts = counts[counts.sum(axis=1) > 0]
    n, q = counts.shape
    size = counts.sum(axis=1)
    is_shared = size >= 2
    n_shared = int(is_shared.sum())
    if n_shared < 2:
        why = f"{n_shared} items with two ratings: at least 2 are needed; have items judged by more raters"
        return unknown(method, why, n=n_shared, label=label)
    if q < 2:
        return unknown(method, "the scale has one label", n=n_shared, label=label)
    pairs = np.where(is_shared, size * (size - 1), 1.0)
    agreed = np.where(is_shared, (counts * (counts @ weight - 1)).sum(axis=1) / pairs, 0.0)
    observed = float(agreed.sum()) / n_shared
    share = (counts / size[:, None]).mean(axis=0)
    scale = float(weight.sum()) / (q * (q - 1))
    chance = scale * float((share * (1 - share)).sum())
    value = (observed - chance) / (1 - chance)
    own = n / n_shared * (agreed - chance * is_shared) / (1 - chance)
    own_chance = scale * (counts @ (1 - share)) / size
    terms = own - 2 * (1 - value) * (own_chance - chance) / (1 - chance)
    error = math.sqrt(float(((terms - value) ** 2).sum()) / (n * (n - 1)))
    level = check_confidence(confidence)
    details = {"observed": observed, "chance": chance, "standard_error": error, "n_ratings": int(size.sum())}
    notes = (
        (f"{n - n_shared} of {n} items have one rating: they count for chance agreement only",) if n > n_shared else ()
    )
    result = Estimate(value, n_shared, method, confidence=level, label=label, notes=notes, details=details)
    if error <= 1e-12:
        return result.with_note("every item is rated alike: no standard error over items")
    reach = float(stats.t.isf((1 - level) / 2, n - 1)) * error
    return Estimate(
        value=value,
        n=n_shared,
        method=method,
        low=max(value - reach, -1.0),
        high=min(value + reach, 1.0),
        confidence=level,
        interval_method="Gwet 2008, Student's t over items",
        statistic=value / error,
        df=(float(n - 1),),
        p_value=float(2 * stats.t.sf(abs(value / error), n - 1)),
        label=label,
        notes=notes,
        details=details,
    )


@statistic("gwet_ac1", title="Gwet's AC1", source="Gwet 2008")
def gwet_of_judgments(
    target: ArrayLike, category: ArrayLike, *, weights: GwetWeights = "nominal", confidence: float = 0.95
) -> Estimate:
    """Agreement of raters beyond chance, from what each judgment was about and what it said.

    ``weights`` ordinal, linear or quadratic makes it AC2; categories must then be numbers.
    """
    answers, known = codes(category)
    values: Floats = answers.astype(np.float64)
    labels: list[float] = [float(place) for place in range(len(known))]
    if weights != "nominal":
        numbers = np.array([float(level) for level in known])
        values, labels = numbers[answers], sorted(set(numbers.tolist()))
    return gwet_coefficient(stack(values, target).ratings, labels, weights=weights, confidence=confidence)
