"""Excluding sessions from the analysis and including them again; every decision is logged and nothing is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from dialometer.model.quality import Finding
from dialometer.model.session import Session
from dialometer.storage import schema
from dialometer.storage.database import StorePart
from dialometer.storage.rows import finding_values
from dialometer.storage.schema import exclusions, sessions, slots
from dialometer.storage.sessions import present_session


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One decision to exclude a session from the analysis, or to include it again."""

    session_id: str
    is_excluded: bool
    made_by: str
    reason: str
    at_ms: int


class Exclusions(StorePart):
    """Decisions about whole sessions."""

    def exclude(self, session_id: str, by: str, reason: str, at_ms: int) -> None:
        """Exclude a session from the analysis and open its slots to others; nothing is deleted."""
        with self.database.writing() as connection:
            _exclude(connection, present_session(connection, session_id), by, reason, at_ms)

    def restore(self, session_id: str, by: str, reason: str, at_ms: int) -> None:
        """Include an excluded session again. Its slots count again, even where others have filled them meanwhile."""
        with self.database.writing() as connection:
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

    def add_findings(self, session_id: str, flags: Sequence[Finding], at_ms: int) -> None:
        """Store what a rule flagged outside a submission; a flag that excludes takes effect."""
        with self.database.writing() as connection:
            session = present_session(connection, session_id)
            rows = [finding_values(session_id, finding, at_ms) for finding in flags]
            if rows:
                connection.execute(insert(schema.findings), rows)
            for finding in flags:
                if finding.action == "exclude":
                    _exclude(connection, session, f"rule:{finding.rule}", finding.reason, at_ms)
                    break

    def log(self, session_id: str | None = None) -> list[Exclusion]:
        """Every decision to exclude a session or to include it again, in the order in which they were made."""
        query = select(exclusions).order_by(exclusions.c.id)
        if session_id is not None:
            query = query.where(exclusions.c.session_id == session_id)
        with self.database.reading() as connection:
            rows = connection.execute(query)
            return [Exclusion(row.session_id, row.is_excluded, row.made_by, row.reason, row.at_ms) for row in rows]


def _exclude(connection: Connection, session: Session, by: str, reason: str, at_ms: int) -> None:
    if session.is_excluded:
        return
    _log(connection, session.id, True, by, reason, at_ms)
    connection.execute(update(slots).where(slots.c.session_id == session.id).values(is_released=True))


def _log(connection: Connection, session_id: str, is_excluded: bool, by: str, reason: str, at_ms: int) -> None:
    connection.execute(update(sessions).where(sessions.c.id == session_id).values(is_excluded=is_excluded))
    row = {"session_id": session_id, "is_excluded": is_excluded, "made_by": by, "reason": reason, "at_ms": at_ms}
    connection.execute(insert(exclusions), row)
