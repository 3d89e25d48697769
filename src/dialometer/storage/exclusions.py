"""Taking sessions out of the analysis, back in, or (when the rater withdraws) out of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Table, delete, func, insert, select, update

from dialometer.model.quality import Finding
from dialometer.model.session import Session
from dialometer.storage import schema
from dialometer.storage.database import BUSY_TIMEOUT_S, Database, translated
from dialometer.storage.rows import finding_values
from dialometer.storage.schema import exclusions, people, sessions, slots, withdrawals
from dialometer.storage.sessions import load_session, present_session

SCRUB_TIMEOUT_MS = 500
DAY_MS = 24 * 3600 * 1000
ERASED: tuple[Table, ...] = (
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
"""What a withdrawal erases; a test holds this to the tables that name a session."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What is left of a withdrawn session: that it was there, and how much it held."""

    session_id: str
    at_ms: int
    n_judgments: int
    n_answers: int
    n_visits: int


class Excluding(Database):
    """Decisions about whole sessions."""

    def exclude(self, session_id: str, by: str, reason: str, at_ms: int) -> None:
        """Keep a session out of the analysis and open its places to others; nothing is deleted."""
        with self.writing() as connection:
            _exclude(connection, present_session(connection, session_id), by, reason, at_ms)

    def restore(self, session_id: str, by: str, reason: str, at_ms: int) -> None:
        """Take an excluded session back in. Its places count again, even where others have filled them meanwhile."""
        with self.writing() as connection:
            session = present_session(connection, session_id)
            if not session.is_excluded:
                return
            _log(connection, session_id, False, by, reason, at_ms)
            if session.state == "screened_out":
                return
            places = update(slots).where(slots.c.session_id == session_id).values(is_released=False)
            if session.state != "active":
                places = places.where(slots.c.done_at_ms.is_not(None))
            connection.execute(places)

    def add_findings(self, session_id: str, found: Sequence[Finding], at_ms: int) -> None:
        """Store what a rule found outside a submission; one that excludes is followed."""
        with self.writing() as connection:
            session = present_session(connection, session_id)
            rows = [finding_values(session_id, finding, at_ms) for finding in found]
            if rows:
                connection.execute(insert(schema.findings), rows)
            for finding in found:
                if finding.action == "exclude":
                    _exclude(connection, session, f"rule:{finding.rule}", finding.reason, at_ms)
                    break

    def withdraw(self, session_id: str, at_ms: int) -> Withdrawal:
        """Erase what a rater gave, who they are, and every text about them; doing it twice changes nothing.

        All sessions of the person go (imports can give one person several). The rows of the sessions themselves stay,
        without a rater and with times that tell only the day, so that no number is given again and counts stay honest.
        Since the person is forgotten, somebody who comes back afterwards is new.
        """
        with self.writing() as connection:
            session = load_session(connection, session_id, for_update=True)
            earlier = connection.execute(
                select(withdrawals).where(withdrawals.c.session_id == session_id)
            ).one_or_none()
            if earlier is not None:
                return Withdrawal(*earlier)
            of_person = (
                select(sessions.c.id).where(sessions.c.rater_id == session.rater_id).order_by(sessions.c.ordinal)
            )
            erased = {
                one: _erase(connection, load_session(connection, one, for_update=True), at_ms)
                for one in connection.scalars(of_person).all()
            }
            connection.execute(delete(people).where(people.c.rater_id == session.rater_id))
        self.scrub()
        return erased[session_id]

    def withdrawals(self) -> list[Withdrawal]:
        """All withdrawn sessions, the earliest first."""
        with self.reading() as connection:
            rows = connection.execute(select(withdrawals).order_by(withdrawals.c.at_ms, withdrawals.c.session_id))
            return [Withdrawal(*row) for row in rows]

    def scrub(self) -> None:
        """Move the erasure from SQLite's log into the file, so that no old copy of the texts is left on disk.

        A reader who is in the middle of the old state keeps it there; then the next withdrawal or the last closing of
        the file does it.
        """
        if self.is_sqlite:
            with translated(self.where), self._engine.connect() as connection:
                driver = connection.connection.cursor()
                driver.execute(f"PRAGMA busy_timeout = {SCRUB_TIMEOUT_MS}")
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                driver.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")


def _exclude(connection: Connection, session: Session, by: str, reason: str, at_ms: int) -> None:
    if session.is_excluded:
        return
    _log(connection, session.id, True, by, reason, at_ms)
    connection.execute(update(slots).where(slots.c.session_id == session.id).values(is_released=True))


def _log(connection: Connection, session_id: str, is_excluded: bool, by: str, reason: str, at_ms: int) -> None:
    connection.execute(update(sessions).where(sessions.c.id == session_id).values(is_excluded=is_excluded))
    row = {"session_id": session_id, "is_excluded": is_excluded, "made_by": by, "reason": reason, "at_ms": at_ms}
    connection.execute(insert(exclusions), row)


def _n_rows(connection: Connection, table: Table, session_id: str) -> int:
    return connection.scalar(select(func.count()).select_from(table).where(table.c.session_id == session_id)) or 0


def _erase(connection: Connection, session: Session, at_ms: int) -> Withdrawal:
    counted = (schema.judgments, schema.answers, schema.visits)
    tombstone = Withdrawal(session.id, at_ms, *(_n_rows(connection, table, session.id) for table in counted))
    # The tombstone comes first: it is what the guards of the append-only tables look for.
    connection.execute(insert(withdrawals), asdict(tombstone))
    for table in ERASED:
        connection.execute(delete(table).where(table.c.session_id == session.id))
    gone = {
        "rater_id": None,
        "state": "withdrawn",
        "started_at_ms": _day(session.started_at_ms),
        "last_seen_at_ms": _day(session.last_seen_at_ms),
        "finished_at_ms": _day(session.finished_at_ms or at_ms),
    }
    connection.execute(update(sessions).where(sessions.c.id == session.id).values(**gone))
    return tombstone


def _day(at_ms: int) -> int:
    """The beginning of the day: a platform's own records could name whoever began at a certain millisecond."""
    return at_ms - at_ms % DAY_MS
