"""Are raters more consistent on one criterion than on another? The same raters and things rated, two criteria.

Raters and things rated are drawn, the same for both criteria; the p value is the smallest level at which the interval
leaves out zero, so that the two never contradict each other. (Exchanging the criteria of a rater would test something
else: whether both criteria see the same differences.) Complete designs use the two-way ICC, others the one-way form, which
uses every judgment; both as sums over counts, so that all resamples are a few matrix products.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dialometer.analysis.consistency import MOST_CELLS, resamples_for
from dialometer.analysis.family import Options
from dialometer.analysis.labels import cell_names
from dialometer.analysis.measures import Measure, Measures
from dialometer.analysis.rater_rows import RaterRows
from dialometer.analysis.reliability_form import scores
from dialometer.analysis.words import excludes, p_words, with_interval
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.bootstrap import batch_sizes, draw_counts, estimate_from
from dialometer.stats.icc_one_way import OneWay, one_way_icc
from dialometer.stats.icc_resample import icc_of_counts
from dialometer.stats.observations import Floats

IccOf = Callable[[Floats, Floats | None, Floats | None], Floats]
METHOD = "difference between the ICCs of two criteria, same raters"


def paired_icc_difference(first: Floats, second: Floats, options: Options, label: str = "") -> Estimate:
    """ICC of a single rating on the first criterion minus that on the second; targets by raters, aligned."""
    n_targets, n_raters = first.shape
    if n_targets < 2 or n_raters < 2:
        why = f"{n_raters} raters and {n_targets} things rated: at least two of each are needed; collect more"
        return unknown(METHOD, why, n=n_targets, label=label)
    if first.size > MOST_CELLS:
        return unknown(METHOD, "too many raters and items to resample; compare the intervals", label=label)
    if any(np.nanstd(table) == 0 for table in (first, second)):
        return unknown(METHOD, "all ratings on a criterion are equal", n=n_targets, label=label)
    has_holes = bool(np.isnan(first).any() or np.isnan(second).any())
    icc_of: IccOf = _one_way if has_holes else _two_way
    parts = [float(icc_of(table, None, None)[0]) for table in (first, second)]
    rng = np.random.default_rng(options.seed)
    replicates = []
    for size in batch_sizes(n_targets + n_raters, resamples_for(2 * first.size, options)):
        targets, raters = draw_counts(rng, n_targets, size), draw_counts(rng, n_raters, size)
        replicates.append(icc_of(first, targets, raters) - icc_of(second, targets, raters))
    found = estimate_from(
        parts[0] - parts[1],
        np.concatenate(replicates),
        n=n_targets,
        method=METHOD,
        resampled="raters and things rated",
        seed=options.seed,
        confidence=options.confidence,
        label=label,
        details={"icc_first": parts[0], "icc_second": parts[1], "form": "ICC(1,1)" if has_holes else "ICC(2,1)"},
    )
    return replace(found, p_value=_inverted_p(np.concatenate(replicates)))


def _two_way(table: Floats, targets: Floats | None, raters: Floats | None) -> Floats:
    return icc_of_counts(table, targets, raters)["ICC(2,1)"]


def _one_way(table: Floats, targets: Floats | None, raters: Floats | None) -> Floats:
    given = ~np.isnan(table)
    filled = np.where(given, table - np.nanmean(table), 0.0)
    of_raters = np.ones((1, table.shape[1])) if raters is None else raters
    of_targets = np.ones((1, len(table))) if targets is None else targets
    sums = OneWay(of_raters @ given.T, of_raters @ filled.T, of_raters @ (filled**2).T)
    return one_way_icc(sums, of_targets, repeats=of_raters**2 @ given.T)


def _inverted_p(replicates: Floats) -> float:
    """Twice the smaller tail beyond zero, the estimate itself counted among the replicates so that p is never 0."""
    usable = replicates[np.isfinite(replicates)]
    n = len(usable)
    tail = min(int(np.sum(usable <= 0)), int(np.sum(usable >= 0)))
    return min(1.0, 2 * (1 + tail) / (1 + n))


def aligned(first: Measure, second: Measure, of_cell: int | None, rows: RaterRows) -> tuple[Floats, Floats]:
    """Two criteria as matrices with the same things rated in the rows and the same raters in the columns."""
    tables = []
    keys, raters = [], []
    for measure in (first, second):
        every = scores(measure)
        inside = np.ones(len(every.y), dtype=bool) if of_cell is None else rows.cell[measure.rater] == of_cell
        key = measure.thing[inside]
        tables.append((every.y[inside], key, measure.rater[inside]))
        keys.append(np.unique(key))
        raters.append(np.unique(measure.rater[inside]))
    targets, people = np.intersect1d(keys[0], keys[1]), np.intersect1d(raters[0], raters[1])
    made = []
    for y, key, rater in tables:
        kept = np.isin(key, targets) & np.isin(rater, people)
        table = np.full((len(targets), len(people)), np.nan)
        table[np.searchsorted(targets, key[kept]), np.searchsorted(people, rater[kept])] = y[kept]
        made.append(table)
    return made[0], made[1]


def criteria_section(measures: Measures, rows: RaterRows, options: Options) -> Section:
    """Every pair of criteria, over all raters and in each condition."""
    title = "Consistency of one criterion against another"
    body: list[tuple[Cell, ...]] = []
    said: list[str] = []
    places: list[tuple[str, int | None]] = [("all", None)]
    if len(rows.study.cells) > 1:
        places += [(name, number) for number, name in enumerate(cell_names(rows.study))]
    for first, second in itertools.combinations(measures.criteria, 2):
        for place, number in places:
            found = paired_icc_difference(*aligned(first, second, number, rows), options)
            icc_first, icc_second = (found.details.get(key) for key in ("icc_first", "icc_second"))
            p = found.p_value if found.is_known else None
            body.append((first.label, second.label, place, icc_first, icc_second, found, p))
            if number is None:
                said.append(_sentence(first, second, found))
    table = Table(
        "consistency_of_criteria",
        "Consistency of criteria",
        (
            Column("first", "First"),
            Column("second", "Second"),
            Column("where", "Where"),
            Column("icc_first", "ICC, first", "number", 3),
            Column("icc_second", "ICC, second", "number", 3),
            Column("difference", "Difference", "estimate"),
            Column("p", "p, bootstrap", "p_value"),
        ),
        tuple(body),
        caption="ICC of a single rating. The interval draws raters and things rated, the same for both criteria.",
    )
    return Section("consistency_of_criteria", title, tuple(said), (table,))


def _sentence(first: Measure, second: Measure, found: Estimate) -> str:
    if not found.is_known:
        return f"Whether {first.label} is rated more consistently than {second.label} is not known: {found.notes[0]}."
    more, less = (first, second) if found.value >= 0 else (second, first)
    told = f"the difference in ICC is {with_interval(found)}, {p_words(found.p_value)}"
    if excludes(found):
        return f"Raters are more consistent on {more.label} than on {less.label}: {told}."
    return f"{first.label} and {second.label} are not demonstrably different in consistency: {told}."
