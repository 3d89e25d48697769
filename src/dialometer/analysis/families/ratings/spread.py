"""How ratings are spread: by system, over the things that raters disagree about, by position on the screen and over time."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options, section_or_problem
from dialometer.analysis.base.measures import Measure, Measures, means_by_group
from dialometer.analysis.base.rater_parts import by_raters
from dialometer.analysis.base.wording import (
    as_ratio,
    confidence_words,
    excludes,
    inside,
    interval_only,
    listed,
    p_words,
    percent,
    system_label,
    value_only,
)
from dialometer.analysis.families.ratings.drift import UNITS, drifting_raters, n_steps, shown_change, span_words
from dialometer.analysis.families.ratings.factor_effects import null_of, shown, unit_name
from dialometer.analysis.shared.comparisons import is_significant, no_position_words, p_cells, p_columns
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.item import ArenaItem, ChatItem, DialogueItem, PairItem, ResponsesItem
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import LinePoint, Share, lines, stacked_shares, strip
from dialometer.report.numbers import write_number
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.effects.multiplicity import Correction, adjust_estimates
from dialometer.stats.observations import Floats, Ints

N_DISPUTED = 10
ALIKE = 1e-9
"""A spread below this is rounding: all raters gave the same."""
FEWEST_RATERS = 3
FEWEST_RATINGS = 3
"""Ratings below which nobody is said to give always the same number."""
TEXT_LENGTH = 90


def distribution_section(study: Study, measures: Measures) -> Section:
    """The shape of the ratings: shares of the points of a Likert scale, quartiles of free numbers."""
    parts: list[Figure] = []
    paragraphs: list[str] = []
    for measure in measures.criteria:
        has_points = measure.unit == "points" and all(scale.category_labels() for scale in measure.scales)
        parts.append(_shares_figure(study, measure) if has_points else _strip_figure(study, measure))
        paragraphs += _ends_sentence(measure)
        paragraphs += [f"{measure.label}: {note}" for note in measure.notes]
        n_ratings = np.bincount(measure.rater, minlength=len(measure.book.raters))
        rated_enough = {name for name, n in zip(measure.book.raters, n_ratings, strict=True) if n >= FEWEST_RATINGS}
        if always := [name for name in measure.constant_raters if name in rated_enough]:
            paragraphs.append(
                f"{measure.label}: always the same number by {listed(always)}; such raters cannot distinguish systems."
            )
    return Section("distribution", "Distribution of the ratings", tuple(paragraphs), tuple(parts))


def _codes(study: Study, measure: Measure) -> list[int]:
    names = measure.book.systems
    order = [names.index(system.name) for system in study.spec.systems if system.name in names]
    return [code for code in order if np.any(measure.system == code)]


def _shares_figure(study: Study, measure: Measure) -> Figure:
    points = measure.scales[0].category_labels()
    parts = list(points.values())
    shares, entries = [], []
    for code in _codes(study, measure):
        given = measure.raw[measure.system == code]
        label = system_label(study, measure.book.systems[code])
        for point, part in zip(points, parts, strict=True):
            share = float(np.mean(given == point))
            shares.append(Share(label, part, share))
        entries.append(f"{label}: {', '.join(percent(share.share) for share in shares[-len(points) :])}")
    return Figure(
        f"distribution_{measure.name}",
        f"Distribution of {measure.label}",
        stacked_shares(shares, parts=parts, is_ordered=True, value_title="share of judgments"),
        alt=f"Share of judgments at each point from {min(points):g} to {max(points):g}. {'; '.join(entries)}.",
    )


def _strip_figure(study: Study, measure: Measure) -> Figure:
    samples = {
        system_label(study, measure.book.systems[code]): measure.raw[measure.system == code]
        for code in _codes(study, measure)
    }
    is_log = measure.is_log
    if is_log:
        samples = {name: values[values > 0] for name, values in samples.items()}
    details = "; ".join(
        f"{name}: quartiles {', '.join(f'{q:.3g}' for q in np.quantile(values, [0.25, 0.5, 0.75]))}"
        for name, values in samples.items()
        if len(values)
    )
    return Figure(
        f"distribution_{measure.name}",
        f"Distribution of {measure.label}",
        strip(
            samples,
            value_title="rating" + (" (logarithmic axis)" if is_log else ""),
            limits=measure.bounds,
            is_log=is_log,
        ),
        alt=f"Single ratings of each system with quartiles. {details}.",
        caption="Points are single ratings (a selection where there are many), the bar spans the middle half, the mark "
        "is the median.",
    )


def _ends_sentence(measure: Measure) -> list[str]:
    """Ratings crowded at an end of the scale leave no room to show differences."""
    if measure.unit != "points":
        return []
    low, high = measure.scales[0].bounds()
    paragraphs = []
    for end, name in ((low, "lowest"), (high, "highest")):
        share = float(np.mean(measure.raw == end))
        if share > 0.3:
            paragraphs.append(
                f"{measure.label}: {percent(share)} of the ratings are at the {name} end of the scale, where "
                "differences can no longer show."
            )
    return paragraphs


def disputed_sections(study: Study, measures: Measures) -> tuple[Section, ...]:
    """What raters disagree about; nothing where the design itself gives every item too few raters to see it."""
    section = section_or_problem("disputed", "Most disputed items", lambda: disputed_section(study, measures))
    wanted = study.spec.design.judgments_per_item
    return () if section.problem and wanted is not None and wanted < FEWEST_RATERS else (section,)


def disputed_section(study: Study, measures: Measures) -> Section:
    """The things rated with the widest spread of judgments between raters."""
    body: list[tuple[Cell, ...]] = []
    for measure in measures.criteria:
        body += _disputed(study, measure, max(3, N_DISPUTED // len(measures.criteria)))
    if not body:
        if any(np.bincount(measure.target).max() >= FEWEST_RATERS for measure in measures.criteria):
            same = f"Nothing is disputed: what {FEWEST_RATERS} raters or more rated, all of them rated alike."
            return Section("disputed", "Most disputed items", (same,))
        raise NotEnoughData(f"nothing was rated by {FEWEST_RATERS} raters", remedy="have items judged by more raters")
    is_log = measures.criteria[0].is_log
    spread = "Spread (factor)" if is_log else "Standard deviation"
    table = Table(
        "disputed",
        "What raters disagree about most",
        (
            Column("criterion", "Criterion"),
            Column("item", "Item"),
            Column("system", "System"),
            Column("text", "Text"),
            Column("raters", "Raters", "count"),
            Column("mean", "Geometric mean" if is_log else "Mean", "number", 1),
            Column("spread", spread, "number", 1 if all(measure.is_wide for measure in measures.criteria) else 2),
            Column("range", "Range of ratings"),
        ),
        tuple(body),
        caption=_disputed_caption(measures.criteria[0]),
    )
    text = "Read these first: they show what the criterion leaves open, or items that were misunderstood."
    return Section("disputed", "Most disputed items", (text,), (table,))


def _disputed_caption(measure: Measure) -> str:
    if measure.is_log:
        return (
            "The spread is that between raters after each rater's own level is taken out, as raters chose their own numbers; a "
            "factor of 2 means: typically half or twice. The range is that of the ratings as they were given."
        )
    if measure.unit == "z":
        return "The standard deviation is that of z scores within raters, the range that of the ratings as they were given."
    return "Standard deviation between raters and range, both of the ratings as they were given."


def _disputed(study: Study, measure: Measure, most: int) -> list[tuple[Cell, ...]]:
    """Where raters differ most. Only where levels mean nothing are they taken out: elsewhere a rater's level on other things
    would be subtracted where it is not seen, and things that all rate alike would look disputed."""
    n = measure.n_targets
    centred = _without_level(measure) if measure.is_log else measure.y
    count = np.bincount(measure.target, minlength=n)
    mean = np.bincount(measure.target, weights=centred, minlength=n) / np.maximum(count, 1)
    square = np.bincount(measure.target, weights=(centred - mean[measure.target]) ** 2, minlength=n)
    spread = np.sqrt(square / np.maximum(count - 1, 1))
    spread[count < FEWEST_RATERS] = -1.0
    rows: list[tuple[Cell, ...]] = []
    n_digits = _digits(measure)
    for target in np.argsort(-spread, kind="stable")[:most].tolist():
        if spread[target] < ALIKE:
            continue
        judged = np.flatnonzero(measure.target == target)
        first, given = judged[0], measure.raw[judged]
        item, system = measure.book.items[measure.item[first]], measure.book.systems[measure.system[first]]
        centre = float(measure.y[judged].mean())
        rows.append(
            (
                measure.label,
                item,
                system_label(study, system),
                _text(study, item, system),
                int(count[target]),
                float(np.exp(centre)) if measure.is_log else centre,
                float(np.exp(spread[target])) if measure.is_log else float(spread[target]),
                " to ".join(write_number(float(end), n_digits) for end in (given.min(), given.max())),
            )
        )
    return rows


def _digits(measure: Measure) -> int:
    """Digits after the point that all ratings of a measure are written with: none where all are whole numbers."""
    most = 4 if measure.is_log else 1 if measure.is_wide or measure.unit == "percent" else 2
    return next((n for n in range(most) if np.allclose(measure.raw, measure.raw.round(n), rtol=0.0, atol=1e-9)), most)


N_ALTERNATIONS = 20


def _without_level(measure: Measure) -> np.ndarray:
    """Ratings less each rater's level: by how much a rater is above the others on the same things, whatever they were given."""
    level = np.zeros(len(measure.book.raters))
    for _ in range(N_ALTERNATIONS):  # least squares of raters and things in turn
        of_things = means_by_group(measure.y - level[measure.rater], measure.target, measure.n_targets)
        before, level = level, means_by_group(measure.y - of_things[measure.target], measure.rater, len(level))
        if np.allclose(level, before, rtol=0.0, atol=1e-6, equal_nan=True):
            break
    return np.asarray(measure.y - level[measure.rater])


def _text(study: Study, item_id: str, system: str) -> str:
    """What was rated, short enough for a table."""
    item = study.items_by_id.get(item_id)
    match item:
        case ResponsesItem():
            text = item.responses.get(system, "")
        case PairItem():
            side = next((side for side in (item.a, item.b) if side.system == system), item.a)
            text = side.turns[-1].text if side.turns else ""
        case DialogueItem():
            text = item.turns[-1].text if item.turns else ""
        case ChatItem() | ArenaItem():
            text = item.scenario
        case _:
            text = ""
    text = " ".join(text.split())
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1].rstrip() + "…"


# Order effects. Ratings are taken relative to the mean of what was rated, so that only the effect of the place is left. This
# works where places were drawn at random; where they were fixed, the section says that the two cannot be separated.


TITLE = "Order of presentation"
MOST_PLACES = 8
N_STRETCHES = 10


def order_section(data: StudyData, measure: Measure, options: Options) -> Section:
    """Position on the screen, drift over the session (of all raters and of single ones), and pace."""
    rest = _relative(measure)
    paragraphs: list[str] = []
    parts: list[Table | Figure] = []
    design = data.study.spec.design
    places = place_effects(measure, rest, options) if design.system_order != "fixed" else []
    if places:
        parts.append(_places_table(measure, places, options))
        paragraphs.append(_place_sentence(measure, places))
    elif design.system_order == "fixed" and measure.side.max(initial=0) > 1:
        paragraphs.append(
            "Each system was always at the same position on the screen, so an effect of position cannot be separated."
        )
    if design.item_order != "fixed":
        drift = session_drift(measure, rest, options)
        paragraphs.append(_drift_sentence(measure, drift))
        if drift.is_known:
            parts.append(_drift_figure(measure, rest, options))
            of_raters, more = drifting_raters(measure, rest, options)
            paragraphs += of_raters
            parts += more
    else:
        paragraphs.append(
            "Items came in the same order for everybody: a drift over the session cannot be separated from them."
        )
    pace = pace_change(data, options)
    if pace.is_known:
        paragraphs.append(_pace_sentence(pace))
    if not paragraphs:
        raise NotEnoughData("no places or positions are known", remedy="imports need the columns side and position")
    return Section("order", TITLE, tuple(paragraphs), tuple(parts))


def _relative(measure: Measure) -> Floats:
    return np.asarray(measure.y - means_by_group(measure.y, measure.target, measure.n_targets)[measure.target])


def _relative_heading(measure: Measure, to: str) -> str:
    """What ratings relative to some mean are called."""
    return f"Ratio to {to}" if measure.is_log else f"Difference from {to}, {UNITS[measure.unit]}"


ITEMS_MEAN = "the item's mean"


def place_effects(measure: Measure, rest: Floats, options: Options) -> list[tuple[int, Estimate]]:
    """For each position on the screen, how far ratings there lie from the mean of the item.

    A rater sees the systems of an item in one order, on every screen of the item.
    """
    n_places = int(measure.side.max(initial=0))
    if not 2 <= n_places <= MOST_PLACES:
        return []
    is_placed = measure.side > 0
    n_items = len(measure.book.items)
    judged, row = np.unique(measure.rater[is_placed] * n_items + measure.item[is_placed], return_inverse=True)
    cell = row * n_places + measure.side[is_placed] - 1
    # All criteria of a response count once: it is at the same place for all of them.
    table = means_by_group(rest[is_placed], cell, len(judged) * n_places).reshape(len(judged), n_places)
    several = np.sum(~np.isnan(table), axis=1) > 1
    table, rater = table[several], judged[several] // n_items
    if not len(table):
        return []
    table = table - np.nanmean(table, axis=1, keepdims=True)
    effects = []
    for place in range(n_places):
        given = ~np.isnan(table[:, place])
        effects.append(clustered_mean(table[given, place], rater[given], null=0.0, confidence=options.confidence))
    return list(enumerate(adjust_estimates(effects, _correction(n_places, options)), start=1))


def _correction(n_places: int, options: Options) -> Correction:
    """Two places mirror each other, so that theirs is one test."""
    return options.correction if n_places > 2 else "none"


def _places_table(measure: Measure, places: list[tuple[int, Estimate]], options: Options) -> Table:
    correction = _correction(len(places), options)
    body: list[tuple[Cell, ...]] = [
        (f"position {place}", estimate.n, shown(measure, estimate), *p_cells(estimate, correction))
        for place, estimate in places
    ]
    return Table(
        "place_on_screen",
        "Ratings by position on the screen",
        (
            Column("place", "Position"),
            Column("judged", "Items × raters", "count"),
            Column("estimate", _relative_heading(measure, ITEMS_MEAN), "estimate"),
            *p_columns(correction),
        ),
        tuple(body),
        caption="The item's mean is that of one rater over the systems shown together.",
    )


def _place_sentence(measure: Measure, places: list[tuple[int, Estimate]]) -> str:
    clear = [(place, estimate) for place, estimate in places if is_significant(estimate)]
    if not clear:
        return no_position_words(estimate for _, estimate in places)
    details = listed(
        f"position {place}: {value_only(shown(measure, estimate))} ({interval_only(shown(measure, estimate))})"
        for place, estimate in clear
    )
    what = inside(_relative_heading(measure, ITEMS_MEAN))
    return f"Position on the screen mattered ({what}): {details}. Random order spreads this evenly."


def _slopes(measure: Measure, rest: Floats) -> Floats:
    """Each rater's straight line over the session; raters with fewer than three judgments have none."""
    n = len(measure.book.raters)
    rater, x = measure.rater, measure.position.astype(np.float64)
    count = np.bincount(rater, minlength=n)
    mean = np.bincount(rater, weights=x, minlength=n) / np.maximum(count, 1)
    gap = x - mean[rater]
    spread = np.bincount(rater, weights=gap**2, minlength=n)
    product = np.bincount(rater, weights=gap * rest, minlength=n)
    is_usable = (spread > 0) & (count >= 3)
    return np.asarray(n_steps(measure) * np.divide(product, spread, out=np.full(n, np.nan), where=is_usable))


def session_drift(measure: Measure, rest: Floats, options: Options) -> Estimate:
    """The mean of the raters' slopes."""
    if measure.position.max(initial=0) < 3:
        return unknown("mean slope over raters", "positions in the session are not known, or fewer than three")
    slopes = _slopes(measure, rest)
    slopes = slopes[~np.isnan(slopes)]
    return clustered_mean(slopes, np.arange(len(slopes)), null=0.0, confidence=options.confidence)


def _drift_sentence(measure: Measure, drift: Estimate) -> str:
    if not drift.is_known:
        return f"Drift over the session is not known: {drift.notes[0]}."
    if math.isnan(drift.p_value):
        return "Whether ratings drift over the session cannot be tested yet."
    change = shown_change(measure, drift)
    size = value_only(change)
    what = f"by a factor of {size}" if measure.is_log else f"by {size} {unit_name(measure, size)}"
    details = f"{what} {span_words(measure)} ({interval_only(change)}, {p_words(drift.p_value)})"
    if excludes(change, null_of(measure)):
        return f"Ratings {'rose' if drift.value > 0 else 'fell'} over the session: they changed {details}."
    return f"Ratings did not drift significantly over the session: they changed {details}."


def _drift_figure(measure: Measure, rest: Floats, options: Options) -> Figure:
    rest = rest - means_by_group(rest, measure.rater, len(measure.book.raters))[measure.rater]
    last = int(measure.position.max())
    n_stretches = min(N_STRETCHES, last)
    stretch = np.minimum((measure.position - 1) * n_stretches // last, n_stretches - 1)
    points = []
    for number in range(n_stretches):
        here = (stretch == number) & (measure.position > 0)
        if not here.any():
            continue
        estimate = _stretch_mean(measure, rest, here, options)
        estimate = as_ratio(estimate) if measure.is_log else estimate
        centre = float(measure.position[here].mean())
        low, high = (estimate.low, estimate.high) if estimate.has_interval else (None, None)
        points.append(LinePoint(centre, estimate.value, low, high))
    heading = inside(_relative_heading(measure, "the mean"))
    return Figure(
        "drift",
        "Ratings over the session",
        lines(points, x_title="position in the session", y_title=heading, target=null_of(measure)),
        alt=f"Mean ratings in {len(points)} stretches of the session.",
        caption=f"Ratings relative to the mean of what was rated and to each rater's own level; means over raters with "
        f"{confidence_words(options.confidence)} confidence intervals.",
    )


def _stretch_mean(measure: Measure, rest: Floats, here: np.ndarray, options: Options) -> Estimate:
    rater: Ints = measure.rater[here]
    return clustered_mean(rest[here], rater, confidence=options.confidence)


def pace_change(data: StudyData, options: Options) -> Estimate:
    """Seconds per screen in the last third of a session over those in the first, per rater; a ratio."""
    method = "geometric mean of raters' ratios of median seconds"
    medians = by_raters(data.judgments.select("rater", "position", "duration_s"), _median_by_third)
    if not len(medians):
        return unknown(method, "no times")
    medians = medians.filter(pl.col("third") != 1).pivot("third", index="rater", values="duration_s")
    if not {"0", "2"} <= set(medians.columns):
        return unknown(method, "sessions are too short to have a first and a last third")
    ratio = medians.select((pl.col("2") / pl.col("0")).log())["2"].drop_nulls().to_numpy()
    estimate = clustered_mean(ratio, np.arange(len(ratio)), null=0.0, confidence=options.confidence)
    return as_ratio(estimate)


def _median_by_third(timed: pl.DataFrame) -> pl.DataFrame:
    rows = timed.filter((pl.col("duration_s") > 0) & (pl.col("position") > 0))
    third = ((pl.col("position") - 1) * 3 // pl.col("position").max().over("rater")).clip(0, 2)
    of_third = rows.select("rater", third.alias("third"), "duration_s")
    return of_third.group_by("rater", "third").agg(pl.col("duration_s").median()).sort("rater", "third")


def _pace_sentence(pace: Estimate) -> str:
    text = f"A screen in the last third of a session took {value_only(pace)} times as long as one in the first third"
    return f"{text} ({interval_only(pace)}, {p_words(pace.p_value)})." if pace.has_interval else f"{text}."
