"""Whether a factor changes how systems compare: differences between systems by condition, and their changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dialometer.analysis.base.wording import (
    after_correction,
    correction_name,
    excludes,
    inside,
    level_label,
    listed,
    p_words,
)
from dialometer.analysis.families.ratings.factor_effects import (
    Contrast,
    FactorEffects,
    contrasts,
    effect_heading,
    legend,
    shown,
)
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.observations import Floats

BY_CONDITION_TITLE = "Does the condition change how systems compare?"


@dataclass(frozen=True)
class Shift:
    """The difference of two systems at a level, at the baseline, and the change between the two."""

    contrast: Contrast
    first: str
    second: str
    at_level: Estimate
    at_base: Estimate
    change: Estimate
    p_adjusted: float

    @property
    def names(self) -> str:
        """The two systems with a dash, so that pairs in a list stay apart."""
        return f"{self.first} – {self.second}"

    @property
    def is_reversed(self) -> bool:
        """Whether the two systems change places significantly."""
        is_sure = excludes(self.at_level) and excludes(self.at_base)
        return is_sure and (self.at_level.value > 0) != (self.at_base.value > 0)


def shifts(effects: FactorEffects, ratings: SystemRatings) -> list[Shift]:
    """Every pair of systems under every contrast of the factors, from each rater's mean difference."""
    options = effects.options
    changes: list[Shift] = []
    for factor in effects.factors:
        for contrast in contrasts(factor):
            rows: list[tuple[str, str, Estimate, Estimate, Estimate]] = []
            for pair in ratings.pairs:
                level, base = effects.groups(contrast, ratings.rater_gaps(pair.first, pair.second))
                change = welch_t(level, base, confidence=options.confidence)
                names = ratings.label(pair.first), ratings.label(pair.second)
                rows.append((*names, _mean(level, options.confidence), _mean(base, options.confidence), change))
            adjusted = adjust([row[-1].p_value for row in rows], options.correction)
            changes += [Shift(contrast, *row, float(p)) for row, p in zip(rows, adjusted, strict=True)]
    return changes


def _mean(gaps: Floats, confidence: float) -> Estimate:
    mean = clustered_mean(gaps, np.arange(len(gaps)), null=0.0, confidence=confidence)
    return replace(mean, method="mean over raters")


def shift_section(effects: FactorEffects, ratings: SystemRatings) -> Section:
    """The table of shifts, and whether the order of systems depends on the condition."""
    found_shifts = shifts(effects, ratings)
    if not found_shifts:
        raise NotEnoughData("fewer than two systems with judgments", remedy="compare at least two systems")
    measure = ratings.measure
    body: list[tuple[Cell, ...]] = [
        (
            shift.contrast.short,
            shift.first,
            shift.second,
            shown(measure, shift.at_level),
            shown(measure, shift.at_base),
            shown(measure, shift.change, n_factors=2),
            shift.change.p_value if shift.change.is_known else None,
            shift.p_adjusted if shift.change.is_known else None,
        )
        for shift in found_shifts
    ]
    heading = effect_heading(measure)
    correction = effects.options.correction
    table = Table(
        "systems_by_condition",
        f"Differences between systems by condition, {inside(measure.label)}",
        (
            Column("compared", "Effect"),
            Column("first", "System"),
            Column("second", "Compared with"),
            Column("at_level", f"{heading}, first condition", "estimate"),
            Column("at_base", f"{heading}, second condition", "estimate"),
            Column("change", "First relative to second", "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("p_adjusted", f"p ({correction_name(correction)})", "p_value"),
        ),
        tuple(body),
        caption=f"{legend(effects.study)} From each rater's mean difference between the two systems; confidence intervals are about "
        "other raters, not about other items. Exploratory.",
    )
    return Section("systems_by_condition", BY_CONDITION_TITLE, tuple(shift_sentences(effects, found_shifts)), (table,))


def shift_sentences(effects: FactorEffects, found_shifts: list[Shift]) -> list[str]:
    """For every contrast: which differences change and how, whether systems change places, or that nothing is significant."""
    paragraphs = []
    for factor in effects.factors:
        for contrast in contrasts(factor):
            own = [shift for shift in found_shifts if shift.contrast == contrast]
            level, base = level_label(contrast.level), level_label(contrast.base)
            moved = [shift for shift in own if shift.p_adjusted < 1 - effects.options.confidence]
            turned = [shift.names for shift in own if shift.is_reversed]
            said = [_moved(effects, moved, level, base)] if moved else []
            if turned:
                said.append(f"Between “{level}” and “{base}” these systems change places: {listed(turned)}")
            elif moved:
                said.append("No systems change places significantly")
            else:
                said.append(f"Differences between systems do not change significantly between “{level}” and “{base}”")
            paragraphs.append(". ".join([*said, "Exploratory; about other raters, for these items."]))
    return paragraphs


def _moved(effects: FactorEffects, moved: list[Shift], level: str, base: str) -> str:
    """Which differences are smaller and which larger at the level than at the baseline, significantly."""
    is_log = effects.measure.is_log
    noun, words = ("ratio", ("closer to 1", "farther from 1")) if is_log else ("difference", ("smaller", "larger"))
    parts = []
    for word, is_larger in zip(words, (False, True), strict=True):
        own = [shift for shift in moved if (abs(shift.at_level.value) > abs(shift.at_base.value)) == is_larger]
        if own:
            names = listed(f"{shift.names} ({p_words(shift.p_adjusted)})" for shift in own)
            is_one = len(own) == 1
            parts.append(
                f"the {noun}{'' if is_one else 's'} of {names} {'is' if is_one else 'are'} significantly {word}"
            )
    return f"Under “{level}”, {' and '.join(parts)} than under “{base}”{after_correction(effects.options.correction)}"
