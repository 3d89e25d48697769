"""Checklists point by point: how often each system meets a point, where systems differ, and whether raters agree on it.

The score of a checklist as a whole is a number and belongs to the analysis of ratings. Here every point is a share with an
interval over raters and items, and the differences of systems on all points are one family of tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from textwrap import shorten

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ANALYSES,
    Family,
    Findings,
    Options,
    in_appendix,
    section_or_problem,
    with_prefix,
)
from dialometer.analysis.base.wording import after_correction, listed, n_of, p_words, percent, value_only
from dialometer.analysis.families.annotations.answers import PartedAnswers, criteria_with, sections_by_criterion
from dialometer.analysis.shared.comparisons import (
    corrected_by_name,
    is_significant,
    known_cell,
    p_adjusted,
    p_cells,
    p_columns,
)
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Method, Section, Table
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.agreement.fleiss import fleiss_kappa, share_of_agreeing_pairs
from dialometer.stats.agreement.gwet import gwet_of_judgments
from dialometer.stats.clustered.two_way import two_way_share
from dialometer.stats.clustered.two_way_contrasts import TwoWayContrasts
from dialometer.stats.observations import Floats

NOT_APPLICABLE = 2
LONG_TEXT = 90
"""Points longer than this are cut in figures."""


def has_points(scale: Scale) -> bool:
    """Whether a scale is a checklist."""
    return bool(scale.point_texts())


@dataclass(frozen=True, eq=False)
class Points:
    """One checklist: for each answer (rows) and point (columns) 1 for met, 0 for not met, nan for not applicable."""

    study: Study
    answers: PartedAnswers
    options: Options

    @cached_property
    def texts(self) -> dict[str, str]:
        """The points by name."""
        return self.answers.scale.point_texts()

    @cached_property
    def met(self) -> Floats:
        """The results as numbers."""
        names = list(self.texts)
        rows = np.full((len(self.answers.values), len(names)), np.nan)
        for row, value in enumerate(self.answers.values):
            for name, is_met in self.answers.scale.point_results(value).items():
                if is_met is not None:
                    rows[row, names.index(name)] = float(is_met)
        return rows

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The systems as the report calls them."""
        return self.answers.systems(self.study)

    @cached_property
    def shares(self) -> dict[tuple[str, str], Estimate]:
        """How often each system meets each point where it applies, by system and point."""
        shares = {}
        for code, system in enumerate(self.labels):
            inside = self.answers.of_system(code)
            for k, point in enumerate(self.texts):
                share = two_way_share(
                    self.met[inside, k],
                    self.answers.rater[inside],
                    None if self.options.has_fixed_items else self.answers.item[inside],
                    confidence=self.options.confidence,
                )
                method = share.method.partition(", score t-test")[0]
                kept = tuple(note.partition(" and the test")[0] for note in share.notes if "missing" not in note)
                shares[system, point] = replace(
                    share, method=method, statistic=math.nan, p_value=math.nan, unit="share", notes=kept
                )
        return shares

    @cached_property
    def differences(self) -> dict[tuple[str, str, str], Estimate]:
        """Every two systems on every point, by point and systems, corrected as one family."""
        contrasts: dict[tuple[str, str, str], Estimate] = {}
        n_systems = len(self.labels)
        means = [_mean(self.met[self.answers.of_system(code)]) for code in range(n_systems)]
        best_first = sorted(range(n_systems), key=lambda code: -np.nan_to_num(means[code]))
        for k, point in enumerate(self.texts):
            given = ~np.isnan(self.met[:, k])
            system = self.answers.system[given]
            sizes = np.bincount(system, minlength=n_systems)
            fit = TwoWayContrasts(
                self.met[given, k],
                np.eye(n_systems)[system],
                self.answers.rater[given],
                None if self.options.has_fixed_items else self.answers.item[given],
                self.options.confidence,
            )
            for a, b in combinations(best_first, 2):
                n = int(sizes[a] + sizes[b])
                test = unknown("difference of shares", "the point never applies to one of the two systems", n=n)
                if sizes[a] and sizes[b]:
                    test = fit.contrast(np.eye(n_systems)[a] - np.eye(n_systems)[b], limit=1.0, n=n)
                contrasts[point, self.labels[a], self.labels[b]] = test
        return corrected_by_name(contrasts, self.options)

    def agreement(self, point: int) -> tuple[Estimate, Estimate, Estimate]:
        """Pairs of raters who agree, Fleiss' kappa and Gwet's AC1 on one point; "does not apply" is an answer like others."""
        category = np.where(np.isnan(self.met[:, point]), NOT_APPLICABLE, self.met[:, point]).astype(np.int64)
        thing = self.answers.thing
        n_things, n_answers = int(thing.max()) + 1, NOT_APPLICABLE + 1
        counts = np.bincount(thing * n_answers + category, minlength=n_things * n_answers).reshape(n_things, n_answers)
        return (
            share_of_agreeing_pairs(counts, **self.options.resampling),
            fleiss_kappa(counts, **self.options.resampling),
            gwet_of_judgments(thing, category, confidence=self.options.confidence),
        )


def points_section(points: Points) -> Section:
    """The share of each point by system, as a table and a figure."""
    answers = points.answers
    clear = {key: test for key, test in points.differences.items() if is_significant(test)}
    words = []
    means = {point: _mean(points.met[:, k]) for k, point in enumerate(points.texts)}
    ranked = sorted((point for point, mean in means.items() if not math.isnan(mean)), key=lambda point: means[point])
    if ranked and means[ranked[0]] < means[ranked[-1]]:
        hardest, easiest = ranked[0], ranked[-1]
        words.append(
            f"Met least often: “{points.texts[hardest]}” ({percent(means[hardest])} of all answers where it "
            f"applies). Met most often: “{points.texts[easiest]}” ({percent(means[easiest])})."
        )
    if len(points.labels) > 1:
        words += _difference_words(points, clear) or [
            "No difference between systems on a single point is significant after correction."
        ]
    columns = (
        Column("point", "Point"),
        Column("weight_share", "Weight", "percent", 0),
        *(Column(f"system-{k}", label, "percent_estimate") for k, label in enumerate(points.labels)),
        Column("not_applicable", "Does not apply", "percent", 0),
    )
    weights = _weights(points)
    rows: list[tuple[Cell, ...]] = [
        (
            text,
            weights[point],
            *(known_cell(points.shares[system, point]) for system in points.labels),
            float(np.isnan(points.met[:, k]).mean()),
        )
        for k, (point, text) in enumerate(points.texts.items())
    ]
    over = "these items only (declared as fixed)" if points.options.has_fixed_items else "other raters and other items"
    table = Table(
        f"points-{answers.criterion}",
        f"Points met: {answers.label}",
        columns,
        tuple(rows),
        caption=f"Share of answers that say the point is met, of those where it applies. {n_of(len(answers.raters), 'rater')}, "
        f"{n_of(len(answers.items), 'item')}. Confidence intervals are about {over}.",
        notes=answers.notes,
    )
    name = f"points-{answers.criterion}"
    return Section(name, f"Points of the checklist: {answers.label}", tuple(words), (table, _figure(points)))


def _mean(met: Floats) -> float:
    """How often points are met where they apply; nan where they never do."""
    given = met[~np.isnan(met)]
    return float(given.mean()) if len(given) else math.nan


def _weights(points: Points) -> dict[str, float]:
    """Each point's share of all weights, from the rows that the scale itself gives."""
    rows = points.answers.scale.details(points.answers.values[0])
    weights = {row[0]: float(row[3]) for row in rows}
    total = sum(weights.values()) or 1.0
    return {point: weights.get(point, 0.0) / total for point in points.texts}


def _difference_words(points: Points, clear: dict[tuple[str, str, str], Estimate]) -> list[str]:
    """A sentence for every two systems: which points the first meets more often, the largest difference first."""
    by_pair: dict[tuple[str, str], list[str]] = {}
    for (point, a, b), test in sorted(clear.items(), key=lambda pair: -abs(pair[1].value)):
        first, second = (a, b) if test.value > 0 else (b, a)
        own, other = (value_only(points.shares[system, point], is_percent=True) for system in (first, second))
        by_pair.setdefault((first, second), []).append(
            f"“{points.texts[point]}” ({own} against {other}, {p_words(p_adjusted(test))})"
        )
    after = after_correction(points.options.correction)
    return [
        f"{first} meets {'this point' if len(said) == 1 else 'these points'} more often than {second}{after}: "
        f"{listed(said, most=6)}."
        for (first, second), said in by_pair.items()
    ]


def _figure(points: Points) -> Figure:
    names = {point: shorten(text, LONG_TEXT, placeholder="…") for point, text in points.texts.items()}
    if len(set(names.values())) < len(names):  # the same beginning: only their names tell them apart
        names = {point: point.replace("_", " ") for point in names}
    dots = [
        Dot(names[point], points.shares[system, point], group=system)
        for point in points.texts
        for system in points.labels
    ]
    entries = [
        f"“{text}” " + ", ".join(f"{s} {value_only(points.shares[s, point], is_percent=True)}" for s in points.labels)
        for point, text in points.texts.items()
    ]
    spec = dot_interval(dots, value_title="share met", group_title="System", domain=(0.0, 1.0), is_percent=True)
    title = f"Points met by system: {points.answers.label}"
    return Figure(
        f"figure-points-{points.answers.criterion}",
        title,
        spec,
        f"Share of answers that say the point is met. {'; '.join(entries)}.",
    )


def differences_section(points: Points) -> Section:
    """Every two systems on every point."""
    rows: list[tuple[Cell, ...]] = []
    for (point, first, second), test in points.differences.items():
        rows.append((points.texts[point], first, second, test, *p_cells(test, points.options.correction)))
    columns = (
        Column("point", "Point"),
        Column("first", "System"),
        Column("second", "minus"),
        Column("difference", "Difference of shares", "percent_estimate", unit=PERCENTAGE_POINTS),
        *p_columns(points.options.correction),
    )
    samples = "raters" if points.options.has_fixed_items else "raters and items"
    name = f"point-differences-{points.answers.criterion}"
    title = f"Differences on single points: {points.answers.label}"
    table = Table(
        name,
        title,
        columns,
        tuple(rows),
        caption=f"Exploratory. Tests take {samples} as samples (jackknife); all points and systems are one family.",
    )
    return Section(name, title, (), (table,))


def agreement_section(points: Points) -> Section:
    """Whether raters of the same thing agree, point by point."""
    rows: list[tuple[Cell, ...]] = []
    doubtful = []
    for k, text in enumerate(points.texts.values()):
        share, kappa, ac1 = points.agreement(k)
        rows.append((text, share, kappa, ac1))
        if ac1.is_known and ac1.value < LOW_AGREEMENT:
            doubtful.append(text)
    words = (
        f"Raters agree little beyond chance (AC1 below {LOW_AGREEMENT}) on {listed(f'“{text}”' for text in doubtful)}. "
        "Say in the point what counts as met, or drop it."
        if doubtful
        else ""
    )
    name = f"point-agreement-{points.answers.criterion}"
    title = f"Agreement on single points: {points.answers.label}"
    columns = (
        Column("point", "Point"),
        Column("agreement", "Pairs of raters who agree", "percent_estimate"),
        Column("kappa", "Fleiss' kappa", "estimate"),
        Column("ac1", "Gwet's AC1", "estimate"),
    )
    table = Table(
        name,
        title,
        columns,
        tuple(rows),
        caption="Answers are yes, no and does not apply. Kappa and AC1 are agreement beyond chance: 1 is perfect, 0 what chance "
        "would give. Kappa is drawn down where nearly all answers are the same; AC1 is not.",
    )
    return Section(name, title, (words,) if words else (), (table,))


LOW_AGREEMENT = 0.4
"""Below it agreement is called poor or fair (Landis and Koch 1977)."""

METHODS = (
    Method(
        "points of a checklist",
        "share of answers that meet the point, two-way jackknife over raters and items, Wilson's interval with the effective "
        "number of answers; differences by Student's t",
        "the same answers as the score, point by point; exploratory, one family of tests for all points",
        "Cameron, Gelbach and Miller 2011",
    ),
    Method(
        "agreement on points",
        "pairs of raters who agree, Fleiss' kappa, Gwet's AC1",
        "kappa is drawn down where nearly all answers to a point are the same, AC1 is not",
        "Fleiss 1971; Gwet 2008",
    ),
)


class Checklists(Family):
    """Points of checklists, beside the analysis of their scores."""

    rank = 30

    def fits(self, study: Study) -> bool:
        """A criterion that is answered on a checklist."""
        return bool(criteria_with(study, has_points))

    def run(self, data: StudyData, options: Options) -> Findings:
        """Shares, differences and agreement for each checklist."""
        sections = sections_by_criterion(
            data,
            has_points,
            lambda answers: _sections(Points(data.study, answers, options)),
            name="points",
            title="Points of the checklist",
        )
        return with_prefix(Findings("", "", sections=sections, methods=METHODS), "checklists")


def _sections(points: Points) -> list[Section]:
    name = points.answers.criterion
    made = [section_or_problem(f"points-{name}", "Points of the checklist", lambda: points_section(points))]
    made.append(section_or_problem(f"agree-{name}", "Agreement on single points", lambda: agreement_section(points)))
    if len(points.labels) > 1:
        made += in_appendix(
            [section_or_problem(f"differ-{name}", "Differences on single points", lambda: differences_section(points))]
        )
    return made


ANALYSES.register("checklists")(Checklists())
