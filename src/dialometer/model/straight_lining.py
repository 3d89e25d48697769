"""Straight-lining: the same answer again and again, whatever is shown.

The quality rule and the report's table of raters decide for themselves what is too much; both count here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AnswerPattern:
    """A rater's answers on one criterion: how often the commonest was given, and how often one answer in a row."""

    n: int
    commonest: Hashable
    n_same: int
    longest_run: int

    @property
    def share(self) -> float:
        """Share of the commonest answer."""
        return self.n_same / self.n


def answer_pattern(answers: Sequence[Hashable]) -> AnswerPattern:
    """The pattern of at least one answer, in the order they were given; the first of several that are equally common."""
    commonest, n_same = Counter(answers).most_common(1)[0]
    longest = length = 0
    for place, answer in enumerate(answers):
        length = length + 1 if place and answer == answers[place - 1] else 1
        longest = max(longest, length)
    return AnswerPattern(len(answers), commonest, n_same, longest)


def visible_answer(value: Any, side: int | None) -> int | float | str:
    """What careless raters repeat: for a choice between systems the position on the screen, else the answer itself."""
    visible = side if isinstance(value, str) and side else value
    return visible if isinstance(visible, int | float) else json.dumps(visible, sort_keys=True)
