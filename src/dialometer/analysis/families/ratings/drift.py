"""Which raters drift: whether a single rater's level, or agreement with the others, changes over the session."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure
from dialometer.analysis.base.wording import (
    after_correction,
    as_ratio,
    briefs,
    correction_name,
    inside,
    listed,
    n_of,
    p_words,
    percent,
)
from dialometer.analysis.families.ratings.factor_effects import null_of
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.report.numbers import SCALE_POINTS
from dialometer.stats.effects.drift import RaterSlopes, rater_slopes
from dialometer.stats.observations import Floats, Ints, only

MOST_SHOWN = 12
PER_ITEMS = 10
UNITS = {"log": "as a factor", "percent": SCALE_POINTS, "points": "points", "z": "z"}
"""What a change of ratings is counted in."""


def n_steps(measure: Measure) -> int:
    """Over how many items a change is given: ten, or a whole session where that is shorter, since what would happen over ten
    items of which nobody saw more than three is not known."""
    longest = int(measure.position.max(initial=0))
    return PER_ITEMS if longest >= PER_ITEMS else max(longest - 1, 1)


def span_words(measure: Measure) -> str:
    """The items of a change in words."""
    steps = n_steps(measure)
    return f"per {PER_ITEMS} items" if steps == PER_ITEMS else f"from the first to the last of {steps + 1} items"


def shown_change(measure: Measure, slope: Estimate) -> Estimate:
    """A slope as readers want it. It is a rate and not a difference of two ratings, so the ends of the scale do not cut it."""
    if measure.is_log:
        return as_ratio(slope)
    return replace(slope, unit=SCALE_POINTS) if measure.unit == "percent" else slope


def change_heading(measure: Measure) -> str:
    """What a column or an axis of changes holds."""
    return f"Change {span_words(measure)}, {UNITS[measure.unit]}"


def drifting_raters(
    measure: Measure, rest: Floats, options: Options
) -> tuple[tuple[str, ...], tuple[Table | Figure, ...]]:
    """Sentences, a table of the raters who drift and a small figure; ``rest`` is each rating relative to what was rated."""
    placed = measure.position > 0
    rater, position, level_there = only(placed, measure.rater, measure.position, rest)
    times = position / n_steps(measure)
    level = _slopes(measure, level_there, times, rater, options)
    if level is None:
        return (), ()
    (distance,) = only(placed, np.abs(rest - _level(measure, rest)))
    apart = _slopes(measure, distance, times, rater, options)
    paragraphs = [_level_sentence(level, options)]
    if apart is not None:
        paragraphs.append(_agreement_sentence(apart, options))
    return tuple(paragraphs), (_figure(measure, level, options), _table(measure, level, apart, options))


def _slopes(measure: Measure, values: Floats, times: Floats, rater: Ints, options: Options) -> RaterSlopes | None:
    """The raters' lines under their names."""
    slopes = rater_slopes(values, times, rater, correction=options.correction)
    if slopes is None:
        return None
    names = np.array(measure.book.raters, dtype=object)[np.asarray(slopes.raters, dtype=np.int64)]
    return replace(slopes, raters=tuple(names.tolist()))


def _level(measure: Measure, rest: Floats) -> Floats:
    """Each rater's own level, for every judgment."""
    n = len(measure.book.raters)
    mean = np.bincount(measure.rater, weights=rest, minlength=n) / np.maximum(
        np.bincount(measure.rater, minlength=n), 1
    )
    return np.asarray(mean[measure.rater])


def _significant(slopes: RaterSlopes, options: Options) -> list[int]:
    return np.flatnonzero(slopes.p_adjusted < 1 - options.confidence).tolist()


def _level_sentence(slopes: RaterSlopes, options: Options) -> str:
    places = _significant(slopes, options)
    n = len(slopes.slopes)
    after = after_correction(options.correction)
    differ = "differ" if slopes.p_equal < 1 - options.confidence else "do not differ"
    equal = f"raters {differ} significantly in drift ({p_words(slopes.p_equal)})."
    if not places:
        return f"None of {n_of(n, 'rater')} drifts significantly in level over the session{after}; {equal}"
    who = listed([str(slopes.raters[place]) for place in places], most=5)
    return (
        f"{len(places)} of {n_of(n, 'rater')} ({percent(len(places) / n)}) "
        f"{'drifts' if len(places) == 1 else 'drift'} significantly in level over the session{after}: {who}; {equal}"
    )


def _agreement_sentence(slopes: RaterSlopes, options: Options) -> str:
    places = _significant(slopes, options)
    after = after_correction(options.correction)
    if not places:
        return f"No rater's agreement with the others changes significantly over the session{after}."
    worse = [str(slopes.raters[place]) for place in places if slopes.slopes[place] > 0]
    better = [str(slopes.raters[place]) for place in places if slopes.slopes[place] < 0]
    entries = [f"falls for {listed(worse, most=5)}"] if worse else []
    entries += [f"rises for {listed(better, most=5)}"] if better else []
    return f"Over the session, agreement with the others {' and '.join(entries)}, significantly{after}."


def _estimate(slopes: RaterSlopes, place: int, options: Options, *, is_shrunken: bool) -> Estimate:
    value, error = (slopes.shrunken, slopes.shrunken_errors) if is_shrunken else (slopes.slopes, slopes.errors)
    quantile = float(stats.t.isf((1 - options.confidence) / 2, slopes.df[place]))
    reach, centre = quantile * float(error[place]), float(value[place])
    method = "slope of one rater" + (", shrunken towards the mean" if is_shrunken else "")
    return Estimate(
        centre,
        int(slopes.df[place]) + 2,
        method,
        low=centre - reach,
        high=centre + reach,
        confidence=options.confidence,
        interval_method="Student's t",
    )


def _clearest(slopes: RaterSlopes) -> list[int]:
    """The raters whose drift is clearest (smallest p-value first): the same ones in figure and table."""
    return [int(place) for place in np.argsort(slopes.p_values, kind="stable")[:MOST_SHOWN]]


def _figure(measure: Measure, slopes: RaterSlopes, options: Options) -> Figure:
    dots = [
        Dot(str(slopes.raters[place]), shown_change(measure, _estimate(slopes, place, options, is_shrunken=False)))
        for place in sorted(_clearest(slopes), key=lambda place: slopes.slopes[place])
    ]
    written = briefs(dot.estimate for dot in dots)
    texts = [f"{dot.label} {text}" for dot, text in zip(dots, written, strict=True)]
    return Figure(
        "drift_of_raters",
        "Drift of single raters",
        dot_interval(dots, value_title=inside(change_heading(measure)), reference=null_of(measure)),
        alt=f"Change of level {span_words(measure)} for {listed(texts)}.",
        caption=f"{_who(slopes)}, from falling to rising; the numbers are those of the table.",
    )


def _who(slopes: RaterSlopes) -> str:
    """Which raters are shown."""
    n = len(slopes.slopes)
    return f"The {MOST_SHOWN} of {n} raters whose drift is clearest" if n > MOST_SHOWN else "All raters"


def _table(measure: Measure, level: RaterSlopes, apart: RaterSlopes | None, options: Options) -> Table:
    of_agreement = (
        {} if apart is None else {rater: float(p) for rater, p in zip(apart.raters, apart.p_adjusted, strict=True)}
    )
    body: list[tuple[Cell, ...]] = [
        (
            str(level.raters[place]),
            shown_change(measure, _estimate(level, place, options, is_shrunken=False)),
            *([shown_change(measure, _estimate(level, place, options, is_shrunken=True))] if level.sd > 0 else []),
            float(level.p_adjusted[place]),
            of_agreement.get(level.raters[place]),
        )
        for place in _clearest(level)
    ]
    return Table(
        "drift_of_raters",
        "Raters whose drift is clearest",
        (
            Column("rater", "Rater"),
            Column("slope", change_heading(measure), "estimate"),
            *([Column("shrunken", "The same, shrunken", "estimate")] if level.sd > 0 else []),
            Column("p_level", f"p, level ({correction_name(options.correction)})", "p_value"),
            Column("p_agreement", f"p, agreement ({correction_name(options.correction)})", "p_value"),
        ),
        tuple(body),
        caption=f"{_who(level)}. A straight line per rater through the ratings relative to the mean of what was rated; "
        "agreement is the distance to that mean, without the rater's own level."
        + (
            " Shrunken slopes are pulled towards the mean of all raters by the share of chance in them."
            if level.sd > 0
            else ""
        ),
    )
