"""Models beside people: how far a learned evaluator or an LLM judge agrees with the raters, in one table.

A model is set beside people's mean rating of each thing; so is each person, beside the mean of the others. A model that agrees
with people as well as one of them does could take that one's place; this says nothing about whether all of them are right.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from dialometer.analysis.data import MODEL_NAME, StudyData
from dialometer.analysis.family import ANALYSES, Findings, Options, section_or_problem
from dialometer.analysis.labels import criterion_label
from dialometer.analysis.words import n_of, with_interval
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.study import Study
from dialometer.stats.bootstrap import bootstrap
from dialometer.stats.correlation import spearman
from dialometer.stats.observations import Floats
from dialometer.stats.summary import bootstrap_mean

NAME, TITLE = "judges", "Models beside people"
FEWEST_THINGS = 5
NO_ANSWER = "There is no analysis for this design yet."
_THING = ("item", "system", "turn")


class Judges:
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
        "Models beside people",
        "Spearman's rho and share of pairs ordered alike, with people's mean; single people with the mean of the others",
        "a model's numbers need not be on people's scale, only its order can be compared",
    ),
)

ANALYSES.register(NAME)(Judges())


def judges_section(data: StudyData, options: Options) -> Section:
    """A row for people among each other, for each model, and for each pair of models, on every criterion."""
    names = model_names(data)
    rows: list[tuple[Cell, ...]] = []
    said: list[str] = []
    for criterion in [one.name for one in data.study.spec.criteria]:
        people = _numbers(data.judgments, criterion)
        models = _numbers(data.by_models, criterion)
        if people.is_empty() or models.is_empty():
            continue
        label = criterion_label(data.study, criterion)
        alone = single_raters(people, options)
        rows.append((label, "one person", "mean of the other people", *alone))
        mean = people.group_by(_THING).agg(pl.col("value").mean())
        # A model that took part several times counts as one: what it said of a thing is averaged.
        named = models.with_columns(pl.col("rater").replace_strict(names, return_dtype=pl.String).alias("model"))
        own = {
            str(name): part.group_by(_THING, maintain_order=True).agg(pl.col("value").mean())
            for (name,), part in named.group_by("model", maintain_order=True)
        }
        for name, part in own.items():
            row = _compared(part, mean, options)
            rows.append((label, name, "mean of the people", *row))
            said.append(
                f"{label}: {name} and the mean of the people have a rank correlation of {with_interval(row[0])}."
            )
        listed = list(own.items())
        for place, (first, part) in enumerate(listed):
            rows += [(label, first, second, *_compared(part, other, options)) for second, other in listed[place + 1 :]]
    if not rows:
        raise NotEnoughData(
            "models and people have judged nothing in common", remedy="have models judge the study's items"
        )
    table = Table(
        "judges",
        "Agreement of models and people",
        (
            Column("criterion", "Criterion"),
            Column("who", "Who"),
            Column("with", "Beside"),
            Column("rho", "Spearman's ρ", "estimate"),
            Column("pairs", "Pairs ordered alike", "percent_estimate"),
            Column("n", "Things or people", "count"),
        ),
        tuple(rows),
        caption="One person: the mean over people of their correlation with the mean of the others, what a perfect stand-in for a "
        "person would reach. Pairs in which one side sees no difference are left out.",
    )
    n_models = len(set(names.values()))
    head = (
        f"{n_of(n_models, 'model')} judged the same things as the people; models count in no other part of this report."
    )
    return Section(NAME, TITLE, (head, *said), (table,))


def model_names(data: StudyData) -> dict[str, str]:
    """Names of models by the pseudonym of their sessions."""
    part, question = MODEL_NAME
    told = data.answers.filter((pl.col("part") == part) & (pl.col("question") == question))
    names = dict(zip(told["rater"].to_list(), told["text"].to_list(), strict=True))
    return {rater: names.get(rater, rater) for rater in data.by_models["rater"].unique().sort().to_list()}


def single_raters(people: pl.DataFrame, options: Options) -> tuple[Estimate, Estimate, int]:
    """Means over people of how far they agree with the mean of the others on the same things, and over how many people."""
    whole = people.with_columns(
        pl.col("value").sum().over(_THING).alias("total"), pl.len().over(_THING).alias("n_here")
    ).filter(pl.col("n_here") > 1)
    others = whole.with_columns(((pl.col("total") - pl.col("value")) / (pl.col("n_here") - 1)).alias("others"))
    found = []
    for _, part in others.group_by("rater", maintain_order=True):
        own, rest = part["value"].to_numpy(), part["others"].to_numpy()
        if len(part) >= FEWEST_THINGS and (rho := spearman(own, rest)).is_known:
            order = _order(own, rest)
            found.append((rho.value, float((order > 0).sum() / max(1, (order != 0).sum()))))
    if len(found) < 2:
        why = f"fewer than two people share {FEWEST_THINGS} things with others"
        nothing = unknown("mean over people", why, n=len(found))
        return nothing, nothing, len(found)
    rhos, shares = (
        bootstrap_mean(side, n_resamples=options.n_resamples, seed=options.seed, confidence=options.confidence)
        for side in zip(*found, strict=True)
    )
    return rhos, shares, len(found)


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
        n_resamples=options.n_resamples,
        seed=options.seed,
        confidence=options.confidence,
    )


def _order(first: Floats, second: Floats) -> Floats:
    """For each two things 1 where both sides put them in the same order, -1 in the opposite, 0 where a side sees no difference."""
    return np.asarray(np.sign(first[:, None] - first) * np.sign(second[:, None] - second))
