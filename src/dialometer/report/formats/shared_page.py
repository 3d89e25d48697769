"""The report for others: the same page without anything about single raters and without texts of the study's items."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from dialometer.model.report import Figure, Part, Report, Section, Turns
from dialometer.report.formats.html_page import html_page
from dialometer.report.render import FORMATS, Rendering

SINGLE = frozenset({"rater", "session", "text", "comment", "reason"})
"""Columns whose tables have rows about single raters, or what raters wrote and read."""
_RATER = re.compile(r"\bR\d{4,}\b")
"""How single raters are called."""

LEFT_OUT = "It has no rows about single raters, nothing that raters wrote, and no texts of items."


@FORMATS.register("shared")
def write(rendering: Rendering) -> list[Path]:
    """``shared.html``."""
    path = rendering.folder / "shared.html"
    last = rendering.report.provenance.get("last_judgment")
    note = f"A copy for others{f', with the data until {last}' if last else ''}. {LEFT_OUT}"
    page = html_page(without_raw_data(rendering.report), rendering.drawings, note=note)
    path.write_text(page, encoding="utf-8", newline="\n")
    return [path]


def without_raw_data(report: Report) -> Report:
    """The report without rows about single raters, their words, and the texts of items; estimates and figures stay."""
    sections = (_without(section) for section in report.sections)
    return replace(report, sections=tuple(section for section in sections if _says_something(section)))


def _without(section: Section) -> Section:
    return replace(
        section,
        paragraphs=tuple(text for text in section.paragraphs if not _RATER.search(text)),
        parts=tuple(part for part in section.parts if not _is_raw(part)),
    )


def _is_raw(part: Part) -> bool:
    """Whether a part shows single raters or texts; of tables also where a cell, of figures where the drawing names one."""
    if isinstance(part, Turns):
        return True
    if isinstance(part, Figure):
        return bool(_RATER.search(part.alt) or _RATER.search(json.dumps(part.spec.get("data", {}), default=str)))
    cells = (cell for row in part.rows for cell in row if isinstance(cell, str))
    return any(column.name in SINGLE for column in part.columns) or any(map(_RATER.search, cells))


def _says_something(section: Section) -> bool:
    return bool(section.parts or section.paragraphs or section.problem)
