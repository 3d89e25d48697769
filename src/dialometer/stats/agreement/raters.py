"""How often raters answer items of known answer right.

Raters who give the same answer again and again, whatever they are shown.

Raters who answer far faster or slower than the others.

Times are skewed, so raters are compared by the median of their logarithms; the distance from the other raters is a robust z
(median absolute deviation; Iglewicz and Hoaglin 1993), which the outliers themselves cannot stretch.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.proportion import proportion


def gold_accuracy(
    rater: Sequence[str],
    is_right: Sequence[bool],
    *,
    raters: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """Share of right answers with Wilson's interval, by rater; ``raters`` may name those who saw no gold item too."""
    if len(rater) != len(is_right):
        raise DialometerError(
            f"{len(rater)} raters for {len(is_right)} answers", where="gold items", remedy="give one of each"
        )
    names = list(raters) if raters is not None else sorted(set(rater))
    given, right = np.asarray(rater, dtype=np.str_), np.asarray(is_right, dtype=bool)
    accuracy = {}
    for name in names:
        own = right[given == name]
        estimate = proportion(int(own.sum()), len(own), interval="wilson", confidence=confidence, label=name)
        accuracy[name] = estimate if estimate.is_known else estimate.with_note(f"'{name}' saw no gold item")
    return accuracy


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


_TO_SIGMA = 0.6744897501960817  # the MAD of a normal distribution with standard deviation 1


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """One rater's pace. ``robust_z`` is negative for the fast; it is unknown where the others give no measure of spread."""

    rater: str
    n: int
    median_s: float
    robust_z: Estimate
    is_fast: bool
    is_slow: bool
    n_dropped: int
    """Times that were missing, zero or negative, and left out."""


def answer_times(
    rater: Sequence[str], duration_s: Sequence[float], *, threshold: float = 3.5
) -> dict[str, AnswerTimes]:
    """For every rater; beyond the threshold (3.5 is the customary one) a rater is marked fast or slow."""
    if len(rater) != len(duration_s):
        raise DialometerError(
            f"{len(rater)} raters for {len(duration_s)} times", where="answer times", remedy="give one of each"
        )
    names, times = np.asarray(rater, dtype=np.str_), np.asarray(duration_s, dtype=np.float64)
    usable = np.isfinite(times) & (times > 0)
    raters = sorted(set(names.tolist()))
    pace = {
        name: float(np.median(np.log(times[usable & (names == name)])))
        for name in raters
        if (usable & (names == name)).any()
    }
    centre = float(np.median(list(pace.values()))) if pace else math.nan
    spread = float(np.median(np.abs(np.array(list(pace.values())) - centre))) if pace else math.nan
    found = {}
    for name in raters:
        n = int((usable & (names == name)).sum())
        z = _robust_z(name, pace, centre, spread, n)
        found[name] = AnswerTimes(
            rater=name,
            n=n,
            median_s=math.exp(pace[name]) if name in pace else math.nan,
            robust_z=z,
            is_fast=z.is_known and z.value < -threshold,
            is_slow=z.is_known and z.value > threshold,
            n_dropped=int((~usable & (names == name)).sum()),
        )
    return found


def _robust_z(name: str, pace: dict[str, float], centre: float, spread: float, n: int) -> Estimate:
    method = "robust z of log answer times"
    if name not in pace:
        return unknown(method, "no usable answer time", label=name)
    if len(pace) < 3:
        return unknown(method, f"{len(pace)} raters; at least 3 are needed", n=n, label=name)
    if spread <= 0:
        return unknown(method, "more than half of the raters have the same pace: no measure of spread", n=n, label=name)
    return Estimate(_TO_SIGMA * (pace[name] - centre) / spread, n, method, label=name)
