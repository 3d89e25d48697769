"""Backing up and restoring a folder of several studies: a file for each study, and one for the accounts of the dashboard."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialometer.errors import DialometerError

if TYPE_CHECKING:
    from dialometer.exchange.backups.restoring import Restored
    from dialometer.web.dashboard.running_studies import StudyFolders

ACCOUNTS = "dashboard"
"""The name of the file with the accounts; no study can have it."""


def studies_in(folder: Path, database: str) -> StudyFolders | None:
    """The studies of a folder that holds several; None where it is the folder of one study, or of none."""
    from dialometer.model.file_names import STUDY_FILE
    from dialometer.web.dashboard.running_studies import StudyFolders

    if not folder.is_dir() or (folder / STUDY_FILE).is_file():
        return None
    if database and "{study}" not in database:
        raise DialometerError(
            "these studies have a database each",
            where=database,
            remedy="write {study} in the place of the study's name",
        )
    held = StudyFolders(parent=str(folder), database=database)
    return held if held.names() else None


def back_up_all(
    held: StudyFolders, to: Path, at: datetime, *, with_secrets: bool
) -> tuple[list[dict[str, Any]], list[str], dict[str, DialometerError]]:
    """A backup of each study and of the accounts in a folder; gives their manifests, studies without data, and what failed.

    One study that fails, such as one with a damaged database, does not keep the others from their backups.
    """
    from dialometer.exchange.backups.packing import make_backup

    to.mkdir(parents=True, exist_ok=True)
    backups: list[dict[str, Any]] = []
    without: list[str] = []
    failed: dict[str, DialometerError] = {}

    def back_up(name: str, folder: Path, source: str | Path, kind: Literal["study", "accounts"]) -> None:
        target = to / f"{name}.zip"
        try:
            manifest = make_backup(folder, str(source), target, at, with_secrets=with_secrets, kind=kind)
        except DialometerError as error:
            failed[name] = error
        else:
            backups.append({"backup": str(target), "n_bytes": target.stat().st_size, **manifest})

    for name in held.names():
        source = held.database_of(name)
        if isinstance(source, Path) and not source.exists():
            without.append(name)
            continue
        back_up(name, held.folder(name), source, "study")
        if name in failed and not isinstance(source, Path) and not held.is_frozen(name):
            del failed[name]  # a draft has no database on a server yet
            without.append(name)
    accounts = held.accounts_database()
    if not isinstance(accounts, Path) or accounts.exists():
        back_up(ACCOUNTS, Path(held.parent), accounts, "accounts")
    if not backups and not failed:
        raise DialometerError("none of these studies has collected anything yet", where=held.parent)
    return backups, without, failed


def restore_all(source: Path, folder: Path, database: str, at: datetime) -> list[tuple[str, dict[str, Any], Restored]]:
    """Restore every backup of a folder into the folder of its study; refuses before anything is changed."""
    from dialometer.exchange.backups.packing import opened_backup
    from dialometer.exchange.backups.restoring import refuse_while_served, restore
    from dialometer.web.dashboard.running_studies import StudyFolders

    files = sorted(source.glob("*.zip"))
    if not files:
        raise DialometerError("there is no backup in this folder", where=str(source), remedy="name the folder or file")
    held = StudyFolders(parent=str(folder), database=database)
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[Path, tuple[Path, str]] = {}
    for file in files:
        is_accounts = file.stem == ACCOUNTS
        own = folder if is_accounts else folder / file.stem
        target = str(held.accounts_database()) if is_accounts else database.replace("{study}", file.stem)
        if own.exists():
            refuse_while_served(own, target)
        places[file] = (own, target)
    done = []
    for file, (own, target) in places.items():
        own.mkdir(parents=True, exist_ok=True)
        with opened_backup(file, own) as (unpacked, manifest):
            done.append((file.stem, manifest, restore(unpacked, manifest, own, target, at)))
    return done
