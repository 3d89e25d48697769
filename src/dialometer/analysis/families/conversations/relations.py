"""What self-ratings go together with: each other, and the length of the dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import within
from dialometer.analysis.base.wording import excludes, interval_only, listed, number, percent, with_interval
from dialometer.analysis.families.conversations.conversations import LENGTHS, SelfRatings
from dialometer.analysis.families.conversations.rating_shape import share_of
from dialometer.analysis.shared.comparisons import CORRECTIONS, corrected, p_adjusted
from dialometer.analysis.shared.correlation import clustered_spearman
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import COEFFICIENT, Dot, dot_interval
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.observations import Floats

CLOSE = 0.8
"""A correlation from which two criteria are called nearly one."""


def criteria_section(name: str, ratings: Sequence[SelfRatings], options: Options) -> Section:
    """Whether several criteria say the same about a dialogue."""
    title = "Do the criteria say the same?"
    if len(ratings) < 2:
        return Section(name, title, ("There is one criterion only.",))
    rows: list[tuple[Cell, ...]] = []
    rhos: dict[str, Estimate] = {}
    for left, right in combinations(ratings, 2):
        both = _table(left).join(_table(right), on=["rater", "item"], how="inner", suffix="_two", maintain_order="left")
        first, second, rater = (both[key].to_numpy() for key in ("value", "value_two", "rater"))
        rho = clustered_spearman(first, second, rater, options, resampled="raters")
        rows.append((left.label, right.label, rho, *_same(left, right, first, second, rater, options), len(both)))
        rhos[f"{left.label} and {right.label}"] = rho
    table = Table(
        name,
        "Criteria compared, dialogue by dialogue",
        (
            Column("first", "Criterion"),
            Column("second", "Compared with"),
            Column("rho", "Spearman's rho", "estimate"),
            Column("same", "Same point", "percent_estimate"),
            Column("gap", "Mean difference", "estimate"),
            Column("n", "Dialogues", "count"),
        ),
        tuple(rows),
        caption="Confidence intervals draw raters (rho) or take them as clusters. A rater's general mood raises all criteria at "
        "once, so "
        "some of this is the rater and not the dialogue.",
    )
    return Section(name, title, (_criteria_words(rhos),), (table,))


def _criteria_words(rhos: dict[str, Estimate]) -> str:
    """Pairs of criteria by how far they go together, as far as the intervals allow."""
    kinds: dict[str, list[str]] = {"same": [], "together": [], "against": [], "open": []}
    for pair, rho in rhos.items():
        if rho.is_known:
            is_sure = excludes(rho)
            kind = (
                "same" if rho.value >= CLOSE else "open" if not is_sure else "together" if rho.value > 0 else "against"
            )
            kinds[kind].append(f"{pair} ({number(rho.value)})")
    text = "Each dialogue was rated on several criteria by the same rater."
    if kinds["same"]:
        text += f" Nearly the same by Spearman's rho: {listed(kinds['same'])}. One question could replace both."
    if kinds["together"]:
        text += f" Correlated, but not the same: {listed(kinds['together'])}."
    if kinds["against"]:
        text += f" One is high where the other is low: {listed(kinds['against'])}."
    if kinds["open"]:
        text += f" Not significantly correlated: {listed(kinds['open'])}."
    return text if any(kinds.values()) else f"{text} There are too few dialogues, or too little variation, to tell."


def _table(ratings: SelfRatings) -> pl.DataFrame:
    return pl.DataFrame({"rater": ratings.rater, "item": ratings.item, "value": ratings.value})


def _same(
    left: SelfRatings, right: SelfRatings, first: Floats, second: Floats, rater: np.ndarray, options: Options
) -> tuple[Estimate | None, Estimate | None]:
    """Share of dialogues with the same point on both criteria, and the mean difference; None on unlike scales."""
    if left.ends != right.ends or not len(first):
        return None, None
    same = share_of((first == second).astype(np.float64), rater, options.confidence)
    return same, clustered_mean(first - second, rater, null=0.0, confidence=options.confidence)


def length_section(name: str, ratings: Sequence[SelfRatings], options: Options) -> Section:
    """Whether longer dialogues are rated higher, over all and within each system."""
    known = [key for key in LENGTHS if not all(np.isnan(rated.lengths[key]).all() for rated in ratings)]
    if not known:
        raise NotEnoughData(
            "no turns of the dialogues are stored", remedy="length is known of dialogues held in this study"
        )
    varying = [key for key in known if len(np.unique(ratings[0].lengths[key][~np.isnan(ratings[0].lengths[key])])) > 1]
    constant = [LENGTHS[key].lower() for key in known if key not in varying]
    correlations = {
        (rated.label, key): _rhos(rated, key, ratings[0].systems, options) for rated in ratings for key in varying
    }
    text = _length_words({key: rhos[0] for key, rhos in correlations.items()})
    if constant:
        text += f" The same in all dialogues, and so not correlated: {listed(constant)}."
    dots = [
        Dot(LENGTHS[key], rhos[0], facet=label if len(ratings) > 1 else "")
        for (label, key), rhos in correlations.items()
    ]
    return Section(
        name,
        "Ratings and the length of the dialogue",
        (
            text,
            "Length is an outcome too: users talk longer with a system they like, and stop when bored, so a relation does not mean "
            "that longer dialogues are better for it. Between systems length and rating may differ for unrelated "
            "reasons; the columns of single systems are free of that.",
        ),
        (
            *((_length_table(name, correlations, ratings[0].systems), _length_figure(name, dots)) if varying else ()),
            _lengths_table(name, ratings[0], known),
        ),
    )


def _length_words(rhos: dict[tuple[str, str], Estimate]) -> str:
    """What goes with length, and how much of that chance would give."""
    by_criterion: dict[str, list[str]] = {}
    for (label, key), rho in rhos.items():
        if excludes(rho):
            by_criterion.setdefault(label, []).append(f"{LENGTHS[key].lower()} (rho {number(rho.value)})")
    if not any(rho.has_interval for rho in rhos.values()):
        return "Whether length and rating are correlated cannot be tested yet."
    if not by_criterion:
        return "No correlation between length and rating is significant."
    details = "; ".join(f"{label} with {listed(lengths)}" for label, lengths in by_criterion.items())
    share = percent(1 - next(iter(rhos.values())).confidence)
    return (
        f"Confidence intervals that exclude zero: {details}. They are not corrected for the {len(rhos)} looked at; by chance "
        f"alone about {share} of them would exclude zero."
    )


def _rhos(ratings: SelfRatings, key: str, systems: Sequence[str], options: Options) -> list[Estimate]:
    """Over all dialogues, then, where there are several systems, within each."""
    length = ratings.lengths[key]
    rhos = [clustered_spearman(length, ratings.value, ratings.rater, options, resampled="raters")]
    for system in systems if len(systems) > 1 else ():
        own = ratings.of(system)
        rhos.append(
            clustered_spearman(length[own], ratings.value[own], ratings.rater[own], options, resampled="raters")
        )
    return rhos


def _length_table(name: str, by_length: dict[tuple[str, str], list[Estimate]], systems: Sequence[str]) -> Table:
    columns = [Column("criterion", "Criterion"), Column("length", "Length")]
    columns.append(Column("rho", "All dialogues", "estimate"))
    if len(systems) > 1:
        columns += [Column(f"system_{k + 1}", system, "estimate") for k, system in enumerate(systems)]
    return Table(
        name,
        "Spearman's rho of rating and length",
        (*columns, Column("n", "Dialogues", "count")),
        tuple((label, LENGTHS[key], *rhos, rhos[0].n) for (label, key), rhos in by_length.items()),
        caption="Duration runs from the first to the last turn. Confidence intervals draw raters.",
    )


def _length_figure(name: str, dots: list[Dot]) -> Figure:
    details = listed(
        f"{dot.facet} {dot.label} {number(dot.estimate.value)}".strip() for dot in dots if dot.estimate.is_known
    )
    return Figure(
        f"{name}_figure",
        "Rating and length",
        dot_interval(dots, value_title="Spearman's rho", reference=0.0, limits=COEFFICIENT),
        alt=f"Spearman's rho of rating and length: {details}.",
    )


def _lengths_table(name: str, ratings: SelfRatings, known: list[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system in ratings.systems:
        for key in known:
            values = ratings.lengths[key][ratings.of(system)]
            values = values[~np.isnan(values)]
            quartiles = np.quantile(values, [0.25, 0.5, 0.75]).tolist() if len(values) else [None] * 3
            unit = "s" if key == "duration_s" else ""
            rows.append((system, LENGTHS[key] + (f" ({unit})" if unit else ""), *quartiles, len(values)))
    return Table(
        f"{name}_lengths",
        "How long the dialogues were",
        (
            Column("system", "System"),
            Column("length", "Length"),
            Column("low", "Lower quartile", "number", 0),
            Column("median", "Median", "number", 0),
            Column("high", "Upper quartile", "number", 0),
            Column("n", "Dialogues", "count"),
        ),
        tuple(rows),
    )


MOST_POSITIONS = 10


def order_section(name: str, ratings: Sequence[SelfRatings], options: Options) -> Section:
    """Whether ratings change from a rater's first dialogue to the last, and in the course of the study."""
    rows: list[tuple[Cell, ...]] = []
    dots: list[Dot] = []
    levels = [adjusted_for_system(rated) for rated in ratings]
    changes = corrected(
        [first_to_last(rated, level, options) for rated, level in zip(ratings, levels, strict=True)], options
    )
    drift: list[tuple[Cell, ...]] = []
    changed: list[str] = []
    drifted: list[str] = []
    n_most = 0
    for rated, level, change in zip(ratings, levels, changes, strict=True):
        places = [int(place) for place in np.unique(rated.position) if place > 0][:MOST_POSITIONS]
        n_most = max(n_most, len(places))
        for place in places:
            here = rated.position == place
            mean = clustered_mean(level[here], rated.rater[here], confidence=options.confidence)
            mean = within(mean, *rated.scale.bounds())
            rows.append((rated.label, place, mean, mean.n))
            dots.append(Dot(f"dialogue {place}", mean, facet=rated.label if len(ratings) > 1 else ""))
        over_time = clustered_spearman(rated.answered_s, level, rated.rater, options, resampled="raters")
        if excludes(over_time):
            verb = "rises" if over_time.value > 0 else "falls"
            drifted.append(f"{rated.label} {verb} (rho {number(over_time.value)}, {interval_only(over_time)})")
        p = p_adjusted(change)
        drift.append((rated.label, change, None if np.isnan(p) else p, change.n, over_time, over_time.n))
        if p <= 1 - options.confidence:
            changed.append(
                f"{rated.label} {'rises' if change.value > 0 else 'falls'} by {with_interval(change)} points"
            )
    if n_most < 2:
        words = "Every rater held one dialogue, so there is no order within a session to look at."
    elif changed:
        words = (
            f"From a rater's first dialogue to the last, {listed(changed)}, with the mix of systems taken into account."
        )
    elif all(p is None for _, _, p, *_ in drift):
        words = "Whether ratings change from a rater's first dialogue to the last cannot be tested yet."
    else:
        words = "From a rater's first dialogue to the last, no change of the ratings is significant."
    if drifted:
        words += f" In the course of the study {listed(drifted)}, not corrected for the number of criteria."
    tables: list[Table | Figure] = [_order_table(name, rows), _drift_table(name, drift, options)]
    if n_most > 1:
        tables.insert(0, _order_figure(name, dots))
    return Section(name, "Ratings over time", (words,), tuple(tables))


def adjusted_for_system(ratings: SelfRatings) -> Floats:
    """Ratings with their system's mean replaced by the mean of all, so that an uneven mix of systems does not show as time."""
    level = ratings.value.copy()
    for system in ratings.systems:
        own = ratings.of(system)
        level[own] += ratings.value.mean() - ratings.value[own].mean()
    return level


def first_to_last(ratings: SelfRatings, level: Floats, options: Options) -> Estimate:
    """Mean change from each rater's first dialogue to the last, over raters who held at least two."""
    table = pl.DataFrame({"rater": ratings.rater, "position": ratings.position, "level": level})
    table = table.sort("position", maintain_order=True)
    ends = (
        table.group_by("rater", maintain_order=True)
        .agg(
            (pl.col("level").last() - pl.col("level").first()).alias("change"),
            pl.col("position").n_unique().alias("n"),
        )
        .filter(pl.col("n") > 1)
    )
    if not len(ends):
        return unknown("change from first to last", "no rater held two dialogues")
    return clustered_mean(ends["change"].to_numpy(), ends["rater"].to_numpy(), null=0.0, confidence=options.confidence)


def _order_table(name: str, rows: list[tuple[Cell, ...]]) -> Table:
    return Table(
        name,
        "Average rating by position in the session",
        (
            Column("criterion", "Criterion"),
            Column("position", "Dialogue", "count"),
            Column("mean", "Average rating", "estimate"),
            Column("n", "Dialogues", "count"),
        ),
        tuple(rows),
        caption="Adjusted for systems: each system's mean is set to the mean of all.",
    )


def _drift_table(name: str, rows: list[tuple[Cell, ...]], options: Options) -> Table:
    is_corrected = options.correction in CORRECTIONS
    heading = f"p ({CORRECTIONS[options.correction]})" if is_corrected else "p"
    return Table(
        f"{name}_change",
        "Change within raters, and in the course of the study",
        (
            Column("criterion", "Criterion"),
            Column("change", "First to last dialogue", "estimate"),
            Column("p_adjusted", heading, "p_value"),
            Column("n", "Raters", "count"),
            Column("rho", "Spearman's rho with the time of rating", "estimate"),
            Column("n_rated", "Dialogues", "count"),
        ),
        tuple(rows),
        caption="The change is tested within raters, corrected over the criteria. The correlation shows a drift in the course "
        "of the study, for example when a system was changed meanwhile; it includes the order within sessions.",
    )


def _order_figure(name: str, dots: list[Dot]) -> Figure:
    details = "; ".join(f"{dot.facet} {dot.label}: {number(dot.estimate.value)}".strip() for dot in dots)
    return Figure(
        f"{name}_figure",
        "Average rating by position in the session",
        dot_interval(dots, value_title="average rating"),
        alt=f"Average ratings by position in the session. {details}.",
    )
