"""Agreement of raters on each criterion when all raters saw the same thing: ICC, Krippendorff's alpha, weighted kappa."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import Measure, Measures, means_by_group
from dialometer.analysis.base.scale_units import alpha_level
from dialometer.analysis.base.wording import KOO_LI, first_note, size_of_icc, with_interval
from dialometer.analysis.families.ratings.systems import MOST_LEVELS
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.stats.agreement.krippendorff_alpha import interval_alpha, krippendorff_alpha
from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.forms import spearman_brown
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.observations import Floats, Ints, stack

# The form of the ICC follows from who judged what. All raters judged everything: two-way random effects (analysis of
# variance). Raters share part of the items: two-way from variance components. Raters differ from item to item, or there are
# too many of both: one-way, where differences in level between raters count as error.


Crossing = Literal["complete", "partly", "one_way", "none"]
REASONS = {
    "complete": "every rater judged everything in the condition, so raters are a random factor of a two-way design",
    "partly": "raters judged overlapping parts, so variance components (REML) use every judgment of the two-way design",
    "one_way": "raters differ from item to item, so differences between raters cannot be told from error",
}
FORM_NAMES = {
    "complete": "ICC(2,1) and ICC(2,k), two-way random effects, absolute agreement",
    "partly": "ICC(2,1) and ICC(2,k) from variance components by REML",
    "one_way": "ICC(1,1) and ICC(1,k), one-way random effects",
}


@dataclass(frozen=True, slots=True)
class Scores:
    """Judgments laid out for reliability: score, what was rated, who rated."""

    y: Floats
    target: Ints
    rater: Ints

    def of(self, rows: np.ndarray) -> Scores:
        """Only these judgments."""
        return Scores(self.y[rows], self.target[rows], self.rater[rows])


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability of one rating and of the mean of all ratings that a target got."""

    crossing: Crossing
    single: Estimate
    average: Estimate
    n_raters: int
    n_targets: int


def scores(measure: Measure) -> Scores:
    """Magnitudes relative to the rater's geometric mean (Bard et al. 1996); other scales as they are."""
    y = measure.y
    if measure.is_log:
        y = y - means_by_group(y, measure.rater, len(measure.book.raters))[measure.rater]
    return Scores(y, measure.target, measure.rater)


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


def matrix(data: Scores) -> Floats:
    """Targets by raters, ``nan`` where a rater did not judge a target."""
    targets, target = np.unique(data.target, return_inverse=True)
    raters, rater = np.unique(data.rater, return_inverse=True)
    table = np.full((len(targets), len(raters)), np.nan)
    table[target, rater] = data.y
    return table


def reliability(data: Scores, *, confidence: float, label: str = "") -> Reliability:
    """The ICC in the form that the design asks for; analytic intervals, or the likelihood's profile."""
    kind = crossing(data)
    n_raters, n_targets = (len(np.unique(codes)) for codes in (data.rater, data.target))
    if kind == "none":
        why = f"{n_raters} raters and {n_targets} things rated: at least two of each are needed; collect more"
        nothing = unknown("ICC", why, n=n_targets, label=label)
        return Reliability(kind, nothing, nothing, n_raters, n_targets)
    if kind == "complete":
        table = matrix(data)
        single, average = (icc(table, form, confidence=confidence, label=label) for form in ("ICC(2,1)", "ICC(2,k)"))
    elif kind == "partly":
        single = icc_crossed(data.y, data.target, data.rater, "ICC(2,1)", confidence=confidence, label=label)
        average = _averaged(single, data)
    else:
        single, average = (
            icc_one_way(data.y, data.target, form, confidence=confidence, label=label)
            for form in ("ICC(1,1)", "ICC(1,k)")
        )
    return Reliability(kind, single, average, n_raters, n_targets)


def _averaged(single: Estimate, data: Scores) -> Estimate:
    """The average form from the single one: the same fit, stepped up to the typical number of raters per target."""
    if not single.is_known:
        return single
    counts = np.bincount(data.target)
    counts = counts[counts > 0]
    k = len(counts) / float(np.sum(1 / counts))
    value, low, high = (spearman_brown(part, k) for part in (single.value, single.low, single.high))
    return replace(
        single, value=value, low=low, high=high, method="ICC(2,k) by REML", details={**single.details, "k": k}
    )


def raters_needed(single: float, wanted: float = 0.8) -> int | None:
    """How many raters' mean reaches the wanted reliability (Spearman-Brown); None where no number would."""
    if not 0 < single < 1:
        return None
    return max(1, int(np.ceil(round(wanted * (1 - single) / (single * (1 - wanted)), 9))))


WANTED = 0.8
ALPHA_WORDS = "Krippendorff (2018) asks for 0.8, and 0.667 at the least for tentative conclusions"


def agreement_section(measures: Measures, options: Options) -> tuple[Section, tuple[Method, ...]]:
    """One row per criterion, and a sentence on how many raters a reliable mean needs."""
    reliabilities = {
        m.name: reliability(scores(m), confidence=options.confidence, label=m.label) for m in measures.criteria
    }
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    has_kappa = len(measures.book.raters) == 2 and any(alpha_level(m.scales) == "ordinal" for m in measures.criteria)
    for measure in measures.criteria:
        result = reliabilities[measure.name]
        alpha = criterion_alpha(measure, options)
        p = result.average.p_value if result.average.is_known else None
        cells: list[Cell] = [measure.label, result.n_raters, result.n_targets, result.average, p, result.single, alpha]
        if has_kappa:
            cells.append(two_rater_kappa(measure, options))
        body.append(tuple(cells))
        notes += [f"{measure.label}: {note}" for note in (*result.average.notes, *alpha.notes)]
    columns = [
        Column("criterion", "Criterion"),
        Column("raters", "Raters", "count"),
        Column("targets", "Things rated", "count"),
        Column("icc_average", "ICC, mean of the raters of a thing", "estimate"),
        Column("p", "p", "p_value"),
        Column("icc_single", "ICC, one rater", "estimate"),
        Column("alpha", "Krippendorff's α", "estimate"),
    ]
    if has_kappa:
        columns.append(Column("kappa", "Quadratic κ", "estimate"))
    kinds = list(dict.fromkeys(result.crossing for result in reliabilities.values() if result.crossing != "none"))
    why = " ".join(f"{FORM_NAMES[kind]}: {REASONS[kind]}." for kind in kinds)
    table = Table(
        "rating_agreement",
        "Agreement of the raters",
        tuple(columns),
        tuple(body),
        caption=f"{why} ICC in words after {KOO_LI}. {ALPHA_WORDS}.",
        notes=tuple(dict.fromkeys(notes)),
    )
    paragraphs = [_sentence(measure, reliabilities[measure.name]) for measure in measures.criteria]
    methods = tuple(
        Method("Agreement of raters", FORM_NAMES[kind], REASONS[kind], "Shrout & Fleiss 1979; McGraw & Wong 1996")
        for kind in kinds
    )
    return Section(
        "rating_agreement", "Agreement of the raters", tuple(paragraphs), (_figure(measures, reliabilities), table)
    ), methods


def _sentence(measure: Measure, result: Reliability) -> str:
    if not result.single.is_known:
        return f"{measure.label}: agreement is not known, {first_note([result.single])}."
    word = size_of_icc(result.average.value)
    text = f"{measure.label}: the mean of the raters has {word} reliability, ICC {with_interval(result.average)}"
    n = raters_needed(result.single.value, WANTED)
    if n is None:
        return f"{text}; single raters do not agree at all, so that more of them would not help."
    return (
        f"{text}. A reliability of {WANTED:g} needs the mean of about {n} rater{'' if n == 1 else 's'} per thing rated."
    )


def _figure(measures: Measures, reliabilities: dict[str, Reliability]) -> Figure:
    dots = [
        Dot(m.label, estimate, group)
        for m in measures.criteria
        for group, estimate in (
            ("mean of the raters", reliabilities[m.name].average),
            ("one rater", reliabilities[m.name].single),
        )
    ]
    details = "; ".join(f"{dot.label}, {dot.group}: {dot.estimate}" for dot in dots)
    return Figure(
        "rating_agreement",
        "Agreement by criterion",
        dot_interval(dots, value_title="intraclass correlation"),
        alt=f"Intraclass correlation by criterion. {details}.",
    )


def criterion_alpha(measure: Measure, options: Options) -> Estimate:
    """Alpha at the level of the scale: ordinal for Likert points, else interval (on normalised logarithms)."""
    data = scores(measure)
    if alpha_level(measure.scales) == "interval" or measure.unit != "points":
        return interval_alpha(
            data.y,
            data.target,
            resampled="things rated",
            **options.resampling,
        )
    return krippendorff_alpha(
        stack(data.y, data.target).ratings,
        "ordinal",
        **options.resampling,
    )


def two_rater_kappa(measure: Measure, options: Options) -> Estimate:
    """Quadratically weighted kappa where exactly two raters judged; the labels come from the scale."""
    labels = measure.scales[0].categories()
    table = matrix(scores(measure))
    if alpha_level(measure.scales) != "ordinal" or labels is None or table.shape[1] != 2:
        return unknown("Cohen's kappa", "only for two raters on the points of one scale")
    return cohen_kappa(table[:, 0], table[:, 1], labels, weights="quadratic", confidence=options.confidence)
