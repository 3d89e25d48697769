"""Raters by what they answered to a question: the groups of a declared subgroup analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.wording import question_text
from dialometer.analysis.shared.comparisons import CORRECTIONS
from dialometer.errors import NotEnoughData
from dialometer.model.report import Column
from dialometer.model.scale import Scale
from dialometer.stats.observations import Ints

MOST_LEVELS = 12
NO_GROUP = -1
OTHER = "another answer"


@dataclass(frozen=True, eq=False)
class RaterGroups:
    """Which group each rater belongs to (-1: no answer), in the order of the names that were given."""

    question: str
    text: str
    levels: tuple[str, ...]
    of_rater: Ints
    note: str = ""

    def n_raters(self, level: int) -> int:
        """How many raters are in a group."""
        return int(np.sum(self.of_rater == level))

    def columns(self, correction: str) -> list[Column]:
        """A share for each group, and whether the groups differ, by itself and corrected."""
        shares = [
            Column(f"group-{k}", f"{level} (n = {self.n_raters(k)})", "percent_estimate")
            for k, level in enumerate(self.levels)
        ]
        tests = [Column("p", "p (groups differ)", "p_value")]
        if correction in CORRECTIONS:
            tests.append(Column("p_adjusted", f"p ({CORRECTIONS[correction]})", "p_value"))
        return [*shares, *tests]


def rater_groups(data: StudyData, question: str, raters: Sequence[str] | NDArray[np.str_]) -> RaterGroups:
    """The raters' groups by their answers. Numbers of many values are split at their median; rare free text is pooled."""
    answered = dict(data.answers_to(question).iter_rows())
    given = [answered.get(str(rater)) for rater in raters]
    if not any(answer is not None for answer in given):
        raise NotEnoughData(
            f"no rater has answered '{question}' yet", remedy="the table appears once the questionnaire is answered"
        )
    text = question_text(data.study, question)
    scale = _scale(data, question)
    options = [] if scale is None else [str(option) for option in scale.categories() or getattr(scale, "options", [])]
    if not options:
        numbers = _as_numbers(given)
        if numbers is not None and len(np.unique(numbers[~np.isnan(numbers)])) > MOST_LEVELS:
            return _halves(question, text, numbers)
        options = _by_size(given)
    codes = [NO_GROUP if a is None else options.index(a) if a in options else len(options) for a in given]
    levels = [*options, *([OTHER] if len(options) in codes else [])]
    used = [k for k in range(len(levels)) if k in codes]
    place = {old: new for new, old in enumerate(used)} | {NO_GROUP: NO_GROUP}
    return RaterGroups(
        question, text, tuple(levels[k] for k in used), np.array([place[c] for c in codes], dtype=np.int64)
    )


def _scale(data: StudyData, question: str) -> Scale | None:
    spec = data.study.spec
    for one in (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire):
        if one.name == question:
            return spec.scales[one.scale]
    return None


def _as_numbers(given: Sequence[str | None]) -> NDArray[np.float64] | None:
    try:
        return np.array([np.nan if answer is None else float(answer) for answer in given])
    except ValueError:
        return None


def _halves(question: str, text: str, numbers: NDArray[np.float64]) -> RaterGroups:
    middle = float(np.nanmedian(numbers))
    codes = np.where(np.isnan(numbers), NO_GROUP, (numbers > middle).astype(np.int64)).astype(np.int64)
    note = f"Answers are numbers of many values; raters are split at the median, {middle:g}."
    return RaterGroups(question, text, (f"up to {middle:g}", f"above {middle:g}"), codes, note)


def _by_size(given: Sequence[str | None]) -> list[str]:
    """Free answers as levels, the most frequent first; those beyond the most that a table can hold fall under one name."""
    answers = [answer for answer in given if answer is not None]
    counts = {answer: answers.count(answer) for answer in dict.fromkeys(answers)}
    return sorted(counts, key=lambda answer: (-counts[answer], answer))[:MOST_LEVELS]
