"""Systems compared by the ratings of those who talked with them; the same raters come back, so they are clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.conversations import SelfRatings
from dialometer.analysis.family import Options
from dialometer.analysis.labels import system_label
from dialometer.analysis.leader import Lead, Pairs, difference, every_pair, lead
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered import clustered_mean, clustered_proportion
from dialometer.stats.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats
from dialometer.stats.permutation import permutation_paired


@dataclass(frozen=True)
class SystemRatings:
    """Means of one criterion by system, every difference, and the checks that make no assumptions."""

    ratings: SelfRatings
    means: dict[str, Estimate]
    pairs: Pairs
    higher: dict[tuple[str, str], Estimate]
    """Share of raters with both systems who rate the first higher, ties half."""
    flipped: dict[tuple[str, str], Estimate]
    """The same difference tested by flipping signs, on raters who talked with both."""
    overall: Estimate | None
    lead: Lead | None
    declared: frozenset[tuple[str, str]]
    """Pairs whose comparison on this criterion was declared before data were collected."""

    @property
    def is_declared(self) -> bool:
        """Whether every comparison here was declared."""
        return bool(self.declared) and self.declared == frozenset(self.pairs)


def compare_systems(ratings: Sequence[SelfRatings], study: Study, options: Options) -> list[SystemRatings]:
    """Cluster-robust means and differences; for raters who talked with both systems this is the paired comparison.

    Tests of the primary comparison are corrected among themselves, over its criteria and systems, those of all other
    declared comparisons together, and so are those that nobody declared.
    """
    raw = [_differences(one, options) for one in ratings]
    families: dict[str, dict[tuple[int, tuple[str, str]], Estimate]] = {}
    for number_, (one, pairs) in enumerate(zip(ratings, raw, strict=True)):
        for pair, gap in pairs.items():
            families.setdefault(_family(study, one.criterion, pair), {})[number_, pair] = gap
    corrected: list[dict[tuple[str, str], Estimate]] = [{} for _ in ratings]
    declared: list[set[tuple[str, str]]] = [set() for _ in ratings]
    for family, members in families.items():
        found = adjust_estimates(list(members.values()), options.correction)  # type: ignore[arg-type]
        for (number_, pair), gap in zip(members, found, strict=True):
            corrected[number_][pair] = gap
            if family:
                declared[number_].add(pair)
    return [
        _system_ratings(one, {pair: corrected[k][pair] for pair in raw[k]}, frozenset(declared[k]), options)
        for k, one in enumerate(ratings)
    ]


def _differences(ratings: SelfRatings, options: Options) -> dict[tuple[str, str], Estimate]:
    computed = pairwise_clustered(ratings.value, ratings.system, ratings.rater, confidence=options.confidence)
    found = {pair: difference(computed, *pair) for pair in every_pair(ratings.systems)}
    nothing = unknown("difference of means", "a system has no ratings")
    return {pair: gap if gap is not None else nothing for pair, gap in found.items()}


def _family(study: Study, criterion: str, pair: tuple[str, str]) -> str:
    """The family in which a test is corrected; empty where nobody declared it."""
    for one in study.spec.analysis.comparisons:
        levels = {system_label(study, name) for name in one.levels or [system.name for system in study.spec.systems]}
        if one.between == "systems" and (not one.criteria or criterion in one.criteria) and set(pair) <= levels:
            return "primary" if one.name == study.spec.analysis.primary else "declared"
    return ""


def _system_ratings(
    ratings: SelfRatings, pairs: Pairs, declared: frozenset[tuple[str, str]], options: Options
) -> SystemRatings:
    means = {
        system: clustered_mean(
            ratings.value[ratings.of(system)],
            ratings.rater[ratings.of(system)],
            confidence=options.confidence,
            label=system,
        )
        for system in ratings.systems
    }
    _, by_rater = rater_means(ratings)
    overall = None
    if len(ratings.systems) > 2:
        overall = homogeneity_clustered(ratings.value, ratings.system, ratings.rater, label=ratings.label)
    return SystemRatings(
        ratings=ratings,
        means=means,
        pairs=pairs,
        higher={pair: _higher(by_rater, *pair, options) for pair in pairs},
        flipped={pair: permutation_paired(by_rater[pair[0]], by_rater[pair[1]], seed=options.seed) for pair in pairs},
        overall=overall,
        lead=lead(means, pairs, confidence=options.confidence),
        declared=declared,
    )


def rater_means(ratings: SelfRatings) -> tuple[NDArray[Any], dict[str, Floats]]:
    """Raters, and each one's mean for every system, nan where the rater did not talk with it."""
    table = pl.DataFrame({"rater": ratings.rater, "system": ratings.system.astype(str), "value": ratings.value})
    wide = table.pivot(on="system", index="rater", values="value", aggregate_function="mean")
    means = {system: wide[system].fill_null(float("nan")).to_numpy().astype(np.float64) for system in ratings.systems}
    return wide["rater"].to_numpy().astype(str), means


def _higher(by_rater: dict[str, Floats], first: str, second: str, options: Options) -> Estimate:
    gap = by_rater[first] - by_rater[second]
    gap = gap[~np.isnan(gap)]
    method = "share of raters who rate the first higher, ties half"
    if not len(gap):
        return unknown(method, "no rater talked with both systems")
    found = clustered_proportion((np.sign(gap) + 1) / 2, np.arange(len(gap)), confidence=options.confidence)
    return replace(found, method=method)
