"""Agreement of raters on each criterion when all raters saw the same thing: ICC, Krippendorff's alpha, Gwet's AC2, kappa."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, means_by_group
from dialometer.analysis.base.scale_units import alpha_level
from dialometer.analysis.base.wording import (
    KOO_LI,
    brief,
    first_note,
    listed,
    n_of,
    size_of_icc,
    value_only,
    with_interval,
)
from dialometer.analysis.families.ratings.systems import MOST_LEVELS
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.report.charts import COEFFICIENT, Dot, dot_interval
from dialometer.stats.agreement.gwet import gwet_coefficient
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.stats.agreement.krippendorff_alpha import interval_alpha, krippendorff_alpha
from dialometer.stats.icc.crossed import CrossedInterval, icc_crossed
from dialometer.stats.icc.forms import NO_MEAN, has_mean_reliability, spearman_brown
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.icc.unequal_raters import FEWEST_RATERS, over_raters_and_items
from dialometer.stats.observations import Floats, Ints, n_distinct, stack

# The form of the ICC follows from who judged what. All raters judged everything: two-way random effects (analysis of
# variance). Raters share part of the items: two-way from variance components. Raters differ from item to item, or there are
# too many of both: one-way, where differences in level between raters count as error.


Crossing = Literal["complete", "partly", "one_way", "none"]
IntervalMethod = Literal["unequal raters", "classical"]
Footing = Literal["as given", "log", "z"]
"""``log`` and ``z``: numbers that only say how a rater sees one thing relative to others, so that levels cannot disagree."""
REASONS = {
    "complete": "every rater judged everything in the condition, so raters are a random factor of a two-way design",
    "partly": "raters judged overlapping parts, so variance components (REML) use every judgment of the two-way design",
    "one_way": "raters differ from item to item, so differences between raters cannot be separated from error",
}
FORM_NAMES: dict[tuple[Crossing, Footing], str] = {
    ("complete", "as given"): "ICC(2,1) and ICC(2,k), two-way random effects, absolute agreement",
    ("partly", "as given"): "ICC(2,1) and ICC(2,k), absolute agreement, from variance components by REML",
    ("one_way", "as given"): "ICC(1,1) and ICC(1,k), one-way random effects",
    ("complete", "log"): "ICC(3,1) and ICC(3,k), consistency of the logarithms of magnitudes",
    (
        "partly",
        "log",
    ): "ICC(3,1) and ICC(3,k), consistency of the logarithms of magnitudes, from variance components by REML",
    ("one_way", "log"): "ICC(1,1) and ICC(1,k) of logarithms relative to each rater's own mean",
    ("complete", "z"): "ICC(3,1) and ICC(3,k), consistency of z scores within raters",
    ("partly", "z"): "ICC(3,1) and ICC(3,k), consistency of z scores within raters, from variance components by REML",
    ("one_way", "z"): "ICC(1,1) and ICC(1,k) of z scores within raters",
}
LEVELS_DO_NOT_COUNT = {
    "log": "raters choose their own numbers in magnitude estimation, so a rater's level says nothing and is not counted",
    "z": "raters used different scales, so only how a rater sees one thing relative to others is compared",
}


@dataclass(frozen=True, slots=True)
class Scores:
    """Judgments laid out for reliability: score, what was rated, who rated, and the item that it belongs to."""

    y: Floats
    target: Ints
    rater: Ints
    item: Ints | None = None
    footing: Footing = "as given"

    def of(self, rows: np.ndarray) -> Scores:
        """Only these judgments."""
        item = None if self.item is None else self.item[rows]
        return replace(self, y=self.y[rows], target=self.target[rows], rater=self.rater[rows], item=item)

    def relative(self) -> Floats:
        """Scores without raters' levels, where levels say nothing (Bard et al. 1996); else as they are."""
        if self.footing != "log":
            return self.y
        return np.asarray(self.y - means_by_group(self.y, self.rater, int(self.rater.max(initial=-1)) + 1)[self.rater])

    def form(self, *, is_complete: bool, is_average: bool = False) -> str:
        """The form of the ICC for such scores: consistency where levels say nothing, one-way for tables with holes."""
        number = (3 if self.footing != "as given" else 2) if is_complete else 1
        return f"ICC({number},{'k' if is_average else 1})"


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability of one rating and of the mean of the ratings that a target got."""

    crossing: Crossing
    single: Estimate
    average: Estimate
    n_raters: int
    n_targets: int
    footing: Footing = "as given"

    @property
    def n_averaged(self) -> float | None:
        """How many ratings the mean is taken over; where targets have different numbers, the harmonic mean of them.

        With one digit, as it is read: 4.97 is 5 like a k that is 5 for all.
        """
        return round(float(self.average.details["k"]), 1) if self.average.is_known else None

    @property
    def form(self) -> str:
        """The forms used, and of which numbers."""
        return FORM_NAMES[self.crossing, self.footing]

    @property
    def reason(self) -> str:
        """Why these forms."""
        more = LEVELS_DO_NOT_COUNT.get(self.footing)
        return f"{REASONS[self.crossing]}; {more}" if more else REASONS[self.crossing]


def scores(measure: Measure) -> Scores:
    """The judgments of a measure as reliability needs them."""
    footing: Footing = "log" if measure.is_log else "z" if measure.unit == "z" else "as given"
    return Scores(measure.y, measure.target, measure.rater, measure.item, footing)


def crossing(data: Scores) -> Crossing:
    """Who judged what."""
    if not len(data.y):
        return "none"
    per_rater, per_target = (counts[counts > 0] for counts in (np.bincount(data.rater), np.bincount(data.target)))
    n_raters, n_targets = len(per_rater), len(per_target)
    if n_raters < 2 or n_targets < 2:
        return "none"
    if len(data.y) == n_raters * n_targets:
        return "complete"
    is_shared = np.median(per_rater) >= 2 and np.median(per_target) >= 2
    return "partly" if is_shared and min(n_raters, n_targets) <= MOST_LEVELS else "one_way"


def matrix(data: Scores, y: Floats | None = None) -> Floats:
    """Targets by raters, ``nan`` where a rater did not judge a target."""
    targets, target = np.unique(data.target, return_inverse=True)
    raters, rater = np.unique(data.rater, return_inverse=True)
    table = np.full((len(targets), len(raters)), np.nan)
    table[target, rater] = data.y if y is None else y
    return table


def item_of_target(data: Scores) -> Ints | None:
    """The item of each row of :func:`matrix`; None where targets are items themselves."""
    _, first = np.unique(data.target, return_index=True)
    return None if data.item is None else data.item[first]


def reliability(
    data: Scores,
    *,
    confidence: float,
    label: str = "",
    form: str = "",
    method: IntervalMethod = "unequal raters",
    has_fixed_items: bool = False,
) -> Reliability:
    """The ICC in the form that the design asks for, or in another that is named (its single form).

    The interval takes raters and items as samples and raters as unequal (:mod:`dialometer.stats.icc.unequal_raters`);
    ``classical`` gives that of McGraw & Wong, or the profile of the likelihood where cells are missing.
    """
    kind = crossing(data)
    n_raters, n_targets = (n_distinct(codes) for codes in (data.rater, data.target))
    if kind == "none":
        why = f"{n_of(n_raters, 'rater')} and {n_of(n_targets, 'thing')} rated: at least two of each are needed; collect more"
        nothing = unknown("ICC", why, n=n_targets, label=label)
        return Reliability(kind, nothing, nothing, n_raters, n_targets, data.footing)
    wanted = form or data.form(is_complete=kind != "one_way")
    is_one_way = wanted == "ICC(1,1)"
    y = data.relative() if is_one_way else data.y
    is_classical = method == "classical" or n_raters < FEWEST_RATERS
    settings = {"confidence": confidence, "label": label}
    if kind == "complete":
        single = icc(matrix(data, y), wanted, **settings)  # type: ignore[arg-type]
        k = float(n_raters)
    elif is_one_way:
        single = icc_one_way(y, data.target, wanted, **settings)  # type: ignore[arg-type]
        k = float(single.details.get("k0", math.nan))
    else:
        interval: CrossedInterval = "auto" if is_classical else "none"
        single = icc_crossed(y, data.target, data.rater, wanted, interval=interval, **settings)  # type: ignore[arg-type]
        k = _typical(np.bincount(data.target))
    if not is_classical or n_raters < FEWEST_RATERS:
        single = over_raters_and_items(
            single, y, data.target, data.rater, clusters=data.item, has_fixed_items=has_fixed_items
        )
    return Reliability(kind, single, _averaged(single, k), n_raters, n_targets, data.footing)


def _typical(counts: Ints) -> float:
    """The harmonic mean of how often targets were rated."""
    given = counts[counts > 0]
    return len(given) / float(np.sum(1 / given))


LEAST_RELIABILITY = -1.0


def _averaged(single: Estimate, k: float) -> Estimate:
    """The average form from the single one (Spearman-Brown), as all average forms follow from it."""
    if not single.is_known:
        return single
    method = single.method.replace(",1)", ",k)")
    if not has_mean_reliability(single.value, k):
        return unknown(method, NO_MEAN, n=single.n, label=single.label)
    value, low, high = (spearman_brown(part, k) for part in (single.value, single.low, single.high))
    how = single.interval_method
    if low < LEAST_RELIABILITY:  # of few raters it has no end
        low, how = LEAST_RELIABILITY, f"{how}, cut at −1"
    details = {**single.details, "k": k}
    return replace(single, value=value, low=low, high=high, method=method, interval_method=how, details=details)


def raters_needed(single: float, wanted: float = 0.8) -> int | None:
    """How many raters' mean reaches the wanted reliability (Spearman-Brown); None where no number would."""
    if not 0 < single < 1:
        return None
    return max(1, int(np.ceil(round(wanted * (1 - single) / (single * (1 - wanted)), 9))))


WANTED = 0.8
ALPHA_WORDS = "Krippendorff (2018) asks for 0.8, and 0.667 at the least for tentative conclusions"


INTERVAL_WORDS = (
    "Confidence intervals take raters and items as samples and allow for raters who are worse than others, and for one careless rater "
    "more than was seen; p tests an ICC of 0 in the same way."
)
GWET_WORDS = " Gwet's AC2 (ordinal weights) falls less than α where most ratings are alike."


def interval_words(results: Iterable[Reliability]) -> str:
    """How intervals and tests are made; of fewer raters the cells say themselves what they take for granted."""
    return f" {INTERVAL_WORDS}" if any(result.n_raters >= FEWEST_RATERS for result in results) else ""


def forms_used(results: Iterable[Reliability]) -> str:
    """Every form of the ICC that was used, with its reason."""
    return " ".join(dict.fromkeys(f"{r.form}: {r.reason}." for r in results if r.crossing != "none"))


def reliability_methods(title: str, results: Iterable[Reliability]) -> tuple[Method, ...]:
    """The forms for the list of methods."""
    source = "Shrout & Fleiss 1979; McGraw & Wong 1996"
    forms = dict.fromkeys((r.form, r.reason) for r in results if r.crossing != "none")
    return tuple(Method(title, form, reason, source) for form, reason in forms)


POOR = 0.5
"""Below it Koo and Li (2016) call a reliability poor."""


RATED_BETTER = (
    "change the scale or its instructions, for example with labelled points, examples or a comparison instead"
)
IN_PARTS_BETTER = "define more exactly what to mark or check, with examples"
"""For marks in a text and checklists, whose answers have no points to label."""


def agreement_steps(section: Section, criteria: Iterable[Measure] = ()) -> tuple[str, ...]:
    """What to do where raters agree too little for their mean to be used: as many raters as that takes, or another scale."""
    in_parts = {m.label for m in criteria if all(scale.input_field().kind == "parts" for scale in m.scales)}
    poor, needs, remedies = [], [], []
    for table in (part for part in section.parts if isinstance(part, Table) and part.name == "rating_agreement"):
        names = [column.name for column in table.columns]
        for row in table.rows:
            cells = dict(zip(names, row, strict=True))
            average, single = cells["icc_average"], cells["icc_single"]
            if isinstance(average, Estimate) and average.is_known and round(average.value, 2) < POOR:
                poor.append(f"{cells['criterion']} (ICC {value_only(average)})")
                remedies.append(IN_PARTS_BETTER if cells["criterion"] in in_parts else RATED_BETTER)
                is_known = isinstance(single, Estimate) and single.is_known
                needs.append(raters_needed(single.value, WANTED) if is_known else None)  # type: ignore[union-attr]
    if not poor:
        return ()
    known = [n for n in needs if n is not None]
    is_few = len(known) == len(needs) and max(known) <= MOST_RATERS
    more = f", or have about {max(known)} raters judge each item" if is_few else ""
    remedy = listed(dict.fromkeys(remedies), conjunction="or")
    return (f"Agreement on {listed(poor)} is too low to rely on single items: {remedy}{more}.",)


MOST_RATERS = 50
"""More raters per item than this are no remedy."""


def agreement_section(measures: Measures, options: Options) -> tuple[Section, tuple[Method, ...]]:
    """One row per criterion, and a sentence on how many raters a reliable mean needs."""
    reliabilities = {
        m.name: reliability(
            scores(m), confidence=options.confidence, label=m.label, has_fixed_items=options.has_fixed_items
        )
        for m in measures.criteria
    }
    body: list[tuple[Cell, ...]] = []
    has_points = any(alpha_level(m.scales) == "ordinal" for m in measures.criteria)
    has_kappa = len(measures.book.raters) == 2 and has_points
    for measure in measures.criteria:
        result = reliabilities[measure.name]
        alpha = criterion_alpha(measure, options)
        p = result.average.p_value if result.average.is_known else None
        cells: list[Cell] = [measure.label, result.n_raters, result.n_targets, result.single, p]
        cells += [result.average, result.n_averaged, alpha]
        if has_points:
            cells.append(criterion_gwet(measure, options))
        if has_kappa:
            cells.append(two_rater_kappa(measure, options))
        body.append(tuple(cells))
    columns = [
        Column("criterion", "Criterion"),
        Column("raters", "Raters", "count"),
        Column("targets", "Things rated", "count"),
        Column("icc_single", "ICC, one rating", "estimate"),
        Column("p", "p", "p_value"),
        Column("icc_average", "ICC, mean of k ratings", "estimate"),
        Column("k", "k", "number", 1),
        Column("alpha", "Krippendorff's α", "estimate"),
    ]
    if has_points:
        columns.append(Column("gwet", "Gwet's AC2", "estimate"))
    if has_kappa:
        columns.append(Column("kappa", "Quadratic κ", "estimate"))
    why = forms_used(reliabilities.values())
    table = Table(
        "rating_agreement",
        "Agreement of the raters",
        tuple(columns),
        tuple(body),
        caption=f"{why}{interval_words(reliabilities.values())} ICC in words after {KOO_LI}. {ALPHA_WORDS}."
        f"{GWET_WORDS if has_points else ''}",
    )
    paragraphs = [_sentence(measure, reliabilities[measure.name]) for measure in measures.criteria]
    methods = reliability_methods("Agreement of raters", reliabilities.values())
    return Section(
        "rating_agreement", "Agreement of the raters", tuple(paragraphs), (_figure(measures, reliabilities), table)
    ), methods


def _sentence(measure: Measure, result: Reliability) -> str:
    if not (result.single.is_known and result.average.is_known):
        return f"{measure.label}: agreement is not known, {first_note([result.single, result.average])}."
    word = size_of_icc(result.average)
    k = f"{result.n_averaged:g}"
    text = f"{measure.label}: the mean of {k} ratings has {word} reliability, ICC {with_interval(result.average)}"
    n = raters_needed(result.single.value, WANTED)
    if round(result.average.value, 2) >= WANTED and n is not None and result.n_averaged is not None:
        n = min(n, math.ceil(result.n_averaged))  # what reads as reached is reached
    if n is None:
        return f"{text}; single raters do not agree at all, so that more of them would not help."
    if n > MOST_RATERS:
        return f"{text}; single raters agree so little that even the mean of {MOST_RATERS} would not reach {WANTED:g}."
    needed = "one rater" if n == 1 else f"the mean of about {n} raters"
    return f"{text}. A reliability of {WANTED:g} needs {needed} per thing rated."


def _figure(measures: Measures, reliabilities: dict[str, Reliability]) -> Figure:
    dots = [
        Dot(m.label, estimate, group)
        for m in measures.criteria
        for group, estimate in (
            ("mean of k ratings", reliabilities[m.name].average),
            ("one rating", reliabilities[m.name].single),
        )
    ]
    details = "; ".join(f"{dot.label}, {dot.group}: {brief(dot.estimate)}" for dot in dots)
    return Figure(
        "rating_agreement",
        "Agreement by criterion",
        dot_interval(dots, value_title="intraclass correlation", limits=COEFFICIENT),
        alt=f"Intraclass correlation by criterion. {details}.",
    )


def criterion_alpha(measure: Measure, options: Options) -> Estimate:
    """Alpha at the level of the scale: ordinal for Likert points, else interval (on normalised logarithms)."""
    data = scores(measure)
    if alpha_level(measure.scales) == "interval" or measure.unit != "points":
        return interval_alpha(
            data.relative(),
            data.target,
            resampled="things rated",
            **options.resampling,
        )
    return krippendorff_alpha(
        stack(data.y, data.target).ratings,
        "ordinal",
        **options.resampling,
    )


def criterion_gwet(measure: Measure, options: Options) -> Estimate:
    """Gwet's AC2 with ordinal weights, where the criterion was rated on the points of one scale."""
    labels = measure.scales[0].categories()
    if alpha_level(measure.scales) != "ordinal" or labels is None or measure.unit != "points":
        return unknown("Gwet's AC2", "only for the points of one scale")
    ratings = stack(measure.y, measure.target).ratings
    return gwet_coefficient(ratings, labels, weights="ordinal", confidence=options.confidence)


def two_rater_kappa(measure: Measure, options: Options) -> Estimate:
    """Quadratically weighted kappa where exactly two raters judged; the labels come from the scale."""
    labels = measure.scales[0].categories()
    table = matrix(scores(measure))
    if alpha_level(measure.scales) != "ordinal" or labels is None or table.shape[1] != 2:
        return unknown("Cohen's kappa", "only for two raters on the points of one scale")
    return cohen_kappa(table[:, 0], table[:, 1], labels, weights="quadratic", confidence=options.confidence)
