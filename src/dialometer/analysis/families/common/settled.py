"""Disagreements that adjudicators settled: how many there are, and the results with the settled values beside the raters' own.

Agreement and all tests of a report are computed from what raters answered themselves. Here every thing judged has one
value: the settled one where raters disagreed and it is settled, else the mean of the raters. Items are the sample.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.wording import criterion_label, n_of, percent, system_label
from dialometer.design.adjudication import Opinion, Thing, judged_enough, settled_scale
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.scale import Scale, Value
from dialometer.model.study import Study
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.storage.table import FACTOR_PREFIX

NAME, TITLE = "adjudication", "Settled disagreements"
MOST_PAIRS = 6
"""Of more systems than make so many pairs, differences are not listed here."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One thing that raters judged, and what became of it."""

    thing: Thing
    scale: Scale
    opinions: Sequence[Opinion]
    is_compared: bool
    """Whether as many raters judged it as the study asks for first."""
    is_disputed: bool = False
    settled: tuple[Value, ...] = ()
    """The settled answer, if there is one."""

    @property
    def counts_settled(self) -> bool:
        """Whether the settled answer takes the place of the raters' own."""
        return self.is_disputed and bool(self.settled)


class Adjudicated(Family):
    """Every study that declares adjudication; it never gives the answer."""

    rank = 790

    def fits(self, study: Study) -> bool:
        """Where the study file declares it."""
        return study.spec.adjudication is not None

    def run(self, data: StudyData, options: Options) -> Findings:
        """How many are settled, and what that changes."""
        section = section_or_problem(NAME, TITLE, lambda: settled_section(data, options))
        return Findings("", "", sections=(section,), methods=METHODS)


METHODS = (
    Method(
        "Results with settled values",
        "one value for each item: the settled one where raters disagreed, else the mean of the raters; Student's t over items",
        "raters who were overruled would count as if they had agreed, so tests and agreement use their own answers",
    ),
)
ANALYSES.register(NAME)(Adjudicated())


def settled_section(data: StudyData, options: Options) -> Section:
    """Counts by criterion, then means or shares, with the raters' own values and with the settled ones."""
    judged = judged_things(data)
    compared = [one for one in judged if one.is_compared]
    if not compared:
        raise NotEnoughData(
            f"nothing was judged by {_rater_words(data.study)} of one condition yet", remedy="collect more judgments"
        )
    disputed = [one for one in compared if one.is_disputed]
    n_settled = sum(one.counts_settled for one in disputed)
    share = percent(len(disputed) / len(compared))
    words = [
        f"{_rater_words(data.study, capital=True)} or more judged {n_of(len(compared), 'thing')} (an item, or one response to it, "
        f"on one criterion). They disagree on {len(disputed):,} of them ({share}); {n_settled:,} of these are settled by an "
        f"adjudicator, {len(disputed) - n_settled:,} are waiting.",
        "Agreement and all tests in this report use the raters' own answers: with overruled answers counted as if raters had "
        "agreed, agreement would be too high and confidence intervals too narrow. The settled answers are in this section only.",
    ]
    tables = [_counts(data.study, compared)]
    results, left_out = _results(data.study, judged, options)
    if results:
        tables.append(_results_table(results))
    if left_out:
        words.append(
            f"No means or shares are given here for {', '.join(left_out)}: see the export for what was settled."
        )
    return Section(NAME, TITLE, tuple(words), tuple(tables))


def _rater_words(study: Study, *, capital: bool = False) -> str:
    rule = study.spec.adjudication
    n = rule.raters if rule else 2
    words = {2: "two", 3: "three", 4: "four", 5: "five"}.get(n, str(n))
    return f"{words.capitalize() if capital else words} raters"


def judged_things(data: StudyData) -> list[Judged]:
    """Everything that can be settled, with the raters' answers and the settled one; gold items are not among it."""
    study = data.study
    opinions: dict[Thing, list[Opinion]] = {}
    for thing, opinion in _opinions(study, data.judgments):
        opinions.setdefault(thing, []).append(opinion)
    settled = {thing: opinion.value for thing, opinion in _opinions(study, data.settled)}
    enough = judged_enough(study, ((thing, one) for thing, several in opinions.items() for one in several))
    rows = []
    for thing, several in opinions.items():
        scale = settled_scale(study, thing)
        if scale is None:
            continue
        last, is_disputed = enough.get(thing, (several, False))
        own = (settled[thing],) if thing in settled else ()
        rows.append(Judged(thing, scale, last, thing in enough, is_disputed, own))
    return rows


def _opinions(study: Study, frame: pl.DataFrame) -> Iterator[tuple[Thing, Opinion]]:
    if frame.is_empty():  # perhaps without the columns of the study's factors
        return
    cells = {tuple(condition.values()): cell for cell, condition in enumerate(study.cells)}
    factors = [FACTOR_PREFIX + factor.name for factor in study.spec.design.factors]
    columns = ("rater", "answer", "block", "item", "criterion", "system", "turn")
    known: dict[str, Value] = {text: json.loads(text) for text in frame["answer"].drop_nulls().unique().to_list()}
    for rater, answer, block, item, criterion, system, turn, *levels in frame.select(*columns, *factors).rows():
        cell = cells.get(tuple(levels))
        if cell is not None and answer is not None:
            yield Thing(cell, block, item, criterion, system or "", turn), Opinion(rater, known[answer])


def _counts(study: Study, compared: Sequence[Judged]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for criterion in study.criteria_by_name:
        here = [one for one in compared if one.thing.criterion == criterion]
        disputed = [one for one in here if one.is_disputed]
        settled = [one for one in disputed if one.settled]
        sided = sum(
            any(not one.scale.differ([opinion.value, one.settled[0]]) for opinion in one.opinions) for one in settled
        )
        if here:
            label = criterion_label(study, criterion)
            rows.append((label, len(here), len(disputed), len(settled), sided, len(disputed) - len(settled)))
    columns = (
        Column("criterion", "Criterion"),
        Column("judged", "Judged by enough raters", "count"),
        Column("disputed", "Raters disagree", "count"),
        Column("settled", "Settled", "count"),
        Column("as_a_rater", "Settled as a rater had answered", "count"),
        Column("waiting", "Waiting", "count"),
    )
    return Table("adjudication", "Disagreements and how far they are settled", columns, tuple(rows))


Row = tuple[str, str, Estimate, Estimate]


def _results(study: Study, judged: Sequence[Judged], options: Options) -> tuple[list[Row], list[str]]:
    """Rows of criterion, what, raters' own and settled; and the criteria for which there are none."""
    rows: list[Row] = []
    left_out = []
    for criterion in study.criteria_by_name:
        here = [one for one in judged if one.thing.criterion == criterion]
        if not here:
            continue
        label = criterion_label(study, criterion)
        if all(one.scale.is_numeric and one.scale.unit == "points" for one in here):
            rows += [(label, *row) for row in _means(study, here, options)]
        elif all(one.scale.compares or one.scale.categories() for one in here):
            rows += [(label, *row) for row in _choices(study, here, options)]
        else:
            left_out.append(label)
    return rows, left_out


def _results_table(rows: Sequence[Row]) -> Table:
    columns = (
        Column("criterion", "Criterion"),
        Column("what", "Of"),
        Column("originals", "Raters' own answers", "estimate"),
        Column("settled", "With settled values", "estimate"),
        Column("items", "Items", "count"),
    )
    return Table(
        "adjudicated-results",
        "Results with settled values beside the raters' own",
        columns,
        tuple((criterion, what, own, settled, own.n) for criterion, what, own, settled in rows),
        caption="Means over items; choices as the share of the items that show the alternative, in percent, rankings as mean ranks "
        "(1 is best). Brackets: confidence intervals over items (Student's t), which hold for items like these and do not cover that "
        "other raters might have answered otherwise.",
    )


Values = Mapping[str, tuple[float, float]]
"""By item: the value by the raters' own answers, and with settled ones."""


def _means(study: Study, judged: Sequence[Judged], options: Options) -> Iterator[tuple[str, Estimate, Estimate]]:
    systems = [system.name for system in study.spec.systems]
    by_system: dict[str, Values] = {}
    for name in (*systems, ""):
        here = [one for one in judged if one.thing.system == name]
        values = _by_item(here, lambda one, value: one.scale.number(value))
        if values:
            by_system[name] = values
            yield (system_label(study, name) if name else "all", *_both(list(values.values()), options))
    pairs = list(itertools.combinations([name for name in systems if name in by_system], 2))
    for first, second in pairs if len(pairs) <= MOST_PAIRS else ():
        shared = sorted(set(by_system[first]) & set(by_system[second]))
        if shared:
            apart = [
                (
                    by_system[second][item][0] - by_system[first][item][0],
                    by_system[second][item][1] - by_system[first][item][1],
                )
                for item in shared
            ]
            yield (f"{system_label(study, second)} − {system_label(study, first)}", *_both(apart, options))


def _choices(study: Study, judged: Sequence[Judged], options: Options) -> Iterator[tuple[str, Estimate, Estimate]]:
    """How often each alternative or category is chosen (as the best, as the worst), or its mean rank."""
    given = [value for one in judged for value in (*(o.value for o in one.opinions), *one.settled)]
    systems = {system.name: place for place, system in enumerate(study.spec.systems)}
    names = sorted(
        {name for value in given for name in _named(value)}, key=lambda name: (systems.get(name, len(systems)), name)
    )
    parts = next((tuple(value) for value in given if isinstance(value, dict)), ("",))
    for about in dict.fromkeys(one.thing.system if not one.scale.compares else "" for one in judged):
        here = [one for one in judged if one.scale.compares or one.thing.system == about]
        for name, part in itertools.product(names, parts):
            meeting = [
                one for one in here if name not in systems or not one.scale.compares or _is_shown(study, one, name)
            ]
            values = _by_item(meeting, partial(_chosen, name, part))
            if values:
                what = system_label(study, name) if name in systems else name.replace("_", " ")
                what += f", {part}" if part else ", mean rank" if isinstance(given[0], list) else ""
                label = f"{system_label(study, about)}: {what}" if about else what
                bounds = (1.0, float(len(names))) if isinstance(given[0], list) else (0.0, 100.0)
                yield (label, *_both(list(values.values()), options, bounds))


def _is_shown(study: Study, one: Judged, system: str) -> bool:
    """Whether a system is among those that an item compares."""
    return system in study.items_by_id[one.thing.item].systems


def _named(value: Value) -> list[str]:
    """The alternatives or categories in an answer."""
    return list(map(str, value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]))


def _chosen(name: str, part: str, _one: Judged, value: Value) -> float | None:
    """Of a ranking the rank; of a choice 100 or 0, so that means are percent."""
    if isinstance(value, list):
        return float(value.index(name) + 1) if name in value else None
    return 100.0 * (str(value.get(part) if isinstance(value, dict) else value) == name)


def _by_item(judged: Sequence[Judged], number: Callable[[Judged, Value], float | None]) -> Values:
    """The mean of each item over what was judged of it."""
    values: dict[str, list[tuple[float, float]]] = {}
    for one in judged:
        own = [n for opinion in one.opinions if (n := number(one, opinion.value)) is not None]
        settled = number(one, one.settled[0]) if one.counts_settled else None
        if own:
            mean = float(np.mean(own))
            values.setdefault(one.thing.item, []).append((mean, mean if settled is None else float(settled)))
    return {
        item: (float(np.mean([pair[0] for pair in several])), float(np.mean([pair[1] for pair in several])))
        for item, several in values.items()
    }


def _both(
    values: Sequence[tuple[float, float]], options: Options, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Estimate, Estimate]:
    own, settled = (_mean([pair[side] for pair in values], options, bounds) for side in (0, 1))
    return own, settled


def _mean(values: Sequence[float], options: Options, bounds: tuple[float, float]) -> Estimate:
    """The mean over items; its interval ends where values end."""
    estimate = clustered_mean(np.array(values), np.arange(len(values)), confidence=options.confidence)
    low, high = (float(np.clip(end, *bounds)) for end in (estimate.low, estimate.high))
    return replace(estimate, method="mean over items", low=low, high=high)
