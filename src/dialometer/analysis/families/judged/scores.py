"""What raters and judges said of the same things, as arrays: ratings of systems, or choices between two of them.

A judge is one name: what it said of a thing, in however many sessions, orders or samples, is averaged into one score (so a choice
that changes with the order is a tie). Several judges become one as the study declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from dialometer.analysis.base.data import MODEL_NAME, StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import asked_criteria, compared_types
from dialometer.analysis.base.wording import criterion_label
from dialometer.analysis.shared.comparisons import between, compared_criteria, compared_systems
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.model.values import CANNOT_TELL
from dialometer.quality.gold import gold_items
from dialometer.stats.judged.means import Corrected, JudgedRatings, corrected, judged_ratings
from dialometer.stats.judged.strengths import JudgedVotes, judged_strengths, pair_design, strength_contrasts

PAIR = " | "
"""Between the names of two systems, in the group of a choice."""
THING = ("item", "group")


def rated_criteria(study: Study) -> tuple[str, ...]:
    """Criteria with numbers that mean the same for everybody; magnitudes are ratios to each rater's own scale."""
    return tuple(asked.criterion.name for asked in asked_criteria(study) if asked.unit == "points" and asked.is_whole)


def chosen_criteria(study: Study) -> tuple[str, ...]:
    """Criteria on which one of two systems is chosen."""
    return tuple(criterion.name for criterion in compared_criteria(study, "one"))


def judge_names(data: StudyData) -> dict[str, str]:
    """The judge behind every session of a model."""
    part, question = MODEL_NAME
    answers = data.answers.filter((pl.col("part") == part) & (pl.col("question") == question))
    named = dict(zip(answers["rater"].to_list(), answers["text"].to_list(), strict=True))
    return {rater: named.get(rater, rater) for rater in data.by_models["rater"].unique().to_list()}


@dataclass(frozen=True, eq=False)
class JudgedCriterion:
    """One criterion: the raters' answers and the judges' scores of all things, and every estimate made of them."""

    study: Study
    name: str
    is_choice: bool
    people: pl.DataFrame  # rater, item, group, value
    judges: pl.DataFrame  # item, group, value: one score per thing
    options: Options

    @property
    def label(self) -> str:
        """As readers know it."""
        return criterion_label(self.study, self.name)

    @cached_property
    def ratings(self) -> JudgedRatings:
        """Coded for the estimates; people's items come from strata with shares of their own where the study says so."""
        strata = {item.id: self.study.stratum(item) for item in self.study.rated_items}
        has_strata = len(set(strata.values())) > 1
        return judged_ratings(
            self.people["value"].to_numpy(),
            self.people["item"].to_numpy(),
            self.judges["value"].to_numpy(),
            self.judges["item"].to_numpy(),
            raters=self.people["rater"].to_numpy(),
            groups=self.people["group"].to_numpy(),
            judge_groups=self.judges["group"].to_numpy(),
            strata=strata if has_strata else None,
            has_fixed_items=self.options.has_fixed_items,
        )

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Systems that people judged here, in file order."""
        known = set(self.ratings.groups)
        named = {system for group in known for system in group.split(PAIR)} if self.is_choice else known
        return tuple(system for system in compared_systems(self.study) if system in named)

    @cached_property
    def means(self) -> dict[str, Corrected]:
        """Each system's mean rating; for choices of three or more systems, their Bradley-Terry strengths."""
        if not self.is_choice:
            return {system: self._of({system: 1.0}) for system in self.systems}
        return self._strengths() if len(self.systems) > 2 else {}

    @cached_property
    def pairs(self) -> dict[tuple[str, str], Corrected]:
        """Differences of mean ratings, or shares of choices of the first; only pairs that people judged."""
        made = {}
        for first, second in combinations(self.systems, 2):
            if not self.is_choice:
                made[first, second] = self._of({first: 1.0, second: -1.0})
            elif first + PAIR + second in self.ratings.groups:
                made[first, second] = self._of({first + PAIR + second: 1.0}, null=0.5)
        return made

    def test(self, pair: tuple[str, str]) -> Estimate:
        """The corrected estimate of a pair with what it compares, as a confirmatory test."""
        null = 0.5 if self.is_choice else 0.0
        return between(self.pairs[pair].both, *pair, null=null, about=self.label, quantity="points")

    def _of(self, contrast: dict[str, float], null: float = 0.0) -> Corrected:
        return corrected(self.ratings, contrast, null=null, is_share=self.is_choice, confidence=self.options.confidence)

    def _strengths(self) -> dict[str, Corrected]:
        number = {system: place for place, system in enumerate(self.systems)}
        sides = [[number[name] for name in group.split(PAIR)] for group in self.ratings.groups]
        data, group = self.ratings, np.array(sides)
        # Choices on things that the judge has no score of cannot be corrected.
        has, rest = ~np.isnan(data.own_score), ~data.is_rated
        at, other = data.cell[has] // data.n_strata, data.score_cell[rest] // data.n_strata
        rows, rest_rows = (pair_design(group[part, 0], group[part, 1], len(number)) for part in (at, other))
        votes = JudgedVotes(
            rows, data.value[has], data.own_score[has], rest_rows, data.score[rest], data.item[has], data.score_item[rest],
            None if data.rater is None else data.rater[has],
        )  # fmt: skip
        try:
            return judged_strengths(votes, strength_contrasts(self.systems), confidence=self.options.confidence)
        except (NotEnoughData, np.linalg.LinAlgError):
            return {}


def judged_criteria(data: StudyData, options: Options) -> list[JudgedCriterion]:
    """Every criterion that raters answered and judges can correct."""
    if "judged" not in data.shared:
        data.shared["judged"] = [
            made
            for is_choice, names in ((False, rated_criteria(data.study)), (True, chosen_criteria(data.study)))
            for name in names
            if len((made := _criterion(data, name, options, is_choice=is_choice)).people)
        ]
    known: list[JudgedCriterion] = data.shared["judged"]
    return known


def _criterion(data: StudyData, name: str, options: Options, *, is_choice: bool) -> JudgedCriterion:
    use = data.study.spec.analysis.judges
    wanted = use.use if use else ()
    names = judge_names(data)
    read = _choices if is_choice else _numbers
    people = read(data.study, data.judgments, name)
    by_judge = read(data.study, data.by_models, name).with_columns(
        pl.col("rater").replace_strict(names, default=None, return_dtype=pl.String).alias("judge")
    )
    own = by_judge.filter(pl.col("judge").is_in(wanted)).group_by("judge", *THING).agg(pl.col("value").mean())
    whole = own.group_by(THING).agg(_combined(use.combine if use else "mean", is_choice=is_choice)).sort(THING)
    return JudgedCriterion(data.study, name, is_choice, people, whole, options)


def _combined(how: str, *, is_choice: bool) -> pl.Expr:
    """Several judges' scores of a thing as one."""
    value = pl.col("value")
    if how == "majority" and is_choice:
        return (((value > 0.5).sum().cast(pl.Float64) - (value < 0.5).sum()).sign() / 2 + 0.5).alias("value")
    return value.median().alias("value") if how == "majority" else value.mean()


def _numbers(study: Study, table: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Ratings of systems; several turns of one thing count as their mean."""
    rows = table.filter((pl.col("criterion") == criterion) & pl.col("value").is_not_null())
    rows = rows.filter(~pl.col("item").is_in(list(gold_items(study))) & (pl.col("system") != ""))
    return rows.group_by("rater", "item", pl.col("system").alias("group"), maintain_order=True).agg(
        pl.col("value").mean()
    )


def _choices(study: Study, table: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Choices as 1 for the system that comes first in the study file, 0 for the other, 0.5 for a tie."""
    rows = table.filter(
        (pl.col("criterion") == criterion)
        & pl.col("scale").is_in(compared_types(study, "one"))
        & pl.col("choice").is_not_null()
        & (pl.col("choice") != CANNOT_TELL)
        & ~pl.col("item").is_in(list(gold_items(study)))
    )
    place = {system.name: number for number, system in enumerate(study.spec.systems)}
    pairs = {item.id: _ordered(item.systems, place) for item in study.rated_items if len(item.systems) == 2}
    known = rows.filter(pl.col("item").is_in(list(pairs)))
    first = known["item"].replace_strict({item: pair[0] for item, pair in pairs.items()}, return_dtype=pl.String)
    second = known["item"].replace_strict({item: pair[1] for item, pair in pairs.items()}, return_dtype=pl.String)
    value = pl.when(pl.col("choice") == first).then(1.0).when(pl.col("choice") == second).then(0.0).otherwise(0.5)
    return known.select("rater", "item", (first + PAIR + second).alias("group"), value.alias("value"))


def _ordered(systems: Sequence[str], place: dict[str, int]) -> tuple[str, str]:
    first, second = sorted(systems, key=lambda name: place.get(name, len(place)))
    return first, second
