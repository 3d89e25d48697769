"""How well a judge fits people thing by thing, and where: by kind of item, by difficulty, over time, and by its own certainty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.judges.compared import Compared
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.observations import Floats

FEWEST = 5
"""Things of a group that is shown."""
MOST_LEVELS = 12
DIFFICULTY = "difficulty"
BY_RATERS = "groups by difficulty are made from how far raters agree, so that nothing is shown there of one rater"
SHORT_S = 3600
"""A run within so many seconds shows no drift."""


@dataclass(frozen=True)
class GroupFit:
    """One group of things: the judge's fit to people, and a rater's to the others."""

    criterion: str
    judge: str
    by: str
    group: str
    of_judge: Estimate
    of_rater: Estimate
    n: int


def fits(compared: Compared, judge: Floats) -> tuple[Floats, Floats]:
    """For each thing the share of its raters who answer as the judge does, and that of pairs of raters who answer alike.

    For numbers it is the mean distance instead. ``nan`` where there is no judge, no rater, or no second rater.
    """
    people = compared.people
    is_given = ~np.isnan(people)
    n = is_given.sum(axis=1)
    if compared.is_number:
        own = np.where(is_given, np.abs(people - judge[:, None]), 0.0).sum(axis=1)
        # Sorted, the k-th of n answers is larger than k others and smaller than the rest.
        place = np.arange(people.shape[1])
        weight = np.where(place < n[:, None], 2 * place - (n[:, None] - 1), 0)
        among = 2 * (np.nan_to_num(np.sort(people, axis=1)) * weight).sum(axis=1)
    else:
        own = (people == judge[:, None]).sum(axis=1).astype(float)
        counts = compared.counts
        among = (counts * (counts - 1)).sum(axis=1)
    pairs = n * (n - 1)
    of_judge = np.divide(own, n, out=np.full(len(n), np.nan), where=n > 0)
    of_judge = np.where(np.isnan(judge), np.nan, of_judge)
    return of_judge, np.divide(among, pairs, out=np.full(len(n), np.nan), where=pairs > 0)


def group_fits(data: StudyData, compared: Compared, options: Options) -> Iterator[GroupFit]:
    """By what items say of themselves (their metadata and block), by people's disagreement, and by the time of the answer."""
    for name, judge in compared.judges.items():
        of_judge, of_rater = fits(compared, judge)
        groupings = {**_tags(data, compared), **_difficulty(compared, of_rater), **_times(data, compared, name)}
        for by, group in groupings.items():
            for level in dict.fromkeys(sorted(set(group.tolist()) - {""})):
                is_in = (group == level) & ~np.isnan(of_judge)
                if is_in.sum() < FEWEST:
                    continue
                items = compared.things["drawn"].to_numpy()
                alone = unknown("mean over items", BY_RATERS)
                if by != DIFFICULTY:
                    alone = _mean(of_rater, items, is_in, options)
                judged = _mean(of_judge, items, is_in, options)
                yield GroupFit(compared.label, name, by, _shown(level), judged, alone, int(is_in.sum()))


def _shown(level: str) -> str:
    """Without the number that keeps levels in order."""
    return level.partition(" ")[2] if level[:1].isdigit() and level[1:2] == " " else level


def _mean(values: Floats, items: np.ndarray, is_in: np.ndarray, options: Options) -> Estimate:
    is_used = is_in & ~np.isnan(values)
    if not is_used.any():
        return unknown("mean over items", "no thing has two raters")
    return bootstrap_mean(values[is_used], items=items[is_used], **options.resampling)


def _tags(data: StudyData, compared: Compared) -> dict[str, np.ndarray]:
    """Keys of the items' metadata with a few values, and blocks."""
    items = [data.study.items_by_id[item] for item in compared.things["item"].to_list()]
    keys = dict.fromkeys(key for item in items for key in item.metadata if key not in ("gold", "practice"))
    groups = {key: np.array([_tag(item.metadata.get(key)) for item in items]) for key in keys}
    groups["block"] = np.array([item.block or "" for item in items])
    return {key: group for key, group in groups.items() if 2 <= len(set(group.tolist()) - {""}) <= MOST_LEVELS}


def _tag(value: object) -> str:
    return str(value) if isinstance(value, str | int | bool) else ""


def _difficulty(compared: Compared, of_rater: Floats) -> dict[str, np.ndarray]:
    """Things on which people agree, disagree somewhat, and disagree most."""
    known = of_rater[~np.isnan(of_rater)]
    if not len(known):
        return {}
    if compared.is_number:
        low, high = np.quantile(known, [1 / 3, 2 / 3])
        level = np.where(
            of_rater <= low, "1 people close together", np.where(of_rater <= high, "2 between", "3 people far apart")
        )
    else:
        level = np.where(
            of_rater == 1, "1 all raters agree", np.where(of_rater >= 0.5, "2 most agree", "3 raters split")
        )
    return {DIFFICULTY: np.where(np.isnan(of_rater), "", level)}


def _times(data: StudyData, compared: Compared, judge: str) -> dict[str, np.ndarray]:
    """Quarters of the judge's answers in time, where it took longer than an hour."""
    own = data.calls.filter((pl.col("rater") == judge) & (pl.col("criterion") == compared.criterion))
    when = dict(own.group_by("item").agg(pl.col("answered_at").min()).iter_rows())
    times = [when.get(item) for item in compared.things["item"].to_list()]
    known = sorted(time for time in times if time is not None)
    if len(known) < 4 * FEWEST or (known[-1] - known[0]).total_seconds() < SHORT_S:
        return {}
    cuts = [known[len(known) * k // 4] for k in (1, 2, 3)]
    names = ("1 first quarter", "2 second quarter", "3 third quarter", "4 last quarter")
    return {"time": np.array(["" if time is None else names[sum(time >= cut for cut in cuts)] for time in times])}


FEWEST_CALIBRATED = 2
"""Things that a judge gave the same answer to, below which people's mean on them is not shown."""


TOO_FEW = f"fewer than {FEWEST} things: no confidence interval"


@dataclass(frozen=True)
class JudgeCalibration:
    """How far a judge's answer says what people would say."""

    criterion: str
    judge: str
    answer: str
    people: Estimate
    n: int


def calibration(data: StudyData, compared: Compared, options: Options) -> Iterator[JudgeCalibration]:
    """Numbers: people's mean where the judge gave such a number. Choices: how often most raters agree, by the judge's certainty."""
    items = compared.things["drawn"].to_numpy()
    for name, judge in compared.judges.items():
        if compared.is_number:
            mean = compared.people_mean
            known = judge[~np.isnan(judge)]
            edges = np.unique(np.quantile(known, [0, 0.2, 0.4, 0.6, 0.8, 1])) if len(set(known.tolist())) > 7 else None
            groups = _binned(judge, edges)
        else:
            mean = np.where(np.isnan(compared.majority), np.nan, (compared.majority == judge).astype(float))
            groups = _certainty(data, compared, name)
        for group in dict.fromkeys(sorted(set(groups.tolist()) - {""})):
            is_in = (groups == group) & ~np.isnan(mean) & ~np.isnan(judge)
            if is_in.sum() >= FEWEST_CALIBRATED:
                estimate = bootstrap_mean(mean[is_in], items=items[is_in], **options.resampling)
                if is_in.sum() < FEWEST:  # their bootstrap goes from the lowest to the highest of them
                    estimate = replace(estimate, low=math.nan, high=math.nan, interval_method="", notes=(TOO_FEW,))
                yield JudgeCalibration(compared.label, name, _shown(group), estimate, int(is_in.sum()))


def _binned(judge: Floats, edges: Floats | None) -> np.ndarray:
    if edges is None or len(edges) < 3:
        order = sorted({float(value) for value in judge[~np.isnan(judge)]})
        place = {value: f"{i} {value:g}" for i, value in enumerate(order)}
        return np.array([place.get(float(value), "") for value in judge])
    last = len(edges) - 2
    where = np.clip(np.searchsorted(edges, judge, side="right") - 1, 0, last)
    names = [f"{i} {edges[i]:.3g} to {edges[i + 1]:.3g}" for i in range(last + 1)]
    return np.array(["" if np.isnan(value) else names[i] for value, i in zip(judge, where, strict=True)])


def _certainty(data: StudyData, compared: Compared, judge: str) -> np.ndarray:
    """Whether all calls of a judge on a thing gave the same answer."""
    pair = pl.col("order").fill_null("").str.split("|").list.sort().list.join("|").alias("pair")
    calls = data.calls.filter((pl.col("rater") == judge) & (pl.col("criterion") == compared.criterion))
    calls = calls.with_columns(pair if compared.is_choice else pl.lit("").alias("pair"))
    same = calls.group_by("item", "pair").agg((pl.col("choice").n_unique() == 1).alias("same"), pl.len().alias("n"))
    known = {(item, pair): (is_same, n) for item, pair, is_same, n in same.iter_rows()}
    groups = []
    for item, shown in compared.things.select("item", "pair").iter_rows():
        is_same, n = known.get((item, shown), (True, 0))
        groups.append("" if n < 2 else "1 the same answer each time" if is_same else "2 answers that changed")
    return np.array(groups)
