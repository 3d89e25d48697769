"""Cohen's kappa for two raters (unweighted, linear, quadratic), and for two ratings chosen out of three or more.

Labels come from the scale, not from the data: a label that nobody chose still sets the distance between its neighbours.
Values are those of ``sklearn.metrics.cohen_kappa_score(a, b, labels=..., weights=...)``; the standard errors of Fleiss, Cohen &
Everitt (1969) those of ``statsmodels.stats.inter_rater.cohens_kappa``.

Studies that collect three ratings per item report kappa for the closest, the lowest, the highest or two random ones (Merdivan
et al. 2020; Chierici & Habash 2021). The choice itself makes agreement: the closest two of three independent dice rolls agree
well. So each kappa comes with what the same choice gives when ratings are shuffled over the items, and its p-value compares
with that, not with zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.model.estimate import SHUFFLES, Estimate, unknown
from dialometer.registry import did_you_mean
from dialometer.stats.bootstrap.bootstrap import batch_sizes, estimate_from, percentile_interval
from dialometer.stats.observations import Floats, Ints, as_matrix, positions

Weights = Literal["none", "linear", "quadratic"]


def disagreement_weights(n_labels: int, weights: Weights) -> Floats:
    """How much each pair of labels counts as disagreement, by their distance in the order of the scale."""
    if weights not in get_args(Weights):
        raise UnknownName(f"unknown weights '{weights}'", remedy=did_you_mean(weights, list(get_args(Weights))))
    gap = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels))).astype(np.float64)
    return {"none": (gap > 0).astype(np.float64), "linear": gap, "quadratic": gap**2}[weights]


def confusion(first: Ints, second: Ints, n_labels: int) -> Floats:
    """Counts of pairs of label positions, first rater in rows."""
    cells = np.bincount(first * n_labels + second, minlength=n_labels**2)
    return cells.reshape(n_labels, n_labels).astype(np.float64)


def kappa_of_tables(tables: Floats, disagreement: Floats) -> Floats:
    """Kappa of many confusion tables (tables by labels by labels); ``nan`` where chance leaves no disagreement."""
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    observed = np.einsum("bij,ij->b", tables, disagreement) * tables.sum(axis=(1, 2))
    expected = np.einsum("bi,bi->b", rows @ disagreement, columns)
    return np.asarray(1 - np.divide(observed, expected, out=np.full(len(tables), np.nan), where=expected > 0))


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    labels: Sequence[Any],
    *,
    weights: Weights = "none",
    interval: Literal["analytic", "percentile"] = "analytic",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Agreement of two raters beyond chance. Pairs with a missing rating are left out and counted in a note.

    The analytic interval is value +- z * standard error, cut at -1 and 1; ``statistic`` and p-value test kappa = 0 with the
    standard error under independence. The bootstrap draws pairs, as a multinomial over the confusion table.
    """
    a, b = positions(first, labels).ravel(), positions(second, labels).ravel()
    if len(a) != len(b):
        raise NotEnoughData(f"{len(a)} and {len(b)} ratings", remedy="give the two ratings of the same items")
    is_rated = ~(np.isnan(a) | np.isnan(b))
    n_missing = int((~is_rated).sum())
    notes = (f"{n_missing} of {len(a)} pairs excluded, a rating is missing",) if n_missing else ()
    table = confusion(a[is_rated].astype(np.int64), b[is_rated].astype(np.int64), len(labels))
    return kappa_from_table(
        table,
        weights=weights,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
        notes=notes,
    )


def kappa_from_table(
    table: ArrayLike,
    *,
    weights: Weights = "none",
    interval: Literal["analytic", "percentile"] = "analytic",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The same from the confusion table of the two raters, labels in the order of the scale."""
    counts = np.asarray(table, dtype=np.float64)
    disagreement = disagreement_weights(len(counts), weights)
    method = "Cohen's kappa" + ("" if weights == "none" else f", {weights} weights")
    n = int(counts.sum())
    if n < 2:
        return unknown(
            method, f"{n} pairs of ratings: at least 2 are needed; have items judged twice", n=n, label=label
        )
    value = float(kappa_of_tables(counts[None], disagreement)[0])
    if math.isnan(value):
        why = "both raters always chose the same one label, so chance agreement is complete and kappa is not defined"
        return unknown(method, f"{why}; report percent agreement", n=n, label=label)
    error, null_error = standard_errors(counts, disagreement)
    agreement = float(np.trace(counts)) / n
    details = {"standard_error": error, "percent_agreement": agreement, "confusion": counts.astype(int).tolist()}
    z = value / null_error if null_error > 0 else math.nan
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    result = Estimate(
        value=value,
        n=n,
        method=method,
        low=max(value - reach, -1.0),
        high=min(value + reach, 1.0),
        confidence=confidence,
        interval_method="analytic (Fleiss, Cohen & Everitt 1969)",
        statistic=z,
        p_value=2 * float(special.ndtr(-abs(z))),
        label=label,
        notes=notes,
        details=details,
    )
    if interval == "analytic":
        return result
    replicates = _replicates(counts, disagreement, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    drawn = estimate_from(
        value,
        replicates,
        n=n,
        method=method,
        resampled="pairs",
        seed=seed,
        confidence=confidence,
        notes=notes,
        details=details,
    )
    return replace(drawn, statistic=result.statistic, p_value=result.p_value, label=label)


def standard_errors(counts: Floats, disagreement: Floats) -> tuple[float, float]:
    """Large-sample standard errors of kappa: at its value, and under independence (for the test of zero)."""
    n = counts.sum()
    share = counts / n
    row, column = share.sum(axis=1), share.sum(axis=0)
    weight = 1 - disagreement / disagreement.max()
    chance = float(row @ weight @ column)
    kappa = (float((share * weight).sum()) - chance) / (1 - chance)
    marginal = (weight @ column)[:, None] + (row @ weight)[None, :]
    at_value = float((share * (weight - marginal * (1 - kappa)) ** 2).sum()) - (kappa - chance * (1 - kappa)) ** 2
    at_zero = float((np.outer(row, column) * (weight - marginal) ** 2).sum()) - chance**2
    scale = (1 - chance) * math.sqrt(n)
    return math.sqrt(max(at_value, 0.0)) / scale, math.sqrt(max(at_zero, 0.0)) / scale


def _replicates(counts: Floats, disagreement: Floats, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Pairs drawn with replacement are a multinomial over the cells that hold any."""
    cells = np.flatnonzero(counts)
    share = counts.ravel()[cells] / counts.sum()
    parts = []
    for size in batch_sizes(counts.size, n_resamples):
        tables = np.zeros((size, counts.size))
        tables[:, cells] = rng.multinomial(int(counts.sum()), share, size=size)
        parts.append(kappa_of_tables(tables.reshape(size, *counts.shape), disagreement))
    return np.concatenate(parts) if parts else np.empty(0)


PairChoice = Literal["closest", "lowest", "highest", "random", "furthest"]
PairTies = Literal["random", "lower", "upper"]
Sides = Literal["random", "given", "sorted"]

CONFIGURATIONS: tuple[PairChoice, ...] = ("closest", "lowest", "highest", "random")


@dataclass(frozen=True)
class PairKappa:
    """Kappa of the chosen pairs and, beside it, what the choice alone produces (``null``: mean and middle of the shuffles)."""

    choice: PairChoice
    kappa: Estimate
    null: Estimate
    n_ambiguous: int
    """Items where two different pairs were equally close (only for ``closest``)."""


@dataclass(frozen=True)
class _Rule:
    choice: PairChoice
    ties: PairTies
    sides: Sides


def kappa_of_pairs(
    ratings: ArrayLike,
    labels: Sequence[Any],
    choice: PairChoice = "closest",
    *,
    weights: Weights = "linear",
    ties: PairTies = "random",
    sides: Sides = "random",
    n_resamples: int = 2000,
    n_permutations: int = 500,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> PairKappa:
    """Kappa of one choice of two among each item's ratings (items by ratings, ``nan`` = missing, columns need not be persons).

    ``ties`` says which of two equally close pairs is taken; ``sides`` who counts as rater 1: at random, the one given
    earlier, or the lower. All draws start from ``seed``. The interval draws items. Values checked against
    ``sklearn.metrics.cohen_kappa_score`` on the RankME Likert ratings for ties lower and upper, sides given and sorted.
    """
    rule = _checked(choice, ties, sides)
    places = as_matrix(positions(ratings, labels))
    counts = (~np.isnan(places)).sum(axis=1)
    notes = _counted(counts)
    usable = places[counts >= 2]
    method = f"Cohen's kappa of the {choice} two ratings"
    if len(usable) < 2:
        why = f"{len(usable)} items with two ratings: at least 2 are needed; have items judged more often"
        nothing = unknown(method, why, n=len(usable), label=label)
        return PairKappa(choice, nothing, nothing, 0)
    rng = np.random.default_rng(seed)
    first, second = _choose(usable[None], rule, rng)
    table = confusion(first[0], second[0], len(labels))
    kappa = kappa_from_table(
        table,
        weights=weights,
        interval="percentile",
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        notes=notes,
    )
    null = _null(usable, rule, len(labels), weights, n_permutations, rng)
    summary = _summary(null, len(usable), seed, confidence)
    kappa = replace(kappa, method=f"{method}, weights {weights}", label=label)
    if not kappa.is_known:
        return PairKappa(choice, kappa, summary, 0)
    finite = null[np.isfinite(null)]
    p_value = (int(np.sum(finite >= kappa.value - 1e-12)) + 1) / (len(finite) + 1)
    note = f"the p-value compares with shuffled ratings, whose {choice} two reach {summary.value:.3f} on average"
    kappa = replace(kappa, statistic=math.nan, p_value=p_value).with_note(note)
    return PairKappa(choice, kappa, summary, _n_ambiguous(usable) if choice == "closest" else 0)


def _checked(choice: PairChoice, ties: PairTies, sides: Sides) -> _Rule:
    for word, kind, allowed in (
        (choice, "choice", PairChoice),
        (ties, "rule for ties", PairTies),
        (sides, "rule for sides", Sides),
    ):
        if word not in get_args(allowed):
            raise UnknownName(f"unknown {kind} '{word}'", remedy=did_you_mean(word, list(get_args(allowed))))
    return _Rule(choice, ties, sides)


def _counted(counts: Ints) -> tuple[str, ...]:
    notes = []
    if (counts < 2).any():
        notes.append(f"{int((counts < 2).sum())} of {len(counts)} items excluded, they have fewer than two ratings")
    if (counts == 2).any():
        notes.append(f"{int((counts == 2).sum())} items have two ratings only, which leaves no choice")
    return tuple(notes)


def _choose(places: Floats, rule: _Rule, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The two chosen label positions of every item (shuffles by items by ratings -> twice shuffles by items)."""
    counts = (~np.isnan(places)).sum(axis=-1)
    if rule.choice == "random":
        keys = np.where(np.isnan(places), np.inf, rng.random(places.shape))
        left, right = np.moveaxis(np.argsort(keys, axis=-1)[..., :2], -1, 0)
        first, second = _at(places, left), _at(places, right)
        swap = first > second if rule.sides == "sorted" else left > right
    else:
        order = np.argsort(places, axis=-1, kind="stable")  # missing ones last
        ranked = np.take_along_axis(places, order, axis=-1)
        left, right = _ranks(ranked, counts, rule, rng)
        first, second = _at(ranked, left), _at(ranked, right)
        swap = _at(order, left) > _at(order, right) if rule.sides == "given" else np.zeros(left.shape, dtype=bool)
    if rule.sides == "random":
        swap = rng.random(left.shape) < 0.5
    return np.where(swap, second, first).astype(np.int64), np.where(swap, first, second).astype(np.int64)


def _at(values: Any, index: Ints) -> Any:
    return np.take_along_axis(values, index[..., None], axis=-1)[..., 0]


def _ranks(ranked: Floats, counts: Ints, rule: _Rule, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Which two of the sorted ratings are taken."""
    lowest = np.zeros(counts.shape, dtype=np.int64)
    if rule.choice == "lowest":
        return lowest, lowest + 1
    if rule.choice == "highest":
        return counts - 2, counts - 1
    if rule.choice == "furthest":
        return lowest, counts - 1
    gaps = np.diff(ranked, axis=-1)
    is_least = gaps == np.nanmin(gaps, axis=-1, keepdims=True)
    preference = {"lower": -np.arange(gaps.shape[-1]), "upper": np.arange(gaps.shape[-1])}.get(rule.ties)
    keys = rng.random(gaps.shape) if preference is None else np.broadcast_to(preference, gaps.shape)
    left = np.argmax(np.where(is_least, keys, -np.inf), axis=-1)
    return left, left + 1


def _n_ambiguous(places: Floats) -> int:
    ranked = np.sort(places, axis=-1)
    gaps = np.diff(ranked, axis=-1)
    is_least = gaps == np.nanmin(gaps, axis=-1, keepdims=True)
    lowest = np.where(is_least, ranked[:, :-1], np.inf).min(axis=-1)
    highest = np.where(is_least, ranked[:, :-1], -np.inf).max(axis=-1)
    return int(np.sum(lowest < highest))


def _null(
    places: Floats, rule: _Rule, n_labels: int, weights: Weights, n_permutations: int, rng: np.random.Generator
) -> Floats:
    """Kappa of the same choice when each column is shuffled over the items, holes kept where they are."""
    disagreement = disagreement_weights(n_labels, weights)
    parts = []
    for size in batch_sizes(places.size, n_permutations):
        shuffled = np.tile(places, (size, 1, 1))
        for column in range(places.shape[1]):
            rated_items = np.flatnonzero(~np.isnan(places[:, column]))
            shuffled[:, rated_items, column] = rng.permuted(shuffled[:, rated_items, column], axis=1)
        first, second = _choose(shuffled, rule, rng)
        cell = (np.arange(size)[:, None] * n_labels + first) * n_labels + second
        tables = np.bincount(cell.ravel(), minlength=size * n_labels**2).reshape(size, n_labels, n_labels)
        parts.append(kappa_of_tables(tables.astype(np.float64), disagreement))
    return np.concatenate(parts) if parts else np.empty(0)


def _summary(null: Floats, n: int, seed: int, confidence: float) -> Estimate:
    method = "kappa of the same choice among shuffled ratings"
    finite = null[np.isfinite(null)]
    if not len(finite):
        return unknown(method, "shuffled ratings are all alike; report percent agreement", n=n)
    low, high = percentile_interval(finite, confidence)
    return Estimate(
        value=float(finite.mean()),
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=SHUFFLES,
        seed=seed,
        n_resamples=len(null),
    )
