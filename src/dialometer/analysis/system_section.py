"""The chapter on systems: means, pairwise differences and their picture."""

from __future__ import annotations

from dialometer.analysis.best_system import best_system
from dialometer.analysis.factor_sentences import effect_heading, null_of, shown
from dialometer.analysis.measures import Measure
from dialometer.analysis.scale_units import bounds, unit_words
from dialometer.analysis.system_ratings import SystemRatings
from dialometer.analysis.words import correction_name, listed, test_words
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.report.charts import Dot, dot_interval, forest

TITLE = "Systems"


def system_section(found: list[SystemRatings], *, is_confirmatory: bool = False) -> Section:
    """Means of the systems on every measure and all pairwise differences; the first measure is drawn."""
    said = [best_system(one).sentence for one in found]
    parts: list[Table | Figure] = [*mean_figures(found), _means_table(found)]
    if len(found[0].systems) > 1:
        parts += [_pairs_table(found), *_pair_figure(found[0])]
    return Section("systems", TITLE, tuple(said), tuple(parts), is_confirmatory=is_confirmatory)


def _means_table(found: list[SystemRatings]) -> Table:
    order = sorted(found[0].systems, key=lambda system: -found[0].means[system].value)
    body: list[tuple[Cell, ...]] = [
        (found[0].label(system), *(one.means.get(system) for one in found)) for system in order
    ]
    is_log = found[0].measure.is_log
    columns = [Column("system", "System")]
    columns += [Column(one.measure.name, _headed(one.measure), "estimate") for one in found]
    return Table(
        "system_means",
        "Geometric mean rating of each system" if is_log else "Mean rating of each system",
        tuple(columns),
        tuple(body),
        caption="Intervals speak for other raters and other items like these.",
    )


def _headed(measure: Measure) -> str:
    """The measure with its scale, where the scales of a table differ."""
    if measure.unit == "percent":
        return f"{measure.label}, % of the scale"
    if measure.unit == "points":
        low, high = bounds(measure.scales[0])
        return f"{measure.label} ({low:g} to {high:g})"
    return measure.label


def _pairs_table(found: list[SystemRatings]) -> Table:
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    units = {(one.measure.unit, _headed(one.measure).removeprefix(one.measure.label)) for one in found}
    for one in found:
        for pair in one.pairs:
            difference = pair.difference
            is_known = difference.has_interval
            test = test_words("t", f"{difference.df[0]:.1f}", difference.statistic) if is_known else ""
            body.append(
                (
                    one.measure.label if len(units) == 1 else _headed(one.measure),
                    one.label(pair.first),
                    one.label(pair.second),
                    shown(one.measure, difference),
                    test,
                    difference.p_value if is_known else None,
                    pair.p_adjusted if is_known else None,
                    pair.raters_for_first,
                )
            )
            notes += difference.notes
    correction = found[0].options.correction
    paired = "Differences are taken within rater and item." if found[0].is_paired else "Items show one system each."
    return Table(
        "system_pairs",
        "Systems compared two by two",
        (
            Column("criterion", "Criterion"),
            Column("first", "System"),
            Column("second", "Compared with"),
            Column("estimate", effect_heading(found[0].measure) if len(units) == 1 else "Difference", "estimate"),
            Column("test", "Test"),
            Column("p", "p", "p_value"),
            Column("p_adjusted", f"p, {correction_name(correction)}", "p_value"),
            Column("raters_for_first", "Raters who rate the first higher", "percent_estimate"),
        ),
        tuple(body),
        caption=f"{paired} p values are corrected over the pairs of each criterion.",
        notes=tuple(dict.fromkeys(notes)),
    )


def mean_figures(found: list[SystemRatings]) -> list[Figure]:
    """Means of the systems, criteria on the same scale in one figure."""
    criteria = [one for one in found if len(one.measure.criteria) == 1] or found
    alike: dict[tuple[object, ...], list[SystemRatings]] = {}
    for one in criteria:
        ends = tuple(bounds(scale) for scale in one.measure.scales) if one.measure.unit == "points" else ()
        alike.setdefault((one.measure.unit, ends), []).append(one)
    return [_mean_figure(group, number) for number, group in enumerate(alike.values(), start=1)]


def _mean_figure(group: list[SystemRatings], number: int) -> Figure:
    facets = [one.measure.label if len(group) > 1 else "" for one in group]
    order = sorted(group[0].systems, key=lambda system: -group[0].means[system].value)
    dots = [
        Dot(one.label(system), one.means[system], facet=facet)
        for one, facet in zip(group, facets, strict=True)
        for system in sorted(one.systems, key=lambda system: order.index(system) if system in order else len(order))
    ]
    measure = group[0].measure
    labels = listed(one.measure.label for one in group)
    kind = "geometric mean rating" if measure.is_log else f"mean {unit_words(measure.unit)}"
    told = "; ".join(f"{dot.facet} {dot.label}: {dot.estimate}".strip() for dot in dots)
    return Figure(
        f"system_means_{number}",
        f"Ratings of the systems: {labels}",
        dot_interval(dots, value_title=kind),
        alt=f"{kind} of each system with its interval. {told}.",
        caption=f"{100 * group[0].options.confidence:g}% intervals that speak for other raters and items.",
    )


def _pair_figure(one: SystemRatings) -> list[Figure]:
    dots = [
        Dot(f"{one.label(pair.first)} against {one.label(pair.second)}", shown(one.measure, pair.difference))
        for pair in one.pairs
    ]
    if not any(dot.estimate.has_interval for dot in dots):
        return []
    told = "; ".join(f"{dot.label}: {dot.estimate}" for dot in dots)
    heading = effect_heading(one.measure).lower()
    return [
        Figure(
            "system_differences",
            f"Differences between the systems, {one.measure.label.lower()}",
            forest(dots, value_title=heading, reference=null_of(one.measure)),
            alt=f"{heading.capitalize()} of each pair of systems. {told}.",
            caption="Intervals are not corrected for the number of pairs; the p values in the table are.",
        )
    ]


def system_methods(found: list[SystemRatings]) -> tuple[Method, ...]:
    """How systems were compared and why so."""
    one = found[0]
    if one.is_paired:
        why = "raters judged several systems on the same item, so the rater's level and the item's difficulty cancel"
        method = "Linear mixed model (REML) of paired differences with random raters and items, Satterthwaite's t"
    else:
        why = "items show one system each, so systems are compared over raters and items, both random"
        method = "Linear mixed model (REML) of the systems' means with random raters and items, Satterthwaite's t"
    return (Method("Comparison of systems", method, why, "Baayen, Davidson & Bates 2008; Barr et al. 2013"),)
