"""Our number beside somebody else's: how far apart they may lie, and whether they do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.registry import Registry

DATA_VARIABLE = "DIALOMETER_DATA"
EXACT = 1e-6
"""Allowed difference for closed forms and well-posed fits: ICC, kappa, Elo, Bradley-Terry, tests."""
FITTED = 1e-3
"""Allowed difference for variance components, where other software stops its search a little earlier or later."""


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """One number of ours beside the other one. A relative tolerance is for p-values that span many powers of ten."""

    label: str
    ours: float
    other: float
    tolerance: float = EXACT
    is_relative: bool = False

    @property
    def difference(self) -> float:
        """Absolute difference; ``nan`` where one of the two is missing."""
        return abs(self.ours - self.other)

    @property
    def is_within(self) -> bool:
        """Whether the two agree; a missing number never does."""
        allowed = self.tolerance * (abs(self.other) if self.is_relative else 1.0)
        return self.difference <= allowed * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """Numbers of one kind: what they are and which software or paper the other side comes from."""

    title: str
    source: str
    rows: tuple[ComparedNumber, ...]

    @property
    def n_outside(self) -> int:
        """How many differ by more than they may."""
        return sum(not row.is_within for row in self.rows)

    @property
    def largest(self) -> float:
        """The largest absolute difference."""
        return max((row.difference for row in self.rows), default=math.nan)


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row of a table: our values and the published ones. Either may be missing; they need not agree."""

    label: str
    ours: tuple[float, ...] = ()
    other: tuple[float, ...] = ()
    other_label: str = ""
    """What the published row is called, where that differs."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A published table with ours beside it, where other models or methods make the numbers differ by right."""

    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "title": self.title,
            "source": self.source,
            "rows": [
                {
                    "label": row.label,
                    "published_label": row.other_label or row.label,
                    "ours": dict(zip(self.columns, map(_plain, row.ours), strict=True)) if row.ours else None,
                    "published": dict(zip(self.columns, map(_plain, row.other), strict=True)) if row.other else None,
                }
                for row in self.rows
            ],
        }


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All comparisons of one data set, and what a reader should know about them."""

    name: str
    title: str
    citation: str
    comparisons: tuple[NumberComparison, ...]
    notes: tuple[str, ...] = ()
    grids: tuple[PublishedTable, ...] = ()

    @property
    def is_within(self) -> bool:
        """Whether every number agrees."""
        return not any(comparison.n_outside for comparison in self.comparisons)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "name": self.name,
            "title": self.title,
            "citation": self.citation,
            "is_within": self.is_within,
            "notes": list(self.notes),
            "grids": [grid.as_json() for grid in self.grids],
            "comparisons": [
                {
                    "title": comparison.title,
                    "source": comparison.source,
                    "n": len(comparison.rows),
                    "n_outside": comparison.n_outside,
                    "rows": [
                        {
                            "label": row.label,
                            "ours": _plain(row.ours),
                            "other": _plain(row.other),
                            "difference": _plain(row.difference),
                            "tolerance": row.tolerance,
                            "is_relative": row.is_relative,
                            "is_within": row.is_within,
                        }
                        for row in comparison.rows
                    ],
                }
                for comparison in self.comparisons
            ],
        }


Maker = Callable[[Path | None], Reproduction]
REPRODUCTIONS: Registry[Maker] = Registry("reproduction", "dialometer.analysis.reproduce")


def reproduce(name: str, data: Path | None = None) -> Reproduction:
    """The comparisons of one data set; ``data`` is the folder of public data sets, which not every one needs."""
    return REPRODUCTIONS.get(name)(data)


def data_file(data: Path | None, *parts: str) -> Path:
    """A file of the public data sets, or a message that says how to point to it."""
    remedy = f"download the data set, and set {DATA_VARIABLE} to the folder that holds {'/'.join(parts)}"
    if data is None:
        raise DialometerError("this reproduction needs public data that are not part of dialometer", remedy=remedy)
    path = data.joinpath(*parts)
    if not path.is_file():
        raise DialometerError("the file is missing", where=str(path), remedy=remedy)
    return path


@cache
def expected(name: str) -> dict[str, Any]:
    """What other software computed, with its name and version, from the file beside this one."""
    text = resources.files(__package__).joinpath("expected.json").read_text(encoding="utf-8")
    numbers: dict[str, Any] = json.loads(text)[name]
    return numbers


def named_rows(ours: dict[str, float], other: dict[str, float]) -> Sequence[ComparedNumber]:
    """Rows for two mappings with the same names, in the order of the other side; one that we lack is ``nan``."""
    return [ComparedNumber(name, ours.get(name, math.nan), value, tolerance=EXACT) for name, value in other.items()]


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
