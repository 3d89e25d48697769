"""Models beside people where they choose between systems: how often a model takes the side of most people.

Each person is set beside most of the others in the same way, which is what a perfect stand-in for a person would reach. The
share of choices for the first place on the screen stands beside it: a model that looks at places agrees by chance.
"""

from __future__ import annotations

import polars as pl

from dialometer.analysis.data import StudyData
from dialometer.analysis.family import ANALYSES, Findings, Options, section_or_problem
from dialometer.analysis.judges import NO_ANSWER, model_names
from dialometer.analysis.labels import criterion_label
from dialometer.analysis.words import n_of
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.stats.clustered import clustered_proportion
from dialometer.stats.proportion import proportion
from dialometer.stats.summary import bootstrap_mean

NAME, TITLE = "judge_choices", "Models' choices beside people's"
THING = ("item", "block")
UNDECIDED = ("tie", "cannot_tell")


class JudgeChoices:
    """Fits every study; silent where no model has chosen between systems."""

    rank = 881

    def fits(self, study: object) -> bool:
        """Always; models may come late."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section where models have chosen, nothing otherwise."""
        if _choices(data.by_models).is_empty():
            return Findings(NO_ANSWER, "")
        section = section_or_problem(NAME, TITLE, lambda: choices_section(data, options))
        return Findings(NO_ANSWER, "", sections=(section,), methods=METHODS)


METHODS = (
    Method(
        "Models' choices beside people's",
        "share of things on which a model takes the side of most people, Wilson's interval; single people beside most of "
        "the others, bootstrap over people",
        "a choice has no size, so only its side can be compared",
    ),
)
ANALYSES.register(NAME)(JudgeChoices())


def choices_section(data: StudyData, options: Options) -> Section:
    """A row for single people and for each model, on every criterion."""
    names = model_names(data)
    rows: list[tuple[Cell, ...]] = []
    said: list[str] = []
    for criterion in [one.name for one in data.study.spec.criteria]:
        people = _choices(data.judgments.filter(pl.col("criterion") == criterion))
        models = _choices(data.by_models.filter(pl.col("criterion") == criterion))
        if people.is_empty() or models.is_empty():
            continue
        label = criterion_label(data.study, criterion)
        rows.append((label, "one person", single_people(people, options), _first_place(people, options)))
        named = models.with_columns(pl.col("rater").replace_strict(names, return_dtype=pl.String).alias("model"))
        for (model,), own in named.group_by("model", maintain_order=True):
            agreed = agreement(own, people, options)
            first = proportion(int((own["side"] == 1).sum()), len(own), confidence=options.confidence)
            rows.append((label, str(model), agreed, first))
            if agreed.is_known:
                told = f"{agreed.value:.0%} (interval {agreed.low:.0%} to {agreed.high:.0%})"
                said.append(f"{label}: {model} takes the side of most people on {told} of {n_of(agreed.n, 'thing')}.")
    if not rows:
        raise NotEnoughData("models and people have chosen on nothing in common", remedy="have models judge the items")
    table = Table(
        "judge_choices",
        "Choices of models and people",
        (
            Column("criterion", "Criterion"),
            Column("who", "Who"),
            Column("agreement", "With most people", "percent_estimate"),
            Column("first", "First place chosen", "percent_estimate"),
        ),
        tuple(rows),
        caption="One person: the mean over people of how often they choose as most of the others do. Ties, and things on "
        "which people or a model are evenly split, are left out.",
    )
    head = f"{n_of(len(set(names.values())), 'model')} chose on the same things as the people; models count in no other part."
    return Section(NAME, TITLE, (head, *said), (table,))


def agreement(model: pl.DataFrame, people: pl.DataFrame, options: Options) -> Estimate:
    """On how many of the things that both have a side on it is the same side."""
    both = _majority(model).join(_majority(people), on=THING, suffix="_people")
    n_same = int((both["choice"] == both["choice_people"]).sum())
    return proportion(n_same, len(both), confidence=options.confidence)


def single_people(people: pl.DataFrame, options: Options) -> Estimate:
    """The mean over people of the share of things on which they choose as most of the others do."""
    shares = []
    for (rater,), own in people.group_by("rater", maintain_order=True):
        others = _majority(people.filter(pl.col("rater") != rater))
        both = _majority(own).join(others, on=THING, suffix="_people")
        if len(both):
            shares.append(float((both["choice"] == both["choice_people"]).mean()))  # type: ignore[arg-type]
    return bootstrap_mean(
        shares, n_resamples=options.n_resamples, seed=options.seed, confidence=options.confidence, label="one person"
    )


def _choices(table: pl.DataFrame) -> pl.DataFrame:
    """Choices between systems that take a side."""
    return table.filter((pl.col("scale") == "pairwise") & ~pl.col("choice").is_in(UNDECIDED))


def _majority(votes: pl.DataFrame) -> pl.DataFrame:
    """The side of most, by thing; things that are evenly split have none."""
    counts = votes.group_by(*THING, "choice", maintain_order=True).len()
    most = counts.filter(pl.col("len") == pl.col("len").max().over(THING))
    return most.filter(pl.len().over(THING) == 1).select(*THING, "choice")


def _first_place(people: pl.DataFrame, options: Options) -> Estimate:
    chosen = (people["side"] == 1).cast(pl.Float64).to_numpy()
    return clustered_proportion(chosen, people["rater"].to_numpy(), confidence=options.confidence)
