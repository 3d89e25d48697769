"""What is left of a session that must leave nothing: its row, without a rater, with times that tell only the day.

Raters who withdraw, decline or leave before consenting are erased in the same way. The guards of the append-only tables
(:func:`dialometer.storage.schema.guard_statements`) let nobody else's answers go.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Table, case, delete, func, select, update

from dialometer.storage import schema
from dialometer.storage.database import BUSY_TIMEOUT_S, Database, translated
from dialometer.storage.schema import judgments, people, sessions

DAY_MS = 24 * 3600 * 1000
SCRUB_TIMEOUT_MS = 500
_N_AT_ONCE = 500
ERASED_UNTIL_0007: tuple[Table, ...] = (
    schema.judgments,
    schema.answers,
    schema.visits,
    schema.submissions,
    schema.findings,
    schema.exclusions,
    schema.drafts,
    schema.chat_turns,
    schema.slots,
)
ERASED = (*ERASED_UNTIL_0007, schema.wizard_chats)
"""What is erased; a test holds this to the tables that name a session."""


def day_of(at_ms: int) -> int:
    """The beginning of the day: a platform's own records could name the rater who began at a certain millisecond."""
    return at_ms - at_ms % DAY_MS


def erase_sessions(connection: Connection, ids: Sequence[str], tables: Sequence[Table] = ERASED) -> None:
    """Erase what these sessions hold; their rows stay, so that no number is given again and counts stay honest."""
    for table in tables:
        connection.execute(delete(table).where(table.c.session_id.in_(ids)))
    raters = connection.scalars(select(sessions.c.rater_id).where(sessions.c.id.in_(ids))).all()
    finished = sessions.c.finished_at_ms
    started, seen = (column - column % DAY_MS for column in (sessions.c.started_at_ms, sessions.c.last_seen_at_ms))
    connection.execute(
        update(sessions)
        .where(sessions.c.id.in_(ids))
        .values(
            rater_id=None,
            started_at_ms=started,
            last_seen_at_ms=seen,
            finished_at_ms=case((finished.is_(None), None), else_=finished - finished % DAY_MS),
            **({"language": ""} if tables is ERASED else {}),  # earlier revisions have no such column
        )
    )
    known = [rater for rater in raters if rater is not None]
    remaining = select(sessions.c.rater_id).where(sessions.c.rater_id.in_(known))
    connection.execute(delete(people).where(people.c.rater_id.in_(known), people.c.rater_id.not_in(remaining)))


def erase_left_before_consent(connection: Connection, before_ms: int, tables: Sequence[Table] = ERASED) -> bool:
    """Erase raters who left before they consented and were last seen before that time; whether there were any.

    One who comes back is new. Their sessions lose their tokens too, so a page that is still open asks to open the link again.
    """
    judged = select(judgments.c.id).where(judgments.c.session_id == sessions.c.id).exists()
    left = select(sessions.c.id).where(
        sessions.c.state == "stale",
        sessions.c.consent_version == "",
        sessions.c.source == "person",
        sessions.c.rater_id.is_not(None),
        sessions.c.last_seen_at_ms < before_ms,
        ~judged,
    )
    ids = list(connection.scalars(left))
    for start in range(0, len(ids), _N_AT_ONCE):
        some = ids[start : start + _N_AT_ONCE]
        connection.execute(update(sessions).where(sessions.c.id.in_(some)).values(token_hash=None))
        erase_sessions(connection, some, tables)
    return bool(ids)


def n_rows(connection: Connection, table: Table, session_id: str) -> int:
    """How many rows of a table belong to a session."""
    return connection.scalar(select(func.count()).select_from(table).where(table.c.session_id == session_id)) or 0


def scrub(database: Database) -> None:
    """Move an erasure from SQLite's log into the file, so that no old copy of the texts is left on disk.

    A reader who is in the middle of the old state keeps it there; then the next erasure or the last closing of the file
    does it.
    """
    if database.is_sqlite:
        with translated(database.where), database.engine.connect() as connection:
            driver = connection.connection.cursor()
            driver.execute(f"PRAGMA busy_timeout = {SCRUB_TIMEOUT_MS}")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            driver.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")
