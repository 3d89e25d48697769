"""Systems compared by the ratings of those who talked with them; the same raters come back, so they are clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import difference_within, within
from dialometer.analysis.base.wording import system_label
from dialometer.analysis.families.conversations.conversations import SelfRatings
from dialometer.analysis.shared.comparisons import (
    corrected_by_name,
)
from dialometer.analysis.shared.ranking import Lead, Pairs, difference, every_pair, lead
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered.clustered import clustered_mean, clustered_proportion
from dialometer.stats.clustered.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.two_way import TwoWayVariance, two_way_linear
from dialometer.stats.effects.permutation import permutation_paired
from dialometer.stats.observations import Floats

Pair = tuple[str, str]
FEWEST_TASKS = 2
"""Different tasks that each system needs before they are taken as a sample of tasks."""
OTHER_TASKS = "these systems were used on different tasks, and a difference could come from the task"


@dataclass(frozen=True)
class DeclaredDifference:
    """A difference of two systems on one criterion as a declared comparison asks for it, corrected among its tests."""

    comparison: Comparison
    pair: tuple[str, str]
    gap: Estimate
    higher: Estimate
    flipped: Estimate
    expected: Pair | None = None
    """The pair as the hypothesis has it, the higher first; None where it has no direction."""


@dataclass(frozen=True)
class SystemComparison:
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
    declared: tuple[DeclaredDifference, ...] = ()
    """The tests on this criterion that were declared before data were collected."""
    in_part: tuple[Pair, ...] = ()
    """Pairs that are compared on some of the tasks only, so that their difference is not that of the means."""

    @property
    def is_declared(self) -> bool:
        """Whether every comparison here was declared."""
        return bool(self.declared) and {test.pair for test in self.declared} == set(self.pairs)

    @property
    def others(self) -> list[tuple[str, str]]:
        """Pairs that nobody declared."""
        return [pair for pair in self.pairs if pair not in {test.pair for test in self.declared}]


def compare_systems(ratings: Sequence[SelfRatings], study: Study, options: Options) -> list[SystemComparison]:
    """Cluster-robust means and differences; for raters who talked with both systems this is the paired comparison.

    The tests of each declared comparison are corrected among themselves, over its criteria and systems, as its verdict is;
    those that nobody declared are corrected together.
    """
    declared = [_declared(ratings, study, comparison, options) for comparison in _between_systems(study)]
    by_criterion = [
        tuple(test for tests in declared for own, test in tests if own == index) for index in range(len(ratings))
    ]
    raw = [system_differences(rated, study, options) for rated in ratings]
    open_ = {
        (index, pair): gap
        for index, pairs in enumerate(raw)
        for pair, gap in pairs.items()
        if pair not in {test.pair for test in by_criterion[index]}
    }
    tested = corrected_by_name(open_, options)
    compared = []
    for index, (rated, pairs) in enumerate(zip(ratings, raw, strict=True)):
        own = {test.pair: test.gap for test in reversed(by_criterion[index])}
        shown = {pair: own[pair] if pair in own else tested[index, pair] for pair in pairs}
        compared.append(_system_ratings(rated, study, shown, by_criterion[index], options))
    return compared


def _between_systems(study: Study) -> list[Comparison]:
    """The declared comparisons of systems, the primary one first."""
    analysis = study.spec.analysis
    declared = [comparison for comparison in analysis.comparisons if comparison.between == "systems"]
    return sorted(declared, key=lambda comparison: comparison.name != analysis.primary)


def compared_in(rated: SelfRatings, study: Study, comparison: Comparison, options: Options) -> dict[Pair, Estimate]:
    """The differences that a declared comparison asks for on one criterion, in its blocks, not corrected."""
    if comparison.criteria and rated.criterion not in comparison.criteria:
        return {}
    inside = in_blocks(rated, study, comparison)
    names = {system_label(study, name) for name in comparison.levels} or set(inside.systems)
    gaps = system_differences(inside, study, options)
    return {pair: gap for pair, gap in gaps.items() if set(pair) <= names}


def in_blocks(rated: SelfRatings, study: Study, comparison: Comparison) -> SelfRatings:
    """The ratings in the blocks that a comparison names; all of them where it names none."""
    if not comparison.blocks:
        return rated
    items = study.items_by_id
    kept = np.array([name in items and items[name].block in comparison.blocks for name in rated.item.tolist()], bool)
    present = set(rated.system[kept].tolist())
    return _kept(rated, kept, tuple(system for system in rated.systems if system in present))


def dialogues_compared(rated: SelfRatings, study: Study, comparison: Comparison) -> SelfRatings:
    """The ratings of the systems and in the blocks that a comparison names."""
    inside = in_blocks(rated, study, comparison)
    labels = [system_label(study, name) for name in comparison.levels]
    return _kept(inside, np.isin(inside.system, labels), tuple(name for name in inside.systems if name in labels))


def _declared(
    ratings: Sequence[SelfRatings], study: Study, comparison: Comparison, options: Options
) -> list[tuple[int, DeclaredDifference]]:
    """The tests of one declared comparison, each with the index of its criterion."""
    gaps = {
        (index, pair): gap
        for index, rated in enumerate(ratings)
        for pair, gap in compared_in(rated, study, comparison, options).items()
    }
    labelled = [tuple(system_label(study, name) for name in pair) for pair in comparison.expected_pairs]
    made = []
    for (index, pair), gap in corrected_by_name(gaps, options).items():
        expected = next(((first, second) for first, second in labelled if {first, second} == set(pair)), None)
        checks = _checks(in_blocks(ratings[index], study, comparison), study, pair, gap, options)
        made.append((index, DeclaredDifference(comparison, pair, gap, *checks, expected)))
    return made


def system_differences(ratings: SelfRatings, study: Study, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every difference of two systems' means, not corrected. The confirmatory tests and the report both come from here.

    Two systems are compared on the tasks that both had, so that an easy task does not count for the system that had it. Where
    they had none in common and tasks are no sample, there is no test.
    """
    whole = _differences(ratings, study, options)
    is_sample = _is_sample_of_tasks(ratings, study, options)
    for pair in whole:
        if not is_sample and had_other_tasks(ratings, study, pair):
            whole[pair] = unknown("difference of means", OTHER_TASKS)
            continue
        shared = on_shared_tasks(ratings, study, pair)
        if shared is not ratings:
            whole[pair] = _differences(shared, study, options)[pair]
    return {pair: difference_within(gap, *ratings.scale.bounds()) for pair, gap in whole.items()}


def _differences(ratings: SelfRatings, study: Study, options: Options) -> dict[tuple[str, str], Estimate]:
    fit = _two_way(ratings, study, options)
    if fit is not None:
        means, variance = fit
        return {pair: _contrast(ratings, means, variance, options, *pair) for pair in every_pair(ratings.systems)}
    computed = pairwise_clustered(ratings.value, ratings.system, ratings.rater, confidence=options.confidence)
    gaps = {pair: difference(computed, *pair) for pair in every_pair(ratings.systems)}
    nothing = unknown("difference of means", "a system has no ratings")
    return {pair: gap if gap is not None else nothing for pair, gap in gaps.items()}


def scenarios_of(ratings: SelfRatings, study: Study) -> NDArray[Any]:
    """The task of each dialogue; items that set the same task count as one."""
    items = study.items_by_id
    tasks = {name: getattr(items.get(name), "scenario", "") or name for name in set(ratings.item.tolist())}
    return np.array([tasks[name] for name in ratings.item.tolist()], dtype=object)


def on_shared_tasks(ratings: SelfRatings, study: Study, pair: tuple[str, str]) -> SelfRatings:
    """The ratings of two systems on the tasks that both had; all ratings where they had the same tasks, or none in common."""
    scenario = scenarios_of(ratings, study)
    first, second = (set(scenario[ratings.of(system)].tolist()) for system in pair)
    shared = first & second
    if not shared or first == second:
        return ratings
    kept = np.isin(ratings.system.astype(str), pair) & np.array([task in shared for task in scenario.tolist()])
    return _kept(ratings, kept, pair)


def had_other_tasks(ratings: SelfRatings, study: Study, pair: tuple[str, str]) -> bool:
    """Whether two systems were used on tasks of their own only. Free dialogues, without a task, are alike."""
    items = study.items_by_id
    first, second = (
        {getattr(items.get(name), "scenario", "") for name in set(ratings.item[ratings.of(system)].tolist())}
        for system in pair
    )
    return bool(first and second) and not first & second


def has_one_task_each(ratings: SelfRatings, study: Study) -> bool:
    """Whether every comparison that is limited to blocks is made on a single task."""
    inside = [in_blocks(ratings, study, comparison) for comparison in _between_systems(study) if comparison.blocks]
    return {len(set(scenarios_of(one, study).tolist())) for one in inside if one.systems} == {1}


def _kept(ratings: SelfRatings, kept: NDArray[np.bool_], systems: tuple[str, ...]) -> SelfRatings:
    return replace(
        ratings,
        systems=systems,
        value=ratings.value[kept],
        rater=ratings.rater[kept],
        system=ratings.system[kept],
        item=ratings.item[kept],
        position=ratings.position[kept],
        answered_s=ratings.answered_s[kept],
        lengths={name: values[kept] for name, values in ratings.lengths.items()},
    )


def _is_sample_of_tasks(ratings: SelfRatings, study: Study, options: Options) -> bool:
    """Whether results can hold for other tasks: not where tasks are declared fixed, nor where a system had one only."""
    scenario = scenarios_of(ratings, study)
    fewest = min((len(set(scenario[ratings.of(system)].tolist())) for system in ratings.systems), default=0)
    return not options.has_fixed_items and fewest >= FEWEST_TASKS and ratings.n_raters >= FEWEST_TASKS


def _two_way(ratings: SelfRatings, study: Study, options: Options) -> tuple[Floats, TwoWayVariance] | None:
    """Means with their uncertainty over raters and tasks; None where tasks are no sample."""
    if not _is_sample_of_tasks(ratings, study, options):
        return None
    scenario = scenarios_of(ratings, study)
    design = np.column_stack([ratings.of(system) for system in ratings.systems]).astype(np.float64)
    _, rater = np.unique(ratings.rater.astype(str), return_inverse=True)
    _, task = np.unique(scenario.astype(str), return_inverse=True)
    return two_way_linear(ratings.value, design, rater, task)


def _contrast(
    ratings: SelfRatings, means: Floats, variance: TwoWayVariance, options: Options, first: str, second: str = ""
) -> Estimate:
    """A system's mean, or the difference of two, with raters and tasks as samples."""
    weights = np.array([float(system == first) - float(system == second) for system in ratings.systems])
    value = float(weights @ means)
    error, df = variance.contrast(weights)
    n = int(ratings.of(first).sum() + (ratings.of(second).sum() if second else 0))
    method = "difference of means" if second else "mean"
    method += ", two-way jackknife over raters and tasks"
    details = {"standard_error": error, "n_raters": variance.n_raters, "n_items": variance.n_items}
    if not (error > 1e-12 and df > 0):
        why = ("raters and tasks do not vary, or are too few: no confidence interval and no test",)
        return Estimate(value, n, method, confidence=options.confidence, label=first, notes=why)
    half = float(stats.t.isf((1 - options.confidence) / 2, df)) * error
    return Estimate(
        value=value,
        n=n,
        method=f"{method}, t-test" if second else method,
        low=value - half,
        high=value + half,
        confidence=options.confidence,
        interval_method="Student's t, effective number of the fewer of raters and tasks",
        statistic=value / error if second else math.nan,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(value / error), df)) if second else math.nan,
        label=f"{first} - {second}" if second else first,
        details=details,
    )


def _system_ratings(
    ratings: SelfRatings, study: Study, pairs: Pairs, declared: tuple[DeclaredDifference, ...], options: Options
) -> SystemComparison:
    fit = _two_way(ratings, study, options)
    means = {
        system: within(
            _contrast(ratings, *fit, options, system)
            if fit is not None
            else clustered_mean(
                ratings.value[ratings.of(system)],
                ratings.rater[ratings.of(system)],
                confidence=options.confidence,
                label=system,
            ),
            *ratings.scale.bounds(),
        )
        for system in ratings.systems
    }
    checks = {pair: _checks(ratings, study, pair, gap, options) for pair, gap in pairs.items()}
    overall = None
    if len(ratings.systems) > 2 and not any(had_other_tasks(ratings, study, pair) for pair in pairs):
        overall = homogeneity_clustered(ratings.value, ratings.system, ratings.rater, label=ratings.label)
    return SystemComparison(
        ratings=ratings,
        means=means,
        pairs=pairs,
        higher={pair: higher for pair, (higher, _) in checks.items()},
        flipped={pair: flipped for pair, (_, flipped) in checks.items()},
        overall=overall,
        lead=lead(means, pairs, confidence=options.confidence),
        declared=declared,
        in_part=tuple(
            pair for pair, gap in pairs.items() if gap.is_known and on_shared_tasks(ratings, study, pair) is not ratings
        ),
    )


def rater_means(ratings: SelfRatings) -> tuple[NDArray[Any], dict[str, Floats]]:
    """Raters, and each one's mean for every system, nan where the rater did not talk with it."""
    table = pl.DataFrame({"rater": ratings.rater, "system": ratings.system.astype(str), "value": ratings.value})
    wide = table.pivot(on="system", index="rater", values="value", aggregate_function="mean")
    means = {system: wide[system].fill_null(float("nan")).to_numpy().astype(np.float64) for system in ratings.systems}
    return wide["rater"].to_numpy().astype(str), means


def _checks(
    ratings: SelfRatings, study: Study, pair: Pair, gap: Estimate, options: Options
) -> tuple[Estimate, Estimate]:
    """Beside a difference: the share of raters who rate the first higher, and the test that flips signs."""
    if OTHER_TASKS in gap.notes:
        nothing = unknown("difference of means", OTHER_TASKS)
        return nothing, nothing
    by_rater = rater_means(on_shared_tasks(ratings, study, pair))[1]
    return _higher(by_rater, *pair, options), _flipped(by_rater, *pair, options)


def _higher(by_rater: dict[str, Floats], first: str, second: str, options: Options) -> Estimate:
    gap = by_rater[first] - by_rater[second]
    gap = gap[~np.isnan(gap)]
    method = "share of raters who rate the first higher, ties half"
    if not len(gap):
        return unknown(method, "no rater talked with both systems")
    share = clustered_proportion((np.sign(gap) + 1) / 2, np.arange(len(gap)), confidence=options.confidence)
    return replace(share, method=method)


def _flipped(by_rater: dict[str, Floats], first: str, second: str, options: Options) -> Estimate:
    return permutation_paired(by_rater[first], by_rater[second], seed=options.seed)
