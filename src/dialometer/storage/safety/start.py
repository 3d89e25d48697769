"""What a server checks before it takes answers: that the database is the one in which the earlier answers are."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select

from dialometer.errors import StorageError
from dialometer.storage.database import Database
from dialometer.storage.safety.acknowledged import ACKNOWLEDGED_FILE, N_LAST, compare
from dialometer.storage.safety.files import is_open_elsewhere, log_mismatch
from dialometer.storage.schema import sessions


def refuse_foreign_log(path: Path) -> None:
    """Refuse an older copy of a database file beside the log of the newer one; SQLite would mix the two."""
    if path.exists() and not is_open_elsewhere(path):
        mismatch = log_mismatch(path)
        if mismatch:
            raise StorageError(
                f"the database is older than its log: {mismatch}",
                where=str(path),
                remedy="use 'dialometer restore' to go back to a backup, or bring the newer file back",
            )


def refuse_lost_answers(folder: Path, database: Database) -> None:
    """Refuse a database that lacks the screens that were last reported as stored: an empty one, or an older copy."""
    comparison = compare(folder, database, N_LAST)
    if not comparison.lost:
        return
    with database.reading() as connection:
        n = connection.scalar(select(func.count()).select_from(sessions)) or 0
    if n:
        raise StorageError(
            f"the database lacks {len(comparison.lost):,} of the last {comparison.n_logged:,} screens that were acknowledged "
            "to raters: it seems to be an older copy",
            where=database.where,
            remedy=f"bring the newer database back, or 'dialometer restore' a backup; see 'dialometer verify {folder}'",
        )
    raise StorageError(
        "answers were collected in this study before, but the database is empty",
        where=database.where,
        remedy=f"'dialometer restore' a backup, or begin anew on purpose: dialometer serve {folder} --start-empty",
    )


def start_empty(folder: Path, database: Database, at: datetime) -> None:
    """Begin anew on purpose: the log of what was acknowledged before is moved aside. Only for an empty database."""
    with database.reading() as connection:
        n = connection.scalar(select(func.count()).select_from(sessions)) or 0
    if n:
        raise StorageError(
            f"the database holds {n:,} sessions, so it cannot start empty",
            where=database.where,
            remedy="run without --start-empty to continue; to begin anew, move the study's database away first",
        )
    log = folder / ACKNOWLEDGED_FILE
    if log.exists():
        log.rename(log.with_name(f"acknowledged-until-{at:%Y%m%d-%H%M%S}.log"))
