"""dialometer import: judgments that were collected elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database
from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.exchange.importing import ImportedFile, ImportResult
    from dialometer.exchange.study_draft import WrittenStudy


LONG_FILE_BYTES = 5_000_000


TargetDir = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder of the study; without study.yaml a new one is written.", show_default=False
    ),
]
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Files to import.", show_default=False)]
FormatName = Annotated[
    str,
    typer.Option(
        "--format",
        help="dialometer, long, choices, candidates, batch, rankme, votes, preferences, acute, dialogues, "
        "potato or label_studio; recognised by default.",
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="ROLE=COLUMN",
        help="Which column has which role; ROLE=:TEXT if it is the same for all rows. Repeat for more.",
    ),
]
Criteria = Annotated[str, typer.Option("--criteria", metavar="COLUMN,…", help="Columns with one criterion each.")]
Questions = Annotated[str, typer.Option("--questions", metavar="COLUMN,…", help="Columns about the rater.")]
TimeFormat = Annotated[
    str, typer.Option("--time-format", metavar="FORM", help="Format of times, such as '%m/%d/%Y %H:%M:%S'.")
]
Rules = Annotated[
    bool, typer.Option("--rules", help="Apply the study's quality rules (gold answers, checks) to the imported raters.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and check everything, store nothing.")]
EXAMPLE = "dialometer import my-study ratings.csv --format long --map rater=worker --criteria quality,fluency"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="import", epilog=f"Example: {EXAMPLE}")
    def import_(
        folder: TargetDir,
        files: Files,
        format_name: FormatName = "",
        columns: Map = None,
        criteria: Criteria = "",
        questions: Questions = "",
        time_format: TimeFormat = "",
        rules: Rules = False,
        dry_run: DryRun = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Import judgments that were collected elsewhere; a file with any problem is not imported.

        Every name must be known to the study and every value must fit its scale; what does not is listed with its line.
        If DIR contains no study, one is written from the files, so that it can be checked and reported.
        """
        from dialometer.exchange.columns import parse_map
        from dialometer.exchange.formats import FORMATS, ImportOptions
        from dialometer.exchange.importing import import_files

        if format_name:
            FORMATS.get(format_name)
        options = ImportOptions(parse_map(columns or []), _listed(criteria), _listed(questions), time_format)
        with _reporting(files) as report:
            done = import_files(
                folder,
                files,
                database or folder / DATABASE_FILE,
                format=format_name,
                options=options,
                at_ms=time.time_ns() // 1_000_000,
                is_dry_run=dry_run,
                with_rules=rules,
                report=report,
            )
        if not dry_run:
            log_action(folder, database, "imported judgments", ", ".join(file.name for file in files))
        if as_json:
            typer.echo(json.dumps(_as_json(done), indent=2, ensure_ascii=False, default=str))
        else:
            _print_result(done, folder)


def _listed(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


@contextmanager
def _reporting(files: list[Path]) -> Iterator[Callable[[Path, str, int], None]]:
    """A bar on a terminal for files that take a while; the lines are counted first, so that its end is known."""
    from dialometer.cli.console import ProgressBar, errors

    large = [file for file in files if file.is_file() and file.stat().st_size > LONG_FILE_BYTES]
    is_shown = errors.is_terminal and bool(large)
    n_lines = {file: _n_lines(file) for file in large} if is_shown else {}
    with ProgressBar("lines", is_shown=is_shown) as bar:
        yield lambda file, doing, line: bar.report(
            f"{doing} {file.name}", line, n_lines.get(file) or 0, label=f"{doing} {file}"
        )


def _n_lines(file: Path) -> int | None:
    with file.open("rb") as stream:
        if stream.read(2) == b"\x1f\x8b":
            return None
        stream.seek(0)
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b""))


def _as_json(done: ImportResult) -> dict[str, object]:
    return {
        "study": done.study.spec.name,
        "is_dry_run": done.is_dry_run,
        "files": [asdict(file) for file in done.files],
        "new_study": asdict(done.new_study) if done.new_study else None,
        "rules": asdict(done.rules) if done.rules else None,
    }


def _print_result(done: ImportResult, folder: Path) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    assumed: set[str] = set()
    for file in done.files:
        new = [assumption for assumption in file.assumed if assumption not in assumed]
        assumed.update(new)
        _print_file(replace(file, assumed=tuple(new)), done.study.spec.analysis.zeros, is_dry_run=done.is_dry_run)
    if done.new_study:
        _print_new_study(done.new_study, folder, is_dry_run=done.is_dry_run)
    _print_rules(done)
    if done.is_dry_run:
        results.print("\nNothing was stored: this was a dry run.")
        return
    shown = escape(str(folder))
    results.print(f"\nNext: [bold]dialometer check {shown}[/], then [bold]dialometer report {shown}[/]", soft_wrap=True)


def _print_rules(done: ImportResult) -> None:
    from dialometer.cli.console import results

    if done.rules is not None:
        results.print(
            f"The quality rules looked at {_n(done.rules.n_sessions, 'session')}: {done.rules.n_flagged:,} flagged, "
            f"{done.rules.n_excluded:,} of them excluded.",
            soft_wrap=True,
        )
        return
    names = ", ".join(dict.fromkeys(rule.rule for rule in done.study.spec.quality if rule.acts != "arrival"))
    if names:
        verb = "would not be" if done.is_dry_run else "were not"
        results.print(
            f"The study's quality rules ({names}) {verb} applied to these raters; --rules applies them.", soft_wrap=True
        )


ZERO_RULES = {
    "half_minimum": "half of the rater's smallest positive number",
    "exclude": "nothing: they are excluded",
    "error": "nothing: it stops and lists them",
}


def _print_file(file: ImportedFile, zeros: str, *, is_dry_run: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    verb = "Would import" if is_dry_run else "Imported"
    answers = f" and {_n(file.n_answers, 'answer')}" if file.n_answers else ""
    results.print(
        f"{verb} [bold]{escape(str(file.path))}[/] ({file.format}): {_n(file.n_judgments, 'judgment')}{answers} "
        f"by {_n(file.n_raters, 'rater')} on {_n(file.n_items, 'item')}",
        soft_wrap=True,
    )
    table = Table(show_header=False, box=None, pad_edge=False)
    if file.systems:
        table.add_row("  systems", escape(", ".join(file.systems)))
    table.add_row("  criteria", escape(", ".join(file.criteria)))
    used = [f"{role} ← {column}" for role, column in file.used.items()]
    if used:
        table.add_row("  columns", escape("; ".join(used)))
    if file.form:
        table.add_row("  read as", escape(", ".join(file.form)))
    for assumption in file.assumed:
        table.add_row("  [yellow]assumed[/]", escape(assumption))
    if file.unread:
        table.add_row("  [yellow]not read[/]", escape(", ".join(file.unread)))
    for reason, n in file.left_out.items():
        table.add_row("  [yellow]excluded[/]", f"{n:,} {escape(reason)}")
    if file.n_zeros:
        kept = f"{_n(file.n_zeros, 'rating')} of zero, which has no logarithm. Kept; the report uses in their place "
        table.add_row("  [yellow]zeros[/]", f"{kept}{ZERO_RULES[zeros]} (analysis: zeros: {zeros})")
    if file.n_simulated:
        table.add_row("  [yellow]simulated[/]", f"{_n(file.n_simulated, 'session')}; they stay marked as simulated")
    results.print(table)


def _print_new_study(study: WrittenStudy, folder: Path, *, is_dry_run: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    verb = "would be written" if is_dry_run else "was written"
    results.print(f"\n[bold]{escape(str(folder))}[/] held no study, so one {verb} from the data:", soft_wrap=True)
    results.print(f"  {', '.join(study.files)}")
    for criterion, scale in study.scales.items():
        results.print(f"  {criterion}: {scale}", markup=False, soft_wrap=True)
    if study.n_items_without_text:
        share = "all" if study.n_items_without_text == study.n_items else f"{study.n_items_without_text:,} of"
        results.print(
            f"  {share} {study.n_items:,} items have placeholders instead of texts, which the data do not hold"
        )
    if study.has_guessed_scales:
        results.print("  The scales are guessed from the values: correct them in study.yaml where you know better.")


def _n(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
