"""``python -m bench.attack [--write] [WORD …]``: replays every hole, one line each; fails if one is open.

Each attack starts a real server on loopback, is limited in count and time, and cleans up. Words choose holes by their names.
``--write`` puts the figures into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench.attack import editors, places, strangers
from bench.attack.target import Hole, HoleOpenError
from bench.reliability_page import write_section

HOLES = [*places.HOLES, *editors.HOLES, *strangers.HOLES]


def try_hole(hole: Hole) -> tuple[bool, str]:
    """Whether the server held, and the figures."""
    with tempfile.TemporaryDirectory(prefix="dialometer-attack-") as work:
        try:
            return True, hole.attack(Path(work))
        except HoleOpenError as error:
            return False, str(error)
        except Exception as error:
            return False, f"the attack itself failed: {type(error).__name__}: {error}"


def write(rows: list[tuple[Hole, bool, str]], seconds: float) -> None:
    """Replaces the section about attacks."""
    table = [f"| {hole.section} | {hole.name} | {'yes' if held else '**no**'} | {text} |" for hole, held, text in rows]
    head = [f"{seconds:.0f} s in all.", "", "| | attack | held | figures |", "|---|---|---|---|"]
    write_section("Attacks", "make attack", "\n".join([*head, *table]))


def main() -> None:
    reader = argparse.ArgumentParser(prog="python -m bench.attack")
    reader.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    reader.add_argument("words", nargs="*", help="only holes whose names hold one of these")
    asked = reader.parse_args()
    chosen = [hole for hole in HOLES if not asked.words or any(word in hole.name for word in asked.words)]
    began = time.monotonic()
    rows = []
    for hole in chosen:
        held, text = try_hole(hole)
        rows.append((hole, held, text))
        print(f"{'held' if held else 'OPEN':4}  {hole.section}: {hole.name} ({text})", flush=True)
    seconds = time.monotonic() - began
    n_open = sum(not held for _, held, _ in rows)
    print(f"{len(rows) - n_open} of {len(rows)} held, {seconds:.0f} s")
    if asked.write and not asked.words:
        write(rows, seconds)
    sys.exit(1 if n_open else 0)


main()
