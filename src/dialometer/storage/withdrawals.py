"""Erasing what raters gave: when they withdraw, and when the study has kept it for as long as it promised.

The code with which a rater withdraws follows from the session, so nothing has to be stored for it. A session's id is drawn
at random and leaves the database nowhere, so only a person who saw the code can know it; and the code, being a hash, does
not reveal the id.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, case, func, insert, select, update

from dialometer.model.session import ERASED_STATES, Session
from dialometer.storage import schema
from dialometer.storage.database import StorePart
from dialometer.storage.erasing import DAY_MS, day_of, erase_sessions, n_rows, scrub
from dialometer.storage.schema import imports, people, sessions, withdrawals
from dialometer.storage.sessions import load_session

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Digits and letters that are not taken for one another when they are copied by hand (Crockford's base 32)."""
N_LETTERS = 16
_READ_AS = str.maketrans("OIL", "011")
OF_PEOPLE = ("person", "imported")
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
        wanted = _plain(code)
        if len(wanted) != N_LETTERS:
            return None
        with self.database.reading() as connection:
            ids = connection.scalars(select(sessions.c.id)).all()
        return next((known for known in ids if _plain(withdrawal_code(known)) == wanted), None)

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


def withdrawal_code(session_id: str) -> str:
    """The code of a session, such as ``7Q4M-0ZKP-XW2T-93GB``: 80 bits, too many to guess."""
    digest = hashlib.sha256(b"dialometer withdrawal\x00" + session_id.encode()).digest()
    number = int.from_bytes(digest[:10], "big")
    letters = "".join(LETTERS[number >> 5 * place & 31] for place in reversed(range(N_LETTERS)))
    return "-".join(letters[at : at + 4] for at in range(0, N_LETTERS, 4))


def _plain(code: str) -> str:
    return "".join(sign for sign in code.upper().translate(_READ_AS) if sign in LETTERS)


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
        .where(sessions.c.source.in_(OF_PEOPLE), sessions.c.state.not_in(ERASED_STATES))
        .where(before_ms > SEEN)
        .order_by(sessions.c.ordinal)
    )
    return tuple(connection.scalars(query))
