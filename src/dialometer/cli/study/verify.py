"""dialometer verify: whether all that was collected is there, once, and in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study

if TYPE_CHECKING:
    from dialometer.model.study import Study
    from dialometer.storage.safety.checks import Check
    from dialometer.storage.store import Store


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="verify", epilog="Example: dialometer verify my-study")
    def verify(folder: StudyDir, database: Database = "", as_json: AsJson = False) -> None:
        """Check a study's data: the file, gaps, duplicate answers, orphaned rows, and every acknowledged screen.

        Reads everything and changes nothing, also while the server runs. Ends with status 1 if anything is wrong.
        """
        study = open_study(folder)
        checks = _check_files(folder, database)
        if not any(check.state == "problem" for check in checks):
            with open_store(folder, database, create=False) as store:
                checks += _check_store(study, store, folder)
        problems = [check for check in checks if check.state == "problem"]
        if as_json:
            listed = [{"name": check.name, "state": check.state, "text": check.text} for check in checks]
            typer.echo(json.dumps({"is_whole": not problems, "checks": listed}, indent=2, ensure_ascii=False))
        else:
            _show(checks)
        if problems:
            raise typer.Exit(1)


def _check_files(folder: Path, database: str) -> list[Check]:
    from dialometer.model.file_names import DATABASE_FILE
    from dialometer.storage.safety.checks import Check
    from dialometer.storage.safety.files import is_open_elsewhere, log_mismatch

    path = folder / DATABASE_FILE
    if database or not path.exists() or is_open_elsewhere(path):
        return []
    mismatch = log_mismatch(path)
    return [Check("files", "problem", mismatch)] if mismatch else []


def _check_store(study: Study, store: Store, folder: Path) -> list[Check]:
    from dialometer.flow.stored_screens import unfinished_screens
    from dialometer.storage.safety.acknowledged import compare
    from dialometer.storage.safety.checks import check_acknowledged, check_database, problems_or

    acknowledged = compare(folder, store.database)
    problems, n_seen, n_other = unfinished_screens(study, store)
    other = f"; {n_other:,} of another version of the study were not looked at" if n_other else ""
    screens = problems_or("screens", problems, f"{n_seen:,} sessions hold all screens they have passed{other}")
    return [*check_database(store), screens, check_acknowledged(acknowledged)]


def _show(checks: list[Check]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    table = Table(box=None, pad_edge=False, show_header=False)
    colours = {"ok": "green", "problem": "bold red", "skipped": "dim"}
    for check in checks:
        table.add_row(f"[{colours[check.state]}]{check.state}[/]", check.name, escape(check.text))
    results.print(table)
    n = sum(check.state == "problem" for check in checks)
    results.print(f"{n} problem{'' if n == 1 else 's'} found" if n else "All that was collected is there")
