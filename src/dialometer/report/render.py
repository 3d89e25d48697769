"""From a report to its files: every format is one file in ``formats/``, found by its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from dialometer.model.report import Figure, Report, Table
from dialometer.registry import Registry
from dialometer.report.drawing import Drawings


@dataclass(frozen=True)
class Rendering:
    """One rendering: what, where to, which formats stand beside each other, and the drawings they share."""

    report: Report
    folder: Path
    formats: tuple[str, ...]
    drawings: Drawings = field(default_factory=Drawings)

    def tables(self) -> list[tuple[Table, str]]:
        """Each table once, with the name of its files."""
        return with_file_names(self.report.tables())

    def figures(self) -> list[tuple[Figure, str]]:
        """Each figure once, with the name of its files."""
        return with_file_names(self.report.figures())


Format = Callable[[Rendering], list[Path]]
"""Writes one format into the rendering's folder and returns the files written."""

FORMATS: Registry[Format] = Registry("report format", "dialometer.report.formats")


def render(report: Report, folder: str | Path, *, formats: Sequence[str] | None = None) -> list[Path]:
    """Write the report into ``folder`` (all formats unless named) and return the files in a fixed order.

    The same report gives the same bytes each time. Files of other reports in the folder are left alone.
    """
    names = tuple(dict.fromkeys(FORMATS.names() if formats is None else formats))
    writers = [FORMATS.get(name) for name in names]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    rendering = Rendering(report, place, names)
    return [path for write in writers for path in write(rendering)]


Part = TypeVar("Part", Table, Figure)


def with_file_names(parts: Iterable[Part]) -> list[tuple[Part, str]]:
    """Each part once with a file name of its own; names that come out alike are numbered, so that none is lost."""
    once = {id(part): part for part in parts}
    names = UniqueNames()
    return [(part, names.next(file_name(part.name))) for part in once.values()]


class UniqueNames:
    """Hands out each name once: the second of a name gets a number, whatever the case of its letters."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def next(self, wish: str) -> str:
        """The wish, or the wish with the first number that is free."""
        name, i = wish, 2
        while name.casefold() in self._taken:
            name, i = f"{wish}-{i}", i + 1
        self._taken.add(name.casefold())
        return name


def file_name(name: str) -> str:
    """A table's or figure's name as a file name: letters, digits, dash and underscore, whatever the study calls things."""
    return re.sub(r"[^\w-]+", "-", name).strip("-") or "unnamed"
