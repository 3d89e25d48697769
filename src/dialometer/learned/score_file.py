"""Scores of a file of dialogues, written part by part: memory hardly grows with the file, and an interrupted run continues.

Rows go to ``NAME.part`` as they come, beside a note of the evaluator and the dialogues they belong to. A run of the same evaluator on
the same dialogues reads the rows that are there and goes on after the last whole part, so the numbers are those of one run. The file
gets its name when it is complete.
"""

from __future__ import annotations

import csv
import heapq
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.learned import evaluators
from dialometer.learned.data.evaluator import FILE, DialogueScores
from dialometer.learned.evaluators import N_TRIED, Speed, parts_of, place_of, score_part
from dialometer.model.dialogue import Dialogue
from dialometer.neural.engines import LOCAL, Engine
from dialometer.neural.work import QUIET, Work

COLUMNS = ("id", "score", "deviation", "familiarity")
Row = tuple[str, float, float, float]


@dataclass(frozen=True)
class DialogueSource:
    """A file of dialogues that are read as they are needed, and more than once."""

    read: Callable[[], Iterable[Dialogue]]
    fingerprint: dict[str, Any]
    """What tells the file from others, or from itself before it was changed."""
    n: int
    sample: list[Dialogue]
    """Some from all over."""

    @classmethod
    def of(cls, file: Path, read: Callable[[], Iterable[Dialogue]]) -> DialogueSource:
        """Reads them all once, so that faults are found before anything is scored."""
        sample: list[Dialogue] = []
        n, stride = 0, 1
        for dialogue in read():
            if n % stride == 0:
                sample.append(dialogue)
            if len(sample) == 2 * N_TRIED:
                sample, stride = sample[::2], 2 * stride
            n += 1
        stat = file.stat()
        about = {"dialogues": str(file.resolve()), "size": stat.st_size, "changed_at_ns": stat.st_mtime_ns}
        return cls(read, about, n, sample)


@dataclass
class ScoredFile:
    """What is left of the scores when they are written: their numbers, and the rows at both ends."""

    n_ends: int
    parts: list[DialogueScores] = field(default_factory=list)
    best: list[tuple[float, int, Row]] = field(default_factory=list)
    worst: list[tuple[float, int, Row]] = field(default_factory=list)
    n: int = 0
    n_known: int = 0
    """Rows that an earlier run had written."""
    mute: list[str] = field(default_factory=list)
    """Dialogues in which no agent says anything: their rows have no numbers."""
    rows: list[Row] | None = None
    """All of them, where they are wanted."""

    @property
    def scores(self) -> DialogueScores:
        """Of all dialogues that have one, in the order of the file."""
        return DialogueScores.joined(self.parts)

    def take(self, rows: list[Row]) -> None:
        """Some more rows."""
        scored = [row for row in rows if not math.isnan(row[1])]
        values, deviations, familiarity = (np.array([row[column] for row in scored]) for column in (1, 2, 3))
        self.parts.append(DialogueScores(values, deviations, values[None, :], familiarity))
        if self.rows is not None:
            self.rows += rows
        for row in rows:
            self.n += 1
            if math.isnan(row[1]):
                self.mute.append(row[0])
                continue
            _keep(self.best, (row[1], -self.n, row), self.n_ends)
            _keep(self.worst, (-row[1], -self.n, row), self.n_ends)


def _keep(heap: list[tuple[float, int, Row]], entry: tuple[float, int, Row], n: int) -> None:
    if len(heap) < n:
        heapq.heappush(heap, entry)
    elif entry > heap[0]:
        heapq.heapreplace(heap, entry)


def score_file(
    evaluator: Path,
    source: DialogueSource,
    *,
    out: Path | None = None,
    device: str = "auto",
    speed: Speed = "auto",
    engine: Engine = LOCAL,
    work: Work = QUIET,
    n_ends: int = 10,
    keeps_rows: bool = False,
) -> ScoredFile:
    """Scores dialogues as they are read; ``n_ends`` says how many of the best and of the worst are kept."""
    scored = ScoredFile(n_ends, rows=[] if keeps_rows else None)
    where = place_of(evaluator, device, speed, source.n, source.sample)
    about = {**source.fingerprint, "evaluator": _fingerprint(evaluator), "is_quick": where.is_quick}
    writer = _PartFile(out, about) if out is not None else None
    rest = iter(source.read())
    if writer is not None:
        for rows in writer.known():
            scored.take(rows)
        scored.n_known = scored.n
        for _ in islice(rest, scored.n):
            pass
    names: list[list[str]] = []
    for scores in engine.run(score_part, where, _remembered(rest, names)):
        columns = (scores.values, scores.deviations, scores.familiarity)
        rows = list(zip(names.pop(0), *(column.tolist() for column in columns), strict=True))
        if writer is not None:
            writer.write(rows)
        scored.take(rows)
        work.report("Scoring", scored.n, source.n)
    if writer is not None:
        writer.finish()
    return scored


def _remembered(dialogues: Iterator[Dialogue], names: list[list[str]]) -> Iterator[list[Dialogue]]:
    """Parts, whose names wait in ``names`` until their scores come back."""
    for part in parts_of(dialogues):
        names.append([dialogue.id for dialogue in part])
        yield part


def _fingerprint(evaluator: Path) -> list[int]:
    stat = (evaluator / FILE).stat()
    return [stat.st_size, stat.st_mtime_ns]


class _PartFile:
    """The rows of a file that is not complete."""

    def __init__(self, out: Path, of: dict[str, Any]) -> None:
        self.out = out
        self.path, self.note = (out.with_name(f"{out.name}.{end}") for end in ("part", "part.json"))
        self.of = {"part": evaluators.PART, **of}

    def known(self) -> Iterator[list[Row]]:
        """Whole parts that an earlier run of the same work left; whatever else is there is removed."""
        try:
            is_same = json.loads(self.note.read_text(encoding="utf-8")) == self.of
        except (OSError, ValueError):
            is_same = False
        if not (is_same and self.path.is_file()):
            self.note.write_text(json.dumps(self.of), encoding="utf-8")
            self._begin()
            return
        size = evaluators.PART
        with self.path.open("r", encoding="utf-8", newline="") as file:
            end = len(file.readline().encode())
            while len(lines := list(islice(file, size))) == size and lines[-1].endswith("\n"):
                rows = list(csv.reader(lines))
                if len(rows) < size:  # an id with a line break in it is longer than a line
                    break
                end += sum(len(line.encode()) for line in lines)
                yield [(row[0], *(float(cell or "nan") for cell in row[1:])) for row in rows]  # type: ignore[misc]
        with self.path.open("r+b") as whole:
            whole.truncate(end)

    def _begin(self) -> None:
        with self.path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow(COLUMNS)

    def write(self, rows: list[Row]) -> None:
        with self.path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                [name, *("" if math.isnan(number) else number for number in numbers)] for name, *numbers in rows
            )

    def finish(self) -> None:
        self.path.replace(self.out)
        self.note.unlink(missing_ok=True)
