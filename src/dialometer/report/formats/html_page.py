"""The report as one page that stands alone: no other host, no script, light and dark, phone and paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from dialometer.markup.markdown import render_markdown
from dialometer.model.report import Figure, Part, Report, Section, Table, Turns
from dialometer.report import numbers as labels
from dialometer.report.drawing import DrawingError, Drawings
from dialometer.report.interval_bar import interval_bar
from dialometer.report.render import FORMATS, Rendering, UniqueNames, file_name, with_file_names
from dialometer.report.theme import page_style
from dialometer.report.written import write_table


@FORMATS.register("html")
def write(rendering: Rendering) -> list[Path]:
    """``index.html``."""
    path = rendering.folder / "index.html"
    path.write_text(html_page(rendering.report, rendering.drawings), encoding="utf-8", newline="\n")
    return [path]


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure's drawings for wide and narrow places, or why there is none."""

    wide: Markup | None = None
    narrow: Markup | None = None
    problem: str = ""


def html_page(report: Report, drawings: Drawings | None = None, *, note: str = "") -> str:
    """The whole page. A copy for others has a note at its top, and search engines are asked to leave it alone."""
    sentence, command = labels.reproduce_lines(report)
    names = UniqueNames()
    return _template("page.html").render(
        **_names(drawings or Drawings(), _numbers(report), names),
        report=report,
        note=note,
        sections=_with_ids(report.main_sections, names),
        appendix=_with_ids(report.appendix, names),
        style=Markup(page_style()),  # nosec B704  # our own stylesheet
        reproduce_sentence=sentence,
        reproduce_command=command,
        other_facts=labels.other_facts(report),
    )


def _with_ids(sections: Iterable[Section], names: UniqueNames) -> list[tuple[str, Section]]:
    return [(names.next(f"section-{file_name(section.name)}"), section) for section in sections]


def html_part(part: Part) -> str:
    """One table, figure or transcript as a fragment, for notebooks and other pages."""
    return _template("fragment.html").render(**_names(Drawings(), {}, UniqueNames()), part=part)


def _names(drawings: Drawings, numbers: Mapping[int, str], names: UniqueNames) -> dict[str, Any]:
    """What the templates may call."""
    return {
        "labels": labels,
        "kind_of": _kind_of,
        "number_of": lambda part: numbers.get(id(part), ""),
        "chart": lambda figure, name: _chart(figure, name, drawings),
        "write_table": write_table,
        "write_headline": labels.write_headline,
        "interval_bar": interval_bar,
        "new_id": lambda part: names.next(f"{_kind_of(part)}-{file_name(part.name)}"),
        "trimmed": _trimmed,
        "markdown": lambda text: Markup(render_markdown(text)),  # nosec B704  # cleaned there
    }


def _trimmed(text: str) -> tuple[str, str, str]:
    """Space before, the text, space after: only the text itself is marked as changed."""
    core = text.strip()
    before, _, after = text.partition(core) if core else (text, "", "")
    return before, core, after


def _kind_of(part: Part) -> str:
    return {Table: "table", Figure: "figure", Turns: "turns"}[type(part)]


def _numbers(report: Report) -> dict[int, str]:
    """Tables and figures are numbered in the order they appear, so that they can be cited."""
    tables, figures = with_file_names(report.tables()), with_file_names(report.figures())
    numbers = {id(table): f"Table {i}" for i, (table, _) in enumerate(tables, start=1)}
    return numbers | {id(figure): f"Figure {i}" for i, (figure, _) in enumerate(figures, start=1)}


def _chart(figure: Figure, name: str, drawings: Drawings) -> Chart:
    try:
        wide = Markup(drawings.inline(figure, name))  # nosec B704  # a drawing of ours
        narrow = Markup(drawings.inline(figure, name, is_narrow=True)) if drawings.has_narrow(figure) else None  # nosec B704
    except DrawingError as error:
        return Chart(problem=f"this figure {error.message}")
    return Chart(wide, narrow)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dialometer.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["words"] = lambda name: re.sub(r"[_-]+", " ", str(name).removeprefix("n_"))
    environment.filters["sentence"] = labels.as_sentence
    return environment


def _template(name: str) -> Template:
    return _environment().get_template(name)
