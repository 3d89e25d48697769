"""Who is ahead, and of whom that can be said: the same careful words wherever systems are put in order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from dialometer.analysis.words import listed, p_words
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, ColumnKind
from dialometer.stats.multiplicity import adjust_estimates

CORRECTIONS = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg", "bonferroni": "Bonferroni"}

_NOTHING = 1e-12

Pairs = Mapping[tuple[str, str], Estimate]
"""Differences (first minus second) between systems, with ``p_adjusted`` in their details."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The system with the highest score; those it can be told from after correction, and those it cannot.

    ``shared`` are further systems with the very same score; the first in file order is called the best.
    """

    best: str
    behind: tuple[str, ...]
    level: tuple[str, ...]
    untested: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """All systems with the highest score."""
        return (self.best, *self.shared)

    @property
    def is_clear(self) -> bool:
        """Whether the first is told from every other."""
        return not self.level and not self.untested and bool(self.behind)


def adjusted_pairs(pairs: Pairs, correction: str) -> dict[tuple[str, str], Estimate]:
    """The pairs as one family of tests."""
    found = adjust_estimates([_tidy(one) for one in pairs.values()], correction)  # type: ignore[arg-type]
    return dict(zip(pairs, found, strict=True))


def _tidy(estimate: Estimate) -> Estimate:
    """Ends that are zero but for rounding, which would be written as 4.4e-17."""
    value, low, high = (0.0 if abs(end) < _NOTHING else end for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def p_adjusted(estimate: Estimate) -> float:
    """The corrected p value; nan where there was no test."""
    return float(estimate.details.get("p_adjusted", math.nan))


def difference(pairs: Pairs, first: str, second: str) -> Estimate | None:
    """First minus second, whichever way round the pair was computed."""
    if (first, second) in pairs:
        return pairs[first, second]
    other = pairs.get((second, first))
    if other is None:
        return None
    return replace(
        other,
        value=-other.value,
        low=-other.high,
        high=-other.low,
        statistic=-other.statistic,
        label=f"{first} - {second}",
    )


def lead(scores: Mapping[str, Estimate], pairs: Pairs, *, confidence: float) -> Lead | None:
    """Who leads; None where nobody has a score. Equal scores go to the first in file order and count as level."""
    known = [name for name, score in scores.items() if score.is_known]
    if not known:
        return None
    best = max(known, key=lambda name: scores[name].value)
    behind: list[str] = []
    level: list[str] = []
    untested: list[str] = []
    shared = [name for name in known if name != best and math.isclose(scores[name].value, scores[best].value)]
    for name in known:
        if name == best:
            continue
        found = difference(pairs, best, name)
        p = math.nan if found is None else p_adjusted(found)
        if math.isnan(p):
            (level if name in shared else untested).append(name)
        elif p <= 1 - confidence and found is not None and found.value > 0:
            behind.append(name)
        else:
            level.append(name)
    return Lead(best, tuple(behind), tuple(level), tuple(untested), tuple(shared))


def standing_words(found: Lead, pairs: Pairs, correction: str) -> str:
    """Of whom the first is told apart and of whom not, with the p values that decide it."""

    def told(names: Sequence[str]) -> str:
        items = []
        for name in names:
            gap = difference(pairs, found.best, name)
            p = math.nan if gap is None else p_adjusted(gap)
            items.append(name if math.isnan(p) else f"{name} ({p_words(p)})")
        return listed(items)

    parts = []
    if found.behind:
        parts.append(f"{found.best} is ahead of {told(found.behind)}")
    if found.level:
        verb = "it cannot be told from" if parts else f"{found.best} cannot be told from"
        parts.append(f"{verb} {told(found.level)}")
    if found.untested:
        parts.append(f"there is no test against {listed(found.untested)}")
    text = "; ".join(parts)
    n_tests = len([one for one in pairs.values() if not math.isnan(p_adjusted(one))])
    if n_tests > 1 and correction in CORRECTIONS and (found.behind or found.level):
        text += f". P values are corrected for {n_tests} comparisons ({CORRECTIONS[correction]})"
    return f"{text}." if text else f"{found.best} is the only one with a score."


def pair_columns(correction: str, *, value: str = "Difference", kind: ColumnKind = "estimate") -> tuple[Column, ...]:
    """The columns of a table of differences between systems."""
    columns = [
        Column("first", "System"),
        Column("second", "compared with"),
        Column("difference", value, kind),
        Column("n", "n", "count"),
        Column("p", "p", "p_value"),
    ]
    if correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[correction]})", "p_value"))
    return tuple(columns)


def pair_rows(pairs: Pairs, correction: str) -> tuple[tuple[Cell, ...], ...]:
    """The rows of that table; the system that is ahead stands first in each."""
    rows: list[tuple[Cell, ...]] = []
    for (first, second), found in pairs.items():
        one, two, gap = first, second, found
        if found.is_known and found.value < 0:
            turned = difference(pairs, second, first)
            one, two, gap = second, first, turned or found
        cells: list[Cell] = [one, two, gap, gap.n, None if math.isnan(gap.p_value) else gap.p_value]
        if correction in CORRECTIONS:
            corrected = p_adjusted(gap)
            cells.append(None if math.isnan(corrected) else corrected)
        rows.append(tuple(cells))
    return tuple(rows)


def every_pair(names: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs in file order."""
    return list(combinations(names, 2))
