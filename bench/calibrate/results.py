"""What was counted in each cell, in the repository: the page is made from it, on any machine and after a run of a few cells.

The simulated studies themselves stay where they were made. The counts of 2026-11-16 were read from the page of that day, which
gives coverage in tenths of a percent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bench.calibrate.cells import Cell
from bench.calibrate.table import Rate, Summary, judged

FILE = Path(__file__).with_name("results.jsonl")
COUNTS = ("tests", "all_tests", "claims", "coverage", "icc", "promised")


def read(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """The counts of each cell by its name."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {entry["cell"]: entry for entry in map(json.loads, lines)}


def update(made: Iterable[Summary], promised: Mapping[str, Rate], file: Path = FILE) -> None:
    """Takes over cells, unless more of their studies were counted before, and the power promised for cells by name."""
    entries = read(file)
    for rates in made:
        name = rates.cell.name
        if name not in entries or entries[name]["tests"][1] <= rates.tests.n:
            counts = {count: _pair(getattr(rates, count)) for count in COUNTS}
            old = entries.get(name, counts)["promised"]
            entries[name] = {"cell": name, "made": date.today().isoformat(), **counts, "failed": rates.n_failed}
            entries[name]["promised"] = old
    for name, rate in promised.items():
        if name in entries:
            entries[name]["promised"] = _pair(rate)
    lines = [json.dumps(entries[name]) + "\n" for name in sorted(entries)]
    file.write_text("".join(lines), encoding="utf-8")


def summaries(cells: Iterable[Cell], file: Path = FILE) -> list[Summary]:
    """The cells that have counts, with what misses its bound."""
    counted = read(file)
    return [_summary(cell, counted[cell.name]) for cell in cells if cell.name in counted]


def _summary(cell: Cell, entry: dict[str, Any]) -> Summary:
    tests, all_tests, claims, coverage, icc, promised = (Rate(*entry[count]) for count in COUNTS)
    return judged(Summary(cell, tests, all_tests, claims, coverage, icc, promised, entry["failed"]))


def days(file: Path = FILE) -> str:
    """The days on which cells were made, from the first to the last."""
    made = sorted({entry["made"] for entry in read(file).values()})
    return made[0] if len(made) == 1 else f"{made[0]} to {made[-1]}"


def _pair(rate: Rate) -> list[float]:
    return [rate.hits, rate.n]
