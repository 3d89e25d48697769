"""Keeping things only as long as the study promised: what is due, and erasing it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select, update

from dialometer.storage.exclusions import DAY_MS
from dialometer.storage.schema import imports, people, sessions
from dialometer.storage.store import Store

OF_PEOPLE = ("person", "imported")
"""Sources behind which people stand; a program's name is not personal."""


SEEN = case((sessions.c.last_seen_at_ms == 0, imports.c.at_ms), else_=sessions.c.last_seen_at_ms)
"""When a rater was last seen; imported sessions without times were seen when they were imported."""


@dataclass(frozen=True, slots=True)
class Due:
    """What has been kept for longer than promised: raters with a platform's name, and sessions with answers."""

    raters: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.raters or self.sessions)


def what_is_due(store: Store, *, identifiers_days: int | None, answers_days: int | None, at_ms: int) -> Due:
    """What a promise of so many days since a rater was last seen leaves no reason to keep; None promises nothing."""
    with store.reading() as connection:
        raters = _raters(connection, at_ms - identifiers_days * DAY_MS) if identifiers_days is not None else ()
        left = _sessions(connection, at_ms - answers_days * DAY_MS) if answers_days is not None else ()
    return Due(raters, left)


def erase_due(store: Store, due: Due, at_ms: int) -> None:
    """Erase it. Answers go as in a withdrawal; a rater whose name goes keeps the pseudonym and everything given."""
    for session_id in due.sessions:
        store.withdraw(session_id, at_ms)
    if due.raters:
        with store.writing() as connection:
            forgotten = update(people).where(people.c.rater_id.in_(due.raters))
            connection.execute(forgotten.values(external_id=None, params="{}"))
        store.scrub()


def _raters(connection: Connection, before_ms: int) -> tuple[str, ...]:
    query = (
        select(people.c.rater_id)
        .join(sessions, sessions.c.rater_id == people.c.rater_id)
        .outerjoin(imports, imports.c.id == sessions.c.import_id)
        .where(sessions.c.source.in_(OF_PEOPLE), people.c.external_id.is_not(None))
        .group_by(people.c.rater_id)
        .having(func.max(SEEN) < before_ms)
        .order_by(people.c.rater_id)
    )
    return tuple(connection.scalars(query))


def _sessions(connection: Connection, before_ms: int) -> tuple[str, ...]:
    query = (
        select(sessions.c.id)
        .outerjoin(imports, imports.c.id == sessions.c.import_id)
        .where(sessions.c.source.in_(OF_PEOPLE), sessions.c.state != "withdrawn")
        .where(before_ms > SEEN)
        .order_by(sessions.c.ordinal)
    )
    return tuple(connection.scalars(query))
