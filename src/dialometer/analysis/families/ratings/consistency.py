"""Consistency of raters by condition, and whether a factor changed it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, RaterRows
from dialometer.analysis.base.wording import (
    KOO_LI,
    cell_names,
    excludes,
    listed,
    n_of,
    p_words,
    size_of_icc,
    with_interval,
)
from dialometer.analysis.families.ratings.agreement import (
    FORM_NAMES,
    REASONS,
    Reliability,
    Scores,
    matrix,
    reliability,
    scores,
)
from dialometer.analysis.families.ratings.conditions import cell_chart, cell_dots
from dialometer.analysis.families.ratings.factor_effects import Contrast, contrasts, legend, simple_contrasts
from dialometer.analysis.shared.subgroups import RaterGroups
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.stats.bootstrap.bootstrap import batch_sizes, draw_counts, estimate_from
from dialometer.stats.icc.difference import icc_difference
from dialometer.stats.icc.forms import icc_of_counts
from dialometer.stats.icc.one_way import OneWay, one_way_icc
from dialometer.stats.observations import Floats

MOST_CELLS = 5_000_000
"""Targets times raters up to which resampling fits in memory and time."""
MANY_CELLS = 200_000
FEW_RESAMPLES = 500
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
        reliability(every.of(cell == number), confidence=options.confidence, label=name)
        for number, name in enumerate(cell_names(rows.study))
    ]


def condition_table(study: Study, measures: Measures, reliabilities: dict[str, list[Reliability]]) -> Table:
    """Average and single-rating ICC for every criterion and condition."""
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for measure in measures.criteria:
        for name, result in zip(cell_names(study), reliabilities[measure.name], strict=True):
            p = result.average.p_value if result.average.is_known else None
            word = size_of_icc(result.average.value) if result.average.is_known else ""
            body.append(
                (measure.label, name, result.n_raters, result.n_targets, result.average, p, result.single, word)
            )
            notes += [f"{measure.label}, {name}: {note}" for note in result.average.notes]
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
        caption=f"{_why(reliabilities)} Words after {KOO_LI}.",
        notes=tuple(dict.fromkeys(notes)),
    )


def _why(reliabilities: dict[str, list[Reliability]]) -> str:
    kinds = list(
        dict.fromkeys(
            result.crossing for results in reliabilities.values() for result in results if result.crossing != "none"
        )
    )
    return " ".join(f"{FORM_NAMES[kind]}: {REASONS[kind]}." for kind in kinds)


def consistency_methods(reliabilities: dict[str, list[Reliability]]) -> tuple[Method, ...]:
    """Which form was used and why."""
    kinds = dict.fromkeys(
        result.crossing for results in reliabilities.values() for result in results if result.crossing != "none"
    )
    source = "Shrout & Fleiss 1979; McGraw & Wong 1996"
    return tuple(Method("Consistency of raters", FORM_NAMES[kind], REASONS[kind], source) for kind in kinds)


def condition_figure(study: Study, measures: Measures, reliabilities: dict[str, list[Reliability]]) -> Figure:
    """The average ICC of every condition, one panel per criterion."""
    dots = [
        dot
        for measure in measures.criteria
        for dot in cell_dots(study, [result.average for result in reliabilities[measure.name]], measure.label)
    ]
    details = listed(f"{dot.facet}, {dot.label}, {dot.group}: {dot.estimate}" for dot in dots)
    return Figure(
        "consistency_by_condition",
        "Consistency by condition and criterion",
        cell_chart(study, dots, "ICC, mean of all raters"),
        alt=f"Intraclass correlation with its interval in every condition. {details}.",
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
        inside &= rows.level(other) == [one_level.name for one_level in other.levels].index(level.name)
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
    estimate = icc_difference(
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
        estimate.with_note("incomplete: the one-way form is compared, which uses every judgment")
        if has_holes
        else estimate
    )


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
    """Average ICC by condition and group of raters, every criterion in its column."""
    by_group = [
        [by_condition(measure, rows, options, groups.inside(code)) for measure in measures.criteria]
        for code in range(len(groups.levels))
    ]
    body: list[tuple[Cell, ...]] = []
    small: list[str] = []
    for number, name in enumerate(cell_names(study)):
        for code, group in enumerate(groups.levels):
            here = [of_measure[number] for of_measure in by_group[code]]
            cells: list[Cell] = []
            for result in here:
                cells += [result.average, result.average.p_value if result.average.is_known else None, result.single]
            body.append((name, group, here[0].n_raters, *cells))
            if here[0].n_raters < 2:
                small.append(f"“{name}”, {group}: {n_of(here[0].n_raters, 'rater')}; two are needed")
    columns = [Column("condition", "Condition"), Column("group", groups.label), Column("raters", "Raters", "count")]
    for measure in measures.criteria:
        columns += [
            Column(measure.name, f"{measure.label}, mean of raters", "estimate"),
            Column(f"{measure.name}_p", "p", "p_value"),
            Column(f"{measure.name}_single", f"{measure.label}, one rater", "estimate"),
        ]
    return Table(
        f"consistency_by_{groups.name}",
        f"Consistency by condition and {groups.label.lower()}",
        tuple(columns),
        tuple(body),
        caption="The ICC of a mean grows with the number of raters; to compare groups of different sizes look at one rater.",
        notes=tuple(small),
    )


# One criterion against another. Raters and things rated are drawn, the same for both criteria; the p value is the smallest
# level at which the interval excludes zero, so that the two never contradict each other. (Exchanging the criteria of a rater
# would test whether both criteria see the same differences.) Complete designs use the two-way ICC, others the one-way form.


IccOf = Callable[[Floats, Floats | None, Floats | None], Floats]
METHOD = "difference between the ICCs of two criteria, same raters"


def paired_icc_difference(first: Floats, second: Floats, options: Options, label: str = "") -> Estimate:
    """ICC of a single rating on the first criterion minus that on the second; targets by raters, aligned."""
    n_targets, n_raters = first.shape
    if n_targets < 2 or n_raters < 2:
        why = f"{n_raters} raters and {n_targets} things rated: at least two of each are needed; collect more"
        return unknown(METHOD, why, n=n_targets, label=label)
    if first.size > MOST_CELLS:
        return unknown(METHOD, "too many raters and items to resample; compare the intervals", label=label)
    if any(np.nanstd(table) == 0 for table in (first, second)):
        return unknown(METHOD, "all ratings on a criterion are equal", n=n_targets, label=label)
    has_holes = bool(np.isnan(first).any() or np.isnan(second).any())
    icc_of: IccOf = _one_way if has_holes else _two_way
    parts = [float(icc_of(table, None, None)[0]) for table in (first, second)]
    rng = np.random.default_rng(options.seed)
    replicates = []
    for size in batch_sizes(n_targets + n_raters, resamples_for(2 * first.size, options)):
        targets, raters = draw_counts(rng, n_targets, size), draw_counts(rng, n_raters, size)
        replicates.append(icc_of(first, targets, raters) - icc_of(second, targets, raters))
    estimate = estimate_from(
        parts[0] - parts[1],
        np.concatenate(replicates),
        n=n_targets,
        method=METHOD,
        resampled="raters and things rated",
        seed=options.seed,
        confidence=options.confidence,
        label=label,
        details={"icc_first": parts[0], "icc_second": parts[1], "form": "ICC(1,1)" if has_holes else "ICC(2,1)"},
    )
    return replace(estimate, p_value=_inverted_p(np.concatenate(replicates)))


def _two_way(table: Floats, targets: Floats | None, raters: Floats | None) -> Floats:
    return icc_of_counts(table, targets, raters)["ICC(2,1)"]


def _one_way(table: Floats, targets: Floats | None, raters: Floats | None) -> Floats:
    given = ~np.isnan(table)
    filled = np.where(given, table - np.nanmean(table), 0.0)
    of_raters = np.ones((1, table.shape[1])) if raters is None else raters
    of_targets = np.ones((1, len(table))) if targets is None else targets
    sums = OneWay(of_raters @ given.T, of_raters @ filled.T, of_raters @ (filled**2).T)
    return one_way_icc(sums, of_targets, repeats=of_raters**2 @ given.T)


def _inverted_p(replicates: Floats) -> float:
    """Twice the smaller tail beyond zero, the estimate itself counted among the replicates so that p is never 0."""
    usable = replicates[np.isfinite(replicates)]
    n = len(usable)
    tail = min(int(np.sum(usable <= 0)), int(np.sum(usable >= 0)))
    return min(1.0, 2 * (1 + tail) / (1 + n))


def aligned(first: Measure, second: Measure, of_cell: int | None, rows: RaterRows) -> tuple[Floats, Floats]:
    """Two criteria as matrices with the same things rated in the rows and the same raters in the columns."""
    tables = []
    keys, raters = [], []
    for measure in (first, second):
        every = scores(measure)
        inside = np.ones(len(every.y), dtype=bool) if of_cell is None else rows.cell[measure.rater] == of_cell
        key = measure.thing[inside]
        tables.append((every.y[inside], key, measure.rater[inside]))
        keys.append(np.unique(key))
        raters.append(np.unique(measure.rater[inside]))
    targets, people = np.intersect1d(keys[0], keys[1]), np.intersect1d(raters[0], raters[1])
    made = []
    for y, key, rater in tables:
        kept = np.isin(key, targets) & np.isin(rater, people)
        table = np.full((len(targets), len(people)), np.nan)
        table[np.searchsorted(targets, key[kept]), np.searchsorted(people, rater[kept])] = y[kept]
        made.append(table)
    return made[0], made[1]


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
            estimate = paired_icc_difference(*aligned(first, second, number, rows), options)
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
            Column("icc_first", "ICC, first", "number", 3),
            Column("icc_second", "ICC, second", "number", 3),
            Column("difference", "Difference", "estimate"),
            Column("p", "p, bootstrap", "p_value"),
        ),
        tuple(body),
        caption="ICC of a single rating. The interval draws raters and things rated, the same for both criteria.",
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
