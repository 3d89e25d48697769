"""Leaderboards of subgroups of raters: does another crowd prefer other systems?"""

from __future__ import annotations

import math

import numpy as np

from dialometer.analysis.data import StudyData
from dialometer.analysis.family import Options
from dialometer.analysis.leader import CORRECTIONS, p_adjusted
from dialometer.analysis.leaderboard_sections import known_cell, p_cell
from dialometer.analysis.rater_groups import rater_groups
from dialometer.analysis.system_votes import SystemVotes
from dialometer.analysis.words import listed, p_words
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered import clustered_proportion
from dialometer.stats.homogeneity import homogeneity_clustered
from dialometer.stats.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.votes import FIRST, TIE

FEW_RATERS = 2


def system_group_section(data: StudyData, found: SystemVotes, question: str, options: Options) -> Section:
    """Share of points of every system within each group of raters, and whether the groups differ."""
    groups = rater_groups(data, question, found.votes.raters)
    points, system, rater = points_by_system(found)
    group = groups.of_rater[rater]
    levels = [k for k in range(len(groups.levels)) if groups.n_raters(k) >= FEW_RATERS]
    rows: list[tuple[Cell, ...]] = []
    tests: list[Estimate] = []
    for k, label in enumerate(found.systems):
        kept = (system == k) & np.isin(group, levels)
        tests.append(homogeneity_clustered(points[kept], group[kept], rater[kept], label=label))
    adjusted = adjust_estimates(tests, options.correction)  # type: ignore[arg-type]  # declared by the study
    for k, test in enumerate(adjusted):
        cells = [
            known_cell(
                clustered_proportion(
                    points[(system == k) & (group == level)],
                    rater[(system == k) & (group == level)],
                    confidence=options.confidence,
                )
            )
            for level in range(len(groups.levels))
        ]
        last = [p_cell(test.p_value)]
        last += [p_cell(p_adjusted(test))] if options.correction in CORRECTIONS else []
        rows.append((found.systems[k], *cells, *last))
    table = Table(
        f"subgroup-{question}",
        f"Share of points by “{groups.text}”",
        (Column("system", "System"), *groups.columns(options.correction)),
        tuple(rows),
        caption="A win is one point, a tie half a point; over all questions. Intervals take each rater as one cluster.",
        notes=(groups.note,) if groups.note else (),
    )
    return Section(
        f"subgroup-{question}", f"Subgroups of raters: {question.replace('_', ' ')}", _words(adjusted), (table,)
    )


def points_by_system(found: SystemVotes) -> tuple[Floats, Ints, Ints]:
    """Every vote twice, once for each of its systems: points, system and rater."""
    votes = found.votes
    first = np.where(votes.outcome == TIE, 0.5, np.where(votes.outcome == FIRST, 1.0, 0.0))
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    return (
        np.concatenate([first, 1 - first]),
        np.concatenate([votes.first, votes.second]),
        np.concatenate([rater, rater]),
    )


def _words(tests: tuple[Estimate, ...]) -> tuple[str, ...]:
    known = [one for one in tests if not math.isnan(one.p_value)]
    if not known:
        reason = next((note for one in tests for note in one.notes), "not enough data")
        return (f"The groups cannot be compared: {reason}.",)
    apart = [one.label for one in known if p_adjusted(one) <= 1 - one.confidence]
    if apart:
        return (f"The groups differ in how they judge {listed(apart)}. This was not randomised: it describes raters.",)
    smallest = min(p_adjusted(one) for one in known)
    return (f"No difference between the groups can be told from chance (smallest corrected {p_words(smallest)}).",)
