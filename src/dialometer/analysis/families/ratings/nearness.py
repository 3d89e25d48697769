"""Whether an anchor draws raters to its value: their ratings as ratios to it, criterion by criterion and together.

Each criterion may have a value of its own. A rater enters with one number: the mean of the logarithms of the rater's ratings,
each relative to the value on its criterion. All criteria together are the mean over criteria.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dialometer.analysis.base.measures import OVERALL, Measure, Measures, RaterRows, mean_over_raters
from dialometer.analysis.base.wording import (
    as_geometric_mean,
    as_ratio,
    criterion_label,
    excludes,
    is_anchor,
    level_label,
    listed,
    p_words,
    with_interval,
)
from dialometer.analysis.families.ratings.factor_effects import Contrast, FactorEffects, contrasts
from dialometer.model.design import Level
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Table
from dialometer.model.study import Study
from dialometer.stats.effects.effect_size import cohens_d
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.observations import Floats

Anchors = dict[str, float]
"""Criterion to the anchor's value on it."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """How raters' means lie to the anchor's value, at a level that shows it and at the baseline that does not."""

    contrast: Contrast
    measure: Measure
    anchor: str
    """The value, or the values of several criteria, in words."""
    ratio_at_level: Estimate
    """The typical rating as a ratio to the value."""
    ratio_at_base: Estimate
    at_level: Estimate
    """How far raters are from the value in either direction, as a factor; 1 is right on it."""
    at_base: Estimate
    ratio: Estimate
    size: Estimate

    @property
    def is_nearer(self) -> bool | None:
        """Whether the anchor drew raters to its value; None where it is not known."""
        return self.ratio.value < 1 and excludes(self.ratio, 1.0) if self.ratio.has_interval else None


def shows_number(level: Level) -> bool:
    """Whether raters at this level see the standard's value."""
    return level.set.anchor in ("number", "both")


def nearness(main: FactorEffects, measures: Measures) -> list[Nearness]:
    """For every level that shows the anchor's number: all criteria together first, then each."""
    if not main.measure.is_log:
        return []
    made = []
    for contrast in (contrast for factor in main.factors if is_anchor(factor) for contrast in contrasts(factor)):
        if not shows_number(contrast.level) or shows_number(contrast.base):
            continue
        anchors = anchors_at(main.study, contrast)
        made += [_nearness(main, contrast, measure, measures, anchors) for measure in _anchored(measures, anchors)]
    return made


def anchors_at(study: Study, contrast: Contrast) -> Anchors:
    """The values that raters at the contrast's level see."""
    cell = next(cell for cell in study.cells if cell[contrast.factor.name] == contrast.level.name)
    values: Anchors = {}
    for block in study.blocks:
        values = {**study.shown_anchors(study.presentation(cell, block), study.block_criteria(block)), **values}
    return values


def _anchored(measures: Measures, anchors: Anchors) -> list[Measure]:
    """The measures all of whose criteria have a value."""
    return [measure for measure in measures.all if measure.is_log and set(measure.criteria) <= set(anchors)]


def relative_means(rows: RaterRows, measure: Measure, measures: Measures, anchors: Anchors) -> Floats:
    """Each rater's mean of the logarithm of rating over value."""
    parts = [m for m in measures.criteria if set(m.criteria) <= set(measure.criteria)]
    if measure.name != OVERALL:
        parts = [measure]
    each = np.stack([rows.y[m.name] - math.log(anchors[m.criteria[0]]) for m in parts])
    n = np.sum(~np.isnan(each), axis=0)
    return np.asarray(np.divide(np.nansum(each, axis=0), n, out=np.full(rows.n, np.nan), where=n > 0))


def _nearness(
    main: FactorEffects, contrast: Contrast, measure: Measure, measures: Measures, anchors: Anchors
) -> Nearness:
    options = main.options
    relative = relative_means(main.rows, measure, measures, anchors)
    groups = main.groups(contrast, np.abs(relative))
    at_level, at_base = main.groups(contrast, relative)
    typical = [
        as_geometric_mean(mean_over_raters(values, **options.resampling)) for values in (at_level, at_base, *groups)
    ]
    return Nearness(
        contrast,
        measure,
        _in_words(main.study, {name: anchors[name] for name in measure.criteria}),
        ratio_at_level=typical[0],
        ratio_at_base=typical[1],
        at_level=typical[2],
        at_base=typical[3],
        ratio=as_ratio(welch_t(*groups, confidence=options.confidence)),
        size=cohens_d(*groups, confidence=options.confidence),
    )


def _in_words(study: Study, anchors: Anchors) -> str:
    if len(set(anchors.values())) == 1:
        return f"{next(iter(anchors.values())):g}"
    return listed(f"{value:g} for {criterion_label(study, name)}" for name, value in anchors.items())


def anchor_ratio_table(distances: list[Nearness]) -> Table:
    """The typical rating as a ratio to the anchor's value."""
    body: list[tuple[Cell, ...]] = [
        (
            distance.measure.label,
            distance.anchor,
            level_label(distance.contrast.level),
            distance.ratio_at_level,
            level_label(distance.contrast.base),
            distance.ratio_at_base,
        )
        for distance in distances
    ]
    return Table(
        "ratio_to_anchor",
        "Ratings as ratios to the anchor's value",
        (
            Column("criterion", "Criterion"),
            Column("value", "Value"),
            Column("level", "Shown"),
            Column("at_level", "Rating ÷ value, where shown", "estimate"),
            Column("base", "Compared with"),
            Column("at_base", "Rating ÷ value, where not", "estimate"),
        ),
        tuple(body),
        caption="Typical ratings, as geometric means over raters; 1 is exactly the anchor's value. Raters without an anchor do not "
        "know the value.",
    )


def nearness_table(distances: list[Nearness]) -> Table:
    """How far raters' means lie from the anchor's value."""
    body: list[tuple[Cell, ...]] = []
    for distance in distances:
        p = distance.ratio.p_value if distance.ratio.is_known else None
        body.append(
            (
                distance.measure.label,
                distance.anchor,
                level_label(distance.contrast.level),
                distance.at_level,
                level_label(distance.contrast.base),
                distance.at_base,
                distance.ratio,
                p,
                distance.size,
            )
        )
    return Table(
        "nearness_to_anchor",
        "How far raters' means lie from the anchor's value",
        (
            Column("criterion", "Criterion"),
            Column("value", "Value"),
            Column("level", "Shown"),
            Column("at_level", "Factor away, where shown", "estimate"),
            Column("base", "Compared with"),
            Column("at_base", "Factor away, where not", "estimate"),
            Column("ratio", "Ratio of the two", "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption="How far the typical rater's mean is from the value, as a factor: 1 is exactly the value, 2 is half or twice that. A "
        "ratio below 1 means: nearer with the anchor. p-values are not corrected: exploratory.",
    )


def nearness_sentence(distance: Nearness) -> str:
    """Whether the anchor drew raters towards its value."""
    if not distance.ratio.is_known:
        return f"Whether raters came nearer to {distance.anchor} is not known: {distance.ratio.notes[0]}."
    level, base = level_label(distance.contrast.level), level_label(distance.contrast.base)
    moved = {True: "drew raters towards its value", False: "did not draw raters significantly towards its value"}
    verb = moved[bool(distance.is_nearer)]
    if distance.ratio.value > 1 and excludes(distance.ratio, 1.0):
        verb = "went with means further from its value"
    return (
        f"The anchor {verb}: the typical rater's mean is a factor of {with_interval(distance.at_level)} away from "
        f"{distance.anchor} under “{level}” and of {with_interval(distance.at_base)} under “{base}” "
        f"({p_words(distance.ratio.p_value)}; exploratory)."
    )


def together(distances: list[Nearness]) -> list[Nearness]:
    """One for each contrast: all criteria together, or the only one that has a value."""
    first: dict[str, Nearness] = {}
    for distance in distances:
        first.setdefault(f"{distance.contrast.label} {distance.contrast.where_label}", distance)
    return list(first.values())
