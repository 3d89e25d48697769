"""Self-ratings by groups of raters: do some people rate otherwise, or prefer another system?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.conversations import SelfRatings
from dialometer.analysis.data import StudyData
from dialometer.analysis.family import Options
from dialometer.analysis.leader import CORRECTIONS, every_pair, p_adjusted
from dialometer.analysis.rater_groups import RaterGroups, rater_groups
from dialometer.analysis.self_comparison import rater_means
from dialometer.analysis.words import listed, p_words
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered import clustered_mean
from dialometer.stats.homogeneity import homogeneity_clustered
from dialometer.stats.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats, Ints

FEWEST_RATERS = 2
MOST_SYSTEMS_IN_PAIRS = 4


def group_section(
    name: str, data: StudyData, ratings: Sequence[SelfRatings], question: str, options: Options
) -> Section:
    """Means of every system, and differences between systems within raters, in each group; tests are corrected together."""
    raters = np.unique(np.concatenate([one.rater.astype(str) for one in ratings]))
    groups = rater_groups(data, question, raters)
    rows: list[tuple[str, str, list[Estimate], Estimate]] = []
    for one in ratings:
        for label, value, who in _measures(one, raters):
            rows.append((one.label, label, *_by_group(value, who, groups, options)))
    tests = adjust_estimates([test for *_, test in rows], options.correction)  # type: ignore[arg-type]
    return Section(
        name,
        f"Groups of raters: {question.replace('_', ' ')}",
        _words([(criterion, what) for criterion, what, *_ in rows], tests),
        (_table(name, rows, tests, groups, options),),
    )


def _measures(ratings: SelfRatings, raters: NDArray[Any]) -> list[tuple[str, Floats, Ints]]:
    """Ratings of each system, then differences between systems of raters who talked with both; each with its rater."""
    rater = np.searchsorted(raters, ratings.rater.astype(str))
    found = [(system, ratings.value[ratings.of(system)], rater[ratings.of(system)]) for system in ratings.systems]
    if 1 < len(ratings.systems) <= MOST_SYSTEMS_IN_PAIRS:
        names, means = rater_means(ratings)
        who = np.searchsorted(raters, names)
        for first, second in every_pair(ratings.systems):
            gap = means[first] - means[second]
            kept = ~np.isnan(gap)
            found.append((f"{first} − {second}", gap[kept], who[kept]))
    return found


def _by_group(value: Floats, rater: Ints, groups: RaterGroups, options: Options) -> tuple[list[Estimate], Estimate]:
    group = groups.of_rater[rater]
    means = [
        clustered_mean(value[group == k], rater[group == k], confidence=options.confidence)
        for k in range(len(groups.levels))
    ]
    large = [k for k in range(len(groups.levels)) if len(np.unique(rater[group == k])) >= FEWEST_RATERS]
    kept = np.isin(group, large)
    return means, homogeneity_clustered(value[kept], group[kept], rater[kept])


def _table(
    name: str,
    rows: Sequence[tuple[str, str, list[Estimate], Estimate]],
    tests: Sequence[Estimate],
    groups: RaterGroups,
    options: Options,
) -> Table:
    has_correction = options.correction in CORRECTIONS
    body: list[tuple[Cell, ...]] = []
    for (criterion, what, means, _), test in zip(rows, tests, strict=True):
        cells = [mean if mean.is_known else None for mean in means]
        corrected = (_p(p_adjusted(test)),) if has_correction else ()
        body.append((criterion, what, *cells, _p(test.p_value), *corrected))
    columns = [
        Column("criterion", "Criterion"),
        Column("what", "System, or difference"),
        *(
            Column(f"group_{k + 1}", f"{level} (n = {groups.n_raters(k)})", "estimate")
            for k, level in enumerate(groups.levels)
        ),
        Column("p", "p, groups differ", "p_value"),
        *([Column("p_adjusted", f"p ({CORRECTIONS[options.correction]})", "p_value")] if has_correction else []),
    ]
    return Table(
        name,
        f"Ratings by “{groups.text}”",
        tuple(columns),
        tuple(body),
        caption="Raters as clusters. A difference between systems is taken within raters who talked with both. Tests use "
        f"groups of at least {FEWEST_RATERS} raters.",
        notes=(groups.note,) if groups.note else (),
    )


def _words(names: list[tuple[str, str]], tests: Sequence[Estimate]) -> tuple[str, ...]:
    known = [(name, p_adjusted(test)) for name, test in zip(names, tests, strict=True) if not math.isnan(test.p_value)]
    if not known:
        why = next((note for test in tests for note in test.notes), "not enough data")
        return (f"The groups cannot be compared: {why}.",)
    alpha = 1 - tests[0].confidence
    apart = [f"{criterion}, {what} ({p_words(p)})" for (criterion, what), p in known if p <= alpha]
    if apart:
        return (f"The groups differ on {listed(apart)}. Nobody was put into a group by lot: this describes raters.",)
    return (
        f"No difference between the groups can be told from chance (smallest corrected {p_words(min(p for _, p in known))}).",
    )


def _p(value: float) -> float | None:
    return None if math.isnan(value) else value
