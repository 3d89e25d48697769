"""dialometer report: what a study found, as one page and as files."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import Address, AsJson, Database, EngineName, open_store, open_study

if TYPE_CHECKING:
    from dialometer.analysis.base.exploring import DataChoice
    from dialometer.model.report import Report
    from dialometer.neural.engines import Engine


OUT_FOLDER = "report"


def _formats_beginning(start: str) -> list[str]:
    """For the shell, which completes what was typed so far."""
    from dialometer.report import FORMATS

    return [name for name in FORMATS.names() if name.startswith(start)]


def _return_large_arrays() -> None:
    """What is freed goes back to the system at once: arrays of 8 MB and more, and all columns of polars.

    By default the C library of Linux keeps freed arrays of up to 32 MB for later ones, between others that are still in use,
    and polars keeps its own for seconds: at a million judgments 60 and 50 MB that nobody uses.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")  # read when polars is loaded
    of_mapped_blocks = -3  # M_MMAP_THRESHOLD in malloc.h
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # other C libraries have no such setting
            ctypes.CDLL(None).mallopt(of_mapped_blocks, 8_000_000)


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
                help="html, markdown, json, csv, latex, figures (SVG, PNG, CSV) or shared (for others, without raw data); "
                "all by default. Repeat for more.",
                show_default=False,
                autocompletion=_formats_beginning,
            ),
        ] = None,
        seed: Annotated[
            int | None, typer.Option("--seed", min=0, help="Of resampling; the study's own seed by default.")
        ] = None,
        resamples: Annotated[
            int | None,
            typer.Option("--resamples", min=100, help="Bootstrap resamples; what the study declares by default."),
        ] = None,
        source: Annotated[
            list[str] | None,
            typer.Option(
                "--source", help="person, imported, model or simulated; human raters by default. Repeat for more."
            ),
        ] = None,
        by: Annotated[
            list[str] | None,
            typer.Option(
                "--by",
                metavar="QUESTION",
                help="Also show results by groups of raters: a question about them, such as gender. Repeat for more.",
            ),
        ] = None,
        only: Annotated[
            list[str] | None,
            typer.Option(
                "--only",
                metavar="NAME=VALUE",
                help="Explore a part of the data: condition=…, item=… or the answer to a question, such as gender=female "
                "or age>=30. Everything is then exploratory. Repeat for more.",
            ),
        ] = None,
        database: Database = "",
        engine: EngineName = "local",
        address: Address = "",
        as_json: AsJson = False,
    ) -> None:
        """Analyse a study's data and write the report. The study's design decides which statistics are used.

        Unfinished studies get an interim report. The same data and seed always give the same report.
        From an archive it analyses the archived data again and compares every table with the archived report.
        """
        # The matrices here are small: several threads of linear algebra would wait for each other more than they help.
        for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(library, "1")
        _return_large_arrays()
        from dialometer.analysis.base.choose import analyse
        from dialometer.analysis.base.exploring import DataChoice
        from dialometer.exchange.exports.archive import is_archive
        from dialometer.neural.engines import engine_of
        from dialometer.report import FORMATS, render

        sources = checked_sources(source or [])
        questions = [name.strip() for entry in by or () for name in entry.split(",") if name.strip()]
        choices = [DataChoice.parse(entry) for entry in only or ()]
        for name in formats or ():
            FORMATS.get(name)
        if is_archive(folder):
            target = out or folder.resolve().with_name(f"{folder.stem}-report")
            with show_steps() as step, engine_of(engine, address) as opened:
                report, files, compared = _archived_report(
                    folder, target, formats, seed, resamples, sources, questions, choices, step, opened
                )
            print_result(report, target, files, as_json=as_json, compared=compared)
            return
        study = open_study(folder)
        target = out or folder / OUT_FOLDER
        with show_steps() as step:
            step("Analysing")
            with open_store(folder, database, create=False) as store, engine_of(engine, address) as opened:
                report = analyse(
                    study,
                    store,
                    seed=seed,
                    n_resamples=resamples,
                    sources=sources,
                    by=questions,
                    only=choices,
                    engine=opened,
                )
            if database:
                report = _with_command(report, f"{report.provenance['command']} --database DATABASE_URL")
            step("Writing")
            files = render(report, target, formats=formats or None)
        print_result(report, target, files, as_json=as_json)


def _with_command(report: Report, command: str) -> Report:
    """The report with the command that was used; a database's address may hold a password and is not repeated."""
    return replace(report, provenance={**report.provenance, "command": command})


def print_result(
    report: Report, target: Path, files: list[Path], *, as_json: bool, compared: dict[str, object] | None = None
) -> None:
    """Says on the terminal, or as JSON, what a report found and where it is."""
    if as_json:
        content = _as_json(report, target, files) | ({"compared": compared} if compared else {})
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    _print_summary(report, target, files)
    if compared:
        _print_comparison(compared)


def checked_sources(names: list[str]) -> tuple[str, ...]:
    """The sources of raters that were named, in the usual order; an unknown one is an error."""
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
def show_steps() -> Iterator[Callable[[str], None]]:
    """A spinner with the step at hand on a terminal; a plain line for each step elsewhere."""
    from dialometer.cli.console import errors

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
        "verdicts": [
            {"hypothesis": verdict.hypothesis, "verdict": verdict.result, "tests": verdict.tests}
            for verdict in summary.verdicts
        ],
        "next_steps": list(summary.next_steps),
        "warnings": list(summary.warnings),
        "is_finished": report.is_finished,
        "sections": [section.name for section in report.sections],
        "problems": {section.name: section.problem for section in report.sections if section.problem},
        "provenance": dict(report.provenance),
        "folder": str(target),
        "files": [str(path) for path in files],
    }


def _print_summary(report: Report, target: Path, files: list[Path]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import print_prose, results

    summary = report.summary
    print_prose(f"[bold]{escape(report.title)}[/]\n")
    print_prose(escape(summary.answer))
    if summary.certainty:
        print_prose(f"\n{escape(summary.certainty)}", style="dim")
    for warning in summary.warnings:
        print_prose(f"[yellow]•[/] {escape(warning)}")
    if len(summary.verdicts) > 1:
        results.print("\nHypotheses declared in advance:")
        for verdict in summary.verdicts:
            print_prose(f"  [bold]{verdict.words}[/]: {escape(verdict.hypothesis)}")
    if summary.next_steps:
        results.print("\nWhat to do next:")
        for next_step in summary.next_steps:
            print_prose(f"  • {escape(next_step)}")
    lost = [section for section in report.sections if section.problem]
    if lost:
        results.print("\nParts that could not be computed:")
        for section in lost:
            print_prose(f"  {escape(section.title)}: {escape(section.problem)}")
    page = next((path for path in files if path.name.endswith(".html")), None)
    results.print(
        f"\n{len(files)} file{'' if len(files) == 1 else 's'} in [bold]{escape(str(target))}[/]", soft_wrap=True
    )
    if page is not None:
        results.print(f"Open [bold]{escape(str(page))}[/]", soft_wrap=True)


# from an archive: analysed again, and compared with the report in it


def _archived_report(
    archive: Path,
    target: Path,
    formats: list[str] | None,
    seed: int | None,
    resamples: int | None,
    sources: tuple[str, ...],
    by: list[str],
    only: list[DataChoice],
    step: Callable[[str], None],
    engine: Engine,
) -> tuple[Report, list[Path], dict[str, Any]]:
    """The report, its files, and what came of the comparison. Settings are the archive's own unless others are given."""
    from dialometer.analysis.base.choose import analyse
    from dialometer.analysis.base.data import load_exported
    from dialometer.design.load import load_study
    from dialometer.design.lock import verify
    from dialometer.exchange.exports.archive import DATA, REPORT, STUDY, opened_archive
    from dialometer.report import render

    step("Unpacking")
    with opened_archive(archive) as (inside, manifest):
        study = load_study(inside / STUDY)
        verify(study, inside / STUDY)
        settings = manifest["analysis"]
        data = load_exported(study, inside / DATA, sources=sources or tuple(settings["sources"]))
        step("Analysing")
        report = analyse(
            study,
            data,
            seed=settings["seed"] if seed is None else seed,
            n_resamples=resamples or settings["n_resamples"],
            by=by,
            only=only,
            engine=engine,
        )
        command = str(report.provenance["command"]).split(" --", 1)[1]
        report = _with_command(report, f"dialometer report {shlex.quote(archive.name)} --{command}")
        step("Writing")
        files = render(report, target, formats=formats or settings["formats"])
        with TemporaryDirectory(prefix="dialometer-tables-") as name:
            render(report, Path(name), formats=["csv"])
            compared = _compare(inside / REPORT, Path(name))
    from dialometer._version import __version__

    is_other = seed is not None or resamples is not None or bool(sources or by or only)
    return report, files, {**compared, "made_with": manifest["dialometer"], "this": __version__, "is_other": is_other}


def _compare(archived: Path, report: Path) -> dict[str, Any]:
    """Tables (CSV files) byte for byte."""
    names = sorted({path.relative_to(root).as_posix() for root in (archived, report) for path in root.rglob("*.csv")})
    differing = [name for name in names if _content(archived / name) != _content(report / name)]
    return {"n_tables": len(names), "n_same": len(names) - len(differing), "differing": differing}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _print_comparison(compared: dict[str, Any]) -> None:
    """The comparison in words."""
    from rich.markup import escape

    from dialometer.cli.console import results

    n, n_same = compared["n_tables"], compared["n_same"]
    if not compared["differing"]:
        results.print(f"[green]All {n} tables are the same as in the archive, byte for byte.[/]")
        return
    results.print(f"[yellow]{n_same} of {n} tables are the same as in the archive; these differ:[/]")
    for name in compared["differing"]:
        results.print(f"  {escape(name)}")
    if compared["is_other"]:
        results.print("Other settings than the archive's were asked for, so some must.")
    elif compared["made_with"] != compared["this"]:
        results.print(f"The archive was made with dialometer {compared['made_with']}, this is {compared['this']}.")
