"""From a report to its files: every format is one file in ``formats/``, found by its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.model.report import Report
from dialometer.registry import Registry
from dialometer.report.drawing import Drawings


@dataclass(frozen=True, slots=True)
class Rendering:
    """One rendering: what, where to, which formats stand beside each other, and the drawings they share."""

    report: Report
    folder: Path
    formats: tuple[str, ...]
    drawings: Drawings = field(default_factory=Drawings)


Format = Callable[[Rendering], list[Path]]
"""Writes one format into the rendering's folder and returns the files written."""

FORMATS: Registry[Format] = Registry("report format", "dialometer.report.formats")


def render(report: Report, folder: Path, *, formats: Sequence[str] | None = None) -> list[Path]:
    """Write the report into ``folder`` (all formats unless named) and return the files in a fixed order.

    The same report gives the same bytes each time. Files of other reports in the folder are left alone.
    """
    names = tuple(dict.fromkeys(FORMATS.names() if formats is None else formats))
    writers = [FORMATS.get(name) for name in names]
    _check_names("table", (table.name for table in report.tables()))
    _check_names("figure", (figure.name for figure in report.figures()))
    _check_names("section", (section.name for section in report.sections))
    folder.mkdir(parents=True, exist_ok=True)
    rendering = Rendering(report, folder, names)
    return [path for write in writers for path in write(rendering)]


def file_name(name: str) -> str:
    """A table's or figure's name as a file name: letters, digits, dash and underscore, whatever the study calls things."""
    return re.sub(r"[^\w-]+", "-", name).strip("-") or "unnamed"


def _check_names(kind: str, names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        file = file_name(name).casefold()
        if file in seen:
            raise DialometerError(
                f"two {kind}s would share the file name '{file}' ('{seen[file]}' and '{name}')",
                where="report",
                remedy=f"give each {kind} a name of its own",
            )
        seen[file] = name
