"""How many human judgments a comparison needs where a judge scores everything: the report's own estimator, simulated.

Two systems are compared on items that raters judge in part and the judge in whole. What counts is a person's judgment of the
difference on one item, in its own standard deviations: part of it comes from the item, part from the rater's taste, the rest is
chance. The judge's score of an item agrees with it to a known degree. Only what comes from items can be corrected: with
every judgment on an item of its own, the variance over items falls by the squared agreement times the share of items without
people (Angelopoulos, Duchi and Zrnic 2023). The numbers themselves come from simulated studies, estimated by
:func:`dialometer.stats.judged.means.corrected` as in the report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, n_of, number, percent
from dialometer.analysis.families.judged.scores import PAIR, JudgedCriterion, judged_criteria
from dialometer.analysis.shared.comparisons import compared_systems, primary_comparison
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Column, Figure, Method, Report, Section, Summary, Table
from dialometer.model.study import Study
from dialometer.report.charts.lines import LinePoint, lines
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.judged.means import corrected, judged_ratings
from dialometer.storage.store import Store

ITEM_SHARE = 0.35
"""Share of the variance of single judgments that comes from the item; more where the judge agrees better than that allows."""
TASTE_SHARE = 0.05
"""Share that comes from raters who think differently of a system, whatever the item: no judge can take that away."""
MOST_AGREEMENT = 0.97
FEWEST_PAIRED = 20
"""Things that people and judges must have judged in common before their agreement is planned with."""
PEOPLE, BOTH = "raters alone", "with the judge"


@dataclass(frozen=True, slots=True)
class JudgedPlan:
    """What is assumed: agreement is the correlation of the judge's score with a single human judgment of the same item."""

    agreement: float
    effect: float
    n_judged: int
    """Items that the judge scores."""
    per_rater: int
    alpha: float = 0.05
    n_simulations: int = 200
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.agreement <= MOST_AGREEMENT:
            raise DialometerError(
                f"an agreement of {self.agreement:g} is not between 0 and {MOST_AGREEMENT:g}",
                remedy="give the correlation of the judge's scores with single human judgments",
            )

    @property
    def item_share(self) -> float:
        """Nobody can agree better with a single judgment than the item itself does."""
        return max(ITEM_SHARE, self.agreement**2)


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """A number of human judgments: power and half the width of the interval, of people alone and with the judge."""

    n: int
    power: dict[str, Estimate]
    half_width: dict[str, float]
    worth: float
    """How many human judgments without the judge would be worth as much."""


@dataclass(frozen=True)
class JudgedPower:
    """All numbers that were tried, and the smallest that is enough in each way; None where none is."""

    plan: JudgedPlan
    target: float
    points: tuple[JudgedPoint, ...]
    smallest: dict[str, int | None]


def simulated(plan: JudgedPlan, n: int, rng: np.random.Generator) -> dict[str, Estimate | float]:
    """One study: people's estimate, the corrected one, and what it was worth."""
    n_items = max(plan.n_judged, math.ceil(n / max(1, math.ceil(n / plan.n_judged))))
    truth = rng.standard_normal(n_items)  # of the items, in units of their own spread
    match = plan.agreement / math.sqrt(plan.item_share)
    score = match * truth + math.sqrt(max(0.0, 1 - match**2)) * rng.standard_normal(n_items)
    item = rng.permutation(n_items)[np.arange(n) % n_items]
    rater = np.arange(n) // plan.per_rater
    taste = rng.standard_normal(int(rater.max()) + 1)
    rest = max(0.0, 1 - plan.item_share - TASTE_SHARE)
    value = (
        plan.effect
        + math.sqrt(plan.item_share) * truth[item]
        + math.sqrt(TASTE_SHARE) * taste[rater]
        + math.sqrt(rest) * rng.standard_normal(n)
    )
    made = corrected(
        judged_ratings(value, item, score, np.arange(n_items), raters=rater), {"0": 1.0}, confidence=1 - plan.alpha
    )
    return {PEOPLE: made.people, BOTH: made.both, "worth": made.n_worth}


def tried(plan: JudgedPlan, n: int) -> JudgedPoint:
    """Many studies with so many human judgments."""
    rng = np.random.default_rng([plan.seed, n])
    studies = [simulated(plan, n, rng) for _ in range(plan.n_simulations)]
    power, half = {}, {}
    for way in (PEOPLE, BOTH):
        made = [study[way] for study in studies]
        known = [estimate for estimate in made if isinstance(estimate, Estimate) and estimate.has_interval]
        power[way] = proportion(sum(one.p_value <= plan.alpha for one in known), len(studies), label=way)
        half[way] = float(np.median([(one.high - one.low) / 2 for one in known])) if known else math.nan
    return JudgedPoint(n, power, half, float(np.median([float(one["worth"]) for one in studies])))  # type: ignore[arg-type]


def judged_power(plan: JudgedPlan, judgments: Sequence[int], *, target: float = 0.8) -> JudgedPower:
    """Power over the given numbers of human judgments, then the smallest that is enough, by bisection between them."""
    points = {n: tried(plan, n) for n in sorted(judgments)}
    smallest = {way: _smallest(plan, points, way, target) for way in (PEOPLE, BOTH)}
    return JudgedPower(plan, target, tuple(points[n] for n in sorted(points)), smallest)


def _smallest(plan: JudgedPlan, points: dict[int, JudgedPoint], way: str, target: float) -> int | None:
    enough = [n for n, point in points.items() if point.power[way].value >= target]
    if not enough:
        return None
    high = min(enough)
    low = max((n for n in points if n < high), default=plan.per_rater)
    while high - low > max(2, 0.05 * high):
        middle = (low + high) // 2
        points[middle] = tried(plan, middle)
        low, high = (low, middle) if points[middle].power[way].value >= target else (middle, high)
    return high


def pilot_agreement(study: Study, store: Store) -> tuple[float, str]:
    """The agreement in a study that people and judges have judged: of single judgments of the primary comparison's differences,
    each two systems centred, with the judge's score of the same item. In words too."""
    primary = primary_comparison(study)
    if study.spec.analysis.judges is None:
        raise DialometerError(
            "the study declares no judges", where="analysis.judges", remedy="declare them, or give --agreement 0.5"
        )
    pairs: list[pl.DataFrame] = []
    for criterion in judged_criteria(load_data(study, store), Options.declared(study)):
        if not primary.criteria or criterion.name in primary.criteria:
            pairs += _matched(criterion, compared_systems(study, primary))
    both = pl.concat(pairs) if pairs else pl.DataFrame()
    names = listed(study.spec.analysis.judges.use)
    if len(both) < FEWEST_PAIRED:
        raise DialometerError(
            f"people and {names} have judged fewer than {FEWEST_PAIRED} things in common",
            remedy="collect a pilot of both (dialometer serve, dialometer judge), or give --agreement 0.5",
        )
    correlation = both.select(pl.corr("person", "judge")).item()
    agreement = (
        0.0 if correlation is None or math.isnan(correlation) else min(max(float(correlation), 0.0), MOST_AGREEMENT)
    )
    n_items = both["item"].n_unique()
    half = 1.96 / math.sqrt(max(n_items - 3, 1))  # Fisher's transformation, each item counted once
    low, high = (math.tanh(math.atanh(agreement) + side * half) for side in (-1, 1))
    return agreement, (
        f"The agreement of {number(agreement)} (95% confidence interval {number(max(low, 0.0))} to {number(high)}) is that of {names} "
        f"with {n_of(len(both), 'human judgment')} of {n_of(n_items, 'item')} in this study's data; try both ends with --agreement."
    )


def _matched(criterion: JudgedCriterion, systems: Sequence[str]) -> list[pl.DataFrame]:
    """For every two systems a table of item, person's and judge's judgment of their difference, both centred."""
    made = []
    for first, second in combinations(systems, 2):
        if criterion.is_choice:
            group = pl.col("group").is_in([f"{first}{PAIR}{second}", f"{second}{PAIR}{first}"])
            people, judges = (table.filter(group) for table in (criterion.people, criterion.judges))
        else:
            people, judges = (_gaps(table, first, second) for table in (criterion.people, criterion.judges))
        joined = people.join(judges.select("item", pl.col("value").alias("judge")), on="item")
        centred = [
            (pl.col(old) - pl.col(old).mean()).alias(new) for old, new in (("value", "person"), ("judge", "judge"))
        ]
        made.append(joined.select("item", *centred))
    return made


def _gaps(table: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    """First minus second, of every rater (or the judge) on every item that both were judged on."""
    keys = [name for name in ("rater", "item") if name in table.columns]
    one, two = (table.filter(pl.col("group") == name).select(*keys, "value") for name in (first, second))
    return one.join(two, on=keys, suffix="_second").with_columns(value=pl.col("value") - pl.col("value_second"))


def answer_words(power: JudgedPower) -> str:
    """How many human judgments are needed with this judge, and without it."""
    plan, (alone, both) = power.plan, (power.smallest[PEOPLE], power.smallest[BOTH])
    goal = f"{percent(power.target)} power for a difference of {plan.effect:g} standard deviations of single judgments"
    tried_most = power.points[-1].n
    if both is None:
        return f"Not even {tried_most:,} human judgments reach {goal}, with or without this judge."
    without = f"raters alone need {alone:,}" if alone is not None else f"raters alone need more than {tried_most:,}"
    if alone is not None and alone - both <= max(2, 0.05 * alone):
        return f"The judge saves next to nothing: about {alone:,} human judgments reach {goal} either way."
    return f"With this judge {both:,} human judgments reach {goal}; {without}."


def assumed_words(plan: JudgedPlan) -> str:
    """What was assumed."""
    return (
        f"Assumed: the judge's score correlates with a single human judgment of the same item by {number(plan.agreement)} and covers "
        f"{n_of(plan.n_judged, 'item')}; each rater judges {n_of(plan.per_rater, 'item')}, each item is judged by as few raters as "
        f"possible. Of the variance of single judgments, {percent(plan.item_share)} comes from the item and "
        f"{percent(TASTE_SHARE)} from the rater's taste, which no judge can correct."
    )


def judged_report(study: Study, power: JudgedPower, source: str) -> Report:
    """As table and figure."""
    plan = power.plan
    columns = (
        Column("judgments", "Human judgments", "count"),
        Column("people", "Power, raters alone", "percent_estimate", 0),
        Column("both", "Power with the judge", "percent_estimate", 0),
        Column("half_people", "Half width, raters alone", "number"),
        Column("half_both", "Half width with the judge", "number"),
        Column("worth", "Worth how many judgments", "count"),
    )
    rows = tuple(
        (p.n, p.power[PEOPLE], p.power[BOTH], p.half_width[PEOPLE], p.half_width[BOTH], round(p.worth))
        for p in power.points
    )
    table = Table("judged_power", "Human judgments with and without the judge", columns, rows)
    points = [
        LinePoint(x=p.n, y=p.power[way].value, low=p.power[way].low, high=p.power[way].high, group=way)
        for way in (PEOPLE, BOTH)
        for p in power.points
    ]
    spec = lines(
        points, x_title="human judgments", y_title="power", group_title="", target=power.target, y_domain=(0.0, 1.0), is_percent=True
    )  # fmt: skip
    shown = ", ".join(
        f"{p.n}: {percent(p.power[PEOPLE].value)} and {percent(p.power[BOTH].value)}" for p in power.points
    )
    alt = f"Power by the number of human judgments, raters alone and with the judge. {shown}."
    figure = Figure("judged_power_curve", "Power over the number of human judgments", spec, alt)
    why = "each simulated study is estimated as the report does it: human raters corrected by the judge"
    return Report(
        study=study.spec.name,
        title=f"Power with a judge: {study.spec.title}",
        summary=Summary(answer_words(power), assumed_words(plan), figure=figure),
        sections=(Section("judged_power", "Human judgments needed", (source,), (table,)),),
        methods=(Method("power with a judge", f"simulation, {plan.n_simulations} studies for each number", why),),
        provenance={
            "study": study.spec.name, "seed": plan.seed, "n_simulations": plan.n_simulations, "alpha": plan.alpha,
            "agreement": plan.agreement, "effect": plan.effect, "items_judged": plan.n_judged,
        },
    )  # fmt: skip
