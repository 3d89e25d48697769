"""The page docs/benchmarks/calibration.md, made from the stored studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.calibrate.before import before_and_now
from bench.calibrate.table import ALPHA, Rate, Summary, markdown, row

PAGE = Path(__file__).parents[2] / "docs/benchmarks/calibration.md"
MARKS = ("<!-- begin: made by python -m bench.calibrate --write -->", "<!-- end -->")


BEFORE = (
    "Whole reports of earlier versions, which took the items of choice designs as fixed and had no rater × system terms where "
    "ratings are not paired, and those of this version (95% confidence intervals in brackets). The power of acute and "
    "best-worst was that of larger effects then; what counts is promised beside found."
)


TOGETHER = (
    "One cell of 400 studies passes with up to 7.1%; all cells of a design show smaller excesses. Cells with the same number of "
    "raters use the same random numbers, so their results go together and these confidence intervals are too narrow: an interval "
    "above 5% is a reason to look again with another seed, not a proof."
)


def write_page(made: Sequence[Summary], *, seed: int, n_cells: int, days: str) -> None:
    """Puts the tables between the marks of the page. ``n_cells``: how many there are to be made in all."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{tables(made, seed, n_cells, days)}\n\n{MARKS[1]}{after}", encoding="utf-8")


def tables(made: Sequence[Summary], seed: int, n_cells: int, days: str) -> str:
    """All tables of the page, beside what was made."""
    n = sum(rates.tests.n + rates.n_failed for rates in made)
    missed = sum(bool(rates.problems) for rates in made)
    begun = sum(bool(rates.unfinished) for rates in made)
    parts = [
        f"Made on {days} with seed {seed}: {n:,} simulated studies in {len(made)} of {n_cells} cells, "
        f"{missed or 'none'} of which {'misses' if missed == 1 else 'miss'} a bound"
        + (f", and {begun} of which {'is' if begun == 1 else 'are'} unfinished." if begun else ".")
    ]
    parts.append(f"### Before and now\n\n{BEFORE}\n\n{before_and_now(made)}")
    null = [rates for rates in made if not rates.cell.effect]
    planted = [rates for rates in made if rates.cell.effect]
    if null:
        parts.append(f"### All cells of a design together, without any difference\n\n{TOGETHER}\n\n{_together(null)}")
    for title, chosen in (("Without any difference", null), ("With a difference", planted)):
        if chosen:
            ordered = sorted(chosen, key=lambda rates: (rates.cell.design, rates.cell.kind, rates.cell.name))
            parts.append(f"### {title}\n\n{markdown([row(rates) for rates in ordered])}")
    return "\n\n".join(parts)


def _together(null: Sequence[Summary]) -> str:
    """False claims of each design over all its cells, beside the 5 % that are asked for."""
    lines = ["| design | cells | any test significant | 95% confidence interval | |", "|---|---|---|---|---|"]
    for design in sorted({rates.cell.design for rates in null}):
        own = [rates.tests for rates in null if rates.cell.design == design]
        rate = Rate(sum(one.hits for one in own), sum(one.n for one in own))
        low, high = rate.interval
        excess = "**above 5%**" if low > ALPHA else ""
        lines.append(f"| {design} | {len(own)} | {rate} | {low:.1%} to {high:.1%} | {excess} |")
    return "\n".join(lines)
