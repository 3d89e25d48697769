"""What the verbs that look at ratings share: features, an engine for large data, and writing what was found."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dialometer.learned.engines import Engine
    from dialometer.learned.neighbours import Features
    from dialometer.learned.rated import Rated
    from dialometer.model.report import Report
    from dialometer.retrieval.work import Work

FeaturesOf = Annotated[
    Path | None,
    typer.Option(
        "--evaluator",
        "-e",
        help="Features of this trained evaluator; by default behaviour and meaning as the best recipe sees them.",
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the page and tables go.")]
EngineName = Annotated[str, typer.Option("--engine", help="local, or ray for a cluster.")]
Address = Annotated[str, typer.Option("--address", help="Address of a running Ray cluster.")]


def features_of(rated: Sequence[Rated], evaluator: Path | None, work: Work) -> Features:
    """Standardised features of the dialogues: such as need no training, or those of a trained evaluator's encoder."""
    from dialometer.learned.neighbours import standardise

    dialogues = [one.dialogue for one in rated]
    if evaluator is None:
        from dialometer.learned.best_kernel import quality_space
        from dialometer.learned.features import describe

        return standardise(quality_space(describe(dialogues, work)))
    from dialometer.learned.best_evaluator import BestEvaluator
    from dialometer.learned.fast_encoding import quick_features
    from dialometer.learned.model_file import load_evaluator

    loaded = load_evaluator(evaluator, work.device)
    if isinstance(loaded, BestEvaluator):
        return standardise(loaded.features(dialogues, work))
    encoder = loaded.members[0].model.encoder
    tokens = encoder.tokens(dialogues)
    return standardise(quick_features(encoder, tokens, report=lambda n, total: work.report("Encoding", n, total)))


@contextmanager
def engine_of(name: str, address: str) -> Iterator[Engine]:
    """The engine of that name, ended afterwards where it was started here."""
    from dialometer.learned.engines import OnRay, open_engine

    opened = open_engine(name, address=address)
    try:
        yield opened
    finally:
        if isinstance(opened, OnRay):
            opened.close()


def command_line() -> str:
    """The command as it was typed, for whoever wants the same again."""
    return shlex.join(["dialometer", *sys.argv[1:]])


def write_report(report: Report, folder: Path, *, as_json: bool) -> None:
    """The page, the tables and the drawings; then the answer, or everything as JSON."""
    from dialometer.report import render, report_to_json

    render(report, folder, formats=["html", "csv", "json", "figures"])
    if as_json:
        typer.echo(report_to_json(report), nl=False)
        return
    _tell(report, folder)


def _tell(report: Report, folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table as Printed

    from dialometer.cli._console import results
    from dialometer.report.written import write_table

    results.print(f"[bold]{escape(report.summary.answer)}[/]\n{escape(report.summary.certainty)}", soft_wrap=True)
    for warning in report.summary.warnings:
        results.print(f"[yellow]•[/] {escape(warning)}", soft_wrap=True)
    for table in report.tables():
        written: Any = write_table(table)
        printed = Printed(
            *(head.label for head in written.headings),
            box=None,
            pad_edge=False,
            header_style="bold",
            title=escape(table.title),
            title_justify="left",
        )
        for row in written.rows:
            printed.add_row(*(escape(f"{word.value} {word.interval}".strip()) for word in row))
        results.print()
        results.print(printed)
    results.print(f"\nOpen [bold]{escape(str(folder / 'index.html'))}[/]", soft_wrap=True)
