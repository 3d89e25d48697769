"""python -m bench.fuzz: reads hostile files, many of them, and counts tracebacks, hangs and memory.

A run goes on where the last one stopped, however it stopped. Inputs that failed are read once more first: a million is done
when all of them were read or refused.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.fuzz.run import CHUNK, Chunk, Failure, Lost, Workers, prepared, write_input

FOLDER = Path("build/fuzz")
SEED = 20261116
MILLION = 1_000_000
N_SAVED = 3
"""Inputs that are kept of failures at one place."""
WRITE_S = 5.0
"""How often the figures go to disk."""


class Tally:
    """What became of all inputs so far, kept in a file so that a later run goes on."""

    def __init__(self, folder: Path, seed: int, names: list[str]) -> None:
        self.file = folder / f"{seed}{'-' + '_'.join(names).replace(' ', '-') if names else ''}.json"
        self.folder = folder
        self.seen: dict[str, Any] = {
            "next": 0,
            "n_read": 0,
            "n_refused": 0,
            "peak_mib": 0,
            "slowest_s": 0.0,
            "seconds": 0.0,
        }
        self.seen |= {"by_kind": {}, "failures": [], "given": [], "n_failed_before": 0}
        if self.file.is_file():
            self.seen = json.loads(self.file.read_text(encoding="utf-8"))

    def take_again(self) -> list[tuple[int, int]]:
        """What the last run left behind: chunks that it had not done, and inputs that failed and may be fixed by now."""
        seen = self.seen
        failed = sorted({failure["number"] for failure in seen["failures"]})
        seen["n_failed_before"] += len(failed)
        seen["failures"] = []
        for number in failed:
            seen["given"].append([number, number + 1])
        return [(start, end) for start, end in seen["given"]]

    def done(self, start: int, end: int) -> None:
        """A chunk that need not be given again."""
        self.seen["given"] = [chunk for chunk in self.seen["given"] if tuple(chunk) != (start, end)]

    @property
    def n(self) -> int:
        """Inputs that were read, refused or failed."""
        return int(self.seen["n_read"]) + int(self.seen["n_refused"]) + len(self.seen["failures"])

    def add(self, chunk: Chunk) -> None:
        """Counts a chunk."""
        seen = self.seen
        self.done(chunk.start, chunk.end)
        seen["n_read"] += chunk.n_read
        seen["n_refused"] += chunk.n_refused
        seen["peak_mib"] = max(seen["peak_mib"], chunk.peak_mib)
        seen["slowest_s"] = max(seen["slowest_s"], chunk.slowest_s)
        seen["by_kind"] = dict(Counter(seen["by_kind"]) + chunk.by_kind)
        for failure in chunk.failures:
            self.fail(failure)

    def fail(self, failure: Failure) -> None:
        """Notes a failure; all are counted, a few of each place are kept whole."""
        n_before = sum(known["where"] == failure.where for known in self.seen["failures"])
        kept = asdict(failure)
        if n_before >= N_SAVED:
            kept["text"] = ""
        self.seen["failures"].append(kept)

    def write(self) -> None:
        """On disk, so that nothing is counted twice or lost."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.seen, indent=1), encoding="utf-8")
        part.replace(self.file)

    def print(self) -> None:
        """The figures, and the places of failures."""
        seen = self.seen
        count = Counter(failure["what"].split()[0] for failure in seen["failures"])
        print(f"{self.n:,} inputs: {seen['n_read']:,} read, {seen['n_refused']:,} refused with a message")
        bad = f"{count['traceback']:,} tracebacks, {count['hang']:,} hangs over 2 s"
        print(f"{bad}, {count['memory']:,} out of memory, {count['died']:,} died")
        print(
            f"slowest {seen['slowest_s']:.2f} s, largest process {seen['peak_mib']:,} MiB, {seen['seconds']:,.0f} s in all"
        )
        if seen["n_failed_before"]:
            print(f"{seen['n_failed_before']:,} inputs that failed in earlier runs were read again")
        places = Counter((failure["where"], failure["what"], failure["kind"]) for failure in seen["failures"])
        for (where, what, kind), number in places.most_common():
            first = next(failure["number"] for failure in seen["failures"] if failure["where"] == where)
            print(f"  {number:6,}  {where}  {what}  ({kind}; first input {first})")


def save_inputs(tally: Tally, seed: int, names: list[str]) -> None:
    """The files of the first inputs of each failure, beside the tally."""
    order = prepared(names)
    for failure in tally.seen["failures"]:
        folder = tally.folder / "inputs" / str(failure["number"])
        if failure["text"] and not folder.exists():
            folder.mkdir(parents=True)
            write_input(order, seed, failure["number"], folder)
            (folder / "TRACEBACK").write_text(failure["text"], encoding="utf-8", errors="backslashreplace")


def run(arguments: argparse.Namespace) -> Tally:
    """Reads until the wanted number or the time is over."""
    tally = Tally(arguments.folder, arguments.seed, arguments.only)
    workers = Workers(arguments.processes, arguments.seed, arguments.only)
    left = tally.take_again()
    start, before, written = time.monotonic(), tally.seen["seconds"], 0.0
    end = tally.seen["next"] + arguments.inputs if arguments.inputs else MILLION
    try:
        while tally.seen["next"] < end or left or workers.busy:
            is_over = arguments.minutes and time.monotonic() - start > arguments.minutes * 60
            while workers.idle and not is_over and (left or tally.seen["next"] < end):
                if left:
                    workers.give(left.pop())
                    continue
                first = tally.seen["next"]
                tally.seen["next"] = min(first + CHUNK, end)
                tally.seen["given"].append([first, tally.seen["next"]])
                workers.give((first, tally.seen["next"]))
            if is_over and not workers.busy:
                break
            for result in workers.results():
                if isinstance(result, Chunk):
                    tally.add(result)
                else:
                    _lost(tally, result, left)
            tally.seen["seconds"] = before + time.monotonic() - start
            if time.monotonic() - written > WRITE_S:
                tally.write()
                written = time.monotonic()
    finally:
        workers.stop()
        tally.write()
    return tally


def _lost(tally: Tally, result: Lost, left: list[tuple[int, int]]) -> None:
    """A process died: its input failed, and its chunk is read again around that input, since its counts are gone."""
    tally.fail(result.failure)
    tally.done(*result.chunk)
    number = result.failure.number
    for part in ((result.chunk[0], number), (number + 1, result.chunk[1])):
        if part[0] < part[1]:
            tally.seen["given"].append(list(part))
            left.append(part)


def again(arguments: argparse.Namespace) -> int:
    """One input once more, with its whole traceback."""
    order = prepared(arguments.only)
    with tempfile.TemporaryDirectory() as place:
        kind = write_input(order, arguments.seed, arguments.again, Path(place))
        if arguments.keep:
            shutil.copytree(place, arguments.keep)
        try:
            print(f"{kind.name}: read", str(kind.read(Path(place)))[:500])
        except BaseException:
            traceback.print_exc()
            return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument(
        "--inputs", type=int, default=0, help="how many more inputs to read; by default up to a million"
    )
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long; the next run goes on")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where figures and failing inputs are kept")
    parser.add_argument("--only", nargs="*", default=[], help="kinds whose names contain one of these words")
    parser.add_argument("--again", type=int, help="read one input again, by its number")
    parser.add_argument("--keep", type=Path, help="with --again: copy its files here")
    arguments = parser.parse_args()
    if arguments.again is not None:
        return again(arguments)
    tally = run(arguments)
    tally.print()
    if tally.seen["failures"]:
        save_inputs(tally, arguments.seed, arguments.only)
        print(f"the first inputs of each place are in {tally.folder / 'inputs'}")
    return 1 if tally.seen["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
