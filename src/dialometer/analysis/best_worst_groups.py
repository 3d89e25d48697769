"""Best-worst choices by place on the screen and by subgroups of raters."""

from __future__ import annotations

import math

import numpy as np

from dialometer.analysis.best_worst_choices import BestWorstData, scores
from dialometer.analysis.data import StudyData
from dialometer.analysis.family import Options
from dialometer.analysis.leader import CORRECTIONS, p_adjusted
from dialometer.analysis.leaderboard_sections import known_cell, p_cell
from dialometer.analysis.rater_groups import rater_groups
from dialometer.analysis.words import listed, p_words, percent
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered import clustered_mean, clustered_proportion
from dialometer.stats.homogeneity import homogeneity_clustered
from dialometer.stats.multiplicity import adjust_estimates

FEW_RATERS = 2


def place_section(data: StudyData, found: BestWorstData, options: Options) -> Section:
    """Whether systems at some place on the screen were picked best more often than by chance."""
    size = (found.choices.shown >= 0).sum(axis=1)
    if not (found.place > 0).any() or len(np.unique(size)) != 1:
        raise NotEnoughData(
            "the data do not say where each system stood on the screen, or sets differ in size",
            remedy="import the order in which systems were shown",
        )
    k = int(size[0])
    tested = adjust_estimates(
        [
            clustered_proportion(
                np.where(found.place > 0, found.place == place, np.nan),
                found.choices.rater,
                null=1 / k,
                confidence=options.confidence,
                label=str(place),
            )
            for place in range(1, k + 1)
        ],
        options.correction,  # type: ignore[arg-type]  # declared by the study
    )
    rows: list[tuple[Cell, ...]] = [
        (f"place {one.label}", known_cell(one), p_cell(one.p_value), p_cell(p_adjusted(one))) for one in tested
    ]
    columns = (
        Column("place", "Place"),
        Column("best", "Picked as best", "percent_estimate"),
        Column("p", "p", "p_value"),
        Column("p_adjusted", "p, corrected", "p_value"),
    )
    clear = [f"place {one.label}" for one in tested if p_adjusted(one) <= 1 - options.confidence]
    drawn = data.study.spec.design.system_order != "fixed"
    said = (
        f"More or less often best than by chance: {listed(clear)}."
        if clear
        else "There is no sign that the place on the screen mattered."
    )
    said += (
        " Places were drawn anew for each rater and item, so this favours no system."
        if drawn
        else " The order was fixed, so the place cannot be told from the system that stood there."
    )
    caption = f"By chance, each of {k} places would be best in {percent(1 / k)}; cluster-robust by rater (CR2)."
    table = Table("place", "The best by place on the screen", columns, tuple(rows), caption=caption)
    return Section("place", "Did the place on the screen matter?", (said,), (table,))


def group_section(data: StudyData, found: BestWorstData, question: str, options: Options) -> Section:
    """Scores of every system within each group of raters, and whether the groups differ."""
    choices = found.choices
    groups = rater_groups(data, question, choices.raters)
    group = groups.of_rater[choices.rater]
    levels = [k for k in range(len(groups.levels)) if groups.n_raters(k) >= FEW_RATERS]
    table = scores(choices)
    kept = np.isin(group, levels)
    tests = adjust_estimates(
        [
            homogeneity_clustered(table[kept, k], group[kept], choices.rater[kept], label=label)
            for k, label in enumerate(choices.systems)
        ],
        options.correction,  # type: ignore[arg-type]  # declared by the study
    )
    rows: list[tuple[Cell, ...]] = []
    for k, test in enumerate(tests):
        cells = [
            known_cell(clustered_mean(table[group == g, k], choices.rater[group == g], confidence=options.confidence))
            for g in range(len(groups.levels))
        ]
        rows.append((choices.systems[k], *cells, p_cell(test.p_value), p_cell(p_adjusted(test))))
    columns = [Column("system", "System")]
    columns += [
        Column(f"group-{k}", f"{level} (n = {groups.n_raters(k)})", "estimate") for k, level in enumerate(groups.levels)
    ]
    label = CORRECTIONS.get(options.correction, "not corrected")
    columns += [Column("p", "p (groups differ)", "p_value"), Column("p_adjusted", f"p ({label})", "p_value")]
    known = [one for one in tests if not math.isnan(one.p_value)]
    apart = [one.label for one in known if p_adjusted(one) <= 1 - options.confidence]
    if not known:
        said = f"The groups cannot be compared: {next((n for one in tests for n in one.notes), 'not enough data')}."
    elif apart:
        said = f"The groups differ in how they judge {listed(apart)}. This was not randomised: it describes raters."
    else:
        said = f"No difference between the groups can be told from chance (smallest corrected {p_words(min(map(p_adjusted, known)))})."
    shown = Table(
        f"subgroup-{question}",
        f"Scores by “{groups.text}”",
        tuple(columns),
        tuple(rows),
        caption="Over all questions; each rater as one cluster.",
        notes=(groups.note,) if groups.note else (),
    )
    return Section(f"subgroup-{question}", f"Subgroups of raters: {question.replace('_', ' ')}", (said,), (shown,))
