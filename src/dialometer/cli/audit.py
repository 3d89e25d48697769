"""What commands do with a study goes into the audit log that the dashboard shows, beside what accounts did there."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path

import typer

from dialometer.model.file_names import DATABASE_FILE


def log_action(folder: Path, database: str, action: str, detail: str = "") -> None:
    """Adds an entry to the log of the study, or of the dashboard above it; a draft that has neither has no log yet."""
    from dialometer.errors import StorageError
    from dialometer.flow.engine import now_ms
    from dialometer.storage.access.audit_log import AuditLog
    from dialometer.storage.store import Store

    target: str | Path | None = database or next((file for file in _logs(folder) if file.exists()), None)
    if target is None:
        return
    try:
        with Store.open(target, create=False) as store:
            AuditLog(store.database).add(command_line_user(), action, detail, now_ms(), study=folder.resolve().name)
    except (StorageError, OSError) as error:
        typer.echo(f"This is not in the audit log: {error}", err=True)


def command_line_user() -> str:
    """Who works on the command line: the user of the operating system."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # a container may run under a number that nobody is called by
        return "command line"


def _logs(folder: Path) -> Iterator[Path]:
    from dialometer.web.dashboard.running_studies import ACCOUNTS_FILES

    yield folder / DATABASE_FILE
    yield from (folder.resolve().parent / name for name in ACCOUNTS_FILES)
