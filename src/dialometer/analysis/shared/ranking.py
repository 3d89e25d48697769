"""Which system is ahead of which: the same tests and words wherever systems are ranked."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from dialometer.analysis.base.wording import listed, p_words
from dialometer.analysis.shared.comparisons import CORRECTIONS, is_significant, p_adjusted
from dialometer.model.estimate import Estimate
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Claim, Column, ColumnKind
from dialometer.stats.effects.multiplicity import Correction, adjust_estimates
from dialometer.stats.observations import from_the_highest

_NOTHING = 1e-12

Pairs = Mapping[tuple[str, str], Estimate]
"""Differences (first minus second) between systems, with ``p_adjusted`` in their details."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The system with the highest score; those that are significantly behind it after correction, and those that are not.

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
        """Whether every other system is significantly behind the first."""
        return not self.level and not self.untested and bool(self.behind)


def adjusted_pairs(pairs: Pairs, correction: Correction) -> dict[tuple[str, str], Estimate]:
    """The pairs as one family of tests."""
    adjusted = adjust_estimates([_tidy(gap) for gap in pairs.values()], correction)
    return dict(zip(pairs, adjusted, strict=True))


def _tidy(estimate: Estimate) -> Estimate:
    """Ends that are zero but for rounding, which would be written as 4.4e-17."""
    value, low, high = (0.0 if abs(end) < _NOTHING else end for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


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


def by_rank(pairs: Pairs, ranked: Sequence[str]) -> dict[tuple[str, str], Estimate]:
    """The pairs in the order of the leaderboard: those of the first system first, against the next best before the others."""
    place = {name: k for k, name in enumerate(ranked)}

    def key(pair: tuple[str, str]) -> list[int]:
        return sorted(place.get(name, len(place)) for name in pair)

    return {pair: pairs[pair] for pair in sorted(pairs, key=key)}


def by_differences(pairs: Pairs) -> dict[tuple[str, str], Estimate]:
    """The same where there is no leaderboard of these systems: who is ahead by most comes first."""
    ahead: dict[str, float] = {}
    for (first, second), gap in pairs.items():
        for name, points in ((first, gap.value), (second, -gap.value)):
            ahead[name] = ahead.get(name, 0.0) + (points if gap.is_known else 0.0)
    return by_rank(pairs, from_the_highest(ahead))


def lead(scores: Mapping[str, Estimate], pairs: Pairs, *, confidence: float) -> Lead | None:
    """Who leads; None where nobody has a score. Equal scores go to the first in file order and count as level."""
    known = [name for name, score in scores.items() if score.is_known]
    if not known:
        return None
    best = from_the_highest({name: scores[name].value for name in known})[0]
    behind: list[str] = []
    level: list[str] = []
    untested: list[str] = []
    shared = [
        name for name in known if name != best and math.isclose(scores[name].value, scores[best].value, abs_tol=1e-9)
    ]
    for name in known:
        if name == best:
            continue
        gap = difference(pairs, best, name)
        p = math.nan if gap is None else p_adjusted(gap)
        if math.isnan(p):
            (level if name in shared else untested).append(name)
        elif p <= 1 - confidence and gap is not None and gap.value > 0:
            behind.append(name)
        else:
            level.append(name)
    return Lead(best, tuple(behind), tuple(level), tuple(untested), tuple(shared))


def possible_ranks(ranked: Sequence[str], pairs: Pairs, name: str) -> tuple[int, int]:
    """The ranks that the tests leave open: behind every system that is significantly ahead, before those behind."""
    gaps = [gap for other in ranked if (gap := difference(pairs, name, other)) is not None]
    clear = [gap.value for gap in gaps if is_significant(gap)]
    return 1 + sum(value < 0 for value in clear), len(ranked) - sum(value > 0 for value in clear)


def rank_range(ranks: tuple[int, int] | None) -> str:
    """Those ranks, such as "2–4"; empty where there are no tests."""
    if ranks is None:
        return ""
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}"


def lead_words(leader: Lead, pairs: Pairs, correction: str) -> str:
    """From whom the first differs significantly and from whom not, with the p-values that decide it."""

    def told(names: Sequence[str], conjunction: str) -> str:
        items = []
        for name in names:
            gap = difference(pairs, leader.best, name)
            p = math.nan if gap is None else p_adjusted(gap)
            items.append(name if math.isnan(p) else f"{name} ({p_words(p)})")
        return listed(items, conjunction=conjunction)

    parts = []
    if leader.behind:
        parts.append(f"{leader.best} is ahead of {told(leader.behind, 'and')}")
    if leader.level:
        verb = f"{'it' if parts else leader.best} does not differ significantly from"
        parts.append(f"{verb} {told(leader.level, 'or')}")
    if leader.untested:
        parts.append(f"there is no test against {listed(leader.untested, conjunction='or')}")
    text = "; ".join(parts)
    n_tests = len([gap for gap in pairs.values() if not math.isnan(p_adjusted(gap))])
    if n_tests > 1 and correction in CORRECTIONS and (leader.behind or leader.level):
        text += f". p-values are corrected for {n_tests} comparisons ({CORRECTIONS[correction]})"
    return f"{text}." if text else f"{leader.best} is the only one with a score."


def not_clear_words(leader: Lead, preposition: str) -> str:
    """Than which systems' the ratings of the first are significantly higher and than which not; ``preposition``: of, with."""
    parts = []
    if leader.behind:
        parts.append(f"significantly higher than those {preposition} {listed(leader.behind)}")
    if leader.level:
        names = listed(leader.level, conjunction="or")
        parts.append(f"{'but ' if parts else ''}not significantly higher than those {preposition} {names}")
    if leader.untested:
        parts.append(
            f"{'and' if leader.level else 'but'} there is no test against {listed(leader.untested, conjunction='or')}"
        )
    return ", ".join(parts)


def pair_columns(correction: str, *, value: str = "Difference", kind: ColumnKind = "estimate") -> tuple[Column, ...]:
    """The columns of a table of differences between systems."""
    columns = [
        Column("first", "System"),
        Column("second", "Compared with"),
        Column("difference", value, kind, unit=PERCENTAGE_POINTS if kind == "percent_estimate" else ""),
        Column("n", "n", "count"),
        Column("p", "p", "p_value"),
    ]
    if correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[correction]})", "p_value"))
    return tuple(columns)


def pair_rows(pairs: Pairs, correction: str) -> tuple[tuple[Cell, ...], ...]:
    """The rows of that table; the system that is ahead comes first in each."""
    rows: list[tuple[Cell, ...]] = []
    for (first, second), gap in pairs.items():
        names, shown = (first, second), gap
        if gap.is_known and gap.value < 0:
            names, shown = (second, first), difference(pairs, second, first) or gap
        cells: list[Cell] = [*names, shown, gap.n, None if math.isnan(gap.p_value) else gap.p_value]
        if correction in CORRECTIONS:
            corrected = p_adjusted(gap)
            cells.append(None if math.isnan(corrected) else corrected)
        rows.append(tuple(cells))
    return tuple(rows)


def every_pair(names: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs in file order."""
    return list(combinations(names, 2))


def lead_claims(ranked: Sequence[str], rivals: Collection[str], *, is_primary: bool = True) -> tuple[Claim, ...]:
    """What an answer claims that names the first of these and those that may be as good: the others are behind it."""
    behind = [name for name in ranked[1:] if name not in rivals]
    return tuple(Claim(f"{ranked[0]} is ahead of {name}", is_primary=is_primary) for name in behind)
