"""How many raters and items would be enough? Where the variance of ratings comes from, and what other designs would give."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from dialometer.analysis.base.measures import OVERALL, Measure
from dialometer.analysis.base.wording import confidence_words, n_of, number, percent
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.model.recruitment import Recruitment
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.report.charts import LinePoint, lines
from dialometer.stats.effects.generalizability import FEWEST, REST, GStudy, cheapest_design, g_study, raters_needed

NAME, TITLE = "generalisability", "How many raters and items would be enough?"
LABELS = {
    "system": "Systems",
    "item": "Items: easy or hard for all systems",
    "rater": "Raters: severe or lenient",
    "system:item": "Systems × items: what suits a system",
    "system:rater": "Systems × raters: taste",
    "item:rater": "Items × raters",
    REST: "The rest, error included",
}
MARGINS = {"points": (0.025, 0.05, 0.1), "percent": (0.025, 0.05, 0.1), "log": (1.05, 1.1, 1.25)}
"""Margins to plan for: shares of the scale's range, or factors for magnitudes."""
METHOD = Method(
    "Raters and items needed",
    "Generalisability and decision study: variance components by analysis of variance or REML",
    "it shows whether more raters or more items would make the next study more precise",
    "Brennan 2001; Shavelson & Webb 1991",
)


@dataclass(frozen=True)
class Planned:
    """The variance components of a measure and what the study's own numbers are."""

    measure: Measure
    study: GStudy
    load: int
    """Items that a rater judges on average."""
    quantile: float

    def margin(self, n_raters: float, n_items: float) -> float:
        """Half the width of the confidence interval of a difference; a factor for magnitudes."""
        half = self.quantile * self.study.contrast_error(n_raters, n_items, self.load)
        return math.exp(half) if self.measure.is_log else half

    def error_for(self, margin: float) -> float:
        """The standard error that gives such an interval."""
        return (math.log(margin) if self.measure.is_log else margin) / self.quantile

    def words(self, margin: float) -> str:
        """The margin with its unit."""
        if self.measure.is_log:
            return f"a factor of {margin:.2f}"
        unit = "percentage points of the scale" if self.measure.unit == "percent" else "points"
        return f"±{margin:.{self.n_digits}f} {unit}"

    @property
    def n_digits(self) -> int:
        """Digits of points: one where ratings are spread over tens of points, as on scales to 100, else two."""
        return 1 if self.measure.is_wide else 2

    @property
    def margins(self) -> tuple[float, ...]:
        """The margins to plan for."""
        if self.measure.unit == "percent":
            return tuple(100 * share for share in MARGINS["percent"])
        if self.measure.is_log:
            return MARGINS["log"]
        low, high = self.measure.scales[0].bounds()
        reach = high - low if math.isfinite(high - low) else 4 * float(self.measure.y.std())
        return tuple(share * reach for share in MARGINS["points"])


def generalisability_section(ratings: SystemRatings, recruitment: Recruitment) -> Section:
    """Variance components of the measure that decides, its precision by raters and items, and the cheapest designs."""
    plan = _plan(ratings)
    study = plan.study
    now = plan.margin(study.n_raters, study.n_items)
    on = "over all criteria together" if plan.measure.name == OVERALL else f"on {plan.measure.label}"
    level = confidence_words(ratings.options.confidence)
    paragraphs = (
        f"With {n_of(study.n_raters, 'rater')} and {n_of(study.n_items, 'item')} as in this study, the difference of two "
        f"systems {on} would by this plan be known to about {plan.words(now)} ({level} confidence interval, raters and items as "
        "samples). " + _advice(plan),
        "This is a plan from the variances of this study, which are estimates themselves, with normal quantiles. It tests "
        "nothing, and with few raters or items the confidence intervals of the tests are wider.",
    )
    parts = (_figure(plan, on), _designs(plan, recruitment, on), _components(plan, on))
    return Section(NAME, TITLE, paragraphs, parts)


def _plan(ratings: SystemRatings) -> Planned:
    measure = ratings.measure
    table = ratings.table
    given = ~np.isnan(table.y)
    n = given.sum(axis=1)
    study = g_study(table.y[given], np.nonzero(given)[1], np.repeat(table.item, n), np.repeat(table.rater, n))
    quantile = float(special.ndtri((1 + ratings.options.confidence) / 2))
    return Planned(measure, study, max(1, round(study.items_per_rater)), quantile)


def _advice(plan: Planned) -> str:
    """Which of twice the raters and twice the items would help more."""
    study = plan.study
    now = plan.margin(study.n_raters, study.n_items)
    raters, items = plan.margin(2 * study.n_raters, study.n_items), plan.margin(study.n_raters, 2 * study.n_items)
    more = "raters" if raters < items else "items"
    return f"Twice as many raters would make it {plan.words(raters)}, twice as many items {plan.words(items)}" + (
        f"; more {more} help more." if abs(raters - items) > 0.02 * abs(now) else "; both help alike."
    )


def _figure(plan: Planned, on: str) -> Figure:
    study = plan.study
    many = max(4 * study.n_raters, 40)
    steps = sorted({FEWEST, *(round(many * share / 20) for share in range(1, 21)), study.n_raters})
    items = _item_numbers(study)
    points = [
        LinePoint(float(n), plan.margin(n, n_items), group=n_of(n_items, "item"))
        for n_items in items
        for n in steps
        if n >= FEWEST
    ]
    heading = "confidence interval, as a factor" if plan.measure.is_log else "confidence interval, ± points"
    if plan.measure.unit == "percent":
        heading = "confidence interval, ± percentage points of the scale"
    details = "; ".join(
        f"{n_of(n_items, 'item')}: {plan.words(plan.margin(study.n_raters, n_items))}" for n_items in items
    )
    return Figure(
        "generalisability",
        f"Precision by number of raters and items, {on}",
        lines(points, x_title="raters", y_title=heading, group_title="items", mark_x=float(study.n_raters)),
        alt=f"Half the width of the confidence interval of a difference by raters, one line for each number of items. "
        f"With {n_of(study.n_raters, 'rater')}: {details}.",
        caption=f"A rater judges at most {n_of(plan.load, 'item')}, the mean of this study. The vertical line is the study's "
        "own number of raters.",
    )


def _designs(plan: Planned, recruitment: Recruitment, on: str) -> Table:
    """Raters (and their pay) that each wanted precision takes with so many items, and the cheapest of these designs."""
    per_item = recruitment.cost_cents() / 100 / plan.load
    numbers = _item_numbers(plan.study)
    body: list[tuple[Cell, ...]] = []
    for margin in plan.margins:
        error = plan.error_for(margin)
        cells = []
        for n_items in numbers:
            n_raters = raters_needed(plan.study, error, n_items, plan.load)
            cost = (n_raters or 0) * min(n_items, plan.load) * per_item
            paid = f", {number(cost)} {recruitment.currency}" if cost else ""
            cells.append("more items needed" if n_raters is None else f"{n_of(n_raters, 'rater')}{paid}")
        best = cheapest_design(plan.study, error, items_per_rater=plan.load, most_items=numbers[-1])
        cheapest = "none" if best is None else f"{n_of(best.n_raters, 'rater')} × {n_of(best.n_items, 'item')}"
        body.append((plan.words(margin), *cells, cheapest))
    pay = (
        f"Pay and fees as declared ({number(per_item * plan.load)} {recruitment.currency} a session), in proportion to the "
        "items that a rater judges."
        if per_item
        else "No pay is declared; the cheapest design is that with the fewest judgments."
    )
    return Table(
        "designs",
        f"Raters needed for a wanted precision, {on}",
        (
            Column("margin", "Wanted confidence interval of a difference"),
            *(Column(f"items_{n_items}", f"With {n_of(n_items, 'item')}") for n_items in numbers),
            Column("cheapest", f"Cheapest with up to {n_of(numbers[-1], 'item')}"),
        ),
        tuple(body),
        caption=f"{pay} A rater judges at most {n_of(plan.load, 'item')}, the mean of this study; excluded raters come on top. "
        f"At least {n_of(FEWEST, 'rater')}.{_shares(plan.study)}",
    )


def _shares(study: GStudy) -> str:
    """That a system has only a part of the items, where it does."""
    if study.share_of_items > 1 - 1e-9:
        return ""
    return f" A system has {percent(study.share_of_items)} of the items, as in this study."


def _item_numbers(study: GStudy) -> list[int]:
    """Half as many items, as many, twice and five times as many as now."""
    return sorted({max(FEWEST, study.n_items // 2), study.n_items, 2 * study.n_items, 5 * study.n_items})


def _components(plan: Planned, on: str) -> Table:
    study = plan.study
    total = sum(study.components.values())
    body: list[tuple[Cell, ...]] = [
        (label, study.components[name], study.components[name] / total if total > 0 else None)
        for name, label in LABELS.items()
        if name in study.components
    ]
    g, phi = (
        coefficient(study.n_raters, study.n_items, plan.load)
        for coefficient in (study.generalizability, study.dependability)
    )
    return Table(
        "variance_components",
        f"Where the variance of the ratings comes from, {on}",
        (
            Column("source", "Source"),
            Column("variance", "Variance", "number", n_digits=3 if plan.n_digits == 2 else 1),
            Column("share", "Share of a single rating's variance", "percent"),
        ),
        tuple(body),
        caption=f"Variance components by {study.method}. Reliability of the systems' means in this study, raters and items as "
        f"samples: G = {g:.2f} for their order, Φ = {phi:.2f} for their level (0 to 1).",
        notes=tuple(f"{note[0].upper()}{note[1:]}." for note in study.notes)
        + tuple(
            f"The variance of “{LABELS[name]}” cannot be separated from that of “{LABELS[same]}” and is part of it."
            for name, same in study.joined
        ),
    )
