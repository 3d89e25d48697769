"""python -m bench.calibrate.every_p: every p-value of whole reports, also exploratory ones, where systems do not differ.

Reports of studies without a difference between systems, without drift, position bias or effects of conditions are gone through table
by table. Counted is how many of a column's p-values are at most 5 %. Some columns test what is really there: that raters agree, that
answers have a shape, or what holds on the pairs that were shown. The table of other choices holds simpler models on purpose.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from bench.calibrate.cells import Cell, all_cells
from bench.calibrate.one import simulated
from bench.calibrate.table import ALPHA, Rate
from dialometer.analysis.base.choose import analyse
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Report, Table

SEED = 20261118
N_RESAMPLES = 200
MOST = 0.09
"""Share of p-values above which a column is shown, unless a few tests made it."""
FEWEST = 4
IS_THERE = (
    "agreement", "consistency", "shape", "sensitivity", "_here", "share", "chi2", "by-strategy", "pairs-differ", "pairs-homogeneity",
    "pairs-preference", "pairs-side",
)  # fmt: skip
"""Parts of the names of tables and columns that test what is there, or are simpler on purpose."""


def p_values(table: Table) -> Iterator[tuple[str, float]]:
    """The p-values of a table, each with its column."""
    for row in table.rows:
        for column, cell in zip(table.columns, row, strict=True):
            is_p = column.name == "p" or column.name.startswith("p_") or column.name.endswith("_p")
            p = cell.p_value if isinstance(cell, Estimate) else cell if is_p and isinstance(cell, float) else math.nan
            if not math.isnan(p):
                yield column.name, p


def counted(reports: Iterator[Report]) -> dict[tuple[str, str], Rate]:
    """How many p-values of each table and column are at most 5 %."""
    small: Counter[tuple[str, str]] = Counter()
    n: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for table in report.tables():
            for column, p in p_values(table):
                n[table.name, column] += 1
                small[table.name, column] += p <= ALPHA
    return {key: Rate(small[key], n[key]) for key in sorted(n)}


def reports(cell: Cell, n_studies: int, seed: int) -> Iterator[Report]:
    """Whole reports of simulated studies."""
    for number in range(n_studies):
        data = simulated(cell, number, seed)
        try:
            yield analyse(data.study, data, n_resamples=N_RESAMPLES)
        except DialometerError:
            continue


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibrate.every_p", description=__doc__)
    parser.add_argument("designs", nargs="*", help="all by default")
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    cells: dict[str, Cell] = defaultdict()
    for cell in all_cells():
        if cell.kind == "report" and not cell.effect and (not given.designs or cell.design in given.designs):
            cells.setdefault(cell.design, cell)
    print("| design | columns with p-values | p-values | at most 5% | columns above |\n|---|---|---|---|---|")
    for design, cell in cells.items():
        rates = counted(reports(cell, given.studies, given.seed))
        own = {key: rate for key, rate in rates.items() if not any(part in " ".join(key) for part in IS_THERE)}
        above = [
            f"{table} {column} {rate}"
            for (table, column), rate in own.items()
            if rate.hits >= max(FEWEST, MOST * rate.n)
        ]
        all_of = Rate(sum(int(rate.hits) for rate in own.values()), sum(rate.n for rate in own.values()))
        print(f"| {design} | {len(own)} | {all_of.n} | {all_of} | {'; '.join(above)} |", flush=True)


if __name__ == "__main__":
    main()
