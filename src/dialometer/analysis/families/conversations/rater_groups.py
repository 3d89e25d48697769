"""Ratings of every system, and differences between systems, in groups of raters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import within
from dialometer.analysis.base.wording import inside, listed, p_words, system_label
from dialometer.analysis.families.conversations.comparison import on_shared_tasks, rater_means
from dialometer.analysis.families.conversations.conversations import SelfRatings
from dialometer.analysis.shared.comparisons import (
    known_cell,
    p_adjusted,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.ranking import every_pair
from dialometer.analysis.shared.subgroups import (
    FEWEST_RATERS,
    GroupTest,
    corrected_groups,
    group_notes,
    groups_test,
    no_difference_words,
    rater_groups,
)
from dialometer.model.estimate import Estimate
from dialometer.model.report import Column, Section, Table
from dialometer.model.study import Study
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.observations import Floats, Ints

MOST_SYSTEMS_IN_PAIRS = 4


def group_section(
    name: str, data: StudyData, ratings: Sequence[SelfRatings], question: str, options: Options
) -> Section:
    """Means of every system, and differences between systems within raters, in each group; tests are corrected together."""
    raters = np.unique(np.concatenate([rated.rater.astype(str) for rated in ratings]))
    groups = rater_groups(data, question, raters)
    pairs = _pairs(ratings[0].systems, data.study)
    names: list[tuple[str, str]] = []
    outcomes: list[GroupTest] = []
    for rated in ratings:
        low, high = rated.scale.bounds()
        for label, value, rater, is_difference in _measures(rated, raters, pairs, data.study):
            ends = (low - high, high - low) if is_difference else (low, high)

            def mean(
                chosen: NDArray[np.bool_],
                value: Floats = value,
                rater: Ints = rater,
                ends: tuple[float, float] = ends,
            ) -> Estimate:
                return within(clustered_mean(value[chosen], rater[chosen], confidence=options.confidence), *ends)

            names.append((rated.label, label))
            outcomes.append(groups_test(groups, value, rater, mean, label=f"{rated.label}, {label}"))
    outcomes = corrected_groups(outcomes, options)
    table = Table(
        name,
        f"Ratings by “{groups.text}”",
        (
            Column("criterion", "Criterion"),
            Column("what", "System, or difference" if pairs else "System"),
            *groups.columns(),
            *p_columns(options.correction, "p (groups differ)"),
        ),
        tuple(
            (*what, *map(known_cell, outcome.by_level), *p_cells(outcome.test, options.correction))
            for what, outcome in zip(names, outcomes, strict=True)
        ),
        caption="Raters as clusters. "
        + ("A difference between systems is taken within raters who talked with both. " if pairs else "")
        + f"Tests use groups of at least {FEWEST_RATERS} raters.",
        notes=group_notes(groups, outcomes),
    )
    tests = [outcome.test for outcome in outcomes]
    apart = [
        f"{criterion}, {what} ({p_words(p_adjusted(test))})"
        for (criterion, what), test in zip(names, tests, strict=True)
        if p_adjusted(test) <= 1 - options.confidence
    ]
    words = no_difference_words(tests)
    if apart:
        words = f"The groups differ on {listed(apart)}. The groups were not assigned at random."
    return Section(name, f"Groups of raters: {inside(groups.label)}", (words,), (table,))


def _pairs(systems: Sequence[str], study: Study) -> list[tuple[str, str]]:
    """The systems whose differences are shown: every two, or, of many, those of declared comparisons.

    The one that is expected to be higher comes first, as in the comparison of the systems itself.
    """
    declared = [comparison for comparison in study.spec.analysis.comparisons if comparison.between == "systems"]
    expected = {
        tuple(system_label(study, name) for name in pair)
        for comparison in declared
        for pair in comparison.expected_pairs
    }
    pairs = [pair[::-1] if pair[::-1] in expected else pair for pair in every_pair(systems)]
    if len(systems) <= MOST_SYSTEMS_IN_PAIRS:
        return pairs
    levels = [{system_label(study, name) for name in comparison.levels} for comparison in declared]
    return [pair for pair in pairs if any(set(pair) <= names for names in levels)]


def _measures(
    ratings: SelfRatings, raters: NDArray[Any], pairs: Sequence[tuple[str, str]], study: Study
) -> list[tuple[str, Floats, Ints, bool]]:
    """Ratings of each system, then differences between systems of raters who talked with both; each with its raters."""
    rater = np.searchsorted(raters, ratings.rater.astype(str))
    outcomes = [
        (system, ratings.value[ratings.of(system)], rater[ratings.of(system)], False) for system in ratings.systems
    ]
    for first, second in pairs:
        names, means = rater_means(on_shared_tasks(ratings, study, (first, second)))
        gap = means[first] - means[second]
        kept = ~np.isnan(gap)
        outcomes.append((f"{first} − {second}", gap[kept], np.searchsorted(raters, names)[kept], True))
    return outcomes
