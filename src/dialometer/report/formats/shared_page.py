"""The report for others: the same page without anything about single raters and without texts of the study's items."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from dialometer.model.report import OWN_WORDS, Cell, Figure, Part, Report, Section, Table, Turns
from dialometer.report.formats.html_page import html_page
from dialometer.report.render import FORMATS, Rendering

_NAMES = (
    "action against agreement agrees amount answer answers base better both by category cheapest choice coefficient compared "
    "comparison condition cost cost_answer cost_session cost_strategy criterion definition df df_here difference effect enough "
    "estimate factor feature first first_of gap group hypothesis item items judge kind least length level levels majority margin "
    "measure method model most of_judge of_rater omega outcome pair people place point quartile question range rank_interval "
    "raters rule second set severity shape source statistic strategy system systems test tests value verdict version vote what "
    "where who word"
)
SHOWN = frozenset(_NAMES.split())
"""Columns with texts that are about the study and not about single raters, items' texts or raters' words. A table with texts in
any other column is left out, so that one of a plug-in is shown only where its columns are named like these."""
_NUMBERED = re.compile(r"[-_]\d+$")
"""The end of the names of columns of which there are several: group_1, group_2."""
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
    summary = replace(report.summary, warnings=_naming_nobody(report.summary.warnings))
    return replace(report, summary=summary, sections=tuple(filter(_says_something, sections)))


def _naming_nobody(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in texts if not _RATER.search(text))


def _without(section: Section) -> Section:
    return replace(
        section,
        paragraphs=_naming_nobody(section.paragraphs),
        parts=tuple(_without_words(part) for part in section.parts if not _is_raw(part)),
    )


def _without_words(part: Part) -> Part:
    """What raters wrote beside the options of a question is counted, but not quoted; notes name nobody."""
    if not isinstance(part, Table):
        return part
    rows = tuple(tuple(OWN_WORDS if _is_quoted(cell) else cell for cell in row) for row in part.rows)
    return replace(part, rows=rows, notes=_naming_nobody(part.notes))


def _is_quoted(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.startswith(f"{OWN_WORDS}:")


def _is_raw(part: Part) -> bool:
    """Whether a part shows single raters or texts; of tables also where a cell, of figures where the drawing names one."""
    if isinstance(part, Turns):
        return True
    if isinstance(part, Figure):
        return bool(_RATER.search(part.alt) or _RATER.search(json.dumps(part.spec.get("data", {}), default=str)))
    texts = [
        (column.name, cell)
        for row in part.rows
        for column, cell in zip(part.columns, row, strict=True)
        if isinstance(cell, str) and cell
    ]
    return any(_NUMBERED.sub("", name) not in SHOWN or _RATER.search(text) for name, text in texts)


def _says_something(section: Section) -> bool:
    return bool(section.parts or section.paragraphs or section.problem)
