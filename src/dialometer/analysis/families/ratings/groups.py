"""Groups of raters (by time taken, by experience): do they rate differently, and does a factor affect one of them more?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, RaterRows
from dialometer.analysis.base.scale_units import unit_words
from dialometer.analysis.base.wording import (
    briefs,
    cell_names,
    confidence_words,
    correction_name,
    excludes,
    factor_label,
    inside,
    interval_only,
    level_label,
    listed,
    n_of,
    p_words,
    sentence,
    value_only,
)
from dialometer.analysis.families.ratings.conditions import cell_chart, cell_counts, cell_dots, cell_means, first_factor
from dialometer.analysis.families.ratings.consistency import group_table
from dialometer.analysis.families.ratings.factor_effects import (
    Contrast,
    FactorEffects,
    contrasts,
    effect_heading,
    effect_label,
    joint_heading,
    shown,
)
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.analysis.shared.subgroups import RaterGroups, rater_groups
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import LANGUAGE
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.effects.effect_size import cohens_d
from dialometer.stats.effects.factorial import factorial_effects
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.effects.ranks import kruskal_wallis
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.observations import Floats

NOT_ASSIGNED = "Groups were not assigned at random: differences between them may have other reasons. Exploratory."
INTERACTION = "does the effect differ between the groups?"


def question_groups(data: StudyData, rows: RaterRows, question: str) -> RaterGroups:
    """Raters by their answer to a question; at least two groups, since they are compared."""
    groups = rater_groups(data, question, rows.names)
    if len(groups.levels) < 2:
        raise NotEnoughData(
            f"all raters answered “{groups.text}” with “{groups.levels[0]}”", remedy="there are no groups to compare"
        )
    return groups


def _notes(groups: RaterGroups) -> tuple[str, ...]:
    notes = [groups.note] if groups.note else []
    if groups.n_without:
        where = (
            "without a finished session are in neither group"
            if groups.name == "time"
            else "without an answer are in no group"
        )
        notes.insert(0, f"{n_of(groups.n_without, 'rater')} {where}.")
    return tuple(notes)


def group_section(
    groups: RaterGroups, measures: Measures, rows: RaterRows, effects: list[FactorEffects], options: Options
) -> Section:
    """Means by condition and group, the chief factor's effect within each group, and consistency by group."""
    study = rows.study
    main = effects[0]
    chief = first_factor(study)
    parts: list[Table | Figure] = []
    paragraphs = [sentence(_split_words(groups))]
    if main.measure.unit != "z":
        parts += [_figure(groups, measures, rows, options), _means(groups, measures, rows, options)]
        if main.measure.is_log:  # as published studies report them
            parts.append(_means(groups, measures, rows, options, is_arithmetic=True))
        parts.append(_effects_within(groups, effects, options))
        paragraphs += [_sentence(main, contrast, groups, options) for contrast in contrasts(chief)]
    parts.append(group_table(study, measures, rows, groups, options))
    paragraphs.append(NOT_ASSIGNED)
    if groups.name == "time" and main.measure.unit != "z":
        within_groups = "ratios" if main.measure.is_log else "differences"
        paragraphs.append(
            f"The time taken may itself depend on the condition: the {within_groups} within these groups are not comparisons of "
            "randomly assigned raters."
        )
    return Section(
        f"group_{groups.name}", f"{groups.label}: groups of raters", (*paragraphs, *_notes(groups)), tuple(parts)
    )


def _means(
    groups: RaterGroups, measures: Measures, rows: RaterRows, options: Options, *, is_arithmetic: bool = False
) -> Table:
    body: list[tuple[Cell, ...]] = []
    main = rows.raw[measures.main.name]
    by_group = [
        (
            cell_counts(main, rows, groups.inside(code)),
            [_cell_means(m, groups, code, rows, options, is_arithmetic=is_arithmetic) for m in measures.all],
        )
        for code in range(len(groups.levels))
    ]
    for number, name in enumerate(cell_names(rows.study)):
        for group, (counts, means) in zip(groups.levels, by_group, strict=True):
            body.append((name, group, counts[number], *(column[number] for column in means)))
    columns = [Column("condition", "Condition"), Column("group", groups.label), Column("raters", "Raters", "count")]
    columns += [Column(m.name, m.label, "estimate") for m in measures.all]
    word = "arithmetic mean" if is_arithmetic else _mean_word(measures)
    title = f"{word.capitalize()} {unit_words(measures.main.unit)} by condition and {inside(groups.label)}"
    is_geometric = measures.main.is_log and not is_arithmetic
    name = f"geometric_means_by_{groups.name}" if is_geometric else f"means_by_{groups.name}"
    return Table(name, title, tuple(columns), tuple(body))


def _figure(groups: RaterGroups, measures: Measures, rows: RaterRows, options: Options) -> Figure:
    dots = [
        dot
        for code, group in enumerate(groups.levels)
        for dot in cell_dots(rows.study, _cell_means(measures.main, groups, code, rows, options), group)
    ]
    texts = briefs(dot.estimate for dot in dots)
    details = "; ".join(f"{dot.facet}, {dot.label}, {dot.group}: {text}" for dot, text in zip(dots, texts, strict=True))
    return Figure(
        f"ratings_by_{groups.name}",
        f"{_mean_word(measures).capitalize()} rating by condition and {inside(groups.label)}",
        cell_chart(rows.study, dots, f"{_mean_word(measures)} {unit_words(measures.main.unit)}", measures.main.bounds),
        alt=f"{_mean_word(measures).capitalize()} rating in every condition, one panel for each group of raters. {details}.",
        caption=f"Means over raters with {confidence_words(options.confidence)} bootstrap confidence intervals.",
    )


def _cell_means(
    measure: Measure,
    groups: RaterGroups,
    code: int,
    rows: RaterRows,
    options: Options,
    *,
    is_arithmetic: bool = False,
) -> list[Estimate]:
    """Means of one group in every condition: geometric ones of magnitudes, whose effects are ratios."""
    is_log = measure.is_log and not is_arithmetic
    values = rows.y if is_log else rows.raw
    return cell_means(values[measure.name], rows, options, groups.inside(code), is_log=is_log)


def _mean_word(measures: Measures) -> str:
    return "geometric mean" if measures.main.is_log else "mean"


def within(effects: FactorEffects, contrast: Contrast, groups: RaterGroups, code: int) -> tuple[Floats, Floats]:
    """Rater means at the level and at the baseline, in one group."""
    values = np.where(groups.inside(code), effects.rows.y[effects.measure.name], np.nan)
    return effects.groups(contrast, values)


def interaction(effects: FactorEffects, contrast: Contrast, groups: RaterGroups, options: Options) -> Estimate:
    """How the effect changes from the first group to the last; needs raters of both levels in every group."""
    if len(contrast.factor.levels) != 2 or len(groups.levels) != 2:
        return unknown(INTERACTION, "only for two levels and two groups")
    known = groups.of_rater >= 0
    values = np.where(known, effects.rows.y[effects.measure.name], np.nan)[known]
    level = effects.rows.level(contrast.factor)[known]
    if min(np.bincount(level * 2 + groups.of_rater[known], minlength=4)) == 0 or len(values) < 6:
        return unknown(INTERACTION, "a group has no raters at one of the levels; recruit more")
    names = [level.name for level in contrast.factor.levels]
    order = [str(names.index(contrast.base.name)), str(names.index(contrast.level.name))]
    estimate = factorial_effects(
        values,
        {"level": level, "group": groups.of_rater[known]},
        np.arange(len(values)),
        levels={"level": order, "group": ["0", "1"]},
        is_log=effects.measure.is_log,
        confidence=options.confidence,
    ).effect("level:group")
    if not estimate.is_known:
        return estimate
    # One mean for each rater: the model has no random effects left, and says so, which would mislead here.
    method = "linear model of raters' means, interaction, t-test"
    return replace(estimate, method=method, interval_method="Student's t", notes=())


def _effects_within(groups: RaterGroups, effects: list[FactorEffects], options: Options) -> Table:
    body: list[tuple[Cell, ...]] = []
    chief = first_factor(effects[0].study)
    measures = [effect.measure for effect in effects]
    for effect in effects:
        label = effect_label(effect.measure, measures)
        for contrast in contrasts(chief):
            for code, group in enumerate(groups.levels):
                means = within(effect, contrast, groups, code)
                difference = welch_t(*means, confidence=options.confidence)
                d = cohens_d(*means, confidence=options.confidence)
                p = difference.p_value if difference.is_known else None
                sizes = (len(means[0]), len(means[1]))
                body.append((label, contrast.short, group, *sizes, shown(effect.measure, difference), p, d))
            change = interaction(effect, contrast, groups, options)
            if change.is_known:
                compared = f"{groups.levels[1]} relative to {groups.levels[0]}"
                ratio = shown(effect.measure, change, n_factors=2)
                body.append((label, contrast.short, compared, "", "", ratio, change.p_value, ""))
    effects_of = " ".join(f"{contrast.short}: {contrast.label}." for contrast in contrasts(chief))
    return Table(
        f"effects_by_{groups.name}",
        f"Effect of {factor_label(chief)} within each group",
        (
            Column("criterion", "Criterion"),
            Column("compared", "Effect"),
            Column("group", "Group"),
            Column("raters_first", "Raters, first", "count"),
            Column("raters_second", "Raters, second", "count"),
            Column("estimate", joint_heading(measures), "estimate"),
            Column("p", "p", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption=f"{effects_of} Welch's test on rater means in each group; the last row of each block asks whether the effect "
        "differs between the two groups. p-values are not corrected.",
    )


def _sentence(effects: FactorEffects, contrast: Contrast, groups: RaterGroups, options: Options) -> str:
    measure = effects.measure
    entries = []
    for code, group in enumerate(groups.levels):
        first, second = within(effects, contrast, groups, code)
        difference = shown(measure, welch_t(first, second, confidence=options.confidence))
        size = "not known" if not difference.is_known else f"{value_only(difference)}, {interval_only(difference)}"
        entries.append(f"“{group}” ({len(first)} and {len(second)} raters): {size}")
    higher, base = level_label(contrast.level), level_label(contrast.base)
    what = f"ratio of “{higher}” to “{base}”" if measure.is_log else f"difference between “{higher}” and “{base}”"
    text = f"The {what} by group: {'; '.join(entries)}."
    change = interaction(effects, contrast, groups, options)
    if not change.is_known:
        return text
    verdict = "differs" if excludes(change) else "does not differ significantly"
    return f"{text} The effect {verdict} between the groups ({p_words(change.p_value)})."


def _split_words(groups: RaterGroups) -> str:
    """What puts raters into their groups; their times and their language are no answers."""
    answer = "" if groups.name in ("time", LANGUAGE) else "their answer to: "
    return f"Raters are split by {answer}{groups.text}"


def rating_group_section(
    data: StudyData, rows: RaterRows, name: str, systems: list[SystemRatings], options: Options
) -> Section:
    """Means of the systems in each group, and whether groups differ in how they compare systems."""
    groups = question_groups(data, rows, name)
    main = systems[0]
    by_group = [_of_group(main, groups, code) for code in range(len(groups.levels))]
    counts = [int(groups.inside(code).sum()) for code in range(len(groups.levels))]
    sizes = listed(f"{group}: {n_of(n, 'rater')}" for group, n in zip(groups.levels, counts, strict=True))
    table, verdict = _tests(main, groups, options)
    paragraphs = (
        f"{_split_words(groups)} ({sizes}).",
        verdict,
        NOT_ASSIGNED,
        *_notes(groups),
    )
    parts: tuple[Table | Figure, ...] = (
        _system_figure(main, by_group, groups),
        _system_means(main, by_group, groups, counts),
        *table,
    )
    return Section(f"group_{name}", f"{groups.label}: groups of raters", paragraphs, parts)


def _of_group(main: SystemRatings, groups: RaterGroups, code: int) -> SystemRatings | None:
    inside = groups.inside(code)[main.measure.rater]
    if not inside.any():
        return None
    part: Measure = main.measure.where(inside)
    return SystemRatings(main.study, part, main.options)


def _system_means(
    main: SystemRatings, by_group: list[SystemRatings | None], groups: RaterGroups, counts: list[int]
) -> Table:
    body: list[tuple[Cell, ...]] = [
        (main.label(system), *(None if ratings is None else ratings.means.get(system) for ratings in by_group))
        for system in main.systems
    ]
    columns = [Column("system", "System")]
    columns += [
        Column(f"group_{code + 1}", f"{group} ({n_of(n, 'rater')})", "estimate")
        for code, (group, n) in enumerate(zip(groups.levels, counts, strict=True))
    ]
    title = f"Ratings of the systems by {inside(groups.label)}, {inside(main.measure.label)}"
    return Table(f"ratings_by_{groups.name}", title, tuple(columns), tuple(body))


def _system_figure(main: SystemRatings, by_group: list[SystemRatings | None], groups: RaterGroups) -> Figure:
    dots = [
        Dot(main.label(system), ratings.means[system], group)
        for system in main.systems
        for group, ratings in zip(groups.levels, by_group, strict=True)
        if ratings is not None and system in ratings.means
    ]
    texts = briefs(dot.estimate for dot in dots)
    details = "; ".join(f"{dot.label}, {dot.group}: {text}" for dot, text in zip(dots, texts, strict=True))
    unit = "mean rating, % of the scale" if main.measure.unit == "percent" else "mean rating"
    return Figure(
        f"ratings_by_{groups.name}",
        f"Ratings of the systems by {inside(groups.label)}",
        dot_interval(dots, value_title=unit, group_title=groups.label, limits=main.measure.bounds),
        alt=f"Mean rating of each system in each group of raters. {details}.",
    )


def _tests(main: SystemRatings, groups: RaterGroups, options: Options) -> tuple[tuple[Table, ...], str]:
    """Do groups differ in the raters' mean differences between two systems? Without any test there is no table."""
    rows = []
    is_two = len(groups.levels) == 2
    for pair in main.pairs:
        gaps = main.rater_gaps(pair.first, pair.second)
        parts = [gaps[groups.inside(code) & ~np.isnan(gaps)] for code in range(len(groups.levels))]
        test = welch_t(*parts, confidence=options.confidence) if is_two else kruskal_wallis(parts)
        rows.append((pair, test))
    adjusted = adjust([test.p_value for _, test in rows], options.correction)
    body: list[tuple[Cell, ...]] = []
    sure = []
    for (pair, test), p in zip(rows, adjusted, strict=True):
        names = (main.label(pair.first), main.label(pair.second))
        value = shown(main.measure, test, n_factors=2) if is_two else test
        body.append((*names, value, test.p_value if test.is_known else None, float(p) if test.is_known else None))
        if p < 1 - options.confidence and (not is_two or excludes(test)):
            sure.append(f"{names[0]} against {names[1]} ({p_words(float(p))})")
    heading = f"{effect_heading(main.measure)}, {groups.levels[0]} to {groups.levels[1]}" if is_two else "ε²"
    table = Table(
        f"rating_pairs_by_{groups.name}",
        f"Do groups compare systems differently? {main.measure.label}",
        (
            Column("first", "System"),
            Column("second", "Compared with"),
            Column("change", heading, "estimate"),
            Column("p", "p, Welch" if is_two else "p, Kruskal-Wallis", "p_value"),
            Column("p_adjusted", f"p ({correction_name(options.correction)})", "p_value"),
        ),
        tuple(body),
        caption="From each rater's mean difference between the two systems.",
    )
    if sure:
        return (table,), f"Groups compare these systems differently: {listed(sure)}."
    if np.isnan(adjusted).all():
        why = next((note for _, test in rows for note in test.notes), "not enough data")
        return (), f"Whether the groups compare systems differently cannot be tested: {why}."
    return (table,), "The groups do not differ significantly in how they compare systems."
