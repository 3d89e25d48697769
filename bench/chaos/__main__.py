"""``make chaos``: 100 kills each on SQLite and PostgreSQL, a full disk, a wrong clock, locks and restores, all under load.

Prints what each fault came to and ends with status 1 if anything that was acknowledged is lost, doubled or damaged.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable

from bench.chaos import faults
from bench.chaos.faults import Figures
from bench.chaos.processes import PostgresServer, Preloaded
from bench.reliability_page import write_section

COLUMNS = ("fault", "database", "what happened", "acknowledged", "lost", "doubled", "seconds")


def row(figures: Figures) -> tuple[str, ...]:
    """One line of the table."""
    numbers = (f"{n:,}" for n in (figures.n_acknowledged, figures.n_lost, figures.n_doubled))
    return (figures.fault, figures.database, figures.what, *numbers, f"{figures.seconds:.0f}")


def section(made: list[Figures], n_raters: int) -> str:
    """The section of docs/reliability.md."""
    head = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    lines = [f"| {' | '.join(row(one))} |" for one in made]
    n = sum(one.n_acknowledged for one in made)
    passed = "Nothing was lost or stored twice." if all(one.is_passed for one in made) else "**Not everything passed.**"
    intro = (
        f"{n_raters} raters answer without pause through every fault, send again what got no answer, and note what was "
        f"acknowledged; at the end all {n:,} acknowledged screens are looked up. {passed}"
    )
    return "\n".join([intro, "", head, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="on each database")
    parser.add_argument("--minutes", type=float, default=120, help="at most for the kills on each database")
    parser.add_argument("--raters", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="kills, disk, clock, lock, restore; all by default")
    parser.add_argument("--database", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    given = parser.parse_args()
    folder, rng, made = faults.temporary_folder(), random.Random(given.seed), []
    ready = Preloaded()
    work: list[tuple[str, str, Callable[[PostgresServer | None], Figures]]] = []
    for database in given.database:
        work += [
            (
                "kills",
                database,
                lambda pg, d=database: faults.kills(
                    ready, folder / f"k-{d}", given.kills, given.raters, pg, rng, given.minutes
                ),
            ),
            ("lock", database, lambda pg, d=database: faults.locked(ready, folder / f"l-{d}", given.raters, pg)),
            (
                "restore",
                database,
                lambda pg, d=database: faults.restore_under_load(ready, folder / f"r-{d}", given.raters, pg),
            ),
        ]
    if "sqlite" in given.database:
        work += [("disk", "sqlite", lambda _: faults.disk_full(ready, folder / "d", given.raters))]
        work += [("clock", "sqlite", lambda _: faults.clock_jumps(ready, folder / "c", given.raters))]
    work = [entry for entry in work if not given.only or entry[0] in given.only]
    postgres = None
    try:
        if any(database == "postgresql" for _, database, _ in work):
            postgres = PostgresServer()
            postgres.start()
        for _, database, fault in work:
            figures = fault(postgres if database == "postgresql" else None)
            made.append(figures)
            print("  ".join(row(figures)), *figures.problems, sep="\n    ", flush=True)
    finally:
        ready.close()
        if postgres is not None:
            postgres.close()
    is_passed = all(figures.is_passed for figures in made)
    if given.write:
        words = " ".join(word for word in sys.argv[1:] if word != "--write")
        write_section("Chaos", f"make chaos ARGS='{words}'" if words else "make chaos", section(made, given.raters))
    if is_passed:
        faults.remove(folder)
        print(f"{sum(figures.n_acknowledged for figures in made):,} screens acknowledged, 0 lost, 0 doubled")
    else:
        raise SystemExit(f"not everything passed; the studies are kept in {folder}")


if __name__ == "__main__":
    main()
