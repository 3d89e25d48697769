"""The ordinal model of one measure: for studies that declare it, and as another way to look at those that do not."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure
from dialometer.analysis.base.scale_units import alpha_level
from dialometer.stats.effects.ordinal_systems import OrdinalSystems, ordinal_systems
from dialometer.stats.observations import Floats, n_distinct

MOST_CELLS = 250_000


def has_order(measure: Measure) -> bool:
    """Whether a measure is one criterion on the points of one ordered scale, such as a Likert scale."""
    sets = {tuple(scale.category_labels()) for scale in measure.scales}
    is_one = len(measure.criteria) == 1 and measure.unit == "points" and len(sets) == 1
    return is_one and alpha_level(measure.scales) == "ordinal" and bool(next(iter(sets)))


def is_quick(measure: Measure) -> bool:
    """Whether the ordinal model takes about a second, so that a report may fit it beside the declared one."""
    levels = [n_distinct(codes) for codes in (measure.rater, measure.item, measure.system)]
    return levels[0] * levels[1] * (levels[2] + 1) ** 2 <= MOST_CELLS


def rated_points(measure: Measure) -> Floats:
    """Each rating as a point of the scale; the mean of repeated judgments goes to the nearest point."""
    points = np.array(sorted(measure.scales[0].category_labels()))
    return np.asarray(points[np.abs(measure.raw[:, None] - points).argmin(axis=1)])


def ordinal_of(measure: Measure, options: Options) -> OrdinalSystems:
    """The cumulative link mixed model of a measure; systems are known by their codes."""
    return ordinal_systems(
        rated_points(measure),
        measure.system,
        measure.rater,
        measure.item,
        has_fixed_items=options.has_fixed_items,
        confidence=options.confidence,
    )
