"""How severe each rater is: the many-facet Rasch model of ratings on a scale of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure
from dialometer.analysis.base.wording import listed, n_of, number, p_words, percent
from dialometer.analysis.families.ratings.ordinal_model import has_order, rated_points
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.report.charts import Dot, bin_values, dot_interval, histogram
from dialometer.stats.effects.rasch import Rasch, RaterSeverity, many_facet_rasch

NAME, TITLE = "severity", "Severity of the raters"
MOST_DRAWN = 40
N_ENDS = 5
ERRATIC, REGULAR = 1.5, 0.5
"""Infit beyond which a rater is called erratic or too regular (Wright and Linacre 1994)."""
CHANCE = 2.0
"""Infit of n ratings varies by chance up to about this divided by the root of n (Smith, Schumacker and Bush 1998)."""
FEWEST_RATINGS = 5
TOO_FEW = f"fewer than two raters gave {FEWEST_RATINGS} ratings that are not all at one end"
MORE_EACH = "have each rater rate more"
METHOD = Method(
    "Severity of the raters",
    "Many-facet Rasch model (rating scale), joint maximum likelihood",
    "it puts raters on one scale with what they rated, also where raters judged different items",
    "Linacre 1989; Eckes 2015",
)


def severity_section(criteria: Sequence[Measure], options: Options) -> Section:
    """The most severe and the most lenient raters with fit, and a figure of all; exploratory."""
    chosen = _alike(criteria)
    n_ratings = np.bincount(np.concatenate([measure.rater for measure in chosen]))
    if (n_ratings >= FEWEST_RATINGS).sum() < 2:
        raise NotEnoughData(TOO_FEW, remedy=MORE_EACH)
    model = _fit(chosen, options)
    rows = sorted(model.raters, key=lambda row: -row.severity.value)
    usual = [row for row in rows if not row.is_extreme and row.severity.n >= FEWEST_RATINGS]
    if len(usual) < 2:
        raise NotEnoughData(TOO_FEW, remedy=MORE_EACH)
    labels = listed(measure.label for measure in chosen)
    return Section(
        NAME, TITLE, _paragraphs(model, usual, labels, 1 - options.confidence), (_figure(rows), _table(rows))
    )


def _alike(criteria: Sequence[Measure]) -> list[Measure]:
    """The largest set of criteria that share one scale."""
    sets: dict[tuple[float, ...], list[Measure]] = {}
    for measure in criteria:
        if has_order(measure):
            sets.setdefault(tuple(measure.scales[0].category_labels()), []).append(measure)
    if not sets:
        raise NotEnoughData("no criterion is rated on the points of an ordered scale", remedy="use a Likert scale")
    return max(sets.values(), key=len)


def _fit(chosen: list[Measure], options: Options) -> Rasch:
    """All criteria on the scale together; an item on another criterion is another item."""
    names, n_items = chosen[0].book.raters, len(chosen[0].book.items)
    model = many_facet_rasch(
        np.concatenate([rated_points(measure) for measure in chosen]),
        np.concatenate([measure.system for measure in chosen]),
        np.concatenate([measure.item + place * n_items for place, measure in enumerate(chosen)]),
        np.concatenate([measure.rater for measure in chosen]),
        confidence=options.confidence,
    )
    return replace(model, raters=tuple(_named(row, names[row.rater]) for row in model.raters))


def _named(row: RaterSeverity, name: str) -> RaterSeverity:
    return replace(row, rater=name, severity=replace(row.severity, label=name))


def _paragraphs(model: Rasch, usual: list[RaterSeverity], labels: str, alpha: float) -> tuple[str, ...]:
    test = model.homogeneity
    severe, lenient = usual[0], usual[-1]
    first = (
        f"On {labels}, the most severe rater ({severe.rater}) would give {severe.fair_mean:.2f} where the most lenient "
        f"({lenient.rater}) gives {lenient.fair_mean:.2f}, on an average item of an average system. "
    )
    if test.p_value < alpha:
        first += (
            f"Raters are not equally severe (χ²({test.df[0]:.0f}) = {test.statistic:.1f}, {p_words(test.p_value)}): about "
            f"{percent(model.separation_reliability)} of the variance of the estimated severities is true variance, the rest is "
            "estimation error. "
        )
    else:
        first += f"Raters do not differ significantly in severity ({p_words(test.p_value)}). "
    first += "Where all raters judge all systems, severity cancels in their comparison."
    erratic = [str(row.rater) for row in usual if _is_odd(row) and row.infit > ERRATIC]
    regular = [str(row.rater) for row in usual if _is_odd(row) and row.infit < REGULAR]
    fit = []
    if erratic:
        fit.append(
            f"{n_of(len(erratic), 'rater')} answered more erratically than the model allows: {listed(erratic, most=5)}."
        )
    if regular:
        fit.append(
            f"{n_of(len(regular), 'rater')} answered more regularly than the model expects: {listed(regular, most=5)}."
        )
    none = f"No rater's answers are far from what the model expects (infit {REGULAR:g} to {ERRATIC:g})."
    if not all(REGULAR <= row.infit <= ERRATIC for row in usual):
        none = "No rater's answers are further from what the model expects than chance allows with so few ratings."
    return (first, " ".join(fit) or none)


def _is_odd(row: RaterSeverity) -> bool:
    """Whether answers fit badly, and more so than chance allows with as many ratings."""
    if REGULAR <= row.infit <= ERRATIC:
        return False
    return abs(row.infit - 1) > CHANCE / math.sqrt(max(row.severity.n, 1))


def _figure(rows: list[RaterSeverity]) -> Figure:
    if len(rows) <= MOST_DRAWN:
        spec = dot_interval(
            [Dot(str(row.rater), row.severity) for row in rows], value_title="severity, logits", reference=0.0
        )
        kind = "Severity of each rater with its confidence interval"
    else:
        values = [row.severity.value for row in rows]
        spec = histogram(
            bin_values(values, n_bins=20), value_title="severity, logits", count_title="raters", reference=0.0
        )
        kind = "Number of raters by severity"
    values = [row.severity.value for row in rows]
    return Figure(
        "severity",
        "Severity of the raters",
        spec,
        alt=f"{kind}, from {number(min(values))} to {number(max(values))} logits.",
        caption="To the right: more severe, lower ratings. The mean of all raters is 0.",
    )


def _table(rows: list[RaterSeverity]) -> Table:
    ends = rows if len(rows) <= 2 * N_ENDS else [*rows[:N_ENDS], *rows[-N_ENDS:]]
    odd = [row for row in rows if row not in ends and _is_odd(row)]
    body: list[tuple[Cell, ...]] = [
        (str(row.rater), row.severity.n, row.severity, row.fair_mean, row.infit, row.outfit)
        for row in [*ends, *odd[:10]]
    ]
    notes = [f"{row.rater}: {row.severity.notes[0]}" for row in [*ends, *odd[:10]] if row.severity.notes]
    shown = (
        "" if len(rows) <= 2 * N_ENDS else f"The {N_ENDS} most severe and {N_ENDS} most lenient of {len(rows)} raters"
    )
    shown += " and those whose answers fit badly. " if odd and shown else ". " if shown else ""
    smallest = min(row.severity.n for row in rows)
    few = ""
    if CHANCE / math.sqrt(max(smallest, 1)) > ERRATIC - 1:
        few = f" Of few ratings infit varies more by chance, up to about 1 ± {CHANCE:g} / √ratings."
    return Table(
        "severity",
        "Severity and fit of raters",
        (
            Column("rater", "Rater"),
            Column("ratings", "Ratings", "count"),
            Column("severity", "Severity, logits", "estimate"),
            Column("fair_mean", "Expected mean rating", "number"),
            Column("infit", "Infit", "number"),
            Column("outfit", "Outfit", "number"),
        ),
        tuple(body),
        caption=f"{shown}Infit and outfit are near 1 where answers are as the model expects, above {ERRATIC:g} erratic, below "
        f"{REGULAR:g} too regular.{few} Joint estimates lie too far apart by about 1 / (ratings − 1), here at most "
        f"{100 / max(smallest - 1, 1):.0f}%.",
        notes=tuple(notes),
    )
