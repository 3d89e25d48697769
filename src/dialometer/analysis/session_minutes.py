"""How long sessions took in each condition."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.condition_ratings import cell_chart, cell_counts, cell_dots, cell_means
from dialometer.analysis.factor_effects import Contrast, FactorEffects, contrasts, legend, simple_contrasts
from dialometer.analysis.family import Options
from dialometer.analysis.labels import cell_names, level_label
from dialometer.analysis.rater_rows import RaterRows, mean_over_raters
from dialometer.analysis.words import excludes, interval_only, listed, n_of, p_words, with_interval
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.stats.distribution import quantile
from dialometer.stats.effect_size import cohens_d
from dialometer.stats.two_groups import welch_t

TITLE = "Time taken by condition"


def minutes_section(rows: RaterRows, effects: FactorEffects, options: Options) -> Section:
    """Minutes from start to end of finished sessions: means by condition, the overall mean, and tests."""
    known = ~np.isnan(rows.minutes)
    if not known.any():
        raise NotEnoughData(
            "no finished session has a duration", remedy="times come from the study's own pages; imports may lack them"
        )
    study = rows.study
    overall = mean_over_raters(
        rows.minutes[known], confidence=options.confidence, n_resamples=options.n_resamples, seed=options.seed
    )
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
            Column("mean", "Mean minutes", "estimate"),
            Column("median", "Median minutes", "estimate"),
        ),
        tuple(body),
        caption="From the first to the last screen of finished sessions, pauses included.",
    )
    told = listed(f"{one.label} {one}" for one in means)
    figure = Figure(
        "minutes_by_condition",
        "Mean time by condition",
        cell_chart(study, cell_dots(study, means), "minutes per session", reference=overall.value),
        alt=f"Mean minutes per session in every condition: {told}. Over all raters {overall}.",
        caption=f"The dashed line is the mean over all raters, {overall.value:.1f} minutes.",
    )
    said = [
        f"A session took {with_interval(overall, unit='minutes')} on average over {n_of(int(known.sum()), 'rater')}."
    ]
    said += [_sentence(effects, one, options) for factor in effects.factors for one in contrasts(factor)]
    return Section("time", TITLE, tuple(said), (figure, table, _tests(effects, options)))


def _sentence(effects: FactorEffects, contrast: Contrast, options: Options) -> str:
    found = welch_t(*effects.groups(contrast, effects.rows.minutes), confidence=options.confidence)
    level, base = level_label(contrast.level), level_label(contrast.base)
    if not found.is_known:
        return f"Times under “{level}” and “{base}” cannot be compared: {found.notes[0]}."
    longer = "longer" if found.value >= 0 else "less long"
    size = abs(found.value)
    told = f"{interval_only(found)} minutes, {p_words(found.p_value)}"
    if excludes(found):
        return f"Raters took {size:.1f} minutes {longer} under “{level}” than under “{base}” ({told})."
    return f"Times under “{level}” and “{base}” are not demonstrably different: {found.value:+.1f} minutes ({told})."


def _tests(effects: FactorEffects, options: Options) -> Table:
    body: list[tuple[Cell, ...]] = []
    for factor in effects.factors:
        for contrast in (*contrasts(factor), *simple_contrasts(effects.study, factor)):
            groups = effects.groups(contrast, effects.rows.minutes)
            found = welch_t(*groups, confidence=options.confidence)
            d = cohens_d(*groups, confidence=options.confidence)
            p = found.p_value if found.is_known else None
            body.append((contrast.short, contrast.where_label, len(groups[0]), len(groups[1]), found, p, d))
    return Table(
        "minutes_effects",
        "Differences in time",
        (
            Column("compared", "Effect"),
            Column("where", "Where"),
            Column("raters_first", "Raters, first", "count"),
            Column("raters_second", "Raters, second", "count"),
            Column("difference", "Difference in minutes", "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption=legend(effects.study),
    )
