"""dialometer restore: put a backup in the place of what is there, without deleting anything."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from dialometer.cli.options import AsJson, Database


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="restore", epilog="Example: dialometer restore backups/monday.zip my-study")
    def restore_(
        file: Annotated[
            Path, typer.Argument(metavar="FILE", help="The backup, or a folder of them.", show_default=False)
        ],
        folder: Annotated[
            Path, typer.Argument(metavar="DIR", help="Folder of the study; a new one is made.", show_default=False)
        ],
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask before replacing what is there.")] = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Restore a study from a backup. What is there now is moved to another folder, never deleted.

        A running server must be stopped first. With --database, the backup goes into PostgreSQL, whatever it was made from.
        """
        from dialometer.errors import DialometerError
        from dialometer.exchange.backups.packing import opened_backup
        from dialometer.exchange.backups.restoring import refuse_while_served, restore

        if file.is_dir():
            _restore_several(file, folder, database, is_sure=yes, as_json=as_json)
            return
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            refuse_while_served(folder, database)
            with opened_backup(file, folder) as (unpacked, manifest):
                _ask(folder, database, unpacked, manifest, is_sure=yes)
                refuse_while_served(folder, database)
                done = restore(unpacked, manifest, folder, database, datetime.now(UTC))
        finally:
            if is_new and not any(folder.iterdir()):
                folder.rmdir()
        problems = [check for check in done.checks if check.state == "problem"]
        if as_json:
            checks = [{"name": check.name, "state": check.state, "text": check.text} for check in done.checks]
            typer.echo(
                json.dumps(
                    {**manifest, "moved_to": done.aside, "withdrawn_again": done.n_withdrawn, "checks": checks},
                    indent=2,
                    ensure_ascii=False,
                )
            )
        else:
            _show(folder, manifest, done.aside, done.n_withdrawn)
        if problems:
            raise DialometerError(
                f"the restored database is not in order: {problems[0].name}: {problems[0].text}",
                where=str(folder),
                remedy="restore another backup",
            )


def _restore_several(source: Path, folder: Path, database: str, *, is_sure: bool, as_json: bool) -> None:
    from dialometer.cli.study._several_studies import restore_all
    from dialometer.errors import DialometerError

    if folder.exists() and any(folder.iterdir()) and not is_sure:
        typer.echo(f"What the backups replace in {folder} is moved aside.", err=True)
        typer.confirm("Restore all backups?", abort=True, err=True)
    done = restore_all(source, folder, database, datetime.now(UTC))
    if as_json:
        summary = [{"name": name, "moved_to": restored.aside, **manifest} for name, manifest, restored in done]
        typer.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        for name, manifest, restored in done:
            _show(folder / name, manifest, restored.aside, restored.n_withdrawn)
    for name, _, restored in done:
        problem = next((check for check in restored.checks if check.state == "problem"), None)
        if problem is not None:
            message = f"the restored database of '{name}' is not in order: {problem.name}: {problem.text}"
            raise DialometerError(message, where=str(folder), remedy="restore another backup")


def _ask(folder: Path, database: str, unpacked: Path, manifest: dict[str, Any], *, is_sure: bool) -> None:
    from dialometer.cli.study.backup import holding
    from dialometer.exchange.backups.restoring import files_to_replace, present

    there = present(folder, database)
    replaced = files_to_replace(unpacked, folder)
    if is_sure or not (there or replaced):
        return
    typer.echo(f"The backup of {manifest['made_at']} holds {holding(manifest)}.", err=True)
    if there:
        typer.echo(f"There is {there} now; it is moved aside.", err=True)
    if replaced:
        typer.echo(f"Moved aside as well, because they differ: {', '.join(replaced)}.", err=True)
    typer.confirm("Restore the backup?", abort=True, err=True)


def _show(folder: Path, manifest: dict[str, Any], aside: str, n_withdrawn: int) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.cli.study.backup import holding

    results.print(f"Restored [bold]{escape(str(folder))}[/] as of {manifest['made_at']}", soft_wrap=True)
    if manifest.get("kind") != "accounts":
        results.print(f"  {holding(manifest)}", soft_wrap=True)
    if aside:
        results.print(f"  What was there before is in {escape(aside)}", soft_wrap=True)
    if n_withdrawn:
        results.print(
            f"  Withdrew after this backup, and erased again: {n_withdrawn:,} session{'' if n_withdrawn == 1 else 's'}"
        )
    missing = [name for name in manifest["left_out"] if not (folder / name).exists()]
    if missing:
        results.print(
            f"[yellow]Missing:[/] {escape(', '.join(missing))} was not in the backup; put it back before you serve",
            soft_wrap=True,
        )
    if manifest.get("kind") != "accounts":
        results.print(f"Next: dialometer verify {escape(str(folder))}", soft_wrap=True)
