"""Models beside human raters: how far a learned evaluator or an LLM judge agrees with the raters, in one table.

A model is set beside people's mean rating of each thing; so is each person, beside the mean of the others. A model that agrees
with people as well as one of them does could take that one's place; this says nothing about whether all of them are right.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, n_of, with_interval
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.study import Study
from dialometer.stats.bootstrap.bootstrap import bootstrap
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.correlation import spearman
from dialometer.stats.observations import Floats

NAME, TITLE = "judges", "Models beside human raters"
FEWEST_THINGS = 5
NO_ANSWER = "There is no analysis for this design yet."
_THING = ("item", "system", "turn")


class Judges(Family):
    """Fits every study; silent where no model has judged anything."""

    rank = 880

    def fits(self, study: Study) -> bool:
        """Always; models may come late."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section where models have given numbers, nothing otherwise; choices have a section of their own."""
        if data.by_models["value"].drop_nulls().is_empty():
            return Findings(NO_ANSWER, "")
        section = section_or_problem(NAME, TITLE, lambda: judges_section(data, options))
        return Findings(NO_ANSWER, "", sections=(section,), methods=METHODS)


METHODS = (
    Method(
        "Models beside human raters",
        "Spearman's rho and share of pairs ordered alike, with the mean of the human raters; single raters with the mean of "
        "the others",
        "a model's numbers need not be on the raters' scale, only its order can be compared",
    ),
)

ANALYSES.register(NAME)(Judges())


def judges_section(data: StudyData, options: Options) -> Section:
    """A row for people among each other, for each model, and for each pair of models, on every criterion."""
    n_models = data.by_models["rater"].n_unique()
    rows: list[tuple[Cell, ...]] = []
    paragraphs: list[str] = []
    for criterion in data.study.criteria_by_name:
        people = _numbers(data.judgments, criterion)
        models = _numbers(data.by_models, criterion)
        if people.is_empty() or models.is_empty():
            continue
        label = criterion_label(data.study, criterion)
        alone = single_raters(people, options)
        rows.append((label, "one rater", "mean of the other raters", *alone))
        mean = people.group_by(_THING).agg(pl.col("value").mean())
        # A model that took part several times counts as one: what it said of a thing is averaged.
        own = {
            str(name): part.group_by(_THING, maintain_order=True).agg(pl.col("value").mean())
            for (name,), part in models.group_by("rater", maintain_order=True)
        }
        for name, part in own.items():
            row = _compared(part, mean, options)
            rows.append((label, name, "mean of the human raters", *row))
            paragraphs.append(
                f"{label}: {name} and the mean of the human raters have a rank correlation of {with_interval(row[0])}."
            )
        listed = list(own.items())
        for place, (first, part) in enumerate(listed):
            rows += [(label, first, second, *_compared(part, other, options)) for second, other in listed[place + 1 :]]
    if not rows:
        raise NotEnoughData(
            "models and human raters have judged nothing in common", remedy="have models judge the study's items"
        )
    table = Table(
        "judges",
        "Agreement of models and human raters",
        (
            Column("criterion", "Criterion"),
            Column("who", "Who"),
            Column("with", "Beside"),
            Column("rho", "Spearman's ρ", "estimate"),
            Column("pairs", "Pairs ordered alike", "percent_estimate"),
            Column("n", "Things or raters", "count"),
        ),
        tuple(rows),
        caption="One rater: the mean over raters of their correlation with the mean of the others, what a perfect stand-in for a "
        "rater would reach. Pairs in which one side sees no difference are excluded.",
    )
    head = f"{n_of(n_models, 'model')} judged the same things as human raters; models count in no other part of this report."
    return Section(NAME, TITLE, (head, *paragraphs), (table,))


def single_raters(people: pl.DataFrame, options: Options) -> tuple[Estimate, Estimate, int]:
    """Means over people of how far they agree with the mean of the others on the same things, and over how many people."""
    whole = people.with_columns(
        pl.col("value").sum().over(_THING).alias("total"), pl.len().over(_THING).alias("n_here")
    ).filter(pl.col("n_here") > 1)
    others = whole.with_columns(((pl.col("total") - pl.col("value")) / (pl.col("n_here") - 1)).alias("others"))
    agreements = []
    for _, part in others.group_by("rater", maintain_order=True):
        own, rest = part["value"].to_numpy(), part["others"].to_numpy()
        if len(part) >= FEWEST_THINGS and (rho := spearman(own, rest)).is_known:
            order = _order(own, rest)
            agreements.append((rho.value, float((order > 0).sum() / max(1, (order != 0).sum()))))
    if len(agreements) < 2:
        why = f"fewer than two raters share {FEWEST_THINGS} things with others"
        nothing = unknown("mean over raters", why, n=len(agreements))
        return nothing, nothing, len(agreements)
    rhos, shares = (bootstrap_mean(side, **options.resampling) for side in zip(*agreements, strict=True))
    return rhos, shares, len(agreements)


def _numbers(judgments: pl.DataFrame, criterion: str) -> pl.DataFrame:
    rows = judgments.filter((pl.col("criterion") == criterion) & pl.col("value").is_not_null())
    kept = rows.select("rater", "item", "system", pl.col("turn").fill_null(-1), "value")
    return kept.group_by("rater", *_THING, maintain_order=True).agg(pl.col("value").mean())


def _compared(first: pl.DataFrame, second: pl.DataFrame, options: Options) -> tuple[Estimate, Estimate, int]:
    both = first.join(second, on=_THING, suffix="_other", maintain_order="left")
    x, y = both["value"].to_numpy(), both["value_other"].to_numpy()
    if len(both) < FEWEST_THINGS:
        nothing = unknown("rank correlation", f"fewer than {FEWEST_THINGS} things judged by both", n=len(both))
        return nothing, nothing, len(both)
    return spearman(x, y, confidence=options.confidence), pairs_alike(x, y, options), len(both)


def pairs_alike(first: Floats, second: Floats, options: Options) -> Estimate:
    """Share of pairs of things that both put in the same order, of those in which both see a difference; bootstrap over things.

    Without ties it is ``(scipy.stats.kendalltau(first, second).statistic + 1) / 2``.
    """
    order = _order(first, second)
    alike, differs = (order > 0).astype(np.float64), (order != 0).astype(np.float64)

    def statistic(counts: Floats) -> Floats:
        top, bottom = (np.einsum("bi,ij,bj->b", counts, part, counts, optimize=True) for part in (alike, differs))
        return np.asarray(np.divide(top, bottom, out=np.full(len(counts), np.nan), where=bottom > 0))

    return bootstrap(
        statistic,
        len(first),
        method="share of pairs ordered alike",
        resampled="things",
        **options.resampling,
    )


def _order(first: Floats, second: Floats) -> Floats:
    """For each two things 1 where both sides put them in the same order, -1 in the opposite, 0 where a side sees no difference."""
    return np.asarray(np.sign(first[:, None] - first) * np.sign(second[:, None] - second))


# Choices between systems. Each person is compared with most of the others in the same way as a model. The share of choices
# for the first place on the screen is shown too, since a model that looks only at places agrees by chance.


CHOICES_NAME, CHOICES_TITLE = "judge_choices", "Models' choices beside those of human raters"
THING = ("item", "block")
UNDECIDED = ("tie", "cannot_tell")


class JudgeChoices(Family):
    """Fits every study; silent where no model has chosen between systems."""

    rank = 881

    def fits(self, study: Study) -> bool:
        """Always; models may come late."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section where models have chosen, nothing otherwise."""
        if _choices(data.study, data.by_models).is_empty():
            return Findings(NO_ANSWER, "")
        section = section_or_problem(CHOICES_NAME, CHOICES_TITLE, lambda: choices_section(data, options))
        return Findings(NO_ANSWER, "", sections=(section,), methods=CHOICE_METHODS)


CHOICE_METHODS = (
    Method(
        "Models' choices beside those of human raters",
        "share of things on which a model takes the side of most human raters, Wilson's interval; single raters beside most of "
        "the others, bootstrap over raters",
        "a choice has no size, so only its side can be compared",
    ),
)
ANALYSES.register(CHOICES_NAME)(JudgeChoices())


def choices_section(data: StudyData, options: Options) -> Section:
    """A row for single people and for each model, on every criterion."""
    n_models = data.by_models["rater"].n_unique()
    rows: list[tuple[Cell, ...]] = []
    paragraphs: list[str] = []
    for criterion in data.study.criteria_by_name:
        people = _choices(data.study, data.judgments.filter(pl.col("criterion") == criterion))
        models = _choices(data.study, data.by_models.filter(pl.col("criterion") == criterion))
        if people.is_empty() or models.is_empty():
            continue
        label = criterion_label(data.study, criterion)
        rows.append((label, "one rater", single_people(people, options), _first_place(people, options)))
        for (model,), own in models.group_by("rater", maintain_order=True):
            agreed = agreement(own, people, options)
            first = proportion(int((own["side"] == 1).sum()), len(own), confidence=options.confidence)
            rows.append((label, str(model), agreed, first))
            if agreed.is_known:
                share = f"{agreed.value:.0%} (confidence interval {agreed.low:.0%} to {agreed.high:.0%})"
                paragraphs.append(
                    f"{label}: {model} takes the side of most human raters on {share} of {n_of(agreed.n, 'thing')}."
                )
    if not rows:
        raise NotEnoughData(
            "models and human raters have chosen on nothing in common", remedy="have models judge the items"
        )
    table = Table(
        "judge_choices",
        "Choices of models and human raters",
        (
            Column("criterion", "Criterion"),
            Column("who", "Who"),
            Column("agreement", "With most raters", "percent_estimate"),
            Column("first", "First place chosen", "percent_estimate"),
        ),
        tuple(rows),
        caption="One rater: the mean over raters of how often they choose as most of the others do. Ties, and things on "
        "which people or a model are evenly split, are excluded.",
    )
    head = f"{n_of(n_models, 'model')} chose on the same things as human raters; models count in no other part."
    return Section(CHOICES_NAME, CHOICES_TITLE, (head, *paragraphs), (table,))


def agreement(model: pl.DataFrame, people: pl.DataFrame, options: Options) -> Estimate:
    """On how many of the things that both have a side on it is the same side."""
    both = _majority(model).join(_majority(people), on=THING, suffix="_people")
    n_same = int((both["choice"] == both["choice_people"]).sum())
    return proportion(n_same, len(both), confidence=options.confidence)


def single_people(people: pl.DataFrame, options: Options) -> Estimate:
    """The mean over raters of the share of things on which they choose as most of the others do."""
    shares = []
    for (rater,), own in people.group_by("rater", maintain_order=True):
        others = _majority(people.filter(pl.col("rater") != rater))
        both = _majority(own).join(others, on=THING, suffix="_people")
        if len(both):
            shares.append(float((both["choice"] == both["choice_people"]).mean()))  # type: ignore[arg-type]
    return bootstrap_mean(shares, **options.resampling, label="one rater")


def _choices(study: Study, table: pl.DataFrame) -> pl.DataFrame:
    """Choices between systems that take a side."""
    return table.filter(pl.col("scale").is_in(compared_types(study, "one")) & ~pl.col("choice").is_in(UNDECIDED))


def _majority(votes: pl.DataFrame) -> pl.DataFrame:
    """The side of most, by thing; things that are evenly split have none."""
    counts = votes.group_by(*THING, "choice", maintain_order=True).len()
    most = counts.filter(pl.col("len") == pl.col("len").max().over(THING))
    return most.filter(pl.len().over(THING) == 1).select(*THING, "choice")


def _first_place(people: pl.DataFrame, options: Options) -> Estimate:
    chosen = (people["side"] == 1).cast(pl.Float64).to_numpy()
    return clustered_proportion(chosen, people["rater"].to_numpy(), confidence=options.confidence)


# Ratings that a learned evaluator doubts, flagged by ``dialometer learn noisy --flag``.


FLAGGED_NAME, FLAGGED_TITLE = "doubted_ratings", "Ratings to read again"
RULE = "noisy_rating"
"""The rule under which the learned evaluator files its flags."""
MOST_ROWS = 100


class FlaggedRatings(Family):
    """Fits every study; silent where nothing was flagged."""

    rank = 895

    def fits(self, study: Study) -> bool:
        """Always; flags come with the evaluator."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section where there are flags."""
        if _flags(data).is_empty():
            return Findings(NO_ANSWER, "")
        section = section_or_problem(FLAGGED_NAME, FLAGGED_TITLE, lambda: flagged_section(data))
        return Findings(NO_ANSWER, "", sections=(section,))


ANALYSES.register(FLAGGED_NAME)(FlaggedRatings())


def flagged_section(data: StudyData) -> Section:
    """Each flagged rating with its reason."""
    flags = _flags(data)
    rows: list[tuple[Cell, ...]] = [
        (rater, *reason.partition(": ")[::2]) for rater, reason in flags.select("rater", "reason").iter_rows()
    ]
    n_raters = flags["rater"].n_unique()
    words = (
        f"A learned evaluator doubts {n_of(len(rows), 'rating')} of {n_of(n_raters, 'rater')}: similar dialogues were rated "
        "otherwise. All of them still count. A rating can be doubted because it is honest, so read the dialogue before "
        "excluding anyone."
    )
    table = Table(
        FLAGGED_NAME,
        "Ratings that contradict those of similar dialogues",
        (Column("rater", "Rater"), Column("item", "Item"), Column("reason", "Why")),
        tuple(rows[:MOST_ROWS]),
        notes=(f"the first {MOST_ROWS} of {len(rows)}",) if len(rows) > MOST_ROWS else (),
    )
    return Section(FLAGGED_NAME, FLAGGED_TITLE, (words,), (table,))


def _flags(data: StudyData) -> pl.DataFrame:
    shown = data.sessions.filter(pl.col("source").is_in(data.sources))["rater"]
    return data.findings.filter((pl.col("rule") == RULE) & pl.col("rater").is_in(shown.implode())).sort(
        "rater", "reason"
    )
