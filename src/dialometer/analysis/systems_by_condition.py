"""Does a factor change how systems compare? If it does, the answer of a study depends on how it was asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dialometer.analysis.factor_effects import Contrast, FactorEffects, contrasts, legend
from dialometer.analysis.factor_sentences import effect_heading, shown
from dialometer.analysis.labels import level_label
from dialometer.analysis.system_ratings import SystemRatings
from dialometer.analysis.words import correction_name, excludes, listed
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered import clustered_mean
from dialometer.stats.multiplicity import adjust
from dialometer.stats.observations import Floats
from dialometer.stats.two_groups import welch_t

TITLE = "Does the condition change how systems compare?"


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
    def is_reversed(self) -> bool:
        """Whether the two systems demonstrably change places."""
        is_sure = excludes(self.at_level) and excludes(self.at_base)
        return is_sure and (self.at_level.value > 0) != (self.at_base.value > 0)


def shifts(effects: FactorEffects, ratings: SystemRatings) -> list[Shift]:
    """Every pair of systems under every contrast of the factors, from each rater's mean difference."""
    options = effects.options
    found: list[Shift] = []
    for factor in effects.factors:
        for contrast in contrasts(factor):
            rows: list[tuple[str, str, Estimate, Estimate, Estimate]] = []
            for pair in ratings.pairs:
                level, base = effects.groups(contrast, ratings.rater_gaps(pair.first, pair.second))
                change = welch_t(level, base, confidence=options.confidence)
                names = ratings.label(pair.first), ratings.label(pair.second)
                rows.append((*names, _mean(level, options.confidence), _mean(base, options.confidence), change))
            adjusted = adjust([row[-1].p_value for row in rows], options.correction)  # type: ignore[arg-type]
            found += [Shift(contrast, *row, float(p)) for row, p in zip(rows, adjusted, strict=True)]
    return found


def _mean(gaps: Floats, confidence: float) -> Estimate:
    found = clustered_mean(gaps, np.arange(len(gaps)), null=0.0, confidence=confidence)
    return replace(found, method="mean over raters")


def shift_section(effects: FactorEffects, ratings: SystemRatings) -> Section:
    """The table of shifts, and whether the order of systems depends on the condition."""
    found = shifts(effects, ratings)
    if not found:
        raise NotEnoughData("fewer than two systems with judgments", remedy="compare at least two systems")
    measure = ratings.measure
    body: list[tuple[Cell, ...]] = [
        (
            one.contrast.short,
            one.first,
            one.second,
            shown(measure, one.at_level),
            shown(measure, one.at_base),
            shown(measure, one.change),
            one.change.p_value if one.change.is_known else None,
            one.p_adjusted if one.change.is_known else None,
        )
        for one in found
    ]
    heading = effect_heading(measure)
    correction = effects.options.correction
    table = Table(
        "systems_by_condition",
        f"Differences between systems by condition, {measure.label.lower()}",
        (
            Column("compared", "Effect"),
            Column("first", "System"),
            Column("second", "Compared with"),
            Column("at_level", f"{heading}, first condition", "estimate"),
            Column("at_base", f"{heading}, second condition", "estimate"),
            Column("change", "First relative to second", "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("p_adjusted", f"p, {correction_name(correction)}", "p_value"),
        ),
        tuple(body),
        caption=f"{legend(effects.study)} From each rater's mean difference between the two systems; intervals speak for "
        "other raters, not for other items. Exploratory.",
    )
    return Section("systems_by_condition", TITLE, tuple(shift_sentences(effects, found)), (table,))


def shift_sentences(effects: FactorEffects, found: list[Shift]) -> list[str]:
    """For every contrast: whether systems change places, only their distance changes, or nothing is demonstrable."""
    said = []
    alpha = 1 - effects.options.confidence
    for factor in effects.factors:
        for contrast in contrasts(factor):
            own = [one for one in found if one.contrast == contrast]
            level, base = level_label(contrast.level), level_label(contrast.base)
            turned = [f"{one.first} and {one.second}" for one in own if one.is_reversed]
            moved = [f"{one.first} and {one.second}" for one in own if one.p_adjusted < alpha]
            if turned:
                said.append(f"Between “{level}” and “{base}” these systems change places: {listed(turned)}.")
            elif moved:
                said.append(
                    f"Between “{level}” and “{base}” the distance between {listed(moved)} changes; none change places "
                    "demonstrably."
                )
            else:
                said.append(f"Differences between systems do not demonstrably depend on “{level}” or “{base}”.")
    return said
