"""Ratings of dialogues from anywhere, looked at before anything is learned from them: their shape, and whom they contradict.

Liang, Zou and Yu (ACL 2020, section 3): self-reported ratings pile up at the top, and the smaller the gap between two of them
the less it says about which dialogue an expert prefers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer._version import __version__
from dialometer.analysis.base.wording import p_words, percent, with_interval
from dialometer.analysis.families.conversations.experts import ExpertPair, GapTable, disagreement_by_gap
from dialometer.analysis.families.conversations.rating_shape import SHAPE_WORDS, TESTS, RatingShape, rating_shape
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Figure, Report, Section, Summary, Table
from dialometer.report.charts import Bar, Dot, bars, dot_interval

Floats = NDArray[np.float64]
PUBLISHED = {1.0: 0.45, 2.0: 0.383, 3.0: 0.220, 4.0: 0.157}
"""Disagreement of experts with self-ratings by gap in Liang et al. 2020, table 2."""


@dataclass(frozen=True)
class GivenRatings:
    """Ratings with what is known about them; ``clusters`` are raters, or blocks of neighbours where raters are unknown."""

    ids: Sequence[str]
    ratings: Floats
    clusters: Sequence[str]
    systems: Sequence[str]
    neighbours: Floats | None = None
    """Mean rating of each dialogue's nearest others, where features were computed."""


def ratings_report(
    given: GivenRatings,
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
            "Intervals take raters (or blocks of neighbouring dialogues) as clusters.",
            figure=_histogram(whole),
            warnings=tuple(f"{n:,} dialogues were left out: {why}" for why, n in left_out.items()),
        ),
        sections=tuple(sections),
        methods=(),
        provenance={"command": command, "seed": seed, "n_ratings": len(place), "dialometer": __version__},
    )


def matched_pairs(given: GivenRatings, seed: int) -> list[ExpertPair]:
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


def _by_gap(given: GivenRatings, pairs: Sequence[ExpertPair], seed: int, n_resamples: int) -> GapTable:
    ratings = dict(zip(given.ids, given.ratings.tolist(), strict=True))
    return disagreement_by_gap(ratings, pairs, seed=seed, n_resamples=n_resamples)


def _histogram(shape: RatingShape) -> Figure:
    told = ", ".join(
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
        alt=f"Share of each rating. {told}.",
    )


def _shape_section(shapes: Mapping[str, RatingShape]) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (name, *shape.shares, shape.shape if shape.shape != "none" else "none is established", shape.n)
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
    for who, found in gaps.items():
        for one in found.gaps:
            rows.append((who, f"{one.gap:g}", one.share, one.share.n))
            dots.append(Dot(f"gap {one.gap:g}", one.share, who))
        rows.append((who, "all", found.overall, found.overall.n))
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
        alt="; ".join(f"{dot.group}, {dot.label}: {dot.estimate}" for dot in dots),
    )
    words = [
        f"{who.capitalize()}: disagreement changes by {percent(found.trend.value)} per point of gap "
        f"({p_words(found.trend.p_value)})."
        for who, found in gaps.items()
        if found.trend.is_known
    ]
    return Section("gaps", title, tuple(words), (figure, table))
