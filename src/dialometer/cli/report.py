"""dialometer report: what a study found, as one page and as files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli._study import AsJson, Database, open_store, open_study

if TYPE_CHECKING:
    from dialometer.model.report import Report

OUT_FOLDER = "report"


def _formats_beginning(start: str) -> list[str]:
    """For the shell, which completes what was typed so far."""
    from dialometer.report import FORMATS

    return [name for name in FORMATS.names() if name.startswith(start)]


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="report", epilog="Example: dialometer report my-study --format html --format csv")
    def report(
        folder: Annotated[
            Path, typer.Argument(metavar="DIR|ARCHIVE", help="Folder of the study, or its archive.", show_default=False)
        ],
        out: Annotated[
            Path | None, typer.Option("--out", metavar="FOLDER", help="Where to; by default 'report' in DIR.")
        ] = None,
        formats: Annotated[
            list[str] | None,
            typer.Option(
                "--format",
                help="html, markdown, json, csv, latex or figures (SVG, PNG); all if left out. Repeat for more.",
                show_default=False,
                autocompletion=_formats_beginning,
            ),
        ] = None,
        seed: Annotated[
            int | None, typer.Option("--seed", min=0, help="Of resampling; the study's own seed if left out.")
        ] = None,
        resamples: Annotated[
            int | None,
            typer.Option("--resamples", min=100, help="Bootstrap resamples; what the study declares if left out."),
        ] = None,
        source: Annotated[
            list[str] | None,
            typer.Option("--source", help="person, imported, model or simulated; people if left out. Repeat for more."),
        ] = None,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Analyse what a study has collected and write the report. The study's design decides which statistics are used.

        Works on unfinished studies too, and says that they are. The same data and seed always give the same report.
        From an archive it analyses the archived data again and compares every table with the archived report.
        """
        # The matrices here are small: several threads of linear algebra would wait for each other more than they help.
        for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(library, "1")
        from dialometer.analysis.choose import analyse
        from dialometer.exchange.archive import is_archive
        from dialometer.report import FORMATS, render

        sources = _checked_sources(source or [])
        for name in formats or ():
            FORMATS.get(name)
        if is_archive(folder):
            from dialometer.cli._archived_report import report_archive

            target = out or folder.resolve().with_name(f"{folder.stem}-report")
            with _steps() as step:
                made, files, compared = report_archive(folder, target, formats, seed, resamples, sources, step)
            _say(made, target, files, as_json=as_json, compared=compared)
            return
        study = open_study(folder)
        target = out or folder / OUT_FOLDER
        with _steps() as step:
            step("Analysing")
            with open_store(folder, database, create=False) as store:
                made = analyse(study, store, seed=seed, n_resamples=resamples, sources=sources)
            step("Writing")
            files = render(made, target, formats=formats or None)
        _say(made, target, files, as_json=as_json)


def _say(
    report: Report, target: Path, files: list[Path], *, as_json: bool, compared: dict[str, object] | None = None
) -> None:
    if as_json:
        told = _as_json(report, target, files) | ({"compared": compared} if compared else {})
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    _tell(report, target, files)
    if compared:
        from dialometer.cli._archived_report import tell_compared

        tell_compared(compared)


def _checked_sources(names: list[str]) -> tuple[str, ...]:
    from typing import get_args

    from dialometer.errors import UnknownName
    from dialometer.model.session import Source
    from dialometer.registry import did_you_mean

    known = list(get_args(Source))
    for name in names:
        if name not in known:
            raise UnknownName(f"there are no raters of source '{name}'", remedy=did_you_mean(name, known))
    return tuple(name for name in known if name in names)


@contextmanager
def _steps() -> Iterator[Callable[[str], None]]:
    """A spinner with the step at hand on a terminal; a plain line for each step elsewhere."""
    from dialometer.cli._console import errors

    if not errors.is_terminal:
        yield lambda text: errors.print(f"{text} …")
        return
    with errors.status("Reading the study …") as status:
        yield lambda text: status.update(f"{text} …")


def _as_json(report: Report, target: Path, files: list[Path]) -> dict[str, object]:
    summary = report.summary
    return {
        "answer": summary.answer,
        "certainty": summary.certainty,
        "warnings": list(summary.warnings),
        "is_finished": report.is_finished,
        "sections": [section.name for section in report.sections],
        "problems": {section.name: section.problem for section in report.sections if section.problem},
        "provenance": dict(report.provenance),
        "folder": str(target),
        "files": [str(path) for path in files],
    }


def _tell(report: Report, target: Path, files: list[Path]) -> None:
    from rich.markup import escape

    from dialometer.cli._console import results

    summary = report.summary
    results.print(f"[bold]{escape(report.title)}[/]\n", soft_wrap=True)
    results.print(escape(summary.answer), soft_wrap=True)
    if summary.certainty:
        results.print(f"\n{escape(summary.certainty)}", soft_wrap=True, style="dim")
    for warning in summary.warnings:
        results.print(f"[yellow]•[/] {escape(warning)}", soft_wrap=True)
    lost = [section for section in report.sections if section.problem]
    if lost:
        results.print("\nParts that could not be computed:")
        for section in lost:
            results.print(f"  {escape(section.title)}: {escape(section.problem)}", soft_wrap=True)
    page = next((path for path in files if path.name.endswith(".html")), None)
    results.print(
        f"\n{len(files)} file{'' if len(files) == 1 else 's'} in [bold]{escape(str(target))}[/]", soft_wrap=True
    )
    if page is not None:
        results.print(f"Open [bold]{escape(str(page))}[/]", soft_wrap=True)
