"""What the stored studies say: false claims, coverage and power of every cell, and the page that shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from bench.calibrate.cells import Cell

ALPHA = 0.05
NULLS = (0.0, 0.5, 1.0)
"""Where an estimate lies when nothing differs: a difference, a share, a ratio."""
POWER_WITHIN = 0.03


@dataclass(frozen=True)
class Rate:
    """A share of studies."""

    hits: float
    n: int

    @property
    def share(self) -> float:
        return self.hits / self.n if self.n else math.nan

    def error(self, expected: float) -> float:
        """Standard error at the rate that is asked for."""
        return math.sqrt(expected * (1 - expected) / self.n) if self.n else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval."""
        found = stats.binomtest(round(self.hits), self.n).proportion_ci(method="wilson")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.hits:g}/{self.n})" if self.n else ""


@dataclass(frozen=True)
class Summary:
    """The rates of one cell. ``problems`` names what misses its bound, ``unfinished`` what is not there to be judged."""

    cell: Cell
    tests: Rate
    all_tests: Rate
    claims: Rate
    coverage: Rate
    icc: Rate
    promised: Rate
    n_failed: int
    problems: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


def summarise(
    cell: Cell,
    lines: Sequence[dict[str, Any]],
    *,
    icc_truth: dict[str, float] | None = None,
    promised: Rate | None = None,
) -> Summary:
    """The rates of a cell from its stored studies."""
    made = [line for line in lines if "tests" in line]
    p = [[test["p"] for test in line["tests"].values()] for line in made]
    found = [[value is not None and value <= ALPHA for value in row] for row in p]
    tests = Rate(sum(map(any, found)), len(made))
    all_tests = Rate(sum(bool(row) and all(row) for row in found), len(made))
    whole = [line for line in made if "claims" in line]
    claims = Rate(sum(bool(line["claims"]) for line in whole), len(whole))
    coverage = _coverage([line["tests"] for line in made], is_null=not cell.effect)
    icc = _icc_coverage([line.get("icc", {}) for line in made], icc_truth or {})
    return judged(
        Summary(cell, tests, all_tests, claims, coverage, icc, promised or Rate(0, 0), len(lines) - len(made))
    )


def judged(rates: Summary) -> Summary:
    """The same with what misses its bound and what is not there to be judged."""
    return replace(rates, problems=tuple(_problems(rates)), unfinished=tuple(_unfinished(rates)))


def _coverage(tests: list[dict[str, dict[str, float | None]]], *, is_null: bool) -> Rate:
    """How often the interval of a primary contrast holds the truth; without an effect that is known, else it is the mean
    of the estimates of all studies."""
    hits = n = 0
    labels = dict.fromkeys(label for row in tests for label in row)
    for label in labels:
        rows = [row[label] for row in tests if label in row and row[label]["low"] is not None]
        if not rows:
            continue
        truth = float(np.mean([row["value"] for row in rows]))  # type: ignore[misc]
        if is_null:
            truth = min(NULLS, key=lambda null: abs(null - truth))
        hits += sum(row["low"] <= truth <= row["high"] for row in rows)  # type: ignore[operator]
        n += len(rows)
    return Rate(hits, n)


def _icc_coverage(rows: list[dict[str, dict[str, float | None]]], truth: dict[str, float]) -> Rate:
    inside = [
        icc["low"] <= truth[label] <= icc["high"]  # type: ignore[operator]
        for row in rows
        for label, icc in row.items()
        if label in truth and icc["low"] is not None
    ]
    return Rate(sum(inside), len(inside))


def _problems(rates: Summary) -> list[str]:
    problems = []
    if not rates.cell.effect:
        for name, rate in (("tests", rates.tests), ("claims", rates.claims)):
            if rate.n and rate.share > ALPHA + 2 * rate.error(ALPHA):
                problems.append(f"false {name} {rate}")
    n_studies = rates.tests.n
    for name, rate in (("coverage", rates.coverage), ("ICC coverage", rates.icc)):
        # Intervals of one study go together: they count as one.
        if rate.n and rate.share < 1 - ALPHA - 2 * math.sqrt(ALPHA * (1 - ALPHA) / max(n_studies, 1)):
            problems.append(f"{name} {rate}")
    if rates.cell.effect and rates.promised.n:
        error = math.hypot(rates.promised.error(rates.promised.share), rates.tests.error(rates.tests.share))
        if abs(rates.promised.share - rates.tests.share) > POWER_WITHIN + 2 * error:
            problems.append(f"power {rates.tests} instead of {rates.promised}")
    if rates.n_failed:
        problems.append(f"{rates.n_failed} studies without a test")
    return problems


def _unfinished(rates: Summary) -> list[str]:
    """What a verdict on the cell still lacks: a bound that nobody could check is not one that was kept."""
    missing = []
    n, wanted = rates.tests.n + rates.n_failed, rates.cell.n_studies
    if n < wanted:
        missing.append(f"{n} of {wanted} studies")
    if rates.cell.effect and not rates.promised.n:
        missing.append("no promise of power")
    return missing


HEADER = (
    "design",
    "made",
    "raters",
    "items SD",
    "rater × system SD",
    "careless",
    "any test significant",
    "all significant",
    "answer claims a difference",
    "coverage",
    "ICC coverage",
    "power promised",
    "",
)


def row(rates: Summary) -> tuple[str, ...]:
    """One row of the table."""
    cell, assumed = rates.cell, rates.cell.assumed
    raters = f"{cell.n_raters}" + (f", {cell.n_items} items" if cell.n_items else "")
    return (
        cell.design,
        {"tests": "tests", "report": "report", "walked": "walked"}[cell.kind],
        raters,
        f"{assumed.item_sd:g}",
        f"{assumed.taste_sd:g}",
        f"{assumed.careless:.0%}",
        str(rates.tests),
        str(rates.all_tests) if cell.effect else "",
        str(rates.claims),
        f"{rates.coverage.share:.1%}" if rates.coverage.n else "",
        f"{rates.icc.share:.1%}" if rates.icc.n else "",
        f"{rates.promised.share:.1%}" if rates.promised.n else "",
        "; ".join(
            f"**{word}**: {', '.join(what)}"
            for word, what in (("missed", rates.problems), ("unfinished", rates.unfinished))
            if what
        ),
    )


def markdown(rows: Sequence[tuple[str, ...]]) -> str:
    """A table of Markdown; columns that are empty throughout are left out."""
    used = [i for i in range(len(HEADER)) if any(r[i] for r in rows)]
    lines = ["| " + " | ".join(HEADER[i] for i in used) + " |", "|" + "---|" * len(used)]
    lines += ["| " + " | ".join(r[i] for i in used) + " |" for r in rows]
    return "\n".join(lines)
