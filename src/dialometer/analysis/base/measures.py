"""The numeric judgments of a study as arrays: one measure per criterion, and all criteria together.

Everything later works on these codes and numbers, so that a million judgments are read from the table once. Here, and only
here, gold items are set aside, numbers outside their scale are left out, magnitudes become logarithms by the declared
rule for zeros, and repeated judgments are averaged; each is counted in a note.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.scale_units import AskedCriterion, Unit, asked_criteria, common_unit
from dialometer.analysis.base.wording import criterion_label, listed, n_of
from dialometer.errors import NotEnoughData
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.effects.normalise import normalise
from dialometer.stats.observations import Floats, Ints, codes, n_distinct
from dialometer.storage.table import FACTOR_PREFIX

WIDE_SD = 10.0
"""Standard deviation of ratings from which on tenths of a point are fine enough."""


def within_scale(value: Floats, cell: Ints, scales: tuple[Scale, ...]) -> tuple[Floats, tuple[str, ...]]:
    """Numbers a scale cannot give (they come from imports) made missing, with a sentence that says which."""
    low, high = (np.array(ends)[cell] for ends in zip(*(scale.bounds() for scale in scales), strict=True))
    is_outside = ~np.isfinite(value) | (value < low) | (value > high)
    for number, scale in enumerate(scales):
        if possible := list(scale.category_labels()):
            is_outside |= (cell == number) & ~np.isin(value, possible)
    n_outside = int(is_outside.sum())
    if not n_outside:
        return value, ()
    seen = listed((f"{number:g}" for number in np.unique(value[is_outside])), most=5)
    scale = scales[int(cell[np.flatnonzero(is_outside)[0]])]
    note = f"{n_of(n_outside, 'number')} outside the scale ({scale.describe()}) excluded: {seen}. Correct the import."
    return np.where(is_outside, np.nan, value), (note,)


def averaged_repeats(
    value: Floats, target: Ints, columns: dict[str, Ints]
) -> tuple[Floats, Ints, dict[str, Ints], tuple[str, ...]]:
    """One judgment of each rater on each target; several are averaged, as which of them counts is not ours to say."""
    key = columns["rater"] * (int(target.max()) + 1) + target
    n_more = len(key) - n_distinct(key)
    if not n_more:
        return value, target, columns, ()
    distinct, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    given = ~np.isnan(value)
    sums = np.bincount(inverse[given], weights=value[given], minlength=len(distinct))
    counts = np.bincount(inverse[given], minlength=len(distinct))
    mean = np.divide(sums, counts, out=np.full(len(distinct), np.nan), where=counts > 0)
    note = f"{n_of(n_more, 'judgment')} repeated what the same rater had judged before; such judgments were averaged."
    return mean, target[first], {name: column[first] for name, column in columns.items()}, (note,)


def analysed_values(
    value: Floats, columns: dict[str, Ints], asked: AskedCriterion, zeros: str, raters: tuple[str, ...]
) -> tuple[Floats, Floats, tuple[str, ...], tuple[str, ...]]:
    """Raw numbers and those that are analysed, remarks on zeros, and the raters who always gave the same number."""
    unit = asked.unit
    if unit == "percent":
        low, high = (
            np.array(ends)[columns["cell"]] for ends in zip(*(scale.bounds() for scale in asked.scales), strict=True)
        )
        value = 100 * (value - low) / (high - low)
    is_log = np.array([scale.unit == "log" for scale in asked.scales])[columns["cell"]]
    y = value.copy()
    notes: list[str] = []
    constant: set[int] = set()
    for is_chosen, plain in ((is_log, "ln"), (~is_log, "raw")):
        if not is_chosen.any():
            continue
        method = f"{plain}_z" if unit == "z" else plain
        made = normalise(value[is_chosen], columns["rater"][is_chosen], method, zeros=zeros)  # type: ignore[arg-type]
        y[is_chosen] = made.values
        constant |= set(made.constant_raters)
        notes += _zero_notes(made.n_zero, made.n_replaced, made.n_excluded)
        if made.raters_without_positive:
            names = listed(raters[code] for code in made.raters_without_positive)
            notes.append(f"No positive number by {names}: nothing of theirs can be used.")
    return value, y, tuple(notes), tuple(raters[code] for code in sorted(constant))


def _zero_notes(n_zero: int, n_replaced: int, n_excluded: int) -> list[str]:
    notes = []
    if n_replaced:
        notes.append(
            f"{n_of(n_replaced, 'zero', 'zeros')} replaced by half of the rater's smallest positive number, "
            "as declared, because zero has no logarithm."
        )
    if n_excluded:
        notes.append(f"{n_of(n_excluded, 'zero', 'zeros')} excluded, because zero has no logarithm.")
    return notes if n_zero else []


OVERALL = "_overall"
"""The name of all criteria together; names in study files begin with a letter, so no criterion can have it."""
_USED = ("rater", "item", "system", "turn", "position", "side", "criterion", "block", "value")
"""Columns of the long table that measures are made from."""
_CODES = ("rater", "item", "system", "cell", "position", "side")


@dataclass(frozen=True)
class Codebook:
    """The names behind the codes; the same in all measures of a study."""

    raters: tuple[str, ...]
    items: tuple[str, ...]
    systems: tuple[str, ...]
    cell_of_rater: Ints
    weights: Floats | None = None
    """Adaptive assignment: what answers weigh, raters by items."""
    last_screens: list[tuple[Floats, Screens]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The screens asked for last, beside the values they were made from; those of every measure would take too much memory."""


@dataclass(frozen=True)
class Screens:
    """One row per rater and item, one column per system (mean over criteria and turns, ``nan`` where not seen)."""

    y: Floats
    rater: Ints
    item: Ints
    weight: Floats | None = None
    """What each row weighs, where systems were assigned adaptively."""


@dataclass(frozen=True)
class Measure:
    """Judgments that may be compared with each other. ``raw`` is what raters gave, ``y`` what is analysed."""

    name: str
    label: str
    criteria: tuple[str, ...]
    unit: Unit
    scales: tuple[Scale, ...]
    book: Codebook
    raw: Floats
    y: Floats
    rater: Ints
    item: Ints
    system: Ints
    target: Ints
    """What was rated and on which criterion; counted from 0 without holes."""
    things: Ints
    """Of each target what was rated: item, system and turn together; the same number on every criterion."""
    cell: Ints
    position: Ints
    side: Ints
    notes: tuple[str, ...] = ()
    constant_raters: tuple[str, ...] = ()

    @property
    def is_log(self) -> bool:
        """Whether differences of ``y`` are ratios of what raters gave."""
        return self.unit == "log"

    @property
    def is_wide(self) -> bool:
        """Whether ratings are spread over tens of points, as on scales to 100, so that one digit after the point is enough."""
        return not self.is_log and self.unit == "points" and float(self.y.std()) >= WIDE_SD

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which values a mean of this measure lies; infinite where the scale has no ends."""
        if self.unit == "percent":
            return 0.0, 100.0
        if self.unit != "points":
            return -math.inf, math.inf
        ends = [scale.bounds() for scale in self.scales]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def n_targets(self) -> int:
        """How many different things were rated."""
        return len(self.things)

    @property
    def thing(self) -> Ints:
        """What was rated, for each judgment."""
        return np.asarray(self.things[self.target])

    @property
    def screens(self) -> Screens:
        """Judgments side by side. Those of one measure at a time are kept, as sections ask for them measure by measure."""
        screens = next((screens for values, screens in self.book.last_screens if values is self.y), None)
        if screens is None:
            screens = self._screens()
            self.book.last_screens[:] = [(self.y, screens)]
        return screens

    def _screens(self) -> Screens:
        n_items, n_systems = len(self.book.items), len(self.book.systems)
        row, keys = codes(self.rater * n_items + self.item)
        y = means_by_group(self.y, row * n_systems + self.system, len(keys) * n_systems)
        rater, item, weights = keys // n_items, keys % n_items, self.book.weights
        return Screens(y.reshape(len(keys), n_systems), rater, item, None if weights is None else weights[rater, item])

    def where(self, rows: NDArray[np.bool_]) -> Measure:
        """The measure with only these judgments; targets are counted anew."""
        if rows.all():
            return self
        target, kept = codes(self.target[rows])
        return replace(
            self,
            raw=self.raw[rows],
            y=self.y[rows],
            rater=self.rater[rows],
            item=self.item[rows],
            system=self.system[rows],
            target=target,
            things=self.things[kept],
            cell=_held(self.cell[rows]),
            position=self.position[rows],
            side=_held(self.side[rows]),
        )


@dataclass(frozen=True)
class Measures:
    """All numeric measures of a study. ``overall`` is missing where the criteria have no common unit."""

    study: Study
    book: Codebook
    criteria: tuple[Measure, ...]
    overall: Measure | None
    notes: tuple[str, ...]

    @property
    def all(self) -> tuple[Measure, ...]:
        """All criteria together first, then each; a single criterion is both."""
        return (self.overall, *self.criteria) if self.overall is not None and len(self.criteria) > 1 else self.criteria

    @property
    def main(self) -> Measure:
        """What speaks for the study as a whole."""
        return self.overall or self.criteria[0]


def numeric_measures(data: StudyData) -> Measures:
    """The measures of a study; raises :class:`NotEnoughData` with a sentence where there is nothing to work on.

    They are made once for the same data.
    """
    if "measures" not in data.shared:
        data.shared["measures"] = _numeric_measures(data)
    measures: Measures = data.shared["measures"]
    return measures


def _numeric_measures(data: StudyData) -> Measures:
    asked = asked_criteria(data.study)
    names = {way.criterion.name for way in asked}
    # Only what is needed is filtered: each filter copies its rows.
    used = [*_USED, *(FACTOR_PREFIX + factor.name for factor in data.study.spec.design.factors)]
    rows = _kept(data.judgments.select(used), pl.col("criterion").is_in(names))
    gold = gold_items(data.study)
    rows = _kept(rows, ~pl.col("item").is_in(gold)) if gold else rows
    rows = _kept(rows, pl.col("value").is_not_null())
    rows = rows.with_columns(_cell_expression(data.study).alias("_cell"))
    rows = _kept(rows, pl.col("_cell") >= 0)
    notes = [
        f"{n_of(n, 'judgment')} {reason} {'is' if n == 1 else 'are'} excluded."
        for reason, n in unmeasured(data).items()
    ]
    if not len(rows):
        raise NotEnoughData("no numeric judgments that count", remedy="collect judgments, or look at the exclusions")
    coding = _Coding(rows, data.draws)
    kept, missing = [], []
    for way in asked:
        measure = _measure(data.study, way, coding)
        if measure is None:
            missing.append(way.criterion.name)
        else:
            kept.append(measure)
    if missing:
        labels = listed(criterion_label(data.study, name) for name in dict.fromkeys(missing))
        notes.append(f"No judgments yet on {labels}.")
    if not kept:
        raise NotEnoughData("no numeric judgments that count", remedy="collect judgments, or look at the exclusions")
    scored = {measure.label: listed(dict.fromkeys(s.number_words for s in measure.scales)) for measure in kept}
    notes += [f"{label} is scored as {words}." for label, words in scored.items() if words]
    del measure, rows, coding.rows  # what comes next takes their place
    overall = _overall(kept)
    return Measures(data.study, coding.book, tuple(kept), overall, tuple(notes))


def unmeasured(data: StudyData) -> dict[str, int]:
    """How many judgments on numeric criteria can be in no result, by what they lack."""
    asked = asked_criteria(data.study)
    if not asked:
        return {}
    is_asked = pl.col("criterion").is_in({way.criterion.name for way in asked})
    is_asked &= ~pl.col("item").is_in(gold_items(data.study))
    has_number = pl.col("value").is_not_null()
    has_condition = _cell_expression(data.study) >= 0
    is_checklist = all(scale.point_texts() for way in asked for scale in way.scales)
    lacking = {
        "without a score (no point applies)" if is_checklist else "without a number": ~has_number,
        "of raters without a known condition (check the import)": has_number & ~has_condition,
    }
    counts = data.judgments.select((is_asked & lacks).sum().alias(reason) for reason, lacks in lacking.items())
    return {reason: n for reason, n in counts.row(0, named=True).items() if n}


def _kept(rows: pl.DataFrame, is_in: pl.Expr) -> pl.DataFrame:
    """The rows for which it holds; all of them as they are where it holds for all, since a filter would copy them."""
    return rows if rows.select(is_in.fill_null(False).all()).item() else rows.filter(is_in)


def _cell_expression(study: Study) -> pl.Expr:
    """The number of each judgment's condition; -1 where its factors name none."""
    factors = [factor.name for factor in study.spec.design.factors]
    if not factors:
        return pl.lit(0, dtype=pl.Int64)
    known = {"|".join(cell[name] for name in factors): number for number, cell in enumerate(study.cells)}
    joined = pl.concat_str([pl.col(FACTOR_PREFIX + name) for name in factors], separator="|")
    return joined.replace_strict(known, default=-1, return_dtype=pl.Int64).fill_null(-1)


class _Coding:
    """Names replaced by numbers, in sorted order of the names; the rows of one criterion at a time."""

    def __init__(self, rows: pl.DataFrame, draws: pl.DataFrame) -> None:
        self.rows = rows
        self.levels = {name: rows[name].fill_null("").unique().sort() for name in ("rater", "item", "system")}
        self.n_turns = int(rows["turn"].fill_null(-1).max()) + 2  # type: ignore[arg-type]
        names = {name: tuple(levels.to_list()) for name, levels in self.levels.items()}
        of_rater = rows.select("rater", "_cell").unique("rater", keep="last")
        cells = np.zeros(len(names["rater"]), dtype=np.int64)
        cells[self._codes(of_rater["rater"], "rater")] = of_rater["_cell"].to_numpy()
        self.book = Codebook(names["rater"], names["item"], names["system"], cells, self._weights(draws))

    def _weights(self, draws: pl.DataFrame) -> Floats | None:
        """Raters by items; what was not drawn weighs 1."""
        known = draws.filter(*(pl.col(name).is_in(self.levels[name].implode()) for name in ("rater", "item")))
        if known.is_empty():
            return None
        weights = np.ones((len(self.levels["rater"]), len(self.levels["item"])))
        weights[self._codes(known["rater"], "rater"), self._codes(known["item"], "item")] = known["weight"].to_numpy()
        return weights

    def _codes(self, names: pl.Series, name: str) -> Ints:
        coded = names.fill_null("").cast(pl.Enum(self.levels[name])).to_physical()
        return coded.to_numpy().astype(np.int64)

    def columns(self, is_in: pl.Series) -> tuple[dict[str, Ints], Ints, Ints]:
        """The codes of some of the rows, one column after the other: all of them at once would be copied as texts.

        Also what was rated, counted from 0, and the number of each such thing in the study.
        """
        columns = {name: self._codes(self.rows[name].filter(is_in), name) for name in self.levels}
        thing = columns["item"] * len(self.book.systems) + columns["system"]
        thing *= self.n_turns
        thing += self.rows["turn"].filter(is_in).fill_null(-1).to_numpy().astype(np.int64) + 1
        target, things = codes(thing)
        columns["cell"] = self.rows["_cell"].filter(is_in).to_numpy()
        for name in ("position", "side"):
            columns[name] = self.rows[name].filter(is_in).fill_null(0).to_numpy().astype(np.int64)
        return {name: _held(columns[name]) for name in _CODES}, target, things


def _measure(study: Study, asked: AskedCriterion, coding: _Coding) -> Measure | None:
    is_in = coding.rows["criterion"] == asked.criterion.name
    if not asked.is_whole:
        is_in &= coding.rows["block"].is_in([block.name for block in asked.blocks])
    if not is_in.any():
        return None
    columns, target, things = coding.columns(is_in)
    value, notes = within_scale(
        coding.rows["value"].filter(is_in).to_numpy().astype(np.float64), columns["cell"], asked.scales
    )
    value, target, columns, repeated = averaged_repeats(value, target, columns)
    raw, y, remarks, constant = analysed_values(value, columns, asked, study.spec.analysis.zeros, coding.book.raters)
    is_given = ~np.isnan(y)
    y = raw if np.array_equal(raw, y) else y
    measure = Measure(
        name=asked.criterion.name if asked.is_whole else f"{asked.criterion.name}@{asked.blocks[0].name}",
        label=_label(study, asked),
        criteria=(asked.criterion.name,),
        unit=asked.unit,
        scales=asked.scales,
        book=coding.book,
        raw=raw,
        y=y,
        target=target,
        things=things,
        notes=(*notes, *repeated, *remarks),
        constant_raters=constant,
        **columns,
    )
    return measure if is_given.all() else measure.where(is_given) if is_given.any() else None


def _held(column: Ints) -> Ints:
    """The column; where all its numbers are equal, as sides and conditions mostly are, only one of them is in memory."""
    return np.broadcast_to(column[:1].copy(), column.shape) if len(column) and (column == column[0]).all() else column


def _label(study: Study, asked: AskedCriterion) -> str:
    label = criterion_label(study, asked.criterion.name)
    return label if asked.is_whole else f"{label} ({listed(block.title or block.name for block in asked.blocks)})"


def _overall(measures: list[Measure]) -> Measure | None:
    """All criteria together, in a common unit where they have one. The columns of the measures become parts of its own, one
    after the other, so that each is in memory once."""
    if len(measures) == 1:
        return measures[0]
    unit = common_unit([scale for measure in measures for scale in measure.scales])
    if unit == "z":
        return None
    columns = {name: _joined(measures, name) for name in _CODES}
    raw, target, offset = [], [], 0
    for measure in measures:
        ends = [scale.bounds() for scale in measure.scales]
        is_share = unit == "percent" and measure.unit == "points"
        raw.append(100 * (measure.raw - ends[0][0]) / (ends[0][1] - ends[0][0]) if is_share else measure.raw)
        target.append(measure.target + offset)
        offset += measure.n_targets
    together = np.concatenate(raw)
    y = np.concatenate([measure.y for measure in measures]) if unit == "log" else together
    _share(measures, "raw", together)
    _share(measures, "y", y)
    return Measure(
        name=OVERALL,
        label="All criteria",
        criteria=tuple(dict.fromkeys(name for measure in measures for name in measure.criteria)),
        unit=unit,
        scales=tuple(scale for measure in measures for scale in measure.scales),
        book=measures[0].book,
        raw=together,
        y=y,
        target=np.concatenate(target),
        things=np.concatenate([measure.things for measure in measures]),
        notes=(),
        constant_raters=tuple(
            name for name in measures[0].constant_raters if all(name in m.constant_raters for m in measures)
        ),
        **columns,
    )


def _joined(measures: list[Measure], name: str) -> Ints:
    """A column of all measures, which share it from here on."""
    column = _held(np.concatenate([getattr(measure, name) for measure in measures]))
    _share(measures, name, column)
    return column


def _share(measures: list[Measure], name: str, column: NDArray[Any]) -> None:
    """A column of each measure becomes a part of this one where both are the same."""
    start = 0
    for place, measure in enumerate(measures):
        part = column[start : start + len(measure.y)]
        start += len(part)
        shared: dict[str, Any] = {name: part}
        if np.array_equal(part, getattr(measure, name)):
            measures[place] = replace(measure, **shared)


FEW_RATERS = 10
"""Below this, a bootstrap interval of a mean is known to be too narrow, and the report says so."""


@dataclass(frozen=True)
class RaterRows:
    """Raters in the order of ``Book.raters``; ``nan`` where a rater has nothing of that kind."""

    study: Study
    names: tuple[str, ...]
    cell: Ints
    minutes: Floats
    raw: dict[str, Floats]
    """Mean of what raters gave, by measure."""
    y: dict[str, Floats]
    """Mean of the analysed values, each judgment relative to its target's mean, so that easier items are no advantage."""

    @property
    def n(self) -> int:
        """How many raters."""
        return len(self.names)

    def level(self, factor: Factor) -> Ints:
        """The number of each rater's level of a factor."""
        order = [level.name for level in factor.levels]
        of_cell = np.array([order.index(cell[factor.name]) for cell in self.study.cells])
        return np.asarray(of_cell[self.cell])


def rater_rows(data: StudyData, measures: Measures) -> RaterRows:
    """The rows of all raters whose numeric judgments count."""
    book = measures.book
    done = data.completed_sessions().filter(pl.col("duration_s") > 0)
    minutes_by_name = dict(zip(done["rater"].to_list(), (done["duration_s"] / 60).to_list(), strict=True))
    minutes = np.array([minutes_by_name.get(name, np.nan) for name in book.raters], dtype=np.float64)
    raw, y = {}, {}
    for measure in measures.all:
        raw[measure.name] = means_by_group(measure.raw, measure.rater, len(book.raters))
        y[measure.name] = adjusted_means(measure, len(book.raters))
    return RaterRows(data.study, book.raters, book.cell_of_rater, minutes, raw, y)


def means_by_group(values: Floats, group: Ints, n: int) -> Floats:
    """The mean of the values in each of ``n`` groups, such as raters or things rated; ``nan`` for empty groups."""
    count = np.bincount(group, minlength=n)
    sums = np.bincount(group, weights=values, minlength=n)
    return np.asarray(np.divide(sums, count, out=np.full(n, np.nan), where=count > 0))


def adjusted_means(measure: Measure, n: int) -> Floats:
    """As ``stats.permutation.rater_means`` with items, but with a place for every rater of the study."""
    of_target = means_by_group(measure.y, measure.target, measure.n_targets)
    return means_by_group(measure.y - of_target[measure.target] + measure.y.mean(), measure.rater, n)


def mean_over_raters(values: Floats, *, confidence: float, n_resamples: int, seed: int, label: str = "") -> Estimate:
    """The mean of raters' means with a bootstrap interval over raters; few raters come with a warning, and two without one:
    resampled, they only ever give three means."""
    n = int(np.sum(~np.isnan(values)))
    if n == 2:
        value, note = float(np.nanmean(values)), "two raters: no confidence interval"
        return Estimate(value, n, "mean over raters", confidence=confidence, label=label, notes=(note,))
    estimate = bootstrap_mean(values, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)
    estimate = replace(
        estimate,
        method="mean over raters",
        interval_method=estimate.interval_method.replace("over values", "over raters"),
    )
    if estimate.has_interval and n < FEW_RATERS:
        estimate = estimate.with_note(
            f"fewer than {FEW_RATERS} raters: bootstrap confidence intervals of so few are too narrow"
        )
    return estimate
