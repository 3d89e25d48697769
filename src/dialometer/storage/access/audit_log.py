"""The audit log: what accounts did, in which study, and when. The database itself refuses to change an entry."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select

from dialometer.storage.database import StorePart
from dialometer.storage.schema import dashboard_log


@dataclass(frozen=True, slots=True)
class LoggedAction:
    """One entry: who did what, in which study (empty where it concerns none), and what is worth knowing about it."""

    made_by: str
    what: str
    detail: str
    at_ms: int
    study: str = ""


class AuditLog(StorePart):
    """Entries are added and read, nothing else."""

    def add(self, by: str, action: str, detail: str, at_ms: int, *, study: str = "") -> None:
        """Add an entry."""
        row = {"made_by": by, "what": action, "detail": detail, "at_ms": at_ms, "study": study}
        with self.database.writing() as connection:
            connection.execute(insert(dashboard_log), row)

    def newest(self, at_most: int) -> list[LoggedAction]:
        """The newest entries, the newest first."""
        log = dashboard_log.c
        query = select(log.made_by, log.what, log.detail, log.at_ms, log.study).order_by(log.id.desc()).limit(at_most)
        with self.database.reading() as connection:
            return [LoggedAction(*row) for row in connection.execute(query)]
