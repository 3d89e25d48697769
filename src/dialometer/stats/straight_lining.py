"""Raters who give the same answer again and again, whatever they are shown."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.stats.proportion import proportion


@dataclass(frozen=True, slots=True)
class StraightLining:
    """One rater's answers in the order they were given: the longest run of one answer and the share of the commonest."""

    rater: str
    n: int
    longest_run: int
    run_value: Hashable
    mode: Hashable
    share_at_mode: Estimate
    n_distinct: int


def longest_run(values: Sequence[Hashable]) -> tuple[int, Hashable]:
    """Length and answer of the longest stretch of equal answers; the first of several as long."""
    best, answer, length = 0, None, 0
    for k, value in enumerate(values):
        length = length + 1 if k and value == values[k - 1] else 1
        if length > best:
            best, answer = length, value
    return best, answer


def straight_lining(
    rater: Sequence[str],
    value: Sequence[Hashable],
    *,
    order: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> dict[str, StraightLining]:
    """For every rater; ``order`` (a time or position) sorts the answers, which otherwise count as given in sequence."""
    if len(rater) != len(value) or (order is not None and len(order) != len(value)):
        raise DialometerError(
            "columns of different length", where="straight-lining", remedy="give one entry for each answer"
        )
    sequence = np.arange(len(value)) if order is None else np.argsort(np.asarray(order), kind="stable")
    answers: dict[str, list[Hashable]] = {}
    for k in sequence.tolist():
        answers.setdefault(rater[k], []).append(value[k])
    found = {}
    for name in sorted(answers):
        own = answers[name]
        run, run_value = longest_run(own)
        counts: dict[Hashable, int] = {}
        for answer in own:
            counts[answer] = counts.get(answer, 0) + 1
        mode = max(counts, key=lambda answer: counts[answer])
        found[name] = StraightLining(
            rater=name,
            n=len(own),
            longest_run=run,
            run_value=run_value,
            mode=mode,
            share_at_mode=proportion(counts[mode], len(own), confidence=confidence, label=name),
            n_distinct=len(counts),
        )
    return found
