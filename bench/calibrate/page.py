"""The page docs/benchmarks/calibration.md, made from the stored studies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from bench.calibrate.before import before_and_now
from bench.calibrate.table import Summary, markdown, row

PAGE = Path("docs/benchmarks/calibration.md")
MARKS = ("<!-- begin: made by python -m bench.calibrate --write -->", "<!-- end -->")


BEFORE = (
    "Whole reports of earlier versions, which took the items of choice designs as fixed and had no rater × system terms where "
    "ratings are not paired, and those of this version (95% confidence intervals in brackets). The power of acute and "
    "best-worst was that of larger effects then; what counts is promised beside found."
)


def write_page(made: Sequence[Summary], *, seed: int, n_cells: int) -> None:
    """Puts the tables between the marks of the page. ``n_cells``: how many there are to be made in all."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{_tables(made, seed, n_cells)}\n\n{MARKS[1]}{after}", encoding="utf-8")


def _tables(made: Sequence[Summary], seed: int, n_cells: int) -> str:
    n = sum(rates.tests.n + rates.n_failed for rates in made)
    missed = sum(bool(rates.problems) for rates in made)
    begun = sum(bool(rates.unfinished) for rates in made)
    parts = [
        f"Made on {date.today().isoformat()} with seed {seed}: {n:,} simulated studies in {len(made)} of {n_cells} cells, "
        f"{missed or 'none'} of which {'misses' if missed == 1 else 'miss'} a bound"
        + (f", and {begun} of which {'is' if begun == 1 else 'are'} unfinished." if begun else ".")
    ]
    parts.append(f"### Before and now\n\n{BEFORE}\n\n{before_and_now(made)}")
    null = [rates for rates in made if not rates.cell.effect]
    planted = [rates for rates in made if rates.cell.effect]
    for title, chosen in (("Without any difference", null), ("With a difference", planted)):
        if chosen:
            ordered = sorted(chosen, key=lambda rates: (rates.cell.design, rates.cell.kind, rates.cell.name))
            parts.append(f"### {title}\n\n{markdown([row(rates) for rates in ordered])}")
    return "\n\n".join(parts)
