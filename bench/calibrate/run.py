"""Runs the cells in parallel and keeps every study: one file of JSON lines for each cell, so that nothing is done twice."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.calibrate.cells import Cell
from bench.calibrate.one import record

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
CHUNK_SECONDS = 8.0


@dataclass(frozen=True)
class Chunk:
    """Some studies of one cell."""

    cell: Cell
    numbers: tuple[int, ...]

    @property
    def seconds(self) -> float:
        return self.cell.seconds * len(self.numbers) / self.cell.n_studies


def stored(folder: Path, cell: Cell) -> list[dict[str, Any]]:
    """The studies of a cell that are on disk, by number; a line that was cut off by an interruption is made again."""
    try:
        text = (folder / f"{cell.name}.jsonl").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    lines: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        try:
            read = json.loads(line)
        except ValueError:
            continue
        lines[read["number"]] = read
    return [lines[number] for number in sorted(lines) if number < cell.n_studies]


def chunks_left(folder: Path, cells: Iterable[Cell]) -> list[Chunk]:
    """What is not on disk yet, in the order of the cells."""
    chunks = []
    for cell in cells:
        done = {line["number"] for line in stored(folder, cell)}
        left = [number for number in range(cell.n_studies) if number not in done]
        size = max(1, round(CHUNK_SECONDS * cell.n_studies / cell.seconds))
        chunks += [Chunk(cell, tuple(left[i : i + size])) for i in range(0, len(left), size)]
    return chunks


def make(chunk: Chunk, seed: int) -> list[dict[str, Any]]:
    """The lines of a chunk; runs in a process of its own."""
    return [record(chunk.cell, number, seed) for number in chunk.numbers]


def keep(folder: Path, chunk: Chunk, lines: list[dict[str, Any]]) -> None:
    """One write for the whole chunk, on disk before the next begins. What an interruption cut off ends at a line of its own."""
    file = folder / f"{chunk.cell.name}.jsonl"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    with file.open("a+b") as out:
        if out.tell():
            out.seek(-1, os.SEEK_END)
            text = text if out.read(1) == b"\n" else f"\n{text}"
        out.write(text.encode())
        out.flush()
        os.fsync(out.fileno())


def run(
    folder: Path,
    cells: list[Cell],
    *,
    seed: int,
    n_processes: int,
    tell: Callable[[str], None],
    until: float | None = None,
) -> None:
    """Makes what is missing. With ``until`` (seconds from now) no chunk is begun later than that."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ONE_THREAD:
        os.environ[name] = "1"
    chunks = chunks_left(folder, cells)
    total = sum(chunk.seconds for chunk in chunks)
    began, done = time.monotonic(), 0.0
    if n_processes == 1:
        for chunk in chunks:
            if until is not None and time.monotonic() - began > until:
                return
            keep(folder, chunk, make(chunk, seed))
            done += chunk.seconds
            tell(_progress(chunk, done, total, began))
        return
    with ProcessPoolExecutor(n_processes, get_context("spawn")) as pool:
        waiting = iter(chunks)
        running: dict[Future[list[dict[str, Any]]], Chunk] = {}

        def submit() -> None:
            chunk = next(waiting, None)
            if chunk is not None and (until is None or time.monotonic() - began <= until):
                running[pool.submit(make, chunk, seed)] = chunk

        for _ in range(2 * n_processes):
            submit()
        while running:
            for future in as_completed(list(running)):
                chunk = running.pop(future)
                keep(folder, chunk, future.result())
                done += chunk.seconds
                tell(_progress(chunk, done, total, began))
                submit()
                break


def _progress(chunk: Chunk, done: float, total: float, began: float) -> str:
    spent = time.monotonic() - began
    left = spent * (total - done) / done if done else 0.0
    return f"{done / total:4.0%}  about {left / 60:.0f} min left  {chunk.cell.name}"
