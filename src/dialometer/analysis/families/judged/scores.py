"""What raters and judges said of the same things, as arrays: ratings of systems, or choices between two of them.

A judge is one name: what it said of a thing, in however many sessions, orders or samples, is averaged into one score (so a choice
that changes with the order is a tie). Several judges become one as the study declares. Magnitudes count as logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import asked_criteria, compared_types, difference_within, within
from dialometer.analysis.base.wording import criterion_label
from dialometer.analysis.shared.comparisons import between, compared_criteria, compared_systems
from dialometer.analysis.shared.judge_ensembles import weighed_labels
from dialometer.analysis.shared.styles import VOTES_PER_PARAMETER, style_of
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.shared_texts import shared_prompts
from dialometer.model.study import Study
from dialometer.model.values import CANNOT_TELL
from dialometer.quality.gold import gold_items
from dialometer.stats.judged.means import Corrected, JudgedRatings, corrected, judged_ratings
from dialometer.stats.judged.strengths import JudgedVotes, judged_strengths, pair_design, strength_contrasts
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.style import STYLE, relative_differences

PAIR = " | "
"""Between the names of two systems, in the group of a choice."""
THING = ("item", "group")


def rated_criteria(study: Study) -> tuple[str, ...]:
    """Criteria with numbers that mean the same wherever they are asked."""
    return tuple(
        asked.criterion.name for asked in asked_criteria(study) if asked.unit in ("points", "log") and asked.is_whole
    )


def chosen_criteria(study: Study) -> tuple[str, ...]:
    """Criteria on which one of two systems is chosen."""
    return tuple(criterion.name for criterion in compared_criteria(study, "one"))


@dataclass(frozen=True, eq=False)
class JudgedCriterion:
    """One criterion: the raters' answers and the judges' scores of all things, and every estimate made of them."""

    study: Study
    name: str
    is_choice: bool
    people: pl.DataFrame  # rater, item, group, value
    judges: pl.DataFrame  # item, group, value: one score per thing
    options: Options
    is_log: bool = False
    problem: str = ""
    """Why the judges could not be combined as declared."""

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
            prompts=shared_prompts(self.study),
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
        return between(self.pairs[pair].both, *pair, null=null, is_log=self.is_log, about=self.label, quantity="points")

    def _of(self, contrast: dict[str, float], null: float = 0.0) -> Corrected:
        made = corrected(self.ratings, contrast, null=null, is_share=self.is_choice, confidence=self.options.confidence)
        if self.is_choice or self.is_log:
            return made
        low, high = self.study.scale_for(self.study.criteria_by_name[self.name], self.study.spec.presentation).bounds()
        cut = within if len(contrast) == 1 else difference_within
        people, judge, both = (cut(estimate, low, high) for estimate in (made.people, made.judge, made.both))
        return replace(made, people=people, judge=judge, both=both)

    @cached_property
    def styled(self) -> dict[str, Corrected]:
        """For choices of three or more systems: their strengths with length and formatting of the responses held equal."""
        return self._strengths(has_style=True) if self.is_choice and len(self.systems) > 2 else {}

    def _strengths(self, *, has_style: bool = False) -> dict[str, Corrected]:
        data, number = self.ratings, {system: place for place, system in enumerate(self.systems)}
        # Choices on things that the judge has no score of cannot be corrected.
        has, rest = ~np.isnan(data.own_score), ~data.is_rated
        if not has.any():
            return {}
        frames = [self.people.filter(pl.Series(has)), self.judges.filter(pl.Series(rest))]
        sides = [
            np.array([[number[name] for name in group.split(PAIR)] for group in own["group"]], dtype=np.int64).reshape(
                -1, 2
            )
            for own in frames
        ]
        rows, rest_rows = (pair_design(pair[:, 0], pair[:, 1], len(number)) for pair in sides)
        n_features = 0
        if has_style:
            counts = style_of(self.study)
            style = _distinct(rows, *(_style(counts, own) for own in frames))
            if style is None or len(rows) < VOTES_PER_PARAMETER * (len(number) + style[0].shape[1]):
                return {}
            n_features = style[0].shape[1]
            rows, rest_rows = np.hstack([rows, style[0]]), np.hstack([rest_rows, style[1]])
        votes = JudgedVotes(
            rows, data.value[has], data.own_score[has], rest_rows, data.score[rest], data.item[has], data.score_item[rest],
            None if data.rater is None else data.rater[has],
        )  # fmt: skip
        contrasts = strength_contrasts(self.systems, n_features)
        try:
            return judged_strengths(votes, contrasts, confidence=self.options.confidence)
        except (NotEnoughData, np.linalg.LinAlgError):
            return {}


def _style(counts: dict[tuple[str, str], tuple[int, ...]], frame: pl.DataFrame) -> Floats:
    """Relative differences of length and formatting between the two sides of choices; nan where a text is not known."""
    unknown = (np.nan,) * len(STYLE)
    sides = [
        [counts.get((item, group.split(PAIR)[place]), unknown) for item, group in frame.select(THING).iter_rows()]
        for place in (0, 1)
    ]
    first, second = (np.array(side, dtype=np.float64).reshape(-1, len(STYLE)) for side in sides)
    return np.where(np.isnan(first + second), np.nan, relative_differences(first, second))


def _distinct(rows: Floats, own: Floats, rest: Floats) -> tuple[Floats, Floats] | None:
    """The features in standard deviations, those that the systems and features before them do not make up; None without any."""
    both = np.concatenate([own, rest])
    spread = both.std(axis=0)
    base, kept = rows, []
    for k in range(own.shape[1]):
        if np.isnan(spread[k]) or spread[k] < 1e-9:
            continue
        left = own[:, k] - base @ np.linalg.lstsq(base, own[:, k], rcond=None)[0]
        if left @ left > 1e-3 * (own[:, k] @ own[:, k]):
            kept.append(k)
            base = np.column_stack([base, own[:, k]])
    return (own[:, kept] / spread[kept], rest[:, kept] / spread[kept]) if kept else None


def judged_criteria(data: StudyData, options: Options) -> list[JudgedCriterion]:
    """Every criterion that raters answered and judges can correct."""
    key = ("judged", options)
    if key not in data.shared:
        data.shared[key] = [
            made
            for is_choice, names in ((False, rated_criteria(data.study)), (True, chosen_criteria(data.study)))
            for name in names
            if len((made := _criterion(data, name, options, is_choice=is_choice)).people)
        ]
    known: list[JudgedCriterion] = data.shared[key]
    return known


def _criterion(data: StudyData, name: str, options: Options, *, is_choice: bool) -> JudgedCriterion:
    use = data.study.spec.analysis.judges
    read = _choices if is_choice else _numbers
    people = read(data.study, data.judgments, name)
    by_judge = read(data.study, data.by_models, name)
    own = by_judge.filter(pl.col("rater").is_in(use.use if use else ()))
    own = own.group_by("rater", *THING, maintain_order=True).agg(pl.col("value").mean())
    how, problem = use.combine if use else "mean", ""
    whole = own.group_by(THING).agg(_combined(how, is_choice=is_choice)).sort(THING)
    if how == "dawid_skene" and len(whole):
        try:
            points = (0.0, 0.5, 1.0) if is_choice else _points(data.study, name)
            whole = _weighed(whole, own, people, np.array(points), options.seed)
        except NotEnoughData as error:
            problem = error.message
    is_log = not is_choice and _is_log(data.study, name)
    return JudgedCriterion(data.study, name, is_choice, people, whole, options, is_log, problem)


def _combined(how: str, *, is_choice: bool) -> pl.Expr:
    """Several judges' scores of a thing as one."""
    value = pl.col("value")
    if how == "majority" and is_choice:
        return (((value > 0.5).sum().cast(pl.Float64) - (value < 0.5).sum()).sign() / 2 + 0.5).alias("value")
    return value.median().alias("value") if how == "majority" else value.mean()


def _points(study: Study, criterion: str) -> tuple[float, ...]:
    scale = study.scale_for(study.criteria_by_name[criterion], study.spec.presentation)
    points = sorted(float(value) for value in map(scale.number, scale.categories() or ()) if value is not None)
    if len(points) < 2:
        raise NotEnoughData(
            f"the scale of '{criterion}' has no points that could be labels", remedy="combine by the mean"
        )
    return tuple(points)


def _weighed(whole: pl.DataFrame, own: pl.DataFrame, people: pl.DataFrame, points: Floats, seed: int) -> pl.DataFrame:
    """Every thing with the score expected by Dawid and Skene's model, in which people's answers on other things are known."""
    place = whole.select(*THING, pl.int_range(pl.len()).alias("thing"))

    def labels(frame: pl.DataFrame) -> tuple[Ints, Ints]:
        joined = frame.join(place, on=THING)
        return joined["thing"].to_numpy(), np.abs(joined["value"].to_numpy()[:, None] - points).argmin(axis=1)

    judges = own["rater"].unique().sort().to_list()
    given = np.full((len(whole), len(judges)), np.nan)
    for column, judge in enumerate(judges):
        thing, label = labels(own.filter(pl.col("rater") == judge))
        given[thing, column] = label
    counts = np.zeros((len(whole), len(points)))
    np.add.at(counts, labels(people), 1)
    most = counts.max(axis=1)
    is_clear = (most > 0) & ((counts == most[:, None]).sum(axis=1) == 1)
    anchors = np.where(is_clear, counts.argmax(axis=1), np.nan)
    likely = weighed_labels(given, anchors, len(points), items=whole["item"].to_list(), seed=seed)
    return whole.with_columns(pl.Series("value", likely @ points))


def _is_log(study: Study, criterion: str) -> bool:
    return study.scale_for(study.criteria_by_name[criterion], study.spec.presentation).unit == "log"


def _numbers(study: Study, table: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Ratings of systems; several turns of one thing count as their mean."""
    rows = table.filter((pl.col("criterion") == criterion) & pl.col("value").is_not_null())
    rows = rows.filter(~pl.col("item").is_in(list(gold_items(study))) & (pl.col("system") != ""))
    if _is_log(study, criterion):
        rows = rows.filter(pl.col("value") > 0).with_columns(pl.col("value").log())
    return rows.group_by("rater", "item", pl.col("system").alias("group"), maintain_order=True).agg(
        pl.col("value").mean()
    )


def _choices(study: Study, table: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Choices between two as 1 for the system that comes first in the study file, 0 for the other, 0.5 for a tie."""
    rows = table.filter(
        (pl.col("criterion") == criterion)
        & pl.col("scale").is_in(compared_types(study, "one"))
        & pl.col("choice").is_not_null()
        & (pl.col("choice") != CANNOT_TELL)
        & ~pl.col("item").is_in(list(gold_items(study)))
    )
    place = {system.name: number for number, system in enumerate(study.spec.systems)}
    shown = {item.id: "|".join(item.systems) for item in study.rated_items if len(item.systems) == 2}
    order = rows["order"].fill_null("").to_list()
    pairs = [_ordered(text or shown.get(item, ""), place) for text, item in zip(order, rows["item"], strict=True)]
    sides = pl.DataFrame(pairs, schema={"first": pl.String, "second": pl.String}, orient="row")
    value = pl.when(pl.col("choice") == pl.col("first")).then(1.0).when(pl.col("choice") == pl.col("second")).then(0.0)
    known = rows.with_columns(sides).filter(pl.col("first") != "")
    return known.select(
        "rater", "item", (pl.col("first") + PAIR + pl.col("second")).alias("group"), value.otherwise(0.5).alias("value")
    )


def _ordered(shown: str, place: dict[str, int]) -> tuple[str, str]:
    """The two systems of a choice in file order; empty names where not two were shown."""
    systems = sorted(shown.split("|"), key=lambda name: place.get(name, len(place)))
    return (systems[0], systems[1]) if len(systems) == 2 else ("", "")
