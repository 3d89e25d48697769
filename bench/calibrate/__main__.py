"""python -m bench.calibrate: do the conclusions hold? Simulates whole studies and counts what their reports claim."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from bench.calibrate import results
from bench.calibrate.cells import Cell, all_cells, short_cells
from bench.calibrate.page import write_page
from bench.calibrate.reference import prepare, stored_promise, stored_truths
from bench.calibrate.run import run, stored
from bench.calibrate.table import Summary, markdown, row, summarise

FOLDER = Path("build/calibration")
SEED = 20261116


def chosen(arguments: argparse.Namespace) -> list[Cell]:
    """The cells that the options ask for, the deciding ones first."""
    cells = short_cells() if arguments.short else all_cells(arguments.tests, arguments.reports)
    if arguments.only:
        wanted = [pattern if any(c in pattern for c in "*?[") else f"{pattern}*" for pattern in arguments.only]
        cells = [cell for cell in cells if any(fnmatch.fnmatch(cell.name, pattern) for pattern in wanted)]
    if arguments.studies:
        cells = [replace(cell, n_studies=arguments.studies) for cell in cells]
    return cells


def references(folder: Path, cells: list[Cell], seed: int, n_processes: int, n_promised: int = 0) -> None:
    """What cells are compared with, in parallel: it is kept like the studies."""
    wanted = []
    seen = set()
    counted = results.read()
    for cell in cells:
        lines = stored(folder, cell)
        has_icc = any(line.get("icc") for line in lines)
        key = (cell.design, cell.effect, cell.assumed, has_icc)
        lacks_promise = cell.effect and cell.name in counted and not counted[cell.name]["promised"][1]
        if (lines or lacks_promise) and (has_icc or cell.effect) and (not has_icc or key not in seen):
            wanted.append((cell, has_icc))
            seen.add(key)
    if n_processes == 1:
        for cell, has_icc in wanted:
            prepare(folder, cell, seed, has_icc=has_icc, n_promised=n_promised)
        return
    with ProcessPoolExecutor(n_processes, get_context("spawn")) as pool:
        jobs = [
            pool.submit(prepare, folder, cell, seed, has_icc=has_icc, n_promised=n_promised) for cell, has_icc in wanted
        ]
        for job in jobs:
            job.result()


def summaries(folder: Path, cells: list[Cell]) -> list[Summary]:
    """The rates of all cells that have studies, beside what is on disk to compare them with."""
    made = []
    for cell in cells:
        lines = stored(folder, cell)
        if lines:
            truth = stored_truths(folder, cell) if any(line.get("icc") for line in lines) else None
            promised = stored_promise(folder, cell) if cell.effect else None
            made.append(summarise(cell, lines, icc_truth=truth, promised=promised))
    return made


def write(arguments: argparse.Namespace, made: list[Summary]) -> None:
    """Adds the cells of this run to the counts in the repository and makes the page from all of them."""
    cells = all_cells(arguments.tests, arguments.reports)
    promised = {cell.name: stored_promise(arguments.folder, cell) for cell in cells if cell.effect}
    results.update(made, {name: rate for name, rate in promised.items() if rate is not None})
    write_page(results.summaries(cells), seed=arguments.seed, n_cells=len(cells), days=results.days())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibrate", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="NAME", help="cells whose name begins so (or a pattern with *)"
    )
    parser.add_argument("--studies", type=int, default=0, help="studies a cell, whatever it asks for")
    parser.add_argument("--tests", type=int, default=400, help="studies of cells that only make the primary tests")
    parser.add_argument("--reports", type=int, default=400, help="studies of cells that make whole answers")
    parser.add_argument(
        "--promised", type=int, default=0, help="studies of a promise of power; twice a cell's if left out"
    )
    parser.add_argument("--short", action="store_true", help="only the few cells that run among the tests")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--until", type=float, default=None, metavar="SECONDS", help="begin nothing after so many seconds"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where studies are kept; run again to go on")
    parser.add_argument("--list", action="store_true", help="names and cost of the cells, nothing else")
    parser.add_argument("--no-reference", action="store_true", help="without the true ICC and the promised power")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/calibration.md from what is there")
    parser.add_argument("--table-only", action="store_true", help="run nothing, show what is there")
    arguments = parser.parse_args()
    if arguments.write and arguments.seed != SEED:
        parser.error(
            f"the page has the studies of seed {SEED}; leave out --write, and write down by hand what another seed gives"
        )
    cells = chosen(arguments)
    total = sum(cell.seconds for cell in cells)
    if arguments.list:
        for cell in cells:
            print(f"{cell.seconds:7.0f} s  {cell.n_studies:5d}  {cell.name}")
    print(f"{len(cells)} cells, about {total:,.0f} core-seconds", flush=True)
    if arguments.list:
        return
    if not arguments.table_only:
        run(
            arguments.folder,
            cells,
            seed=arguments.seed,
            n_processes=arguments.processes,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
            until=arguments.until,
        )
    if not arguments.no_reference and not arguments.table_only:
        references(arguments.folder, cells, arguments.seed, arguments.processes, arguments.promised)
    made = summaries(arguments.folder, cells)
    print(markdown([row(rates) for rates in made]))
    for rates in made:
        for word, what in (("missed", rates.problems), ("unfinished", rates.unfinished)):
            if what:
                print(f"{word}: {rates.cell.name}: {'; '.join(what)}")
    if arguments.write:
        write(arguments, made)
    sys.exit(1 if any(rates.problems for rates in made) else 0)


if __name__ == "__main__":
    main()
