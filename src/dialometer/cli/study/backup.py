"""dialometer backup: one file with all that a study has collected, while the server runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Database, StudyDir

if TYPE_CHECKING:
    from dialometer.web.dashboard.running_studies import StudyFolders


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="backup", epilog="Example: dialometer backup my-study --to backups/monday.zip")
    def backup(
        folder: StudyDir,
        to: Annotated[
            Path | None,
            typer.Option("--to", metavar="FILE", help="File or folder; by default DIR-backup-TIME.zip beside DIR."),
        ] = None,
        with_secrets: Annotated[
            bool, typer.Option("--with-secrets", help="Also files with secrets, such as invitations.txt.")
        ] = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Copy a study's database and files into one file, while the server runs, and check the copy.

        In a folder of several studies, each gets a file, and the dashboard's accounts another. They contain answers and
        identifiers of raters: keep them as safe as the study itself.
        """
        from dialometer.cli.study._several_studies import studies_in
        from dialometer.errors import DialometerError, NotEnoughData
        from dialometer.exchange.backups.packing import make_backup
        from dialometer.model.file_names import DATABASE_FILE, STUDY_FILE

        several = studies_in(folder, database)
        if several is not None:
            _back_up_several(several, folder, to, with_secrets=with_secrets, as_json=as_json)
            return
        if not (folder / STUDY_FILE).is_file():
            raise DialometerError("there is no study here", where=str(folder), remedy="name the folder of a study")
        if not database and not (folder / DATABASE_FILE).exists():
            raise NotEnoughData(
                "nothing has been collected in this study yet",
                where=str(folder / DATABASE_FILE),
                remedy="its files are all there is; if the data are in PostgreSQL, name it with --database",
            )
        now = datetime.now(UTC)
        name = f"{folder.resolve().name}-backup-{now:%Y%m%d-%H%M%S}.zip"
        target = to / name if to and to.is_dir() else to or folder.resolve().with_name(name)
        manifest = make_backup(folder, database, target, now, with_secrets=with_secrets)
        summary = {"backup": str(target), "n_bytes": target.stat().st_size, **manifest}
        if as_json:
            typer.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        else:
            _show(summary)


def _back_up_several(held: StudyFolders, folder: Path, to: Path | None, *, with_secrets: bool, as_json: bool) -> None:
    from dialometer.cli.study._several_studies import back_up_all
    from dialometer.errors import DialometerError

    now = datetime.now(UTC)
    target = to or folder.resolve().with_name(f"{folder.resolve().name}-backup-{now:%Y%m%d-%H%M%S}")
    backups, without, failed = back_up_all(held, target, now, with_secrets=with_secrets)
    if as_json:
        why = {name: str(error) for name, error in failed.items()}
        typer.echo(
            json.dumps({"backups": backups, "without_data": without, "failed": why}, indent=2, ensure_ascii=False)
        )
    else:
        for summary in backups:
            _show(summary)
        if without:
            typer.echo(f"Nothing collected yet, so no backup: {', '.join(without)}")
    for name, error in failed.items():
        raise DialometerError(
            f"no backup of {', '.join(failed)}; of '{name}': {error.message}", where=error.where, remedy=error.remedy
        )


def _show(summary: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    size = f"{summary['n_bytes'] / 1000:,.0f} KB"
    results.print(f"Wrote [bold]{escape(summary['backup'])}[/] ({size}), and checked it", soft_wrap=True)
    if summary["kind"] == "study":
        results.print(f"  {holding(summary)}", soft_wrap=True)
    n_files = len(summary["files"]) - 1
    if summary["kind"] == "accounts":
        results.print("  The accounts of the dashboard: names, roles, and hashes of passwords")
        return
    results.print(f"  {n_files} file{'' if n_files == 1 else 's'} of the study's folder")
    if summary["left_out"]:
        names = escape(", ".join(summary["left_out"]))
        results.print(f"  Not in it, because it is secret: {names} (--with-secrets adds it)", soft_wrap=True)
    results.print("It holds answers and identifiers of raters: keep it safe, and no longer than the study promises.")


def holding(manifest: dict[str, Any]) -> str:
    """What a backup holds, in a sentence."""
    held = ", ".join(f"{n:,} {name}" for name, n in manifest["holds"].items())
    last = f"; the last of {manifest['last_screen_at']}" if manifest["last_screen_at"] else ""
    return f"{held}{last}"
