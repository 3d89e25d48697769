"""Whose labels count: the maker's, the crowd's, or both together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.retrieval.crowd_ratings import CrowdRatings
from dialometer.retrieval.queries import Asked

Marks = NDArray[np.bool_]
JudgeName = Literal["maker", "crowd", "both"]
GOOD_FROM = 3.5
"""Mean rating (of 1 to 5) from which the crowd calls an answer right (Chierici and Habash 2021, section 6.5)."""


@dataclass(frozen=True)
class Judge:
    """Right answers by one judge, questions by answers, and the questions on which the judge said anything."""

    name: JudgeName
    label: str
    explained: str
    marks: Marks
    has_judged: Marks

    @property
    def n_answerable(self) -> int:
        """Judged questions with at least one right answer."""
        return int((self.marks.any(axis=1) & self.has_judged).sum())


def judges_of(
    asked: Asked, n_answers: int, crowd: CrowdRatings | None = None, good_from: float | None = None
) -> list[Judge]:
    """The maker where there are labels; with ratings also the crowd and both."""
    least = GOOD_FROM if good_from is None else good_from
    marks = asked.marks(n_answers)
    everything = np.ones(len(asked), dtype=bool)
    found: list[Judge] = []
    if marks.any():
        found.append(Judge("maker", "Maker", "right is what the maker of the avatar marked", marks, everything))
    if crowd is not None:
        means = crowd.matrix(asked.queries, n_answers)
        if np.isnan(means).all():
            remedy = f"ratings name questions by id, such as '{asked.queries[0].id}'"
            raise DialometerError("no rating belongs to a question of these dialogues", remedy=remedy)
        is_rated: Marks = np.asarray((~np.isnan(means)).any(axis=1))
        good = np.nan_to_num(means, nan=-np.inf) >= least
        told = f"right is an answer with a mean rating of {least:g} or more"
        found.append(Judge("crowd", "Crowd", told, good, is_rated))
        if marks.any():
            either = "right is what the maker marked or the crowd rated well; questions the crowd judged"
            found.append(Judge("both", "Both", either, marks | good, is_rated))
    if not found:
        remedy = "mark right answers in the dialogues, or give ratings with --crowd"
        raise DialometerError("nobody has said which answers are right", remedy=remedy)
    return found
