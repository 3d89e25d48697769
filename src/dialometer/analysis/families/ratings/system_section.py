"""The section on systems: which is best, means and pairwise differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dialometer.analysis.base.measures import OVERALL, Measure
from dialometer.analysis.base.scale_units import unit_words
from dialometer.analysis.base.wording import (
    after_correction,
    briefs,
    confidence_words,
    correction_name,
    inside,
    listed,
    p_words,
    test_words,
    value_only,
)
from dialometer.analysis.families.ratings.factor_effects import (
    difference_words,
    effect_heading,
    effect_label,
    interval_of,
    joint_heading,
    null_of,
    shown,
)
from dialometer.analysis.families.ratings.systems import SystemPair, SystemRatings
from dialometer.analysis.shared.ranking import lead_claims
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Claim, Column, Figure, Method, Section, Table
from dialometer.report.charts import Dot, dot_interval, forest
from dialometer.stats.effects.ordinal_systems import METHOD as ORDINAL
from dialometer.stats.effects.system_means import (
    FEWEST_LEVELS,
    MIXED,
    MOST_LEVELS,
    PLAIN,
    PLAIN_FIXED,
    ROBUST,
    ROBUST_FIXED,
)


@dataclass(frozen=True)
class Best:
    """The system with the highest mean, those that do not differ significantly from it, and the pair that decides."""

    system: int | None
    label: str
    rivals: tuple[str, ...]
    next_pair: SystemPair | None
    sentence: str
    short: str
    """The same without numbers, for the first line of a report."""
    numbers: str = ""
    """Only the numbers: the lead over the next system; or why there are none."""
    behind: tuple[str, ...] = ()
    """Systems that are significantly behind it."""
    p: float = math.nan
    """The corrected p-value of the lead over the next system."""

    def claims(self, *, is_primary: bool = True) -> tuple[Claim, ...]:
        """What the sentence claims: that the system is ahead of those who are not its rivals."""
        return lead_claims([self.label, *self.behind], (), is_primary=is_primary)


def best_system(ratings: SystemRatings, declared_p: Mapping[tuple[int, int], float] | None = None) -> Best:
    """The best system: certain when its lead over each other system is, after correction.

    ``declared_p`` gives the p-values of pairs that were declared and corrected with other declared tests.
    """
    measure, options = ratings.measure, ratings.options
    on = "over all criteria together" if measure.name == OVERALL else f"on {measure.label}"
    known = [system for system in ratings.systems if ratings.means[system].is_known]
    if len(known) < 2:
        names = listed(ratings.label(system) for system in ratings.systems)
        why = f"only {names} has judgments" if names else "no system has judgments"
        return Best(None, "", (), None, f"No comparison of systems {on}: {why}.", "Systems were not compared.")
    best = next(system for system in ratings.order if system in known)
    own = [pair for pair in ratings.pairs if pair.first == best]

    def p_of(pair: SystemPair) -> float:
        return pair.p_adjusted if declared_p is None else declared_p[pair.first, pair.second]

    if not any(pair.difference.has_interval for pair in own):
        return _unknown_best(on, own, tuple(ratings.label(pair.second) for pair in own))
    alpha = 1 - options.confidence
    rivals = [pair for pair in own if not p_of(pair) < alpha]
    nearest = own[0]  # pairs are in the order of the means; the nearest decides how the lead is described
    label, second = ratings.label(best), ratings.label(nearest.second)
    corrected = ""
    if options.correction != "none" and len(ratings.pairs) > 1:
        corrected = after_correction(options.correction)

    def words(pair: SystemPair) -> str:
        higher = difference_words(measure, pair.difference, ratings.label(pair.second))
        return f"{higher}, {interval_of(measure, pair.difference)}, {p_words(p_of(pair))}"

    details = f"{words(nearest)}{corrected}"
    tied = _tied(measure, nearest.difference, label, second) if nearest in rivals and is_tie(nearest.difference) else ""
    numbers = tied or f"{label} is rated {details}."
    clear = [pair for pair in own if pair not in rivals]
    if clear and nearest in rivals and not tied:  # what is significant comes first
        numbers = f"{label} is rated {words(clear[0])}, and {details}."
    names = listed(ratings.label(pair.second) for pair in rivals)
    does = "does" if len(rivals) == 1 else "do"
    if len(own) == 1:
        relation = (
            "is rated higher than {}"
            if not rivals
            else "and {} are tied"
            if tied
            else "and {} do not differ significantly"
        )
        short = f"{label} {relation.format(second)} {on}."
        text = f"{short[:-1]}: {numbers}" if rivals else f"{on[0].upper()}{on[1:]}, {label} is rated {details}."
    elif not rivals:
        short = f"{label} is rated best {on}."
        text = f"{label} is rated best {on}, ahead of every other system: {details}."
    elif len(rivals) == len(own):
        short = f"No system is significantly best {on}."
        not_apart = f"{label} has the highest mean, but {names} {does} not differ from it significantly ({details})."
        text = f"{short[:-1]}: {tied or not_apart}"
    else:
        short = f"{label} has the highest ratings {on}, but {names} {does} not differ from it significantly."
        text = f"{short[:-1]} ({details})."
    few = item_limit(ratings)
    near = {pair.second for pair in rivals}
    behind = tuple(ratings.label(pair.second) for pair in own if pair.second not in near)
    level = tuple(ratings.label(pair.second) for pair in rivals)
    return Best(best, label, level, nearest, f"{text}{few}", f"{short}{few}", numbers, behind, p_of(nearest))


def _unknown_best(on: str, own: Sequence[SystemPair], behind: tuple[str, ...]) -> Best:
    why = next((note for pair in own for note in pair.difference.notes), "not enough data")
    short = f"Which system is best {on} is not known."
    return Best(None, "", behind, None, f"{short[:-1]}: {why}.", short, numbers=f"{why[:1].upper()}{why[1:]}.")


def _tied(measure: Measure, difference: Estimate, first: str, second: str) -> str:
    size = f"{'ratio' if measure.is_log else 'difference'} {value_only(shown(measure, difference))}"
    same = "the same mean" if abs(difference.value) < ROUNDING else "nearly the same mean"
    return f"{first} and {second} have {same} ({size}, {interval_of(measure, difference)})."


ROUNDING = 1e-9
"""Two means that differ by less do so only in the arithmetic."""


def is_tie(difference: Estimate) -> bool:
    """Whether a difference is nothing as it is written, with two digits."""
    return abs(difference.value) < 0.005


def item_limit(ratings: SystemRatings) -> str:
    """What a claim must add where it is about the items shown only; empty where it is general."""
    if ratings.options.has_fixed_items:
        return " This is about the items of this study only, as declared."
    return " This is about the one item shown; one item is too few for a general claim." if ratings.n_items == 1 else ""


TITLE = "Systems"
PAIRS_TITLE = "Systems compared two by two"


def system_section(by_measure: list[SystemRatings]) -> Section:
    """Means of the systems on every measure."""
    return Section("systems", TITLE, (), (*mean_figures(by_measure), _means_table(by_measure)))


def pair_section(by_measure: list[SystemRatings], declared: Sequence[Mapping[tuple[int, int], float]] = ()) -> Section:
    """All pairwise differences and the best system on every measure; the first measure is drawn.

    ``declared`` gives for each measure the p-values of pairs that were declared, which are corrected with other tests.
    """
    declared = declared or [{} for _ in by_measure]
    paragraphs = [
        best_system(ratings, p_of if p_of and len(p_of) == len(ratings.pairs) else None).sentence
        for ratings, p_of in zip(by_measure, declared, strict=True)
    ]
    parts: tuple[Table | Figure, ...] = (_pairs_table(by_measure, declared), *_pair_figure(by_measure[0]))
    return Section("system_pairs", PAIRS_TITLE, tuple(paragraphs), parts)


def _means_table(by_measure: list[SystemRatings]) -> Table:
    order = by_measure[0].order
    body: list[tuple[Cell, ...]] = [
        (by_measure[0].label(system), *(ratings.means.get(system) for ratings in by_measure)) for system in order
    ]
    is_log = all(ratings.measure.is_log for ratings in by_measure)
    columns = [Column("system", "System")]
    columns += [
        Column(
            ratings.measure.name,
            f"{_headed(ratings.measure)}{', geometric mean' if ratings.measure.is_log and not is_log else ''}",
            "estimate",
        )
        for ratings in by_measure
    ]
    return Table(
        "system_means",
        "Geometric mean rating of each system" if is_log else "Mean rating of each system",
        tuple(columns),
        tuple(body),
        caption=f"{_scope(by_measure[0])} Means and differences come from the same fit.",
    )


def _headed(measure: Measure) -> str:
    """The measure with its scale, where the scales of a table differ."""
    if measure.unit == "percent":
        return f"{measure.label}, % of the scale"
    if measure.unit == "z":
        return f"{measure.label}, z within raters"
    if measure.unit == "points":
        low, high = measure.scales[0].bounds()
        return f"{measure.label} ({low:g} to {high:g})" if math.isfinite(high - low) else measure.label
    return measure.label


def _pairs_table(by_measure: list[SystemRatings], declared: Sequence[Mapping[tuple[int, int], float]]) -> Table:
    body: list[tuple[Cell, ...]] = []
    measures = [ratings.measure for ratings in by_measure]
    units = {
        (ratings.measure.unit, _headed(ratings.measure).removeprefix(ratings.measure.label)) for ratings in by_measure
    }
    for ratings, p_of in zip(by_measure, declared, strict=True):
        measure = ratings.measure
        label = effect_label(measure, measures) if measure.is_log or len(units) == 1 else _headed(measure)
        for pair in ratings.pairs:
            difference = pair.difference
            is_known = difference.has_interval
            test = test_words("t", f"{difference.df[0]:.1f}", difference.statistic) if is_known else ""
            body.append(
                (
                    label,
                    ratings.label(pair.first),
                    ratings.label(pair.second),
                    shown(ratings.measure, difference),
                    test,
                    difference.p_value if is_known else None,
                    p_of.get((pair.first, pair.second), pair.p_adjusted) if is_known else None,
                    pair.raters_for_first,
                )
            )
    correction = by_measure[0].options.correction
    together = ""
    if any(row[5] != row[6] for row in body):
        together = " p-values are corrected over the pairs of each criterion"
        together += ", those of confirmatory comparisons as declared." if any(declared) else "."
    return Table(
        "system_pairs",
        PAIRS_TITLE,
        (
            Column("criterion", "Criterion"),
            Column("first", "System"),
            Column("second", "Compared with"),
            Column("estimate", joint_heading(measures), "estimate"),
            Column("test", "Test"),
            Column("p", "p", "p_value"),
            Column("p_adjusted", f"p ({correction_name(correction)})", "p_value"),
            Column("raters_for_first", "Raters who rate the first higher", "percent_estimate"),
        ),
        tuple(body),
        caption=f"{LAYOUT_WORDS[by_measure[0].layout]}{together}",
    )


def mean_figures(by_measure: list[SystemRatings]) -> list[Figure]:
    """Means of the systems, criteria on the same scale in one figure."""
    criteria = [ratings for ratings in by_measure if len(ratings.measure.criteria) == 1] or by_measure
    alike: dict[tuple[object, ...], list[SystemRatings]] = {}
    for ratings in criteria:
        ends = tuple(scale.bounds() for scale in ratings.measure.scales) if ratings.measure.unit == "points" else ()
        alike.setdefault((ratings.measure.unit, ends), []).append(ratings)
    return [_mean_figure(group, number) for number, group in enumerate(alike.values(), start=1)]


def _mean_figure(group: list[SystemRatings], number: int) -> Figure:
    facets = [ratings.measure.label if len(group) > 1 else "" for ratings in group]
    order = group[0].order
    dots = [
        Dot(ratings.label(system), ratings.means[system], facet=facet)
        for ratings, facet in zip(group, facets, strict=True)
        for system in sorted(ratings.systems, key=lambda system: order.index(system) if system in order else len(order))
    ]
    measure = group[0].measure
    labels = listed(ratings.measure.label for ratings in group)
    kind = "geometric mean rating" if measure.is_log else f"mean {unit_words(measure.unit)}"
    texts = briefs(dot.estimate for dot in dots)
    details = "; ".join(f"{dot.facet} {dot.label}: {text}".strip() for dot, text in zip(dots, texts, strict=True))
    return Figure(
        f"system_means_{number}",
        f"Ratings of the systems: {labels}",
        dot_interval(dots, value_title=kind, domain=_axis(measure), limits=measure.bounds),
        alt=f"{kind.capitalize()} of each system with its confidence interval. {details}.",
        caption=f"With {confidence_words(group[0].options.confidence)} confidence intervals. {_scope(group[0])}",
    )


def _axis(measure: Measure) -> tuple[float, float] | None:
    """The whole scale, where it has ends, so that a difference looks as large as it is."""
    low, high = measure.bounds
    return (low, high) if math.isfinite(high - low) else None


def _pair_figure(ratings: SystemRatings) -> list[Figure]:
    dots = [
        Dot(
            f"{ratings.label(pair.first)} against {ratings.label(pair.second)}", shown(ratings.measure, pair.difference)
        )
        for pair in ratings.pairs
    ]
    if not any(dot.estimate.has_interval for dot in dots):
        return []
    texts = briefs(dot.estimate for dot in dots)
    details = "; ".join(f"{dot.label}: {text}" for dot, text in zip(dots, texts, strict=True))
    heading = effect_heading(ratings.measure).lower()
    return [
        Figure(
            "system_differences",
            f"Differences between the systems, {inside(ratings.measure.label)}",
            forest(dots, value_title=heading, reference=null_of(ratings.measure)),
            alt=f"{heading.capitalize()} of each pair of systems. {details}.",
            caption="Confidence intervals are not corrected for the number of pairs; the p-values in the table are."
            if len(dots) > 1
            else "",
        )
    ]


LAYOUT_WORDS = {
    "screens": "Raters saw several systems on the same item; differences are taken within rater and item.",
    "items": "Items were shown with several systems, each rater saw one of them; differences are taken within items as "
    "far as the data allow.",
    "apart": "Items show one system each; systems are compared over raters and items.",
}


def _scope(ratings: SystemRatings) -> str:
    """Which raters and items the intervals are about."""
    if ratings.is_about_these_items:
        return "The confidence intervals are about other raters and these items only."
    return "The confidence intervals are about other raters and other items like these."


def system_methods(by_measure: list[SystemRatings]) -> tuple[Method, ...]:
    """The models that were really fitted, and why these."""
    methods: dict[str, list[SystemRatings]] = {}
    for ratings in by_measure:
        methods.setdefault(ratings.method, []).append(ratings)
    made = []
    for method, own in methods.items():
        if not method:
            continue
        on = "" if len(methods) == 1 else f" ({listed(ratings.measure.label for ratings in own)})"
        made.append(
            Method(f"Comparison of systems{on}", METHOD_WORDS[method], _reason(method, own), METHOD_SOURCES[method])
        )
    return tuple(made)


def _reason(method: str, own: list[SystemRatings]) -> str:
    """Why this model: of the jackknife, what these data have that rules out a mixed model of differences within screens."""
    if method not in (ROBUST, PLAIN):
        return METHOD_REASONS[method]
    fewest = [min(ratings.n_raters, ratings.n_items) for ratings in own]
    causes = {
        "not every screen has a rating of each system": any(np.isnan(ratings.compared.y).any() for ratings in own),
        f"there are fewer than {FEWEST_LEVELS} raters or items": min(fewest) < FEWEST_LEVELS,
        f"there are more than {MOST_LEVELS} raters and items": max(fewest) > MOST_LEVELS,
    }
    why = listed(cause for cause, holds in causes.items() if holds)
    return f"{why}; {JACKKNIFE}" if why else JACKKNIFE


JACKKNIFE = (
    "the jackknife covers rater × system and item × system variation and variances that differ between systems, without a model "
    "of them"
)
METHOD_WORDS = {
    ORDINAL: "Cumulative link mixed model (logit) with random raters and items and their slopes for systems, Laplace's approximation, "
    "Wald's t; means and differences in points as the model expects them",
    MIXED: "Differences within screens in a linear mixed model with random raters and items (REML; one model for each "
    "difference, screens weighted alike for all), Satterthwaite's t",
    ROBUST: "Means of the linear mixed model rating ~ system + (1 | rater) + (1 | item); their uncertainty by a two-way "
    "jackknife over raters and items, Student's t",
    ROBUST_FIXED: "Means of the linear mixed model rating ~ system + (1 | rater) + (1 | item); their uncertainty by a jackknife "
    "over raters, with the items as they are, Student's t",
    PLAIN: "Means of the ratings, all of which weigh alike; their uncertainty by a two-way jackknife over raters and items, "
    "Student's t",
    PLAIN_FIXED: "Means of the ratings, all of which weigh alike; their uncertainty by a jackknife over raters, with the items as "
    "they are, Student's t",
}
METHOD_REASONS = {
    ORDINAL: "declared: the points of a Likert scale have an order, but nobody knows their distances",
    MIXED: "raters judged all systems on the same item: the rater's level and the item's difficulty cancel, and random raters "
    "and items of a difference are the rater × system and item × system variation",
    ROBUST_FIXED: "the claim is about the items shown: only raters are a sample",
    PLAIN_FIXED: "the claim is about the items shown: only raters are a sample",
}
METHOD_SOURCES = {
    ORDINAL: "Agresti 2010; Christensen 2019; Liddell & Kruschke 2018",
    MIXED: "Baayen, Davidson & Bates 2008; Barr et al. 2013",
    ROBUST: "Barr et al. 2013; Cameron, Gelbach & Miller 2011; MacKinnon, Nielsen & Webb 2023",
    ROBUST_FIXED: "MacKinnon, Nielsen & Webb 2023",
    PLAIN: "Cameron, Gelbach & Miller 2011; MacKinnon, Nielsen & Webb 2023",
    PLAIN_FIXED: "MacKinnon, Nielsen & Webb 2023",
}
