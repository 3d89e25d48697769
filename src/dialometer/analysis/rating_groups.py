"""Ratings of systems as different groups of raters see them."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.data import StudyData
from dialometer.analysis.factor_sentences import effect_heading, shown
from dialometer.analysis.family import Options
from dialometer.analysis.measures import Measure
from dialometer.analysis.rater_rows import RaterRows
from dialometer.analysis.split_raters import Split, question_split
from dialometer.analysis.system_ratings import SystemRatings
from dialometer.analysis.words import correction_name, excludes, listed, n_of, p_words
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.multiplicity import adjust
from dialometer.stats.ranks import kruskal_wallis
from dialometer.stats.two_groups import welch_t


def rating_group_section(
    data: StudyData, rows: RaterRows, name: str, systems: list[SystemRatings], options: Options
) -> Section:
    """Means of the systems in each group, and whether groups differ in how they compare systems."""
    split = question_split(data, rows, name)
    main = systems[0]
    by_group = [_of_group(main, split, code) for code in range(len(split.groups))]
    counts = [int(split.inside(code).sum()) for code in range(len(split.groups))]
    told = listed(f"{group}: {n_of(n, 'rater')}" for group, n in zip(split.groups, counts, strict=True))
    table, found = _tests(main, split, options)
    said = (
        f"Raters are split by their answer to: {split.question} ({told}.)",
        found,
        "Groups were not assigned at random: differences between them may have other reasons. Exploratory.",
        *split.notes,
    )
    parts = (_figure(main, by_group, split), _means(main, by_group, split, counts), table)
    return Section(f"group_{name}", f"{split.label}: groups of raters", said, parts)


def _of_group(main: SystemRatings, split: Split, code: int) -> SystemRatings | None:
    inside = split.inside(code)[main.measure.rater]
    if not inside.any():
        return None
    part: Measure = main.measure.where(inside)
    return SystemRatings(main.study, part, main.options)


def _means(main: SystemRatings, by_group: list[SystemRatings | None], split: Split, counts: list[int]) -> Table:
    body: list[tuple[Cell, ...]] = [
        (main.label(system), *(None if one is None else one.means.get(system) for one in by_group))
        for system in main.systems
    ]
    columns = [Column("system", "System")]
    columns += [
        Column(f"group_{code + 1}", f"{group} ({n_of(n, 'rater')})", "estimate")
        for code, (group, n) in enumerate(zip(split.groups, counts, strict=True))
    ]
    title = f"Ratings of the systems by {split.label.lower()}, {main.measure.label.lower()}"
    return Table(f"ratings_by_{split.name}", title, tuple(columns), tuple(body))


def _figure(main: SystemRatings, by_group: list[SystemRatings | None], split: Split) -> Figure:
    dots = [
        Dot(main.label(system), one.means[system], group)
        for system in main.systems
        for group, one in zip(split.groups, by_group, strict=True)
        if one is not None and system in one.means
    ]
    told = "; ".join(f"{dot.label}, {dot.group}: {dot.estimate}" for dot in dots)
    unit = "mean rating, % of the scale" if main.measure.unit == "percent" else "mean rating"
    return Figure(
        f"ratings_by_{split.name}",
        f"Ratings of the systems by {split.label.lower()}",
        dot_interval(dots, value_title=unit, group_title=split.label),
        alt=f"Mean rating of each system in each group of raters. {told}.",
    )


def _tests(main: SystemRatings, split: Split, options: Options) -> tuple[Table, str]:
    """Do groups differ in the raters' mean differences between two systems?"""
    rows = []
    is_two = len(split.groups) == 2
    for pair in main.pairs:
        gaps = main.rater_gaps(pair.first, pair.second)
        groups = [gaps[split.inside(code) & ~np.isnan(gaps)] for code in range(len(split.groups))]
        found = welch_t(*groups, confidence=options.confidence) if is_two else kruskal_wallis(groups)
        rows.append((pair, found))
    adjusted = adjust([found.p_value for _, found in rows], options.correction)  # type: ignore[arg-type]
    body: list[tuple[Cell, ...]] = []
    sure = []
    for (pair, found), p in zip(rows, adjusted, strict=True):
        names = (main.label(pair.first), main.label(pair.second))
        value = shown(main.measure, found) if is_two else found
        body.append((*names, value, found.p_value if found.is_known else None, float(p) if found.is_known else None))
        if p < 1 - options.confidence and (not is_two or excludes(found)):
            sure.append(f"{names[0]} against {names[1]} ({p_words(float(p))})")
    heading = f"{effect_heading(main.measure)}, {split.groups[0]} to {split.groups[1]}" if is_two else "ε²"
    table = Table(
        f"rating_pairs_by_{split.name}",
        f"Do groups compare systems differently? {main.measure.label}",
        (
            Column("first", "System"),
            Column("second", "Compared with"),
            Column("change", heading, "estimate"),
            Column("p", "p, Welch" if is_two else "p, Kruskal-Wallis", "p_value"),
            Column("p_adjusted", f"p, {correction_name(options.correction)}", "p_value"),
        ),
        tuple(body),
        caption="From each rater's mean difference between the two systems.",
    )
    if sure:
        return table, f"Groups compare these systems differently: {listed(sure)}."
    return table, "The groups do not demonstrably differ in how they compare systems."
