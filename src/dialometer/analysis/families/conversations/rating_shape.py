"""The shape of self-ratings: do they pile up at the ends (the J of online reviews), and what does that do to a mean?

Liang, Zou and Yu (ACL 2020, section 3.2) found nearly half of 3,608 dialogues at the highest point. A J has its peak at
the highest point, a smaller one at the lowest and a hollow between; each of these is tested, with raters as clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialometer._version import __version__
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import within
from dialometer.analysis.base.wording import brief, listed, p_words, percent, with_interval
from dialometer.analysis.families.conversations.conversations import SelfRatings
from dialometer.analysis.families.conversations.experts import ExpertPair, GapTable, disagreement_by_gap
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Report, Section, Summary, Table
from dialometer.report.charts import Bar, Dot, Share, bars, dot_interval, stacked_shares
from dialometer.stats.clustered.clustered import clustered_mean, clustered_proportion
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.observations import Ints

Shape = Literal["J", "reversed J", "U", "top", "bottom", "hump", "none"]
SHAPE_WORDS: Mapping[Shape, str] = {
    "J": "J-shaped: a peak at the highest point, a smaller one at the lowest, a hollow between",
    "reversed J": "shaped like a J turned round: a peak at the lowest point, a smaller one at the highest",
    "U": "U-shaped: both ends are chosen more often than the points between",
    "top": "piled up at the highest point, without a second peak at the lowest",
    "bottom": "piled up at the lowest point, without a second peak at the highest",
    "hump": "concentrated between the ends",
    "none": "of no clear shape",
}
SHORT_WORDS: Mapping[Shape, str] = {
    "J": "J",
    "reversed J": "J turned round",
    "U": "U",
    "top": "piled up at the top",
    "bottom": "piled up at the bottom",
    "hump": "between the ends",
    "none": "no shape is significant",
}
ALL = "All systems"
HEADINGS = ("Highest − between", "Lowest − between", "Highest − lowest")
TESTS = ("highest against between", "lowest against between", "highest against lowest")


@dataclass(frozen=True)
class RatingShape:
    """Shares of the points, the index of extremity and the three differences that make a shape."""

    points: tuple[str, ...]
    shares: tuple[Estimate, ...]
    index: Estimate
    """Mean share of the two ends minus mean share of the points between: 0 is flat, positive is hollow."""
    contrasts: dict[str, Estimate]
    shape: Shape
    n: int

    @property
    def is_tested(self) -> bool:
        """Whether there is any test: not with a single rater, nor where all rate alike."""
        return not all(math.isnan(contrast.p_value) for contrast in self.contrasts.values())

    @property
    def is_between(self) -> bool:
        """Whether nobody chose an end."""
        return bool(self.n) and self.shares[0].value == self.shares[-1].value == 0

    @property
    def short_words(self) -> str:
        """The shape in a table; where there is no test, why none is named."""
        if self.is_tested:
            return SHORT_WORDS[self.shape]
        return "all between the ends (no test)" if self.is_between else "not tested"


def rating_shape(place: Ints, points: Sequence[str], raters: ArrayLike, *, confidence: float = 0.95) -> RatingShape:
    """The shape of ratings given as places among the points; intervals and tests take raters as clusters."""
    n_points = len(points)
    ids = np.asarray(raters)
    shares = tuple(share_of((place == k).astype(np.float64), ids, confidence, point) for k, point in enumerate(points))
    high, low = place == n_points - 1, place == 0
    between = (~high & ~low) / max(1, n_points - 2)
    scores = {"index": (high | low) / 2 - between}
    scores |= dict(zip(TESTS, (high - between, low - between, high * 1.0 - low), strict=True))
    if n_points < 3:
        nothing = unknown("difference of shares", "the scale has no points between its ends", n=len(place))
        return RatingShape(tuple(points), shares, nothing, dict.fromkeys(TESTS, nothing), "none", len(place))
    lowest = -1 / (n_points - 2)
    ends = dict.fromkeys(scores, (lowest, 1.0)) | {"index": (lowest, 0.5), TESTS[2]: (-1.0, 1.0)}
    tests = {name: _contrast(score, ids, confidence, name, ends[name]) for name, score in scores.items()}
    index = replace(tests.pop("index"), label="index of extremity")
    corrected = adjust([contrast.p_value for contrast in tests.values()], "holm")
    contrasts = {
        name: replace(contrast, details={**contrast.details, "p_adjusted": float(p)})
        for (name, contrast), p in zip(tests.items(), corrected, strict=True)
    }
    return RatingShape(tuple(points), shares, index, contrasts, _shape(contrasts, index, 1 - confidence), len(place))


def share_of(chosen: Floats, raters: NDArray[Any], confidence: float, label: str = "") -> Estimate:
    """A share without the test of one half that comes with it and means nothing here."""
    share = clustered_proportion(chosen, raters, confidence=confidence, label=label)
    method = share.method.partition(", score t-test")[0]
    return replace(share, method=method, statistic=math.nan, p_value=math.nan, df=(), unit="share")


def _contrast(score: Floats, raters: np.ndarray, confidence: float, label: str, ends: tuple[float, float]) -> Estimate:
    """A difference of shares; ``ends`` are the smallest and the largest that is possible."""
    estimate = clustered_mean(score, raters, null=0.0, confidence=confidence, label=label)
    estimate = replace(estimate, method=estimate.method.replace("mean", "difference of shares", 1))
    if len(score) > 1 and np.ptp(score) == 0:
        why = f"{'nobody chose an end' if score[0] <= 0 else 'everyone chose the same point'}: no confidence interval"
        estimate = replace(estimate, notes=(why,))
    return within(estimate, *ends)


def _shape(contrasts: Mapping[str, Estimate], index: Estimate, alpha: float) -> Shape:
    """The shape that the corrected tests support; where they support none, none is claimed."""

    def sign(name: str) -> int:
        contrast = contrasts[name]
        p = float(contrast.details["p_adjusted"])
        return 0 if math.isnan(p) or p > alpha else 1 if contrast.value > 0 else -1

    top, bottom, balance = (sign(name) for name in TESTS)
    if top > 0 and bottom > 0:
        return "J" if balance > 0 else "reversed J" if balance < 0 else "U"
    if top > 0 and balance > 0:
        return "top"
    if bottom > 0 and balance < 0:
        return "bottom"
    if index.p_value <= alpha and index.value < 0:
        return "hump"
    return "none"


def shape_section(name: str, ratings: Sequence[SelfRatings], options: Options) -> Section:
    """Shares with intervals for every criterion and system, the index, the tests, and what follows for means."""
    shapes: dict[tuple[str, str], RatingShape] = {}
    for rated in ratings:
        shapes[rated.label, ""] = rating_shape(rated.place, rated.points, rated.rater, confidence=options.confidence)
        for system in rated.systems if len(rated.systems) > 1 else ():
            own = rated.of(system)
            shapes[rated.label, system] = rating_shape(
                rated.place[own], rated.points, rated.rater[own], confidence=options.confidence
            )
    paragraphs = [_words(label, shape) for (label, system), shape in shapes.items() if not system]
    tables = [_shares_table(f"{name}_{rated.criterion}", rated.label, shapes) for rated in ratings]
    return Section(
        name,
        "The shape of the ratings",
        (*paragraphs, _meaning([shapes[rated.label, ""] for rated in ratings])),
        (_figure(name, ratings, shapes), *tables, _tests_table(name, shapes)),
    )


def _words(label: str, shape: RatingShape) -> str:
    top, bottom = shape.shares[-1], shape.shares[0]
    text = f"{label}: {with_interval(top, is_percent=True)} of ratings are at the highest point ({shape.points[-1]}), "
    text += f"{percent(bottom.value)} at the lowest ({shape.points[0]})"
    if not shape.index.is_known:
        return f"{text}."
    between = np.mean([share.value for share in shape.shares[1:-1]])
    text += f"; a point between has {percent(float(between))} on average. "
    if not shape.is_tested and shape.is_between:
        return f"{text}All ratings lie between the ends, so their shape is not tested."
    if not shape.is_tested:
        return text + "There are too few raters, or too little variation, to test the shape."
    tests = listed(
        f"{name}: {p_words(float(contrast.details['p_adjusted']))}" for name, contrast in shape.contrasts.items()
    )
    if shape.shape == "hump":
        return f"{text}The ratings are {SHAPE_WORDS[shape.shape]} (both ends against between: {p_words(shape.index.p_value)})."
    return f"{text}The ratings are {SHAPE_WORDS[shape.shape]} ({tests}; Holm)."


def _meaning(shapes: Sequence[RatingShape]) -> str:
    """What a reader should do about the shape."""
    if any(shape.shape in ("J", "reversed J", "U", "top", "bottom") for shape in shapes):
        return (
            "Where ratings pile up at an end, a mean says little about a typical dialogue, differences above the last "
            "point are lost, and single ratings cannot point out single bad dialogues. Compare systems by means over "
            "many raters, look at the shares beside them, and have pairs of dialogues judged if single ones matter."
        )
    return "The shape of these ratings does not speak against comparing means."


def _shares_table(name: str, label: str, shapes: Mapping[tuple[str, str], RatingShape]) -> Table:
    own = {system: shape for (criterion, system), shape in shapes.items() if criterion == label}
    points = next(iter(own.values())).points
    rows: list[tuple[Cell, ...]] = [
        (system or ALL, *(replace(share, notes=()) for share in shape.shares), shape.n) for system, shape in own.items()
    ]
    return Table(
        f"{name}_shares",
        f"{label}: share of dialogues at each point",
        (
            Column("system", "System"),
            *(Column(f"point_{k + 1}", point, "percent_estimate") for k, point in enumerate(points)),
            Column("n", "n", "count"),
        ),
        tuple(rows),
        caption="Confidence intervals take raters as clusters; at a point that nobody chose, each rater counts as one answer.",
    )


def _tests_table(name: str, shapes: Mapping[tuple[str, str], RatingShape]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (label, system), shape in shapes.items():
        known = [contrast if contrast.is_known else None for contrast in (shape.index, *shape.contrasts.values())]
        rows.append((label, system or ALL, shape.short_words, *known[1:], known[0]))
    return Table(
        f"{name}_tests",
        "Which shape the ratings have",
        (
            Column("criterion", "Criterion"),
            Column("system", "System"),
            Column("shape", "Shape"),
            *(
                Column(f"difference_{k + 1}", test, "percent_estimate", unit=PERCENTAGE_POINTS)
                for k, test in enumerate(HEADINGS)
            ),
            Column("index", "Index of extremity", "estimate"),
        ),
        tuple(rows),
        caption="The shape is what the three differences of shares support, tested with raters as clusters and corrected (Holm) "
        "within each row; a J needs all three above 0. Between: the mean share of the points between the ends. Index: mean "
        "share of the two ends minus that of a point between, 0 where all points are chosen alike; ratings are between the ends "
        "where it is significantly below 0.",
    )


def _figure(name: str, ratings: Sequence[SelfRatings], shapes: Mapping[tuple[str, str], RatingShape]) -> Figure:
    points = ratings[0].points
    alike = [rated for rated in ratings if rated.points == points]
    labels = {rated.label for rated in alike}
    shares = [
        Share(system or ALL, point, share.value, label if len(alike) > 1 else "")
        for (label, system), shape in shapes.items()
        if label in labels
        for point, share in zip(shape.points, shape.shares, strict=True)
    ]
    details = "; ".join(
        f"{label} highest point {percent(shape.shares[-1].value)}, lowest {percent(shape.shares[0].value)}"
        for (label, system), shape in shapes.items()
        if not system
    )
    return Figure(
        f"{name}_figure",
        "Shares of the points",
        stacked_shares(shares, parts=points, value_title="share of dialogues", is_ordered=True),
        alt=f"Shares of dialogues at each point. {details}.",
        caption="" if len(alike) == len(ratings) else "Criteria on other scales are in the tables.",
    )


# The same for ratings of dialogues from any source, as a report of its own.


Floats = NDArray[np.float64]
PUBLISHED = {1.0: 0.45, 2.0: 0.383, 3.0: 0.220, 4.0: 0.157}
"""Disagreement of experts with self-ratings by gap in Liang et al. 2020, table 2."""


@dataclass(frozen=True)
class RatingSample:
    """Ratings with what is known about them; ``clusters`` are raters, or blocks of neighbours where raters are unknown."""

    ids: Sequence[str]
    ratings: Floats
    clusters: Sequence[str]
    systems: Sequence[str]
    neighbours: Floats | None = None
    """Mean rating of each dialogue's nearest others, where features were computed."""


def ratings_report(
    given: RatingSample,
    verdicts: Sequence[ExpertPair] = (),
    *,
    data: str,
    command: str,
    left_out: Mapping[str, int],
    seed: int = 0,
    n_resamples: int = 2000,
) -> Report:
    """Shape for all and by system; disagreement by gap with experts, with neighbours, or both."""
    levels = np.arange(1, 6)
    place = np.clip(np.rint(given.ratings), 1, 5).astype(np.int64) - 1
    points = [str(level) for level in levels]
    clusters = np.asarray(given.clusters)
    shapes = {"all": rating_shape(place, points, clusters)}
    systems = np.asarray(given.systems)
    for name in sorted(set(given.systems) - {""}) if len(set(given.systems)) > 1 else ():
        if len(set(clusters[systems == name])) > 1:
            shapes[name] = rating_shape(place[systems == name], points, clusters[systems == name])
    whole = shapes["all"]
    sections = [_shape_section(shapes)]
    gaps: dict[str, GapTable] = {}
    if verdicts:
        gaps["experts"] = _by_gap(given, verdicts, seed, n_resamples)
    if given.neighbours is not None:
        gaps["neighbours"] = _by_gap(given, matched_pairs(given, seed), seed, n_resamples)
    sections.append(_gap_section(gaps))
    top = whole.shares[-1]
    return Report(
        study=data,
        title="The ratings, before anything is learned from them",
        summary=Summary(
            answer=f"The {len(place):,} ratings are {SHAPE_WORDS[whole.shape]}.",
            certainty=f"{with_interval(top, is_percent=True)} are at the highest point (published: nearly half). "
            "Confidence intervals take raters (or blocks of neighbouring dialogues) as clusters.",
            figure=_histogram(whole),
            warnings=tuple(f"{n:,} dialogues were excluded: {why}" for why, n in left_out.items()),
        ),
        sections=tuple(sections),
        methods=(),
        provenance={"command": command, "seed": seed, "n_ratings": len(place), "dialometer": __version__},
    )


def matched_pairs(given: RatingSample, seed: int) -> list[ExpertPair]:
    """Each dialogue in one pair, drawn at random; the neighbours' mean ratings take the place of an expert."""
    if given.neighbours is None:
        raise NotEnoughData("there are no neighbours' ratings", remedy="compute features first")
    order = np.random.default_rng(seed).permutation(len(given.ids))
    pairs = []
    for first, second in order[: len(order) // 2 * 2].reshape(-1, 2).tolist():
        gap = float(given.neighbours[first] - given.neighbours[second])
        pairs.append(
            ExpertPair(
                given.ids[first],
                given.ids[second],
                "cannot_tell" if gap == 0 else "first" if gap > 0 else "second",
            )
        )
    return pairs


def _by_gap(given: RatingSample, pairs: Sequence[ExpertPair], seed: int, n_resamples: int) -> GapTable:
    ratings = dict(zip(given.ids, given.ratings.tolist(), strict=True))
    return disagreement_by_gap(ratings, pairs, seed=seed, n_resamples=n_resamples)


def _histogram(shape: RatingShape) -> Figure:
    details = ", ".join(
        f"{point}: {percent(share.value)}" for point, share in zip(shape.points, shape.shares, strict=True)
    )
    return Figure(
        "ratings_shares",
        "How often each rating was given",
        bars(
            [Bar(point, share.value) for point, share in zip(shape.points, shape.shares, strict=True)],
            value_title="share of ratings",
            is_percent=True,
        ),
        alt=f"Share of each rating. {details}.",
    )


def _shape_section(shapes: Mapping[str, RatingShape]) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (name, *shape.shares, shape.shape if shape.shape != "none" else shape.short_words, shape.n)
        for name, shape in shapes.items()
    ]
    table = Table(
        "ratings_shape",
        "Share of each rating",
        (
            Column("system", "System"),
            *(Column(f"point_{point}", point, "percent_estimate", 1) for point in shapes["all"].points),
            Column("shape", "Shape"),
            Column("n", "n", "count"),
        ),
        tuple(rows),
        caption="J: more at the top than at a point between, more at the bottom than at a point between, and more at the top "
        "than at the bottom, each supported by a test.",
    )
    tests = "; ".join(
        f"{name} {p_words(float(shapes['all'].contrasts[name].details.get('p_adjusted', np.nan)))}" for name in TESTS
    )
    return Section("shape", "The shape of the ratings", (f"Tests for all ratings (Holm): {tests}.",), (table,))


def _gap_section(gaps: Mapping[str, GapTable]) -> Section:
    title = "Disagreement by the gap between two ratings"
    if not gaps:
        return Section(
            "gaps", title, problem="there are no expert pairs and no features; give --pairs, or leave out --no-features"
        )
    rows: list[tuple[Cell, ...]] = []
    dots = []
    for who, by_gap in gaps.items():
        for step in by_gap.gaps:
            rows.append((who, f"{step.gap:g}", step.share, step.share.n))
            dots.append(Dot(f"gap {step.gap:g}", step.share, who))
        rows.append((who, "all", by_gap.overall, by_gap.overall.n))
    table = Table(
        "ratings_gaps",
        title,
        (
            Column("who", "Who disagrees"),
            Column("gap", "Gap"),
            Column("share", "Disagree", "percent_estimate", 1),
            Column("n", "Pairs", "count"),
        ),
        tuple(rows),
        caption="experts: they prefer the dialogue that its own user rated lower. neighbours: the mean rating of a dialogue's "
        "nearest others points the other way; each dialogue is in one pair. Neighbours are far weaker judges than experts, so "
        "look at how their disagreement falls with the gap, not at its height. Published, for experts: "
        + ", ".join(f"{percent(share)} at a gap of {gap:g}" for gap, share in PUBLISHED.items())
        + ".",
    )
    figure = Figure(
        "ratings_gap_figure",
        title,
        dot_interval(dots, value_title="share of pairs that disagree", reference=0.5, is_percent=True),
        alt="; ".join(f"{dot.group}, {dot.label}: {brief(dot.estimate)}" for dot in dots),
    )
    words = [
        f"{who.capitalize()}: disagreement changes by {percent(by_gap.trend.value)} per point of gap "
        f"({p_words(by_gap.trend.p_value)})."
        for who, by_gap in gaps.items()
        if by_gap.trend.is_known
    ]
    return Section("gaps", title, tuple(words), (figure, table))
