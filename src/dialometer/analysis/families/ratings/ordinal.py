"""Would another model of Likert ratings say the same? The systems by the linear and by the ordinal mixed model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialometer.analysis.base.wording import correction_name, listed, n_of
from dialometer.analysis.families.ratings.ordinal_model import has_order, is_quick
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.effects.ordinal_systems import OrdinalSystems

NAME, TITLE = "ordinal", "Ratings as ordered categories"
METHOD = Method(
    "Ratings as ordered categories",
    "Cumulative link mixed model (logit), random raters and items with slopes for systems, Laplace's approximation, Wald's t",
    "the points of a Likert scale have an order, but nobody knows their distances",
    "Agresti 2010; Christensen 2019; Liddell & Kruschke 2018",
)


def ordinal_section(by_measure: Sequence[SystemRatings]) -> Section:
    """One row for each criterion and pair of systems: both models side by side, and whether they agree."""
    ordered = [ratings for ratings in by_measure if has_order(ratings.measure) and len(ratings.systems) > 1]
    if not ordered:
        raise NotEnoughData("no criterion is rated on the points of an ordered scale", remedy="use a Likert scale")
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    differing: list[str] = []
    fitted: list[str] = []
    for ratings in ordered:
        if not ratings.is_by_order and not is_quick(ratings.measure):
            notes.append(
                f"{ratings.measure.label}: too many raters and items to fit it in passing; use dm.ordinal_model"
            )
            continue
        model = ratings.ordinal
        if isinstance(model, str):
            notes.append(f"{ratings.measure.label}: {model}")
            continue
        rows, differ = _rows(ratings, model)
        body += rows
        fitted.append(ratings.measure.label)
        differing += differ
    if not body:
        raise NotEnoughData(notes[0] if notes else "not enough ratings", remedy="collect more ratings")
    options = ordered[0].options
    sampled = "raters" if options.has_fixed_items else "raters and items"
    together = ""
    if len(body) > len(fitted):
        together = f" p-values: {correction_name(options.correction)} over the pairs of each criterion."
    paragraphs = [
        "A Likert scale has an order, but the distances between its points are not known. The ordinal model uses the order "
        "alone; an odds ratio of 2 means that the odds of a higher rating are twice as high.",
        _verdict(differing, len(body), listed(fitted), is_declared=options.model == "ordinal"),
    ]
    table = Table(
        NAME,
        "Systems by the linear and the ordinal model",
        (
            Column("comparison", "Comparison"),
            Column("linear", "Linear", "estimate"),
            Column("p_linear", "p", "p_value"),
            Column("points", "Ordinal", "estimate"),
            Column("p_ordinal", "p", "p_value"),
            Column("odds_ratio", "Odds ratio", "estimate"),
        ),
        tuple(body),
        caption=f"Differences in points. Both models take {sampled} as samples.{together}",
        notes=tuple(notes),
    )
    return Section(NAME, TITLE, tuple(paragraphs), (table,))


def _rows(ratings: SystemRatings, model: OrdinalSystems) -> tuple[list[tuple[Cell, ...]], list[str]]:
    linear = replace(ratings, options=replace(ratings.options, model="linear"))
    alpha = 1 - ratings.options.confidence
    pairs = [pair for pair in linear.pairs if {pair.first, pair.second} <= set(model.systems)]
    odds = [replace(model.odds_ratio(pair.first, pair.second), unit="odds ratio") for pair in pairs]
    points = [model.difference(pair.first, pair.second) for pair in pairs]
    adjusted = adjust([estimate.p_value for estimate in points], ratings.options.correction)
    rows: list[tuple[Cell, ...]] = []
    differing = []
    for pair, ratio, difference, p in zip(pairs, odds, points, adjusted, strict=True):
        first, second = ratings.label(pair.first), ratings.label(pair.second)
        is_known = pair.difference.has_interval
        p_linear = pair.p_adjusted if is_known else None
        name = f"{ratings.measure.label}: {first} against {second}"
        rows.append((name, pair.difference, p_linear, difference, float(p), ratio))
        if is_known and (pair.p_adjusted < alpha) != (float(p) < alpha):
            differing.append(name)
    return rows, differing


def _verdict(differing: list[str], n: int, criteria: str, *, is_declared: bool) -> str:
    which, other = ("ordinal", "linear") if is_declared else ("linear", "ordinal")
    chosen = f"The {which} model is the declared one" if is_declared else f"The report uses the {which} model"
    if not differing:
        every = "the comparison" if n == 1 else f"all {n} comparisons"
        return f"{chosen}; on {criteria}, the {other} model gives the same verdict in {every} of systems."
    return f"{chosen}; the {other} model gives another verdict in {len(differing)} of {n_of(n, 'comparison')}: {listed(differing)}."
