"""dialometer archive: one zip with the study, its data and its results, from which anyone gets the same numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database, StudyDir, check_place, open_store, open_study

if TYPE_CHECKING:
    from dialometer.model.report import Report


FORMATS = ("html", "markdown", "json", "csv")


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="archive", epilog="Example: dialometer archive my-study --out my-study.zip")
    def archive(
        folder: StudyDir,
        out: Annotated[
            Path | None,
            typer.Option("--out", metavar="FILE.ZIP", help="Where to; by default DIR-archive.zip beside DIR."),
        ] = None,
        seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of resampling; the study's own.")] = None,
        resamples: Annotated[
            int | None, typer.Option("--resamples", min=100, help="Bootstrap resamples; what the study declares.")
        ] = None,
        source: Annotated[
            list[str] | None,
            typer.Option("--source", help="Sources of raters in the report; human raters by default."),
        ] = None,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Make one zip: frozen study, pseudonymised judgments, analysis, report, environment, citation.

        'dialometer report FILE.ZIP' gives the same numbers again. The same data give the same bytes.
        """
        for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(library, "1")
        from dialometer.cli.results.report import checked_sources, show_steps

        study = open_study(folder)
        sources = checked_sources(source or [])
        name = f"{folder.resolve().name}-archive.zip"
        target = out / name if out and out.is_dir() else out or folder.resolve().with_name(name)
        check_place(target)
        settings = {"seed": seed, "n_resamples": resamples, "sources": sources}
        with TemporaryDirectory(prefix="dialometer-archive-") as inside, show_steps() as step:
            summary = _write(Path(inside), target, folder, study, database, settings, step)
        log_action(folder, database, "archived the study", target.name)
        if as_json:
            typer.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        else:
            _print_summary(summary)


def _write(
    inside: Path, target: Path, folder: Path, study: Any, database: str, settings: dict[str, Any], step: Any
) -> dict[str, Any]:
    from dialometer._version import __version__
    from dialometer.analysis.base.choose import analyse
    from dialometer.analysis.base.data import load_exported
    from dialometer.exchange.exports.archive import (
        DATA,
        REPORT,
        STUDY,
        citation,
        copy_study,
        environment,
        readme,
        requirements,
        write_archive,
    )
    from dialometer.exchange.exports.export import export_study
    from dialometer.exchange.exports.inventory import free_texts
    from dialometer.report import render

    step("Copying the study and its data")
    copied, about = copy_study(study, inside / STUDY)
    with open_store(folder, database, create=False) as store:
        export = export_study(copied, store, inside / DATA, include_practice=True)
    step("Analysing")
    data = load_exported(copied, inside / DATA, sources=settings["sources"])
    report = analyse(copied, data, seed=settings["seed"], n_resamples=settings["n_resamples"])
    step("Writing")
    render(report, inside / REPORT, formats=FORMATS)
    software = environment()
    for name, text in (
        ("environment.json", json.dumps(software, indent=1) + "\n"),
        ("requirements.txt", requirements(software["packages"])),
        ("CITATION.cff", citation(copied, version=str(about["version"] or 1), released=_last_day(report))),
        ("README.md", readme(copied, archive=target.name, sources=data.sources, about=about)),
    ):
        (inside / name).write_text(text, encoding="utf-8")
    head = {
        "dialometer": __version__,
        "study": {"name": copied.spec.name, "title": copied.spec.title, **about},
        "analysis": {
            "seed": report.provenance["seed"],
            "n_resamples": report.provenance["n_resamples"],
            "sources": list(data.sources),
            "formats": list(FORMATS),
        },
    }
    manifest = write_archive(inside, target, head)
    return {
        "archive": str(target),
        "n_bytes": target.stat().st_size,
        "n_files": len(manifest["files"]),
        "n_tables": len(report.tables()),
        "n_judgments": report.provenance.get("n_judgments", 0),
        "n_raters": export.n_raters,
        "was_frozen": about["was_frozen"],
        "withheld": about["withheld"],
        "answer": report.summary.answer,
        "free_texts": free_texts(copied),
    }


def _last_day(report: Report) -> str:
    """The day of the last judgment, so that the citation says when the data were complete; empty where it is unknown."""
    return str(report.provenance.get("last_judgment", ""))[:10]


def _print_summary(summary: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import print_prose, results

    print_prose(escape(summary["answer"]))
    size = f"{summary['n_bytes'] / 1000:,.0f} KB"
    results.print(
        f"\nWrote [bold]{escape(summary['archive'])}[/]: {summary['n_files']} files, {size}, {summary['n_tables']} tables, "
        f"{summary['n_judgments']:,} judgments of {summary['n_raters']:,} raters",
        soft_wrap=True,
    )
    if not summary["was_frozen"]:
        results.print("[yellow]The study was never frozen:[/] the archive says so. Freeze it before you collect data.")
    if summary["withheld"]:
        results.print(
            f"Not in the archive, because it names raters: {escape(', '.join(summary['withheld']))}", soft_wrap=True
        )
    if summary["free_texts"]:
        names = escape(", ".join(summary["free_texts"]))
        results.print(
            f"Raters could write freely in {names}: read data/answers.csv before you publish.", soft_wrap=True
        )
    results.print(
        f"Anyone gets the same numbers with [bold]dialometer report {escape(Path(summary['archive']).name)}[/]"
    )
