"""Consistency of raters by condition, and whether a factor changed it."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.condition_ratings import cell_chart, cell_dots
from dialometer.analysis.factor_effects import Contrast, contrasts, legend, simple_contrasts
from dialometer.analysis.family import Options
from dialometer.analysis.labels import cell_names
from dialometer.analysis.measures import Measure, Measures
from dialometer.analysis.rater_rows import RaterRows
from dialometer.analysis.reliability_form import FORM_NAMES, REASONS, Reliability, Scores, matrix, reliability, scores
from dialometer.analysis.split_raters import Split
from dialometer.analysis.words import KOO_LI, listed, n_of, size_of_icc
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Method, Table
from dialometer.model.study import Study
from dialometer.stats.icc_difference import icc_difference

MOST_CELLS = 5_000_000
"""Targets times raters up to which resampling fits in memory and time."""
MANY_CELLS = 200_000
FEW_RESAMPLES = 500
DIFFERENCE = "difference between two ICCs"
Compared = tuple[Measure, Contrast, Estimate]
"""A measure, two conditions, and the ICC of the first minus that of the second."""


def by_condition(
    measure: Measure, rows: RaterRows, options: Options, inside: np.ndarray | None = None
) -> list[Reliability]:
    """The reliability in every condition (of only some raters, where ``inside`` says which)."""
    every = scores(measure)
    of_rater = rows.cell if inside is None else np.where(inside, rows.cell, -1)
    cell = of_rater[measure.rater]
    return [
        reliability(every.of(cell == number), confidence=options.confidence, label=name)
        for number, name in enumerate(cell_names(rows.study))
    ]


def condition_table(study: Study, measures: Measures, found: dict[str, list[Reliability]]) -> Table:
    """Average and single-rating ICC for every criterion and condition."""
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for measure in measures.criteria:
        for name, one in zip(cell_names(study), found[measure.name], strict=True):
            p = one.average.p_value if one.average.is_known else None
            word = size_of_icc(one.average.value) if one.average.is_known else ""
            body.append((measure.label, name, one.n_raters, one.n_targets, one.average, p, one.single, word))
            notes += [f"{measure.label}, {name}: {note}" for note in one.average.notes]
    return Table(
        "consistency_by_condition",
        "Intraclass correlation by criterion and condition",
        (
            Column("criterion", "Criterion"),
            Column("condition", "Condition"),
            Column("raters", "Raters", "count"),
            Column("targets", "Things rated", "count"),
            Column("icc_average", "ICC, mean of all raters", "estimate"),
            Column("p", "p", "p_value"),
            Column("icc_single", "ICC, one rater", "estimate"),
            Column("word", "Mean of all raters"),
        ),
        tuple(body),
        caption=f"{_why(found)} Words after {KOO_LI}.",
        notes=tuple(dict.fromkeys(notes)),
    )


def _why(found: dict[str, list[Reliability]]) -> str:
    kinds = list(dict.fromkeys(one.crossing for results in found.values() for one in results if one.crossing != "none"))
    return " ".join(f"{FORM_NAMES[kind]}: {REASONS[kind]}." for kind in kinds)


def consistency_methods(found: dict[str, list[Reliability]]) -> tuple[Method, ...]:
    """Which form was used and why."""
    kinds = dict.fromkeys(one.crossing for results in found.values() for one in results if one.crossing != "none")
    source = "Shrout & Fleiss 1979; McGraw & Wong 1996"
    return tuple(Method("Consistency of raters", FORM_NAMES[kind], REASONS[kind], source) for kind in kinds)


def condition_figure(study: Study, measures: Measures, found: dict[str, list[Reliability]]) -> Figure:
    """The average ICC of every condition, one panel per criterion."""
    dots = [
        dot
        for measure in measures.criteria
        for dot in cell_dots(study, [one.average for one in found[measure.name]], measure.label)
    ]
    told = listed(f"{dot.facet}, {dot.label}, {dot.group}: {dot.estimate}" for dot in dots)
    return Figure(
        "consistency_by_condition",
        "Consistency by condition and criterion",
        cell_chart(study, dots, "ICC, mean of all raters"),
        alt=f"Intraclass correlation with its interval in every condition. {told}.",
        caption="The higher, the more the raters of a condition agree on which responses are better.",
    )


def resamples_for(n_cells: int, options: Options) -> int:
    """Fewer resamples of large tables: their distribution is smooth, and a report must not take hours."""
    return options.n_resamples if n_cells <= MANY_CELLS else min(options.n_resamples, FEW_RESAMPLES)


def difference(
    measure: Measure, rows: RaterRows, contrast: Contrast, options: Options, every: Scores | None = None
) -> Estimate:
    """ICC of one rating at the level minus that at the baseline, on the things that both rated."""
    every = every or scores(measure)
    inside = np.ones(rows.n, dtype=bool)
    for other, level in contrast.where:
        inside &= rows.level(other) == [one.name for one in other.levels].index(level.name)
    names = [level.name for level in contrast.factor.levels]
    code = np.where(inside, rows.level(contrast.factor), -1)[measure.rater]
    parts = [every.of(code == names.index(level.name)) for level in (contrast.level, contrast.base)]
    shared = np.intersect1d(parts[0].target, parts[1].target)
    parts = [part.of(np.isin(part.target, shared)) for part in parts]
    tables = [matrix(part) for part in parts]
    if any(table.shape[1] < 2 for table in tables) or len(shared) < 2:
        why = "fewer than two raters or two shared things rated on one side; collect more"
        return unknown(DIFFERENCE, why, n=len(shared))
    if max(table.size for table in tables) > MOST_CELLS:
        return unknown(DIFFERENCE, "too many raters and items to resample; compare the intervals", n=len(shared))
    has_holes = any(np.isnan(table).any() for table in tables)
    n_resamples = resamples_for(sum(table.size for table in tables), options)
    found = icc_difference(
        tables[0],
        tables[1],
        "ICC(1,1)" if has_holes else "ICC(2,1)",
        missing="model" if has_holes else "refuse",
        n_resamples=n_resamples,
        n_permutations=n_resamples,
        seed=options.seed,
        confidence=options.confidence,
    )
    return (
        found.with_note("incomplete: the one-way form is compared, which uses every judgment") if has_holes else found
    )


def difference_table(study: Study, found: list[Compared]) -> Table:
    """Is one level more consistent than the other? Over all raters, and within levels of the other factors."""
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for measure, contrast, one in found:
        first, second = (one.details.get(key) for key in ("icc_first", "icc_second"))
        p = one.p_value if one.is_known else None
        body.append((measure.label, contrast.short, contrast.where_label, first, second, one, p))
        notes += one.notes
    return Table(
        "consistency_differences",
        "Did a factor change the consistency?",
        (
            Column("criterion", "Criterion"),
            Column("compared", "Effect"),
            Column("where", "Where"),
            Column("first", "ICC, first", "number", 3),
            Column("second", "ICC, second", "number", 3),
            Column("difference", "Difference", "estimate"),
            Column("p", "p, permutation", "p_value"),
        ),
        tuple(body),
        caption=f"{legend(study)} ICC of a single rating, because means of different numbers of raters are not comparable. "
        "The interval draws items and raters; p divides the raters at random.",
        notes=tuple(dict.fromkeys(notes)),
    )


def all_differences(study: Study, measures: Measures, rows: RaterRows, options: Options) -> list[Compared]:
    """Every criterion and contrast, over all raters first."""
    found = []
    for measure in measures.criteria:
        every = scores(measure)
        for factor in study.spec.design.factors:
            for contrast in (*contrasts(factor), *simple_contrasts(study, factor)):
                found.append((measure, contrast, difference(measure, rows, contrast, options, every)))
    return found


def group_table(study: Study, measures: Measures, rows: RaterRows, split: Split, options: Options) -> Table:
    """Average ICC by condition and group of raters, every criterion in its column."""
    by_group = [
        [by_condition(measure, rows, options, split.inside(code)) for measure in measures.criteria]
        for code in range(len(split.groups))
    ]
    body: list[tuple[Cell, ...]] = []
    small: list[str] = []
    for number, name in enumerate(cell_names(study)):
        for code, group in enumerate(split.groups):
            here = [of_measure[number] for of_measure in by_group[code]]
            cells: list[Cell] = []
            for one in here:
                cells += [one.average, one.average.p_value if one.average.is_known else None, one.single]
            body.append((name, group, here[0].n_raters, *cells))
            if here[0].n_raters < 2:
                small.append(f"“{name}”, {group}: {n_of(here[0].n_raters, 'rater')}; two are needed")
    columns = [Column("condition", "Condition"), Column("group", split.label), Column("raters", "Raters", "count")]
    for measure in measures.criteria:
        columns += [
            Column(measure.name, f"{measure.label}, mean of raters", "estimate"),
            Column(f"{measure.name}_p", "p", "p_value"),
            Column(f"{measure.name}_single", f"{measure.label}, one rater", "estimate"),
        ]
    return Table(
        f"consistency_by_{split.name}",
        f"Consistency by condition and {split.label.lower()}",
        tuple(columns),
        tuple(body),
        caption="The ICC of a mean grows with the number of raters; to compare groups of different sizes look at one rater.",
        notes=tuple(small),
    )
