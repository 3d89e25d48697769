"""Raters split into groups by something known about them: time taken, or the answer to a question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from dialometer.analysis.data import StudyData
from dialometer.analysis.labels import question_text
from dialometer.analysis.rater_rows import RaterRows
from dialometer.analysis.words import n_of
from dialometer.errors import NotEnoughData
from dialometer.model.study import Question, Study
from dialometer.stats.observations import Ints

MOST_GROUPS = 6
"""More different answers than this are not groups; numbers are then cut at their mean, words are refused."""


@dataclass(frozen=True)
class Split:
    """A grouping of raters. ``code`` counts in ``groups``; -1 for raters who belong to none."""

    name: str
    label: str
    question: str
    groups: tuple[str, ...]
    code: Ints
    notes: tuple[str, ...] = ()

    def inside(self, group: int) -> np.ndarray:
        """Which raters are in a group."""
        return np.asarray(self.code == group)


def time_split(rows: RaterRows) -> Split:
    """Raters below and above the mean time of all who finished."""
    known = ~np.isnan(rows.minutes)
    if known.sum() < 2:
        raise NotEnoughData(
            f"session times of {n_of(int(known.sum()), 'rater')}",
            remedy="groups by time need at least two raters who finished; imported judgments may have no times",
        )
    mean = float(rows.minutes[known].mean())
    code = np.where(known, (rows.minutes > mean).astype(np.int64), -1)
    n_unknown = int((~known).sum())
    notes = (f"{n_of(n_unknown, 'rater')} without a finished session are in neither group.",) if n_unknown else ()
    groups = ("below average", "above average")
    return Split("time", "Time taken", f"time taken (mean {mean:.1f} minutes)", groups, code, notes)


def question_split(data: StudyData, rows: RaterRows, name: str) -> Split:
    """Raters by their answer to a question of the questionnaires."""
    study = data.study
    text = question_text(study, name)
    answers = data.answers_to(name)
    given = dict(zip(answers["rater"].to_list(), answers["text"].to_list(), strict=True))
    mine = [given.get(rater) for rater in rows.names]
    n_without = sum(answer is None for answer in mine)
    if n_without == len(mine):
        raise NotEnoughData(
            f"nobody whose judgments count has answered '{name}'",
            remedy="check that the question is in the questionnaire and that its answers were imported",
        )
    notes = (f"{n_of(n_without, 'rater')} without an answer are in no group.",) if n_without else ()
    options = _options(study, name)
    found = list(dict.fromkeys(answer for answer in mine if answer is not None))
    groups = [option for option in options if option in found] + [x for x in sorted(found) if x not in options]
    if len(groups) > MOST_GROUPS:
        return _cut(name, text, data, rows, notes)
    if len(groups) < 2:
        raise NotEnoughData(f"all raters answered '{name}' with “{groups[0]}”", remedy="there are no groups to compare")
    place = {group: index for index, group in enumerate(groups)}
    code = np.array([-1 if answer is None else place[answer] for answer in mine], dtype=np.int64)
    return Split(name, name.replace("_", " ").capitalize(), text, tuple(groups), code, notes)


def _options(study: Study, name: str) -> list[str]:
    """Possible answers in the order of the scale, as far as it lists them."""
    question = _question(study, name)
    scale = study.spec.scales.get(question.scale) if question else None
    return [str(option) for option in (scale.categories() or getattr(scale, "options", None) or [])] if scale else []


def _question(study: Study, name: str) -> Question | None:
    spec = study.spec
    asked = (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire)
    return next((question for question in asked if question.name == name), None)


def _cut(name: str, text: str, data: StudyData, rows: RaterRows, notes: tuple[str, ...]) -> Split:
    """Numbers with many values, such as an age, cut at their mean."""
    numbers = data.answers.filter((pl.col("question") == name) & pl.col("value").is_not_null())
    by_rater = dict(zip(numbers["rater"].to_list(), numbers["value"].to_list(), strict=True))
    values = np.array([by_rater.get(rater, np.nan) for rater in rows.names], dtype=np.float64)
    if np.isnan(values).all():
        raise NotEnoughData(
            f"'{name}' has more than {MOST_GROUPS} different answers in words",
            remedy="use a question with fewer options as a subgroup",
        )
    mean = float(np.nanmean(values))
    code = np.where(np.isnan(values), -1, (values > mean).astype(np.int64))
    groups = (f"up to {mean:.1f}", f"above {mean:.1f}")
    said = (*notes, f"Many different numbers: cut at their mean, {mean:.1f}.")
    return Split(name, name.replace("_", " ").capitalize(), text, groups, code, said)
