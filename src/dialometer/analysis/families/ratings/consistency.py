"""Consistency of raters by condition, and whether a factor changed it."""

from __future__ import annotations

import itertools

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, RaterRows
from dialometer.analysis.base.wording import (
    KOO_LI,
    brief,
    cell_names,
    excludes,
    inside,
    listed,
    p_words,
    size_of_icc,
    with_interval,
)
from dialometer.analysis.families.ratings.agreement import (
    Reliability,
    Scores,
    forms_used,
    interval_words,
    item_of_target,
    matrix,
    reliability,
    reliability_methods,
    scores,
)
from dialometer.analysis.families.ratings.conditions import cell_chart, cell_dots
from dialometer.analysis.families.ratings.factor_effects import Contrast, contrasts, legend, simple_contrasts
from dialometer.analysis.shared.subgroups import RaterGroups
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import COEFFICIENT
from dialometer.stats.icc.difference import icc_difference, paired_icc_difference
from dialometer.stats.observations import Floats, Ints

MOST_CELLS = 5_000_000
"""Targets times raters up to which resampling fits in memory and time."""
MANY_CELLS = 200_000
N_PERMUTATIONS = 1999
FEW_PERMUTATIONS = 499
DIFFERENCE = "difference between two ICCs"
ConsistencyChange = tuple[Measure, Contrast, Estimate]
"""A measure, two conditions, and the ICC of the first minus that of the second."""


def by_condition(
    measure: Measure, rows: RaterRows, options: Options, inside: np.ndarray | None = None
) -> list[Reliability]:
    """The reliability in every condition (of only some raters, where ``inside`` says which)."""
    every = scores(measure)
    of_rater = rows.cell if inside is None else np.where(inside, rows.cell, -1)
    cell = of_rater[measure.rater]
    return [
        reliability(
            every.of(cell == number),
            confidence=options.confidence,
            label=name,
            has_fixed_items=options.has_fixed_items,
        )
        for number, name in enumerate(cell_names(rows.study))
    ]


def condition_table(study: Study, measures: Measures, reliabilities: dict[str, list[Reliability]]) -> Table:
    """The ICC of one rating and of the mean of the raters, for every criterion and condition."""
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for measure in measures.criteria:
        for name, result in zip(cell_names(study), reliabilities[measure.name], strict=True):
            p = result.average.p_value if result.average.is_known else None
            word = size_of_icc(result.average) if result.average.is_known else ""
            cells: list[Cell] = [measure.label, name, result.n_raters, result.n_targets, result.single, p]
            body.append((*cells, result.average, result.n_averaged, word))
            notes += [f"{measure.label}, {name}: {note}" for note in result.average.notes]
    results = list(itertools.chain(*reliabilities.values()))
    return Table(
        "consistency_by_condition",
        "Intraclass correlation by criterion and condition",
        (
            Column("criterion", "Criterion"),
            Column("condition", "Condition"),
            Column("raters", "Raters", "count"),
            Column("targets", "Things rated", "count"),
            Column("icc_single", "ICC, one rating", "estimate"),
            Column("p", "p", "p_value"),
            Column("icc_average", "ICC, mean of k ratings", "estimate"),
            Column("k", "k", "number", 1),
            Column("word", "Mean of k ratings"),
        ),
        tuple(body),
        caption=f"{forms_used(results)}{interval_words(results)} Words after {KOO_LI}.",
        notes=tuple(dict.fromkeys(notes)),
    )


def consistency_methods(reliabilities: dict[str, list[Reliability]]) -> tuple[Method, ...]:
    """Which form was used and why."""
    return reliability_methods("Consistency of raters", itertools.chain(*reliabilities.values()))


def condition_figure(study: Study, measures: Measures, reliabilities: dict[str, list[Reliability]]) -> Figure:
    """The ICC of one rating in every condition, one panel per criterion; means of different k are not comparable."""
    dots = [
        dot
        for measure in measures.criteria
        for dot in cell_dots(study, [result.single for result in reliabilities[measure.name]], measure.label)
    ]
    details = listed(f"{dot.facet}, {dot.label}, {dot.group}: {brief(dot.estimate)}" for dot in dots)
    return Figure(
        "consistency_by_condition",
        "Consistency by condition and criterion",
        cell_chart(study, dots, "ICC of one rating", COEFFICIENT),
        alt=f"Intraclass correlation with its confidence interval in every condition. {details}.",
        caption="The higher, the more the raters of a condition agree on which responses are better.",
    )


def permutations_for(n_cells: int, contrast: Contrast) -> int:
    """Divisions of the raters; fewer for large tables, which would take hours, and within single conditions (exploratory)."""
    return FEW_PERMUTATIONS if n_cells > MANY_CELLS or contrast.where else N_PERMUTATIONS


def difference(
    measure: Measure, rows: RaterRows, contrast: Contrast, options: Options, every: Scores | None = None
) -> Estimate:
    """ICC of one rating at the level minus that at the baseline, on the things that both rated."""
    every = every or scores(measure)
    inside = np.ones(rows.n, dtype=bool)
    for other, level in contrast.where:
        inside &= rows.level(other) == [one_level.name for one_level in other.levels].index(level.name)
    names = [level.name for level in contrast.factor.levels]
    code = np.where(inside, rows.level(contrast.factor), -1)[measure.rater]
    parts = [every.of(code == names.index(level.name)) for level in (contrast.level, contrast.base)]
    shared = np.intersect1d(parts[0].target, parts[1].target)
    parts = [part.of(np.isin(part.target, shared)) for part in parts]
    is_complete = all(len(np.unique(part.rater)) * len(shared) == len(part.y) for part in parts)
    tables = [matrix(part, part.y if is_complete else part.relative()) for part in parts]
    if any(table.shape[1] < 2 for table in tables) or len(shared) < 2:
        why = "fewer than two raters or two shared things rated on one side; collect more"
        return unknown(DIFFERENCE, why, n=len(shared))
    if max(table.size for table in tables) > MOST_CELLS:
        return unknown(DIFFERENCE, "too many raters and items to resample; compare the intervals", n=len(shared))
    estimate = icc_difference(
        tables[0],
        tables[1],
        every.form(is_complete=is_complete),
        missing="refuse" if is_complete else "model",
        clusters=item_of_target(parts[0]),
        has_fixed_items=options.has_fixed_items,
        n_permutations=permutations_for(sum(table.size for table in tables), contrast),
        seed=options.seed,
        confidence=options.confidence,
    )
    note = "some judgments are missing: the one-way form is compared, which uses all there are"
    return estimate if is_complete else estimate.with_note(note)


def difference_table(study: Study, differences: list[ConsistencyChange]) -> Table:
    """Is one level more consistent than the other? Over all raters, and within levels of the other factors."""
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for measure, contrast, change in differences:
        first, second = (change.details.get(key) for key in ("icc_first", "icc_second"))
        p = change.p_value if change.is_known else None
        body.append((measure.label, contrast.short, contrast.where_label, first, second, change, p))
        notes += change.notes
    return Table(
        "consistency_differences",
        "Did a factor change the consistency?",
        (
            Column("criterion", "Criterion"),
            Column("compared", "Effect"),
            Column("where", "Where"),
            Column("first", "ICC, first", "number"),
            Column("second", "ICC, second", "number"),
            Column("difference", "Difference", "estimate"),
            Column("p", "p, permutation", "p_value"),
        ),
        tuple(body),
        caption=f"{legend(study)} ICC of a single rating, because means of different numbers of raters are not comparable. "
        "Standard errors come from leaving out raters and items; p comes from dividing the raters at random and is not corrected here "
        "(exploratory; confirmatory comparisons are corrected in their own section).",
        notes=tuple(dict.fromkeys(notes)),
    )


def all_differences(study: Study, measures: Measures, rows: RaterRows, options: Options) -> list[ConsistencyChange]:
    """Every criterion and contrast, over all raters first."""
    differences = []
    for measure in measures.criteria:
        every = scores(measure)
        for factor in study.spec.design.factors:
            for contrast in (*contrasts(factor), *simple_contrasts(study, factor)):
                differences.append((measure, contrast, difference(measure, rows, contrast, options, every)))
    return differences


def group_table(study: Study, measures: Measures, rows: RaterRows, groups: RaterGroups, options: Options) -> Table:
    """ICC by condition and group of raters, every criterion in its columns."""
    by_group = [
        [by_condition(measure, rows, options, groups.inside(code)) for measure in measures.criteria]
        for code in range(len(groups.levels))
    ]
    body: list[tuple[Cell, ...]] = []
    for number, name in enumerate(cell_names(study)):
        for code, group in enumerate(groups.levels):
            here = [of_measure[number] for of_measure in by_group[code]]
            cells: list[Cell] = []
            for result in here:
                p = result.single.p_value if result.single.is_known else None
                cells += [result.single, p, result.average, result.n_averaged]
            body.append((name, group, here[0].n_raters, *cells))
    columns = [Column("condition", "Condition"), Column("group", groups.label), Column("raters", "Raters", "count")]
    for measure in measures.criteria:
        columns += [
            Column(f"{measure.name}_single", f"{measure.label}, one rating", "estimate"),
            Column(f"{measure.name}_p", "p", "p_value"),
            Column(measure.name, f"{measure.label}, mean of k", "estimate"),
            Column(f"{measure.name}_k", "k", "number", 1),
        ]
    return Table(
        f"consistency_by_{groups.name}",
        f"Consistency by condition and {inside(groups.label)}",
        tuple(columns),
        tuple(body),
        caption="The ICC of a mean of k ratings grows with k; to compare groups of different sizes look at one rating.",
    )


# One criterion against another, by the same raters: each rater and each item is left out of both criteria at once.


def compare_criteria(
    first: Measure, second: Measure, of_cell: int | None, rows: RaterRows, options: Options
) -> Estimate:
    """ICC of one rating on the first criterion minus that on the second, in all conditions or in one."""
    one, other, items = aligned(first, second, of_cell, rows)
    if one.size > MOST_CELLS:
        return unknown(DIFFERENCE, "too many raters and items to compare; look at the intervals", n=len(one))
    forms = {scores(measure).form(is_complete=True) for measure in (first, second)}
    return paired_icc_difference(
        one,
        other,
        max(forms),  # consistency, unless both criteria are rated on numbers whose level counts
        clusters=items,
        has_fixed_items=options.has_fixed_items,
        confidence=options.confidence,
    )


def aligned(first: Measure, second: Measure, of_cell: int | None, rows: RaterRows) -> tuple[Floats, Floats, Ints]:
    """Two criteria as matrices with the same things rated in the rows and the same raters in the columns, and the items."""
    tables = []
    keys, raters = [], []
    for measure in (first, second):
        every = scores(measure)
        inside = np.ones(len(every.y), dtype=bool) if of_cell is None else rows.cell[measure.rater] == of_cell
        key = measure.thing[inside]
        tables.append((every.relative()[inside], key, measure.rater[inside]))
        keys.append(np.unique(key))
        raters.append(np.unique(measure.rater[inside]))
    targets, people = np.intersect1d(keys[0], keys[1]), np.intersect1d(raters[0], raters[1])
    made = []
    for y, key, rater in tables:
        kept = np.isin(key, targets) & np.isin(rater, people)
        table = np.full((len(targets), len(people)), np.nan)
        table[np.searchsorted(targets, key[kept]), np.searchsorted(people, rater[kept])] = y[kept]
        made.append(table)
    known, place = np.unique(first.thing, return_index=True)
    items = first.item[place][np.searchsorted(known, targets)]
    return made[0], made[1], items


def criteria_section(measures: Measures, rows: RaterRows, options: Options) -> Section:
    """Every pair of criteria, over all raters and in each condition."""
    title = "Consistency of one criterion against another"
    body: list[tuple[Cell, ...]] = []
    paragraphs: list[str] = []
    places: list[tuple[str, int | None]] = [("all", None)]
    if len(rows.study.cells) > 1:
        places += [(name, number) for number, name in enumerate(cell_names(rows.study))]
    for first, second in itertools.combinations(measures.criteria, 2):
        for place, number in places:
            estimate = compare_criteria(first, second, number, rows, options)
            icc_first, icc_second = (estimate.details.get(key) for key in ("icc_first", "icc_second"))
            p = estimate.p_value if estimate.is_known else None
            body.append((first.label, second.label, place, icc_first, icc_second, estimate, p))
            if number is None:
                paragraphs.append(_sentence(first, second, estimate))
    table = Table(
        "consistency_of_criteria",
        "Consistency of criteria",
        (
            Column("first", "First"),
            Column("second", "Second"),
            Column("where", "Where"),
            Column("icc_first", "ICC, first", "number"),
            Column("icc_second", "ICC, second", "number"),
            Column("difference", "Difference", "estimate"),
            Column("p", "p", "p_value"),
        ),
        tuple(body),
        caption="ICC of one rating. Standard errors come from leaving each rater and each item out of both criteria.",
    )
    return Section("consistency_of_criteria", title, tuple(paragraphs), (table,))


def _sentence(first: Measure, second: Measure, estimate: Estimate) -> str:
    if not estimate.is_known:
        return (
            f"Whether {first.label} is rated more consistently than {second.label} is not known: {estimate.notes[0]}."
        )
    more, less = (first, second) if estimate.value >= 0 else (second, first)
    details = f"the difference in ICC is {with_interval(estimate)}, {p_words(estimate.p_value)}"
    if excludes(estimate):
        return f"Raters are more consistent on {more.label} than on {less.label}: {details}."
    return f"{first.label} and {second.label} do not differ significantly in consistency: {details}."
