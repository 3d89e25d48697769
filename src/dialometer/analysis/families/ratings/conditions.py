"""How high ratings are in each condition, and what the factors did to them."""

from __future__ import annotations

import math

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, RaterRows, mean_over_raters
from dialometer.analysis.base.scale_units import unit_words
from dialometer.analysis.base.wording import (
    COHEN,
    as_geometric_mean,
    brief,
    briefs,
    cell_names,
    confidence_words,
    excludes,
    factor_label,
    interval_only,
    is_anchor,
    level_label,
    listed,
    n_of,
    p_words,
    test_words,
    value_only,
    with_interval,
)
from dialometer.analysis.families.ratings.factor_effects import (
    Contrast,
    FactorEffects,
    contrasts,
    effect_heading,
    effect_sentence,
    legend,
    shown,
    simple_contrasts,
)
from dialometer.errors import NotEnoughData
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, Spec, dot_interval
from dialometer.stats.clustered.proportion import quantile
from dialometer.stats.effects.effect_size import cohens_d
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.observations import Floats

TITLE = "Size of the ratings by condition"
ROOT_MEAN_SQUARE = " Where a factor has more than two levels the estimate is the root mean square of its deviations."


def condition_section(
    study: Study, measures: Measures, rows: RaterRows, effects: list[FactorEffects], options: Options
) -> Section:
    """Means with bootstrap intervals for every condition: geometric ones for magnitudes, whose effects are ratios."""
    if any(effect.measure.unit == "z" for effect in effects):
        return Section(
            "ratings_by_condition",
            TITLE,
            problem="The conditions use magnitudes in one place and a bounded scale in another: the sizes of such numbers "
            "cannot be compared. How consistent raters are can; see below.",
        )
    table = _geometric_table if measures.main.is_log else _means_table
    parts: list[Table | Figure] = [table(study, measures, rows, options), *_figures(study, measures, rows, options)]
    main = effects[0]
    paragraphs = [effect_sentence(main, contrast) for factor in main.factors for contrast in contrasts(factor)]
    return Section("ratings_by_condition", TITLE, (*paragraphs, _reading(main)), tuple(parts))


def effects_section(
    study: Study, measures: Measures, rows: RaterRows, effects: list[FactorEffects], options: Options
) -> Section:
    """Effects of the factors with their tests and sizes, and the plain means of magnitudes."""
    parts: list[Table | Figure] = [_effects_table(effects), _sizes_table(study, effects)]
    if measures.main.is_log:
        parts.insert(0, _means_table(study, measures, rows, options))
    return Section("effects", EFFECTS_TITLE, (), tuple(parts))


def _reading(effects: FactorEffects) -> str:
    """Which numbers come from where: those of the sentences are of a model, those of the table below are not."""
    measure = effects.measure
    what = "ratios" if measure.is_log else "differences"
    model = "linear model of one mean per rater" if effects.is_by_means else "mixed model"
    text = (
        f"The {what} above, their confidence intervals and p-values come from a {model}; permutation and Cohen's d "
        "compare the raters' means. In the means by condition below every rater counts once, and their confidence intervals "
        "resample raters."
    )
    if measure.is_log:
        text += (
            " Magnitudes are ratios, so effects are tested on logarithms and shown as ratios of geometric means; the "
            "arithmetic means that published studies report are in the appendix."
        )
    return text


def cell_means(
    values: Floats, rows: RaterRows, options: Options, inside: np.ndarray | None = None, *, is_log: bool = False
) -> list[Estimate]:
    """The mean over raters in every condition; a condition without raters is unknown and says so."""
    means = []
    for number, name in enumerate(cell_names(rows.study)):
        chosen = (rows.cell == number) & ~np.isnan(values)
        if inside is not None:
            chosen &= inside
        if not chosen.any():
            whose = "" if inside is None else " of this group"
            means.append(unknown("mean over raters", f"no raters{whose} in “{name}”; recruit some", label=name))
            continue
        mean = mean_over_raters(
            values[chosen],
            **options.resampling,
            label=name,
        )
        means.append(as_geometric_mean(mean) if is_log else mean)
    return means


def cell_counts(values: Floats, rows: RaterRows, inside: np.ndarray | None = None) -> list[int]:
    """Raters with a value in every condition."""
    chosen = ~np.isnan(values) if inside is None else ~np.isnan(values) & inside
    return [int(n) for n in np.bincount(rows.cell[chosen], minlength=len(rows.study.cells))]


def _means_table(study: Study, measures: Measures, rows: RaterRows, options: Options) -> Table:
    by_measure = [cell_means(rows.raw[m.name], rows, options) for m in measures.all]
    counts = cell_counts(rows.raw[measures.main.name], rows)
    body: list[tuple[Cell, ...]] = [
        (name, counts[i], *(column[i] for column in by_measure)) for i, name in enumerate(cell_names(study))
    ]
    columns = [Column("condition", "Condition"), Column("raters", "Raters", "count")]
    columns += [Column(m.name, m.label, "estimate") for m in measures.all]
    return Table(
        "condition_means", f"Arithmetic mean {unit_words(measures.main.unit)} by condition", tuple(columns), tuple(body)
    )


def _geometric_table(study: Study, measures: Measures, rows: RaterRows, options: Options) -> Table:
    by_measure = [cell_means(rows.y[m.name], rows, options, is_log=True) for m in measures.all]
    body: list[tuple[Cell, ...]] = [
        (name, *(column[i] for column in by_measure)) for i, name in enumerate(cell_names(study))
    ]
    columns = [Column("condition", "Condition"), *(Column(m.name, m.label, "estimate") for m in measures.all)]
    return Table(
        "condition_geometric_means", "Geometric mean rating by condition", tuple(columns), tuple(body),
        caption="The mean for ratios: a rater who uses numbers ten times as large does not decide it alone.",
    )  # fmt: skip


def first_factor(study: Study) -> Factor:
    """The factor that is shown by colour: the anchor where there is one."""
    factors = study.spec.design.factors
    return next((factor for factor in factors if is_anchor(factor)), factors[0])


def cell_dots(study: Study, estimates: list[Estimate], facet: str = "") -> list[Dot]:
    """One dot for each condition: colour by the first factor, rows by the others."""
    chief = first_factor(study)
    dots = []
    for cell, estimate in zip(study.cells, estimates, strict=True):
        names = {
            factor.name: level_label(next(level for level in factor.levels if level.name == cell[factor.name]))
            for factor in study.spec.design.factors
        }
        group = names.pop(chief.name)
        dots.append(Dot(", ".join(names.values()) or group, estimate, group if names else "", facet))
    return dots


def cell_chart(
    study: Study, dots: list[Dot], title: str, limits: tuple[float, float], reference: float | None = None
) -> Spec:
    """The chart of conditions, the same look for ratings, minutes and consistency."""
    name = factor_label(first_factor(study))
    return dot_interval(dots, value_title=title, group_title=name, reference=reference, limits=limits)


def main_figure(study: Study, measures: Measures, rows: RaterRows, options: Options) -> Figure:
    """All criteria together, by condition."""
    main = measures.main
    means = _shown_means(main, rows, options)
    details = listed(f"{mean.label} {text}" for mean, text in zip(means, briefs(means), strict=True))
    return Figure(
        "ratings_by_condition",
        f"{_mean_word(main).capitalize()} rating by condition",
        cell_chart(study, cell_dots(study, means), f"{_mean_word(main)} {unit_words(main.unit)}", main.bounds),
        alt=f"{_mean_word(main).capitalize()} rating with its confidence interval in every condition: {details}.",
        caption=f"Over raters, with {confidence_words(options.confidence)} bootstrap confidence intervals.",
    )


def _shown_means(measure: Measure, rows: RaterRows, options: Options) -> list[Estimate]:
    """The means that the sentences speak of: geometric ones where effects are ratios."""
    values = rows.y if measure.is_log else rows.raw
    return cell_means(values[measure.name], rows, options, is_log=measure.is_log)


def _mean_word(measure: Measure) -> str:
    return "geometric mean" if measure.is_log else "mean"


def _figures(study: Study, measures: Measures, rows: RaterRows, options: Options) -> list[Figure]:
    figures = []
    if len(measures.criteria) > 1 and len({(m.unit, _ends(m)) for m in measures.criteria}) == 1:
        dots = [dot for m in measures.criteria for dot in cell_dots(study, _shown_means(m, rows, options), m.label)]
        mean = _mean_word(measures.criteria[0])
        details = listed(f"{dot.facet}, {dot.label}, {dot.group}: {brief(dot.estimate)}" for dot in dots)
        figures.append(
            Figure(
                "ratings_by_condition_and_criterion",
                f"{mean.capitalize()} rating by condition and criterion",
                cell_chart(study, dots, f"{mean} {unit_words(measures.criteria[0].unit)}", measures.criteria[0].bounds),
                alt=f"{mean.capitalize()} rating by condition, one panel per criterion. {details}.",
                caption=f"Over raters, with {confidence_words(options.confidence)} bootstrap confidence intervals.",
            )
        )
    return figures


def _ends(measure: Measure) -> tuple[str, ...]:
    return tuple(scale.describe() for scale in measure.scales)


def _effects_table(effects: list[FactorEffects]) -> Table:
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for effect in effects:
        for term, estimate in effect.fit.effects().items():
            permuted = effect.permuted.get(term, unknown("permutation", "no test"))
            is_difference = estimate.has_interval or len(estimate.df) == 1
            body.append(
                (
                    effect.measure.label,
                    effect.term_label(term),
                    shown(effect.measure, estimate, n_factors=len(term.split(":")))
                    if is_difference or not estimate.is_known
                    else estimate,
                    _statistic(estimate),
                    estimate.p_value if estimate.is_known else None,
                    permuted.p_value if permuted.is_known else None,
                    round(permuted.value, 6) if permuted.is_known else None,
                )
            )
            notes += [note for test in (estimate, permuted) if not test.is_known for note in test.notes]
    has_many_levels = any(len(factor.levels) > 2 for factor in effects[0].factors)
    if any(effect.is_by_means for effect in effects):
        notes.append("The study is too large for crossed random effects: the model works on one mean per rater.")
    return Table(
        "condition_effects",
        "Effects of the factors",
        (
            Column("criterion", "Criterion"),
            Column("effect", "Effect"),
            Column("estimate", effect_heading(effects[0].measure), "estimate"),
            Column("test", "Test"),
            Column("p", "p, mixed model", "p_value"),
            Column("p_permutation", "p, permutation", "p_value"),
            Column("eta_squared", "Partial η²", "number", 3),
        ),
        tuple(body),
        caption="The second level against the first, averaged over the other factors; a product of factors is the change "
        "of one effect by the other." + (ROOT_MEAN_SQUARE if has_many_levels else ""),
        notes=tuple(dict.fromkeys(notes)),
    )


def _statistic(estimate: Estimate) -> str:
    if not estimate.is_known:
        return ""
    name = "t" if len(estimate.df) == 1 else "F"
    df = ", ".join(f"{df:.1f}".removesuffix(".0") for df in estimate.df)
    return test_words(name, df, estimate.statistic)


def _sizes_table(study: Study, effects: list[FactorEffects]) -> Table:
    body: list[tuple[Cell, ...]] = []
    for effect in effects:
        for factor in study.spec.design.factors:
            for contrast in (*contrasts(factor), *simple_contrasts(study, factor)):
                first, second = effect.groups(contrast)
                d, delta = effect.sizes(contrast)
                difference = shown(effect.measure, effect.difference(contrast))
                p = difference.p_value if difference.is_known else None
                where = contrast.where_label
                body.append(
                    (effect.measure.label, contrast.short, where, len(first), len(second), difference, p, d, delta)
                )
    return Table(
        "condition_effect_sizes",
        "Sizes of the differences between conditions",
        (
            Column("criterion", "Criterion"),
            Column("compared", "Effect"),
            Column("where", "Where"),
            Column("raters_first", "Raters, first", "count"),
            Column("raters_second", "Raters, second", "count"),
            Column("estimate", effect_heading(effects[0].measure), "estimate"),
            Column("p", "p", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
            Column("cliffs_delta", "Cliff's δ", "estimate"),
        ),
        tuple(body),
        caption=f"{legend(study)} d and δ compare raters' means ({COHEN}). p-values are not corrected: exploratory.",
    )


MINUTES_TITLE = "Time taken by condition"
EFFECTS_TITLE = "Effects of the conditions in detail"


def minutes_section(rows: RaterRows, effects: FactorEffects, options: Options) -> Section:
    """Minutes from start to end of finished sessions: means by condition, the overall mean, and tests."""
    known = ~np.isnan(rows.minutes)
    if not known.any():
        raise NotEnoughData(
            "no finished session has a duration", remedy="times come from the study's own pages; imports may lack them"
        )
    study = rows.study
    overall = mean_over_raters(rows.minutes[known], **options.resampling)
    means = cell_means(rows.minutes, rows, options)
    counts = cell_counts(rows.minutes, rows)
    body: list[tuple[Cell, ...]] = []
    for number, name in enumerate(cell_names(study)):
        inside = rows.minutes[known & (rows.cell == number)]
        body.append((name, counts[number], means[number], quantile(inside, confidence=options.confidence)))
    everyone = quantile(rows.minutes[known], confidence=options.confidence)
    body.append(("all", int(known.sum()), overall, everyone))
    table = Table(
        "minutes_by_condition",
        "Minutes per session",
        (
            Column("condition", "Condition"),
            Column("raters", "Raters", "count"),
            Column("mean", "Mean minutes", "estimate", 0),
            Column("median", "Median minutes", "estimate", 0),
        ),
        tuple(body),
        caption="From the first to the last screen of finished sessions, pauses included.",
    )
    *texts, of_all = briefs([*means, overall], 0)
    details = listed(f"{mean.label} {text}" for mean, text in zip(means, texts, strict=True))
    figure = Figure(
        "minutes_by_condition",
        "Mean time by condition",
        cell_chart(study, cell_dots(study, means), "minutes per session", (0.0, math.inf), overall.value),
        alt=f"Mean minutes per session in every condition: {details}. Over all raters {of_all}.",
        caption=f"The dashed line is the mean over all raters, {overall.value:.0f} minutes.",
    )
    paragraphs = [
        f"A session took {with_interval(overall, unit='minutes', n_digits=0)} on average over {n_of(int(known.sum()), 'rater')}."
    ]
    paragraphs += [
        _sentence(effects, contrast, options) for factor in effects.factors for contrast in contrasts(factor)
    ]
    return Section("time", MINUTES_TITLE, tuple(paragraphs), (figure, table, _tests(effects, options)))


def _sentence(effects: FactorEffects, contrast: Contrast, options: Options) -> str:
    difference = welch_t(*effects.groups(contrast, effects.rows.minutes), confidence=options.confidence)
    level, base = level_label(contrast.level), level_label(contrast.base)
    if not difference.is_known:
        return f"Times under “{level}” and “{base}” cannot be compared: {difference.notes[0]}."
    longer = "longer" if difference.value >= 0 else "less"
    size = abs(difference.value)
    details = f"{interval_only(difference, n_digits=0)} minutes, {p_words(difference.p_value)}"
    if excludes(difference):
        return f"Raters took {size:.0f} minutes {longer} under “{level}” than under “{base}” ({details})."
    by = value_only(difference, n_digits=0)
    return f"Times under “{level}” and “{base}” do not differ significantly (difference {by} minutes, {details})."


def _tests(effects: FactorEffects, options: Options) -> Table:
    body: list[tuple[Cell, ...]] = []
    for factor in effects.factors:
        for contrast in (*contrasts(factor), *simple_contrasts(effects.study, factor)):
            groups = effects.groups(contrast, effects.rows.minutes)
            difference = welch_t(*groups, confidence=options.confidence)
            d = cohens_d(*groups, confidence=options.confidence)
            p = difference.p_value if difference.is_known else None
            body.append((contrast.short, contrast.where_label, len(groups[0]), len(groups[1]), difference, p, d))
    return Table(
        "minutes_effects",
        "Differences in time",
        (
            Column("compared", "Effect"),
            Column("where", "Where"),
            Column("raters_first", "Raters, first", "count"),
            Column("raters_second", "Raters, second", "count"),
            Column("difference", "Difference in minutes", "estimate", 0),
            Column("p", "p, Welch", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption=legend(effects.study),
    )
