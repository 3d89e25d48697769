"""Pooled candidates as arrays: which question each belongs to, who retrieved it where, and what raters gave it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.wording import system_label
from dialometer.errors import NotEnoughData
from dialometer.model.item import CandidateItem
from dialometer.model.scale import Scale
from dialometer.stats.observations import Floats, Ints

Marks = NDArray[np.bool_]

MOST_COLUMNS = 3
"""Ratings of one candidate that agreement looks at, unless the study asks for more of each."""
GOOD_SHARE = 0.625
"""How far up the scale a mean rating must lie to count as right: 3.5 on 1 to 5 (Chierici and Habash 2021)."""


@dataclass(frozen=True)
class Pool:
    """Every candidate of a study in file order, and the ratings on one criterion in the order they were given."""

    criterion: str
    scale: Scale
    systems: tuple[str, ...]
    """Names of the systems that rank candidates, in file order."""
    labels: tuple[str, ...]
    """Their names for readers."""
    items: tuple[str, ...]
    questions: tuple[str, ...]
    question_texts: tuple[str, ...]
    question: Ints
    """For each candidate the number of its question."""
    coreference: tuple[bool | None, ...]
    """For each question whether it needs the turns before it; None where the items do not say."""
    answers: tuple[str, ...]
    answer: Ints
    candidate_texts: tuple[str, ...]
    """For each candidate what it says."""
    is_gold: Marks
    rank: Floats
    """Candidates by systems; nan where the system's list, as far as it is known, does not hold the candidate."""
    value: Floats
    rater: Ints
    rater_names: NDArray[Any]
    candidate: Ints
    """For each rating: the number, the rater and the candidate."""

    @property
    def n_ratings(self) -> Ints:
        """Ratings of each candidate."""
        return np.bincount(self.candidate, minlength=len(self.items)).astype(np.int64)

    @property
    def mean(self) -> Floats:
        """Mean rating of each candidate; nan where nobody rated it."""
        sums = np.bincount(self.candidate, weights=self.value, minlength=len(self.items))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / self.n_ratings)

    @property
    def is_judged(self) -> Marks:
        """Candidates with at least one rating."""
        return self.n_ratings > 0

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest point of the scale; what was given where the scale has no ends."""
        low, high = self.scale.bounds()
        return (low, high) if math.isfinite(high - low) else (float(self.value.min()), float(self.value.max()))

    @property
    def good_from(self) -> float:
        """The mean rating from which the crowd's verdict counts as "right"."""
        low, high = self.ends
        return low + GOOD_SHARE * (high - low)

    def first_answers(self, system: int) -> Marks:
        """The system's first answer to each question, where the pool holds it."""
        return np.asarray(self.rank[:, system] == 1)

    def per_question(self, chosen: Marks) -> Floats:
        """Mean rating of the chosen candidates of each question, every candidate alike; nan where none was rated."""
        used = chosen & self.is_judged
        n_questions = len(self.questions)
        sums = np.bincount(self.question[used], weights=self.mean[used], minlength=n_questions)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / np.bincount(self.question[used], minlength=n_questions))

    def ratings_of(self, chosen: Marks) -> Marks:
        """Which ratings concern the chosen candidates."""
        return np.asarray(chosen[self.candidate])


def pool_of(data: StudyData, criterion: str, scale: Scale, *, judgments: pl.DataFrame | None = None) -> Pool:
    """The pool with the ratings on one criterion; ``judgments`` replaces those that count, to see what exclusion changed."""
    study = data.study
    items = [item for item in study.rated_items if isinstance(item, CandidateItem)]
    number = {item.id: k for k, item in enumerate(items)}
    table = (data.judgments if judgments is None else judgments).filter(
        (pl.col("criterion") == criterion) & pl.col("value").is_not_null() & pl.col("item").is_in(list(number))
    )
    if not len(table):
        raise NotEnoughData(
            f"no candidate has a rating on '{criterion}' yet", where="candidates", remedy="collect ratings"
        )
    table = table.sort("answered_at", nulls_last=True, maintain_order=True)
    rater_names, rater = np.unique(table["rater"].to_numpy(), return_inverse=True)
    systems = tuple(s.name for s in study.spec.systems if any(s.name in item.ranks for item in items))
    rank = np.array([[item.ranks.get(name, np.nan) for name in systems] for item in items], dtype=np.float64)
    questions, question = _coded([item.question for item in items])
    answers, answer = _coded([item.answer for item in items])
    texts = dict(zip(question.tolist(), [item.context[-1].text if item.context else "" for item in items], strict=True))
    return Pool(
        criterion=criterion,
        scale=scale,
        systems=systems,
        labels=tuple(system_label(study, name) for name in systems),
        items=tuple(item.id for item in items),
        questions=questions,
        question_texts=tuple(texts[k] for k in range(len(questions))),
        question=question,
        coreference=_marks(items, question, len(questions)),
        answers=answers,
        answer=answer,
        candidate_texts=tuple(item.candidate.text for item in items),
        is_gold=np.array([item.is_gold for item in items], dtype=bool),
        rank=rank.reshape(len(items), len(systems)),
        value=table["value"].to_numpy().astype(np.float64),
        rater=rater.astype(np.int64),
        rater_names=rater_names,
        candidate=np.array([number[item] for item in table["item"].to_list()], dtype=np.int64),
    )


def _marks(items: list[CandidateItem], question: Ints, n_questions: int) -> tuple[bool | None, ...]:
    """Whether questions need the turns before them, as their items say under ``coreference``."""
    marks: list[bool | None] = [None] * n_questions
    for item, number in zip(items, question.tolist(), strict=True):
        mark = item.metadata.get("coreference")
        if isinstance(mark, bool):
            marks[number] = mark
    return tuple(marks)


def _coded(names: list[str]) -> tuple[tuple[str, ...], Ints]:
    """Distinct names in order of appearance, and the number of each."""
    place = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return tuple(place), np.array([place[name] for name in names], dtype=np.int64)
