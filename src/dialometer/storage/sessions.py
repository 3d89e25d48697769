"""Sessions: opening them for arriving raters, extending and reviving them, and looking them up.

Raters are assigned one at a time across all processes. The decision itself is a pure function of the caller's; this module
shows it the true state of the study and stores what it decides, both in one transaction. Slots are counted within a source:
a simulated or imported rater never takes a person's slot.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, insert, or_, select, update

from dialometer.errors import StorageError
from dialometer.model.session import ERASED_STATES, Draw, Session, Snapshot, Source, State
from dialometer.storage.access.codes import note_code
from dialometer.storage.controls import current_controls
from dialometer.storage.counting.slot_counts import OF_SESSION, add_changes, kept_counts
from dialometer.storage.database import StorePart, Values, insert_many
from dialometer.storage.erasing import erase_left_before_consent, scrub
from dialometer.storage.rows import draw_to_json, mapping_from_json, session_from, slot_rows, to_json, token_hash
from dialometer.storage.schema import people, sessions, slots

_MARKS = ("id", "ordinal", "state", "step", "cell", "source", "is_excluded")
_TIMES = ("started_at_ms", "last_seen_at_ms", "finished_at_ms")


# Asked for every request of a rater, so the statement is made once.
_BY_TOKEN = select(sessions).where(sessions.c.token_hash == bindparam("hashed"))


@dataclass(frozen=True, slots=True)
class Person:
    """Who a rater is to the platform that sent them: needed to send them back, never for analysis."""

    rater_id: str
    platform: str
    external_id: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionMark:
    """What an overview needs to know of a session; one that was erased tells only the day."""

    id: str
    ordinal: int
    state: State
    step: int
    cell: int
    source: Source
    is_excluded: bool
    started_at_ms: int
    last_seen_at_ms: int
    finished_at_ms: int | None
    is_erased: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long slots wait for their raters: who was not seen since ``stale_before_ms`` loses the unused ones.

    Who agreed and has answered nothing yet (at most ``n_opening`` screens) loses them sooner, from ``idle_before_ms`` on.
    """

    stale_before_ms: int
    idle_before_ms: int = 0
    n_opening: int = 0

    def has_left(self, session: Session) -> bool:
        """Whether a session that holds no answer is free to be begun anew, from any browser."""
        is_idle = session.state == "stale" or session.last_seen_at_ms < self.idle_before_ms
        return session.state in ("active", "stale") and session.step <= self.n_opening and is_idle


class SessionElsewhere(StorageError):
    """This person has a session already, and who asks has not shown that it is theirs."""


class TooManyArrivals(StorageError):
    """More raters arrive in a minute than the study lets in; ``retry_after_s`` says when there is room."""

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("too many raters are arriving at once", remedy=f"try again in {retry_after_s:.0f} s")


class Sessions(StorePart):
    """All sessions of the study, whatever their state."""

    def get(self, session_id: str) -> Session:
        """The session of that id; an unknown id is an error."""
        with self.database.reading() as connection:
            return load_session(connection, session_id)

    def several(self, session_ids: Sequence[str]) -> dict[str, Session]:
        """Sessions by id, read at once; an unknown id is an error."""
        with self.database.reading() as connection:
            rows = connection.execute(select(sessions).where(sessions.c.id.in_(session_ids)))
            found = {row.id: session_from(row) for row in rows}
        for session_id in session_ids:
            if session_id not in found:
                raise _unknown()
        return found

    def by_token(self, token: str) -> Session | None:
        """The session a rater's token opens, or None."""
        with self.database.reading() as connection:
            row = connection.execute(_BY_TOKEN, {"hashed": token_hash(token)}).one_or_none()
            return None if row is None else session_from(row)

    def person(self, session_id: str) -> Person | None:
        """Who sits behind a session; None when the rater was erased."""
        query = (
            select(people).join(sessions, sessions.c.rater_id == people.c.rater_id).where(sessions.c.id == session_id)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Person(row.rater_id, row.platform, row.external_id or "", mapping_from_json(row.params))

    def people(self) -> dict[str, Person]:
        """Who sits behind every session; those who were erased are missing."""
        query = select(sessions.c.id, people).join(people, sessions.c.rater_id == people.c.rater_id)
        with self.database.reading() as connection:
            return {
                row.id: Person(row.rater_id, row.platform, row.external_id or "", mapping_from_json(row.params))
                for row in connection.execute(query)
            }

    def of_person(self, platform: str, external_id: str) -> Session | None:
        """The session of somebody whom a platform calls so, or None."""
        with self.database.reading() as connection:
            return _session_of(connection, platform, external_id)

    def touch(self, session_id: str, at_ms: int) -> None:
        """Note that the rater is still there, so that the slot is not given away."""
        seen = sessions.c.last_seen_at_ms
        newest = case((seen < at_ms, at_ms), else_=seen)
        with self.database.writing() as connection:
            connection.execute(update(sessions).where(sessions.c.id == session_id).values(last_seen_at_ms=newest))

    def set_language(self, session_id: str, language: str) -> None:
        """Let the rater read the study in another language from here on."""
        with self.database.writing() as connection:
            present_session(connection, session_id)
            connection.execute(update(sessions).where(sessions.c.id == session_id).values(language=language))

    def all(
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
        with self.database.reading() as connection:
            return [session_from(row) for row in connection.execute(query)]

    def rater_numbers(self) -> dict[str, int]:
        """By session, the number under which its rater leaves the database: the ordinal of the rater's first session.

        One person has one number, also over several imported files; a session that was erased and has no rater, its own.
        """
        query = select(sessions.c.id, sessions.c.rater_id, sessions.c.ordinal)
        with self.database.reading() as connection:
            return rater_numbers(tuple(row) for row in connection.execute(query))

    def marks(self) -> list[SessionMark]:
        """All sessions in the order of arrival."""
        columns = [sessions.c[name] for name in (*_MARKS, *_TIMES)]
        with self.database.reading() as connection:
            query = select(*columns, sessions.c.rater_id.is_(None), sessions.c.language).order_by(sessions.c.ordinal)
            return [SessionMark(*row) for row in connection.execute(query)]

    def id_of(self, ordinal: int) -> str | None:
        """The session of that number, or None."""
        if not 0 < ordinal < 2**31:
            return None
        with self.database.reading() as connection:
            session_id: str | None = connection.scalar(select(sessions.c.id).where(sessions.c.ordinal == ordinal))
        return session_id

    # arriving

    def arrive(
        self,
        *,
        session_id: str,
        token: str,
        platform: str,
        external_id: str | None,
        params: Mapping[str, Any],
        source: Source,
        study_version: int,
        at_ms: int,
        patience: Patience,
        choose: Callable[[Snapshot], Draw],
        conditions: Sequence[Mapping[str, str]],
        rater_id: str = "",
        language: str = "",
        is_proven: bool = True,
        per_minute: int = 0,
    ) -> Session:
        """Open a session for an arriving rater, or give back the one this person has, whatever its state.

        Sessions of this source that were left lose the slots they have not used (``patience``). ``choose`` then draws
        from what is free; if it raises, nothing is stored. A person who comes back is seen now and gets ``token`` as the
        session's new token; the old one ends. A name in a link is no proof: without ``is_proven`` an existing session
        stays with the browser that has it, unless it was left without an answer. Without ``external_id`` nobody can be
        recognised. ``rater_id`` is drawn at random by default. ``per_minute`` limits new sessions of this source. The
        same arrival sent twice, with the same ``token``, opens one session, until its rater has gone on with it.
        """
        with self.database.assigning() as connection:
            opened = connection.scalar(select(sessions.c.id).where(sessions.c.token_hash == token_hash(token)))
            if opened is not None:  # the same arrival again, whose answer did not reach its browser
                session = load_session(connection, opened)
                if not is_proven and session.step > patience.n_opening:  # its rater has it, and has gone on
                    raise SessionElsewhere("this session is under way", remedy="open the rater's resume link")
                return session
            known = _session_of(connection, platform, external_id) if external_id else None
            if known is not None:
                if not is_proven and not patience.has_left(known):
                    raise SessionElsewhere("this rater has a session already", remedy="open the rater's resume link")
                return _hand_over(connection, known, token, at_ms)
            _refuse_crowd(connection, source, per_minute, at_ms)
            release_stale(connection, source, patience)
            add_changes(connection)
            snapshot = take_snapshot(connection, source, ordinal=next_ordinal(connection))
            draw = choose(snapshot)
            if draw.ordinal != snapshot.ordinal:
                raise StorageError(f"the draw is for ordinal {draw.ordinal}, this session is {snapshot.ordinal}")
            person = {
                "rater_id": rater_id or secrets.token_hex(8),
                "platform": platform,
                "external_id": external_id or None,
                "params": to_json(dict(params)),
            }
            row = {
                "id": session_id,
                "token_hash": token_hash(token),
                "rater_id": person["rater_id"],
                "study_version": study_version,
                "source": source,
                "state": "active",
                "language": language,
                "started_at_ms": at_ms,
                **drawn(draw, conditions[draw.cell]),
            }
            connection.execute(insert(people), person)
            insert_sessions(connection, [row])
            insert_many(connection, slots, slot_rows(session_id, draw, source, at_ms))
            note_code(connection, session_id, token)
            return load_session(connection, session_id)

    def has_session(self, platform: str, external_id: str, patience: Patience) -> bool:
        """Whether this person has a session that only its own browser or its resume link may go on with."""
        with self.database.reading() as connection:
            known = _session_of(connection, platform, external_id)
        return known is not None and not patience.has_left(known)

    def renew_token(self, session_id: str, token: str) -> Session:
        """Give a session a new token, for a rater who has lost the old one; that one ends. The rater is not seen by it."""
        with self.database.writing() as connection:
            session = present_session(connection, session_id)
            return _hand_over(connection, session, token, session.last_seen_at_ms)

    def extend(self, session_id: str, choose: Callable[[Session, Snapshot], Draw], at_ms: int) -> Session:
        """Give an active session more items; the new draw begins with everything the old one had."""
        with self.database.assigning() as connection:
            session = load_session(connection, session_id, for_update=True)
            if session.state != "active":
                raise StorageError(f"this session is {session.state}", remedy="only active sessions get more items")
            seen = connection.scalars(
                select(slots.c.item_id).join(sessions).where(sessions.c.rater_id == session.rater_id)
            )
            draw = choose(
                session,
                take_snapshot(connection, session.source, ordinal=session.ordinal, seen_items=frozenset(seen)),
            )
            _check_extension(session.draw, draw)
            connection.execute(
                update(sessions)
                .where(sessions.c.id == session_id)
                .values(draw=draw_to_json(draw), last_seen_at_ms=max(at_ms, session.last_seen_at_ms))
            )
            known_items = set(connection.scalars(select(slots.c.item_id).where(slots.c.session_id == session_id)))
            # An excluded rater may go on, but takes no place from others.
            new = [
                {**slot, "is_released": session.is_excluded}
                for slot in slot_rows(session_id, draw, session.source, at_ms)
            ]
            insert_many(connection, slots, [slot for slot in new if slot["item_id"] not in known_items])
            return load_session(connection, session_id)

    def snapshot(self, source: Source) -> Snapshot:
        """What the next rater of a source would be assigned from; nothing is reserved."""
        with self.database.reading() as connection:
            return take_snapshot(connection, source, ordinal=next_ordinal(connection))

    def release_left(self, patience: Patience) -> None:
        """Free the slots of people who left, and erase those who left before they consented."""
        with self.database.assigning() as connection:
            release_stale(connection, "person", patience)
            has_erased = erase_left_before_consent(connection, patience.stale_before_ms)
        if has_erased:
            scrub(self.database)

    def revive(self, session_id: str, at_ms: int) -> Session:
        """Let the rater of a stale session go on; an active session stays as it is.

        Always allowed: what the rater has answered is kept, and the places are reserved again even where others have
        taken them meanwhile. An item may then get more judgments than asked for, which is better than lost work.
        """
        with self.database.assigning() as connection:
            session = load_session(connection, session_id, for_update=True)
            if session.state == "active":
                return session
            if session.state != "stale":
                raise StorageError(f"this session is {session.state}", remedy="only a stale session can continue")
            connection.execute(
                update(sessions)
                .where(sessions.c.id == session_id)
                .values(state="active", last_seen_at_ms=max(at_ms, session.last_seen_at_ms))
            )
            if not session.is_excluded:
                connection.execute(
                    update(slots)
                    .where(slots.c.session_id == session_id, slots.c.is_released)
                    .values(is_released=False, reserved_at_ms=at_ms)
                )
            return load_session(connection, session_id)


def rater_numbers(rows: Iterable[tuple[str, str | None, int]]) -> dict[str, int]:
    """The rater's number by session, from (session, rater, ordinal) of all sessions."""
    known = list(rows)
    first: dict[str, int] = {}
    for _, rater, ordinal in known:
        if rater:
            first[rater] = min(ordinal, first.get(rater, ordinal))
    return {session: first[rater] if rater else ordinal for session, rater, ordinal in known}


# Built once: every screen of every rater asks them.
_BY_ID = select(sessions).where(sessions.c.id == bindparam("session_id"))
_LOCKED_BY_ID = _BY_ID.with_for_update()


def load_session(connection: Connection, session_id: str, *, for_update: bool = False) -> Session:
    """A session inside a transaction; ``for_update`` keeps others from changing it until the end (PostgreSQL)."""
    row = connection.execute(_LOCKED_BY_ID if for_update else _BY_ID, {"session_id": session_id}).one_or_none()
    if row is None:
        raise _unknown()
    return session_from(row)


def _unknown() -> StorageError:
    # Messages of the store are logged, and logs hold no ids of sessions.
    return StorageError("there is no session with this id", remedy="check the id")


def present_session(connection: Connection, session_id: str) -> Session:
    """A session about to be changed; one that was erased takes nothing any more."""
    session = load_session(connection, session_id, for_update=True)
    if session.state in ERASED_STATES or not session.rater_id:
        raise StorageError(f"this session was {session.state}", remedy="leave it as it is")
    return session


def next_ordinal(connection: Connection) -> int:
    """The number of the next session. Rows of sessions are never deleted, so no number is used twice."""
    return (connection.scalar(select(func.max(sessions.c.ordinal))) or 0) + 1


def drawn(draw: Draw, condition: Mapping[str, str]) -> Values:
    """The columns of a session that follow from its draw."""
    return {
        "ordinal": draw.ordinal,
        "cell": draw.cell,
        "condition": to_json(dict(condition)),
        "draw": draw_to_json(draw),
    }


def insert_sessions(connection: Connection, rows: Sequence[Values]) -> None:
    """Store new sessions; what a row leaves out is as it is at the start."""
    blank = {"import_id": None, "step": 0, "consent_version": "", "finished_at_ms": None, "is_excluded": False}
    blank |= {"language": ""}
    insert_many(connection, sessions, [{**blank, "last_seen_at_ms": row["started_at_ms"], **row} for row in rows])


def release_stale(connection: Connection, source: Source, patience: Patience) -> None:
    """Mark sessions of a source that were left and free the slots they have not used.

    Only of this source: simulated raters bring a clock of their own, which says nothing about when people were seen. A
    session that is being written to at this moment is passed over: it is not stale.
    """
    seen = sessions.c.last_seen_at_ms
    is_idle = and_(seen < patience.idle_before_ms, sessions.c.step <= patience.n_opening)
    left = (
        select(sessions.c.id)
        .where(sessions.c.state == "active", sessions.c.source == source)
        .where(or_(seen < patience.stale_before_ms, is_idle))
        .with_for_update(skip_locked=True)
    )
    ids = connection.scalars(left).all()
    if not ids:
        return
    connection.execute(update(sessions).where(sessions.c.id.in_(ids)).values(state="stale"))
    unused = (slots.c.session_id.in_(ids), slots.c.done_at_ms.is_(None))
    connection.execute(update(slots).where(*unused).values(is_released=True))


def take_snapshot(
    connection: Connection, source: Source, *, ordinal: int, seen_items: frozenset[str] = frozenset()
) -> Snapshot:
    """The study as an assignment sees it. Excluded sessions do not count: others take their places."""
    counts = kept_counts(connection, source)
    cell_counts = {cell: n for (cell, item), n in counts.items() if item == OF_SESSION}
    cell_item_counts = {key: n for key, n in counts.items() if key[1] != OF_SESSION}
    item_counts: Counter[str] = Counter()
    for (_cell, item), n in cell_item_counts.items():
        item_counts[item] += n
    controls = current_controls(connection)
    return Snapshot(
        ordinal=ordinal,
        cell_counts=cell_counts,
        item_counts=dict(item_counts),
        cell_item_counts=cell_item_counts,
        closed_cells=controls.closed_cells,
        cell_quotas=controls.cell_quotas,
        quota=controls.quota,
        is_open=controls.state == "running",
        seen_items=seen_items,
        source=source,
    )


MINUTE_MS = 60_000


def _refuse_crowd(connection: Connection, source: Source, per_minute: int, at_ms: int) -> None:
    """Counted in the database, so that all processes and machines of a study share one limit."""
    if not per_minute:
        return
    recent = (sessions.c.source == source, sessions.c.started_at_ms > at_ms - MINUTE_MS)
    n_recent, first = connection.execute(select(func.count(), func.min(sessions.c.started_at_ms)).where(*recent)).one()
    if n_recent >= per_minute:
        raise TooManyArrivals(max(1.0, (first + MINUTE_MS - at_ms) / 1000))


def _hand_over(connection: Connection, session: Session, token: str, at_ms: int) -> Session:
    """The session under a new token."""
    seen = {"token_hash": token_hash(token), "last_seen_at_ms": max(at_ms, session.last_seen_at_ms)}
    connection.execute(update(sessions).where(sessions.c.id == session.id).values(**seen))
    note_code(connection, session.id, token)
    return load_session(connection, session.id)


def _session_of(connection: Connection, platform: str, external_id: str) -> Session | None:
    query = (
        select(sessions)
        .join(people, people.c.rater_id == sessions.c.rater_id)
        .where(people.c.platform == platform, people.c.external_id == external_id)
        .order_by(sessions.c.ordinal.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else session_from(row)


def _check_extension(old: Draw, new: Draw) -> None:
    is_same_place = (new.ordinal, new.cell) == (old.ordinal, old.cell)
    if not is_same_place or any(tuple(new.items.get(b, ()))[: len(ids)] != tuple(ids) for b, ids in old.items.items()):
        raise StorageError("an extended draw must begin with the items the session already has")
