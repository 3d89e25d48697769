"""One row per rater: condition, mean ratings, minutes, group. Between-rater questions are answered on these alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.measures import Measure, Measures
from dialometer.analysis.base.wording import n_of, question_text
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.study import Factor, Question, Study
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.observations import Floats, Ints

FEW_RATERS = 10
"""Below this, a bootstrap interval of a mean is known to be too narrow, and the report says so."""


@dataclass(frozen=True)
class RaterRows:
    """Raters in the order of ``Book.raters``; ``nan`` where a rater has nothing of that kind."""

    study: Study
    names: tuple[str, ...]
    cell: Ints
    minutes: Floats
    raw: dict[str, Floats]
    """Mean of what raters gave, by measure."""
    y: dict[str, Floats]
    """Mean on the analysed footing, each judgment relative to its target's mean: raters with easier items gain nothing."""

    @property
    def n(self) -> int:
        """How many raters."""
        return len(self.names)

    def level(self, factor: Factor) -> Ints:
        """The number of each rater's level of a factor."""
        order = [level.name for level in factor.levels]
        of_cell = np.array([order.index(cell[factor.name]) for cell in self.study.cells])
        return np.asarray(of_cell[self.cell])


def rater_rows(data: StudyData, measures: Measures) -> RaterRows:
    """The rows of all raters whose numeric judgments count."""
    book = measures.book
    done = data.completed_sessions().filter(pl.col("duration_s") > 0)
    minutes_by_name = dict(zip(done["rater"].to_list(), (done["duration_s"] / 60).to_list(), strict=True))
    minutes = np.array([minutes_by_name.get(name, np.nan) for name in book.raters], dtype=np.float64)
    raw, y = {}, {}
    for measure in measures.all:
        raw[measure.name] = _means(measure.raw, measure.rater, len(book.raters))
        y[measure.name] = adjusted_means(measure, len(book.raters))
    return RaterRows(data.study, book.raters, book.cell_of_rater, minutes, raw, y)


def _means(values: Floats, rater: Ints, n: int) -> Floats:
    count = np.bincount(rater, minlength=n)
    sums = np.bincount(rater, weights=values, minlength=n)
    return np.asarray(np.divide(sums, count, out=np.full(n, np.nan), where=count > 0))


def adjusted_means(measure: Measure, n: int) -> Floats:
    """As ``stats.permutation.rater_means`` with items, but with a place for every rater of the study."""
    of_target = _means(measure.y, measure.target, measure.n_targets)
    return _means(measure.y - of_target[measure.target] + measure.y.mean(), measure.rater, n)


def mean_over_raters(values: Floats, *, confidence: float, n_resamples: int, seed: int, label: str = "") -> Estimate:
    """The mean of raters' means with a bootstrap interval over raters; few raters come with a warning."""
    found = bootstrap_mean(values, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)
    found = replace(
        found, method="mean over raters", interval_method=found.interval_method.replace("over values", "over raters")
    )
    if found.has_interval and int(np.sum(~np.isnan(values))) < FEW_RATERS:
        found = found.with_note(f"fewer than {FEW_RATERS} raters: bootstrap intervals of so few are too narrow")
    return found


# Raters split into groups by something known about them: time taken, or the answer to a question.


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
