"""Reading back what was recorded, corrections applied unless asked otherwise. Long results come as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Row, Select, Table, exists, select

from dialometer.model.quality import Finding
from dialometer.model.session import Answer, Judgment, ScreenVisit, SessionRecord
from dialometer.storage import schema
from dialometer.storage.database import Database
from dialometer.storage.rows import answer_from, judgment_from, mapping_from_json, visit_from

T = TypeVar("T")
N_PER_FETCH = 2000


@dataclass(frozen=True, slots=True)
class LoggedFinding:
    """A finding, whose it is and when it was made."""

    session_id: str
    finding: Finding
    at_ms: int


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One decision to exclude a session from the analysis, or to take it back in."""

    session_id: str
    is_excluded: bool
    made_by: str
    reason: str
    at_ms: int


class Reading(Database):
    """What sessions left, in the order in which it was written. Without ``session_id`` it is that of all sessions."""

    def record_of(self, session_id: str) -> SessionRecord:
        """All that one session has left so far, from one moment."""
        with self.reading() as connection:
            return SessionRecord(
                judgments=[judgment_from(row) for row in connection.execute(query(schema.judgments, session_id))],
                answers=[answer_from(row) for row in connection.execute(query(schema.answers, session_id))],
                visits=[visit_from(row) for row in connection.execute(query(schema.visits, session_id))],
            )

    def judgments_of(self, session_id: str) -> list[Judgment]:
        """One session's judgments, read at once: a rater waits for the rules that look at them."""
        return self._at_once(query(schema.judgments, session_id), judgment_from)

    def visits_of(self, session_id: str) -> list[ScreenVisit]:
        """One session's visits, read at once."""
        return self._at_once(query(schema.visits, session_id), visit_from)

    def judgments(self, session_id: str | None = None, *, include_corrected: bool = False) -> Iterator[Judgment]:
        """Judgments; with ``include_corrected`` also those that a correction has replaced."""
        return self._stream(query(schema.judgments, session_id, include_corrected), judgment_from)

    def answers(self, session_id: str | None = None, *, include_corrected: bool = False) -> Iterator[Answer]:
        """Answers to questionnaires and checks; with ``include_corrected`` also the replaced ones."""
        return self._stream(query(schema.answers, session_id, include_corrected), answer_from)

    def visits(self, session_id: str | None = None) -> Iterator[ScreenVisit]:
        """How screens were used."""
        return self._stream(query(schema.visits, session_id), visit_from)

    def findings(self, session_id: str | None = None) -> Iterator[LoggedFinding]:
        """What quality rules found."""

        def finding(row: Row[Any]) -> LoggedFinding:
            found = Finding(row.rule, row.action, row.reason, mapping_from_json(row.details))
            return LoggedFinding(row.session_id, found, row.at_ms)

        return self._stream(query(schema.findings, session_id), finding)

    def exclusion_log(self, session_id: str | None = None) -> Iterator[Exclusion]:
        """Every decision to exclude a session or to take it back in."""

        def exclusion(row: Row[Any]) -> Exclusion:
            return Exclusion(row.session_id, row.is_excluded, row.made_by, row.reason, row.at_ms)

        return self._stream(query(schema.exclusions, session_id), exclusion)

    def _at_once(self, rows: Select[Any], convert: Callable[[Row[Any]], T]) -> list[T]:
        with self.reading() as connection:
            return list(map(convert, connection.execute(rows).all()))

    def _stream(self, rows: Select[Any], convert: Callable[[Row[Any]], T]) -> Iterator[T]:
        # The result is closed by name, so that a stream that is left early gives its cursor back as well.
        with (
            self.reading() as connection,
            connection.execution_options(yield_per=N_PER_FETCH).execute(rows) as result,
        ):
            yield from map(convert, result)


def query(table: Table, session_id: str | None = None, include_corrected: bool = False) -> Select[Any]:
    """The rows of a table in the order they were written, without replaced ones where the table has such."""
    rows = select(table).order_by(table.c.id)
    if session_id is not None:
        rows = rows.where(table.c.session_id == session_id)
    if "replaces" in table.c and not include_corrected:
        rows = rows.where(is_current(table))
    return rows


@lru_cache
def is_current(table: Table) -> Any:
    """Whether no correction has replaced a row."""
    correction = table.alias("correction")
    return ~exists().where(correction.c.replaces == table.c.id)
