"""python -m bench.calibrate.pool: false claims of one design over all its cells, every cell with random numbers of its own.

The cells of the table with the same number of raters share their random numbers, so that they can be compared with each other;
an excess in one of them then shows in all. Here cells are independent, so that their sum has the confidence interval it says.

In the chat design nothing but raters is a sample, and its primary test is Student's paired t-test over raters. So with ``--cut``
one study of very many raters is cut into many: hundreds of thousands of studies in minutes, the same raters and the same test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from scipy import stats

from bench.calibrate.cells import DESIGNS, Cell, all_cells, cached_study
from bench.calibrate.one import record
from bench.calibrate.table import ALPHA, Rate
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import planted, simulated_data

SEED = 20261201
CUT = "chat"
RATERS_AT_ONCE = 24_000
N_COMPARED = 20
"""Studies of which the paired t-test is held against the test of the report."""


def null_cells(design: str) -> list[Cell]:
    """The cells of a design in which nothing differs, as tests alone."""
    return [replace(cell, kind="tests") for cell in all_cells() if cell.design == design and not cell.effect]


def false_tests(cell: Cell, n_studies: int, seed: int) -> Rate:
    """How many studies of a cell have a significant test."""
    hits = n = 0
    for number in range(n_studies):
        tests = record(cell, number, seed).get("tests")
        if tests is not None:
            n += 1
            hits += any(test["p"] is not None and test["p"] <= ALPHA for test in tests.values())
    return Rate(hits, n)


def false_cuts(cell: Cell, n_studies: int, seed: int) -> Rate:
    """The same from studies that are cut out of larger ones."""
    study = cached_study(cell.design, cell.n_items)
    hits = n = 0
    for part in range(-(-n_studies * cell.n_raters // RATERS_AT_ONCE)):
        own = seed + 1000 * part
        truth, habits, shifts = planted(study, 0.0, own, cell.assumed)
        data = simulated_data(study, truth, habits, n_raters=RATERS_AT_ONCE, seed=own, shifts=shifts)
        raters, differences = paired_differences(data)
        size = cell.n_raters
        table = differences[: len(differences) // size * size].reshape(-1, size)
        p = stats.ttest_1samp(table, 0.0, axis=1).pvalue
        if part == 0:
            for k in range(N_COMPARED):
                whole = primary_tests(
                    replace(
                        data, judgments=data.judgments.filter(pl.col("rater").is_in(raters[k * size : (k + 1) * size]))
                    ),
                    Options.declared(study),
                )
                assert np.isclose(next(iter(whole.values())).p_value, p[k], atol=1e-9)
        hits, n = hits + int(np.sum(p <= ALPHA)), n + len(p)
    return Rate(hits, n)


def paired_differences(data: StudyData) -> tuple[list[str], np.ndarray]:
    """Raters with both systems, and the difference of their two ratings on the primary criterion."""
    comparison = data.study.spec.analysis.comparisons[0]
    first, second = comparison.levels
    rated = data.judgments.filter(pl.col("criterion") == comparison.criteria[0])
    wide = rated.pivot(on="system", index="rater", values="value", aggregate_function="mean").drop_nulls(
        [first, second]
    )
    return wide["rater"].to_list(), (wide[first] - wide[second]).to_numpy()


def summed(rates: Iterable[Rate]) -> Rate:
    """The rate of several cells together."""
    own = list(rates)
    return Rate(sum(rate.hits for rate in own), sum(rate.n for rate in own))


def lines(design: str, made: Sequence[tuple[Cell, Rate]]) -> list[str]:
    """The rate over all cells, and over those that have one property in common."""
    shown = [("all cells", summed(rate for _, rate in made))]
    properties = {cell: _properties(cell) for cell, _ in made}
    for name in dict.fromkeys(name for names in zip(*properties.values(), strict=True) for name in sorted(names)):
        shown.append((name, summed(rate for cell, rate in made if name in properties[cell])))
    return [f"{design:16} {name:24} {rate!s:20} [{_percent(rate)}]" for name, rate in shown]


def _properties(cell: Cell) -> tuple[str, ...]:
    assumed = cell.assumed
    return (
        f"{cell.n_raters} raters",
        f"items SD {assumed.item_sd:g}",
        f"rater × system SD {assumed.taste_sd:g}",
        f"careless {assumed.careless:.0%}",
    )


def _percent(rate: Rate) -> str:
    return ", ".join(f"{100 * end:.1f}" for end in rate.interval)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibrate.pool", description=__doc__)
    parser.add_argument("designs", nargs="+", choices=DESIGNS)
    parser.add_argument("--studies", type=int, default=1000, help="studies of each cell")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--cut", action="store_true", help=f"cut studies out of larger ones (design {CUT} only)")
    arguments = parser.parse_args()
    if arguments.cut and arguments.designs != [CUT]:
        parser.error(f"--cut is for the design {CUT}: elsewhere items are a sample too")
    count = false_cuts if arguments.cut else false_tests
    for design in arguments.designs:
        made = []
        for number, cell in enumerate(null_cells(design)):
            made.append((cell, count(cell, arguments.studies, arguments.seed + number)))
            print(f"{made[-1][1]!s:20} {cell.name}", file=sys.stderr, flush=True)
        print("\n".join(lines(design, made)), flush=True)


if __name__ == "__main__":
    main()
