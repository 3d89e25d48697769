"""Where a factor works: more on one criterion than on another, and, for an anchor, towards its value.

Both questions are about raters, so every rater enters with one number: the difference of the rater's means on two
criteria, or the distance of the rater's mean from the anchor's value.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from dialometer.analysis.factor_effects import Contrast, FactorEffects, contrasts, legend
from dialometer.analysis.factor_sentences import effect_heading, shown
from dialometer.analysis.labels import factor_label, is_anchor, level_label
from dialometer.analysis.measures import Measures
from dialometer.analysis.rater_rows import mean_over_raters
from dialometer.analysis.words import as_geometric_mean, as_ratio, excludes, p_words, with_interval
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Table
from dialometer.model.study import Level
from dialometer.stats.effect_size import cohens_d
from dialometer.stats.two_groups import welch_t


@dataclass(frozen=True, slots=True)
class Nearness:
    """How far raters' means lie from the anchor's value (as a factor, 1 is right on it), at a level and at the baseline."""

    contrast: Contrast
    anchor: float
    at_level: Estimate
    at_base: Estimate
    ratio: Estimate
    size: Estimate

    @property
    def is_nearer(self) -> bool | None:
        """Whether the anchor drew raters to its value; None where it is not known."""
        return self.ratio.value < 1 and excludes(self.ratio, 1.0) if self.ratio.has_interval else None


def criteria_table(measures: Measures, main: FactorEffects) -> Table | None:
    """Is the effect of a factor larger on one criterion than on another?"""
    if len(measures.criteria) < 2 or len({m.unit for m in measures.criteria}) > 1:
        return None
    body: list[tuple[Cell, ...]] = []
    options = main.options
    for factor in main.factors:
        for contrast in contrasts(factor):
            for one, two in itertools.combinations(measures.criteria, 2):
                gap = main.rows.y[one.name] - main.rows.y[two.name]
                found = welch_t(*main.groups(contrast, gap), confidence=options.confidence)
                d = cohens_d(*main.groups(contrast, gap), confidence=options.confidence)
                p = found.p_value if found.is_known else None
                body.append((contrast.short, one.label, two.label, shown(one, found), p, d))
    return Table(
        "effects_by_criterion",
        "Is an effect larger on one criterion?",
        (
            Column("compared", "Effect"),
            Column("first", "On"),
            Column("second", "Relative to"),
            Column("estimate", effect_heading(main.measure), "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption=f"{legend(main.study)} The effect on the first criterion relative to that on the second, from each rater's "
        "own difference.",
    )


def nearness(main: FactorEffects) -> list[Nearness]:
    """For every level that shows the anchor's number: are raters' means nearer to it than without?"""
    modulus = main.measure.modulus
    if not main.measure.is_log or not modulus:
        return []
    return [
        _nearness(main, contrast, modulus)
        for factor in main.factors
        if is_anchor(factor)
        for contrast in contrasts(factor)
        if shows_number(contrast.level) and not shows_number(contrast.base)
    ]


def shows_number(level: Level) -> bool:
    """Whether raters at this level see the standard's value."""
    return level.set.anchor in ("number", "both")


def _nearness(main: FactorEffects, contrast: Contrast, modulus: float) -> Nearness:
    distance = np.abs(main.rows.y[main.measure.name] - math.log(modulus))
    groups = main.groups(contrast, distance)
    options = main.options
    means = [
        as_geometric_mean(
            mean_over_raters(values, confidence=options.confidence, n_resamples=options.n_resamples, seed=options.seed)
        )
        for values in groups
    ]
    ratio = as_ratio(welch_t(*groups, confidence=options.confidence))
    return Nearness(contrast, modulus, means[0], means[1], ratio, cohens_d(*groups, confidence=options.confidence))


def nearness_table(found: list[Nearness]) -> Table:
    """How far raters' means lie from the anchor's value."""
    body: list[tuple[Cell, ...]] = []
    for one in found:
        p = one.ratio.p_value if one.ratio.is_known else None
        body.append(
            (
                factor_label(one.contrast.factor),
                level_label(one.contrast.level),
                one.at_level,
                level_label(one.contrast.base),
                one.at_base,
                one.ratio,
                p,
                one.size,
            )
        )
    value = f"{found[0].anchor:g}"
    return Table(
        "nearness_to_anchor",
        f"How far raters' means lie from the anchor's value ({value})",
        (
            Column("factor", "Factor"),
            Column("level", "Shown"),
            Column("at_level", "Typical factor away", "estimate"),
            Column("base", "Compared with"),
            Column("at_base", "Typical factor away", "estimate"),
            Column("ratio", "Ratio of the two", "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption=f"A factor of 1 is exactly {value}; 2 is half or twice that. A ratio below 1 means: nearer with the anchor.",
    )


def nearness_sentence(one: Nearness) -> str:
    """Whether the anchor drew raters towards its value."""
    if not one.ratio.is_known:
        return f"Whether raters came nearer to {one.anchor:g} is not known: {one.ratio.notes[0]}."
    level, base = level_label(one.contrast.level), level_label(one.contrast.base)
    moved = {True: "drew raters towards its value", False: "did not demonstrably draw raters towards its value"}
    verb = moved[bool(one.is_nearer)]
    if one.ratio.value > 1 and excludes(one.ratio, 1.0):
        verb = "went with means further from its value"
    return (
        f"The anchor {verb}: the typical rater's mean is a factor of {with_interval(one.at_level)} away from "
        f"{one.anchor:g} under “{level}” and of {with_interval(one.at_base)} under “{base}” ({p_words(one.ratio.p_value)})."
    )
