"""Looking up sessions, and counting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, func, select, update

from dialometer.errors import StorageError
from dialometer.model.session import Session, Source, State
from dialometer.storage.database import Database
from dialometer.storage.rows import mapping_from_json, session_from, token_hash
from dialometer.storage.schema import people, sessions, slots


@dataclass(frozen=True, slots=True)
class Person:
    """Who a rater is to the platform that sent them: needed to send them back, never for analysis."""

    rater_id: str
    platform: str
    external_id: str
    params: Mapping[str, Any]


class Sessions(Database):
    """Sessions as they stand."""

    def session(self, session_id: str) -> Session:
        """The session of that id; an unknown id is an error."""
        with self.reading() as connection:
            return load_session(connection, session_id)

    def session_by_token(self, token: str) -> Session | None:
        """The session a rater's token opens, or None."""
        with self.reading() as connection:
            row = connection.execute(select(sessions).where(sessions.c.token_hash == token_hash(token))).one_or_none()
            return None if row is None else session_from(row)

    def person(self, session_id: str) -> Person | None:
        """Who sits behind a session; None when the rater has withdrawn."""
        query = (
            select(people).join(sessions, sessions.c.rater_id == people.c.rater_id).where(sessions.c.id == session_id)
        )
        with self.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Person(row.rater_id, row.platform, row.external_id or "", mapping_from_json(row.params))

    def touch(self, session_id: str, at_ms: int) -> None:
        """Note that the rater is still there, so that the place is not given away."""
        seen = sessions.c.last_seen_at_ms
        later = case((seen < at_ms, at_ms), else_=seen)
        with self.writing() as connection:
            connection.execute(update(sessions).where(sessions.c.id == session_id).values(last_seen_at_ms=later))

    def sessions(
        self, *, state: State | None = None, source: Source | None = None, is_excluded: bool | None = None
    ) -> list[Session]:
        """All sessions in the order of arrival, or those in one state, of one source, or (not) excluded."""
        query = select(sessions).order_by(sessions.c.ordinal)
        if state is not None:
            query = query.where(sessions.c.state == state)
        if source is not None:
            query = query.where(sessions.c.source == source)
        if is_excluded is not None:
            query = query.where(sessions.c.is_excluded == is_excluded)
        with self.reading() as connection:
            return [session_from(row) for row in connection.execute(query)]

    def rater_numbers(self) -> dict[str, int]:
        """By session, the number under which its rater leaves the database: the ordinal of the rater's first session.

        One person has one number, also over several imported files; a withdrawn session, which has no rater, its own.
        """
        query = select(sessions.c.id, sessions.c.rater_id, sessions.c.ordinal)
        with self.reading() as connection:
            return rater_numbers(tuple(row) for row in connection.execute(query))

    def session_counts(self, *, source: Source | None = None) -> dict[tuple[int, State], int]:
        """How many sessions there are by cell and state, excluded ones included."""
        query = select(sessions.c.cell, sessions.c.state, func.count()).group_by(sessions.c.cell, sessions.c.state)
        if source is not None:
            query = query.where(sessions.c.source == source)
        with self.reading() as connection:
            return {(cell, state): n for cell, state, n in connection.execute(query)}

    def item_counts(self, *, source: Source | None = None) -> dict[tuple[int, str], dict[str, int]]:
        """By cell and item, how many places are ``reserved``, ``done`` and ``released``."""
        is_done = slots.c.done_at_ms.is_not(None)
        state = case((slots.c.is_released, "released"), (is_done, "done"), else_="reserved").label("place")
        columns = (slots.c.cell, slots.c.item_id, state)
        query = select(*columns, func.count()).group_by(slots.c.cell, slots.c.item_id, "place")
        if source is not None:
            query = query.where(slots.c.source == source)
        counts: dict[tuple[int, str], dict[str, int]] = {}
        with self.reading() as connection:
            for cell, item, state, n in connection.execute(query):
                counts.setdefault((cell, item), {"reserved": 0, "done": 0, "released": 0})[state] = n
        return counts


def rater_numbers(rows: Iterable[tuple[str, str | None, int]]) -> dict[str, int]:
    """The rater's number by session, from (session, rater, ordinal) of all sessions."""
    known = list(rows)
    first: dict[str, int] = {}
    for _, rater, ordinal in known:
        if rater:
            first[rater] = min(ordinal, first.get(rater, ordinal))
    return {session: first[rater] if rater else ordinal for session, rater, ordinal in known}


def load_session(connection: Connection, session_id: str, *, for_update: bool = False) -> Session:
    """A session inside a transaction; ``for_update`` keeps others from changing it until the end (PostgreSQL)."""
    query = select(sessions).where(sessions.c.id == session_id)
    if for_update:
        query = query.with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise StorageError(f"there is no session '{session_id}'", remedy="check the id")
    return session_from(row)


def present_session(connection: Connection, session_id: str) -> Session:
    """A session about to be changed; one that was withdrawn takes nothing any more."""
    session = load_session(connection, session_id, for_update=True)
    if session.state == "withdrawn":
        raise StorageError(f"session '{session_id}' was withdrawn", remedy="leave it as it is")
    return session
