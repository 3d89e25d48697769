"""dialometer export: everything a study has collected, as files for other programs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study

if TYPE_CHECKING:
    from dialometer.exchange.exports.export import Export, Report
    from dialometer.model.study import Study
    from dialometer.storage.store import Store


OUT_FOLDER = "export"
_WHAT = {
    "answers": "answers to questionnaires and checks",
    "screens": "screens with their times",
    "flags": "flags of quality rules",
    "chat_turns": "turns of live conversations",
    "drawn_systems": "systems that were drawn for items: arenas and adaptive assignment",
    "pairs": "pairs of dialogues with the raters' label",
    "checklist_points": "points of checklists",
    "marks": "marks in texts",
    "adjudications": "what was settled, and between which judgments",
}


class FileFormat(StrEnum):
    """What the tables are written as."""

    csv = "csv"
    parquet = "parquet"
    jsonl = "jsonl"


class AnnotationTool(StrEnum):
    """Annotation tools whose forms a study can become."""

    potato = "potato"
    label_studio = "label_studio"


class TrainingFile(StrEnum):
    """Files to train models on."""

    preferences = "preferences"
    messages = "messages"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="export", epilog="Example: dialometer export my-study --format parquet --out my-data")
    def export(
        folder: StudyDir,
        file_format: Annotated[FileFormat, typer.Option("--format", help="Format of the tables.")] = FileFormat.csv,
        out: Annotated[
            Path | None, typer.Option("--out", metavar="FOLDER", help="Where to; by default 'export' in DIR.")
        ] = None,
        include_practice: Annotated[
            bool, typer.Option("--include-practice", help="Also judgments of practice.")
        ] = False,
        include_corrected: Annotated[
            bool, typer.Option("--include-corrected", help="Also answers that a rater later corrected.")
        ] = False,
        escape_formulas: Annotated[
            bool,
            typer.Option(
                "--escape-formulas/--plain-text",
                help="In CSV, put an apostrophe before texts that a spreadsheet would run as a formula.",
            ),
        ] = True,
        form: Annotated[
            AnnotationTool | None,
            typer.Option("--form", help="Instead of data, write the study as a form of another annotation tool."),
        ] = None,
        training: Annotated[
            TrainingFile | None,
            typer.Option(
                "--training",
                help="Instead of tables, one JSONL file to train on: pairs of chosen and rejected responses, or dialogues as "
                "messages with their judgments.",
            ),
        ] = None,
        criterion: Annotated[
            str, typer.Option("--criterion", help="The criterion of the preference pairs, where there are several.")
        ] = "",
        force: Annotated[bool, typer.Option("--force", help="Write into a folder that holds other files.")] = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Write judgments, answers, sessions, screens and flags as tables, with a dictionary that explains every column.

        Raters appear under pseudonyms only. The same data always give the same bytes.
        """
        from dialometer.exchange.exports.export import export_study

        study = open_study(folder)
        if form is not None:
            _write_form(study, form, out or folder / form.value, force=force, as_json=as_json)
            return
        if training is not None:
            target = out or folder / f"{training.value}.jsonl"
            with open_store(folder, database, create=False) as store:
                _write_training(study, store, training, target, criterion, force=force, as_json=as_json)
            log_action(folder, database, "downloaded the data", str(target))
            return
        with open_store(folder, database, create=False) as store:
            written = export_study(
                study,
                store,
                out or folder / OUT_FOLDER,
                format=file_format.value,
                include_practice=include_practice,
                include_corrected=include_corrected,
                escape_formulas=escape_formulas,
                force=force,
                report=_reporter(),
            )
        log_action(folder, database, "downloaded the data", str(written.folder))
        if as_json:
            typer.echo(json.dumps({"folder": str(written.folder), **written.manifest}, indent=2, ensure_ascii=False))
        else:
            _print_summary(written)


def _write_form(study: Study, tool: AnnotationTool, target: Path, *, force: bool, as_json: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.errors import DialometerError
    from dialometer.exchange.formats.label_studio import write_label_studio
    from dialometer.exchange.formats.potato import write_potato
    from dialometer.exchange.tool_form import KEY_FILE, tool_form

    if target.exists() and any(target.iterdir()) and not force:
        raise DialometerError("the folder is not empty", where=str(target), remedy="name another, or use --force")
    form = tool_form(study)
    files = (write_potato if tool is AnnotationTool.potato else write_label_studio)(form, target)
    if as_json:
        summary = {"folder": str(target), "files": [str(path) for path in files], "left_out": list(form.left_out)}
        typer.echo(json.dumps({**summary, "items": len(form.items), "fields": len(form.fields)}, indent=2))
        return
    results.print(
        f"Wrote [bold]{escape(str(target))}[/] for {tool.value}: {len(form.items):,} items, {len(form.fields)} fields",
        soft_wrap=True,
    )
    for reason in form.left_out:
        results.print(f"[yellow]excluded:[/] {escape(reason)}", soft_wrap=True)
    results.print(f"{KEY_FILE} says which system is where: keep it from raters, and beside the answers for the import.")
    results.print(
        f"Afterwards: [bold]dialometer import {escape(str(study.folder))} ANSWERS --format {tool.value}[/]",
        soft_wrap=True,
    )


def _write_training(
    study: Study, store: Store, kind: TrainingFile, target: Path, criterion: str, *, force: bool, as_json: bool
) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.errors import DialometerError
    from dialometer.exchange.dialogue_pairs import counted
    from dialometer.exchange.exports.training_files import message_lines, preference_lines
    from dialometer.readers.chat_writing import write_lines
    from dialometer.storage.table import long_table

    if target.is_dir() or (target.exists() and not force):
        raise DialometerError(
            "it is there already", where=str(target), remedy="name another --out FILE, or use --force"
        )
    table = counted(long_table(store.records.judgment_batches(), study))
    is_pairs = kind is TrainingFile.preferences
    lines = preference_lines(study, table, criterion) if is_pairs else message_lines(study, table)
    n = write_lines(target, lines.lines)
    if as_json:
        typer.echo(json.dumps({"file": str(target), "lines": n, "left_out": dict(lines.left_out)}, indent=2))
        return
    noun = "preference pairs" if is_pairs else "dialogues with judgments"
    results.print(f"Wrote [bold]{escape(str(target))}[/]: {n:,} {noun}", soft_wrap=True)
    for words, count in lines.left_out.items():
        results.print(f"[yellow]excluded:[/] {count:,} {escape(words)}", soft_wrap=True)


def _reporter() -> Report:
    """A line that counts on a terminal; nothing elsewhere, since an export is quick."""
    from dialometer.cli.console import errors

    def show(file: str, n_rows: int) -> None:
        if errors.is_terminal and n_rows > 100_000:
            errors.print(f"{file}: {n_rows:,} rows", end="\r")

    return show


def _print_summary(written: Export) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for file, n_rows in written.n_rows.items():
        name = Path(file).stem
        table.add_row(f"  {file}", f"{n_rows:,}", _about(name, written))
    table.add_row("  data_dictionary.md", "", "what every file, column and value means")
    table.add_row("  data_dictionary.json", "", "the same for programs")
    table.add_row("  export.json", "", "study, version, options, hashes")
    size = sum(file["n_bytes"] for file in written.manifest["files"].values())
    results.print(f"Wrote [bold]{escape(str(written.folder))}[/] ({written.format}, {_size(size)}):", soft_wrap=True)
    results.print(table)
    study = written.manifest["study"]
    version = f"version {study['version']}" if study["version"] else "not frozen"
    results.print(f"\nStudy [bold]{study['name']}[/], {version}, fingerprint {study['fingerprint'][:12]}…")
    if written.n_practice_left_out:
        results.print(
            f"{written.n_practice_left_out:,} practice judgments are excluded (--include-practice writes them too)."
        )
    if written.sources.get("simulated"):
        results.print(
            f"[yellow]{written.sources['simulated']:,} of {sum(written.sources.values()):,} sessions are simulated:[/] "
            "the column 'source' says which.",
            soft_wrap=True,
        )
    results.print(
        "Raters appear under pseudonyms only; free texts are as they were typed, so read them before you publish."
    )


def _about(name: str, written: Export) -> str:
    if name == "judgments":
        return f"judgments of {_people(written)}"
    if name == "sessions":
        states = ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(written.states.items()))
        excluded = f"; {written.n_excluded:,} excluded from the analysis" if written.n_excluded else ""
        return "sessions" + (f": {states}{excluded}" if states else "")
    return _WHAT.get(name, name.replace("_", " "))


def _people(written: Export) -> str:
    n = written.n_raters
    return f"{n:,} rater{'' if n == 1 else 's'}"


def _size(n_bytes: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes //= 1000
    return f"{n_bytes:,} GB"
