"""How far a judge agrees with a rater, beside how far one rater agrees with another: the same coefficient on the same things.

Each rater is left out in turn and set beside every other rater of the thing; so is the judge. Both give a table of pairs of answers,
in which every thing weighs the same, and from each table come Cohen's kappa, Krippendorff's alpha and Gwet's AC1 (or AC2). Intervals
and the difference of judge and raters are bootstrapped over things, both from the same draws.

With one rater beside the judge on every thing these are the usual coefficients of two raters: checked in
tests/stats/test_judge_agreement.py against :func:`cohen_kappa`, :func:`krippendorff_alpha` and :func:`gwet_coefficient`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.agreement.gwet import gwet_weights
from dialometer.stats.agreement.kappa import disagreement_weights, kappa_of_tables
from dialometer.stats.bootstrap.bootstrap import batch_sizes, draw_counts, estimate_from
from dialometer.stats.observations import Floats, as_matrix

FEWEST_THINGS = 5
Coefficient = Literal["kappa", "alpha", "gwet", "agreement"]


@dataclass(frozen=True, slots=True)
class BesidePeople:
    """One coefficient: of the judge with a rater, of a rater with another, and the difference."""

    judge: Estimate
    people: Estimate
    difference: Estimate


def judge_agreement(
    ratings: ArrayLike,
    judge: ArrayLike,
    n_labels: int,
    *,
    is_ordered: bool,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Mapping[Coefficient, BesidePeople]:
    """Kappa, alpha, Gwet's coefficient and plain agreement, from labels as places 0 to ``n_labels`` - 1 (things by raters).

    Ordered labels count by squared distance. What raters reach is taken from things with two of them that the judge judged too.
    """
    matrix, own = as_matrix(ratings), np.asarray(judge, dtype=np.float64)
    is_used = ~np.isnan(own) & (~np.isnan(matrix)).any(axis=1)
    matrix, own = matrix[is_used], own[is_used].astype(np.int64)
    if len(own) < FEWEST_THINGS:
        raise NotEnoughData(
            f"{len(own)} things judged by both: at least {FEWEST_THINGS} are needed", remedy="have more judged by both"
        )
    with_judge, with_others = _pairs(matrix, own, n_labels)
    statistics = _coefficients(n_labels, is_ordered=is_ordered)
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in statistics}
    for size in batch_sizes(len(own) + n_labels**2, n_resamples):
        counts = draw_counts(rng, len(own), size)
        tables = [(counts @ part).reshape(size, n_labels, n_labels) for part in (with_judge, with_others)]
        for name, (statistic, _) in statistics.items():
            drawn[name].append((statistic(tables[0]), statistic(tables[1])))
    whole = [part.sum(axis=0).reshape(1, n_labels, n_labels) for part in (with_judge, with_others)]
    n = [int((part.sum(axis=1) > 0).sum()) for part in (with_judge, with_others)]
    results: dict[Coefficient, BesidePeople] = {}
    for name, (statistic, label) in statistics.items():
        values = [float(statistic(table)[0]) for table in whole]
        # Rounded, since a coefficient of 0 must not be shown as 2e-16.
        replicates = [np.concatenate([pair[side] for pair in drawn[name]]).round(12) for side in (0, 1)]

        def made(value: float, draws: Floats, n_things: int, label: str = label) -> Estimate:
            if np.isnan(value):
                why = (
                    "no thing has two raters"
                    if not n_things
                    else "all answers are alike: chance leaves no disagreement"
                )
                return unknown(label, why, n=n_things)
            return estimate_from(
                value, draws, n=n_things, method=label, resampled="things", seed=seed, confidence=confidence
            )

        results[name] = BesidePeople(
            made(values[0], replicates[0], n[0]),
            made(values[1], replicates[1], n[1]),
            made(values[0] - values[1], replicates[0] - replicates[1], n[1]),
        )
    return results


def _pairs(matrix: Floats, judge: np.ndarray, n_labels: int) -> tuple[Floats, Floats]:
    """Things by cells of the table: the judge's answer with each rater's, and each rater's with each other's."""
    counts = np.stack([(matrix == place).sum(axis=1) for place in range(n_labels)], axis=1).astype(np.float64)
    size = counts.sum(axis=1)
    own = np.eye(n_labels)[judge]
    with_judge = own[:, :, None] * (counts / size[:, None])[:, None, :]
    ordered = counts[:, :, None] * counts[:, None, :] - np.eye(n_labels) * counts[:, None, :]
    n_pairs = size * (size - 1)
    with_others = np.divide(
        ordered, n_pairs[:, None, None], out=np.zeros_like(ordered), where=n_pairs[:, None, None] > 0
    )
    return with_judge.reshape(len(judge), -1), with_others.reshape(len(judge), -1)


def _coefficients(n_labels: int, *, is_ordered: bool) -> dict[Coefficient, tuple[Callable[[Floats], Floats], str]]:
    apart = disagreement_weights(n_labels, "quadratic" if is_ordered else "none")
    weight = gwet_weights(range(n_labels), "quadratic" if is_ordered else "nominal")
    scale = float(weight.sum()) / (n_labels * (n_labels - 1))
    weights = ", quadratic weights" if is_ordered else ""

    def gwet(tables: Floats) -> Floats:
        shares = _shares(tables)
        observed = np.einsum("bij,ij->b", shares, weight)
        each = (shares.sum(axis=1) + shares.sum(axis=2)) / 2
        chance = scale * (each * (1 - each)).sum(axis=1)
        return np.asarray((observed - chance) / (1 - chance))

    def alpha(tables: Floats) -> Floats:
        both = tables + tables.transpose(0, 2, 1)
        each, total = both.sum(axis=1), both.sum(axis=(1, 2))
        observed = np.einsum("bij,ij->b", both, apart)
        expected = np.einsum("bi,ij,bj->b", each, apart, each)
        ratio = np.divide(observed * (total - 1), expected, out=np.full(len(tables), np.nan), where=expected > 0)
        return np.asarray(1 - ratio)

    def agreement(tables: Floats) -> Floats:
        return np.asarray(np.trace(_shares(tables), axis1=1, axis2=2))

    level = "interval" if is_ordered else "nominal"
    return {
        "kappa": (lambda tables: kappa_of_tables(tables, apart), f"Cohen's kappa{weights}"),
        "alpha": (alpha, f"Krippendorff's alpha, {level}"),
        "gwet": (gwet, f"Gwet's {'AC2' if is_ordered else 'AC1'}{weights}"),
        "agreement": (agreement, "share of equal answers"),
    }


def _shares(tables: Floats) -> Floats:
    total = tables.sum(axis=(1, 2))[:, None, None]
    return np.asarray(np.divide(tables, total, out=np.full_like(tables, np.nan), where=total > 0))
