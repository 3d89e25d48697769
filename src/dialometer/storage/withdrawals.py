"""Erasing what raters gave: when they withdraw, and when the study has kept it for as long as it promised."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, case, func, insert, select, update

from dialometer.model.session import Session
from dialometer.storage import schema
from dialometer.storage.access.codes import code_hash, is_code, note_code, withdrawal_code
from dialometer.storage.database import StorePart
from dialometer.storage.erasing import DAY_MS, day_of, erase_sessions, n_rows, scrub
from dialometer.storage.schema import imports, people, sessions, withdrawal_codes, withdrawals
from dialometer.storage.sessions import load_session

OF_PEOPLE = ("person", "imported", "adjudicator")
"""Sources behind which people stand; a program's name is not personal."""


SEEN = case((sessions.c.last_seen_at_ms == 0, imports.c.at_ms), else_=sessions.c.last_seen_at_ms)
"""When a rater was last seen; imported sessions without times were seen when they were imported."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What is left of a withdrawn session: that it was there, and how much it held."""

    session_id: str
    at_ms: int
    n_judgments: int
    n_answers: int
    n_visits: int


@dataclass(frozen=True, slots=True)
class Due:
    """What has been kept for longer than promised: raters with a platform's name, and sessions with answers."""

    raters: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.raters or self.sessions)


class Withdrawals(StorePart):
    """Erasing sessions, and what is left of them."""

    def withdraw(self, session_id: str, at_ms: int) -> Withdrawal:
        """Erase what a rater gave, who they are, and every text about them; doing it twice changes nothing.

        All sessions of the person go (imports can give one person several). The rows of the sessions themselves stay,
        without a rater and with times that tell only the day, so that no number is given again and counts stay honest.
        Since the person is forgotten, somebody who comes back afterwards is new.
        """
        with self.database.writing() as connection:
            session = load_session(connection, session_id, for_update=True)
            earlier = connection.execute(
                select(withdrawals).where(withdrawals.c.session_id == session_id)
            ).one_or_none()
            if earlier is not None:
                return Withdrawal(*earlier)
            of_person = (
                select(sessions.c.id).where(sessions.c.rater_id == session.rater_id).order_by(sessions.c.ordinal)
            )
            # A session that was declined has lost its rater already.
            ids = connection.scalars(of_person).all() or [session_id]
            erased = {
                of_rater: _erase(connection, load_session(connection, of_rater, for_update=True), at_ms)
                for of_rater in ids
            }
        scrub(self.database)
        return erased[session_id]

    def all(self) -> list[Withdrawal]:
        """All withdrawn sessions, the earliest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(withdrawals).order_by(withdrawals.c.at_ms, withdrawals.c.session_id))
            return [Withdrawal(*row) for row in rows]

    def session_of_code(self, code: str) -> str | None:
        """The id of the session with this withdrawal code, however it was typed; None where there is none."""
        if not is_code(code):
            return None
        query = select(withdrawal_codes.c.session_id).where(withdrawal_codes.c.code_hash == code_hash(code))
        with self.database.reading() as connection:
            session_id: str | None = connection.scalar(query)
        return session_id

    def code(self, session_id: str, token: str) -> str:
        """The code that the holder of this token withdraws with. Sessions of earlier versions get theirs when it is shown."""
        code = withdrawal_code(token)
        if self.session_of_code(code) is None:
            with self.database.writing() as connection:
                note_code(connection, session_id, token)
        return code

    # what the study promised to keep only for a time

    def due(self, *, identifiers_days: int | None, answers_days: int | None, at_ms: int) -> Due:
        """What has been kept for longer than so many days since the rater was last seen; None sets no limit."""
        with self.database.reading() as connection:
            raters = _raters(connection, at_ms - identifiers_days * DAY_MS) if identifiers_days is not None else ()
            left = _sessions(connection, at_ms - answers_days * DAY_MS) if answers_days is not None else ()
        return Due(raters, left)

    def erase(self, due: Due, at_ms: int) -> None:
        """Erase it. Answers go as in a withdrawal; a rater whose name goes keeps the pseudonym and everything given."""
        for session_id in due.sessions:
            self.withdraw(session_id, at_ms)
        if due.raters:
            with self.database.writing() as connection:
                forgotten = update(people).where(people.c.rater_id.in_(due.raters))
                connection.execute(forgotten.values(external_id=None, params="{}"))
            scrub(self.database)


def _erase(connection: Connection, session: Session, at_ms: int) -> Withdrawal:
    counted = (schema.judgments, schema.answers, schema.visits)
    tombstone = Withdrawal(session.id, at_ms, *(n_rows(connection, table, session.id) for table in counted))
    # The tombstone comes first: it is what the guards of the append-only tables look for.
    connection.execute(insert(withdrawals), asdict(tombstone))
    ended = session.finished_at_ms or day_of(at_ms)
    # Without its token the session is over in every browser that has it open.
    gone = {"state": "withdrawn", "token_hash": None, "finished_at_ms": ended}
    connection.execute(update(sessions).where(sessions.c.id == session.id).values(**gone))
    erase_sessions(connection, [session.id])
    return tombstone


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
        .where(sessions.c.source.in_(OF_PEOPLE), sessions.c.rater_id.is_not(None))
        .where(before_ms > SEEN)
        .order_by(sessions.c.ordinal)
    )
    return tuple(connection.scalars(query))
